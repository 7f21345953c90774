"""How tight and how useful the certificates are, on the twelve tables.

Four networks of three hidden layers (256 wide, 3,000 steps) per table, each at the strength with
the least validation loss: P-Net, P-ResNet, S-Net, and a plain network without regularisation; and
"psilonnet", the average that our estimators make by default of the training rows alone, chosen
with selection="balanced" and "provable" from one training. Moves are in standard deviations of the
encoded columns, all columns at once. P-Net and psilonnet come first, table by table.

    python -m experiments.comparison.certificates --data DIR [--so-far] [--cluster local]
"""

from __future__ import annotations

from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from experiments.cells import experiment_arguments, missing_note, run_study, write_csv
from experiments.data import TWELVE, load_table, make_parts, reported_loss
from experiments.frames import fit_ours, make_frames, mean_loss
from experiments.grid import make_run, start_net
from psilonnet.certify import Box, Certifier, attack, input_moves, local_moves
from psilonnet.functional import path_norm, product_bound
from psilonnet.nn import AveragedNet
from psilonnet.tables import read_columns
from psilonnet.training import STRENGTHS, Narrowing, Plan, Rows, repeat_member, take_members

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

    from experiments.cells import Cell
    from experiments.data import Parts, Table
    from experiments.frames import Part
    from experiments.gather import StudyResults
    from psilonnet.nn import Network

MODELS = {"P-Net": STRENGTHS, "P-ResNet": STRENGTHS, "S-Net": STRENGTHS, "S-Net without WN": (0.0,)}
DEFAULT = "psilonnet"
SELECTIONS = ("balanced", "provable")
FIRST = ("P-Net", DEFAULT)  # of the models
METHODS = ("global", "local", "linear")
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


