"""Interleaved timing: machines are noisy, so only ratios within one run are stated."""

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter


def interleaved(
    cases: Mapping[str, Callable[[], object]], *, rounds: int, warmup: int = 3
) -> dict[str, float]:
    """Run every case once per round, in turn, and return the median seconds of each."""
    for case in cases.values():
        for _ in range(warmup):
            case()
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            start = perf_counter()
            case()
            seconds[name].append(perf_counter() - start)
    return {name: median(times) for name, times in seconds.items()}
