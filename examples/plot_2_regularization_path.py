"""
The strength of the regularisation
==================================

All strengths are trained side by side as one tensor program. The held-out rows choose.
"""

from sklearn.datasets import load_diabetes

from psilonnet import PSiLONRegressor
from psilonnet.plot import RegularizationPathDisplay, TrainingCurvesDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = PSiLONRegressor(max_steps=800, width=64, random_state=0, verbose=False).fit(X, y)

# %%
# A stronger penalty gives a smaller bound. Up to a point it also gives a smaller loss.

RegularizationPathDisplay.from_estimator(model)

# %%
# The training of the heaviest network: the bound grows as far as the data are worth it.

TrainingCurvesDisplay.from_estimator(model)
