"""
Would an error of measurement flip the decision?
================================================

A diagnosis from thirty measured numbers. Each measurement has an error. The certificate tells, row
by row, how large an error of all of them together can be before the decision could change at all.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from psilonnet import PSiLONClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = PSiLONClassifier(width=64, depth=2, max_steps=1000, random_state=0, verbose=False)
model.fit(X_train, y_train)
right = model.predict(X_test) == y_test
print(f"accuracy {right.mean():.3f}")

# %%
# The share of test rows that are classified rightly, and provably stay so.

figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
errors = np.linspace(0, 1, 101)
for method, colour in (("global", "#8a8a8a"), ("local", "#2a6f97")):
    radius = model.certify(X_test, method=method)
    shares = [(right & (radius >= error)).mean() for error in errors]
    axis.plot(errors, shares, color=colour, label=f"proven, {method}")
axis.set(
    xlabel="error of every measurement, in standard deviations", ylabel="share of rows", ylim=(0, 1)
)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)

# %%
# For one patient, in the units of the table: the radius may be off by 0.5, the texture by 1.

stays = model.certify(X_test, delta={"mean radius": 0.5, "mean texture": 1.0}, method="local")
print(f"{stays.sum()} of {len(stays)} decisions cannot be flipped by such an error")
