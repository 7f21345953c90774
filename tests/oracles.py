"""Independent oracles in plain NumPy and Python loops: no torch, nothing of psilonnet.

Weights have the shape ``(..., out, pieces, in)`` as in the library. Each oracle states the
definition it computes and takes the slow, obvious way to it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


# --- Path norms -------------------------------------------------------------------------------


def path_products(
    weights: Sequence[Array],
    *,
    residual: Sequence[bool] = (),
    outputs: Sequence[int] | None = None,
) -> Iterator[tuple[int, int, float]]:
    """Yield ``(output, input, |product of the weights|)`` of every single path, by recursion.

    An edge joins one piece of one coordinate to one unit of the next layer. In a residual block
    each piece of a coordinate has a skip edge of weight 1 besides its weight edge, and the two
    are distinct even where they join the same units.
    """

    def walk(k: int, unit: int) -> Iterator[tuple[int, float]]:
        if k < 0:
            yield unit, 1.0
            return
        w = weights[k]
        skips = any(residual[k : k + 1])
        for t, i in product(range(w.shape[1]), range(w.shape[2])):
            edges = [abs(float(w[unit, t, i]))] + [1.0] * (skips and i == unit)
            for edge in edges:
                for source, rest in walk(k - 1, i):
                    yield source, edge * rest

    last = len(weights) - 1
    for o in range(weights[-1].shape[0]) if outputs is None else outputs:
        for i, value in walk(last, o):
            yield o, i, value


def path_sums(weights: Sequence[Array], *, residual: Sequence[bool] = ()) -> Array:
    """Return the sum over all paths from each input to each output, ``(out, in)``."""
    total = np.zeros((weights[-1].shape[0], weights[0].shape[2]))
    for o, i, value in path_products(weights, residual=residual):
        total[o, i] += value
    return total


def layer_matrix_loops(
    w: Array, *, bound: str, residual: bool = False, outputs: Array | None = None
) -> Array:
    """Return the matrix of one layer ``(out, pieces, in)``, entry by entry from its definition.

    With ``outputs`` of shape ``(combinations, out)`` it is that of combinations of its outputs.
    """
    skip = np.eye(w.shape[2]) if residual else np.zeros((w.shape[0], w.shape[2]))
    if outputs is not None:
        w, skip = np.einsum("co,oti->cti", outputs, w), outputs @ skip
    out, pieces, width = w.shape
    matrix = np.zeros((out, width))
    for o, i in product(range(out), range(width)):
        own = float(skip[o, i])
        column = [float(w[o, t, i]) for t in range(pieces)]
        matrix[o, i] = {
            "original": sum(abs(c) for c in column) + pieces * abs(own),
            "improved": max(abs(c) for c in column) + abs(own),
            "merged": max(abs(c + own) for c in column),
        }[bound]
    return matrix


def path_matrix_loops(
    weights: Sequence[Array],
    *,
    bound: str,
    residual: Sequence[bool] = (),
    outputs: Array | None = None,
) -> Array:
    """Return the product of the layer matrices, the last layer for combinations of outputs."""
    matrix = np.eye(weights[0].shape[2])
    for k, w in enumerate(weights):
        block, asked = any(residual[k : k + 1]), outputs if k == len(weights) - 1 else None
        matrix = layer_matrix_loops(w, bound=bound, residual=block, outputs=asked) @ matrix
    return matrix


# --- Projections and sparsity -----------------------------------------------------------------


def bisection_threshold(magnitudes: Sequence[float], radius: float = 1.0) -> float:
    """Return the tau with ``sum_i max(0, m_i - tau) = radius`` by bisection."""
    low, high = min(magnitudes) - radius, max(magnitudes)
    for _ in range(200):
        middle = (low + high) / 2
        if sum(max(0.0, m - middle) for m in magnitudes) > radius:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def soft_threshold_row(v: Array, *, ball: bool = False) -> Array:
    """Return Alg. 3 for a row ``(pieces, in)`` of any number of pieces, entry by entry."""
    largest = [max(abs(float(c)) for c in column) for column in v.T]
    tau = bisection_threshold(largest)
    if ball:
        tau = max(tau, 0.0)
    result = np.zeros_like(v)
    for index, value in np.ndenumerate(v):
        result[index] = (-1.0 if value < 0 else 1.0) * max(0.0, abs(float(value)) - tau)
    return result


def paper_sign_projection(w: Array, epsilon: float = 1e-8) -> Array:
    """Return Alg. 2 to the letter, with the paper's ``sign(w + epsilon)``."""
    tau = bisection_threshold([abs(float(c)) for c in w])
    return np.maximum(0, np.abs(w) - tau) * np.sign(w + epsilon)


def nearest_row_distance(v: Array, steps: int = 100_000) -> float:
    """Return the least squared distance of a row ``(pieces, 2)`` to ``m_1 + m_2 = 1``.

    With the two maxima ``m`` given, the nearest point clips every entry to ``[-m_i, m_i]``; the
    share of ``m_1`` is then found on a grid. For rows outside of the ball.
    """
    m = np.linspace(0, 1, steps + 1)
    excess = [
        np.maximum(0, np.abs(v[:, i, None]) - share) ** 2 for i, share in enumerate((m, 1 - m))
    ]
    return float(sum(e.sum(axis=0) for e in excess).min())


