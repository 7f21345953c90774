"""The regressor: one or several numbers, quantiles, means of counts, or a loss of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin

from psilonnet.estimators.base import BasePSiLON
from psilonnet.estimators.coverage import CoveringIntervals
from psilonnet.estimators.measures import number_measures
from psilonnet.estimators.number_targets import PINBALL, CountTarget, NumberTarget, QuantileTarget
from psilonnet.estimators.objectives import (
    check_counts,
    check_objective,
    make_loss,
    make_number_target,
)
from psilonnet.estimators.quantities import check_quantities

if TYPE_CHECKING:
    from psilonnet.estimators.measures import NumberMeasures
    from psilonnet.training import Loss

Array = np.ndarray[Any, Any]


class PSiLONRegressor(RegressorMixin, CoveringIntervals, BasePSiLON):  # type: ignore[misc]
    """A regressor for small tables whose predictions come with a proof.

    It is a weighted average of small networks, regularised by the 1-path-norm, which bounds how far
    their outputs can move. Held-out rows choose which networks, and how strongly regularised ones.

    Parameters
    ----------
    designs : "auto" or list of Design, default="auto"
        What networks are made of. "auto" is rows of weights normalised in L1 on clipped columns,
        and in L1 and in L2 on columns in 16 pieces; all are trained, and the held-out rows choose.
    width : int or "auto", default="auto"
        Neurons in a hidden layer. "auto" is 128, and 64 for tables of up to 256 rows.
    depth : int, default=3
        The number of hidden layers.
    reg_strength : "auto", float or sequence of float, default="auto"
        The strengths to choose from. While a network is trained its strength rises, and a snapshot
        is taken at each of them; "auto" is eleven from 5e-5 to 0.1,
        all of them larger for tables of fewer than 2,000 rows.
    selection : {"balanced", "accurate", "provable"} or float, default="balanced"
        What is minimised on the held-out rows when snapshots are averaged: ``log(loss) + w
        log(1 + bound)`` with w = 0.01, 0 or 0.03, or a weight w of your own. A larger one gives
        smaller bounds, and so proofs that reach farther, for some loss; see
        :meth:`with_selection`.
    cv : int, splitter, iterable of splits or None, default=None
        Which rows are held out. Each network is trained on the rows of one split, and the model is
        the average over the splits; None is five folds. A splitter and splits are as in
        scikit-learn, and their positions are those of the given rows.
    prune : bool, default=False
        Train on towards exact zeros among the weights. How many is chosen on held-out rows: as many
        as possible without a loss that is higher by more than 2 % and one standard error. Only
        designs with L1 directions are trained then.
    loss : {"squared_error", "absolute_error", "huber", "quantile", "poisson"} or callable, \
            default="squared_error"
        What is minimised, in quartile deviations of the target; Huber's is linear beyond 1.
        "quantile" predicts quantiles, "poisson" the mean of counts through its logarithm. A
        callable ``loss(outputs, targets)`` returns one number per row, at least 0.
    quantile : float, sequence of float or None, default=None
        Between 0 and 1, for ``loss="quantile"``. Several, in increasing order, are of one network,
        and are sorted after averaging; predictions then have shape (rows, quantiles).
    monotonic_cst : dict, array-like of shape (columns,) or None, default=None
        1 for columns along which the prediction must not fall, -1 where it must not rise, 0 or left
        out where it is free; by name or by place, as in scikit-learn. One target only. Columns of
        numbers, booleans, dates and durations can have a direction; a missing cell is not compared
        with numbers. It is proven, not checked on rows; see ``feature_slopes_``.
    max_steps : int or "auto", default="auto"
        Steps of a training. "auto" is 600 for tables of up to one batch; then they grow with the
        root of the rows, 1,500 at 2,000 rows and at most 4,500, and the part before the strength
        rises goes on while the held-out loss still falls.
    batch_size : int, default=256
        Rows of one step.
    learning_rate : float, default=4e-3
        The largest one; it falls to a quarter while the strength rises.
    device : str, default="cpu"
        Where networks are trained, such as "cuda"; predictions are computed on the CPU.
    random_state : int, RandomState or None, default=None
        Of splits, starts and batches; an int gives the same model every time.
    verbose : bool, 2 or "auto", default="auto"
        Show one progress bar for the fit; "auto" shows it in terminals and notebooks, 2 prints
        lines for logs instead.

    Attributes
    ----------
    encoder_ : TableEncoder
        How the columns of the table are scaled; :class:`psilonnet.certify.Certifier` takes it.
    designs_ : list of Design
    reg_strength_ : float
        The strength of the heaviest of the networks.
    members_ : dict of lists
        What is averaged: ``weight``, ``design`` (its number in ``designs_``) and ``reg_strength``,
        the heaviest first; each stands for one network per fold.
    path_ : dict of lists, or None if nothing was held out
        For each snapshot: ``design``, ``reg_strength``, held-out loss, bound, near-sparsity,
        sparsity, steps trained, and its weight in the model.
    history_ : dict of lists
        ``step``, ``train_loss``, ``valid_loss`` and ``penalty`` (the bound) along the training of
        the heaviest design, averaged over the folds.
    held_out_score_ : float, or None if nothing was held out
        The R^2 of the chosen networks on rows they were not trained on, one network per
        fold. They were chosen on these same rows, and the model averages all folds.
    measures_ : dict
        ``training`` and ``held_out`` (None if nothing was held out): R^2, and the standard
        deviations of targets and predictions, on the rows in training, and on the others as above.
    coverage_basis_ : str, or None if nothing was held out
        What rows the coverage of intervals is measured on: "held-out rows",
        "conformalized rows" or "conformalized groups".
    lipschitz_bound_ : float
        How far the prediction can move, in units of the target, if every encoded column moves by
        at most 1 (one standard deviation). Of several targets the sum, of several quantiles the
        one that can move most; for ``loss="poisson"`` how far the logarithm of the mean can.
    feature_sensitivity_, feature_sensitivity_raw_ : ndarray of shape (columns,)
        How far it can move with each column alone, for one standard deviation, or for one unit of
        the table; for categories both are for a change of level.
    feature_slopes_ : ndarray of shape (columns, 2), or (outputs, columns, 2)
        The least and the largest slope that the output can have along each column, per unit of the
        table (for a boolean the whole change from False to True; NaN for words). With a direction
        one of the two is 0.
    monotonic_cst_ : ndarray of shape (columns,)
        The direction of each column: -1, 0 or 1.
    near_sparsity_, sparsity_ : float
        The share of the weights that hardly count beside the others of their row (the
        near-sparsity of the paper), and the share that is exactly 0.
    n_iter_ : int
        Steps of training after which the heaviest of the networks was taken.
    n_rows_ : int
        Rows of weight above 0 that were given to fit.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PSiLONRegressor(width=32, depth=2, max_steps=200, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    _stratified = False

    def __init__(
        self,
        *,
        designs: Any = "auto",
        width: Any = "auto",
        depth: int = 3,
        reg_strength: Any = "auto",
        selection: Any = "balanced",
        cv: Any = None,
        prune: bool = False,
        loss: Any = "squared_error",
        quantile: Any = None,
        monotonic_cst: Any = None,
        max_steps: Any = "auto",
        batch_size: int = 256,
        learning_rate: float = 4e-3,
        device: str = "cpu",
        random_state: Any = None,
        verbose: Any = "auto",
    ) -> None:
        self.designs = designs
        self.width = width
        self.depth = depth
        self.reg_strength = reg_strength
        self.selection = selection
        self.cv = cv
        self.prune = prune
        self.loss = loss
        self.quantile = quantile
        self.monotonic_cst = monotonic_cst
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _loss(self) -> str | Loss:  # type: ignore[override]
        return make_loss(self.loss, self.quantile)

    def _fit_target(self, y: Any, weight: Array) -> Array:
        y = check_quantities(y)
        numbers: Array = y.reshape(len(y), -1)
        check_objective(self.loss, self.quantile, numbers, weight)
        self._one_target = y.ndim == 1 and np.ndim(self.quantile) == 0
        return numbers

    def _make_target(self, y: Array, weight: Array) -> NumberTarget:
        return make_number_target(self.loss, self.quantile, y, weight)

    def _several_outputs(self) -> tuple[str, str]:
        what = "quantile" if self.target_.is_sorted else "target"
        remedy = f"fit one model for each {what}, or leave it out"
        return f"{self.target_.outputs} {what}s", remedy

    def _output_name(self) -> str:
        return "the prediction"

    def _check_target(self, y: Any) -> Array:
        y = check_quantities(y)
        numbers: Array = y.reshape(len(y), -1)
        if numbers.shape[1] != self.target_.columns:
            raise ValueError(
                f"These rows must have the {self.target_.columns} targets of the training rows. "
                f"Got {numbers.shape[1]} instead."
            )
        if isinstance(self.target_, CountTarget):
            check_counts(numbers)
        return numbers

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions, as regressors of scikit-learn do for every loss.

        For several quantiles it is the mean D^2 of their pinball losses: the share of the loss that
        is saved in comparison with predicting that quantile of y for all rows
        (``sklearn.metrics.d2_pinball_score``).
        """
        target = getattr(self, "target_", None)
        if isinstance(target, QuantileTarget) and target.is_sorted:
            predicted, truth = self._outputs(X), self._check_target(y)
            return target.explained(truth, predicted, sample_weight).get(PINBALL, np.nan)
        return float(super().score(X, y, sample_weight))

    def predict(self, X: Any) -> Array:
        """Return the predictions, of the shape that y had in fit.

        Several quantiles have a column each.
        """
        predictions = self._outputs(X)
        return predictions[:, 0] if self._one_target else predictions

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = np.ndim(self.quantile) == 0
        tags.target_tags.positive_only = isinstance(self.loss, str) and self.loss == "poisson"
        return tags

    def _measure(self, outputs: Array, y: Array, weight: Array) -> NumberMeasures:
        return self._compare(self.target_.decode(outputs), self.target_.restore(y), weight)

    def _errors(self, outputs: Array, y: Array) -> Array:
        return np.asarray(
            self.target_.errors(self.target_.restore(y), self.target_.decode(outputs))
        )

    def _row_errors(self, X: Any, y: Any) -> Array:
        return np.asarray(self.target_.errors(self._check_target(y), self._outputs(X)))

    def _measure_rows(self, X: Any, y: Any) -> NumberMeasures:
        return self._compare(self._outputs(X), self._check_target(y))

    def _compare(self, predicted: Array, y: Array, weight: Array | None = None) -> NumberMeasures:
        target = self.target_
        levels = target.levels if isinstance(target, QuantileTarget) and target.is_sorted else ()
        shares = target.explained(y, predicted, weight)
        return number_measures(predicted, y, weight, shares, levels)

    def _output_words(self) -> str:
        target = self.target_
        if target.is_log:
            one = target.outputs == 1
            return f"the {'logarithm of the mean moves' if one else 'logarithms of means move'}"
        if target.is_sorted:
            return "each predicted quantile moves"
        return "the prediction moves" if self._one_target else "the predictions move in all"
