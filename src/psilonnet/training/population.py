"""Many networks of one shape on one leading member axis: stacking, taking out, memory."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.nn import Network, NormalizedLinear


def members_of(net: Network) -> int:
    """Return the number of members on the leading axis of a population.

    Examples
    --------
    >>> from psilonnet.nn import PSiLONNet
    >>> members_of(PSiLONNet(4, 1, width=8, depth=1, members=(3,)))
    3
    """
    shape = net.layers[0].direction.shape
    if len(shape) != 4:
        raise ValueError(
            "A population has exactly one member axis. "
            f"Got a network with members {tuple(shape[:-3])}: make it with members=(count,)."
        )
    return shape[0]


def _has_member_axis(layer: NormalizedLinear, name: str, tensor: Tensor) -> bool:
    if name == "edges":
        return tensor.dim() == layer.direction.dim() - 1
    return tensor.dim() > 0


def take_members(net: Network, members: Tensor | int | slice) -> Network:
    """Return a copy of some members of a population, or of one as an ordinary network.

    Parameters
    ----------
    net : Network with one member axis
    members : int, slice, or Tensor of indices or of booleans

    Returns
    -------
    Network
    """
    # The copy of an empty shell: the tensors of the population are replaced, never doubled.
    taken = copy.deepcopy(net, {id(p): p for p in [*net.parameters(), *net.buffers()]})
    for layer, source in zip(taken.layers, net.layers, strict=True):
        for name, parameter in source.named_parameters(recurse=False):
            sliced = parameter.detach()[members].clone()
            setattr(layer, name, nn.Parameter(sliced, requires_grad=parameter.requires_grad))
        for name, buffer in source.named_buffers(recurse=False):
            sliced = buffer[members] if _has_member_axis(source, name, buffer) else buffer
            setattr(layer, name, sliced.clone())
    return taken


def _check_alike(nets: Sequence[Network]) -> None:
    """Refuse networks that compute otherwise than the first, whose settings hold for all."""
    ways = {
        tuple(
            (type(layer), layer.normalization, float(layer.prune_mix), layer.direction.dtype)
            for layer in net.layers
        )
        for net in nets
    }
    if len(ways) > 1:
        raise ValueError(
            "The networks of one population must have the same layers, normalization, precision "
            f"and stage of pruning. Got {len(ways)} kinds."
        )


def stack_members(nets: Sequence[Network]) -> Network:
    """Return the population whose members are copies of ordinary networks of one shape."""
    _check_alike(nets)
    first = nets[0]
    stacked = copy.deepcopy(first)
    for position, layer in enumerate(stacked.layers):
        sources = [net.layers[position] for net in nets]
        for name, _ in first.layers[position].named_parameters(recurse=False):
            joined = torch.stack([source.get_parameter(name).detach() for source in sources])
            setattr(layer, name, nn.Parameter(joined))
        if "edges" in dict(layer.named_buffers()):
            edges = [source.get_buffer("edges") for source in sources]
            if not all(own.equal(edges[0]) for own in edges):  # else one split does for all
                layer.register_buffer("edges", torch.stack(edges))
    return stacked


def join_populations(nets: Sequence[Network]) -> Network:
    """Return the population of all members of some populations of one shape."""
    _check_alike(nets)
    first = nets[0]
    joined = copy.deepcopy(first)
    for position, layer in enumerate(joined.layers):
        sources = [net.layers[position] for net in nets]
        for name, _ in first.layers[position].named_parameters(recurse=False):
            tensors = torch.cat([source.get_parameter(name).detach() for source in sources])
            setattr(layer, name, nn.Parameter(tensors))
        if "edges" in dict(layer.named_buffers()):
            layer.register_buffer("edges", torch.cat([_edges_of_members(s) for s in sources]))
    return joined


def _edges_of_members(layer: NormalizedLinear) -> Tensor:
    """Return edges of shape (members, pieces - 1, in)."""
    edges = layer.get_buffer("edges")
    return edges if edges.dim() == 3 else edges.expand(len(layer.direction), -1, -1)


def repeat_member(net: Network, count: int) -> Network:
    """Return a population of equal members: one common initialisation, as in the paper."""
    return stack_members([net] * count)


class PopulationTooLargeError(MemoryError):
    """A population that would not fit into memory."""

    def __init__(self, needed: int, available: int, members: int) -> None:
        fitting = max(0, members * available // needed)
        super().__init__(
            f"Training {members} members needs about {needed / 2**30:.1f} GiB, and "
            f"{available / 2**30:.1f} GiB are available. Train at most {fitting} members at a "
            "time, or use a smaller width or batch_size."
        )


def memory_needed(net: Network, batch_size: int) -> int:
    """Estimate the bytes that training a network takes beside its rows.

    Each parameter is held with its gradient, two moments of Adam and up to three temporaries
    of the weight; each layer keeps its split input, output and their gradients for the batch.
    """
    total = 0
    for layer in net.layers:
        v = layer.direction
        members = v[..., 0, 0, 0].numel()
        n_out, pieces, n_in = v.shape[-3:]
        activations = members * batch_size * 2 * (pieces * n_in + n_out)
        total += v.element_size() * (7 * v.numel() + activations)
    return total


def _memory_available() -> int | None:
    """Return the bytes of free physical memory, or None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def check_memory(net: Network, batch_size: int, *, available: int | None = None) -> None:
    """Refuse a population that would not fit into memory; a GPU refuses by itself."""
    if net.layers[0].direction.device.type not in ("cpu", "meta"):
        return
    available = _memory_available() if available is None else available
    needed = memory_needed(net, batch_size)
    if available is not None and needed > available:
        raise PopulationTooLargeError(needed, available, members_of(net))
