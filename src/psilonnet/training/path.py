"""The warm-started path: strength after strength, each from the weights of the one before.

The paper's text trains every strength from one common initialisation (``repeat_member``); the
author's code trains such a path, from weak to strong (Deviation D14, PAPER.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psilonnet.training.population import stack_members, take_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from psilonnet.nn import Network
    from psilonnet.training.loop import Run


def warm_path(
    net: Network, strengths: Sequence[float], make_run: Callable[[Network, float], Run]
) -> Iterator[tuple[float, Run]]:
    """Train strengths in rising order and yield each finished run.

    Parameters
    ----------
    net : Network
        The network that the weakest strength starts from, without member axes.
    strengths : sequence of float
    make_run : callable
        ``make_run(population, strength)`` returns the run of a population of one member.

    Yields
    ------
    (float, Run)
        A strength and its run.
    """
    for strength in sorted(strengths):
        run = make_run(stack_members([net]), strength)
        run.train()
        yield strength, run
        net = take_members(run.net, 0)
