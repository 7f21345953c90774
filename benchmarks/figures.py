"""The figures that end a benchmark."""

import json
from collections.abc import Mapping


def print_figures(figures: Mapping[str, float]) -> None:
    """Print the figures as the one JSON object that ends every benchmark."""
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))
