"""How tight and how useful the certificates are, on the twelve tables.

Four networks of three hidden layers (256 wide, 3,000 steps) per table, each at the strength with
the least validation loss: P-Net, P-ResNet, S-Net, and a plain network without regularisation; and
"psilonnet", the average that our estimators make by default of the training rows alone. Moves are
in standard deviations of the encoded columns, all columns at once.

    python -m experiments.comparison.certificates --data DIR [--cluster local]
"""

from __future__ import annotations

import json
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from experiments.cells import experiment_arguments, run_study, write_csv
from experiments.data import TWELVE, load_table, make_parts, reported_loss
from experiments.frames import fit_ours, make_frames, mean_loss
from experiments.grid import make_run, start_net
from psilonnet.certify import Box, attack, input_moves, local_moves
from psilonnet.functional import path_norm, product_bound
from psilonnet.nn import AveragedNet
from psilonnet.tables import read_columns
from psilonnet.training import STRENGTHS, Narrowing, Plan, Rows, repeat_member, take_members

if TYPE_CHECKING:
    from experiments.cells import Cell
    from experiments.data import Parts, Table
    from experiments.frames import Part
    from psilonnet.nn import Network

MODELS = {"P-Net": STRENGTHS, "P-ResNet": STRENGTHS, "S-Net": STRENGTHS, "S-Net without WN": (0.0,)}
DEFAULT = "psilonnet"
PLAN = Plan(steps=3000, evaluate_every=50, matmul_precision="medium", progress=False)
SIZES = (0.01, 0.05, 0.1, 0.25)
ROWS = 500
TOLERANCE = 1.0  # quartile deviations; a regression within it counts as right


def train(variant: str, table: Table, parts: Parts, plan: Plan = PLAN) -> tuple[Network, float]:
    """Return the network with the least validation loss, and its strength."""
    strengths = MODELS[variant]
    net = repeat_member(start_net(variant, parts, seed=0, width=256), len(strengths))
    run = make_run(net, variant, table, parts, strengths, plan, callbacks=[Narrowing()])
    run.train()
    losses = run.history.last("valid_loss")
    best = min(run.members, key=lambda member: float(losses[member]))
    return take_members(run.net, run.members.index(best)), strengths[best]


def encoded_rows(model: Any, part: Part) -> Rows:
    """Return rows as the networks of an estimator see them."""
    x = torch.as_tensor(model.encoder_.encode(read_columns(part.x)))
    y = part.y if hasattr(model, "classes_") else model.target_.encode(part.y[:, None])[:, 0]
    return Rows(x, torch.as_tensor(y).reshape(-1, 1))


def margins_of(
    task: str, outputs: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return how far each output may move and still be right, and the direction that is worst.

    The margin is negative where the output is wrong already. Both have shape (rows,).
    """
    if task == "classification":
        side = torch.where(target > 0.5, 1.0, -1.0).to(outputs.dtype)
        return outputs * side, -side
    off = outputs - target
    return TOLERANCE - off.abs(), torch.where(off >= 0, 1.0, -1.0).to(outputs.dtype)


def bounds_of(net: Network | AveragedNet) -> Cell:
    """Return looser bounds than ours: the product of the layers', the path norm, the improved one.

    Those of an average are averaged, of weights in which skips and slopes of maps are folded in.
    """
    if isinstance(net, AveragedNet):
        layers = [[layer.weight for layer in part.net.layers] for part in net.parts]
        for own, part in zip(layers, net.parts, strict=True):
            own[0] = own[0] * part.columns.slope
        shares, residual = [part.weight for part in net.parts], None
    else:
        layers = [[weight.detach().double() for weight in net.weights()]]
        shares, residual = [torch.ones((), dtype=torch.float64)], net.residual
    ways = {
        "product": partial(product_bound, residual=residual),
        "path_norm": partial(path_norm, residual=residual),
        "improved": partial(path_norm, residual=residual, bound="improved"),
    }
    return {
        name: sum(
            float((way(own) * share).sum()) for own, share in zip(layers, shares, strict=True)
        )
        for name, way in ways.items()
    }


def measure(given: Network | AveragedNet, task: str, rows: Rows) -> Cell:
    """Return bounds, what a search finds, and certified and attacked accuracies."""
    net = AveragedNet.of(given)
    x, y = rows.x[:ROWS].double(), rows.y[:ROWS, 0].double()
    one = torch.ones(1, 1, dtype=torch.float64)
    asked = one.expand(len(x), 1, 1)
    everywhere = float(input_moves(net, one).sum())
    margins, worst = margins_of(task, net(x)[:, 0], y)
    cell: Cell = {
        **bounds_of(given),
        "merged": everywhere,
        "right": float((margins > 0).double().mean()),
        "median_radius": float(margins.clamp(min=0).median()) / everywhere,
    }
    for size in SIZES:
        box = torch.full_like(x, size)
        near = local_moves(net, x, box, asked)[:, 0]
        harm = worst.reshape(-1, 1, 1)
        found = attack(net, x, Box.of(box), harm).moves[:, 0]
        cell[f"local_{size}"] = float(near.max()) / size
        cell[f"found_{size}"] = float(found.max()) / size
        cell[f"certified_{size}"] = float((near < margins).double().mean())
        cell[f"certified_global_{size}"] = float((size * everywhere < margins).double().mean())
        cell[f"attacked_{size}"] = float((found < margins).double().mean())
    return cell


def compute(cell: Cell, *, data: str) -> Cell:
    """Train and measure one model on one table."""
    table = load_table(cell["dataset"], data)
    if cell["model"] == DEFAULT:
        frames = make_frames(table, seed=0)
        model = fit_ours(table.task, frames, "user")
        loss = mean_loss(table.task, model, frames["test"])
        found = measure(model.net_, table.task, encoded_rows(model, frames["test"]))
        return {**_head(table, loss, model.reg_strength_), **found}
    parts = make_parts(table, seed=0)
    net, strength = train(cell["model"], table, parts)
    with torch.no_grad():
        outputs = net(parts.test.x)
    if table.task == "regression":
        loss = float((outputs - parts.test.y).square().mean())
    else:
        loss = float(torch.nn.functional.binary_cross_entropy_with_logits(outputs, parts.test.y))
    return {**_head(table, loss, strength), **measure(net, table.task, parts.test)}


def _head(table: Table, loss: float, strength: float) -> Cell:
    loss = reported_loss(table.task, loss)
    return {"task": table.task, "test_loss": loss, "reg_strength": strength}


def main() -> None:
    """Run all cells and write ``certificates.csv``."""
    arguments = experiment_arguments("Certificates on real tables.")
    models = (*MODELS, DEFAULT)
    cells = [{"dataset": name, "model": model} for name in TWELVE for model in models]
    results = run_study("certificates", compute, cells, arguments)
    if arguments.only:
        return
    write_csv([cell | results[cell] for cell in cells], arguments.results / "certificates.csv")
    figures: dict[str, float] = {}
    for model in models:
        own = [results[cell] for cell in cells if cell["model"] == model]
        name = model.lower().replace(" ", "_").replace("-", "_")
        figures[f"{name}_merged_over_found"] = median(r["merged"] / r["found_0.01"] for r in own)
        figures[f"{name}_median_radius"] = median(r["median_radius"] for r in own)
        figures[f"{name}_certified_0.1"] = median(r["certified_0.1"] for r in own)
        figures[f"{name}_attacked_0.1"] = median(r["attacked_0.1"] for r in own)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
