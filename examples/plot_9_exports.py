"""
One model, three files
======================

A fitted model is written as a file of numbers, as a folder that needs NumPy alone, and, pruned, as
a much smaller folder. All of them say the same, to about fifteen digits.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import psilonnet
from psilonnet import PSiLONRegressor
from psilonnet.deploy import Predictor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
settings = {"width": 64, "max_steps": 300, "reg_strength": 0.01, "random_state": 0}
model = PSiLONRegressor(**settings, verbose=False).fit(X[:350], y[:350])
pruned = PSiLONRegressor(**settings, prune=True, verbose=False).fit(X[:350], y[:350])


def size(path):
    """Return the kilobytes of a file, or of all files in a folder."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files) / 1024


# %%
# ``save`` is for those who have the library, ``export_numpy`` for those who have NumPy.

kilobytes = {}
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    model.save(folder / "model.psilon")
    model.export_numpy(folder / "numpy")
    pruned.export_numpy(folder / "pruned")
    again = psilonnet.load(folder / "model.psilon")
    shipped = Predictor(folder / "numpy")
    small = Predictor(folder / "pruned")
    kilobytes["save"] = size(folder / "model.psilon")
    kilobytes["export_numpy"] = size(folder / "numpy")
    kilobytes["pruned,\nexport_numpy"] = size(folder / "pruned")
    code = size(folder / "numpy" / "predictor.py")
rows = X[350:]
assert (again.predict(rows) == model.predict(rows)).all()
print(f"largest difference: {np.abs(shipped.predict(rows) - model.predict(rows)).max():.1e}")
print(f"predictor.py: {code:.0f} kB")
print(f"R2 {model.score(rows, y[350:]):.3f}, pruned {pruned.score(rows, y[350:]):.3f}")

# %%
# Of each folder, ``predictor.py`` is some 40 kB of plain Python, the same for every model.

figure, axis = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
bars = axis.barh(list(kilobytes), list(kilobytes.values()), color="#2a6f97")
axis.bar_label(bars, fmt="%.0f kB", padding=4)
axis.invert_yaxis()
axis.margins(x=0.12)
axis.set_xlabel("size")
axis.spines[["top", "right"]].set_visible(False)
