"""How a fitted model leaves Python: files, exports and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from psilonnet.deploy import Outcome, write_onnx, write_onnx_core
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

    def export_onnx(self: Any, path: str | os.PathLike[str], *, core_only: bool = False) -> None:
        """Write the fitted model as an ONNX file, for any runtime that reads it.

        The file has one input of shape (rows, 1) per column: float64 for numbers (NaN if missing)
        and for times (days since 1970), words for all else ("" if missing; booleans are "True"
        and "False"). A classifier's outputs are ``label`` and ``probabilities``, a regressor's
        output is ``prediction``. Needs the extra ``onnx``.

        Parameters
        ----------
        path : path
        core_only : bool, default=False
            Write the network alone, for verifiers: from the encoded columns ``x`` to its
            ``outputs``, before temperature and scale, by Gemm, Relu and Add only.

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
            flat=getattr(self, "_one_target", False),
        )
        write_onnx(path, self.net_, self.encoder_, outcome)
