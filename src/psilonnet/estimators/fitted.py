"""What a fitted model can do, whatever it predicts: read tables, predict, state its bounds."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from psilonnet.certify import Certifier, column_bounds, column_slopes
from psilonnet.estimators.progress import shows_bar
from psilonnet.estimators.reading import as_table, check_names
from psilonnet.tables import read_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from psilonnet.certify import ColumnBounds
    from psilonnet.estimators.conformal import Errors
    from psilonnet.estimators.designs import Design
    from psilonnet.nn import AveragedNet
    from psilonnet.tables import Column, TableEncoder

Array = np.ndarray[Any, Any]


class FittedModel(BaseEstimator):  # type: ignore[misc]
    """A classifier or regressor after fit, or as it comes from a file."""

    verbose: Any
    monotonic_cst_: Array
    encoder_: TableEncoder
    target_: Any
    net_: AveragedNet
    designs_: list[Design]
    members_: dict[str, list[float]]
    path_: dict[str, list[float]] | None
    history_: dict[str, list[float]]
    held_out_score_: float | None
    measures_: dict[str, Any]
    near_sparsity_: float
    sparsity_: float
    reg_strength_: float
    n_rows_: int
    n_iter_: int
    n_features_in_: int
    _known_errors: Errors | None
    _one_target: bool = True  # unless a regressor has several

    # What the subclasses define.

    def _measure_rows(self, X: Any, y: Any) -> Any:
        """Return how good the predictions of some rows are."""
        raise NotImplementedError

    def _output_words(self) -> str:
        """Return what it is that moves, as in "the prediction moves"."""
        raise NotImplementedError

    def _output_name(self) -> str:
        """Return what it is that has a direction."""
        raise NotImplementedError

    # Reading and predicting.

    def _read(self, X: Any, *, reset: bool) -> list[Column]:
        """Return the columns of a table, checked as scikit-learn does."""
        X = as_table(X, type(self).__name__)
        validate_data(self, X, reset=reset, skip_check_array=True)
        columns = read_columns(X)
        if not reset and not hasattr(self, "feature_names_in_"):
            check_names(columns, self.encoder_.names)
        return columns

    def _network_outputs(self, columns: Sequence[Column]) -> Tensor:
        """Return the averaged outputs of the networks in float64, of shape (rows, outputs)."""
        return self.net_(torch.from_numpy(self.encoder_.encode(columns)))

    def _outputs(self, X: Any) -> Array:
        """Return the same of a table, in the units of what is predicted."""
        check_is_fitted(self)
        columns = self._read(X, reset=False)
        outputs = self._network_outputs(columns)
        self.encoder_.warn_far_outside(columns)
        return np.asarray(self.target_.decode(outputs.numpy()))

    @property
    def _certifier(self) -> Certifier:
        """Proofs about the fitted network, in the units of the table."""
        check_is_fitted(self)
        return Certifier(self.net_, self.encoder_, progress=shows_bar(self.verbose))

    # What follows from the weights and the encoder, not from any rows.

    @property
    def _bounds(self) -> ColumnBounds:
        check_is_fitted(self)
        target = self.target_
        scale = np.asarray(target.scale)
        return column_bounds(self.net_, self.encoder_, scale, largest=target.is_sorted)

    @property
    def lipschitz_bound_(self) -> float:
        """The most that the outputs can move if every encoded column moves by at most 1."""
        return float(self._bounds.total)

    @property
    def feature_sensitivity_(self) -> Array:
        """The most that each column alone can move the outputs, for one standard deviation.

        For a category it is for a change from any level to any other.
        """
        return np.asarray(self._bounds.per_standard_deviation)

    @property
    def feature_sensitivity_raw_(self) -> Array:
        """The most that each column alone can move the outputs, for one unit of the table.

        For a category it is for a change from any level to any other.
        """
        return np.asarray(self._bounds.per_unit)

    @property
    def feature_slopes_(self) -> Array:
        """The least and the largest slope along each column, per unit of the table."""
        check_is_fitted(self)
        slopes = column_slopes(self.net_, self.encoder_, np.asarray(self.target_.scale))
        if self.target_.is_sorted:  # any output may be any of the quantiles
            ends = slopes[..., 0].min(axis=0), slopes[..., 1].max(axis=0)
            slopes[:] = np.stack(ends, axis=-1)
        return slopes

    def summary(self) -> str:
        """Return the score, the bounds and the sparsity in words.

        If the model gives nearly the same prediction to all rows, that is said first.
        """
        check_is_fitted(self)
        networks = self.net_.members
        average = f"average of {networks} networks, " if networks > 1 else ""
        strengths = ", ".join(f"{s:.3g}" for s in sorted(set(self.members_["reg_strength"])))
        training, held_out = self.measures_["training"], self.measures_["held_out"]
        caveat = training.caveat("rows that the model was trained on")
        score = "Nothing was held out, so it has no score of its own."
        lines = [
            *textwrap.wrap(caveat, 100),
            f"{type(self).__name__} on {len(self.encoder_.names)} columns, {average}"
            f"reg_strength {strengths}.",
            f"On held-out rows: {held_out.in_words()}." if held_out else score,
            *self._bounds.in_words(self.encoder_, self._output_words(), is_log=self.target_.is_log),
            *[line for words in self.direction_words() for line in textwrap.wrap(words, 100)],
            f"Share of exact zeros among the weights: {self.sparsity_:.1%}.",
        ]
        return "\n".join(lines)

    def direction_words(self) -> list[str]:
        """Return what is proven of columns with a direction, one sentence for each direction."""
        signs = self.monotonic_cst_
        lines = []
        for sign, never in ((1, "falls"), (-1, "rises")):
            own = [self.encoder_.names[k] for k in np.flatnonzero(signs == sign)]
            if own:
                columns = ", ".join(own)
                words = f"Proven: {self._output_name()} never {never} when one of these rises"
                lines.append(f"{words}: {columns}.")
        return lines

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
