import re

import numpy as np
from sklearn.metrics import roc_auc_score

from psilonnet import PSiLONClassifier
from psilonnet.report.confusion import MOST_CLASSES
from report.pages import FIXED, page_of, rows


def test_classes_that_are_missing_or_unknown_are_named(tmp_path):
    frame, y = rows(200)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    model = PSiLONClassifier(**FIXED).fit(frame, labels)
    new = np.where(labels == "low", "other", labels)
    text = page_of(model, tmp_path, frame, new).text
    assert "each class against the rest, over the 2 of 3 that have rows here" in text
    assert "Some rows are of classes that the model does not know, so there is no log loss" in text
    assert "low no rows 0 0 0" in text
    assert re.search(r"unknown to the model 0% \d+ \d+ \d+", text)
    whole = page_of(model, tmp_path, frame, labels).text
    expected = roc_auc_score(labels, model.predict_proba(frame), multi_class="ovr")
    assert f"{expected:.4f}" in whole
    assert "over all classes" in whole


def test_the_rarest_of_many_classes_are_put_together(tmp_path):
    frame, y = rows(300)
    labels = np.digitize(y, np.linspace(-2, 2, 29))
    model = PSiLONClassifier(**FIXED).fit(frame, labels)
    text = page_of(model, tmp_path, frame, labels).text
    head = re.search(r"Truth Right ((?:\d+ )+)others", text).group(1).split()
    assert len(head) == MOST_CLASSES
    assert head[-1] == str(len(model.classes_) - MOST_CLASSES + 1)
