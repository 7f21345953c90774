"""Neural networks for small tables that come with a proof.

The names below are loaded on first use, so that one floor of the library can be imported alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from psilonnet._version import __version__

if TYPE_CHECKING:
    from psilonnet._versions import show_versions
    from psilonnet.deploy import ModelFileError
    from psilonnet.estimators import Design, PSiLONClassifier, PSiLONRegressor
    from psilonnet.estimators import load_model as load
    from psilonnet.nn import (
        CReLUBlock,
        CReLULinear,
        MonotoneNet,
        NormalizedLinear,
        PSiLONNet,
        PSiLONResNet,
        fold,
        make_net,
        path_norm_penalty,
    )

_HOMES = {
    "CReLUBlock": "psilonnet.nn",
    "CReLULinear": "psilonnet.nn",
    "Design": "psilonnet.estimators",
    "ModelFileError": "psilonnet.deploy",
    "MonotoneNet": "psilonnet.nn",
    "NormalizedLinear": "psilonnet.nn",
    "PSiLONClassifier": "psilonnet.estimators",
    "PSiLONNet": "psilonnet.nn",
    "PSiLONRegressor": "psilonnet.estimators",
    "PSiLONResNet": "psilonnet.nn",
    "fold": "psilonnet.nn",
    "load": "psilonnet.estimators:load_model",
    "make_net": "psilonnet.nn",
    "path_norm_penalty": "psilonnet.nn",
    "show_versions": "psilonnet._versions",
}

__all__ = [
    "CReLUBlock",
    "CReLULinear",
    "Design",
    "ModelFileError",
    "MonotoneNet",
    "NormalizedLinear",
    "PSiLONClassifier",
    "PSiLONNet",
    "PSiLONRegressor",
    "PSiLONResNet",
    "__version__",
    "fold",
    "load",
    "make_net",
    "path_norm_penalty",
    "show_versions",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        home, _, original = _HOMES[name].partition(":")
        return getattr(import_module(home), original or name)
    raise AttributeError(f"module 'psilonnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
