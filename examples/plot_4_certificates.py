"""
Would an error of measurement flip the decision?
================================================

A diagnosis is made from thirty measured numbers, and each measurement has an error. The certificate
tells for each patient how large the errors of all of them together may be without any chance that
they change the diagnosis.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.plot import CertifiedRadiusDisplay, RobustnessDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = PSiLONClassifier(width=64, depth=2, max_steps=500, random_state=0, verbose=False)
model.fit(X_train, y_train)
right = model.predict(X_test) == y_test
print(f"accuracy {right.mean():.3f}")

# %%
# Left: the blue line is the share of patients for whom it is proven that no error of this size
# changes the class. For those above the orange line a row was found, within this error, that gets
# the other class. For those between the lines it is not known; the better the proof and the search,
# the narrower the gap. Right: a predicted number has no class that could flip. It has a range that
# holds it whatever the errors are, here for one patient of another table.

numbers, progress = load_diabetes(return_X_y=True, as_frame=True)
regressor = PSiLONRegressor(width=64, depth=2, max_steps=500, random_state=0, verbose=False)
regressor.fit(numbers[1:], progress[1:])
patient, sizes = numbers[:1], np.linspace(0, 0.5, 11)
ranges = [regressor.output_range(patient, size) for size in sizes]
low, high = np.array(ranges)[..., 0].T

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained")
RobustnessDisplay.from_estimator(model, X_test, y_test, ax=left)
right.fill_between(sizes, low, high, alpha=0.2, linewidth=0, label="proven range")
right.axhline(regressor.predict(patient)[0], linewidth=1.5, label="prediction")
right.set(xlabel=left.get_xlabel(), ylabel="progress of the disease", xlim=(0, 0.5))
right.legend(frameon=False, loc="upper left")
right.spines[["top", "right"]].set_visible(False)
if sys.argv[1:]:  # python examples/plot_4_certificates.py docs/certificates.png
    figure.savefig(sys.argv[1], dpi=110)

# %%
# A counterexample can be looked at: it is a row of the same table, moved by no more than was asked.

rows, moved = model.counterexample(X_test, 0.3)
print(f"{len(rows)} of {len(X_test)} decisions flip; the first one moves to")
print(moved.iloc[0].round(3).head())

# %%
# The share of test rows that are classified rightly and provably stay so, over the size of the
# move. The global method uses one bound for all rows. The local one looks at the neighbourhood of
# each row and proves more.

display = CertifiedRadiusDisplay.from_estimator(model, X_test, y_test)
CertifiedRadiusDisplay.from_estimator(model, X_test, y_test, method="local", ax=display.ax_)

# %%
# The same training, from which networks were chosen in two ways: for the lowest loss alone, and
# with much weight on the proof. More can be proven about the second model.

careful, accurate = model.with_selection("provable"), model.with_selection("accurate")
for chosen in (accurate, careful):
    right = f"accuracy {chosen.score(X_test, y_test):.3f}"
    print(f"{chosen.selection}: {right}, bound {chosen.lipschitz_bound_:.0f}")
display = CertifiedRadiusDisplay.from_estimator(accurate, X_test, y_test, name="accurate")
CertifiedRadiusDisplay.from_estimator(careful, X_test, y_test, name="provable", ax=display.ax_)

# %%
# For each patient, in the units of the table: the radius may be off by 0.5, the texture by 1.

stays = careful.is_robust(X_test, {"mean radius": 0.5, "mean texture": 1.0}, method="local")
print(f"{stays.sum()} of {len(stays)} decisions cannot be flipped by such an error")
