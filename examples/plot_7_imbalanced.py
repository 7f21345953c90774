"""
Few of a class: weights, thresholds and sets
============================================

One row of twenty is a fault (1), the others are fine (0). Three tools answer three questions:
weights in training, a threshold for the decision, and sets of classes that admit doubt.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split

from psilonnet import PSiLONClassifier

X, y = make_classification(
    3000, 10, n_informative=5, weights=[0.95], class_sep=1.2, flip_y=0.01, random_state=3
)
X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, train_size=0.5, random_state=0, stratify=y)
X_calm, X_new, y_calm, y_new = train_test_split(X_rest, y_rest, random_state=0, stratify=y_rest)
settings = {"width": 48, "depth": 2, "max_steps": 400, "random_state": 0, "verbose": False}


def words(model):
    found = model.predict(X_new)
    recall = recall_score(y_new, found)
    balanced = balanced_accuracy_score(y_new, found)
    return f"faults found {recall:.0%}, balanced accuracy {balanced:.2f}"


# %%
# As it comes, the model is right as often as it can be, and so it misses many faults.

plain = PSiLONClassifier(**settings).fit(X_fit, y_fit)
print(f"as it comes: {words(plain)}")

# %%
# With weights both classes count the same in training. The probabilities are then as if half of all
# rows were faults.

weighted = PSiLONClassifier(**settings, class_weight="balanced").fit(X_fit, y_fit)
print(f"weights:     {words(weighted)}")

# %%
# A threshold leaves the probabilities as they are and moves the decision. scikit-learn chooses it
# on rows that are held out from the model.

tuned = TunedThresholdClassifierCV(
    PSiLONClassifier(**settings), scoring="balanced_accuracy", cv=0.25, random_state=0
)
tuned.fit(X_fit, y_fit)
print(f"threshold:   {words(tuned)} (a fault from {tuned.best_threshold_:.2f} on)")

# %%
# A set says "a fault", "fine", or "either", and holds the truth with a probability of at least the
# coverage. That is over all rows: of the rare class more may be missed, as the second number shows.
# With delta a set holds whatever it could be if all numbers were off by 0.05 standard deviations.

plain.conformalize(X_calm, y_calm)
shares = {}
for coverage in (0.97, 0.98, 0.99):
    for delta in (None, 0.05):
        sets = plain.predict_set(X_new, coverage, delta=delta)
        holds, either = sets[np.arange(len(sets)), y_new], sets.all(axis=1)
        shares[coverage, delta] = either.mean()
        print(
            f"{coverage:.0%}{' with delta' if delta else '':11s}: holds {holds.mean():.1%}, "
            f"of faults {holds[y_new == 1].mean():.0%}; either: {either.mean():.1%}"
        )

# %%
# The bars are the share of rows for which the set holds both classes: how often the model admits
# doubt. The more coverage is asked for, the more often; with delta a little more often still.

fig, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
labels = [f"{c:.0%}{' with delta' if d else ''}" for c, d in shares]
ax.barh(labels, list(shares.values()), color=["#3182bd", "#9ecae1"] * 3)
ax.invert_yaxis()
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set(xlabel="rows that may be either", ylabel="coverage")
ax.spines[["top", "right"]].set_visible(False)
