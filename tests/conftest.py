"""Fixtures shared by all tests."""

import os
import signal
from pathlib import Path

import pytest
import torch

REPO = Path(__file__).resolve().parents[1]
# Who is started in the background, as by .ci/long, ignores Ctrl-C, and so do all processes that it
# starts; but tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)
LONGEST = ("faults", "mutated", "random_moments", "test_benchmarks")  # in their names


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: not any(word in item.nodeid for word in LONGEST))


@pytest.fixture(scope="session")
def repo() -> Path:
    return REPO


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real tables, or a skip that says how to get one."""
    folder = Path(os.environ.get("PSILONNET_DATA", REPO.parent / "shared" / "data"))
    if not (folder / "datasets.json").is_file():
        pytest.skip(f"no real tables at {folder}: set PSILONNET_DATA to a folder that has them")
    return folder


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