def entropy_near_sparsity(v: Array) -> float:
    """Return Def. 1 of the paper from the entropy, term by term."""
    total = sum(abs(float(c)) for c in v)
    if total == 0:
        return 1.0
    shares = [abs(float(c)) / total for c in v]
    entropy = -sum(p * np.log(p) for p in shares if p > 0)
    return float(1 - np.exp(entropy) / len(v))


# --- Networks ---------------------------------------------------------------------------------


@dataclass
class Net:
    """A network, or many of one shape on leading axes.

    ``edges`` of shape ``(..., 1, pieces - 1, in)`` are knots on the inputs. Hidden layers are
    "relu" or "crelu"; ``residual`` says which layers are added to their input, none if it is
    empty. The input of the first layer is not activated.
    """

    weights: list[Array]
    biases: list[Array]
    activation: str = "relu"
    residual: Sequence[bool] = ()
    edges: Array | None = None

    @property
    def inputs(self) -> int:
        return self.weights[0].shape[-1]

    @property
    def hidden_pieces(self) -> int:
        return {"relu": 1, "crelu": 2}[self.activation]


def random_net(
    rng: np.random.Generator,
    widths: Sequence[int],
    *,
    activation: str = "relu",
    residual: bool = False,
    knots: int = 1,
    members: tuple[int, ...] = (),
) -> Net:
    """Return random nets with ``knots`` pieces on each input; a third of the weights are 0.

    With ``residual`` the layers between the first and the last are added to their input.
    """
    hidden = {"relu": 1, "crelu": 2}[activation]
    weights, biases = [], []
    for k, (width, out) in enumerate(pairwise(widths)):
        shape = (*members, out, hidden if k else knots, width)
        weights.append(rng.normal(size=shape) * (rng.random(shape) < 2 / 3) / np.sqrt(width))
        biases.append(rng.normal(size=(*members, out)) / 2)
    edges = np.sort(rng.normal(size=(*members, 1, knots - 1, widths[0])), axis=-2)
    blocks = [residual and 0 < k < len(weights) - 1 for k in range(len(weights))]
    return Net(weights, biases, activation, blocks, edges if knots > 1 else None)


def aligned(net: Net) -> Net:
    """Return the net with the signs of its weights removed, and pieces in falling order.

    Far along the positive axis every path of the first pieces pulls the same way, so the bounds
    are nearly attained at any depth: such nets give a test of a bound its power.
    """
    first, *rest = (np.abs(w) for w in net.weights)
    weights = [first, *(-np.sort(-w, axis=-2) for w in rest)]
    return Net(weights, net.biases, net.activation, net.residual, net.edges)


def split(z: Array, activation: str, edges: Array | None = None) -> tuple[Array, Array]:
    """Return the pieces of ``z`` and their slopes, both ``(..., pieces, n)``, piece by piece."""
    if activation == "relu":
        pieces, slopes = [np.maximum(z, 0)], [z > 0]
    elif activation == "crelu":
        pieces, slopes = [np.maximum(z, 0), np.minimum(z, 0)], [z > 0, z <= 0]
    elif edges is None:
        pieces, slopes = [z], [np.ones_like(z)]
    else:
        pieces, slopes = [], []
        infinite = np.full_like(edges[..., 0, :], np.inf)
        walls = [-infinite, *np.moveaxis(edges, -2, 0), infinite]
        for low, high in pairwise(walls):
            pieces.append(np.clip(z, low, high) - np.clip(np.zeros_like(z), low, high))
            slopes.append((z >= low) & (z < high))
    return np.stack(pieces, axis=-2), np.stack(slopes, axis=-2).astype(float)


def forward(net: Net, x: Array, depth: int | None = None) -> tuple[Array, Array]:
    """Return outputs ``(..., rows, out)`` and Jacobians ``(..., rows, in, out)`` at ``x``.

    With ``depth`` they are those of that many layers only, before the next activation.
    """
    z, rows = x, x.shape[-2]
    jacobian = np.broadcast_to(np.eye(net.inputs), (*x.shape, net.inputs))
    for k, (w, b) in enumerate(zip(net.weights[:depth], net.biases[:depth], strict=True)):
        pieces, slopes = split(z, net.activation if k else "inputs", None if k else net.edges)
        flat = np.swapaxes(w.reshape(*w.shape[:-2], -1), -1, -2)  # (..., pieces * in, out)
        moved = jacobian[..., None, :] * slopes[..., None, :, :]  # (..., rows, in, pieces, n)
        moved = moved.reshape(*x.shape[:-2], rows * net.inputs, -1) @ flat
        moved = moved.reshape(*x.shape, -1)
        value = pieces.reshape(*z.shape[:-1], -1) @ flat + b[..., None, :]
        skips = any(net.residual[k : k + 1])
        z, jacobian = (z + value, jacobian + moved) if skips else (value, moved)
    return z, jacobian


