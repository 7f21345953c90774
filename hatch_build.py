"""The README as a package index shows it: links into the repository mean nothing there."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = r"\[([^\]]*)\]\((?!https?:)[^)]*\)"  # into the repository


def for_index(text: str) -> str:
    """Return the text without pictures and rows of links; other links become their words.

    >>> for_index("![a](docs/a.png)[b](docs/b.md#c) and [d](https://d.org)")
    'b and [d](https://d.org)'
    """
    text = re.sub(rf"!{LINK}\n*", "", text)
    text = re.sub(rf"^{LINK}( · {LINK})+\n+", "", text, flags=re.MULTILINE)
    return re.sub(LINK, r"\1", text)


class Readme(MetadataHookInterface):
    """Gives the package the description that is made from the README."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme of the package."""
        text = for_index((Path(self.root) / "README.md").read_text(encoding="utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
