import numpy as np
import pytest

from psilonnet import PSiLONClassifier, PSiLONRegressor
from report.pages import FIXED, mixed, page_of, rows

STRONG = {**FIXED, "max_steps": 100, "learning_rate": 2e-2, "reg_strength": 1.0}


@pytest.mark.parametrize("given", ["rows and labels", "rows", "nothing"])
def test_one_class_for_all_rows_is_said_first_and_not_praised(given, tmp_path):
    frame, y = rows(200)
    labels = np.where(y + np.random.default_rng(1).normal(size=200) > 2.2, "yes", "no")
    model = PSiLONClassifier(**STRONG).fit(frame, labels)
    assert set(model.predict(frame)) == {"no"}
    parts = {"rows and labels": (frame[:90], labels[:90]), "rows": (frame[:90],), "nothing": ()}
    text = page_of(model, tmp_path, *parts[given]).text
    which = "90 given rows" if len(parts[given]) == 2 else "200 rows that the model was trained on"
    said = text.index(f"All {which} get the same class, 'no', though ")
    assert said < text.index("Remedy: other class weights (class_weight='balanced')")
    assert text.index("on predict_proba.") < text.index("proven limit of")
    assert "a small bound is no merit" in text
    assert "Rows that cannot flip" not in text
    assert ("says nothing about the model" in text) == (given != "nothing")


def test_rows_of_one_class_are_said_to_show_little(classifier, tmp_path):
    frame, labels = mixed()
    same = (labels == "no") & (classifier.predict(frame) == "no")
    page = page_of(classifier, tmp_path, frame[same], labels[same])
    assert f"All {same.sum()} given rows get the same class, 'no'. They do not show" in page.text
    assert "AUC is not defined: all rows are of one class." in page.text
    assert "Rows that cannot flip" in page.text  # the model itself tells classes apart
    assert "no merit" not in page.text


def test_one_number_for_all_rows_is_said_first(tmp_path):
    frame, y = rows(200)
    strong = {"max_steps": 400, "reg_strength": [20.0, 30.0]}  # from the first step on
    model = PSiLONRegressor(**{**STRONG, **strong}).fit(frame, y)
    text = page_of(model, tmp_path, frame, y).text
    assert text.index("All 200 given rows get nearly the same") < text.index("proven limit of")
    assert "Worst row" not in text


def test_labels_that_do_not_fit_are_refused(classifier, tmp_path):
    frame, labels = mixed()
    with pytest.raises(
        ValueError, match=r"classes of the model: 'no', 'yes'.*it holds 'Yes', 'No'"
    ):
        classifier.report(tmp_path / "card", frame, np.char.capitalize(labels))
    with pytest.raises(ValueError, match=r"must not be missing.*row 0"):
        classifier.report(tmp_path / "card", frame, [None, *labels[1:]])
