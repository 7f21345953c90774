"""
Exact zeros
===========

With ``prune=True`` the networks that were chosen are trained on, towards a projection that has
exact zeros. The model keeps its accuracy and most of its weights vanish.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from psilonnet import PSiLONClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)

for prune in (False, True):
    model = PSiLONClassifier(
        prune=prune, reg_strength=0.01, max_steps=600, width=64, random_state=0, verbose=False
    ).fit(X_train, y_train)
    print(
        f"prune={prune}: accuracy {model.score(X_test, y_test):.3f}, "
        f"share of exact zeros {model.sparsity_:.1%}, bound {model.lipschitz_bound_:.1f}"
    )
