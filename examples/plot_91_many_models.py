"""
A model for each group
======================

One table, twelve stores, a model for each of them. Groups of similar size are trained side by side
as one program, and the index says what each model is worth.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from psilonnet import Design, PSiLONRegressor
from psilonnet.scale import fit_many, predict_many

rng = np.random.default_rng(0)
stores = [f"store {k:02d}" for k in range(12)]
slopes = np.linspace(0.5, 3, 12)  # what a square metre costs, by store
store = rng.integers(0, 12, 1500)
area = rng.normal(100, 20, 1500)
price = slopes[store] * area + rng.normal(0, 5, 1500)
table = pl.DataFrame({"store": [stores[k] for k in store], "area": area, "price": price})

model = PSiLONRegressor(designs=[Design()], width=16, depth=2, max_steps=400, random_state=0)
areas = np.linspace(60, 140, 9)
new = pl.DataFrame({"store": np.repeat(stores, 9), "area": np.tile(areas, 12)})
with tempfile.TemporaryDirectory() as folder:
    index = pl.read_parquet(
        fit_many(table, by="store", target="price", estimator=model, out=folder, progress=False)
    )
    predicted = predict_many(new, by="store", models=folder).reshape(12, 9)
print(index.select("group", "rows", "score", "bound").sort("group").head(4))

# %%
# Each model has found how the price of its own store grows. Grey points are the rows, lines the
# predictions of the twelve models, and dotted lines the truth. The models are flatter than it is at
# both ends, where rows are few: a small bound was preferred to a steep guess.

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.scatter(area, price, s=3, color="0.8")
colors = plt.get_cmap("viridis")(np.linspace(0, 0.8, 12))
for line, slope, color, name in zip(predicted, slopes, colors, stores, strict=True):
    axis.plot(areas, line, color=color, linewidth=2)
    axis.plot(areas, slope * areas, color="0.2", linewidth=0.8, linestyle=":")
    if name in (stores[0], stores[-1]):
        axis.text(141, line[-1], name, color=color, va="center", fontsize=9)
axis.set(xlabel="area, square metres", ylabel="price", xlim=(55, 158), ylim=(0, 440))
axis.spines[["top", "right"]].set_visible(False)
