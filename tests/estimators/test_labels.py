import numpy as np
import pyarrow as pa
import pytest

from psilonnet.estimators.labels import check_labels, warn_of_many_classes


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
