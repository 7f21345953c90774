"""
What an error of measurement can do
===================================

A regressor predicts how a disease goes on from ten measurements. Suppose the body mass index is off
by up to 0.5 and the blood pressure by up to 2. How far can each prediction move? The answer is a
proof, and not a simulation: no error within these limits can bring the prediction out of its range.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from psilonnet import PSiLONRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = PSiLONRegressor(random_state=0, verbose=False).fit(X[:350], y[:350])
patients = X.loc[[350, 353, 351]]  # three of the rows that the model has not seen
low, high = model.output_range(patients, {"bmi": 0.5, "bp": 2})
for ends in zip(low, model.predict(patients), high, strict=True):
    print("between {0:.1f} and {2:.1f}, predicted {1:.1f}".format(*ends))

# %%
# The larger the error, the wider the band that is proven to hold the prediction. Say that people
# are treated from a prediction of 140 on (a limit that we made up). As long as a band stays on one
# side of the limit, no error of that size can change the decision: so it is for the upper and lower
# patient over the whole picture. The band of the middle one reaches the limit at the dot. Beyond it
# the decision could change; that it does is not said.

LIMIT = 140
times = np.linspace(0, 6, 25)  # of 0.5 and 2
ranges = [model.output_range(patients, {"bmi": 0.5 * t, "bp": 2 * t}) for t in times]
lows, highs = (np.array([ends[k] for ends in ranges]) for k in (0, 1))

plt.rcParams["font.size"] = 12
figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
ax.axhline(LIMIT, color="0.35", linewidth=1, linestyle="--")
ax.text(0.05, LIMIT - 14, f"treated from {LIMIT} on", color="0.35")
for k, color in enumerate(["#2a6f97", "#d1792f", "#8f5aa8"]):
    ax.fill_between(times, lows[:, k], highs[:, k], color=color, alpha=0.22, linewidth=0)
    ax.plot(times, np.full(len(times), model.predict(patients)[k]), color=color, linewidth=2)
    could_flip = (lows[:, k] < LIMIT) & (highs[:, k] >= LIMIT)
    if could_flip.any():
        ax.plot(times[could_flip.argmax()], LIMIT, "o", color=color, markersize=8)
        words = "beyond the dot the decision could change"
        ax.text(times[-1], LIMIT - 26, words, color=color, ha="right")
ax.set(
    xlim=(0, times[-1]),
    xticks=range(7),
    xticklabels=["none", *(f"bmi ±{0.5 * t:g}\nbp ±{2 * t:g}" for t in range(1, 7))],
    ylabel="predicted progression",
    xlabel="largest error of body mass index (bmi) and blood pressure (bp)",
    title="No error of this size can lead a prediction out of its band",
)
ax.spines[["top", "right"]].set_visible(False)

if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=150)
