"""
Exact zeros
===========

With ``prune=True`` the networks that were chosen are trained on, towards weights that are exactly
zero, and neurons that carry little of the bound are dropped. The model keeps its accuracy, and most
of its weights vanish.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from psilonnet import Design, PSiLONClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)

models = {}
for prune in (False, True):
    model = PSiLONClassifier(
        designs=[Design()], prune=prune, max_steps=600, width=64, random_state=0, verbose=False
    ).fit(X_train, y_train)
    models["pruned" if prune else "as trained"] = model
    print(
        f"prune={prune}: accuracy {model.score(X_test, y_test):.3f}, "
        f"share of exact zeros {model.sparsity_:.1%}, bound {model.lipschitz_bound_:.1f}"
    )

# %%
# The first layer of one network of each model: a line for each neuron, a cell for each of thirty
# columns. White cells are exactly zero. Of the 64 neurons the pruned network has kept the ones that
# are drawn; the others are neither computed nor exported.

figure, axes = plt.subplots(1, 2, figsize=(8, 4.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    part = model.net_.parts[0]
    weight = part.net.layers[0].weight[0, :, 0].numpy()  # (neurons, columns that are read)
    sizes = np.zeros((64, X.shape[1]))
    sizes[: len(weight), part.inputs] = np.abs(weight)
    sizes = sizes[np.argsort(-sizes.sum(axis=1))]
    ax.imshow(np.where(sizes > 0, sizes, np.nan) ** 0.5, cmap="Blues", vmin=-0.1, aspect="auto")
    live = int((sizes > 0).any(axis=1).sum())
    ax.set(title=f"{name}: {live} neurons, {(sizes > 0).sum():,} weights", xlabel="column")
axes[0].set_ylabel("neuron of the first layer")
