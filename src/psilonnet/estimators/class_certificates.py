"""What is proven of the class of a row when its cells move, and what refutes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from psilonnet._warnings import warn_user
from psilonnet.estimators.counterexamples import check_budget, class_goals, refuted_rows, verdicts
from psilonnet.estimators.fitted import FittedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.estimators.counterexamples import Refuted
    from psilonnet.tables import Column

Array = np.ndarray[Any, Any]


class ClassCertificates(FittedModel):
    """A fitted classifier that states whether the class of a row can change."""

    def certified_radius(self, X: Any, *, method: str = "local") -> Array:
        """Return how far all numbers of a row may move together while its predicted class stays.

        Parameters
        ----------
        X : table
        method : {"local", "global", "linear"}
            "global" holds everywhere and costs next to nothing. "local" looks at the neighbourhood
            of each row. "linear" also follows every neuron there; it is the tightest and the
            slowest.

        Returns
        -------
        ndarray of shape (rows,)
            In standard deviations of each column, as the encoder scales it.
        """
        radius = self._certifier.certified_radius(self._read(X, reset=False), method=method)
        encoder = self.encoder_
        if not encoder.has_numbers:
            pairs = zip(encoder.names, encoder.kinds, strict=True)
            levels = {name: "any" for name, kind in pairs if kind == "category"}
            remedy = f" Ask is_robust about levels, with delta={levels}." if levels else ""
            warn_user(
                "A radius says how far numbers can move, and this table has none that vary: the "
                f"radius says nothing here.{remedy}"
            )
        return radius

    def is_robust(self, X: Any, delta: Any, *, method: str = "auto") -> Array:
        """Return True for the rows whose predicted class provably stays when columns move.

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
            Each begins with the cheaper ones and looks only at the rows that they did not prove.
            "auto" is the tightest, today "linear".

        Returns
        -------
        ndarray of bool of shape (rows,)
        """
        return self._certifier.is_robust(self._read(X, reset=False), delta, method=method)

    def verdict(self, X: Any, delta: Any, *, budget: int = 200) -> Array:
        """Return for each row whether its class is proven to stay, refuted, or open.

        Rows that linear bounds do not prove are attacked, as in :meth:`counterexample`. For rows
        that the attack does not refute either, the moves within delta are divided into cases, by
        halves of columns, levels of categories and signs of single neurons, and each case is
        proven by itself.

        Parameters
        ----------
        X : table
        delta : as for :meth:`is_robust`
        budget : int, default=200
            How many cases are looked at for each row and other class. A larger budget decides more
            rows and takes longer. Where few columns move, a large one decides nearly every row.

        Returns
        -------
        ndarray of str of shape (rows,)
            "proven" (no move within delta changes the class), "refuted" (an attack found one that
            does) or "open".
        """
        check_is_fitted(self)
        check_budget(budget)
        rows = self._read(X, reset=False)
        return verdicts(
            self._certifier.is_robust(rows, delta),
            lambda left: self._refuted(X, rows, delta, left).rows,
            lambda left: self._certifier.is_robust_by_cases(rows, delta, left, budget=budget),
        )

    def counterexample(self, X: Any, delta: Any) -> Refuted:
        """Return rows moved within delta where ``predict`` gives another class.

        The search follows the gradient of the margins, tries corners, and takes categories from
        level to level. It can miss a move, so a row that is not returned is not proven to keep its
        class: ask :meth:`is_robust` for a proof.

        Parameters
        ----------
        X : table
        delta : float, array-like, dict from column name to amount, or Perturbation
            As in :meth:`is_robust`. Each returned cell is within delta of the given one. Missing
            cells stay missing, and times move by whole milliseconds.

        Returns
        -------
        rows : ndarray of int
            Positions of the refuted rows in X.
        table : table of the type of X
            These rows after the move. Numbers that move are float64, and a category may hold the
            words "a level not seen in training".
        """
        check_is_fitted(self)
        columns = self._read(X, reset=False)
        return self._refuted(X, columns, delta, np.ones(len(columns[0].values), dtype=bool))

    def _refuted(self, X: Any, columns: Sequence[Column], delta: Any, asked: Array) -> Refuted:
        """Return those of the asked rows that move to another class."""
        classes = self.predict(X)

        def flip(found: Array, rows: Array) -> Array:
            return np.asarray(found != classes[rows])

        goals = class_goals(self._network_outputs(columns)).at(torch.from_numpy(asked))
        return refuted_rows(self, X, columns, delta, goals, flip)
