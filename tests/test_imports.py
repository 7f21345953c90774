"""The house from outside: no circles, floors have doors, and private names stay at home."""

import ast
import re
from collections import defaultdict
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

    def types(self):
        """Return the names in the types of public functions, methods and attributes."""
        public = [n for n in self.tree.body if not getattr(n, "name", "_").startswith("_")]
        marks = [
            mark
            for top in public
            for node in ast.walk(top)
            for mark in (getattr(node, "annotation", None), getattr(node, "returns", None))
            if mark is not None
        ]
        nodes = (node for mark in marks for node in ast.walk(mark))
        return {node.id for node in nodes if isinstance(node, ast.Name)}


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


def test_floors_are_entered_by_their_doors(modules):
    wrong = set()
    for name, module in modules.items():
        for home, imported in module.names:
            if home in modules and floor(home) != floor(name):
                door = modules[floor(home)]
                offered = {n for _, n in door.names} | door.definitions()
                is_module = f"{home}.{imported}" in modules and home != "psilonnet"
                if home != floor(home) or (is_module and imported not in offered):
                    wrong.add((name, f"{home}.{imported}"))
    assert wrong == set()


@pytest.mark.parametrize("folder", ["experiments", "benchmarks", "examples"])
def test_other_folders_use_the_doors(folder, repo):
    paths = list((repo / folder).rglob("*.py"))
    assert paths
    homes = {str(home) for path in paths for home, _ in Module.read(path).names}
    ours = {home for home in homes if home.startswith("psilonnet.")}
    assert ours == {floor(home) for home in ours}


def test_names_with_an_underscore_stay_at_home(modules):
    private = {
        (name, f"{home}.{imported}")
        for name, module in modules.items()
        for home, imported in module.names
        if home in modules and imported.startswith("_") and not imported.startswith("__")
    }
    assert private == set()


def used_names(modules):
    """Return the names of each module that others import, or take from it as ``module.name``."""
    used = defaultdict(set)
    for module in modules.values():
        whole = {b: f"{a}.{b}" for a, b in module.names if f"{a}.{b}" in modules}
        for home, name in module.names:
            used[home].add(name)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used[whole.get(node.value.id)].add(node.attr)
    return used


def documented_names(docs):
    """Return the names in the index of the API, and those of the losses that a user may choose."""
    losses = re.findall(r'`"(\w+)"`', (docs / "training.md").read_text())
    return {*(docs / "api.md").read_text().split(), *losses}


def test_public_names_are_used_elsewhere_or_documented(modules, repo):
    documented = documented_names(repo / "docs")
    used = used_names(modules)
    at_home = {
        f"{name}.{public}"
        for name, module in modules.items()
        for public in module.definitions() - used[name] - module.types() - documented
        if not public.startswith("_")
    }
    assert at_home == set()
