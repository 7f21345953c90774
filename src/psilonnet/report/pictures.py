"""The pictures of a page: displays of psilonnet.plot as SVG that stands inside HTML."""

from __future__ import annotations

import io
import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._extras import require
from psilonnet.plot import (
    BLUE,
    GREY,
    FeatureSensitivityDisplay,
    TradeOffDisplay,
    TrainingCurvesDisplay,
    quieten,
)
from psilonnet.report.html import Html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WIDTH = 5.0  # inches; about as wide as a phone, so that words keep their size there
MOST_FEATURES = 15
MOST_POINTS = 200  # of a curve
STYLE = {
    "axes.edgecolor": "#8a94a0",
    "axes.labelcolor": "#3d4854",
    "axes.titlecolor": "#3d4854",
    "font.size": 9,
    "svg.fonttype": "none",  # words stay words: they can be read aloud, searched and copied
    "svg.hashsalt": "psilonnet",  # the same model gives the same page
    "text.color": "#1d2733",
    "xtick.color": "#5a6675",
    "ytick.color": "#5a6675",
}


def trade_off_picture(model: Any) -> Html:
    """Draw held-out loss against bound; only what a file holds, so that pages are the same."""
    display = TradeOffDisplay(path=model.path_, designs=model.designs_)
    return _drawn(
        lambda axes: display.plot(ax=axes[0]),
        "trade-off",
        "Held-out loss against bound, for every snapshot of the training",
        size=(WIDTH, 4.0),
    )


def curves_picture(model: Any) -> Html:
    """Draw losses and bound over the steps."""
    return _drawn(
        lambda axes: TrainingCurvesDisplay.from_estimator(model, axes=axes),
        "curves",
        "Losses and bound over the steps of training",
        size=(WIDTH, 4.0),
        count=2,
    )


def features_picture(model: Any) -> Html:
    """Draw the columns that can move the output most."""
    bars = min(MOST_FEATURES, max(1, int((model.feature_sensitivity_ > 0).sum())))
    return _drawn(
        lambda axes: FeatureSensitivityDisplay.from_estimator(model, max_features=bars, ax=axes[0]),
        "features",
        "How far each column can move the output at most",
        size=(WIDTH, 0.8 + 0.26 * bars),
    )


def radius_picture(radius: np.ndarray[Any, Any]) -> Html:
    """Draw the share of rows whose class stays, over how far their numbers move."""

    def draw(axes: list[Any]) -> None:
        axis = axes[0]
        points = np.linspace(0, len(radius) - 1, min(len(radius), MOST_POINTS)).astype(int)
        ordered = np.sort(radius)[points]
        left = 1 - points / len(radius)  # the share of rows that are not below
        axis.step([0.0, *ordered], [1.0, *left], where="pre", color=BLUE)
        axis.fill_between([0.0, *ordered], [1.0, *left], step="pre", color=BLUE, alpha=0.12, lw=0)
        axis.axhline(0.5, color=GREY, lw=1, ls="--")
        far = float(np.quantile(radius, 0.98))
        axis.set(xlim=(0, far if far > 0 else 1), ylim=(0, 1), ylabel="rows that cannot flip")
        axis.set_xlabel("largest move of every number, in standard deviations")
        axis.yaxis.set_major_formatter(require("matplotlib.ticker", "plot").PercentFormatter(1.0))
        quieten(axis)

    label = "Share of rows whose class provably stays, over how far all numbers move"
    return _drawn(draw, "radius", label, size=(WIDTH, 2.8))


def _drawn(
    draw: Callable[[list[Any]], object],
    name: str,
    label: str,
    *,
    size: tuple[float, float],
    count: int = 1,
) -> Html:
    """Draw on new axes below each other, and return the picture."""
    with _look():
        # Not through pyplot: windows and the user's own figures are left alone.
        figure = require("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")
        draw(list(figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]))
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata=_no_metadata())
    return _inline(file.getvalue(), name, label)


@contextmanager
def _look() -> Iterator[None]:
    """Use our style, not the user's. Missing glyphs do not matter: readers have their own fonts."""
    style = require("matplotlib.style", "plot")
    with style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        yield


def _no_metadata() -> dict[str, None]:
    return dict.fromkeys(("Creator", "Date", "Format", "Type"))


def _inline(svg: str, name: str, label: str) -> Html:
    """Return an SVG file as an element of a page that holds others: ids get a name in front."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>|<defs/>", "", svg, flags=re.S)
    svg = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{name}-", svg.replace(" xlink:", " "))
    box = re.search(r'viewBox="[^"]*"', svg)
    view = box.group() if box else ""
    head = f'<svg {view} role="img" aria-label="{label}">'
    return Html(head + svg[svg.index(">") + 1 :].strip())
