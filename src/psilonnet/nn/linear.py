"""The normalised linear layer, on which everything else is built."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import torch
from torch import Tensor, nn

from psilonnet.functional import (
    compiled_weights,
    fused_weight,
    linear,
    mixed_weight,
    normalized_linear,
    projected_weight,
    row_norm,
)
from psilonnet.nn.init import orthogonal_

if TYPE_CHECKING:
    from collections.abc import Iterator

Normalization = Literal["l1", "l2", "ball", "none"]
Length = Literal["shared", "per_row", "none"]
_ORDERS = {"l1": 1, "l2": 2}


class LayerSettings(TypedDict, total=False):
    """Keyword arguments of :class:`NormalizedLinear` that networks pass on to their layers."""

    members: tuple[int, ...]
    normalization: Normalization
    length: Length
    bias: bool
    generator: torch.Generator | None


def _check_choice(owner: object, name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        allowed = ", ".join(map(repr, choices))
        raise ValueError(
            f"The {name!r} parameter of {type(owner).__name__} must be one of {allowed}. "
            f"Got {value!r} instead."
        )


class NormalizedLinear(nn.Module):
    """The map ``y = W x + b`` whose weight rows have a fixed norm times a learned length.

    With direction V and length g, the row o of the weight is ``g_o V_o / ||V_o||``, where the
    norm of a row of shape (pieces, in) is that of ``max_t |V_o[t, i]|`` as a vector over i.
    The input is what a splitting activation made of ``in_features`` coordinates, flattened.

    Parameters
    ----------
    in_features, out_features : int
    pieces : int
        How many pieces each input coordinate has been split into.
    members : tuple of int
        Leading axes: many layers of one shape side by side. ``()`` is an ordinary layer.
    normalization : {"l1", "l2", "ball", "none"}
        "ball" takes the direction as it is and leaves it to the training rule to keep every
        row inside the unit L1 ball; "none" is a plain weight.
    length : {"shared", "per_row", "none"}
        One length for the layer, one for each row, or none at all.
    bias : bool
    generator : torch.Generator, optional
        Source of the initial direction; torch's global one if not given.

    Attributes
    ----------
    direction : Parameter of shape (*members, out, pieces, in)
    length : Parameter of shape (*members, 1) or (*members, out), or None
    bias : Parameter of shape (*members, out), or None
    prune_mix : buffer, the share of the projection in Eq. (5); set by :meth:`set_prune_mix`

    Examples
    --------
    >>> layer = NormalizedLinear(3, 2)
    >>> layer.weight.abs().sum(dim=(-2, -1)).allclose(layer.length.abs())
    True
    """

    residual = False  # whether the identity is added to the map
    length: nn.Parameter | None
    bias: nn.Parameter | None
    prune_mix: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        pieces: int = 1,
        *,
        members: tuple[int, ...] = (),
        normalization: Normalization = "l1",
        length: Length = "shared",
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        _check_choice(self, "normalization", normalization, get_args(Normalization))
        _check_choice(self, "length", length, get_args(Length))
        self.normalization = normalization
        rows = {"shared": (1,), "per_row": (out_features,), "none": None}[length]
        self.direction = nn.Parameter(torch.empty(*members, out_features, pieces, in_features))
        self.length = None if rows is None else nn.Parameter(torch.ones(*members, *rows))
        self.bias = nn.Parameter(torch.zeros(*members, out_features)) if bias else None
        self.register_buffer("prune_mix", torch.tensor(0.0))
        # The formula is chosen by this Python value and never by a tensor, so that compile and
        # export see no branch; the buffer only holds the number.
        self._stage: Literal["dense", "mixed", "sparse"] = "dense"
        self._weight_in_use: Tensor | None = None
        self._share_weight = False
        self.reset_parameters(generator)

    @property
    def pieces(self) -> int:
        """The number of pieces of each input coordinate."""
        return self.direction.shape[-2]

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw a new direction, set the length to 1 (0 in a residual block) and the bias to 0."""
        orthogonal_(self.direction, generator)
        if self.normalization == "ball":
            self.direction.div_(row_norm(self.direction)[..., None, None])
        if self.length is not None:
            self.length.fill_(0.0 if self.residual else 1.0)
        if self.bias is not None:
            self.bias.zero_()

    @property
    def weight(self) -> Tensor:
        """The weight in use, of shape (*members, out, pieces, in)."""
        if not self._share_weight:
            return self._make_weight()
        if self._weight_in_use is None:
            self._weight_in_use = self._make_weight()
        return self._weight_in_use

    def _make_weight(self) -> Tensor:
        v: Tensor = self.direction
        if self.normalization in ("ball", "none"):
            return v if self.length is None else v * self.length[..., None, None]
        g = v.new_ones(1) if self.length is None else self.length
        if self._stage == "mixed":
            return mixed_weight(v, g, self.prune_mix)
        if self._stage == "sparse":
            return projected_weight(v, g)
        return fused_weight(v, g, order=_ORDERS[self.normalization])

    @torch.no_grad()
    def set_prune_mix(self, value: float) -> None:
        """Set the share of the projection in the weight, from 0 (dense) to 1 (exactly sparse).

        See Eq. (5).
        """
        if self.normalization != "l1":
            raise ValueError(
                "Pruning by projection needs normalization='l1'. Got "
                f"{self.normalization!r} instead: make the layer with normalization='l1'."
            )
        if not 0 <= value <= 1:
            raise ValueError(f"The 'prune_mix' must be between 0 and 1. Got {value!r} instead.")
        self.prune_mix.fill_(value)
        self._choose_stage()

    def _choose_stage(self) -> None:
        mix = float(self.prune_mix)
        self._stage = "dense" if mix == 0 else "sparse" if mix == 1 else "mixed"

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._choose_stage()

    def split(self, x: Tensor) -> Tensor:
        """Return the flattened pieces of inputs, of shape (..., pieces * in)."""
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Map flattened pieces of shape (..., pieces * in) to (..., out).

        With members, rows of shape (rows, pieces * in) are shared by all and give
        (*members, rows, out), a single row gives (*members, out), and (*members, rows, pieces * in)
        are rows of their own.
        """
        fused = self.normalization in _ORDERS and self._stage == "dense" and not self._share_weight
        if fused and self.length is not None:
            return normalized_linear(
                x,
                self.direction,
                self.length,
                self.bias,
                order=_ORDERS[self.normalization],
            )
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the settings shown by ``print``."""
        *members, n_out, pieces, n_in = self.direction.shape
        shown = f"{n_in}, {n_out}, pieces={pieces}, normalization={self.normalization!r}"
        return f"{shown}, members={tuple(members)}" if members else shown


