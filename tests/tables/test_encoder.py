import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from psilonnet.tables import (
    FAR,
    LossWarning,
    OutOfRangeWarning,
    TableEncoder,
    fit_encoder,
    read_columns,
    weighted_mean_and_deviation,
    weighted_quantile,
)


def fitted(frame, weight=None):
    columns = read_columns(frame)
    weight = np.ones(len(frame)) if weight is None else weight
    return fit_encoder(columns, weight), columns


def test_numbers_are_standardised_and_missing_ones_flagged():
    encoder, columns = fitted(pd.DataFrame({"a": [1.0, 3.0, np.nan], "b": [1.0, 2.0, 3.0]}))
    assert encoder.labels == ["a", "a is missing", "b"]
    np.testing.assert_allclose(encoder.encode(columns)[:, :2], [[-1, 0], [1, 0], [0, 1]])
    assert encoder.sources.tolist() == [0, 0, 1]
    assert encoder.holds_numbers.tolist() == [True, False, True]
    assert encoder.codes[0].slope == 1.0


def test_categories_become_columns():
    frame = pd.DataFrame({"two": ["a", "b", "a"], "three": ["x", "y", "z"], "one": ["k"] * 3})
    encoder, columns = fitted(frame)
    assert encoder.labels == ["two = b", "three = x", "three = y", "three = z"]
    assert not encoder.holds_numbers.any()
    assert len(encoder.holds_numbers) == encoder.width
    np.testing.assert_array_equal(encoder.encode(columns)[:, 0], [-1, 1, -1])
    unseen = read_columns(pd.DataFrame({"two": ["?"], "three": ["?"], "one": ["?"]}))
    np.testing.assert_array_equal(encoder.encode(unseen), [[0, 0, 0, 0]])


def test_rare_levels_share_a_column_and_unseen_ones_join_them():
    words = ["common"] * 500 + ["other"] * 490 + [f"rare {k}" for k in range(10)]
    encoder, columns = fitted(pd.DataFrame({"a": words}))
    assert encoder.labels == ["a = common", "a = other", "a is rare"]
    assert encoder.encode(columns)[-1].tolist() == [0, 0, 1]
    unseen = read_columns(pd.DataFrame({"a": ["never seen"]}))
    assert encoder.encode(unseen).tolist() == [[0, 0, 1]]


def test_many_levels_are_capped_and_identifiers_warned_about():
    levels = [f"level {k % 70}" for k in range(7000)]
    encoder, _ = fitted(pd.DataFrame({"a": levels}))
    assert encoder.width == 51
    with pytest.warns(UserWarning, match=r"almost every row, like an identifier: 'id'\."):
        fitted(pd.DataFrame({"id": [f"customer {k}" for k in range(100)]}))


def test_empty_column_is_left_out_with_a_warning():
    with pytest.warns(UserWarning, match=r"has no value in any row is left out: 'a'\."):
        encoder, _ = fitted(pd.DataFrame({"a": [np.nan] * 3, "b": [1.0, 2.0, 3.0]}))
    assert encoder.labels == ["b"]


@pytest.mark.filterwarnings("ignore::psilonnet.tables.LossWarning")  # of hardly any difference
@given(values=st.lists(st.floats(-1e12, 1e12), min_size=3, max_size=30))
@example(values=[0.0, 0.0, 1.1125369292536007e-308])
def test_numbers_are_encoded_linearly_and_no_steeper_than_their_slope(values):
    column = np.array(values)
    encoder, _ = fitted(pd.DataFrame({"a": column}))
    if encoder.width == 0:
        return
    grid = np.sort(np.concatenate([column, column + 1.0, np.linspace(-1e13, 1e13, 50)]))
    encoded = encoder.encode(read_columns(pd.DataFrame({"a": grid})))[:, 0]
    code = encoder.codes[0]
    exact = np.clip((grid - code.center) / code.scale, -FAR, FAR)
    np.testing.assert_allclose(encoded, exact, rtol=1e-15)
    moved = np.diff(encoded)
    assert (moved >= 0).all()
    rounding = 4 * 2.0**-53 * (np.abs(exact[1:]) + np.abs(exact[:-1]))
    assert (moved <= code.slope * np.diff(grid) * (1 + 1e-15) + rounding).all()


