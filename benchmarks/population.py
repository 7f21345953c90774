"""A population trained as one tensor program, against its members one after another.

The unit is one member-step of the paper's P-Net (24 inputs, three hidden layers, 400 rows). The
plain loop is what one would write by hand: forward, penalty, backward, fused Adam, no history.

    python -m benchmarks.population [--quick | --tiny]
"""

import argparse
from collections.abc import Callable

import torch

from benchmarks.figures import print_figures
from experiments.timing import interleaved
from psilonnet.nn import make_net, path_norm_penalty
from psilonnet.training import Plan, Rows, Run, narrowing_cost

ROWS = 2000


def make_rows(generator: torch.Generator) -> Rows:
    x = torch.randn(ROWS, 24, generator=generator)
    return Rows(x, (x[:, :1] > 0).float())


def population_step(members: int, width: int, rows: Rows) -> Callable[[], None]:
    """Return one step of our loop with all that it does: batches, schedule, checks, history."""
    net = make_net("P-Net", 24, 1, width=width, depth=3, members=(members,))
    plan = Plan(steps=10**6, evaluate_every=10**6, progress=False)
    run = Run(
        net,
        rows,
        loss="binary_cross_entropy",
        penalty=path_norm_penalty,
        reg_strength=1e-3,
        plan=plan,
    )
    return run.take_step


def plain_step(width: int, rows: Rows) -> Callable[[], None]:
    """Return one step of a hand-written loop over a single network."""
    net = make_net("P-Net", 24, 1, width=width, depth=3)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    loss = torch.nn.BCEWithLogitsLoss()
    generator = torch.Generator().manual_seed(1)

    def step() -> None:
        index = torch.randperm(ROWS, generator=generator)[:400]
        optimizer.zero_grad(set_to_none=True)
        (loss(net(rows.x[index]), rows.y[index]) + 1e-3 * path_norm_penalty(net)).backward()
        optimizer.step()

    return step


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, fewer shapes")
    parser.add_argument("--tiny", action="store_true", help="once, to show that it runs")
    given = parser.parse_args()
    quick = given.quick or given.tiny
    torch.set_num_threads(1)
    rows = make_rows(torch.Generator().manual_seed(0))
    counts = (1, 13) if quick else (1, 4, 13, 64)
    rounds = 1 if given.tiny else 6 if quick else 60
    widths = (128, 500) if quick else (64, 128, 256, 500)

    ratios: dict[tuple[int, int], float] = {}
    print("cost of a member-step over that of a network trained alone in a plain loop")
    print("width   " + "".join(f"M = {m:<6}" for m in counts))
    for width in widths:
        cases = {str(m): population_step(m, width, rows) for m in counts}
        cases["plain"] = plain_step(width, rows)
        seconds = interleaved(cases, rounds=rounds, warmup=2)
        for m in counts:
            ratios[width, m] = seconds[str(m)] / m / seconds["plain"]
        print(f"{width:<8}" + "".join(f"{ratios[width, m]:<10.2f}" for m in counts))

    cost = narrowing_cost(13)
    print(f"\n13 strengths, in fits of one network: fresh 13, warm 13, narrowed {cost:.2f}")
    demanded = [r for (w, m), r in ratios.items() if m == 1 or (m >= 4 and w >= 128)]
    print_figures(
        {
            "ratio_m1_worst": max(r for (_, m), r in ratios.items() if m == 1),
            "ratio_w128_m13": ratios[128, 13],
            "ratio_w500_m13": ratios[500, 13],
            "ratio_worst": max(demanded),
            "halving_cost": cost,
        }
    )


if __name__ == "__main__":
    main()