# --- Lipschitz constants from L-infinity to L1 ------------------------------------------------


def matrix_norm(jacobian: Array) -> tuple[Array, Array]:
    """Return ``max ||d J||_1 over ||d||_inf = 1`` of ``(..., in, out)``, and that ``d``.

    The maximum is over the corners of the dual ball: a sign for each output.
    """
    signs = np.array(list(product((1.0, -1.0), repeat=jacobian.shape[-1])))  # (2^out, out)
    pulled = jacobian @ signs.T  # (..., in, 2^out)
    best = np.abs(pulled).sum(axis=-2).argmax(axis=-1)
    chosen = np.take_along_axis(pulled, best[..., None, None], axis=-1)[..., 0]
    return np.abs(chosen).sum(axis=-1), np.where(chosen < 0, -1.0, 1.0)


def search_slope(
    net: Net, rng: np.random.Generator, *, starts: int = 64, steps: int = 30
) -> tuple[Array, Array]:
    """Climb the slope from many starts: a LOWER check of the Lipschitz constant.

    Each step moves every point along the sign gradient of its steepest combination of outputs,
    with noise, and keeps the move where the slope does not fall. Returns the largest slope
    seen in a Jacobian and the largest true quotient ``|f(a) - f(b)|_1 / |a - b|_inf``, per net.
    """
    members = net.weights[0].shape[:-3]
    x = 2 * rng.normal(size=(*members, starts, net.inputs))
    slope, direction = matrix_norm(forward(net, x)[1])
    for step in range(steps):
        size = 2.0 * 0.85**step
        ahead = rng.choice((-1.0, 0.0, 1.0), size=(*x.shape[:-1], 1))
        moved = x + size * (ahead * direction + rng.normal(size=x.shape))
        new_slope, new_direction = matrix_norm(forward(net, moved)[1])
        better = new_slope >= slope
        x = np.where(better[..., None], moved, x)
        slope = np.where(better, new_slope, slope)
        direction = np.where(better[..., None], new_direction, direction)
    quotients = [quotient(net, x - h * direction, x + h * direction) for h in (1e-4, 0.1, 3.0)]
    quotients.append(quotient(net, x, np.roll(x, 1, axis=-2)))
    return slope.max(axis=-1), np.max(quotients, axis=(0, -1))


def quotient(net: Net, a: Array, b: Array) -> Array:
    """Return ``|f(a) - f(b)|_1 / |a - b|_inf`` for each pair of rows."""
    moved = np.abs(forward(net, a)[0] - forward(net, b)[0]).sum(axis=-1)
    return moved / np.maximum(np.abs(a - b).max(axis=-1), 1e-300)


def exact_lipschitz_1d(net: Net) -> float:
    """Return the EXACT Lipschitz constant of one net with one input.

    The net is linear between kinks. Layer by layer, each new kink is the zero of a hidden unit
    on a piece where that unit is linear; the slope of every piece is then measured.
    """
    kinks = [] if net.edges is None else sorted(set(net.edges.ravel().tolist()))
    for depth in range(1, len(net.weights)):
        zeros: set[float] = set()
        for low, high in _intervals(kinks):
            inside = _inside(low, high)
            z, slope = forward(net, np.array([[inside]]), depth)
            for value, rise in zip(z.ravel(), slope.ravel(), strict=True):
                if rise != 0 and low < inside - value / rise < high:
                    zeros.add(float(inside - value / rise))
        kinks = sorted({*kinks, *zeros})
    middles = np.array([[_inside(low, high)] for low, high in _intervals(kinks)])
    return float(matrix_norm(forward(net, middles)[1])[0].max())


def _intervals(kinks: list[float]) -> list[tuple[float, float]]:
    return list(zip([-np.inf, *kinks], [*kinks, np.inf], strict=True))


def _inside(low: float, high: float) -> float:
    if np.isinf(low) and np.isinf(high):
        return 0.0
    if np.isinf(low):
        return high - 1.0
    return low + 1.0 if np.isinf(high) else (low + high) / 2


def all_patterns_lipschitz(net: Net) -> float:
    """Return the largest slope over ALL patterns of pieces, realisable or not: an UPPER check.

    Every pattern picks one piece for each input and each hidden unit (for ReLU also: none), so
    the net is linear; the true constant is the maximum over the realisable patterns only.
    """
    columns = [
        [*range(w.shape[-2]), *([-1] * (k > 0 and net.activation == "relu"))]
        for k, w in enumerate(net.weights)
    ]
    choices = [
        list(product(c, repeat=w.shape[-1])) for c, w in zip(columns, net.weights, strict=True)
    ]
    largest = 0.0
    for pattern in product(*choices):
        matrix = np.eye(net.inputs)
        for k, (w, pick) in enumerate(zip(net.weights, pattern, strict=True)):
            layer = np.stack([w[:, t, i] * (t >= 0) for i, t in enumerate(pick)], axis=1)
            if any(net.residual[k : k + 1]):
                layer = layer + np.eye(w.shape[-1])
            matrix = layer @ matrix
        largest = max(largest, float(matrix_norm(matrix.T)[0]))
    return largest
