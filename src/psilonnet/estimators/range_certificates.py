"""What is proven of the prediction of a row when its cells move, and what refutes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from psilonnet.estimators.counterexamples import (
    check_budget,
    range_goals,
    refuted_rows,
    safe_moves,
    verdicts,
)
from psilonnet.estimators.fitted import FittedModel

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.estimators.counterexamples import Refuted
    from psilonnet.tables import Column

Array = np.ndarray[Any, Any]


class _Within(NamedTuple):
    """Rows, and a range that their predictions are not to leave.

    Attributes
    ----------
    columns : list of Column
    outputs : Tensor of shape (rows, outputs)
        Of the networks.
    low, high : ndarray of the shape of the predictions
    """

    columns: list[Column]
    outputs: Tensor
    low: Array
    high: Array

    @property
    def ends(self) -> tuple[Array, Array]:
        """The range, of shape (rows, outputs) each."""
        shape = tuple(self.outputs.shape)
        return self.low.reshape(shape), self.high.reshape(shape)


class RangeCertificates(FittedModel):
    """A fitted regressor that states how far the prediction of a row can move."""

    def output_range(self, X: Any, delta: Any, *, method: str = "auto") -> tuple[Array, Array]:
        """Return a range that holds every prediction when the columns of a row move a little.

        It says where the prediction can go, not where the true target is. For ``loss="poisson"``
        it is a range of means; several quantiles have a range each.

        Parameters
        ----------
        X : table
        delta : float, array-like, dict from column name to amount, or Perturbation
            How far the cells may move. A single number is in standard deviations, as the encoder
            scales a column, and is for all columns of numbers. An array, dict or Series is in the
            columns' own units: days or a timedelta for times, and "any" for a category that may
            take any level. Columns that are left out stay as they are. Shares of a cell, and
            amounts that differ from row to row, need a :class:`psilonnet.certify.Perturbation`.
        method : {"auto", "global", "local", "linear"}
            "global" holds everywhere and costs next to nothing. "local" looks at the neighbourhood
            of each row. "linear" also follows every neuron there; it is the tightest and the
            slowest.
            Each begins with the cheaper ones, and keeps what is best of all. "auto" is the
            tightest, today "linear".

        Returns
        -------
        low, high : ndarray of the shape of the predictions
        """
        low, high = self._ranges(X, delta, method)
        return (low[:, 0], high[:, 0]) if self._one_target else (low, high)

    def verdict(
        self, X: Any, delta: Any, *, low: Any = -np.inf, high: Any = np.inf, budget: int = 200
    ) -> Array:
        """Return for each row whether its prediction is proven to stay in a range.

        Rows that linear bounds do not prove are attacked, as in :meth:`counterexample`. For rows
        that the attack does not refute either, the moves within delta are divided into cases, by
        halves of columns, levels of categories and signs of single neurons, and each case is
        proven by itself.

        Parameters
        ----------
        X : table
        delta : as for :meth:`output_range`
        low, high : float or array-like of the shape of the predictions
            The range that predictions must not leave, as for :meth:`counterexample`.
        budget : int, default=200
            How many cases are looked at for each row, output and end of the range. A larger budget
            decides more rows and takes longer. Where few columns move, a large one decides nearly
            every row.

        Returns
        -------
        ndarray of str of shape (rows,)
            "proven" (no move within delta takes the prediction below low or above high), "refuted"
            (an attack found one that does) or "open".
        """
        check_budget(budget)
        asked = self._within(X, low, high)
        columns, certifier = asked.columns, self._certifier
        enough = safe_moves(self.target_, asked.outputs, *asked.ends)
        return verdicts(
            certifier.moves_less(columns, delta, enough),
            lambda left: self._refuted(X, delta, asked, left).rows,
            lambda left: certifier.moves_less_by_cases(columns, delta, left, enough, budget=budget),
        )

    def counterexample(
        self, X: Any, delta: Any, *, low: Any = -np.inf, high: Any = np.inf
    ) -> Refuted:
        """Return rows moved within delta where the prediction is below low or above high.

        The search follows the gradient of the prediction, tries corners, and takes categories from
        level to level. It can miss a move, so a row that is not returned is not proven to stay in
        the range: ask :meth:`output_range` or :meth:`verdict` for a proof.

        Parameters
        ----------
        X : table
        delta : float, array-like, dict from column name to amount, or Perturbation
            As in :meth:`output_range`. Each returned cell is within delta of the given one. Missing
            cells stay missing, and times move by whole milliseconds.
        low, high : float or array-like of the shape of the predictions
            The range that predictions must not leave, such as ``model.predict(X) - 5`` and
            ``model.predict(X) + 5``. One of the two is enough.

        Returns
        -------
        rows : ndarray of int
            Positions of the refuted rows in X.
        table : table of the type of X
            These rows after the move. Numbers that move are float64, and a category may hold the
            words "a level not seen in training".
        """
        asked = self._within(X, low, high)
        return self._refuted(X, delta, asked, np.ones(len(asked.low), dtype=bool))

    def _refuted(self, X: Any, delta: Any, asked: _Within, left: Array) -> Refuted:
        """Return those of the rows that are left whose prediction leaves its range."""
        ends = [self.target_.invert(end) for end in asked.ends]
        goals = range_goals(asked.outputs, *ends).at(torch.from_numpy(left))

        def leaves(found: Array, rows: Array) -> Array:
            outside = (found < asked.low[rows]) | (found > asked.high[rows])
            return outside if outside.ndim == 1 else np.asarray(outside.any(axis=1))

        return refuted_rows(self, X, asked.columns, delta, goals, leaves)

    def _within(self, X: Any, low: Any, high: Any) -> _Within:
        """Return rows and their outputs, and a range for each prediction."""
        check_is_fitted(self)
        columns = self._read(X, reset=False)
        outputs = self._network_outputs(columns)
        shape = outputs.shape[:1] if self._one_target else outputs.shape
        low, high = (_limit(name, v, shape) for name, v in (("low", low), ("high", high)))
        if not (np.isfinite(low).any() or np.isfinite(high).any()):
            raise ValueError(
                "A regressor has no class that could flip, and must be told a range instead. Give "
                "'low', 'high' or both, such as low=model.predict(X) - 5. Got neither."
            )
        if (low > high).any():
            row = int(np.argwhere(low > high)[0][0])
            raise ValueError(
                f"The 'low' of a range must not be above its 'high'. It is for row {row}: exchange "
                "the two, or give only one."
            )
        return _Within(columns, outputs, low, high)

    def _ranges(self, X: Any, delta: Any, method: str) -> tuple[Array, Array]:
        """Return what holds all predictions in the boxes, both of shape (rows, targets)."""
        check_is_fitted(self)
        rows = self._read(X, reset=False)
        outputs, down, up = self._certifier.output_moves(rows, delta, method=method)
        limits: tuple[Array, Array] = self.target_.limits(outputs, down, up)
        return limits


def _limit(name: str, given: Any, shape: Any) -> Array:
    """Return one end of a range for each prediction."""
    end = np.asarray(given, dtype=float)
    if end.shape not in ((), tuple(shape)) or np.isnan(end).any():
        raise ValueError(
            f"The '{name}' of a range must be a number, or one for each prediction, of shape "
            f"{tuple(shape)}. Got shape {end.shape}, or NaN in it."
        )
    return np.broadcast_to(end, shape)
