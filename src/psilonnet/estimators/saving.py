"""Fitted estimators to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet._numbers import is_whole
from psilonnet._version import __version__
from psilonnet.deploy import net_to_tensors, write_model_file
from psilonnet.estimators.class_target import ClassTarget
from psilonnet.estimators.designs import designs_to_data
from psilonnet.estimators.monotone import read_signs
from psilonnet.estimators.number_targets import CountTarget, NumberTarget, QuantileTarget
from psilonnet.estimators.parameters import check_kept
from psilonnet.training import loss_words

if TYPE_CHECKING:
    import os

    from psilonnet.estimators.fitted import FittedModel


def save_model(model: FittedModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file."""
    is_classifier = isinstance(model.target_, ClassTarget)
    parts, tensors = net_to_tensors(model.net_)
    manifest = {
        "psilonnet": __version__,
        "kind": "PSiLONClassifier" if is_classifier else "PSiLONRegressor",
        "parameters": _plain_parameters(model),
        "encoder": model.encoder_.to_dict(),
        "named": hasattr(model, "feature_names_in_"),
        "target": target_to_dict(model.target_),
        "one_target": model._one_target,
        "parts": parts,
        "sparsity": {"near": model.near_sparsity_, "exact": model.sparsity_},
        "designs": designs_to_data(model.designs_),
        "members": model.members_,
        "path": model.path_,
        "history": model.history_,
        "held_out_score": model.held_out_score_,
        "measures": {k: v and v.to_dict() for k, v in model.measures_.items()},
        "n_rows": model.n_rows_,
        "n_iter": model.n_iter_,
    }
    known = model._known_errors
    if known is not None:
        manifest["errors"] = known.basis
        tensors["errors.values"] = torch.from_numpy(known.values)
        tensors["errors.mass"] = torch.from_numpy(known.mass)
    write_model_file(path, manifest, tensors)


def _plain_parameters(model: FittedModel) -> dict[str, Any]:
    """Return parameters as plain data; splits are of the rows of a table, which the file lacks.

    The directions are those of the fit, whatever the parameter has been set to since.
    """
    parameters = model.get_params(deep=False)
    check_kept(type(model).__name__, parameters)  # else the file could not be read
    names, fitted = model.encoder_.names, model.monotonic_cst_
    if (read_signs(parameters["monotonic_cst"], names) != fitted).any():
        pairs = zip(names, fitted.tolist(), strict=True)
        parameters["monotonic_cst"] = {name: sign for name, sign in pairs if sign}
    plain = parameters_to_data(parameters)
    plain["cv"] = plain["cv"] if is_whole(parameters["cv"]) else None
    return plain


def parameters_to_data(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator as plain data."""
    plain = {k: _plain_data(v) for k, v in parameters.items()}
    return {**plain, "designs": designs_to_data(parameters["designs"])}


def target_to_dict(target: ClassTarget | NumberTarget) -> dict[str, Any]:
    """Return a target as plain data."""
    if isinstance(target, ClassTarget):
        dtype = target.classes.dtype
        words = {"U": "str", "O": "object"}.get(dtype.kind, dtype.newbyteorder("<").str)
        labels = [_plain_data(label) for label in target.classes.tolist()]
        return {"classes": labels, "dtype": words, "temperature": target.temperature}
    plain: dict[str, Any] = {"center": target.center.tolist(), "scale": target.scale.tolist()}
    if isinstance(target, QuantileTarget):
        plain["levels"] = list(target.levels)
    if isinstance(target, CountTarget):
        plain["link"] = "log"
    return plain


def _plain_data(value: Any) -> Any:
    """Return a parameter or label as plain data; what a file cannot hold becomes None.

    Of a loss of one's own the name is kept.
    """
    if callable(value):
        return loss_words(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return [[_plain_data(k), _plain_data(v)] for k, v in value.items()]
    if isinstance(value, (list, tuple, range, np.ndarray)):
        return [_plain_data(v) for v in value]
    return value if isinstance(value, (bool, str, int, float)) else None  # such as a RandomState
