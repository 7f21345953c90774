"""What a network is made of, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from psilonnet._numbers import is_whole
from psilonnet.nn import Bend, PSiLONNet, PSiLONResNet

if TYPE_CHECKING:
    from psilonnet.nn import Network

Directions = Literal["l1", "l2"]
Architecture = Literal["mlp", "crelu", "resnet"]


@dataclass(frozen=True)
class Design:
    """What the networks of one kind are made of.

    Parameters
    ----------
    columns : {"log_tails", "identity", "clipped"}, default="log_tails"
        How they see columns of numbers, in standard deviations: with tails that grow like a
        logarithm, as they are, or scaled by quartiles and clipped smoothly.
    directions : {"l1", "l2"}, default="l1"
        Rows of weights normalised in L1 with one length per layer, whose bound is a product of
        lengths: small bounds at hardly any loss. Or in L2 with a length per row, whose bound is a
        product of matrices: better where the best network needs a large bound.
    pieces : int, default=1
        Split each column of numbers at its quantiles into so many pieces; 1 for none.
    architecture : {"mlp", "crelu", "resnet"}, default="mlp"
        Hidden layers with ReLU, with CReLU (both signs are kept), or residual CReLU blocks. The
        first trains fastest.
    """

    columns: Bend = "log_tails"
    directions: Directions = "l1"
    pieces: int = 1
    architecture: Architecture = "mlp"

    def __post_init__(self) -> None:
        words = {"columns": Bend, "directions": Directions, "architecture": Architecture}
        for name, kind in words.items():
            value = getattr(self, name)
            if value not in get_args(kind):
                raise ValueError(
                    f"The {name!r} of a Design must be one of {get_args(kind)}. Got {value!r}."
                )
        if not is_whole(self.pieces) or self.pieces < 1:
            raise ValueError(
                "The 'pieces' of a Design must be a whole number of at least 1. Got "
                f"{self.pieces!r}."
            )

    def make_network(self, inputs: int, outputs: int, **shape: Any) -> Network:
        """Return a network in float32, also where torch's default is float64.

        ``shape`` is as for :class:`PSiLONNet` without the activation.
        """
        length = "shared" if self.directions == "l1" else "per_row"
        shape |= {"normalization": self.directions, "length": length}
        if self.architecture == "resnet":
            return PSiLONResNet(inputs, outputs, **shape).float()
        activation: Any = "relu" if self.architecture == "mlp" else "crelu"
        return PSiLONNet(inputs, outputs, activation=activation, **shape).float()

    def in_words(self) -> str:
        """Return the design in a few words."""
        parts = [self.directions.upper()]
        parts += [f"{self.pieces} pieces"] if self.pieces > 1 else []
        parts += [self.columns.replace("_", " ")] if self.columns != "log_tails" else []
        parts += [self.architecture] if self.architecture != "mlp" else []
        return ", ".join(parts)


# Both geometries and two maps of the columns, plain and in pieces: no table picks one for all. The
# first is the cheapest: others are given up sooner if it is better. See "Which designs" in
# docs/appendix.md.
DESIGNS = (Design("clipped"), Design(pieces=16), Design(directions="l2", pieces=16))


def read_designs(given: Any) -> tuple[Design, ...]:
    """Return the designs that a parameter asks for; a design may also be a dict of its fields."""
    if isinstance(given, str):
        return DESIGNS
    return tuple(d if isinstance(d, Design) else Design(**dict(d)) for d in given)


def are_designs(value: Any) -> bool:
    """Whether a parameter is "auto", or a list of different designs."""
    if isinstance(value, str):
        return value == "auto"
    if not isinstance(value, Sequence) or not value:
        return False
    names = {field.name for field in fields(Design)}
    if not all(
        isinstance(d, Design) or (isinstance(d, Mapping) and set(d) <= names) for d in value
    ):
        return False
    designs = read_designs(value)
    return len(set(designs)) == len(designs)


def designs_to_data(value: Any) -> Any:
    """Return a parameter as plain data."""
    if isinstance(value, str):
        return value
    return [asdict(design) for design in read_designs(value)]
