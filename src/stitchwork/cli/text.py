"""Tables of text: how a file is laid out, understood from its beginning and said in words, and its bytes as plain UTF-8 lines.

Comments, a row of units, blanks between columns and other encodings are dealt with here: Arrow reads one plain kind of text.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from .cells import AMBIGUOUS, DATE, NUMBER, fits, is_missing, kind_of, marks_in, number_of
from .dates import check_format

HEAD = 1 << 20  # bytes of a file that are looked at before it is read
_SAMPLE = 1000  # lines of them that tell kinds
_CHUNK = 1 << 22
_MOST_LINES = 20  # of one quoted cell
_BREAK = "\ue000"  # stands for a line break inside a cell: a character for private use
_COMMENTS = ("#", "%")
_PADDED = re.compile(r"0\d+$")
SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas", " ": "spaces"}
IMPUTE = ("median", "model")
_SPELLED = {name.rstrip("s"): mark for mark, name in SEPARATORS.items()} | {"\\t": "\t"}


@dataclass(frozen=True)
class Reading:
    """How a table is read: what the user says of the file, empty where it is to be understood from the file itself.

    Rows that lack a number stop the command, unless they are left out (``drop_missing``) or what their features lack is filled
    (``impute``: by medians, or by a model of the other features).
    """

    missing: tuple[str, ...] = ()
    separator: str = ""
    decimal: str = ""
    encoding: str = ""
    date_format: str = ""
    sheet: str = ""
    drop_missing: bool = False
    impute: str = ""

    def __post_init__(self) -> None:
        check_format(self.date_format)
        if self.impute not in ("", *IMPUTE):
            raise ValueError(f"`--impute` must be one of {', '.join(IMPUTE)}, got {self.impute!r}.")
        if self.separator and _SPELLED.get(self.separator, self.separator) not in SEPARATORS:
            raise ValueError(f"`--separator` must be one of {', '.join(_SPELLED)} or such a mark, got {self.separator!r}.")
        if self.decimal not in ("", ".", ","):
            raise ValueError(f"`--decimal` must be '.' or ',', got {self.decimal!r}.")
        if self.encoding:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ValueError(f"`--encoding` must be one that Python knows, such as latin-1, got {self.encoding!r}.") from None


@dataclass(frozen=True)
class Layout:
    """How a table of text is laid out: ``start`` is the number of characters before its first row.

    Columns that are ``padded`` have cells such as 007, which would not be the same as numbers.
    """

    encoding: str
    separator: str
    decimal: str
    names: list[str]
    kinds: list[str]
    padded: frozenset[str]
    start: int
    comments: tuple[str, ...]
    notes: tuple[str, ...]

    def describe(self) -> str:
        """The layout in words."""
        parts = [SEPARATORS[self.separator] if len(self.names) > 1 else "one column"]
        parts.append("decimal commas" if self.decimal == "," else "decimal points")
        parts.append({"utf-8-sig": "UTF-8", "cp1252": "Latin-1 (Windows)"}.get(self.encoding, self.encoding))
        return ", ".join([*parts, *self.notes])


def understand(head: bytes, whole: bool, hints: Reading, tabs: bool = False) -> Layout:
    """The layout of a file that begins with ``head``; ``whole`` says that this is all of it."""
    encoding = hints.encoding or _encoding(head)
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=whole)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text in {encoding} ({error.reason}). Name its encoding with `--encoding`") from error
    lines = split_lines(text)
    lines = (lines if whole or len(lines) < 2 else lines[:-1])[:_SAMPLE]
    marks, body, ends = _split_comments(lines)
    if not body:
        raise ValueError("it is empty")
    mark = "\t" if tabs else _SPELLED.get(hints.separator, hints.separator)
    separator, decimal = _choose_marks([line for _, line in body], mark, hints.decimal)
    rows = [split_line(line, separator) for _, line in body]
    names, skipped, notes = _find_names(rows, decimal, lines[: body[0][0]], separator)
    data = rows[skipped:]
    width = len(names)
    columns = [[row[k] for row in data if len(row) == width] for k in range(width)]
    kinds = [kind_of(column, decimal, hints.date_format) for column in columns]
    notes += _tell_marks(names, kinds, columns, decimal)
    if len(lines) - len(body) - sum(not line.strip() for line in lines):
        notes.append(f"comments after {' and '.join(marks)}")
    start = ends[body[skipped][0] - 1] if skipped < len(body) and body[skipped][0] else (0 if skipped < len(body) else len(text))
    padded = frozenset(name for name, column in zip(names, columns, strict=True) if any(map(_PADDED.match, column)))
    return Layout(encoding, separator, decimal, names, kinds, padded, start, marks, tuple(notes))


def _tell_marks(names: list[str], kinds: list[str], columns: list[list[str]], decimal: str) -> list[str]:
    """Signs and thousands marks that are left out of numbers, by column."""
    removed = [
        f"{' and '.join(marks)} in {name}"
        for name, kind, column in zip(names, kinds, columns, strict=True)
        if kind == NUMBER and (marks := marks_in(column, decimal))
    ]
    return [f"without {', '.join(removed)}"] if removed else []


def split_lines(text: str) -> list[str]:
    """Lines with their ends, line feeds or carriage returns: other line separators of Unicode are part of a cell.

    A line whose quoted cell goes on in the next is one with it.
    """
    found: list[str] = []
    plain = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    k = 0
    while k < len(plain):
        line, end = plain[k], k + 1
        while _is_open(line) and end < min(k + _MOST_LINES, len(plain)):
            line, end = line + plain[end], end + 1
        if _is_open(line):  # a quote that is never closed is a mark like any other
            line, end = plain[k], k + 1
        found.append(line)
        k = end
    return found


def _is_open(line: str) -> bool:
    """Whether the last of the cells that begin with a quote has no end."""
    return line.count('"') % 2 == 1 and re.search(r'(?:^|[,;\t ])"', line) is not None


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        return "cp1252" if not {0x81, 0x8D, 0x8F, 0x90, 0x9D} & set(head) else "latin-1"
    return "utf-8-sig"


def _split_comments(lines: list[str]) -> tuple[tuple[str, ...], list[tuple[int, str]], list[int]]:
    """Marks of comments, the other lines that are not blank with their numbers, and where each line ends.

    A mark begins a comment if the first line that is not blank begins with it, or if some line does that has no other cells.
    """
    filled = [line.strip() for line in lines if line.strip()]
    marks = tuple(
        mark for mark in _COMMENTS if any(line.startswith(mark) and (k == 0 or _is_remark(line)) for k, line in enumerate(filled))
    )
    body = [(k, line) for k, line in enumerate(lines) if line.strip() and not (marks and line.lstrip().startswith(marks))]
    ends, total = [], 0
    for line in lines:
        total += len(line)
        ends.append(total)
    return marks, body, ends


def _is_remark(line: str) -> bool:
    return not any(mark in line for mark in (",", ";", "\t"))


def split_line(line: str, separator: str) -> list[str]:
    """The cells of a line."""
    plain = re.sub(r"[ \t]+", " ", line.strip()) if separator == " " else line.rstrip("\r\n")
    plain = re.sub(r"\r\n|\r|\n", _BREAK, plain)
    try:
        cells = next(csv.reader([plain], delimiter=separator, skipinitialspace=True), [])
        return [cell.replace(_BREAK, "\n").strip() for cell in cells]
    except csv.Error as error:
        said = f"a line that begins with {plain[:40]!r} cannot be split into cells ({error}); look for a quote that is never closed"
        raise ValueError(said) from error


def _choose_marks(lines: list[str], separator: str, decimal: str) -> tuple[str, str]:
    """Separator and decimal mark with which most cells of the rows are numbers or dates, in rows as long as the first line."""
    best, found = -1.0, (separator or ",", decimal or ".")
    for mark in [separator] if separator else SEPARATORS:
        rows = [split_line(line, mark) for line in lines[:200]]
        width = len(rows[0])
        even = [row for row in rows if len(row) == width]
        if not separator and (width < 2 or 2 * len(even) < len(rows) or (len(rows) > 1 and len(rows[1]) != width)):
            continue
        cells = [cell for row in (even[1:] or even) for cell in row]
        for point in [decimal] if decimal else [".", ","] if mark != "," else ["."]:
            share = sum(number_of(cell, point) is not None or fits(cell, DATE, point) for cell in cells) / max(len(cells), 1)
            if share > best:
                best, found = share, (mark, point)
    if best < 0.0 and not decimal:  # one column
        cells = [line.strip() for line in lines[1:200]]
        commas, points = (sum(number_of(cell, point) is not None for cell in cells) for point in ",.")
        found = (found[0], "," if commas > points else ".")
    return (";" if found == (",", ",") else found[0]), found[1]


def _find_names(rows: list[list[str]], decimal: str, above: Sequence[str], separator: str) -> tuple[list[str], int, list[str]]:
    """Names of the columns, how many rows come before the data, and what is to be said of it."""
    first, width = rows[0], len(rows[0])
    # Numbers are data, unless they count the columns, as pandas names them.
    data = all(number_of(cell, decimal) is not None for cell in first) if len(rows) == 1 else _fits_below(first, rows[1:], decimal)
    if not data or (len(rows) > 1 and first == [str(k) for k in range(width)]):
        return (_check_names(first), *_find_units(rows, decimal))
    # A comment right above the data with as many words as there are columns has their names: "# x y z".
    words = split_line(above[-1].strip().lstrip("#% "), separator) if above and above[-1].strip() else []
    if len(words) == width and not any(number_of(word, decimal) is not None for word in words):
        return _check_names(words), 0, ["names from the comment above the data"]
    return [f"column{k + 1}" for k in range(width)], 0, ["no names: column1, column2, …"]


def _fits_below(first: list[str], rows: list[list[str]], decimal: str) -> bool:
    """Whether a row could be one of those below: some column there has numbers or dates, and it has them, too."""
    kinds = _kinds(rows, len(first), decimal)
    typed = [(cell, kind) for cell, kind in zip(first, kinds, strict=True) if kind in (NUMBER, DATE, AMBIGUOUS)]
    return bool(typed) and all(kind == AMBIGUOUS or fits(cell, kind, decimal) for cell, kind in typed)


def _find_units(rows: list[list[str]], decimal: str) -> tuple[int, list[str]]:
    """A row of units below the names has no number where numbers stand below it."""
    if len(rows) < 3 or len(rows[1]) != len(rows[0]):
        return 1, []
    kinds = _kinds(rows[2:], len(rows[0]), decimal)
    typed = [(cell, kind) for cell, kind in zip(rows[1], kinds, strict=True) if kind in (NUMBER, DATE) and not is_missing(cell)]
    if not typed or any(fits(cell, kind, decimal) for cell, kind in typed):
        return 1, []
    return 2, [f"units below the names ({', '.join(rows[1])})"]


def _kinds(rows: list[list[str]], width: int, decimal: str) -> list[str]:
    even = [row for row in rows if len(row) == width]
    return [kind_of((row[k] for row in even), decimal) if even else "" for k in range(width)]


def _check_names(names: list[str]) -> list[str]:
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        raise ValueError(f"it has two columns named {max(named, key=named.count)!r}. Rename one of them")
    return names


class Lines(io.RawIOBase):
    """The rows of a text file as UTF-8, without comments and blank lines, cells between single marks."""

    def __init__(self, head: bytes, file: BinaryIO, layout: Layout):
        self._pieces, self._left = self._clean(head, file, layout), b""

    def readable(self) -> bool:
        """Yes."""
        return True

    def peek(self) -> bytes:
        """The bytes that come next, none at the end."""
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._left = piece
        return self._left

    def readinto(self, buffer: Any) -> int:
        """Some bytes, none at the end."""
        self.peek()
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count

    def _clean(self, head: bytes, file: BinaryIO, layout: Layout) -> Iterator[bytes]:
        decoder, skip, rest = codecs.getincrementaldecoder(layout.encoding)(), layout.start, ""
        while True:
            chunk = head or file.read(_CHUNK)
            head = b""
            text = rest + decoder.decode(chunk, final=not chunk)
            if not chunk:
                yield clean_lines(text[skip:], layout)
                return
            end = text.rfind("\n") + 1
            lines, rest = text[:end], text[end:]
            used = min(skip, len(lines))
            skip -= used
            yield clean_lines(lines[used:], layout)


def clean_lines(text: str, layout: Layout) -> bytes:
    """Whole lines as Arrow reads them."""
    if layout.comments:
        text = re.sub(rf"(?m)^[ \t]*[{''.join(layout.comments)}].*(?:\n|\Z)", "", text)
    if layout.separator == " ":
        text = re.sub(r"(?m)^[ \t]+|[ \t\r]+$", "", text)
        text = re.sub(r"[ \t]+", " ", text)
    elif "\n " in text or "\n\t" in text or text.startswith((" ", "\t")):
        text = re.sub(r"(?m)^[ \t]+\r?$", "", text) if layout.separator != "\t" else re.sub(r"(?m)^ +\r?$", "", text)
    return text.encode()
