"""PAPER.md is the index of the paper: each statement has one home and a test, and both exist."""

import re


def rows(repo):
    """Yield (statement, home, tests) of each row of the first table of PAPER.md."""
    table = (repo / "PAPER.md").read_text().split("## Deviations")[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0] not in ("statement", "---"):
            yield cells[0], cells[2], cells[3]


def paths(cell):
    return re.findall(r"`((?:src|tests|experiments|benchmarks)/[\w/]+\.py)(?:::(\w+))?`", cell)


def source_files(repo):
    return {path: path.read_text() for path in (repo / "src").rglob("*.py")}


def test_index_has_every_numbered_statement(repo):
    named = {statement for statement, _, _ in rows(repo)}
    expected = {f"Eq. ({k})" for k in range(1, 17)} | {f"Alg. ({k})" for k in (1, 2, 3)}
    expected |= {"Def. (1)", "Def. (2)", "Theorem 1", "Theorem 2", "App. (C)"}
    expected |= {"Tables 1 and 2", "Table 3", "Figure 1"}
    assert expected <= named


def test_index_paths_exist_and_define_what_they_name(repo):
    for statement, home, tests in rows(repo):
        for path, name in paths(home) + paths(tests):
            text = (repo / path).read_text()
            assert not name or re.search(rf"(def|class) {name}\b", text), (statement, path, name)


def test_every_statement_is_implemented_exactly_once(repo):
    texts = source_files(repo)
    for statement, home, _ in rows(repo):
        if not statement.startswith(("Eq", "Alg", "Def", "App")) or not paths(home):
            continue
        homes = [
            path
            for path, text in texts.items()
            for _ in range(text.count(f"Implements {statement}"))
        ]
        assert [path.relative_to(repo).as_posix() for path in homes] == [paths(home)[0][0]], (
            statement
        )


def test_source_claims_nothing_that_the_index_lacks(repo):
    named = {statement for statement, _, _ in rows(repo)}
    for path, text in source_files(repo).items():
        for claim in re.findall(r"Implements ((?:Eq|Alg|Def|App)\. \(\w+\))", text):
            assert claim in named, (path, claim)


def test_every_cited_deviation_exists(repo):
    listed = set(re.findall(r"^\| (D\d+) \|", (repo / "PAPER.md").read_text(), re.M))
    assert listed
    for path, text in source_files(repo).items():
        for cited in re.findall(r"Deviation (D\d+)", text):
            assert cited in listed, (path, cited)
