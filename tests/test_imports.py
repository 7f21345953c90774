"""The house from outside: no circles, floors have doors, and private names stay at home."""

import ast
from dataclasses import dataclass

import pytest


@dataclass
class Module:
    """A file of the package; imports that only types need, or only a function, count.

    Attributes
    ----------
    tree : ast.Module
    names : set of (module, name imported from it)
    imports : set of modules imported as a whole
    """

    tree: ast.Module
    names: set[tuple[str, str]]
    imports: set[str]

    @classmethod
    def read(cls, path):
        tree = ast.parse(path.read_text())
        nodes = list(ast.walk(tree))
        froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        wholes = [node for node in nodes if isinstance(node, ast.Import)]
        assert not any(node.level for node in froms), "imports have full names"
        names = {(node.module, alias.name) for node in froms for alias in node.names}
        return cls(tree, names, {alias.name for node in wholes for alias in node.names})

    def definitions(self):
        """Return the functions and classes of the module, but for commands of the terminal."""
        kinds = (ast.FunctionDef, ast.ClassDef)
        defined = [node for node in self.tree.body if isinstance(node, kinds)]
        commands = "app.command"
        return {
            node.name
            for node in defined
            if not any(commands in ast.unparse(mark) for mark in node.decorator_list)
        }


@pytest.fixture(scope="module")
def modules(repo):
    src = repo / "src"
    named = {
        ".".join(path.relative_to(src).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (src / "psilonnet").rglob("*.py")
    }
    return {name: Module.read(path) for name, path in named.items()}


def floor(name):
    return ".".join(name.split(".")[:2])


def test_no_imports_go_in_a_circle(modules):
    left = {}
    for name, module in modules.items():
        homes = {f"{a}.{b}" if f"{a}.{b}" in modules else a for a, b in module.names}
        left[name] = (homes | module.imports) & set(modules)
    assert sum(map(len, left.values())) > 300
    while ready := [name for name, used in left.items() if not used & set(left)]:
        for name in ready:
            del left[name]
    assert left == {}
