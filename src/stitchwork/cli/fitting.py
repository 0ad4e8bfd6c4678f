"""`stitchwork fit`: from a table to a saved model, with what was found out on the way."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._parallel import Threads
from .._regressor import StitchedRegressor, kept_parameters
from .._types import Index
from .._validation import make_chart
from ..model.loo import LeftOut
from ..model.stitched import StitchedModel
from ..transform import LogStitchedRegressor
from ..views.advice import advise
from ..views.summary import summarize
from .columns import column_values, name_columns
from .console import Console
from .loading import check_jobs
from .options import title_of
from .reading import Columns, Data, read_columns
from .tables import open_table
from .text import Reading
from .validate import describe_validation
from .writing import check_output, placed

_SHOWN = 4  # columns that tell where a row lies
_ROWS = 10  # rows that are named


class Extras(NamedTuple):
    """What is done besides the fit: held-out errors with ``validate``; ``quick`` leaves out leave-one-out, noise and advice."""

    validate: str | None = None
    quick: bool = False


def fit_table(
    data: Path, reading: Reading, columns: Columns, output: Path, model: StitchedRegressor, extras: Extras, console: Console
) -> None:
    """Fit a model to the columns of a table and save it; before that, if asked, tell its errors on parts that are held out."""
    check_output(output, inputs=[data])
    console.enter("reading", show=True)
    table = open_table(data, reading)
    console.clear()
    rows = read_columns(table, columns, reading, console, model.geographic is not None)
    y = rows.y[:, 0] if len(rows.targets) == 1 else rows.y
    _check_rows(model, rows)
    model.set_params(**_counted_coordinates(model, rows.features))
    if extras.validate is not None and rows.slopes is not None:
        raise ValueError("`--validate` does not hold out slopes. Leave `--gradient` or `--validate` out.")
    if extras.validate is not None:
        console.enter("validation", show=True)
        validation = describe_validation(model, rows.X, y, rows.weights, rows.groups, rows.errors, extras.validate)
        console.clear()
        console.announce(f"held out       {validation}")
    console.enter("fit")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(rows.X, y, rows.weights, rows.groups, rows.errors, gradient=rows.slopes)
    for warning in caught:
        console.warn(str(warning.message))
    model.model_ = name_columns(model.model_, rows.features, rows.targets, rows.dates, rows.words, table.attributes)
    lines = _look_at(model.model_, rows, Threads(model.n_jobs, console.live), extras.quick, console)
    console.enter("saving")
    with placed(output) as temporary:
        model.save(temporary)
        size = temporary.stat().st_size
    for line in lines:
        console.announce(line)
    _tell_robust(model, rows, console)
    console.announce(f"fitted in      {console.took()}\nsaved to       {title_of(output)} ({size / 2**20:.1f} MB)")


def _look_at(model: StitchedModel, rows: Data, threads: Threads, quick: bool, console: Console) -> list[str]:
    """The summary and the advice, line by line; what leave-one-out says is saved along with the model."""
    if quick:
        return [
            *str(summarize(model, threads, quick=True)).splitlines(),
            "not computed   leave-one-out, noise and advice (--quick)",
        ]
    left_out = None
    if model.settings is not None:
        console.enter("leave-one-out")
        left_out = model.left_out(threads)
        console.enter("noise")
        model.calibration(threads)
    summary = str(summarize(model, threads, left_out)).splitlines()
    console.enter("advice", show=True)
    advice = advise(model, threads, left_out, lambda far: _say_where(model, rows, left_out, far))
    console.clear()
    return [*summary, *(f"advice         {text}" for text in advice)]


def _say_where(model: StitchedModel, rows: Data, left_out: LeftOut | None, far: Index) -> str:
    """Describe left-out points: the row of the first in the file with its columns, and the rows of the others."""
    if left_out is None:
        return ""
    columns = column_values(model, left_out.X[far[:1]])
    cells = [f"{name} = {value[0]:.6g}" if value.dtype.kind == "f" else f"{name} = {value[0]}" for name, value in columns.items()]
    numbers = [f"{number:,}" for number in rows.rows[left_out.row[far]]]
    shown = ", ".join(cells[:_SHOWN]) + (", …" if len(cells) > _SHOWN else "")
    others = f"; also in rows {', '.join(numbers[1:_ROWS])}{', …' if len(numbers) > _ROWS else ''}" if len(numbers) > 1 else ""
    return f"row {numbers[0]}: {shown}{others}"


def _tell_robust(model: StitchedRegressor, rows: Data, console: Console) -> None:
    """Which rows of the file a robust fit left out."""
    if model.robust:
        out = rows.rows[model.outlier_weights_ == 0.0]
        shown = ", ".join(map(str, out[:_ROWS])) + (", …" if len(out) > _ROWS else "")
        console.announce(
            f"gross errors   {len(out):,} {'row is' if len(out) == 1 else 'rows are'} left out" + (f": {shown}" if len(out) else "")
        )


def _check_rows(model: StitchedRegressor, rows: Data) -> None:
    """Raise a `ValueError` that names the row of the file with a response that has no logarithm, or a latitude beyond the poles."""
    if isinstance(model, LogStitchedRegressor):
        for name, column in zip(rows.targets, rows.y.T, strict=True):
            row = int(np.argmin(column))
            if column[row] <= 0.0:
                raise ValueError(
                    f"`--log` needs positive targets, and {name!r} has {column[row]:g} in row {rows.rows[row]}. Leave such rows"
                    " out, or fit without `--log`."
                )
    if model.geographic and len(model.geographic) == 2 and model.geographic[1] in rows.features:
        name = model.geographic[1]
        latitude = rows.X[:, rows.features.index(name)]
        row = int(np.abs(latitude).argmax())
        if abs(latitude[row]) > 90.0:
            raise ValueError(
                f"Latitudes must be between -90 and 90 degrees, and {name!r} has {latitude[row]:g} in row {rows.rows[row]}."
                " Correct it, or name longitude first: `--geographic lon,lat`."
            )


def make_estimator(parameters: dict[str, Any], log: bool, jobs: int) -> StitchedRegressor:
    """The estimator that the user asks for, with one progress bar where there is a terminal."""
    known = kept_parameters(StitchedRegressor().get_params(deep=False))
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise ValueError(f"Unknown parameter {unknown[0]!r} in `--set`. Choose from {', '.join(known)}.")
    kind = LogStitchedRegressor if log else StitchedRegressor
    return kind(**parameters, n_jobs=check_jobs(jobs), verbose=sys.stderr.isatty())


def _counted_coordinates(model: StitchedRegressor, features: list[str]) -> dict[str, Any]:
    """`periodic` and `geographic` of an estimator with indices instead of names: it is fitted to arrays."""
    make_chart(model.periodic, model.geographic, features, len(features))
    place: dict[Any, Any] = {name: k for k, name in enumerate(features)}
    periodic = {place.get(name, name): period for name, period in (model.periodic or {}).items()}
    geographic = None if model.geographic is None else tuple(place.get(name, name) for name in model.geographic)
    return {"periodic": periodic or None, "geographic": geographic}
