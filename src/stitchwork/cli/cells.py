"""What the cells of a column say: numbers, dates as days since 1970, or words.

A column of text is of the kind that at least half of its first cells are; whatever else stands in it is an error that names the
cell, never another guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .._types import Array
from .dates import DAYS, days_of, is_slashed

__all__ = ["AMBIGUOUS", "DATE", "DAYS", "NUMBER", "WORD", "days_of"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?"})
NUMBER, DATE, WORD, AMBIGUOUS = "number", "date", "word", "ambiguous"

_FORTRAN = re.compile(r"([\d.])[dD]([+-]?\d+)$")  # 1.5D+03
_SPACES = "\u00a0\u202f '"  # between thousands: 12 881 816, 12'881'816
_MARKS = "$€£¥"
_THOUSANDS = re.compile(rf"\d{{1,3}}(?:([,.{_SPACES}])\d{{3}})(?:\1\d{{3}})*(?:(?!\1)[.,]\d*)?")
_QUANTITY = re.compile(rf"([+-]?)\s*([{_MARKS}]?)\s*([+-]?)([\d.,{_SPACES}]*\d[.,]?)\s*([{_MARKS}%]?)")


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


def quantity_of(cell: str, decimal: str = ".") -> float | None:
    """The number of a cell that may have marks: $978.01, 12,881,816, -1 234 €, 45 % (which is 45)."""
    number = number_of(cell, decimal)
    if number is not None or (found := _QUANTITY.fullmatch(cell.strip())) is None:
        return number
    sign, before, inner, digits, after = found.groups()
    if (before and after in _MARKS and after) or (sign and inner):
        return None
    grouped = _THOUSANDS.fullmatch(digits)
    if grouped is not None and grouped[1] != decimal:
        digits = digits.replace(grouped[1], "")
    number = number_of(digits, decimal)
    return None if number is None else -number if "-" in (sign, inner) else number


def marks_in(cells: Iterable[str], decimal: str) -> list[str]:
    """What stands around or inside of numbers: signs of currencies, % and thousands marks."""
    found: dict[str, None] = {}
    for cell in cells:
        if number_of(cell, decimal) is None and quantity_of(cell, decimal) is not None:
            marks = [mark for mark in f"{_MARKS}%" if mark in cell]
            plain = cell.strip(f"{_MARKS}% +-")
            found |= dict.fromkeys([*marks, *(["thousands marks"] if number_of(plain, decimal) is None else [])])
    return list(found)


def kind_of(cells: Iterable[str], decimal: str = ".", form: str = "") -> str:
    """The kind of at least half of the cells that are not missing, numbers if all are; ``form`` is the format of dates."""
    known = [cell.strip() for cell in cells if not is_missing(cell)]
    tests: dict[str, Callable[[str], bool]] = {
        NUMBER: lambda cell: quantity_of(cell, decimal) is not None,
        DATE: lambda cell: days_of(cell, form) is not None,
        AMBIGUOUS: is_slashed,
    }
    return next((kind for kind, test in tests.items() if 2 * sum(map(test, known)) >= len(known)), WORD)


def fits(cell: str, kind: str, decimal: str, form: str = "") -> bool:
    """Whether a cell of a column of numbers or dates is one, or nothing."""
    return is_missing(cell) or (quantity_of(cell, decimal) if kind == NUMBER else days_of(cell, form)) is not None


def parse_text(column: Any, kind: str, decimal: str, words: frozenset[str], form: str = "") -> tuple[Array, int | None]:
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
    parse = (lambda cell: days_of(cell, form)) if kind == DATE else (lambda cell: quantity_of(cell, decimal))
    distinct = text.dictionary_encode()
    found = [np.nan if is_missing(cell) else parse(cell) for cell in distinct.dictionary.to_pylist()] + [np.nan]
    # The last stands for nulls.
    index = distinct.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)
    wrong = np.array([number is None for number in found])[index]
    numbers = np.array([np.nan if number is None else number for number in found])[index]
    return numbers, int(np.argmax(wrong)) if wrong.any() else None


UNKNOWN = -np.inf  # in the place of a word that the model does not know: nothing fills it in


def code_words(column: Any, known: dict[str, int], grow: bool, words: frozenset[str]) -> tuple[Array, dict[str, int], int]:
    """Numbers (n,) of the words in an Arrow array by ``known``; NaN where one is missing, `UNKNOWN` where ``known`` may not grow.

    Then how often each unknown word is there, and how many cells have blanks around their word.
    """
    import pyarrow.compute as pc

    distinct = column.dictionary_encode()
    often = {one["values"]: one["counts"] for one in pc.value_counts(distinct.indices).to_pylist()}
    codes: list[float] = []
    unknown: dict[str, int] = {}
    spaced = 0
    for k, cell in enumerate(distinct.dictionary.to_pylist()):
        word = "" if cell is None else str(cell).strip()
        if is_missing(word) or word in words:
            codes.append(np.nan)
            continue
        spaced += often.get(k, 0) if word != cell else 0
        codes.append(known.setdefault(word, len(known)) if grow else known.get(word, UNKNOWN))
        if word not in known:
            unknown[word] = unknown.get(word, 0) + often.get(k, 0)
    index = distinct.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
    return np.array([*codes, np.nan], dtype=np.float64)[index], unknown, spaced


def split_missing(values: Sequence[str]) -> tuple[frozenset[str], Array]:
    """The user's marks of missing values, as words and as numbers."""
    numbers = [number for number in map(number_of, values) if number is not None]
    return frozenset(value.strip() for value in values), np.array(numbers, dtype=np.float64)
