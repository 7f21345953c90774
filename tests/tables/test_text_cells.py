"""One cell alone: as a number, as a date, or as neither."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psilonnet.tables import TextError, TextStyle
from words import cells, days, numbers

NO_BREAK, NARROW, THIN = "\u00a0", "\u202f", "\u2009"
ONE_WAY = {
    "$1,435.00": 1435,
    "US$ 1,435.00": 1435,
    "USD 1,435.00": 1435,
    "1,435.00 USD": 1435,
    "1 234,50 EUR": 1234.5,
    f"1{NO_BREAK}234,50{NO_BREAK}€": 1234.5,
    f"1{NARROW}234,50 €": 1234.5,
    f"€1{THIN}234{THIN}567": 1234567,
    "1.234,50 €": 1234.5,
    "CHF 1'234.50": 1234.5,
    "1\u2019234\u2019567": 1234567,
    "£0.99": 0.99,
    "₹12,34,567": 1234567,
    "R$ 12,5": 12.5,
    "500 kr": 500,
    "500 kr.": 500,
    "12 zł": 12,
    "eur 7": 7,
    "-$5": -5,
    "$-5": -5,
    "- 5.25": -5.25,
    "\u22125": -5,
    "($1,435.00)": -1435,
    "(5)": -5,
    "5.00-": -5,
    "+5%": 5,
    "45%": 45,
    "45 %": 45,
    "%45": 45,
    "7,5%": 7.5,
    "-0.5 %": -0.5,
    "12": 12,
    "0": 0,
    "0.435": 0.435,
    "0,435": 0.435,
    ".5": 0.5,
    "12.5": 12.5,
    "1435,678": 1435.678,
    "1.4356": 1.4356,
    "1,234,567": 1234567,
    "1.234.567": 1234567,
    "1 234": 1234,
    "1e5": 1e5,
    "1.5E-3": 1.5e-3,
    "  7.25  ": 7.25,
}


@pytest.mark.parametrize("word", ONE_WAY)
def test_a_cell_with_one_reading_is_read(word):
    assert numbers(word) == [ONE_WAY[word]]
    assert numbers(word, decimal=".") == numbers(word, decimal=",") == [ONE_WAY[word]]


NO_NUMBERS = [
    "00123",  # a postcode
    "01",
    "007.5",
    "0 500",
    "+49 170 123 456",  # phone numbers
    "555-123-4567",
    "0170 123 456",
    "1.2.3",  # versions
    "10.0.0",
    "v1.5",
    "192.168.1.20",
    "DE89 3704 0044 0532 0130 00",
    "4111 1111 1111 1111",
    "12:30",
    "12:30:00",
    "1,2,3",
    "1,23,45",
    "1,234 567",
    "5 kg",
    "ABC 12",
    "A12",
    "12A",
    "3/4",
    "1-2",
    "--5",
    "(-5)",
    "(5",
    "5)",
    "$5%",
    "$ 5 EUR",
    "1e5 EUR",
    "1e999",
    "1_000",
    "inf",
    "٣",
    "$",
    "%",
    "x" * 10_000,
    "1" * 10_000,
    "2024-01-31",
]


@pytest.mark.parametrize("word", NO_NUMBERS)
def test_a_cell_that_is_no_number_is_not_read(word):
    assert cells(word).kind(untyped=True) != "number"
    with pytest.raises(TextError, match="must be readable as numbers"):
        numbers(word)


@given(st.floats(-1e12, 1e12).map(lambda x: round(x, 2)), st.sampled_from(",' "))
def test_numbers_written_with_groups_come_back(number, mark):
    points = f"{number:,.2f}".replace(",", mark)
    commas = f"{number:,.2f}".translate(str.maketrans(",.", ".,"))
    for word in (points, f"${points}", f"{points} USD", commas, f"€ {commas}", f"{commas}%"):
        assert numbers(word) == [number]


DATES = {
    "2023-01-31": "2023-01-31",
    "2023/1/31": "2023-01-31",
    "2023.01.31": "2023-01-31",
    "31/01/2023": "2023-01-31",
    "1/31/2023": "2023-01-31",
    "31.01.2023": "2023-01-31",
    "31-01-2023": "2023-01-31",
    "02/02/2023": "2023-02-02",
    "31 Jan 2023": "2023-01-31",
    "31-Jan-2023": "2023-01-31",
    "31jan2023": "2023-01-31",
    "31. January 2023": "2023-01-31",
    "Jan 31, 2023": "2023-01-31",
    "January 31st 2023": "2023-01-31",
    "Sept. 5, 2023": "2023-09-05",
    "5 May 2023": "2023-05-05",
    "Tue, 31 Jan 2023": "2023-01-31",
    "Tuesday, January 31, 2023": "2023-01-31",
    "1969-12-31": "1969-12-31",
    "2024-02-29": "2024-02-29",
}


@pytest.mark.parametrize("word", DATES)
def test_a_date_with_one_reading_is_read(word):
    assert cells(word).kind() == "time"
    assert days(word) == days(word, day_first=True) == days(word, day_first=False) == [DATES[word]]


MOMENTS = {
    "2023-01-31T10:20": "2023-01-31T10:20",
    "2023-01-31 10:20:30": "2023-01-31T10:20:30",
    "2023-01-31T10:20:30.123456": "2023-01-31T10:20:30.123",
    "2023-01-31T10:20:30Z": "2023-01-31T10:20:30",
    "2023-01-31T00:20:30+02:00": "2023-01-30T22:20:30",
    "2023-01-31 10:20:30-0530": "2023-01-31T15:50:30",
    "31/01/2023 10:20": "2023-01-31T10:20",
    "1/31/2023 1:05 PM": "2023-01-31T13:05",
    "1/31/2023, 12:05:00 a.m.": "2023-01-31T00:05",
    "Tue, 31 Jan 2023 10:20:30 GMT": "2023-01-31T10:20:30",
    "1969-12-31T23:59:59.9999": "1969-12-31T23:59:59.999",
}


@pytest.mark.parametrize("word", MOMENTS)
def test_a_date_with_a_time_is_read_in_utc(word):
    found = cells(word).read("time", TextStyle()).values
    np.testing.assert_array_equal(found, np.array([MOMENTS[word]], dtype="datetime64[ms]"))


NO_DATES = [
    "2023-02-30",
    "2023-13-01",
    "31/31/2023",
    "0000-00-00",
    "1/2/23",  # which century?
    "31-Jan-23",
    "2023-01",
    "Jan 2023",
    "2023",
    "20230131",
    "12:30",
    "2023-01-31 25:00",
    "2023-01-31 13:00 PM",
    "31 Foo 2023",
    "Marching 5, 2023",
    "Foo, 31 Jan 2023",
    "1.2.3",
    "01-02/2023",
    "555-123-4567",
]


@pytest.mark.parametrize("word", NO_DATES)
def test_a_cell_that_is_no_date_is_not_read(word):
    assert cells(word).kind() != "time"
    with pytest.raises(TextError, match="must be readable as dates"):
        days(word)


@given(st.dates(), st.booleans())
def test_dates_come_back(date, day_first):
    words = [date.isoformat(), f"{date:%d %B} {date.year:04d}", f"{date:%b %d}, {date.year:04d}"]
    numeric = f"{date:%d/%m}" if day_first else f"{date:%m/%d}"
    words.append(f"{numeric}/{date.year:04d}")
    assert set(days(*words, day_first=day_first)) == {date.isoformat()}