def test_numbers_are_never_farther_than_far():
    encoder, _ = fitted(pd.DataFrame({"a": [-1.0, 1.0]}))
    far = read_columns(pd.DataFrame({"a": [-1e308, -1e15, 1e14, 1e300, np.nan]}))
    assert encoder.encode(far)[:, 0].tolist() == [-FAR, -FAR, 1e14, FAR, 0.0]


@pytest.mark.parametrize("code", [-999.0, 1e14])
def test_codes_for_missing_numbers_do_not_set_the_scale(code):
    values = np.random.default_rng(0).normal(size=1000)
    with_codes = np.where(np.arange(1000) % 100 == 0, code, values)
    own = fitted(pd.DataFrame({"a": values}))[0].codes[0]
    coded = fitted(pd.DataFrame({"a": with_codes}))[0].codes[0]
    assert own.scale == pytest.approx(values.std(), rel=1e-3)
    assert own.scale < coded.scale < 1.25 * own.scale
    weighted = fitted(pd.DataFrame({"a": with_codes}), np.arange(1000) % 100 > 0)[0]
    assert weighted.codes[0].scale == pytest.approx(own.scale, rel=0.02)
    # Half of these numbers are equal: all others would be far out.
    mostly = fitted(pd.DataFrame({"a": [0.0] * 9 + [50.0]}))[0].codes[0]
    assert mostly.scale == pytest.approx(15)


def test_huge_and_constant_numbers_stay_finite():
    frame = pd.DataFrame({"huge": [1e300, -1e300, 0.0], "same": [0.1 + 0.2] * 3})
    encoder, columns = fitted(frame)
    assert encoder.labels == ["huge"]
    assert np.isfinite(encoder.encode(columns)).all()


def test_a_difference_to_the_center_that_overflows_is_still_right():
    cells = -1e308 + 1e307 * np.linspace(-2, 2, 50)
    encoder, _ = fitted(pd.DataFrame({"a": cells}))
    code, rows = encoder.codes[0], np.array([7.9e307, 8.1e307, 1.7e308])
    exact = [(Fraction(row) - Fraction(code.center)) / Fraction(code.scale) for row in rows]
    found = encoder.encode(read_columns(pd.DataFrame({"a": rows})))[:, 0]
    np.testing.assert_allclose(found, np.array(exact, dtype=float), rtol=1e-14)


def test_far_rows_are_warned_about_once():
    encoder, _ = fitted(pd.DataFrame({"a": [0.0, 1.0]}))
    with pytest.warns(OutOfRangeWarning, match=r"'a' \(2 rows\)"):
        encoder.warn_far_outside(read_columns(pd.DataFrame({"a": [9.0, -5.0, 0.5, np.nan]})))


def test_another_kind_of_column_is_refused():
    encoder, _ = fitted(pd.DataFrame({"a": [0.0, 1.0]}))
    with pytest.raises(ValueError, match=r"'a' must hold the same kind .*'number'.*'category' now"):
        encoder.encode(read_columns(pd.DataFrame({"a": ["x"]})))


def test_encoder_survives_json():
    frame = pd.DataFrame({"a": [1.0, np.nan, 4.0], "b": ["x", None, "y"], "c": [True, False, True]})
    encoder, columns = fitted(frame)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again == encoder
    np.testing.assert_array_equal(again.encode(columns), encoder.encode(columns))


def test_weighted_statistics_equal_those_of_repeats():
    values, weight = np.array([1.0, 5.0, 2.0]), np.array([3.0, 1.0, 2.0])
    repeated = np.repeat(values, weight.astype(int))
    mean, deviation = weighted_mean_and_deviation(values, weight)
    assert mean == pytest.approx(repeated.mean())
    assert deviation == pytest.approx(repeated.std())
    levels = np.array([0.1, 0.25, 0.5, 0.9])
    np.testing.assert_allclose(
        weighted_quantile(values, weight, levels),
        weighted_quantile(repeated, np.ones(6), levels),
    )