def margins_of(task: str, outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
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


def proven(
    net: AveragedNet, task: str, rows: tuple[Tensor, Tensor], size: float, method: str
) -> Tensor:
    """Return True for the rows that are right and proven to stay so within a size."""
    x, y = rows
    certifier = Certifier(net, progress=False)
    if task == "classification":
        stays = torch.from_numpy(certifier.is_robust(x, size, method=method))
        return stays & (margins_of(task, net(x)[:, 0], y)[0] > 0)
    low, high = (end[:, 0] for end in certifier.output_range(x, size, method=method))
    return torch.from_numpy((low > y.numpy() - TOLERANCE) & (high < y.numpy() + TOLERANCE))


def measure(given: Network | AveragedNet, task: str, rows: Rows) -> Cell:
    """Return bounds, what the attack finds, and certified and attacked accuracies.

    Each method is asked about the rows that the faster ones left open, the slowest only about those
    of them that survive the attack: it can prove no others.
    """
    net = AveragedNet.of(given)
    x, y = rows.x[:ROWS].double(), rows.y[:ROWS, 0].double()
    one = torch.ones(1, 1, dtype=torch.float64)
    everywhere = float(input_moves(net, one).sum())
    margins, worst = margins_of(task, net(x)[:, 0], y)
    cell: Cell = {
        **bounds_of(given),
        "merged": everywhere,
        "rows": len(x),
        "right": _share(margins > 0),
        "median_radius": float(margins.clamp(min=0).median()) / everywhere,
    }
    for size in SIZES:
        box = torch.full_like(x, size)
        near = local_moves(net, x, box, one.expand(len(x), 1, 1))[:, 0]
        harm = attack(net, x, Box.of(box), worst.reshape(-1, 1, 1)).moves[:, 0]
        cell[f"local_{size}"] = float(near.max()) / size
        cell[f"found_{size}"] = float(harm.max()) / size
        survives = harm < margins
        known = torch.zeros_like(survives)
        for method in METHODS:
            open_ = ~known & survives if method == METHODS[-1] else ~known
            left = open_.nonzero().squeeze(1)
            begin = perf_counter()
            if len(left):
                known[left] = proven(net, task, (x[left], y[left]), size, method)
            cell[f"{method}_proven_{size}"] = _share(known)
            cell[f"{method}_asked_{size}"] = len(left)
            cell[f"{method}_seconds_{size}"] = perf_counter() - begin
        cell[f"attacked_{size}"] = _share(survives)
    return cell


def _share(found: Tensor) -> float:
    return float(found.double().mean())


def compute(cell: Cell, *, data: str) -> Cell:
    """Train and measure the models of a cell; each is a line."""
    table = load_table(cell["dataset"], data)
    if cell["model"] == DEFAULT:
        return {"lines": _default_lines(table)}
    parts = make_parts(table, seed=0)
    net, strength = train(cell["model"], table, parts)
    with torch.no_grad():
        outputs = net(parts.test.x)
    if table.task == "regression":
        loss = float((outputs - parts.test.y).square().mean())
    else:
        loss = float(torch.nn.functional.binary_cross_entropy_with_logits(outputs, parts.test.y))
    head = _head(cell["model"], table, loss, strength)
    return {"lines": [{**head, **measure(net, table.task, parts.test)}]}


def _default_lines(table: Table) -> list[Cell]:
    """Return a line for each selection from one training of the default."""
    frames = make_frames(table, seed=0)
    fitted = fit_ours(table.task, frames, "user")
    lines = []
    for selection in SELECTIONS:
        model = fitted.with_selection(selection)
        loss = mean_loss(table.task, model, frames["test"])
        head = _head(f"{DEFAULT} {selection}", table, loss, model.reg_strength_)
        rows = encoded_rows(model, frames["test"])
        lines.append({**head, **measure(model.net_, table.task, rows)})
    return lines


def _head(model: str, table: Table, loss: float, strength: float) -> Cell:
    loss = reported_loss(table.task, loss)
    return {"model": model, "task": table.task, "test_loss": loss, "reg_strength": strength}


def all_cells() -> list[Cell]:
    """Return all cells, those of the models that are asked about most first."""
    others = [model for model in MODELS if model not in FIRST]
    pairs = [(name, model) for models in (FIRST, others) for name in TWELVE for model in models]
    return [{"dataset": name, "model": model, "proofs": "linear"} for name, model in pairs]


def ratios(lines: list[Cell]) -> dict[str, float]:
    """Return for each size and method the median of what is proven over what survives."""
    return {
        f"{method}_{size}": median(
            line[f"{method}_proven_{size}"] / line[f"attacked_{size}"]
            for line in lines
            if line[f"attacked_{size}"] > 0
        )
        for size in SIZES
        for method in METHODS
    }


def write_report(cells: list[Cell], results: StudyResults, path: Path) -> None:
    """Write what is finished as a table, with a note of what is not."""
    lines = [line for cell in cells if cell in results for line in results[cell]["lines"]]
    of: dict[str, list[Cell]] = {
        model: [] for model in dict.fromkeys(line["model"] for line in lines)
    }
    for line in lines:
        of[line["model"]].append(line)
    sides = ["surviving the attack", *METHODS]
    words = ["# Shares of the rows that are right and proven to stay so: medians over the tables\n"]
    words += [missing_note(cells, results)]
    words += _head_lines(["model", "tables", "right", *(_titled(size, sides) for size in SIZES)])
    for model, own in of.items():
        shown = [_medians(own, ["right"]), *(_medians(own, _shares_at(size)) for size in SIZES)]
        words.append(_line([model, str(len(own)), *shown]))
    words += ["\n# The same over what survives the attack: medians of the ratios\n"]
    words += _head_lines(["model", "tables", *(_titled(size, METHODS) for size in SIZES)])
    for model, own in of.items():
        found = ratios(own)
        shown = [" / ".join(f"{found[f'{m}_{size}']:.2f}" for m in METHODS) for size in SIZES]
        words.append(_line([model, str(len(own)), *shown]))
    path.write_text("\n".join(words) + "\n", encoding="utf-8")


def _titled(size: float, sides: Sequence[str]) -> str:
    return f"{size}: {' / '.join(sides)}"


def _shares_at(size: float) -> list[str]:
    return [f"attacked_{size}", *(f"{method}_proven_{size}" for method in METHODS)]


def _medians(lines: list[Cell], names: Sequence[str]) -> str:
    return " / ".join(f"{median(line[name] for line in lines):.2f}" for name in names)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head_lines(cells: Sequence[str]) -> list[str]:
    return [_line(cells), "|---" * len(cells) + "|"]


def main() -> None:
    """Run all cells; write ``certificates.md``, and ``certificates.csv`` if they are all there."""
    arguments = experiment_arguments("Certificates on real tables.", so_far=True)
    cells = all_cells()
    results = run_study("certificates", compute, cells, arguments)
    if arguments.only:
        return
    write_report(cells, results, arguments.results / "certificates.md")
    if all(cell in results for cell in cells):
        lines = [{"dataset": c["dataset"], **line} for c in cells for line in results[c]["lines"]]
        write_csv(lines, arguments.results / "certificates.csv")


if __name__ == "__main__":
    main()
