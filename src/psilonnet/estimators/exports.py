"""Files, exports and a report of a fitted model."""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from psilonnet._extras import require
from psilonnet._version import __version__
from psilonnet.certify import input_moves
from psilonnet.deploy import Outcome, write_numpy_export, write_onnx, write_onnx_core
from psilonnet.estimators.class_target import ClassTarget
from psilonnet.estimators.fitted import FittedModel
from psilonnet.estimators.saving import save_model, target_to_dict

if TYPE_CHECKING:
    import os

    from torch import Tensor


class ExportableModel(FittedModel):
    """A fitted model that can be written to files, and reported on."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file: numbers and words, no code.

        ``psilonnet.load(path)`` reads it, and predicts the same to the last bit.
        """
        check_is_fitted(self)
        save_model(self, path)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self),), self.__getstate__()  # type: ignore[attr-defined]

    def __reduce__(self) -> Any:
        """Refuse to be taken apart; pickle and copy ask `__reduce_ex__`."""
        if not hasattr(self, "net_"):
            return super().__reduce__()
        raise TypeError(
            "A fitted model must be written as a whole, and skops takes it apart, down to tensors "
            f"that it cannot hold. Got a {type(self).__name__}. Use model.save(path) and "
            "psilonnet.load(path): that file runs no code, and needs no list of trusted types."
        )

    def export_numpy(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder that needs nothing but NumPy.

        The folder holds ``predictor.py``, ``manifest.json`` and ``weights.npz``. The predictor
        reads tables, predicts in float64, and proves as the methods "global" and "local" do.
        Neurons that pruning has left without use are not written.

        Parameters
        ----------
        folder : path
            It is made if it is not there. An older export in it is replaced as a whole; files of
            the same names that no export has written are refused.
        """
        check_is_fitted(self)
        manifest = {
            "psilonnet": __version__,
            "encoder": self.encoder_.to_dict(),
            "target": target_to_dict(self.target_),
            "one_target": self._one_target,
        }
        moves = input_moves(self.net_, _asked(self.target_))
        write_numpy_export(folder, manifest, self.net_, moves)

    def export_onnx(self, path: str | os.PathLike[str], *, core_only: bool = False) -> None:
        """Write the fitted model as an ONNX file, for any runtime that reads it.

        The file has one input of shape (rows, 1) per column: float64 for numbers (NaN if missing)
        and for times (days since 1970), words for all else ("" if missing; booleans are "True"
        and "False"). A classifier's outputs are ``label`` and ``probabilities``, a regressor's
        output is ``prediction``. Needs the extra ``onnx``.

        Parameters
        ----------
        path : path
        core_only : bool, default=False
            Write the networks alone, for programs that verify networks. The input ``x`` is what the
            networks see of the encoded columns, ``outputs`` are before temperature and scale, and
            the only operations are Gemm, Relu and Add.

        See Also
        --------
        psilonnet.deploy.onnx_inputs : a table as the inputs of a session.
        """
        check_is_fitted(self)
        if core_only:
            write_onnx_core(path, self.net_, self.encoder_.labels)
            return
        target = self.target_
        outcome = Outcome(
            scale=np.asarray(target.scale),
            center=getattr(target, "center", None),
            classes=getattr(target, "classes", None),
            flat=self._one_target,
            is_sorted=target.is_sorted,
            is_log=target.is_log,
        )
        write_onnx(path, self.net_, self.encoder_, outcome)

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        format: str = "html",  # noqa: A002  # the word that people look for
    ) -> None:
        """Write one page about the fitted model: an HTML file that needs nothing else.

        It tells the score, what is proven, how the strength was chosen, what is left of the
        network, and how to load it. If all rows get the same class or nearly the same number, it
        says so first. The same model gives the same page. Needs the extra ``plot``.

        Parameters
        ----------
        path : path
            Such as "card.html"; a page in markdown ends in ".md".
        X : table, optional
            Rows that the model has not seen, for certificates of rows.
        y : array-like of shape (rows,) or (rows, targets), optional
            Their targets, for a score.
        title : str, optional
            The heading of the page.
        format : {"html", "markdown"}, default="html"
            "markdown" writes the same without its pictures, as a model card for the Hugging Face
            Hub (its ``README.md``), with the block of metadata that the Hub reads.
        """
        check_is_fitted(self)
        from psilonnet.report import check_page, write_report  # noqa: PLC0415

        check_page(path, format)  # before any work
        require("matplotlib", "plot")
        if y is not None and X is None:
            raise ValueError("A report with y needs X, the rows that y belongs to. Got y only.")
        given = None
        if y is not None:
            check_consistent_length(X, y)
            given = self._measure_rows(X, y)
        write_report(self, path, X, given, title, format)


def _asked(target: Any) -> Tensor:
    """Return the combinations of outputs that certificates are about."""
    eye = torch.eye(target.outputs, dtype=torch.float64)
    if not isinstance(target, ClassTarget) or target.outputs == 1:
        return eye
    first, second = torch.triu_indices(target.outputs, target.outputs, offset=1)
    return eye[first] - eye[second]
