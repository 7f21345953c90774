"""Imports of experiments and benchmarks go one way."""

import ast

import pytest

PACKAGES = {f"experiments.{name}" for name in ("paper", "comparison", "studies")}


def imports(path):
    """Return the modules that a file imports, also those that only types need."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def graph(repo):
    files = {
        ".".join(path.relative_to(repo).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in ("experiments", "benchmarks")
        for path in (repo / folder).rglob("*.py")
    }
    return {name: imports(path) & set(files) for name, path in files.items()}


def package(module):
    return next((p for p in PACKAGES if module.startswith(f"{p}.")), module.partition(".")[0])


def test_experiments_do_not_import_benchmarks(repo):
    found = graph(repo)
    assert any(package(name) == "benchmarks" for name in found)
    for name, used in found.items():
        if name.startswith("experiments"):
            assert {other for other in used if package(other) == "benchmarks"} == set(), name


@pytest.mark.parametrize("own", sorted(PACKAGES))
def test_packages_of_experiments_do_not_know_each_other(own, repo):
    found = {name: used for name, used in graph(repo).items() if package(name) == own}
    assert found
    for name, used in found.items():
        assert {package(other) for other in used} <= {own, "experiments"}, name


def test_what_packages_share_knows_none_of_them(repo):
    for name, used in graph(repo).items():
        if package(name) == "experiments":
            assert {other for other in used if package(other) in PACKAGES} == set(), name


def test_no_imports_go_in_a_circle(repo):
    left = graph(repo)
    while ready := [name for name, used in left.items() if not used & set(left)]:
        for name in ready:
            del left[name]
    assert left == {}
