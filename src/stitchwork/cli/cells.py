"""What the cells of a column say: numbers, dates as days since 1970, or words.

A column of text is of the kind that at least half of its first cells are; whatever else stands in it is an error that names the
cell, never another guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .._types import Array

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?"})
NUMBER, DATE, WORD, AMBIGUOUS = "number", "date", "word", "ambiguous"
DAYS = "days since 1970-01-01"

_FORTRAN = re.compile(r"([\d.])[dD]([+-]?\d+)$")  # 1.5D+03
_TIME = r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?)?"
_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})" + _TIME)
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})" + _TIME)
_SLASHED = re.compile(r"\d{1,2}[/-]\d{1,2}[/-]\d{2,4}\b.*")
_SECONDS_OF_A_DAY = 86_400.0


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is nothing."""
    return cell.strip().lower() in MISSING


def number_of(cell: str, decimal: str = ".") -> float | None:
    """The number that a cell holds."""
    if decimal != "." and "." not in cell:
        cell = cell.replace(decimal, ".")
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        pass
    try:
        return float(_FORTRAN.sub(r"\1e\2", cell))
    except ValueError:
        return None


def days_of(cell: str) -> float | None:
    """Days since 1970-01-01 of a date with or without a time: 2020-12-31 18:30, 2020/12/31, 31.12.2020; UTC unless it says more."""
    cell = cell.strip()
    if found := _YEAR_FIRST.fullmatch(cell):
        year, month, day, *time = found.groups()
    elif found := _DAY_FIRST.fullmatch(cell):
        day, month, year, *time = found.groups()
    else:
        return None
    hour, minute, second, fraction, zone = time
    try:
        whole = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC)
    except ValueError:
        return None
    seconds = whole.timestamp() + float(f"0.{fraction or 0}") - _offset(zone)
    return seconds / _SECONDS_OF_A_DAY


def _offset(zone: str | None) -> float:
    """Seconds that a clock there is ahead of UTC."""
    if zone is None or zone in ("Z", "UTC"):
        return 0.0
    return (1.0 if zone[0] == "+" else -1.0) * (3600.0 * int(zone[1:3]) + 60.0 * int(zone[-2:]))


def kind_of(cells: Iterable[str], decimal: str = ".") -> str:
    """What at least half of the cells that are there are; a column without any is one of numbers."""
    known = [cell.strip() for cell in cells if not is_missing(cell)]
    tests: dict[str, Callable[[str], bool]] = {
        NUMBER: lambda cell: number_of(cell, decimal) is not None,
        DATE: lambda cell: days_of(cell) is not None,
        AMBIGUOUS: lambda cell: _SLASHED.fullmatch(cell) is not None,
    }
    return next((kind for kind, test in tests.items() if 2 * sum(map(test, known)) >= len(known)), WORD)


def fits(cell: str, kind: str, decimal: str) -> bool:
    """Whether a cell of a column of numbers or dates is one, or nothing."""
    return is_missing(cell) or (number_of(cell, decimal) if kind == NUMBER else days_of(cell)) is not None


def parse_text(column: Any, kind: str, decimal: str, words: frozenset[str]) -> tuple[Array, int | None]:
    """Numbers (n,) of an Arrow array of text, NaN where a cell is missing or one of ``words``; and the first that is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(column)
    marks = pa.array(sorted({"", "NA", "N/A", "NaN", "nan", *words}), text.type)
    text = pc.if_else(pc.is_in(text, value_set=marks), None, text)
    if kind == NUMBER:
        plain = text if decimal == "." else pc.replace_substring(text, decimal, ".")
        try:
            return np.asarray(plain.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64), None
        except pa.ArrowInvalid:
            pass  # some cell is no plain number: look at each
    parse = days_of if kind == DATE else lambda cell: number_of(cell, decimal)
    distinct = text.dictionary_encode()
    found = [np.nan if is_missing(cell) else parse(cell) for cell in distinct.dictionary.to_pylist()] + [np.nan]
    # The last stands for nulls.
    index = distinct.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)
    wrong = np.array([number is None for number in found])[index]
    numbers = np.array([np.nan if number is None else number for number in found])[index]
    return numbers, int(np.argmax(wrong)) if wrong.any() else None


def repeated_far_value(values: Array, least: int = 3) -> tuple[float, int] | None:
    """A value that repeats and lies farther from all others than they from each other, as -9999 does, and how often it is there."""
    known = values[np.isfinite(values)]
    for end in (known.min(initial=np.inf), known.max(initial=-np.inf)):
        others, count = known[known != end], int((known == end).sum())
        if count < least or len(np.unique(others[:1000])) < 10:  # flags and categories are no measurements
            continue
        gap = max(others.min() - end, end - others.max())
        if gap > np.ptp(others):
            return float(end), count
    return None


def code_words(column: Any, known: dict[str, int], grow: bool, words: frozenset[str]) -> Array:
    """Numbers (n,) of the words in an Arrow array by ``known``; NaN where one is missing, or unknown and ``known`` may not grow."""
    distinct = column.dictionary_encode()
    codes = []
    for word in ("" if cell is None else str(cell).strip() for cell in distinct.dictionary.to_pylist()):
        if is_missing(word) or word in words:
            codes.append(np.nan)
        else:
            codes.append(known.setdefault(word, len(known)) if grow else known.get(word, np.nan))
    index = distinct.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
    return np.array([*codes, np.nan], dtype=np.float64)[index]


def split_missing(values: Sequence[str]) -> tuple[frozenset[str], Array]:
    """What the user says is missing: words, and numbers."""
    numbers = [number for number in map(number_of, values) if number is not None]
    return frozenset(value.strip() for value in values), np.array(numbers, dtype=np.float64)
