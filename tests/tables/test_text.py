import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

from psilonnet.tables import LossWarning, TextError, TextStyle, read_text
from words import cells, days, numbers

NAN = np.nan
TWO_WAYS = {"1,435": (1435, 1.435), "1.435": (1.435, 1435), "$12,000": (12000, 12.0)}


@pytest.mark.parametrize("word", TWO_WAYS)
def test_a_number_with_two_readings_is_not_guessed(word):
    with_point, with_comma = TWO_WAYS[word]
    with pytest.raises(TextError, match=r"in two ways is not guessed\. In column 'price'") as said:
        numbers(word, "7", "n/a")
    assert f"{word!r} is {with_point:.15g} or {with_comma:.15g}" in str(said.value)
    assert "--decimal" in str(said.value)
    assert numbers(word, decimal=".") == [with_point]
    assert numbers(word, decimal=",") == [with_comma]


def test_other_cells_of_the_column_decide():
    assert numbers("1,435", "1,435.00") == [1435, 1435]
    assert numbers("1,435", "7.5") == [1435, 7.5]
    assert numbers("1,435", "7,5") == [1.435, 7.5]
    assert numbers("1,435", "1,435,000") == [1435, 1435000]
    assert numbers("1.435", "1 435,0") == [1435, 1435]


def test_cells_that_say_both_decide_nothing():
    with pytest.raises(TextError, match=r"'1,435' is 1435 or 1\.435"):
        numbers("1,435", "7,5", "7.5")
    assert numbers("1,435", "7,5", "7.5", decimal=".") == [1435, 7.5, 7.5]
    assert numbers("1,435", "7,5", "7.5", decimal=",") == [1.435, 7.5, 7.5]


def test_what_the_user_says_goes_before_the_column():
    assert numbers("1,435", "7.5", decimal=",") == [1.435, 7.5]
    assert days("01/02/2023", "13/02/2023", day_first=False) == ["2023-01-02", "2023-02-13"]


def test_a_part_of_a_column_is_read_as_the_whole_is():
    column = cells("1,435", "7.5")
    with pytest.raises(TextError, match="not guessed"):
        column.read("number", TextStyle(), alone=True)
    for word in ("1,435", "7.5"):
        whole = column.read("number", TextStyle(decimal=","), alone=True).values
        part = cells(word).read("number", TextStyle(decimal=","), alone=True).values
        assert part[0] == whole[("1,435", "7.5").index(word)]
    assert cells("$7.50").read("number", TextStyle(), alone=True).values.tolist() == [7.5]


@pytest.mark.parametrize("word", ["01/02/2023", "1.2.2023", "01-02-2023 10:00"])
def test_a_date_with_two_readings_is_not_guessed(word):
    with pytest.raises(TextError, match=r"is 2023-02-01 or 2023-01-02.*--day-first"):
        days(word)
    assert days(word, day_first=True) == ["2023-02-01"]
    assert days(word, day_first=False) == ["2023-01-02"]
    assert days(word, "13/02/2023") == ["2023-02-01", "2023-02-13"]
    assert days(word, "02/13/2023") == ["2023-01-02", "2023-02-13"]
    assert days(word, "2023-05-13", "13/05/2023")[0] == "2023-02-01"
    with pytest.raises(TextError, match="not guessed"):
        days(word, "2023-05-13")  # says nothing about the others
    with pytest.raises(TextError, match="not guessed"):
        days(word, "13/02/2023", "02/13/2023")


MISSING = ["", "  ", "NA", "n/a", "N/A", "NaN", "null", "NONE", "-", "--", "?", "."]


def test_words_for_missing_are_missing_and_decide_nothing():
    assert np.isnan(numbers("$5", None, *MISSING)[1:]).all()
    assert days("2023-01-31", None, *MISSING)[1:] == ["NaT"] * (1 + len(MISSING))
    assert cells("$5", *MISSING).kind() == "number"
    assert cells(*MISSING, None).kind(untyped=True) is None
    assert np.isnan(numbers(*MISSING, None)).all()


