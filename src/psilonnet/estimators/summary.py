"""The bounds and the sparsity of a fitted model, and a summary in words."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from psilonnet.certify import column_bounds

Array = np.ndarray[Any, Any]


class SummaryMixin:
    """What follows from the weights and the encoder of a fitted estimator, not from any rows."""

    @property
    def _bounds(self: Any) -> Any:
        check_is_fitted(self)
        return column_bounds(self.net_, self.encoder_, np.asarray(self.target_.scale))

    @property
    def lipschitz_bound_(self: Any) -> float:
        """How far the outputs can move if every encoded column moves by at most 1."""
        return float(self._bounds.total)

    @property
    def feature_sensitivity_(self: Any) -> Array:
        """How far one column can move the outputs, by one standard deviation or change of level."""
        return np.asarray(self._bounds.per_standard_deviation)

    @property
    def feature_sensitivity_raw_(self: Any) -> Array:
        """The same in the units of the table: for one unit of a number, or a change of level."""
        return np.asarray(self._bounds.per_unit)

    def summary(self: Any) -> str:
        """Return score, bounds and sparsity in words; first of all, if it says one thing only."""
        check_is_fitted(self)
        networks = self.net_.members
        average = f"average of {networks} networks, " if networks > 1 else ""
        strengths = ", ".join(f"{s:g}" for s in sorted(set(self.members_["reg_strength"])))
        training, held_out = self.measures_["training"], self.measures_["held_out"]
        caveat = training.caveat("rows that the model was trained on")
        score = "Nothing was held out, so it has no score of its own."
        lines = [
            *textwrap.wrap(caveat, 100),
            f"{type(self).__name__} on {len(self.encoder_.names)} columns, {average}"
            f"reg_strength {strengths}.",
            f"On held-out rows: {held_out.in_words()}." if held_out else score,
            *self._bounds.in_words(self.encoder_, self._output_words()),
            f"Share of exact zeros among the weights: {self.sparsity_:.1%}.",
        ]
        return "\n".join(lines)
