"""
A model for each group
======================

One table, twelve stores, a model for each of them. Groups of one shape are trained side by side as
one program, and the index says what each model is worth.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from psilonnet import Design, PSiLONRegressor
from psilonnet.scale import fit_many, predict_many

rng = np.random.default_rng(0)
stores = [f"store {k:02d}" for k in range(12)]
store = rng.choice(stores, 1500)
area = rng.normal(100, 20, 1500)
slope = np.linspace(0.5, 3, 12)[[stores.index(name) for name in store]]
price = slope * area + rng.normal(0, 5, 1500)
table = pl.DataFrame({"store": store, "area": area, "price": price})

model = PSiLONRegressor(designs=[Design()], width=16, depth=2, max_steps=150, random_state=0)
with tempfile.TemporaryDirectory() as folder:
    index = pl.read_parquet(
        fit_many(table, by="store", target="price", estimator=model, out=folder, progress=False)
    )
    new = pl.DataFrame({"store": stores * 2, "area": [80.0] * 12 + [120.0] * 12})
    low, high = predict_many(new, by="store", models=folder).reshape(2, 12)
print(index.select("group", "rows", "score", "bound").sort("group").head(4))

# %%
# Each model has found the slope of its own store: the line joins its predictions for 80 and for 120
# square metres. Grey points are the rows.

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.scatter(area, price, s=3, color="0.8")
colors = plt.get_cmap("viridis")(np.linspace(0, 0.9, 12))
for ends, color in zip(zip(low, high, strict=True), colors, strict=True):
    axis.plot([80, 120], ends, color=color, linewidth=2)
axis.set(xlabel="area", ylabel="price", xlim=(40, 160))
axis.spines[["top", "right"]].set_visible(False)