COLUMNS = {
    "amounts": (["$1,435.00", "$20", "35"], "number"),
    "a few words among amounts": (["$1,435.00", "$20.00", "on request"], "number"),
    "most are words": (["$1,435.00", "on request", "ask us"], None),
    "half are words": (["$1,435.00", "on request"], None),
    "counts without a unit": (["1,200", "750", "12"], "number"),
    "decimals": (["1.5", "2", "n/a"], "number"),
    "levels with a word": (["1", "2", "3", "A"], None),
    "diagnoses": (["250", "V27", "648", "250.83"], None),
    "postcodes": (["12345", "00123", "54321"], None),
    "phone numbers": (["555 123 456", "555 987 654"], None),
    "addresses of machines": (["192.168.178.101", "192.168.178.120", "192.168.178.2"], None),
    "versions": (["1.2.3", "1.10.0"], None),
    "one large number": (["1,200", "750", "123,456,789"], "number"),
    "populations": (["1 234 567", "12 345", "567"], "number"),
    "dates": (["2023-01-31", "31 Jan 2023", "unknown"], "time"),
    "dates among words": (["2023-01-31", "unknown", "later"], None),
    "times": (["12:30", "08:15"], None),
    "nothing": ([], None),
    "only missing": ([None, "n/a"], None),
    "words": (["Oslo", "Rome"], None),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_what_most_of_its_cells_are(name):
    words, kind = COLUMNS[name]
    assert cells(*words).kind() == kind


def test_digits_alone_are_numbers_only_where_there_are_no_types():
    levels = cells("1", "2", "3", "n/a")
    assert levels.kind() is None
    assert levels.kind(untyped=True) == "number"
    assert cells("1", "2", "A").kind(untyped=True) is None


def test_rows_count_and_not_different_words():
    assert cells("$5", *["on request"] * 2, "$6", "$7").kind() == "number"
    assert cells("$5", *["on request"] * 4, "$6", "$7").kind() is None


def test_cells_that_cannot_be_read_are_counted_and_one_is_shown():
    reading = cells("$5", "$6", "$7", "on request", "on request", "n/a").read("number", TextStyle())
    assert reading.values.tolist()[:3] == [5, 6, 7]
    assert np.isnan(reading.values[3:]).all()
    assert (reading.unread, reading.unread_example) == (2, "on request")
    assert reading.example in ("$5", "$6", "$7")


def test_several_units_are_not_mixed():
    for words in (("$5", "5 EUR"), ("45%", "0.45"), ("45%", "$45")):
        with pytest.raises(TextError, match=r"must have one unit\. Column 'price' holds '"):
            numbers(*words)
    assert numbers("$5", "7") == [5, 7]
    assert numbers("45%", "0") == [45, 0]
    assert numbers("45%", "0,0") == [45, 0]


def test_style_refuses_other_signs():
    with pytest.raises(ValueError, match=r"must be '\.', ',' or None"):
        TextStyle(decimal=";")


def test_read_text_takes_columns_of_all_frames():
    words = ["$1,435.00", None, "$7"]
    for column in (words, pd.Series(words), pl.Series(words), np.array(words, dtype=object)):
        np.testing.assert_array_equal(read_text(column), [1435, NAN, 7])
    np.testing.assert_array_equal(read_text(["1", "2"]), [1, 2])
    with pytest.warns(LossWarning, match="1 cells, such as 'on request', cannot be read"):
        np.testing.assert_array_equal(read_text(["$5", "$7", "on request"]), [5, 7, NAN])
    with pytest.raises(TextError, match=r"of column 'p' must be readable as numbers\. Got 'a'"):
        read_text(pd.Series(["a", "b"], name="p"))


def test_a_hundred_thousand_different_cells_take_about_a_second():
    rng = np.random.default_rng(0)
    words = [f"${x:,.2f}" for x in rng.uniform(0, 1e7, 100_000)]
    start = time.process_time()
    column = cells(*words)
    assert column.kind() == "number"
    column.read("number", TextStyle())
    assert time.process_time() - start < 10  # of a busy machine
