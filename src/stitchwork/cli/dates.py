"""Dates in text: 2020-12-31 and 31.12.2020 are unambiguous; the whole column, or the user, decides how 3/4/2020 is read.

Days are counted from 1970-01-01, UTC unless a cell names a zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

DAYS = "days since 1970-01-01"
DAY_FIRST, MONTH_FIRST = "dmy", "mdy"  # how 3/4/2020 is read
_TIME = r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?)?"
_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})" + _TIME)
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})" + _TIME)
_SLASHED = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4}|\d{2})" + _TIME)
_SECONDS_OF_A_DAY = 86_400.0
_FIRST_YEAR = 69  # 69 to 99 are of the last century, as strptime has it


def check_format(text: str) -> None:
    """Raise a `ValueError` unless this is an order of day and month, or a format that reads back what it writes."""
    if text in ("", DAY_FIRST, MONTH_FIRST):
        return
    try:
        known = "%" in text and datetime.strptime(datetime(2001, 2, 3).strftime(text), text).year == 2001
    except ValueError:
        known = False
    if not known:
        raise ValueError(
            f"`--date-format` must be dmy, mdy, or a format of strptime with day, month and year such as '%d %b %Y', got {text!r}."
        )


def days_of(cell: str, form: str = "") -> float | None:
    """Days since 1970-01-01 of a date with or without a time; ``form`` is an order for 3/4/2020, or a format of strptime."""
    cell = cell.strip()
    if "%" in form and (days := _formatted(cell, form)) is not None:
        return days
    if found := _YEAR_FIRST.fullmatch(cell):
        year, month, day, *time = found.groups()
    elif found := _DOTTED.fullmatch(cell):
        day, month, year, *time = found.groups()
    elif form in (DAY_FIRST, MONTH_FIRST) and (found := _SLASHED.fullmatch(cell)):
        first, second, year, *time = found.groups()
        day, month = (first, second) if form == DAY_FIRST else (second, first)
        year = year if len(year) == 4 else str(int(year) + (1900 if int(year) >= _FIRST_YEAR else 2000))
    else:
        return None
    hour, minute, second, fraction, zone = time
    try:
        whole = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC)
    except ValueError:
        return None
    seconds = whole.timestamp() + float(f"0.{fraction or 0}") - _offset(zone)
    return seconds / _SECONDS_OF_A_DAY


def _formatted(cell: str, form: str) -> float | None:
    try:
        found = datetime.strptime(cell, form)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() / _SECONDS_OF_A_DAY


def _offset(zone: str | None) -> float:
    """Seconds that a clock there is ahead of UTC."""
    if zone is None or zone in ("Z", "UTC"):
        return 0.0
    return (1.0 if zone[0] == "+" else -1.0) * (3600.0 * int(zone[1:3]) + 60.0 * int(zone[-2:]))


def is_slashed(cell: str) -> bool:
    """Whether a cell is a date such as 3/4/2020, which can be read in two ways."""
    return _SLASHED.fullmatch(cell.strip()) is not None


def orders_in(cells: Iterable[str]) -> dict[str, str]:
    """The orders of day and month that dates such as 31/12/2020 prove, each with the first such cell."""
    orders: dict[str, str] = {}
    for cell in cells:
        found = _SLASHED.fullmatch(cell.strip())
        if found is not None:
            first, second = int(found[1]), int(found[2])
            if first > 12:
                orders.setdefault(DAY_FIRST, cell)
            if second > 12:
                orders.setdefault(MONTH_FIRST, cell)
    return orders
