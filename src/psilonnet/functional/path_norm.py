"""The 1-path-norm and its relatives: bounds on the Lipschitz constant from L-infinity to L1.

A network is a list of weights ``[W_1, ..., W_K]``, each of shape ``(..., out, pieces, in)``.
``residual`` says of each layer whether it is a residual block, to which the identity is added: in
Def. 2 all but the first and the last, but any square layer may be one. Three matrices may stand for
a layer in the product:

==============  ==================================  ====================================
bound           a layer                             a residual block
==============  ==================================  ====================================
``"original"``  ``sum_t |W_t|``                     ``s I + sum_t |W_t|``
``"improved"``  ``max_t |W_t|``                     ``I + max_t |W_t|``
``"merged"``    ``max_t |W_t|``                     ``max_t |I + W_t|``
==============  ==================================  ====================================

Each line is at most the one above. The last one holds for blocks whose pieces sum to their
coordinate (CReLU, not a single ReLU). Biases move no difference of two outputs and are ignored.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from psilonnet.functional.pieces import largest_piece

Bound = Literal["original", "improved", "merged"]


def _skip(w: Tensor, residual: bool | Tensor) -> Tensor | None:
    """Return the matrix that is added to a layer beside its weights, if any."""
    if isinstance(residual, Tensor):
        return residual
    if not residual:
        return None
    if w.shape[-3] != w.shape[-1]:
        raise ValueError(
            "A layer to which the identity is added has as many outputs as inputs. "
            f"Got {w.shape[-3]} outputs and {w.shape[-1]} inputs instead."
        )
    return torch.eye(w.shape[-1], dtype=w.dtype, device=w.device)


def original_matrix(w: Tensor, *, residual: bool | Tensor = False) -> Tensor:
    """Return ``sum_t |W_t|``: every piece is a path of its own, and so is the skip of each.

    Skip and weight paths are distinct, as in Theorem 2; one factor holds them all, so the
    2^K paths of a residual net are summed in K products.
    """
    total, skip = w.abs().sum(dim=-2), _skip(w, residual)
    return total if skip is None else total + w.shape[-2] * skip.abs()


def improved_matrix(w: Tensor, *, residual: bool | Tensor = False) -> Tensor:
    """Return ``max_t |W_t|``: together the pieces move no farther than the coordinate.

    Implements Eq. (11), one factor of it, for any number of pieces.
    """
    largest, skip = largest_piece(w), _skip(w, residual)
    return largest if skip is None else largest + skip.abs()


def merged_matrix(w: Tensor, *, residual: bool | Tensor = False) -> Tensor:
    """Return ``max_t |W_t|``, with the identity merged into every piece of a residual block.

    The pieces of a coordinate sum to it, so the skip is a weight of 1 on each of them. That is
    so for CReLU and for knots, but not for a single ReLU: its residual block has no merged bound.
    """
    skip = _skip(w, residual)
    return largest_piece(w if skip is None else w + skip.unsqueeze(-2))


_MATRICES = {"original": original_matrix, "improved": improved_matrix, "merged": merged_matrix}


def layer_matrix(w: Tensor, *, bound: Bound, residual: bool | Tensor = False) -> Tensor:
    """Return the non-negative matrix that stands for a layer in a bound.

    Parameters
    ----------
    w : Tensor of shape (..., out, pieces, in)
    bound : {"original", "improved", "merged"}
    residual : bool, or Tensor of shape (..., out, in)
        Whether the identity is added to the layer, or what else is: its combinations of outputs
        if ``w`` holds combinations of the rows of a block.

    Returns
    -------
    Tensor of shape (..., out, in)
    """
    if bound not in _MATRICES:
        raise ValueError(f"The 'bound' must be one of {sorted(_MATRICES)}. Got {bound!r} instead.")
    return _MATRICES[bound](w, residual=residual)


def _flags(residual: Sequence[bool] | None, layers: int) -> list[bool]:
    """Return for each layer whether the identity is added to it; nowhere if nothing is given."""
    if residual is None:
        return [False] * layers
    if isinstance(residual, bool) or len(residual) != layers:
        raise ValueError(
            f"The 'residual' must say of each of the {layers} layers whether the identity is added "
            f"to it. Got {residual!r} instead: give one bool for each layer, as net.residual does."
        )
    return list(residual)


def _matrices(
    weights: Sequence[Tensor],
    residual: Sequence[bool] | None,
    bound: Bound,
    outputs: Tensor | None,
) -> list[Tensor]:
    """Return the matrices of all layers, the last one for the given combinations of outputs."""
    if not weights:
        raise ValueError("A network needs at least one weight. Got an empty sequence instead.")
    *rest, last = weights
    *flags, added = _flags(residual, len(weights))
    matrices = [
        layer_matrix(w, bound=bound, residual=flag) for w, flag in zip(rest, flags, strict=True)
    ]
    if outputs is None:
        return [*matrices, layer_matrix(last, bound=bound, residual=added)]
    combined = outputs @ last.flatten(-2)
    combined = combined.reshape(*combined.shape[:-1], *last.shape[-2:])
    return [*matrices, layer_matrix(combined, bound=bound, residual=outputs if added else False)]


def path_matrix(
    weights: Sequence[Tensor],
    *,
    residual: Sequence[bool] | None = None,
    bound: Bound = "original",
    outputs: Tensor | None = None,
) -> Tensor:
    """Return how far each input can move each output.

    It is ``|W_K| ... |W_1|``.

    Parameters
    ----------
    weights : sequence of Tensor of shape (..., out, pieces, in)
    residual : sequence of bool, optional
        Of each layer, whether the identity is added to it; to none by default.
    bound : {"original", "improved", "merged"}
    outputs : Tensor of shape (..., combinations, out), optional
        Linear combinations of the outputs to bound instead of the outputs themselves, such as
        the row ``e_a - e_b`` for the margin between two classes.

    Returns
    -------
    Tensor of shape (..., out or combinations, in)
    """
    first, *rest = _matrices(weights, residual, bound, outputs)
    product = first
    for matrix in rest:
        product = matrix @ product
    return product


def path_mass(
    weights: Sequence[Tensor],
    *,
    residual: Sequence[bool] | None = None,
    bound: Bound = "original",
    outputs: Tensor | None = None,
) -> Tensor:
    """Return the share of each input in the path norm.

    It is ``1' |W_K| ... |W_1|``.

    Parameters
    ----------
    weights, residual, bound, outputs
        As in :func:`path_matrix`.

    Returns
    -------
    Tensor of shape (..., in)
    """
    *rest, last = _matrices(weights, residual, bound, outputs)
    mass = last.sum(dim=-2)  # (..., in of the layer)
    for matrix in reversed(rest):
        mass = (mass.unsqueeze(-2) @ matrix).squeeze(-2)
    return mass


def piece_mass(
    weights: Sequence[Tensor],
    *,
    residual: Sequence[bool] | None = None,
    bound: Bound = "merged",
    inputs: Tensor | None = None,
) -> Tensor:
    """Return how far the outputs move, summed, per unit of a single piece of an input.

    It is ``c[t] = 1' |W_K| ... |W_2| |W_1[t]|``: the masses of the layers above times the weights
    of that piece, without a maximum over the pieces of the first layer. The sign of a slope rests
    on it: at any point only one piece of an input moves.

    Parameters
    ----------
    weights, residual, bound
        As in :func:`path_matrix`. The identity of a first layer that is residual is merged.
    inputs : Tensor of indices, optional
        Of which inputs; of all by default.

    Returns
    -------
    Tensor of shape (..., pieces, in)

    Examples
    --------
    >>> first = torch.tensor([[[1.0], [-3.0]]])  # one neuron on two pieces of one input
    >>> piece_mass([first, torch.tensor([[[2.0]]])])
    tensor([[2.],
            [6.]])
    """
    flags = _flags(residual, len(weights))
    first, *rest = weights
    skip = _skip(first, flags[0])
    w = first if skip is None else first + skip.unsqueeze(-2)
    w = (w if inputs is None else w[..., inputs]).abs()
    if not rest:
        return w.sum(dim=-3)
    above = path_mass(rest, residual=flags[1:], bound=bound)  # (..., out of the first layer)
    mass = (above.unsqueeze(-2) @ w.flatten(-2)).squeeze(-2)
    return mass.reshape(*mass.shape[:-1], *w.shape[-2:])


def path_norm(
    weights: Sequence[Tensor],
    *,
    residual: Sequence[bool] | None = None,
    bound: Bound = "original",
    outputs: Tensor | None = None,
) -> Tensor:
    """Return the 1-path-norm, or one of the tighter bounds.

    It is ``P_1 = 1' |W_K| ... |W_1| 1``.

    Implements Eq. (7). Implements Eq. (14) when the weights are ``diag(g_k) V_k``.

    Parameters
    ----------
    weights, residual, bound, outputs
        As in :func:`path_matrix`.

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> w = torch.tensor([[1.0, -2.0], [0.0, 3.0]]).unsqueeze(-2)
    >>> path_norm([w, w])
    tensor(18.)
    """
    mass = None
    for matrix in _matrices(weights, residual, bound, outputs):
        mass = matrix.sum(dim=-1) if mass is None else (matrix @ mass.unsqueeze(-1)).squeeze(-1)
    assert mass is not None
    return mass.sum(dim=-1)


def product_bound(
    weights: Sequence[Tensor],
    *,
    residual: Sequence[bool] | None = None,
    bound: Bound = "original",
) -> Tensor:
    """Return the product of the layers' own bounds, ``sum |W_K| * prod_k ||W_k||_inf``.

    Implements Eq. (8), its right side. The last factor is the sum of all entries: with the
    induced norm the inequality fails for several outputs (Deviation D3, PAPER.md).

    Parameters
    ----------
    weights, residual, bound
        As in :func:`path_matrix`.

    Returns
    -------
    Tensor of shape (...)
    """
    *rest, last = _matrices(weights, residual, bound, None)
    product = last.sum(dim=(-2, -1))
    for matrix in rest:
        product = product * matrix.sum(dim=-1).amax(dim=-1)
    return product


def add_bias_neuron(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    *,
    residual: Sequence[bool] | None = None,
) -> list[Tensor]:
    """Return weights in which each bias is the weight of an extra input 0 that is always 1.

    Implements Eq. (13). Column 0 of the path matrix of the result belongs to a constant, so the
    bound is the sum of the others: the biases drop out.

    Parameters
    ----------
    weights : sequence of Tensor of shape (..., out, pieces, in)
    biases : sequence of Tensor of shape (..., out)
    residual : sequence of bool, optional
        As in :func:`path_matrix`. In a residual block the skip already carries the constant on.

    Returns
    -------
    list of Tensor of shape (..., out + 1, pieces, in + 1)
        The last one has out rows, unless it is a block: the constant is then its output 0.
    """
    flags = _flags(residual, len(weights))
    augmented = []
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        others = b.new_zeros(*b.shape, w.shape[-2] - 1)  # the constant is in the first piece only
        column = torch.cat((b.unsqueeze(-1), others), dim=-1).unsqueeze(-1)
        w_hat = torch.cat((column, w), dim=-1)  # (..., out, pieces, 1 + in)
        if k < len(weights) - 1 or flags[k]:
            row = torch.zeros_like(w_hat[..., :1, :, :])
            row[..., 0, 0, 0] = float(not flags[k])
            w_hat = torch.cat((row, w_hat), dim=-3)
        augmented.append(w_hat)
    return augmented


def closed_form(lengths: Sequence[Tensor], *, residual: Sequence[bool] | None = None) -> Tensor:
    """Return the path norm of a net with L1-normalised rows and shared lengths, in O(K).

    Implements Eq. (15), ``||g_K||_1 prod_{k<K} |g_k|``; a residual block counts as ``1 + |g_k|``:
    Implements Eq. (16), ``||g_K||_1 |g_1| prod_{1<k<K} (1 + |g_k|)``.

    Parameters
    ----------
    lengths : sequence of Tensor of shape (..., 1), the last one of shape (..., out)
    residual : sequence of bool, optional
        As in :func:`path_matrix`.

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> closed_form([torch.tensor([2.0]), torch.tensor([-3.0]), torch.tensor([1.0, -1.0])])
    tensor(12.)
    """
    if not lengths:
        raise ValueError("A network needs at least one length. Got an empty sequence instead.")
    *rest, last = lengths
    if any(g.shape[-1] != 1 for g in rest):
        raise ValueError(
            "A closed form needs one shared length in each layer but the last. Got "
            f"{[g.shape[-1] for g in rest]} lengths instead: take path_norm of the weights."
        )
    *flags, added = _flags(residual, len(lengths))
    total = (last.abs() + 1 if added else last.abs()).sum(dim=-1)
    layers = [g for g, flag in zip(rest, flags, strict=True) if not flag]
    blocks = [g for g, flag in zip(rest, flags, strict=True) if flag]
    if layers:
        total = total * torch.cat(layers, dim=-1).abs().prod(dim=-1)
    if blocks:
        total = total * (1 + torch.cat(blocks, dim=-1).abs()).prod(dim=-1)
    return total
