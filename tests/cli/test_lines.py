"""What commands say is broken between words in a terminal, and is one line elsewhere."""

import io
import sys

from psilonnet.cli.lines import broken, say

SAID = "Read as words, since digits with leading zeros are codes: 'postcode', 'number'.\n  no model"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_narrow_terminal_breaks_between_words(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "30")
    lines = broken(SAID).splitlines()
    assert max(map(len, lines)) <= 30
    assert " ".join(lines[:-1]) == SAID.splitlines()[0]
    assert lines[-1] == "  no model"


def test_a_log_has_a_sentence_as_one_line(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "30")
    say(SAID)
    assert capsys.readouterr().err == SAID + "\n"
