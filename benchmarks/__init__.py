"""Speed, as ratios of things measured in turn in one run: ``python -m benchmarks.NAME``."""
