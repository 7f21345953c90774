"""The package as a whole: its face, its floors, its README."""

import importlib
import re
import subprocess
import sys

import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression

import psilonnet


def test_every_public_name_loads():
    for name in psilonnet.__all__:
        assert getattr(psilonnet, name) is not None
    assert set(psilonnet.__all__) <= set(dir(psilonnet))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'psilonnet' has no attribute 'nothing'"):
        _ = psilonnet.nothing


def test_show_versions_names_every_dependency(capsys):
    psilonnet.show_versions()
    shown = capsys.readouterr().out
    for name in ("psilonnet", "python", "torch", "scikit-learn", "onnxruntime", "ray"):
        assert re.search(rf"^{name} +\S", shown, re.M), name


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("psilonnet", ["torch", "sklearn", "numpy"]),
        ("psilonnet.functional", ["sklearn", "pandas", "matplotlib", "ray", "onnx"]),
        ("psilonnet.nn", ["sklearn", "pandas", "matplotlib", "ray", "onnx"]),
        ("psilonnet.tables", ["torch", "sklearn", "matplotlib", "ray", "onnx"]),
        ("psilonnet.scale", ["torch", "sklearn", "pandas", "pyarrow", "ray", "onnx"]),
    ],
)
def test_a_floor_loads_alone(module, absent):
    code = f"import sys, {module}; print([m for m in {absent!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


PAGES = [
    "README.md",
    "docs/cells.md",
    "docs/certificates.md",
    "docs/coverage.md",
    "docs/estimators.md",
    "docs/files.md",
    "docs/getting_started.md",
    "docs/many.md",
    "docs/monotone.md",
    "docs/onnx.md",
    "docs/own_loop.md",
    "docs/losses.md",
    "docs/pieces.md",
    "docs/predict_files.md",
    "docs/report.md",
    "docs/serving.md",
    "docs/training.md",
]


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


def without_numbers(text):
    """Return the lines, blind to numbers and names of columns: machines differ in last digits."""
    lines = re.sub(r"-?\d[\d.e-]*(, \d[\d.e-]*)*", "#", text).splitlines()
    return [re.sub(r"^  \w+:", "  column:", line) for line in lines]


def test_front_page_shows_the_first_block_of_the_readme(repo):
    assert python_blocks(repo / "docs" / "index.md") == python_blocks(repo / "README.md")[:1]


def test_the_package_index_gets_no_links_that_it_cannot_follow(repo, monkeypatch):
    pytest.importorskip("hatchling", reason="the build needs it, using the library does not")
    monkeypatch.syspath_prepend(repo)
    text = importlib.import_module("hatch_build").for_index((repo / "README.md").read_text())
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert links
    assert all(link.startswith("https://") for link in links)
    assert "hero.png" not in text
    assert "## Three recipes" in text


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_of_pages_run(page, repo, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(repo / page)
    assert blocks
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), namespace)
    if page == "README.md":
        said = capsys.readouterr().out
        shown = "".join(re.findall(r"```text\n(.*?)```", (repo / page).read_text(), re.S))
        assert set(without_numbers(shown)) <= set(without_numbers(said))
        assert "moves no prediction by more than" in said


def test_front_page_tells_what_other_models_reach_on_the_same_rows(repo):
    x, y = load_diabetes(return_X_y=True, scaled=False)
    others = (LinearRegression(), RandomForestRegressor(random_state=0),
              HistGradientBoostingRegressor(random_state=0))  # fmt: skip
    found = [f"{other.fit(x[:350], y[:350]).score(x[350:], y[350:]):.2f}" for other in others]
    said = re.search(r"On these 92 new rows (.*?)\n\n", (repo / "README.md").read_text(), re.S)
    assert re.findall(r"\d\.\d\d", said[1]) == found


def test_citation_names_the_version(repo):
    assert f"\nversion: {psilonnet.__version__}\n" in (repo / "CITATION.cff").read_text()
