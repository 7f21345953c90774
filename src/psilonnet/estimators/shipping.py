"""How a fitted model leaves Python: files, exports and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from psilonnet.estimators.saving import save_model

if TYPE_CHECKING:
    import os


class Shipping:
    """The methods of a fitted estimator that write files."""

    def save(self: Any, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file: numbers and words, no code.

        ``psilonnet.load(path)`` reads it, and predicts the same to the last bit.
        """
        check_is_fitted(self)
        save_model(self, path)
