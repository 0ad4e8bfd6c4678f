"""What the commands do: tables in, tables out, in the words of the Python interface.

A command that reads X, y, weights and groups for a model that is there calls `reading.read_known`, as `evaluate_table` does.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._loading import load
from .._parallel import Threads
from .._regressor import StitchedRegressor, kept_parameters
from .._types import Array
from .._validation import make_chart
from ..model.link import IDENTITY
from ..model.stitched import StitchedModel
from ..transform import LogStitchedRegressor
from ..views.advice import advise, count_known
from ..views.errors import crps, errors, share_inside
from .columns import column_values, fix_categories, name_columns, suggest_rows
from .reading import Announce, Columns, read_columns, read_known
from .tables import STANDARD, open_table
from .text import TextHints
from .validate import describe_validation
from .writing import SUFFIXES, check_output, placed, table_writer


def fit_table(
    data: Path,
    hints: TextHints,
    columns: Columns,
    output: Path,
    model: StitchedRegressor,
    drop_missing: bool,
    validate: str | None,
    announce: Announce,
    warn: Announce,
) -> None:
    """Fit a model to the columns of a table and save it; before that, if asked, tell its errors on parts that are held out."""
    check_output(output, inputs=[data])
    rows = read_columns(open_table(data, hints), columns, drop_missing, announce, warn)
    X, y, v, group, features, targets, dates, words, s, slopes = rows
    if isinstance(model, LogStitchedRegressor):
        _check_positive(y, targets)
    y = y[:, 0] if len(targets) == 1 else y
    model.set_params(**_counted_coordinates(model, features))
    if validate is not None and slopes is not None:
        raise ValueError("`--validate` does not hold out slopes. Leave `--gradient` or `--validate` out.")
    if validate is not None:
        announce(f"held out       {describe_validation(model, X, y, v, group, s, validate)}")
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(X, y, v, group, s, gradient=slopes)
    for warning in caught:
        warn(f"stitchwork: {warning.message}")
    model.model_ = name_columns(model.model_, features, targets, dates, words)
    seconds = time.perf_counter() - started
    summary = model.summary()  # with the leave-one-out error and the noise, which are saved along
    with placed(output) as temporary:
        model.save(temporary)
        size = temporary.stat().st_size
    announce(str(summary))
    for text in advise(model.model_, Threads(model.n_jobs)):
        announce(f"advice         {text}")
    announce(f"fitted in      {seconds:.1f} s\nsaved to       {_title(output)} ({size / 2**20:.1f} MB)")


def _check_positive(y: Array, targets: Sequence[str]) -> None:
    """Raise a `ValueError` that names the first target with responses that have no logarithm."""
    for name, column in zip(targets, y.T, strict=True):
        row = int(np.argmin(column))
        if column[row] <= 0.0:
            raise ValueError(
                f"`--log` needs positive targets, and {name!r} has {column[row]:g} in row {row + 1}. Leave such rows out, or fit"
                " without `--log`."
            )


def update_table(
    path: Path,
    data: Path,
    hints: TextHints,
    columns: Columns,
    output: Path,
    drop_missing: bool,
    jobs: int,
    announce: Announce,
    warn: Announce,
) -> None:
    """Add the rows of a table to a model and save it."""
    check_output(output, inputs=[data])
    model = load_model(path, jobs)
    rows = read_known(model.model_, open_table(data, hints), drop_missing, announce, warn, columns)
    X, y, v, group, s = rows.X, rows.y, rows.weights, rows.groups, rows.errors
    before, started = model.model_.n_points, time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:  # names of columns were matched above; what is stale is said in one line
        warnings.simplefilter("always")
        model.partial_fit(X, y[:, 0] if model.model_.flat else y, v, group, s)
    seconds = time.perf_counter() - started
    model.model_ = fix_categories(model.model_)
    new, now = model.model_.n_points - before, model.model_
    announce(f"points         {now.n_points:,}, {new:,} of them new, {len(X) - new:,} rows at known places")
    if now.growth.chosen == now.n_points:
        error = "" if now.settings is None else f", leave-one-out RMSE {now.loo_error(Threads(jobs)):.3g}"
        announce(f"chosen         anew, with all points: they are few{error}")
    with placed(output) as temporary:
        model.save(temporary)
    announce(f"updated in     {seconds:.1f} s\nsaved to       {_title(output)}")
    for warning in caught:
        if "choose them again" in str(warning.message):
            warn(f"stitchwork: {warning.message}")


def suggest_table(path: Path, n: int, bounds: dict[str, tuple[float, float]], seed: int | None, output: Path, jobs: int) -> None:
    """Write the points where a measurement would help most."""
    import pyarrow as pa

    check_output(output, SUFFIXES, inputs=[path])
    model = load_model(path, jobs)
    model.random_state = model.random_state if seed is None else seed
    columns = column_values(model.model_, suggest_rows(model, n, bounds))
    with table_writer(output, list(columns)) as write:
        write(pa.table(columns))


def make_estimator(parameters: dict[str, Any], log: bool, jobs: int) -> StitchedRegressor:
    """The estimator that the user asks for, with one progress bar where there is a terminal."""
    known = kept_parameters(StitchedRegressor().get_params(deep=False))
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise ValueError(f"Unknown parameter {unknown[0]!r} in `--set`. Choose from {', '.join(known)}.")
    kind = LogStitchedRegressor if log else StitchedRegressor
    return kind(**parameters, n_jobs=check_jobs(jobs), verbose=sys.stderr.isatty())


def check_jobs(jobs: int) -> int:
    """A number of threads, or a `ValueError`."""
    if jobs == 0:
        raise ValueError("`--jobs` must be a number of threads, or -1 for all cores, got 0. Leave it out to use all cores.")
    return jobs


def _counted_coordinates(model: StitchedRegressor, features: list[str]) -> dict[str, Any]:
    """`periodic` and `geographic` of an estimator with indices instead of names: it is fitted to arrays."""
    make_chart(model.periodic, model.geographic, features, len(features))
    place: dict[Any, Any] = {name: k for k, name in enumerate(features)}
    periodic = {place.get(name, name): period for name, period in (model.periodic or {}).items()}
    geographic = None if model.geographic is None else tuple(place.get(name, name) for name in model.geographic)
    return {"periodic": periodic or None, "geographic": geographic}


def evaluate_table(
    path: Path, data: Path, hints: TextHints, drop_missing: bool, jobs: int, announce: Announce, warn: Announce
) -> None:
    """Print the errors of a model on a table, for each target."""
    threads = Threads(check_jobs(jobs))
    model = load_model(path, jobs).model_
    X, y, *_ = read_known(model, open_table(data, hints), drop_missing, announce, warn)
    moments, calibration = model.moments(X, threads), model.calibration(threads)
    inside = {level: share_inside(calibration.intervals(moments, level), y) for level in (0.5, 0.9)}
    for k, (name, predicted, truth) in enumerate(zip(model.target_names, moments.value.T, y.T, strict=True)):
        measured = errors(predicted, truth)
        spread = float(((truth - truth.mean()) ** 2).sum())
        r2 = 1.0 - float(((truth - predicted) ** 2).sum()) / spread if spread else float("nan")
        announce(
            f"{name}: RMSE {measured.rmse:.6g}, largest relative error {measured.max_relative:.6g},"
            f" mean relative error {measured.mean_relative:.6g}, R² {r2:.6g}"
        )
        shares = ", ".join(f"{share[k]:.1%} inside of intervals of {level:.0%}" for level, share in inside.items())
        announce(f"{name}: {shares}{_say_crps(model, moments, y, k)}")
    known = count_known(model, X, y)
    if known:
        warn(
            f"stitchwork: {known:,} of these {len(X):,} rows are in the model: it was fitted to them, and errors on new data are"
            f" larger. Leave-one-out says RMSE {model.loo_error(threads):.3g}."
        )


def _say_crps(model: StitchedModel, moments: Any, y: Array, k: int) -> str:
    """The score of Gaussian deviations; with a link they are not."""
    return "" if model.origin.link != IDENTITY else f", CRPS {crps(moments.value, moments.deviation(), y).mean(axis=0)[k]:.6g}"


def report_page(paths: Sequence[Path], hints: TextHints, output: Path, drop_missing: bool, warn: Announce) -> None:
    """Write the page of a model, or of two to compare, with the errors on a table if the last path is one."""
    from ..report._page import write_page

    *rest, last = paths
    files, data = (rest, last) if rest and not _is_model(last) else (list(paths), None)
    if len(files) > 2:
        raise ValueError(f"One page shows one model or compares two, got {len(files)}: {', '.join(map(str, files))}.")
    check_output(output, (".html", ".htm"), inputs=paths)
    names = [path.name for path in files] if len({path.name for path in files}) == len(files) else [str(path) for path in files]
    if len(set(names)) < len(names):
        raise ValueError(f"Compare two different models, got {names[0]} twice.")
    models = {name: load_model(path, -1).model_ for name, path in zip(names, files, strict=True)}
    test = None
    if data is not None:
        test = read_known(models[names[0]], open_table(data, hints), drop_missing, lambda text: None, warn)[:2]
        if any(model.origin.link != IDENTITY for model in models.values()) and not (test[1] > 0.0).all():
            raise ValueError("The model is one of the logarithm, and the table has responses that are not positive.")
    with placed(output) as temporary:
        write_page(models, temporary, test, " and ".join(names), Threads(-1))


def _is_model(path: Path) -> bool:
    """Whether this is a folder of parts, or a file that begins as those of safetensors: eight bytes, then an object."""
    if path.is_dir():
        return True
    if str(path) == "-":
        return False
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


def load_model(path: Path, jobs: int) -> StitchedRegressor:
    """A saved model that uses so many threads; ``-`` is read from standard input."""
    with _at_a_place(path) as place:
        model = load(place)
    model.n_jobs = check_jobs(jobs)
    return model


@contextmanager
def _at_a_place(path: Path) -> Iterator[Path]:
    if path != STANDARD:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "standard input"
        place.write_bytes(sys.stdin.buffer.read())
        yield place


def _title(path: Path) -> str:
    return "standard output" if path == STANDARD else str(path)
