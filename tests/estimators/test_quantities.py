from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psilonnet.estimators.quantities import check_quantities

Y = [1.5, -2.0, 1e20]
KINDS = {
    "list": Y,
    "objects": np.array(Y, dtype=object),
    "decimals": [Decimal(str(v)) for v in Y],
    "small floats": np.array(Y, dtype=np.float32),
    "pandas": pd.Series(Y, index=[7, 7, 7]),
    "nullable": pd.Series(Y, dtype="Float64"),
    "polars": pl.Series(Y),
    "polars decimals": pl.Series([f"{v:.1f}" for v in Y]).cast(pl.Decimal(38, 1)),
    "arrow": pa.array(Y),
    "arrow chunks": pa.chunked_array([Y]),
    "nothing masked": np.ma.masked_array(Y),
}


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_all_types_are_taken(kind):
    found = check_quantities(KINDS[kind])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, Y, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.array, pd.DataFrame, pl.DataFrame, list])
def test_frames_and_arrays_of_two_dimensions_keep_them(kind):
    y = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    given = kind(y, orient="row") if kind is pl.DataFrame else kind(y)
    assert check_quantities(given).tolist() == y


@pytest.mark.parametrize("far", [1e151, -1e300])
def test_numbers_whose_squares_overflow_are_refused(far):
    with pytest.raises(ValueError, match=r"so that its squares can be summed.* in row 1: take"):
        check_quantities([0.0, far])
    assert check_quantities([0.0, 1e150]).tolist() == [0.0, 1e150]
