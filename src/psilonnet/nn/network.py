"""What the plain and the residual network share: a chain of normalised layers."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from psilonnet.functional import exact_sparsity, near_sparsity
from psilonnet.nn.linear import NormalizedLinear, shared_weights
from psilonnet.nn.pieces import KnotLinear

if TYPE_CHECKING:
    from collections.abc import Callable

    from psilonnet.nn.linear import LayerSettings


class Network(nn.Sequential):
    """A chain of normalised layers, each of which splits its own input into pieces.

    Attributes
    ----------
    compiled : bool
        Normalise the weights of all layers in one compiled call: faster steps for large networks,
        after some seconds of compilation. Needs a C++ compiler; not for use under torch.func.
    """

    compiled = False

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, in) to (*members, rows, out), a single row to (*members, out)."""
        if x.dim() == 1:  # what the first layer makes of it would be taken for rows by the next
            return self.forward(x.unsqueeze(0)).squeeze(-2)
        together = self.compiled and not torch.compiler.is_compiling()
        with shared_weights(self) if together else nullcontext():
            for layer in self.layers:
                x = layer(x)
            return x

    @property
    def layers(self) -> list[NormalizedLinear]:
        """The layers from input to output."""
        return cast("list[NormalizedLinear]", list(self))

    @property
    def residual(self) -> tuple[bool, ...]:
        """Of each layer, whether the identity is added to it."""
        return tuple(layer.residual for layer in self.layers)

    def weights(self) -> list[Tensor]:
        """Return the weights in use, each of shape (*members, out, pieces, in)."""
        return [layer.weight for layer in self.layers]

    def lengths(self) -> list[Tensor]:
        """Return the lengths of all layers that have them; of the last layer, one for each row."""
        *rest, last = self.layers
        lengths: list[Tensor] = [layer.length for layer in rest if layer.length is not None]
        if last.length is not None:
            lengths.append(last.length.expand(last.direction.shape[:-2]))
        return lengths

    def set_prune_mix(self, value: float) -> None:
        """Set the share of the projection in every weight, from 0 to 1; see Eq. (5)."""
        for layer in self.layers:
            layer.set_prune_mix(value)

    @torch.no_grad()
    def near_sparsity(self) -> Tensor:
        """Return the mean near-sparsity of all weight vectors, of shape (*members).

        A row is one weight vector for each of its pieces, as in the paper's W+ and W-.
        """
        return self._mean_over_vectors(near_sparsity)

    @torch.no_grad()
    def exact_sparsity(self) -> Tensor:
        """Return the mean share of exact zeros of all weight vectors, of shape (*members)."""
        return self._mean_over_vectors(exact_sparsity)

    def _mean_over_vectors(self, measure: Callable[[Tensor], Tensor]) -> Tensor:
        vectors = [measure(weight) for weight in self.weights()]  # each (*members, out, pieces)
        return torch.cat([measured.flatten(-2) for measured in vectors], dim=-1).mean(dim=-1)


def first_layer(
    in_features: int, width: int, edges: Tensor | None, settings: LayerSettings
) -> NormalizedLinear:
    """Return the layer on the inputs: linear, or split at knots if there are edges."""
    if edges is None:
        return NormalizedLinear(in_features, width, **settings)
    if edges.shape[-1] != in_features:
        raise ValueError(
            f"The 'edges' must have one column for each of the {in_features} inputs. "
            f"Got {edges.shape[-1]} columns instead."
        )
    return KnotLinear(edges, width, **settings)


def last_settings(settings: LayerSettings) -> LayerSettings:
    """Return the settings of the last layer, whose lengths are never shared; see Eq. (15)."""
    if settings.get("length", "shared") == "none":
        return settings
    return {**settings, "length": "per_row"}


def check_depth(owner: str, depth: int) -> None:
    """Refuse a network without a hidden layer."""
    if depth < 1:
        raise ValueError(f"The 'depth' of {owner} must be at least 1. Got {depth!r} instead.")
