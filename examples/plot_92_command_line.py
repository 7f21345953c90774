"""
From a terminal
===============

The commands read CSV and Parquet files and write them. This page types three of them and draws what
they write. ``psilonnet --help`` lists all.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
from sklearn.datasets import load_diabetes

folder = Path(tempfile.mkdtemp())
table = pl.from_pandas(load_diabetes(as_frame=True, scaled=False).frame).with_row_index("id")
table[:350].write_csv(folder / "known.csv")
table[350:390].drop("target").write_csv(folder / "new.csv")


def psilonnet(command):
    """Type a command in that folder, and show what it says."""
    words = [sys.executable, "-m", "psilonnet", *command.split()]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    print(f"$ psilonnet {command}\n{done.stdout}")


psilonnet(
    "fit known.csv --target target --task regression --drop id --max-steps 200 --out m.psilon"
)
psilonnet("predict m.psilon new.csv --keep id --out predicted.csv")
psilonnet("certify m.psilon new.csv --delta bmi=0.5 --delta bp=2 --method local --out proven.csv")

# %%
# Forty new rows in the order of their predictions, and the range that each provably keeps.

print(pl.read_csv(folder / "predicted.csv").head(3))
proven = pl.read_csv(folder / "proven.csv").sort("prediction")
figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
axis.vlines(range(40), proven["low"], proven["high"], color="#7fb7d4", linewidth=5)
axis.plot(range(40), proven["prediction"], "o", color="#1d2733", markersize=3)
axis.set(xlabel="row, in the order of the predictions", ylabel="predicted progression")
axis.spines[["top", "right"]].set_visible(False)
