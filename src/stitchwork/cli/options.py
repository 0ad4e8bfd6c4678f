"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model, m.stitch; - is standard input.")]
Data = Annotated[
    Path,
    typer.Argument(metavar="DATA", help="A table: .csv, .tsv, .txt, .dat, .parquet, .npz or .nc; - is text from standard input."),
]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows that lack a number, instead of stopping.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 is all cores.")]
Missing = Annotated[str, typer.Option("--missing", help="Values that stand for nothing: -9999, or several: -9999,-99.")]
Separator = Annotated[
    str,
    typer.Option(
        "--separator", help="Between columns of text: comma, semicolon, tab or space. Understood from the file if not given."
    ),
]
Decimal = Annotated[str, typer.Option("--decimal", help="Decimal mark of text: . or ,")]
Error = Annotated[
    str, typer.Option("--error", help="Column of the standard deviations of the target's errors; one for each target: s1,s2.")
]
Limits = Annotated[list[str] | None, typer.Option("--bounds", help="a=0:1, once for each feature; the data's own if not given.")]
Slopes = Annotated[
    str, typer.Option("--gradient", help="Columns of measured slopes, as `predict --gradient` names them: dy/da,dy/db.")
]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of text, such as utf-8 or latin-1.")]


def hints_of(missing: str, separator: str, decimal: str, encoding: str) -> Any:
    """What the options say of a text file."""
    from .text import TextHints

    return TextHints(tuple(names_in(missing)), separator, decimal, encoding)


def names_in(text: str) -> list[str]:
    """Names between commas; a name with a comma stands in quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip()]


def parameter_in(text: str) -> tuple[str, Any]:
    """NAME=VALUE, where the value is a number, null, a list of numbers, or else a word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"`--set` must look like kernel=cubic, got {text!r}.")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def period_in(text: str) -> tuple[str, float]:
    """NAME=PERIOD."""
    name, _, period = text.rpartition("=")
    try:
        return name, float(period)
    except ValueError:
        raise ValueError(f"`--periodic` must look like phase=360, got {text!r}.") from None


def shape_in(text: str) -> Any:
    """200, or 200,100, or a=200,b=100."""
    parts = names_in(text)
    try:
        if any("=" in part for part in parts):
            return {name: int(size) for name, _, size in (part.rpartition("=") for part in parts)}
        numbers = [int(part) for part in parts]
    except ValueError:
        raise ValueError(f"`--shape` must be whole numbers such as 200,200 or a=200,b=100, got {text!r}.") from None
    return numbers[0] if len(numbers) == 1 else numbers


def bound_in(text: str) -> tuple[str, tuple[float, float]]:
    """a=0:1, or time=2020-01-01:2020-12-31."""
    from .cells import days_of, number_of

    name, _, limits = text.rpartition("=")
    low, _, high = limits.partition(":")
    ends = [days if (number := number_of(end)) is None and (days := days_of(end)) is not None else number for end in (low, high)]
    if not name or ends[0] is None or ends[1] is None:
        raise ValueError(f"`--bounds` must look like a=0:1, got {text!r}.")
    return name, (ends[0], ends[1])


def announcer(output: Path) -> Callable[[str], None]:
    """Says things on standard output, unless that is where results go."""
    return lambda text: typer.echo(text, err=str(output) == "-")


def title_of(path: Path) -> str:
    """A path in words."""
    return "standard output" if str(path) == "-" else str(path)


def warn(message: str) -> None:
    """Say something on standard error."""
    typer.echo(message, err=True)
