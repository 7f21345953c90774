"""
The strength of the regularisation, and the choice
==================================================

While a network is trained its regularisation rises, and snapshots are kept on the way. Held-out
rows choose which of them are averaged.
"""

from sklearn.datasets import load_diabetes

from psilonnet import PSiLONRegressor
from psilonnet.plot import RegularizationPathDisplay, TradeOffDisplay, TrainingCurvesDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = PSiLONRegressor(max_steps=600, width=64, random_state=0, verbose=False).fit(X, y)

# %%
# Each point is a snapshot: the networks of one design as they were at some strength. Points further
# down are more accurate, points further left prove more. Rings mark the snapshots that the model
# averages, with their weights; the diamonds are the averages that the three selections would
# choose. (The bound is given here in the units of training, in which the target is scaled.)

TradeOffDisplay.from_estimator(model)

# %%
# Another choice needs no second training. Here the bound is in the units of the target.

for selection in ("accurate", "balanced", "provable"):
    other = model.with_selection(selection)
    print(
        f"{selection}: held-out R2 {other.held_out_score_:.3f}, bound {other.lipschitz_bound_:.0f}"
    )

# %%
# The same snapshots over the strength of the regularisation, with the loss on top and the bound
# below it. For rows normalised in L2 (orange) the bound falls as the strength rises. For
# rows normalised in L1 (blue) it is small from the beginning. At the bottom is near-sparsity: the
# larger it is, the fewer weights carry most of a row.

RegularizationPathDisplay.from_estimator(model)

# %%
# The training of the design with the largest weight in the model. The strength begins to rise after
# two fifths of the steps. While it is weak the networks fit their own rows better and better, and
# the bound grows. As it rises the bound falls, and the loss on held-out rows with it.

TrainingCurvesDisplay.from_estimator(model)