@pytest.mark.parametrize("size", [1e-307, 1e-200, 1e-160, 1e-121, 1e120, 1e155, 1e307])
def test_statistics_do_not_depend_on_the_size_of_numbers(size):
    values, weight = np.array([1.0, 5.0, 2.0]), np.array([3.0, 1.0, 2.0])
    found = weighted_mean_and_deviation(size * values, weight)
    expected = np.array(weighted_mean_and_deviation(values, weight)) * size
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    mean, deviation = weighted_mean_and_deviation(np.full(3, size), weight)
    assert mean == pytest.approx(size)
    assert deviation <= 1e-15 * size


def test_tables_load_neither_torch_nor_scikit_learn():
    code = "import psilonnet.tables, sys; print({'torch', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_column_without_any_value_is_missing_whatever_its_type():
    frame = pd.DataFrame({"city": ["a", "b", "c", None], "size": [1.0, 2.0, 3.0, np.nan]})
    encoder, columns = fitted(frame)
    missing = encoder.encode(columns)[-1:]
    for nothing in (
        pd.DataFrame({"city": [np.nan], "size": [None]}),
        pl.DataFrame({"city": [None], "size": pl.Series([None], dtype=pl.String)}),
        pl.DataFrame({"city": pl.Series([None], dtype=pl.Float64), "size": [None]}),
        np.array([[None, None]], dtype=object),
    ):
        np.testing.assert_array_equal(encoder.encode(read_columns(nothing)), missing)
        encoder.warn_far_outside(read_columns(nothing))


def test_one_number_far_out_does_not_make_a_column_constant():
    values = np.random.default_rng(0).normal(size=200)
    values[3] = -3.4028235e38
    encoder, _ = fitted(pd.DataFrame({"a": values}))
    assert encoder.codes[0].scale == pytest.approx(1, abs=0.3)


def test_values_that_fit_has_not_seen_are_told_if_they_are_most():
    encoder, columns = fitted(pd.DataFrame({"a": ["yes", "no", None] * 9, "b": ["x"] * 27}))
    encoder.warn_far_outside(columns)
    encoder.warn_far_outside(read_columns(pd.DataFrame({"a": ["yes", "Yes"], "b": ["y", "z"]})))
    with pytest.warns(LossWarning, match=r"not among the levels of fit, .*: 'a' \(such as 'No'\)"):
        encoder.warn_far_outside(read_columns(pd.DataFrame({"a": ["No", "Yes"], "b": ["x", "x"]})))


def test_columns_that_are_not_named_are_counted():
    encoder, _ = fitted(pd.DataFrame({f"c{k}": [0.0, 1.0] for k in range(7)}))
    with pytest.warns(OutOfRangeWarning, match=r"'c4' \(1 rows\), and 2 more\."):
        encoder.warn_far_outside(read_columns(pd.DataFrame({f"c{k}": [9.0] for k in range(7)})))


def test_booleans_with_a_direction_are_one_number_also_with_missing_cells():
    column = pd.array([True, None, False, True], dtype="boolean")
    columns = read_columns(pd.DataFrame({"flag": column}))
    encoder = fit_encoder(columns, np.ones(4), ["flag"])
    assert encoder.labels == ["flag = True", "flag is missing"]
    assert encoder.encode(columns).tolist() == [[1, 0], [0, 1], [-1, 0], [1, 0]]
    assert encoder.holds_numbers.tolist() == [False, False]
    assert TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder
    full = read_columns(pd.DataFrame({"flag": [True, False]}))
    assert fit_encoder(full, np.ones(2), ["flag"]).encode(full).tolist() == [[1], [-1]]
    assert encoder.encode(full).tolist() == [[1, 0], [-1, 0]]
    same = read_columns(pd.DataFrame({"flag": [True, True]}))
    assert fit_encoder(same, np.ones(2), ["flag"]).width == 0
