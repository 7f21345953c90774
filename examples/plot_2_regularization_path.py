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
# Each point is a snapshot: a design of networks at some strength, trained on five folds. Further
# down is more accurate, further left proves more. The diamonds are averages of snapshots, as the
# three selections choose them.

TradeOffDisplay.from_estimator(model)

# %%
# Another choice needs no second training.

for selection in ("accurate", "balanced", "provable"):
    other = model.with_selection(selection)
    print(
        f"{selection}: held-out R2 {other.held_out_score_:.3f}, bound {other.lipschitz_bound_:.0f}"
    )

# %%
# The same snapshots over the strength. A stronger penalty gives a smaller bound; up to a point it
# also gives a smaller loss.

RegularizationPathDisplay.from_estimator(model)

# %%
# The training of the heaviest design: the strength begins to rise after two fifths of the steps.

TrainingCurvesDisplay.from_estimator(model)
