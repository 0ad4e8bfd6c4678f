"""Options that several commands share, and how their text is read.

`reads_a_table` gives a command the options of tables and hands them over as one object, ``reading``.
"""

from __future__ import annotations

import csv
import inspect
import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from .console import failing

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model, m.stitch; - is standard input.")]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv, .txt, .dat, .xlsx, .parquet, .npz, .nc, .gpkg, .shp or .geojson; - is text from standard input.",
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 is all cores.")]
Error = Annotated[
    str, typer.Option("--error", help="Column of the standard deviations of the target's errors; one for each target: s1,s2.")
]
Slopes = Annotated[
    str, typer.Option("--gradient", help="Columns of measured slopes, as `predict --gradient` names them: dy/da,dy/db.")
]
Bounds = Annotated[list[str] | None, typer.Option("--bounds", help="a=0:1, once for each feature; the data's own if not given.")]
FunctionStd = Annotated[
    bool,
    typer.Option("--function-std", help="Add the standard deviations of the function without noise, and those of derivatives."),
]
Unit = Annotated[
    str, typer.Option("--unit", help="metres: derivatives by longitude and latitude are those by metres to the east and north.")
]


def table_options(
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows that lack a number, instead of stopping.")
    ] = False,
    impute: Annotated[
        str,
        typer.Option(
            "--impute", help="Fill what features lack: by their median, or by a model of the other features: median, model."
        ),
    ] = "",
    missing: Annotated[str, typer.Option("--missing", help="Values that mean missing: -9999, or several: -9999,-99.")] = "",
    date_format: Annotated[
        str, typer.Option("--date-format", help="How dates are written: dmy, mdy, or as strptime has it, such as %d %b %Y.")
    ] = "",
    separator: Annotated[
        str,
        typer.Option(
            "--separator", help="Between columns of text: comma, semicolon, tab or space. Detected from the file if not given."
        ),
    ] = "",
    decimal: Annotated[str, typer.Option("--decimal", help="Decimal mark of text: . or ,")] = "",
    encoding: Annotated[str, typer.Option("--encoding", help="Encoding of text, such as utf-8 or latin-1.")] = "",
    sheet: Annotated[str, typer.Option("--sheet", help="Sheet of a workbook, the first if not given.")] = "",
) -> Any:
    """How a table is read, as one object."""
    from .text import Reading

    return Reading(tuple(names_in(missing)), separator, decimal, encoding, date_format, sheet, drop_missing, impute)


def reads_a_table(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `table_options` in the place of its argument ``reading``, which is made of them."""
    own = inspect.signature(command, eval_str=True).parameters
    shared = inspect.signature(table_options, eval_str=True).parameters

    @wraps(command)
    def with_options(**given: Any) -> None:
        with failing():
            reading = table_options(**{name: given.pop(name) for name in shared})
        command(**given, reading=reading)

    parts = [one for name, each in own.items() for one in (shared.values() if name == "reading" else [each])]
    parts = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in parts]
    with_options.__signature__ = inspect.Signature(parts)  # type: ignore[attr-defined]
    with_options.__annotations__ = {part.name: part.annotation for part in parts}
    return with_options


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


def spacing_in(text: str) -> Any:
    """0.25, or a=0.25,b=0.5; None where nothing is said."""
    parts = names_in(text)
    try:
        if any("=" in part for part in parts):
            return {name: float(step) for name, _, step in (part.rpartition("=") for part in parts)}
        if len(parts) > 1:
            raise ValueError
        return float(parts[0]) if parts else None
    except ValueError:
        raise ValueError(
            f"`--spacing` must be one number, or a number for each feature such as a=0.5,b=10, got {text!r}."
        ) from None


def bound_in(text: str) -> tuple[str, tuple[float, float]]:
    """a=0:1, or time=2020-01-01:2020-12-31."""
    from .cells import days_of, number_of

    name, _, limits = text.rpartition("=")
    low, _, high = limits.partition(":")
    ends = [days if (number := number_of(end)) is None and (days := days_of(end)) is not None else number for end in (low, high)]
    if not name or ends[0] is None or ends[1] is None:
        raise ValueError(f"`--bounds` must look like a=0:1, got {text!r}.")
    return name, (ends[0], ends[1])


def title_of(path: Path) -> str:
    """A path in words."""
    return "standard output" if str(path) == "-" else str(path)
