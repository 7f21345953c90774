"""Fitted estimators from files, and what must hold of what is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet.certify import slope_range
from psilonnet.deploy import (
    as_file_errors,
    check_file,
    net_from_tensors,
    read_labels,
    read_model_file,
    read_number,
    read_scales,
)
from psilonnet.estimators.class_target import ClassTarget
from psilonnet.estimators.classifier import PSiLONClassifier
from psilonnet.estimators.conformal import BASES, KEPT, Errors
from psilonnet.estimators.designs import read_designs
from psilonnet.estimators.measures import ClassMeasures, NumberMeasures
from psilonnet.estimators.monotone import encoded_signs, read_signs
from psilonnet.estimators.number_targets import CountTarget, NumberTarget, QuantileTarget
from psilonnet.estimators.parameters import check_kept
from psilonnet.estimators.regressor import PSiLONRegressor
from psilonnet.tables import TableEncoder

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from torch import Tensor

    from psilonnet.estimators.base import BasePSiLON

KINDS: dict[str, type[PSiLONClassifier | PSiLONRegressor]] = {
    "PSiLONClassifier": PSiLONClassifier,
    "PSiLONRegressor": PSiLONRegressor,
}


def load_model(path: str | os.PathLike[str]) -> PSiLONClassifier | PSiLONRegressor:
    """Return the fitted estimator in a file.

    The file holds numbers and words only; nothing in it is run.

    Parameters
    ----------
    path : path

    Returns
    -------
    PSiLONClassifier or PSiLONRegressor

    Raises
    ------
    ModelFileError
        If the file does not describe a valid model.
    """
    manifest, tensors = read_model_file(path)
    with as_file_errors(path):
        model = _unfitted(manifest)
        _read_network(model, manifest, tensors)
        _read_choice(model, manifest)
        _read_training(model, manifest)
        return model


def _unfitted(manifest: dict[str, Any]) -> BasePSiLON:
    """Return an estimator with the parameters of the one that was fitted."""
    kind = KINDS[manifest["kind"]]
    model = kind(**{k: _from_plain(k, v) for k, v in manifest["parameters"].items()})
    parameters = model.get_params(deep=False)
    check_file(isinstance(parameters["device"], str), "the device has no name")
    check_kept(kind.__name__, parameters)
    return model


def _read_network(model: BasePSiLON, manifest: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Read what predicts: the encoder, the networks and the target, and their errors."""
    model.encoder_ = TableEncoder.from_dict(manifest["encoder"])
    model.n_features_in_ = len(model.encoder_.names)
    if _bool(manifest["named"]):
        model.feature_names_in_ = np.array(model.encoder_.names, dtype=object)
    model.target_ = _target_from_dict(manifest["target"], type(model))
    outputs = model.target_.outputs
    # Files of format 2 have no errors.
    errors = [tensors.pop(f"errors.{name}", None) for name in ("values", "mass")]
    numbers = torch.tensor(model.encoder_.holds_numbers, dtype=torch.bool)
    model.net_ = net_from_tensors(manifest["parts"], tensors, numbers=numbers, outputs=outputs)
    kinds = 1 if isinstance(model.target_, ClassTarget) else model.target_.error_kinds
    model._known_errors = _errors_from_file(manifest.get("errors"), errors, kinds)
    _check_directions(model)
    if isinstance(model, PSiLONClassifier):
        model.classes_, model.temperature_ = model.target_.classes, model.target_.temperature
    else:
        model._one_target = _bool(manifest["one_target"])
        check_file(not model._one_target or outputs == 1, "one target, many outputs")


def _read_choice(model: BasePSiLON, manifest: dict[str, Any]) -> None:
    """Read which networks were chosen, and how sparse they are."""
    near, exact = (read_number(manifest["sparsity"][word], least=0.0) for word in ("near", "exact"))
    check_file(max(near, exact) <= 1, "a share of zeros is above 1")
    model.near_sparsity_, model.sparsity_ = near, exact
    model.designs_ = list(read_designs(manifest["designs"]))
    model.members_ = _columns(manifest["members"])
    known = ["weight", "design", "reg_strength"]
    check_file(list(model.members_) == known, "the members are unknown")
    for value in (v for column in model.members_.values() for v in column):
        read_number(value, least=0.0)
    check_file(max(model.members_["design"]) < len(model.designs_), "there is no such design")
    model.reg_strength_ = model.members_["reg_strength"][0]


