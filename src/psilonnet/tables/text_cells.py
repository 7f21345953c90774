"""One cell of text as a number or a date, in all the ways in which it can be read."""

from __future__ import annotations

import datetime
import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from psilonnet.tables.columns import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST = 40  # letters of a number or a date
EPOCH = datetime.date(1970, 1, 1).toordinal()

# What people write and what stands for it here: spaces that do not break, apostrophes, minus.
_PLAIN = str.maketrans(
    dict.fromkeys("\u00a0\u2007\u2009\u202f\t", " ") | {"\u2019": "'", "\u2212": "-"}
)
_SHAPE = str.maketrans("023456789", "111111111")
_SWAPPED = str.maketrans(".,", ",.")

# Signs, words and codes of currencies, and the percent sign.
_UNITS = """
    % $ US$ A$ AU$ C$ CA$ R$ S$ SG$ HK$ NZ$ NT$ MX$ € £ ¥ ₹ ₽ ₩ ₺ ₪ ₴ ₫ ₦ ₱ ฿ ₸ KR ZŁ KČ FT FR RS
    LEI AED ARS AUD BDT BGN BHD BRL CAD CHF CLP CNY COP CZK DKK DZD EGP EUR GBP GHS HKD HRK HUF IDR
    ILS INR ISK JOD JPY KES KRW KWD KZT LKR MAD MXN MYR NGN NOK NZD OMR PEN PHP PKR PLN QAR RON RSD
    RUB SAR SEK SGD THB TND TRY TWD TZS UAH UGX USD UYU VND XAF XOF ZAR
"""
UNITS = frozenset(_UNITS.split())
# Patterns of numbers see each digit as a 1, but a first one that is 0.
_AMOUNT = re.compile(
    r"(?P<open>\( ?)?(?P<sign>[-+] ?)?(?:(?P<before>[^\W01]{0,3}[^\s01.,'()+-]\.?) ?)?"
    r"(?P<inner>[-+] ?)?(?P<body>[01.,](?:[01.,' ]*[01])?)(?P<power>[eE][-+]?[01]{1,3})?"
    r"(?: ?(?P<after>[^\W01]{0,3}[^\s01.,'()+-]\.?))?(?P<behind> ?-)?(?P<close> ?\))?"
)
# With a decimal point; a comma, a space or an apostrophe separates thousands, in India lakhs.
_BODY = re.compile(
    r"(?:0|1+|1{1,3}(?P<mark>[, '])111(?:(?P=mark)111)*|11?(?:,11)+,111)?(?:\.[01]1*)?"
)
_GROUPS = re.compile(r"1{1,3}(?P<mark>[., '])111(?:(?P=mark)111)+")


class Number(NamedTuple):
    """A cell that is a number.

    Attributes
    ----------
    point : float
        What it is if the point is the decimal sign; NaN if it cannot be.
    comma : float
        What it is if the comma is.
    form : NumberForm
    """

    point: float
    comma: float
    form: NumberForm


class NumberForm(NamedTuple):
    """How a number is written, whatever its digits.

    Attributes
    ----------
    start, end, stop : int
        Where the digits with their separators begin and end, and where a power of ten ends.
    spaces : str
        What separates groups of digits, if it is neither point nor comma.
    minus : bool
    with_point, with_comma : bool
        Whether the point can be the decimal sign, and whether the comma can.
    unit : str
        "%", the sign or code of a currency, or "".
    is_digits : bool
        Whether there is nothing but digits.
    is_marked : bool
        Whether it is written for people: with a unit, groups, a decimal comma or in brackets.
    digits : int
        How many digits a whole number in three or more groups has, without a unit; else 0.
    """

    start: int
    end: int
    stop: int
    spaces: str
    minus: bool
    with_point: bool
    with_comma: bool
    unit: str
    is_digits: bool
    is_marked: bool
    digits: int


def read_number(word: str) -> Number | None:
    """Return the number that a cell is, or None.

    >>> read_number("1,435")[:2], read_number("($1,435.00)")[:2], read_number("00123")
    ((1435.0, 1.435), (-1435.0, nan), None)
    """
    word = word.strip()
    shape = word.translate(_SHAPE)
    first = shape.find("1")
    if first < 0 or len(word) > LONGEST:
        return None
    if word[first] == "0":
        shape = shape[:first] + "0" + shape[first + 1 :]
    form = _number_form(shape)
    if form is None:
        return None
    body, power = word[form.start : form.end], word[form.end : form.stop]
    for sign in form.spaces:
        body = body.replace(sign, "")
    point = float(body.replace(",", "") + power) if form.with_point else math.nan
    comma = math.nan
    if form.with_comma:
        comma = float(body.replace(".", "").replace(",", ".") + power)
    if math.isinf(point) or math.isinf(comma):
        return None
    return Number(-point, -comma, form) if form.minus else Number(point, comma, form)


