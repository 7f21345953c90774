"""
Would an error of measurement flip the decision?
================================================

A diagnosis from thirty measured numbers. Each measurement has an error. The certificate tells, row
by row, how large an error of all of them together can be before the decision could change at all.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from psilonnet import PSiLONClassifier
from psilonnet.plot import CertifiedRadiusDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = PSiLONClassifier(width=64, depth=2, max_steps=500, random_state=0, verbose=False)
model.fit(X_train, y_train)
right = model.predict(X_test) == y_test
print(f"accuracy {right.mean():.3f}")

# %%
# The share of test rows that are classified rightly, and provably stay so. "Local" looks at the
# neighbourhood of each row.

display = CertifiedRadiusDisplay.from_estimator(model, X_test, y_test)
CertifiedRadiusDisplay.from_estimator(model, X_test, y_test, method="local", ax=display.ax_)

# %%
# The same training, chosen with more weight on the proof: hardly less accurate, and it proves more.

careful = model.with_selection("provable")
print(f"accuracy {careful.score(X_test, y_test):.3f}")
display = CertifiedRadiusDisplay.from_estimator(model, X_test, y_test, name="balanced")
CertifiedRadiusDisplay.from_estimator(careful, X_test, y_test, name="provable", ax=display.ax_)

# %%
# For each patient, in the units of the table: the radius may be off by 0.5, the texture by 1.

stays = careful.is_robust(X_test, {"mean radius": 0.5, "mean texture": 1.0}, method="local")
print(f"{stays.sum()} of {len(stays)} decisions cannot be flipped by such an error")
