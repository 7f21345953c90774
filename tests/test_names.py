"""A mistyped name of a column is answered with the one that was meant."""

import numpy as np
import pytest

from psilonnet import PSiLONRegressor
from psilonnet._names import did_you_mean
from psilonnet.certify import Perturbation


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["Bmi"], " Did you mean 'bmi'?"),
        (["quite else", "agee"], " Did you mean 'age'?"),
        (["y"], " Did you mean ' y '?"),
        (["quite else"], ""),
        ([], ""),
    ],
)
def test_the_nearest_name_is_asked_for(names, hint):
    assert did_you_mean(names, ["age", "bmi", "blood pressure", " y "]) == hint


def test_amounts_and_directions_of_a_mistyped_column_are_refused_with_a_hint(fitted_on_ages):
    table, y, model = fitted_on_ages
    for delta in ({"agee": 1}, Perturbation(relative={"agee": 0.1})):
        with pytest.raises(ValueError, match=r"\['agee'\].*Did you mean 'age'\?"):
            model.output_range(table, delta)
    with pytest.raises(ValueError, match=r"\['agee'\].*Did you mean 'age'\?"):
        model.set_params(monotonic_cst={"agee": 1}).fit(table, y)


@pytest.fixture
def fitted_on_ages():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"age": np.arange(40.0), "bmi": np.arange(40.0)[::-1] ** 2})
    y = table.age.to_numpy()
    return table, y, PSiLONRegressor(width=4, depth=1, max_steps=5, random_state=0).fit(table, y)
