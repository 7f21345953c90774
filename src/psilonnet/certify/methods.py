"""The ways to prove how far outputs can fall. Another one is a file of its own and a line here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from psilonnet.certify.global_bound import global_moves
from psilonnet.certify.linear_bound import linear_falls
from psilonnet.certify.local_bound import local_moves

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from psilonnet.certify.box import Box
    from psilonnet.certify.combinations import Combinations
    from psilonnet.nn import AveragedNet


@dataclass(frozen=True)
class Method:
    """A way to prove how far outputs can fall.

    Attributes
    ----------
    falls : callable
        Maps a net, rows of shape (rows, in), a :class:`Box` around them and the
        :class:`Combinations` asked about to bounds of shape (rows, count), in exact arithmetic.
    memory : callable
        Maps a net to about how many numbers are in memory for each row.
    """

    falls: Callable[[AveragedNet, Tensor, Box, Combinations], Tensor]
    memory: Callable[[AveragedNet], int]


def _local(net: AveragedNet, x: Tensor, box: Box, asked: Combinations) -> Tensor:
    return local_moves(net, x, box.hull, asked.expanded)


def _global_memory(net: AveragedNet) -> int:
    return net.columns + net.outputs**2


def _local_memory(net: AveragedNet) -> int:
    # Ends, pieces and masks of the inputs of a layer, and the mass of each combination there.
    layers = [layer for part in net.parts for layer in part.net.layers]
    widest = max(layer.weight.shape[-2] * layer.weight.shape[-1] for layer in layers)
    return _global_memory(net) + 10 * widest + 4 * net.outputs * widest


def _linear_memory(net: AveragedNet) -> int:
    # Two lines for each neuron of a layer, and what every network sees of all kinks.
    layers = [layer for part in net.parts for layer in part.net.layers]
    widest = max(layer.weight[0, 0].numel() for layer in layers)
    most = max([net.outputs, *(layer.weight.shape[1] for layer in layers)])
    ranges = sum(6 * layer.weight[:, 0].numel() for layer in layers)
    return _local_memory(net) + ranges + 16 * most * widest


GLOBAL = Method(global_moves, _global_memory)
LOCAL = Method(_local, _local_memory)
LINEAR = Method(linear_falls, _linear_memory)

# Each begins with what is cheap: the next way is for the rows that are left.
METHODS = {
    "auto": (GLOBAL, LOCAL, LINEAR),
    "global": (GLOBAL,),
    "local": (GLOBAL, LOCAL),
    "linear": (GLOBAL, LOCAL, LINEAR),
}


def get_methods(name: str) -> tuple[Method, ...]:
    """Return the ways that a name stands for, the cheapest first."""
    if name not in METHODS:
        raise ValueError(f"The 'method' must be one of {tuple(METHODS)}. Got {name!r} instead.")
    return METHODS[name]
