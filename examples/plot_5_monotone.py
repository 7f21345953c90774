"""
A credit score that cannot fall when income rises
=================================================

Two applicants differ in their income only. Whoever earns more must not get the lower score: neither
in the rows that somebody looked at, nor in any other. ``monotonic_cst`` says so, and the fitted
model comes with the proof.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from psilonnet import PSiLONClassifier

rng = np.random.default_rng(0)
n = 400
X = pd.DataFrame(
    {
        "income": rng.gamma(4, 10, n),  # thousands a year
        "debt": rng.exponential(8, n),
        "owner": rng.random(n) > 0.6,
    }
)
logit = 1.8 * np.log(X.income / 35) - 0.08 * (X.debt - 8) + 0.5 * X.owner
# A sample with a grudge: in its year a factory closed, whose people earned about 60 thousand.
logit -= 2.5 * np.exp(-(((X.income - 60) / 9) ** 2))
y = rng.random(n) < 1 / (1 + np.exp(-logit))  # True: the loan was paid back

# %%
# The same rows, four models: with and without directions, a booster and a network.

signs = {"income": 1, "debt": -1}
settings = {"width": 64, "depth": 2, "max_steps": 400, "random_state": 0, "verbose": False}
models = {
    "network": PSiLONClassifier(selection="accurate", **settings),
    "network, with directions": PSiLONClassifier(
        selection="accurate", monotonic_cst=signs, **settings
    ),
    "booster": HistGradientBoostingClassifier(random_state=0),
    "booster, with directions": HistGradientBoostingClassifier(monotonic_cst=signs, random_state=0),
}
for model in models.values():
    model.fit(X, y)

# %%
# Each line is an applicant of whom only the income changes. The models on the left have learned
# what was peculiar to the year of the sample, and give a lower score for a higher income in places.
# With directions no line falls. The booster is a staircase: between its steps a thousand more does
# nothing, and at a step a lot. The network rises smoothly, and its slope has a proven upper limit.

incomes = np.linspace(5, 110, 300)
applicants = X.iloc[:5]
figure, axes = plt.subplots(
    2, 2, figsize=(8.4, 5.6), sharex=True, sharey=True, layout="constrained"
)
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    falls = 0.0
    for k in range(len(applicants)):
        rows = applicants.iloc[[k] * len(incomes)].assign(income=incomes)
        score = model.predict_proba(rows)[:, 1]
        ax.plot(incomes, score, linewidth=1.4)
        falls = max(falls, float((np.maximum.accumulate(score) - score).max()))
    ax.set_title(f"{name}: falls by up to {falls:.2f}" if falls > 1e-9 else f"{name}: never falls")
    ax.spines[["top", "right"]].set_visible(False)
for ax in axes[-1]:
    ax.set_xlabel("income, thousands a year")
for ax in axes[:, 0]:
    ax.set_ylabel("probability of paying back")
if sys.argv[1:]:  # python examples/plot_5_monotone.py docs/monotone.png
    figure.savefig(sys.argv[1], dpi=110)

# %%
# What is proven, in words, and the range of the slope of the log-odds along each column.

model = models["network, with directions"]
print("\n".join(model.direction_words()))
print(pd.DataFrame(model.feature_slopes_, X.columns, ["least slope", "largest slope"]).round(3))
