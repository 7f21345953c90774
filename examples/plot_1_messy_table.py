"""
A messy table
=============

Numbers with missing values, words, booleans and dates go in as they are. The model chooses how
strongly it is regularised, and says in the units of the table how far its prediction can move.
"""

import numpy as np
import pandas as pd

from psilonnet import PSiLONClassifier
from psilonnet.plot import FeatureSensitivityDisplay

rng = np.random.default_rng(0)
n = 600
table = pd.DataFrame(
    {
        "age": rng.normal(45, 14, n).round(),
        "income": np.exp(rng.normal(10, 0.6, n)).round(),
        "city": rng.choice(["Lima", "Oslo", "Rome", "Pune"], n),
        "member": rng.random(n) > 0.4,
        "joined": pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 700, n), "D"),
    }
)
score = (table.age - 45) / 14 + (table.city == "Oslo") + (np.log(table.income) - 10) * table.member
bought = np.where(score + rng.normal(0, 0.5, n) > 0.4, "yes", "no")
table.loc[rng.random(n) < 0.1, "income"] = np.nan
table.loc[rng.random(n) < 0.05, "city"] = None
table.head()

# %%
# Fit on 450 rows, score on the rest.

model = PSiLONClassifier(max_steps=600, width=64, random_state=0, verbose=False)
model.fit(table[:450], bought[:450])
print(f"accuracy {model.score(table[450:], bought[450:]):.3f}")
print(model.summary())

# %%
# The length of a bar is how far the log-odds can move at most if one column alone moves by a
# standard deviation, or to another level. This is proven for every row, seen or not.

FeatureSensitivityDisplay.from_estimator(model)