@lru_cache(maxsize=2**12)  # a column has far fewer forms than cells
def _number_form(shape: str) -> NumberForm | None:
    """Return how a number is written; its digits are 1, but a 0 that comes first."""
    found = _AMOUNT.fullmatch(shape.translate(_PLAIN))
    if found is None:
        return None
    body, power = found["body"], found["power"] or ""
    units = [unit.upper().rstrip(".") for unit in (found["before"], found["after"]) if unit]
    signs = [sign for sign in (found["sign"], found["inner"], found["behind"]) if sign]
    brackets = found["open"] is not None
    with_point, with_comma = _fits(body, power), _fits(body.translate(_SWAPPED), power)
    if not (with_point or with_comma) or brackets != (found["close"] is not None):
        return None
    if len(signs) + brackets > 1 or len(units) + bool(power) > 1 or not UNITS.issuperset(units):
        return None
    if signs and "+" in signs[0] and " " in body:  # as phone numbers are written
        return None
    groups = not units and _GROUPS.fullmatch(body)
    human = bool(units or brackets or found["behind"] or set(body) & set(", '"))
    return NumberForm(
        start=found.start("body"),
        end=found.end("body"),
        stop=found.end("body") + len(power),
        spaces="".join(set(shape[found.start("body") : found.end("body")]) - set("01.,")),
        minus=brackets or bool(signs and "-" in signs[0]),
        with_point=with_point,
        with_comma=with_comma,
        unit=units[0] if units else "",
        is_digits=found[0].isdigit(),
        is_marked=human or body.count(".") > 1,
        digits=sum(map(str.isdigit, body)) if groups else 0,
    )


def _fits(body: str, power: str) -> bool:
    """Whether digits can be a number with a decimal point."""
    return _BODY.fullmatch(body) is not None and not (power and set(body) & set(", '"))


_TIME = (
    r"(?:(?:T|,? )(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<part>\d+))?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?(?: ?(?P<zone>Z|UTC|GMT|[-+]\d\d(?::?\d\d)?))?)?"
)
_WEEKDAY = r"(?:(?P<weekday>[A-Za-z]{3,9})\.?,? )?"
_NAME = r"(?P<name>[A-Za-z]{3,9})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_DATES = [
    re.compile(_WEEKDAY + pattern + _TIME, re.ASCII)
    for pattern in (
        r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
        r"(?P<one>\d{1,2})(?P<mark>[-/.])(?P<other>\d{1,2})(?P=mark)(?P<year>\d{4})",
        rf"{_DAY}[ /-]?{_NAME},?[ /-]?(?P<year>\d{{4}})",
        rf"{_NAME} {_DAY},? (?P<year>\d{{4}})",
    )
]
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)


def read_date(word: str) -> tuple[float, float] | None:
    """Return a date, in milliseconds since 1970, with the day and with the month first, or None.

    One of them is NaN if the cell cannot be read that way; they are equal if it does not matter.

    >>> read_date("1970-01-02"), read_date("01/13/1970"), read_date("1 Jan 1970 1:00 +01:00")
    ((86400000.0, 86400000.0), (nan, 1036800000.0), (0.0, 0.0))
    """
    word = word.strip()
    shape = word.translate(_SHAPE) if 8 <= len(word) <= LONGEST else ""
    form = _date_form(shape) if "1111" in shape else None  # there must be a year
    if form is None:
        return None
    parts = {name: word[start:end] for name, (start, end) in form.items()}
    time, year = _time(parts), int(parts["year"])
    if "one" in parts:
        one, other = int(parts["one"]), int(parts["other"])
        read = _moment(year, other, one, time), _moment(year, one, other, time)
    else:
        month = _place(parts["name"], _MONTHS) + 1 if "name" in parts else int(parts["month"])
        read = (_moment(year, month, int(parts["day"]), time),) * 2
    return None if math.isnan(read[0]) and math.isnan(read[1]) else read


@lru_cache(maxsize=2**12)
def _date_form(shape: str) -> dict[str, tuple[int, int]] | None:
    """Return where the parts of a date are, whatever its digits."""
    found = next(filter(None, (p.fullmatch(shape.translate(_PLAIN)) for p in _DATES)), None)
    if found is None:
        return None
    if _place(found.groupdict().get("name") or "jan", _MONTHS) < 0:
        return None
    if _place(found["weekday"] or "mon", _WEEKDAYS) < 0:
        return None
    return {name: found.span(name) for name, text in found.groupdict().items() if text is not None}


def _place(name: str, names: Sequence[str]) -> int:
    """Return the number of a name, which may be cut to three or four letters; -1 if unknown."""
    name = name.lower()
    whole = (k for k, full in enumerate(names) if name in (full, full[:3], full[:4]))
    return next(whole, -1)


def _moment(year: int, month: int, day: int, time: float) -> float:
    try:
        return (datetime.date(year, month, day).toordinal() - EPOCH) * DAY + time
    except ValueError:
        return math.nan


def _time(parts: Mapping[str, str]) -> float:
    """Return the milliseconds since midnight in UTC; NaN if there is no such time."""
    if "hour" not in parts:
        return 0.0
    hour, minute, second = (int(parts.get(name, 0)) for name in ("hour", "minute", "second"))
    if half := parts.get("half"):
        if not 1 <= hour <= 12:
            return math.nan
        hour = hour % 12 + 12 * (half in "pP")
    if hour > 23 or minute > 59 or second > 59:
        return math.nan
    thousandths = int((parts.get("part", "") + "000")[:3])  # cut, not rounded
    return ((hour * 60 + minute) * 60 + second) * 1000.0 + thousandths - _offset(parts)


def _offset(parts: Mapping[str, str]) -> float:
    """Return the milliseconds by which a zone is ahead of UTC."""
    zone = parts.get("zone", "Z").replace(":", "")
    if zone[0] not in "+-":
        return 0.0
    minutes = int(zone[1:3]) * 60 + int(zone[3:] or 0)
    return minutes * (60_000.0 if zone[0] == "+" else -60_000.0)
