"""The regressor: one or several numbers, quantiles, means of counts, or a loss of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import RegressorMixin

from psilonnet.estimators.base import BasePSiLON
from psilonnet.estimators.counterexamples import (
    range_goals,
    refuted_rows,
    safe_moves,
    verdicts,
)
from psilonnet.estimators.measures import number_measures
from psilonnet.estimators.objectives import (
    check_counts,
    check_objective,
    make_loss,
    make_number_target,
)
from psilonnet.estimators.quantities import check_quantities
from psilonnet.estimators.reading import as_table
from psilonnet.estimators.targets import PINBALL, CountTarget, NumberTarget, QuantileTarget

if TYPE_CHECKING:
    from psilonnet.estimators.counterexamples import Refuted
    from psilonnet.estimators.measures import NumberMeasures
    from psilonnet.training import Loss

Array = np.ndarray[Any, Any]


class PSiLONRegressor(RegressorMixin, BasePSiLON):  # type: ignore[misc]
    """A regressor for small tables whose predictions come with a proof.

    A neural network with L1-normalised weights, regularised by the 1-path-norm, which bounds how
    far its outputs can move. The strength of the regularisation is chosen on held-out rows.

    Parameters
    ----------
    designs : "auto" or list of Design, default="auto"
        What networks are made of. "auto" is rows of weights normalised in L1 and in L2, each with
        the columns as they are and in 8 pieces; all are trained, and the held-out rows choose.
    width, depth : int, default=128 and 3
        Neurons in a hidden layer, and the number of hidden layers.
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
    near_sparsity_, sparsity_ : float
    n_iter_ : int
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
        width: int = 128,
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

        Of several quantiles it is the mean D^2 of their pinball losses, each the share of the loss
        that is saved beside the quantile of y itself (``sklearn.metrics.d2_pinball_score``).
        """
        target = getattr(self, "target_", None)
        if isinstance(target, QuantileTarget) and target.is_sorted:
            predicted, truth = self._outputs(X), self._check_target(y)
            return target.explained(truth, predicted, sample_weight).get(PINBALL, np.nan)
        return float(super().score(X, y, sample_weight))

    def predict(self, X: Any) -> Array:
        """Return the predictions, of the shape that y had in fit; a column for each quantile."""
        predictions = self._outputs(X)
        return predictions[:, 0] if self._one_target else predictions

    def output_range(self, X: Any, delta: Any, *, method: str = "auto") -> tuple[Array, Array]:
        """Return a range that holds every prediction when the columns of a row move a little.

        It says where the prediction can go, not where the truth is. For ``loss="poisson"`` it is a
        range of means, and for several quantiles one of each.

        Parameters
        ----------
        X : table
        delta : float, array-like, dict from column name to amount, or Perturbation
            What may move: a number of standard deviations for every column of numbers (as the
            encoder scales it); an array, dict or Series in the columns' own units (days or a
            timedelta for times). "any" lets a category take any level. Columns left out stay as
            they are. A :class:`psilonnet.certify.Perturbation` can say more: shares of a cell,
            other amounts for each row.
        method : {"auto", "global", "local", "linear"}
            "global" holds everywhere and costs next to nothing; "local" looks at the neighbourhood
            of each row, and "linear" follows every neuron there: the tightest, and the slowest.
            Each begins with those before it. "auto" is all of them.

        Returns
        -------
        low, high : ndarray of the shape of the predictions
        """
        return self._shaped(*self._ranges(X, delta, method))

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, delta: Any = None, method: str = "auto"
    ) -> tuple[Array, Array]:
        """Return intervals that hold the true target of a new row, with a probability.

        An interval is the prediction plus and minus one error, the same for all rows. With several
        quantiles its width follows the row: it goes from one quantile less an error to another
        plus that error, for the pair that is nearest to the coverage (conformalized quantile
        regression); and for ``loss="poisson"`` the error is in roots of the mean, and no end is
        below 0.

        After :meth:`conformalize` an interval holds the truth with at least the asked probability,
        if the new row and the conformalized ones are exchangeable. Without it, the error is a
        quantile of those on rows held out in the fit, and the coverage is empirical: these errors
        are of one network for each pick, slightly larger than those of the average of five; and
        the same rows chose the average.
        After a fit with ``groups`` nothing is promised for rows of new groups, unless whole
        groups were conformalized.

        Parameters
        ----------
        X : table
        coverage : float, default=0.9
            Above 0 and below 1.
        delta : as for :meth:`output_range`, optional
            The cells of these rows may differ from the true ones by so much, in the worst way,
            while the conformalized or held-out rows are as they were measured. The interval holds
            the truth with the same probability: it goes from the least prediction in the box
            around the row, less the error, to the largest one plus the error, and the true row is
            in that box. Errors of measurement that the known rows share need no delta: they are
            in the errors of the model already.
        method : {"auto", "global", "local", "linear"}
            Of the certificate, where there is a delta: the best by default.

        Returns
        -------
        low, high : ndarray of shape (rows,) or (rows, targets)
            Of several targets each is covered by itself, and all together less often.
        """
        error = self._threshold(coverage)
        ends = (self._outputs(X),) * 2 if delta is None else self._ranges(X, delta, method)
        low, high = self.target_.interval(*ends, error, coverage)
        alone = self._one_target or self.target_.is_sorted
        return (low[:, 0], high[:, 0]) if alone else (low, high)

    def _ranges(self, X: Any, delta: Any, method: str) -> tuple[Array, Array]:
        """Return what holds all predictions in the boxes, both of shape (rows, targets)."""
        rows = self._read(X, reset=False)
        outputs, down, up = self._certifier.output_moves(rows, delta, method=method)
        limits: tuple[Array, Array] = self.target_.limits(outputs, down, up)
        return limits

    def _shaped(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return both of the shape that predictions have."""
        return (low[:, 0], high[:, 0]) if self._one_target else (low, high)

    def verdict(
        self, X: Any, delta: Any, *, low: Any = -np.inf, high: Any = np.inf, budget: int = 200
    ) -> Array:
        """Return for each row whether its prediction is proven to stay in a range.

        What linear bounds do not prove is looked for by an attack, as in :meth:`counterexample`.
        What is neither is divided into cases, by halves of columns, levels of categories and signs
        of single neurons, and each case is proven by itself.

        Parameters
        ----------
        X : table
        delta : as for :meth:`output_range`
        low, high : float or array-like of the shape of the predictions
            The range that predictions must not leave, as for :meth:`counterexample`.
        budget : int, default=200
            How many cases are looked at for each row, output and end of the range. More decide more
            rows, and take longer; where few columns move, enough of them decide nearly every row.

        Returns
        -------
        ndarray of str of shape (rows,)
            "proven" (no move within delta takes the prediction below low or above high), "refuted"
            or "open".
        """
        columns, outputs, low, high = self._within(X, low, high)
        ends = [end.reshape(outputs.shape) for end in (low, high)]
        enough = safe_moves(self.target_, outputs, *ends)
        least, largest = self.output_range(X, delta)
        return verdicts(
            ~(_leaves(least, low, high) | _leaves(largest, low, high)),
            self.counterexample(X, delta, low=low, high=high).rows,
            lambda left: self._certifier.moves_less_by_cases(
                columns, delta, left, enough, budget=budget
            ),
        )

    def counterexample(
        self, X: Any, delta: Any, *, low: Any = -np.inf, high: Any = np.inf
    ) -> Refuted:
        """Return rows moved within delta where the prediction is below low or above high.

        They are looked for along the gradient of the prediction, in corners, and from level to
        level. A row that is not returned is not proven to stay in the range: ask ``output_range``.

        Parameters
        ----------
        X : table
        delta : float, array-like, dict from column name to amount, or Perturbation
            As in ``output_range``. Each returned cell is within it of the given one; what is
            missing stays missing, and times move by whole milliseconds.
        low, high : float or array-like of the shape of the predictions
            The range that predictions must not leave, such as ``model.predict(X) - 5`` and
            ``model.predict(X) + 5``: a number has no other class to flip to.

        Returns
        -------
        rows : ndarray of int
            Positions of the refuted rows in X.
        table : table of the type of X
            These rows, moved. Numbers that move are float64, and a category may hold "a level not
            seen in training".
        """
        columns, outputs, low, high = self._within(X, low, high)
        ends = [self.target_.invert(end.reshape(outputs.shape)) for end in (low, high)]
        return refuted_rows(
            self,
            as_table(X, type(self).__name__),
            columns,
            delta,
            range_goals(outputs, *ends),
            lambda found, rows: _leaves(found, low[rows], high[rows]),
        )

    def _within(self, X: Any, low: Any, high: Any) -> tuple[Any, torch.Tensor, Array, Array]:
        """Return rows and their outputs, and the ends of a range for each prediction."""
        columns = self._read(X, reset=False)
        outputs = self.net_(torch.from_numpy(self.encoder_.encode(columns)))
        shape = outputs.shape[:1] if self._one_target else outputs.shape
        low, high = (_limit(name, v, shape) for name, v in (("low", low), ("high", high)))
        if not (np.isfinite(low).any() or np.isfinite(high).any()):
            raise ValueError(
                "A counterexample leaves a range, a verdict is about one. Give 'low', 'high' or "
                "both, such as low=model.predict(X) - 5. Got neither."
            )
        return columns, outputs, low, high

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


def _limit(name: str, given: Any, shape: Any) -> Array:
    """Return one end of a range for each prediction."""
    end = np.asarray(given, dtype=float)
    if end.shape not in ((), tuple(shape)) or np.isnan(end).any():
        raise ValueError(
            f"The '{name}' of a range must be a number, or one for each prediction, of shape "
            f"{tuple(shape)}. Got shape {end.shape}, or NaN in it."
        )
    return np.broadcast_to(end, shape)


def _leaves(found: Array, low: Array, high: Array) -> Array:
    """Return True for the rows with a prediction outside of its range."""
    outside = (found < low) | (found > high)
    return outside if outside.ndim == 1 else np.asarray(outside.any(axis=1))
