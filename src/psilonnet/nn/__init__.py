"""Layers and networks for PyTorch, and the paper's variants of them."""

from psilonnet.nn.averaged import AveragedNet, Part
from psilonnet.nn.crelu import CReLUBlock, CReLULinear
from psilonnet.nn.fold import fold
from psilonnet.nn.init import orthogonal_
from psilonnet.nn.linear import NormalizedLinear, shared_weights
from psilonnet.nn.maps import BEND, Bend, ColumnMap
from psilonnet.nn.mlp import PSiLONNet
from psilonnet.nn.monotone import MonotoneNet, inner_net
from psilonnet.nn.network import Network
from psilonnet.nn.penalty import has_closed_form, path_norm_penalty, weight_decay_penalty
from psilonnet.nn.pieces import KnotLinear, ReLULinear
from psilonnet.nn.plain import PlainLayer, PlainNet, plain_net
from psilonnet.nn.resnet import PSiLONResNet
from psilonnet.nn.variants import VARIANTS, Variant, make_net

__all__ = [
    "BEND",
    "VARIANTS",
    "AveragedNet",
    "Bend",
    "CReLUBlock",
    "CReLULinear",
    "ColumnMap",
    "KnotLinear",
    "MonotoneNet",
    "Network",
    "NormalizedLinear",
    "PSiLONNet",
    "PSiLONResNet",
    "Part",
    "PlainLayer",
    "PlainNet",
    "ReLULinear",
    "Variant",
    "fold",
    "has_closed_form",
    "inner_net",
    "make_net",
    "orthogonal_",
    "path_norm_penalty",
    "plain_net",
    "shared_weights",
    "weight_decay_penalty",
]
