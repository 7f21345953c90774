import datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psilonnet.scale.many.groups import groups_of
from psilonnet.scale.many.keys import common_type, key_column, key_name, key_numbers

KEYS = {
    "whole numbers": (pd.Series([3, 5, 3]), pd.Series([3.0, None, 5.0]), "int64"),
    "dates": (
        pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"])),
        pl.Series([datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 2)]),
        "date32[day]",
    ),
    "categories": (pd.Series(list("aba"), dtype="category"), pl.Series(["a", None, "b"]), "string"),
    "booleans": (pd.Series([True, False, True]), pl.Series([True, None, False]), "bool"),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_equal_keys_have_one_name_whatever_the_table(name):
    first, second, kind = KEYS[name]
    arrays = [
        pa.array(s.to_list(), from_pandas=True) if isinstance(s, pl.Series)
        else pa.Array.from_pandas(s) for s in (first, second)
    ]  # fmt: skip
    a, b = (groups_of(key_column(pa.table({"k": array}), "k")) for array in arrays)
    assert str(a.keys.type) == kind
    assert set(a.names) == set(b.names)
    assert b.missing.tolist() == [1]
    assert a.rows(0).tolist() == [0, 2]


def test_other_keys():
    at = datetime.datetime(2024, 1, 1, 12, 30)
    times = groups_of(key_column(pa.table({"k": pa.array([at, None])}), "k"))
    assert times.names == [key_name(at)]
    half = groups_of(key_column(pa.table({"k": [0.5, float("nan")]}), "k"))
    assert half.names == [key_name(0.5)]
    huge = groups_of(key_column(pa.table({"k": [1e300, 2.0]}), "k"))
    assert huge.names == [key_name(1e300), key_name(2)]
    with pytest.raises(TypeError, match=r"holds list<.*> instead: turn it into words"):
        key_column(pa.table({"k": [[1], [2]]}), "k")
    with pytest.raises(ValueError, match=r"Column 'k' has others .* turn it into words"):
        key_column(pa.table({"k": pa.array([2**63], pa.uint64())}), "k")


def test_equal_keys_have_one_number_whatever_their_type():
    def numbers(values, kind=None):
        table = pa.table({"k": pa.array(values, kind)})
        return key_numbers(key_column(table, "k")).tolist()

    whole = [3, -1, 0, 2**50]
    assert numbers(whole) == numbers([float(k) for k in whole]) == numbers([*whole, 0.5])[:4]
    assert numbers([3], pa.int8()) == numbers([3], pa.uint32()) == numbers([3.0])
    day, noon = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
    midnight = datetime.datetime(2024, 1, 1)
    assert numbers([day]) == numbers([midnight]) == numbers([midnight, noon])[:1]
    words = numbers(["a", "é", "3"])
    assert numbers(pa.array(["a", "é", "3"]).dictionary_encode()) == words
    assert numbers(["a", "é", "3"], pa.large_string()) == words
    assert len({*words, *numbers([3]), *numbers([2**62, 2**62 + 1])}) == 6
    assert len(set(numbers([True, False]))) == 2


def test_common_type_is_that_of_the_whole_table():
    days = [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)]
    kinds = [pa.array([day]).type for day in days]
    assert common_type([kinds[0], pa.timestamp("us")]) == pa.timestamp("us")
    assert common_type([pa.int64(), pa.null(), pa.float64()]) == pa.float64()
    assert common_type([pa.null()]) == pa.int64()
    assert common_type([pa.string()]) == pa.string()
    with pytest.raises(TypeError, match="int64 here and string there: turn them into words"):
        common_type([pa.string(), pa.int64()])
