import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from estimators.messy import QUICK
from psilonnet import PSiLONClassifier
from psilonnet.estimators.labels import check_labels, warn_of_many_classes, warn_of_spaces


@pytest.mark.parametrize("labels", [pa.array(["b", "a"]), [np.str_("b"), "a"], ("b", "a")])
def test_words_of_all_types_are_taken(labels):
    assert check_labels(labels).tolist() == ["b", "a"]


def test_missing_labels_of_a_list_do_not_become_words():
    with pytest.raises(ValueError, match=r"must not be missing.*in row 2\. Drop"):
        check_labels(["a", "b", float("nan")])


def test_a_class_per_row_is_warned_about():
    with pytest.warns(UserWarning, match=r"31 classes in 60 rows.*PSiLONRegressor.*names the rows"):
        warn_of_many_classes(31, 60)
    warn_of_many_classes(30, 60)
    warn_of_many_classes(20, 20)  # too few rows to tell


def test_classes_that_differ_by_spaces_are_warned_about():
    with pytest.warns(UserWarning, match=r"spaces around them only: ' yes', 'yes'\. If"):
        warn_of_spaces(np.array([" yes", "no", "yes"]))
    warn_of_spaces(np.array(["no", "not known"]))
    warn_of_spaces(np.array([1, 2]))


def arrow_dictionary(cells):
    return pa.chunked_array([pa.array(cells).dictionary_encode()])


def labels_of_all_types():
    yes = [True, False] * 30
    return {
        "object of bool": (pd.Series(yes, dtype=object), [False, True]),
        "nullable bool": (pd.Series(yes, dtype="boolean"), [False, True]),
        "category of bool": (pd.Series(yes, dtype="category"), [False, True]),
        "nullable int": (pd.Series([3, 1] * 30, dtype="Int64"), [1, 3]),
        "object of int": (np.array([3, 1] * 30, dtype=object), [1, 3]),
        "string": (pd.Series(["b", "a"] * 30, dtype="string"), ["a", "b"]),
        "polars": (pl.Series(["b", "a"] * 30), ["a", "b"]),
        "arrow": (pa.chunked_array([["b", "a"] * 30]), ["a", "b"]),
        "arrow dictionary": (arrow_dictionary(["b", "a"] * 30), ["a", "b"]),
    }


@pytest.mark.parametrize("name", labels_of_all_types())
def test_labels_come_back_as_they_went_in(name):
    labels, classes = labels_of_all_types()[name]
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = PSiLONClassifier(**QUICK).fit(x, labels)
    assert model.classes_.tolist() == classes
    assert type(model.predict(x).tolist()[0]) is type(classes[0])


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (pd.array(["y", None] * 30, dtype="string"), "Labels must not be missing"),
        (pd.Series([True, None] * 30, dtype="boolean"), "Labels must not be missing"),
        (arrow_dictionary(["y", None, "n"] * 20), "Labels must not be missing.*in row 1"),
        (pd.Series(["y", True] * 30), r"of one type.*\['bool', 'str'\]: turn all of them"),
    ],
)
def test_labels_that_are_none_are_refused(labels, said):
    with pytest.raises(ValueError, match=said):
        PSiLONClassifier(**QUICK).fit(np.random.default_rng(0).normal(size=(60, 2)), labels)
