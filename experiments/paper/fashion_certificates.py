"""Certified and attacked accuracy of an image classifier when every pixel may move.

Sizes are in the [0, 1] scale of pixels, and images stay images: pixels do not leave their range.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import torch

from psilonnet.certify import (
    Box,
    Effort,
    attack,
    class_margins,
    forward_error,
    input_moves,
    linear_falls,
    local_moves,
)
from psilonnet.nn import AveragedNet

if TYPE_CHECKING:
    from torch import Tensor

    from experiments.cells import Cell
    from psilonnet.nn import PlainNet
    from psilonnet.training import Rows

SIZES = (0.01, 0.03, 0.1)
# Certified accuracy of L-infinity-distance nets, which are built for nothing else, trained on
# all 60,000 images (Zhang and others, ICML 2021, arXiv:2102.05363).
PUBLISHED = {0.1: 0.7923}
NEAR_ROWS = 500  # of the test images, for the local bound and for the attack
LINEAR_ROWS = 200  # of the test images, for linear bounds
RIVALS = 3  # classes with the least margin, which the attack aims at
ROUNDING = 1e-15  # more than the rounding of a box around pixels of at most 1 in size


def certificates(net: PlainNet, rows: Rows) -> list[Cell]:
    """Return one line of accuracies for each size."""
    x, label = rows.x.double(), rows.y[:, 0].long()
    moves = class_moves(net)
    near = slice(0, NEAR_ROWS)
    right = margins(net(x)[0], label) > 0
    lines = []
    for size in SIZES:
        center, radius = box(x, size)
        proved = proved_margins(net, center, radius, label)
        everywhere = (proved > global_margin_moves(moves, radius, label)).all(dim=-1)
        nearby = local_moves(net, center[near], radius[near], against(label[near]))
        safe = everywhere[near] | (proved[near] > nearby).all(dim=-1)
        holds = right.all(dim=-1)[near] & resists(net, center[near], radius[near], label[near])
        lines.append(
            {
                "size": size,
                "rows": len(x),
                "accuracy": _share(right.all(dim=-1)),
                "certified": _share(everywhere),
                "near_rows": int(near.stop if len(x) > near.stop else len(x)),
                "near_accuracy": _share(right.all(dim=-1)[near]),
                "near_certified_global": _share(everywhere[near]),
                "near_certified_local": _share(safe),
                "near_attacked": _share(holds),
            }
        )
    return lines


def linear_certificates(net: PlainNet, rows: Rows) -> list[Cell]:
    """Return what linear bounds add, a line for each size.

    They are asked about the images that survive the attack and that no other bound has proved.
    """
    x, label = rows.x[:LINEAR_ROWS].double(), rows.y[:LINEAR_ROWS, 0].long()
    moves = class_moves(net)
    lines = []
    for size in SIZES:
        center, radius = box(x, size)
        proved = proved_margins(net, center, radius, label)
        everywhere = (proved > global_margin_moves(moves, radius, label)).all(dim=-1)
        nearby = local_moves(net, center, radius, against(label))
        near = everywhere | (proved > nearby).all(dim=-1)
        right = (margins(net(x)[0], label) > 0).all(dim=-1)
        holds = near | (right & resists(net, center, radius, label))
        asked = (holds & ~near).nonzero().squeeze(1)
        begin = perf_counter()
        found = [stays(net, center[[k]], radius[[k]], label[[k]]) for k in asked.tolist()]
        lines.append(
            {
                "size": size,
                "rows": len(x),
                "accuracy": _share(right),
                "certified_global": _share(everywhere),
                "certified_local": _share(near),
                "certified_linear": (int(near.sum()) + sum(found)) / len(x),
                "attacked": _share(holds),
                "asked": len(found),
                "seconds_per_asked": (perf_counter() - begin) / max(1, len(found)),
            }
        )
    return lines


def stays(net: PlainNet, center: Tensor, radius: Tensor, label: Tensor) -> bool:
    """Return whether linear bounds prove that the class of one image is the label in its box."""
    proved, asked = class_margins(net(center)[0], label)
    error = forward_error(net, center, radius.amax(dim=-1))
    falls = linear_falls(AveragedNet.of(net), center, Box.of(radius), asked)
    return bool((proved - 4 * error.unsqueeze(-1) > falls).all())


def _share(found: Tensor) -> float:
    return float(found.double().mean())


def box(x: Tensor, size: float) -> tuple[Tensor, Tensor]:
    """Return centre and radius of all images within a size of each; pixels are in [-1, 1]."""
    low, high = (x - 2 * size).clamp(min=-1), (x + 2 * size).clamp(max=1)
    return (low + high) / 2, (high - low) / 2 + ROUNDING


def margins(outputs: Tensor, label: Tensor) -> Tensor:
    """Return by how much the output of the label exceeds each other; infinite at the label."""
    own = outputs.gather(-1, label.unsqueeze(-1))
    return (own - outputs).scatter(-1, label.unsqueeze(-1), torch.inf)


def proved_margins(net: PlainNet, center: Tensor, radius: Tensor, label: Tensor) -> Tensor:
    """Return the margins at the centre, less the rounding of two outputs at two points."""
    error = forward_error(net, center, radius.amax(dim=-1))
    return margins(net(center)[0], label) - 4 * error.unsqueeze(-1)


def class_moves(net: PlainNet) -> Tensor:
    """Return how far each margin moves per unit of each input, of shape (label, other, in)."""
    classes = net.layers[-1].weight.shape[1]
    pairs = against(torch.arange(classes), classes)
    return input_moves(net, pairs.flatten(0, 1)).reshape(classes, classes, -1)


def against(label: Tensor, classes: int = 10) -> Tensor:
    """Return the combinations of outputs that are margins, of shape (rows, other, out)."""
    eye = torch.eye(classes, dtype=torch.float64)
    return eye[label].unsqueeze(1) - eye


def global_margin_moves(moves: Tensor, radius: Tensor, label: Tensor) -> Tensor:
    """Return the global bound on the moves of the margins of each row in its box: (rows, other)."""
    total = radius.new_empty(len(radius), moves.shape[1])
    for k, own in enumerate(moves):
        total[label == k] = radius[label == k] @ own.mT
    return total * (1 + 1e-12)  # more than the rounding of a sum over the inputs


def resists(net: PlainNet, center: Tensor, radius: Tensor, label: Tensor) -> Tensor:
    """Return whether the attack finds no image in the box that gets one of the nearest classes."""
    margin = margins(net(center)[0], label)
    least = margin.topk(RIVALS, dim=-1, largest=False)
    toward = -against(label).gather(1, least.indices.unsqueeze(-1).expand(-1, -1, 10))
    effort = Effort(climbs=2, stops=0)  # there are too many pixels to move one at a time
    found = attack(net, center, Box.of(radius), toward, enough=least.values, effort=effort).moves
    return (found < least.values).all(dim=-1)
