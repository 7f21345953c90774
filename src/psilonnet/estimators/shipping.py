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

    def report(
        self: Any,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
    ) -> None:
        """Write one page about the fitted model: an HTML file that needs nothing else.

        It tells the score, what is proven, how the strength was chosen, what is left of the
        network, and how to load it. The same model gives the same page. Needs the extra ``plot``.

        Parameters
        ----------
        path : path
            Such as "card.html".
        X : table, optional
            Rows that the model has not seen, for certificates of rows.
        y : array-like of shape (rows,) or (rows, targets), optional
            Their targets, for a score.
        title : str, optional
            The heading of the page.
        """
        check_is_fitted(self)
        from psilonnet.report import write_report  # noqa: PLC0415

        write_report(self, path, X, y, title)