def _read_training(model: BasePSiLON, manifest: dict[str, Any]) -> None:
    """Read how the training went, and how good the model was then."""
    model.path_ = None if manifest["path"] is None else _columns(manifest["path"])
    model.history_ = _columns(manifest["history"])
    score = manifest["held_out_score"]
    model.held_out_score_ = None if score is None else read_number(score)
    check_file(score is None or score <= 1, "the score is above 1")
    model.measures_ = _measures_from_dict(manifest["measures"], model)
    model.n_rows_ = _count(manifest["n_rows"])
    model.n_iter_ = _count(manifest["n_iter"])


def _errors_from_file(basis: Any, tensors: Sequence[Tensor | None], kinds: int) -> Errors | None:
    """Return the errors on rows with known targets."""
    values, mass = tensors
    if basis is None or values is None or mass is None:
        check_file(basis is values is mass is None, "a part of the errors is missing")
        return None
    check_file(basis in BASES, "the errors are of unknown rows")
    alike = values.dtype == mass.dtype == torch.float64 and values.shape == mass.shape
    check_file(alike and values.dim() == 2 and len(values) == kinds, "the errors are misshapen")
    check_file(0 < values.shape[1] <= KEPT, "the errors are none, or too many")
    check_file(not bool(values.isnan().any()), "an error is not a number")
    # Differences of infinite errors are no numbers.
    rising = (values[:, 1:] >= values[:, :-1]).all() and (mass.diff() >= 0).all()
    check_file(bool(rising), "the errors are not sorted")
    check_file(bool(((mass > 0) & (mass < 1)).all()), "the weights of the errors are not shares")
    return Errors(values.numpy(), mass.numpy(), basis)


def _check_directions(model: BasePSiLON) -> None:
    """Prove the directions that a model claims from its own numbers."""
    model.monotonic_cst_ = read_signs(model.monotonic_cst, model.encoder_.names)
    signs = encoded_signs(model.monotonic_cst_, model.encoder_)
    if signs is None:
        return
    check_file(model.target_.outputs == 1, "several outputs have a direction")
    low, high = (end[0] for end in slope_range(model.net_))
    against = torch.where(signs > 0, -low, torch.where(signs < 0, high, 0.0))
    check_file(not bool((against > 0).any()), "a slope can have another sign than it claims")


def _measures_from_dict(data: dict[str, Any], model: BasePSiLON) -> dict[str, Any]:
    check_file(
        list(data) == ["training", "held_out"] and data["training"] is not None, "no measures"
    )
    kind: Any = NumberMeasures
    size: Any = model.target_.outputs
    if isinstance(model, PSiLONClassifier):
        kind, size = ClassMeasures, model.classes_.tolist()
    return {k: None if v is None else kind.from_dict(v, size) for k, v in data.items()}


def _target_from_dict(data: dict[str, Any], kind: type[BasePSiLON]) -> ClassTarget | NumberTarget:
    if kind is PSiLONRegressor:
        center, scale, levels, is_log = read_scales(data)
        if levels:
            return QuantileTarget(center, scale, levels)
        return (CountTarget if is_log else NumberTarget)(center, scale)
    return ClassTarget(*read_labels(data))


def _from_plain(name: str, value: Any) -> Any:
    if not isinstance(value, list):
        return value
    if name == "designs":
        return list(read_designs(value))
    pairs = name == "monotonic_cst" and all(isinstance(entry, list) for entry in value)
    return dict(value) if name == "class_weight" or pairs else tuple(value)


def _bool(value: Any) -> bool:
    check_file(isinstance(value, bool), "a flag is neither true nor false")
    return bool(value)


def _count(value: Any) -> int:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    check_file(good, f"{value!r} is not a valid count")
    return int(value)


def _columns(data: Any) -> dict[str, list[float]]:
    """Return columns of numbers; NaN stands for what was not recorded."""
    columns: dict[str, list[float]] = {str(k): [float(v) for v in c] for k, c in data.items()}
    check_file(len({len(c) for c in columns.values()}) <= 1, "the columns differ in length")
    return columns
