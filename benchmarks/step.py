"""One training step of each variant over the same network with plain weights.

A step is forward, penalty, backward and fused Adam, in float32 on one thread. The reference
shares every line (splitting, skip, loss, optimiser) except normalisation and penalty. Shapes are
the paper's: an MLP 24-500-500-500-1 on 400 rows, and a residual net with 784 inputs, 10 hidden
layers of 500 and 10 classes on 200 rows.

    python -m benchmarks.step [--quick | --tiny]
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.figures import print_figures
from experiments.timing import interleaved
from psilonnet.nn import (
    VARIANTS,
    Network,
    PSiLONNet,
    PSiLONResNet,
    has_closed_form,
    make_net,
    path_norm_penalty,
    shared_weights,
)
from psilonnet.training import project_directions_

Step = Callable[[], None]
PAPER = {"L1-IB": 1.25, "L2-IB": 1.25, "L1-OB": 1.35, "L2-OB": 1.35, "S": 1.10, "Pj": 1.00}


def make_step(
    net: Network, batch: tuple[Tensor, Tensor], loss: nn.Module, variant: str | None
) -> Step:
    """Return one training step of a network; without a variant it has no penalty."""
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4, fused=True)
    x, y = batch

    def objective() -> Tensor:
        value: Tensor = loss(net(x), y)
        return value if variant is None else value + 1e-4 * VARIANTS[variant].penalty(net)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        if variant is None or (has_closed_form(net) and not net.compiled):
            objective().backward()
        else:
            with shared_weights(net):
                objective().backward()
        optimizer.step()
        if variant is not None and VARIANTS[variant].training == "projected":
            project_directions_(net)

    return step


def mlp_steps(generator: torch.Generator) -> dict[str, Step]:
    """Return the steps of the small-table networks."""
    x, y = torch.randn(400, 24, generator=generator), torch.rand(400, 1, generator=generator)
    loss = nn.BCEWithLogitsLoss()
    reference = PSiLONNet(24, 1, normalization="none", length="none")
    steps = {"reference": make_step(reference, (x, y.round()), loss, None)}
    for name, compiled in (("P-Net", False), ("P-Net", True), ("S-Net", False)):
        net = make_net(name, 24, 1)
        net.compiled = compiled
        label = name + (" compiled" if compiled else "")
        steps[label] = make_step(net, (x, y.round()), loss, name)
    steps["P-Net pruning"] = make_step(half_pruned("P-Net", 24, 1), (x, y.round()), loss, "P-Net")
    return steps


def half_pruned(name: str, inputs: int, outputs: int) -> Network:
    """Return a network in the middle of its pruning stage."""
    net = make_net(name, inputs, outputs)
    net.set_prune_mix(0.5)
    return net


def residual_steps(generator: torch.Generator, names: list[str]) -> dict[str, Step]:
    """Return the steps of the residual networks."""
    x = torch.rand(200, 784, generator=generator) * 2 - 1
    y = torch.randint(10, (200,), generator=generator)
    loss = nn.CrossEntropyLoss()
    reference = PSiLONResNet(784, 10, normalization="none", length="none")
    with torch.no_grad():  # small weights, so that ten layers of them do not overflow
        for layer in reference.layers[1:]:
            layer.direction.mul_(0.05)
    steps = {"reference": make_step(reference, (x, y), loss, None)}
    for name in names:
        net = make_net(f"{name}-ResNet", 784, 10)
        steps[name] = make_step(net, (x, y), loss, f"{name}-ResNet")
    compiled = make_net("P-ResNet", 784, 10)
    compiled.compiled = True
    steps["P compiled"] = make_step(compiled, (x, y), loss, "P-ResNet")
    pruned = half_pruned("P-ResNet", 784, 10)
    steps["P pruning"] = make_step(pruned, (x, y), loss, "P-ResNet")
    return steps


def penalise(net: Network) -> None:
    path_norm_penalty(net).backward()


def penalty_share(rounds: int) -> dict[str, float]:
    """Return the time of the closed-form penalty and its backward as a share of a P step."""
    generator = torch.Generator().manual_seed(1)
    shares = {}
    for label, name, depth in (("3 layers", "P-Net", 3), ("50 layers", "P-ResNet", 50)):
        x = torch.randn(400, 24, generator=generator)
        net = make_net(name, 24, 1, depth=depth)
        step = make_step(net, (x, torch.zeros(400, 1)), nn.MSELoss(), name)
        cases: dict[str, Step] = {"step": step, "penalty": partial(penalise, net)}
        seconds = interleaved(cases, rounds=rounds)
        shares[label] = seconds["penalty"] / seconds["step"]
    return shares


def show(title: str, seconds: dict[str, float], base: str) -> None:
    """Print the milliseconds of each case and their ratio to a base."""
    print(f"\n{title}")
    for name, value in seconds.items():
        ours = f"{value / seconds[base]:5.2f} x {base}"
        paper = f"   paper {PAPER[name]:.2f}" if name in PAPER and base == "P" else ""
        print(f"  {name:<16} {1e3 * value:8.2f} ms  {ours}{paper}")


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, fewer variants")
    parser.add_argument("--tiny", action="store_true", help="once, to show that it runs")
    given = parser.parse_args()
    quick = given.quick or given.tiny
    torch.set_num_threads(1)
    rounds = 1 if given.tiny else 7 if quick else 80
    others = ["P", "L1-IB", "L1-OB", "S"] if quick else ["P", *PAPER]

    medians: dict[tuple[str, str], dict[str, float]] = {}
    for precision in ("highest",) if quick else ("highest", "medium"):
        torch.set_float32_matmul_precision(precision)
        generator = torch.Generator().manual_seed(0)
        warmup = 1 if given.tiny else 3
        mlp = interleaved(mlp_steps(generator), rounds=2 * rounds, warmup=warmup)
        residual = interleaved(residual_steps(generator, others), rounds=rounds, warmup=warmup)
        medians["mlp", precision], medians["residual", precision] = mlp, residual
        show(f"MLP, {precision} precision", mlp, "reference")
        show(f"residual net, {precision} precision", residual, "reference")
        show(f"residual net, {precision} precision, beside the paper", residual, "P")
    torch.set_float32_matmul_precision("highest")
    shares = penalty_share(rounds=1 if given.tiny else 5 if quick else 30)
    print("\nclosed-form penalty and its backward, share of a P step")
    for label, share in shares.items():
        print(f"  {label:<16} {100 * share:.2f} %")

    mlp, residual = medians["mlp", "highest"], medians["residual", "highest"]
    print_figures(
        {
            "p_net_eager": mlp["P-Net"] / mlp["reference"],
            "p_resnet_eager": residual["P"] / residual["reference"],
            "p_net_compiled": mlp["P-Net compiled"] / mlp["reference"],
            "p_resnet_compiled": residual["P compiled"] / residual["reference"],
            "l1_ib_over_p": residual["L1-IB"] / residual["P"],
            "l1_ob_over_p": residual["L1-OB"] / residual["P"],
            "s_over_p": residual["S"] / residual["P"],
            "penalty_share": max(shares.values()),
        }
    )


if __name__ == "__main__":
    main()