@contextmanager
def shared_weights(module: nn.Module) -> Iterator[None]:
    """Make the weight of each layer of a module once, however often it is used inside.

    A penalty on the weights and the forward pass then share one normalisation, in both
    directions. Parameters must not change inside.

    Examples
    --------
    >>> layer = NormalizedLinear(3, 2)
    >>> with shared_weights(layer):
    ...     layer.weight is layer.weight
    True
    """
    layers = [layer for layer in module.modules() if isinstance(layer, NormalizedLinear)]
    layers = [layer for layer in layers if not layer._share_weight]  # the rest is shared already
    for layer in layers:
        layer._share_weight = True
    try:
        if getattr(module, "compiled", False):
            _make_weights_together(layers)
        yield
    finally:
        for layer in layers:
            layer._share_weight = False
            layer._weight_in_use = None


def _make_weights_together(layers: list[NormalizedLinear]) -> None:
    for normalization, order in _ORDERS.items():
        parts = [
            (layer, layer.direction, layer.length)
            for layer in layers
            if layer.normalization == normalization
            and layer._stage == "dense"
            and layer.length is not None
        ]
        if parts:
            group, directions, lengths = zip(*parts, strict=True)
            weights = compiled_weights(directions, lengths, order=order)
            for layer, weight in zip(group, weights, strict=True):
                layer._weight_in_use = weight
