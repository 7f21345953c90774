"""Networks whose output never falls, or never rises, along chosen inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from psilonnet.functional import crelu, knots, piece_mass, relu
from psilonnet.nn.chain import chain_weights, check_behaviour
from psilonnet.nn.crelu import CReLULinear
from psilonnet.nn.pieces import KnotLinear, ReLULinear

if TYPE_CHECKING:
    from collections.abc import Sequence


class MonotoneNet(nn.Module):
    """The map ``f(x) = g(x) + sum_i s_i sum_t c[t, i] phi_t(x_i)``, with slopes of the signs s.

    ``c[t, i]`` is the mass of piece t of input i in the network g: an upper bound on how far its
    output moves per unit of the piece, see :func:`psilonnet.functional.piece_mass`. It is a
    function of the weights, so that it is trained with them. Only one piece of an input moves at a
    time, hence the slope of f along input i lies between 0 and ``2 c[t, i]`` times ``s_i``.

    Parameters
    ----------
    net : Network, or nn.Sequential of Linear layers and activations with slopes from 0 to 1
        With one output; members of a population are made monotone each.
    signs : Tensor or sequence of -1, 0 and 1, of shape (in,)
        1 where the output must not fall when the input rises, -1 where it must not rise.

    Notes
    -----
    The sign holds in exact arithmetic, once training is over (dropout scales what it keeps). In
    floating point a step of the output can go against it by the rounding of two outputs. Give the
    network to :class:`psilonnet.certify.Certifier` for proofs: there c is rounded up.

    Examples
    --------
    >>> net = MonotoneNet(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)), [1, 0])
    >>> low, high = net(torch.tensor([[0.0, 1.0], [2.0, 1.0]]))
    >>> bool(high >= low)
    True
    """

    signs: Tensor
    inputs: Tensor

    def __init__(self, net: nn.Sequential, signs: Tensor | Sequence[int]) -> None:
        super().__init__()
        weights, _ = chain_weights(net)
        signs = torch.as_tensor(signs)
        _check_signs(signs, weights)
        self.net = net
        like = weights[0]
        self.register_buffer("inputs", signs.nonzero().flatten().to(like.device))
        self.register_buffer("signs", signs.to(like.device, like.dtype))

    def coefficients(self) -> Tensor:
        """Return c of the inputs with a sign, of shape (*members, pieces, their number)."""
        weights, residual = chain_weights(self.net)
        return piece_mass(weights, residual=residual, inputs=self.inputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, in) to (*members, rows, 1), a single row to (*members, 1)."""
        if x.dim() == 1:
            single: Tensor = self.forward(x.unsqueeze(0)).squeeze(-2)
            return single
        slopes = self.coefficients() * self.signs[self.inputs]
        term = self._pieces(x[..., self.inputs]).flatten(-2) @ slopes.flatten(-2).unsqueeze(-1)
        output: Tensor = self.net(x) + term
        return output

    def _pieces(self, x: Tensor) -> Tensor:
        """Split inputs with a sign as the first layer does: (..., rows, pieces, their number)."""
        first = next(iter(self.net))
        if isinstance(first, KnotLinear):
            edges = first.edges[..., self.inputs]
            return knots(x, edges if edges.dim() == 2 else edges.unsqueeze(-3))
        if isinstance(first, (CReLULinear, ReLULinear)):
            return crelu(x) if isinstance(first, CReLULinear) else relu(x)
        return x.unsqueeze(-2)


def inner_net(net: MonotoneNet) -> nn.Sequential:
    """Return the network inside, if the module adds its term to it and does nothing else."""
    attributes = ("__call__", "forward", "coefficients", "_pieces")
    check_behaviour(net, MonotoneNet, attributes)
    return net.net


def _check_signs(signs: Tensor, weights: Sequence[Tensor]) -> None:
    if not weights:
        raise ValueError("A MonotoneNet needs a network with weights. Got one without any.")
    n_in, n_out = weights[0].shape[-1], weights[-1].shape[-3]
    known = torch.isin(signs, torch.tensor([-1, 0, 1], dtype=signs.dtype))
    if signs.shape != (n_in,) or not bool(known.all()):
        raise ValueError(
            f"The 'signs' of a MonotoneNet must be -1, 0 or 1 for each of its {n_in} inputs. Got "
            f"{signs.tolist()}."
        )
    if n_out != 1:
        raise ValueError(
            f"A MonotoneNet has one output, which its signs are about. Got a network with {n_out}: "
            "make one for each output."
        )
