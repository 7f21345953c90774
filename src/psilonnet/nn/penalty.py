"""Penalties on a network's weights, each one number per member."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from psilonnet.functional import closed_form, path_norm
from psilonnet.nn.chain import chain_weights, plain_chain
from psilonnet.nn.monotone import MonotoneNet, inner_net
from psilonnet.nn.network import Network

if TYPE_CHECKING:
    from torch import Tensor, nn

    from psilonnet.functional import Bound


def path_norm_penalty(net: nn.Module, *, bound: Bound = "improved") -> Tensor:
    """Return a bound on the Lipschitz constant of a net, ready to be added to a loss.

    It bounds ``||f(a) - f(b)||_1 / ||a - b||_inf``. Where rows are L1-normalised and lengths
    shared, the improved bound is a product of the K lengths and costs next to nothing; otherwise
    it is a product of matrices. Dropout counts as it is after training, and the rows of layers with
    ``normalization="ball"`` as what their training rule keeps them: inside the unit ball.

    Parameters
    ----------
    net : PSiLONNet, PSiLONResNet, or an nn.Sequential of Linear and ReLU layers
        The plain chain of its layers: no ``forward`` of its own, no forward hooks. Or a
        :class:`MonotoneNet` around one: its monotone inputs count twice.
    bound : {"improved", "original", "merged"}
        See :mod:`psilonnet.functional.path_norm`.

    Returns
    -------
    Tensor of shape (*members)

    Examples
    --------
    >>> from psilonnet.nn import PSiLONNet
    >>> path_norm_penalty(PSiLONNet(10, 2, width=32, depth=3)).item()
    2.0
    """
    if isinstance(net, MonotoneNet):
        term = net.coefficients().amax(dim=-2).sum(dim=-1)
        return path_norm_penalty(inner_net(net), bound=bound) + term
    plain_chain(net)
    if isinstance(net, Network) and bound == "improved" and has_closed_form(net):
        return closed_form(net.lengths(), residual=net.residual)
    weights, residual = chain_weights(net)
    return path_norm(weights, residual=residual, bound=bound)


def has_closed_form(net: Network) -> bool:
    """Whether the improved bound of a network depends on its lengths alone; see Eq. (15)."""
    layers = net.layers
    normalized = all(layer.normalization in ("l1", "ball") for layer in layers)
    shared = all(layer.length is not None and layer.length.shape[-1] == 1 for layer in layers[:-1])
    return normalized and shared and layers[-1].length is not None


def weight_decay_penalty(net: Network) -> Tensor:
    """Return the sum of the squares of all weights (the paper's L2 weight regularisation).

    Parameters
    ----------
    net : Network

    Returns
    -------
    Tensor of shape (*members)
    """
    return torch.stack([w.square().sum(dim=(-3, -2, -1)) for w in net.weights()]).sum(dim=0)
