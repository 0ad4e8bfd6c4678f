"""What the commands do: tables in, tables out, in the words of the Python interface."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import chain, combinations_with_replacement
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm.auto import tqdm

from .. import native
from .._parallel import Threads
from .._regressor import StitchedRegressor, kept_parameters, load
from .._types import Array
from .._validation import make_chart
from ..model.stitched import StitchedModel
from ..storage.file import read_facts
from ..storage.folder import COARSE, read_manifest
from ..storage.whole import replacing
from ..views.errors import crps, errors, share_inside
from ..views.slices import derivative_name
from .tables import Table, check_output, open_table, stack_blocks, table_writer
from .validate import describe_validation

Announce = Callable[[str], None]

_NAMED = 5  # rows with missing values that are named in an error


class Columns(NamedTuple):
    """Columns of a table to fit; no features means all others, no weights that all rows count alike, no groups that each stands
    alone.
    """

    features: list[str]
    targets: list[str]
    weights: list[str]
    groups: list[str]


class Added(NamedTuple):
    """What is written besides predictions."""

    gradient: bool
    hessian: bool
    coverage: bool
    std: bool
    interval: float | None


def fit_table(
    data: Path,
    columns: Columns,
    output: Path,
    parameters: dict[str, Any],
    jobs: int,
    drop_missing: bool,
    validate: str | None,
    announce: Announce,
    warn: Announce,
) -> None:
    """Fit a model to the columns of a table and save it; before that, if asked, tell its errors on parts that are held out."""
    check_output(output, inputs=[data])
    model = _make_estimator(parameters, jobs)
    table = open_table(data)
    features, targets, weights, groups = _settle_columns(columns, table, warn)
    model.set_params(**_counted_coordinates(model, features))
    table.spell(groups)
    names, d, t = [*features, *targets, *weights, *groups], len(features), len(targets)
    rows = stack_blocks(_complete_rows(table, names, drop_missing, warn), len(names))
    if not len(rows):
        raise ValueError(f"{str(data)!r} has no complete row to fit.")
    X, y, group = rows[:, :d], rows[:, d : d + t], rows[:, -1] if groups else None
    y, v = y[:, 0] if t == 1 else y, rows[:, d + t] if weights else None
    if validate is not None:
        announce(f"held out       {describe_validation(model, X, y, v, group, validate)}")
    started = time.perf_counter()
    model.fit(X, y, v, group)
    model.model_ = model.model_.rename(features, targets)
    seconds = time.perf_counter() - started
    summary = model.summary()  # with the leave-one-out error and the noise, which are saved along
    model.save(output)
    announce(str(summary))
    announce(f"fitted in      {seconds:.1f} s\nsaved to       {output} ({output.stat().st_size / 2**20:.1f} MB)")


def _make_estimator(parameters: dict[str, Any], jobs: int) -> StitchedRegressor:
    known = kept_parameters(StitchedRegressor().get_params(deep=False))
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise ValueError(f"There is no parameter {unknown[0]!r} to `--set`. Choose from {', '.join(known)}.")
    return StitchedRegressor(**parameters, n_jobs=jobs, verbose=sys.stderr.isatty())


def _counted_coordinates(model: StitchedRegressor, features: list[str]) -> dict[str, Any]:
    """`periodic` and `geographic` of an estimator with indices instead of names: it is fitted to arrays."""
    make_chart(model.periodic, model.geographic, features, len(features))
    place: dict[Any, Any] = {name: k for k, name in enumerate(features)}
    periodic = {place.get(name, name): period for name, period in (model.periodic or {}).items()}
    geographic = None if model.geographic is None else tuple(place.get(name, name) for name in model.geographic)
    return {"periodic": periodic or None, "geographic": geographic}


def _settle_columns(columns: Columns, table: Table, warn: Announce) -> Columns:
    """The columns by name: all that are there and have no other part, where no features are named."""
    features, targets, weights, groups = columns
    table.check(targets, "target")
    table.check(weights, "weight")
    table.check(groups, "groups")
    if not features:
        left = [name for name in table.names if name not in {*targets, *weights, *groups}]
        features = [name for name in left if name]
        if len(features) < len(left):
            warn(f"stitchwork: a column of {str(table.path)!r} has no name and is left out.")
    table.check(features, "feature")
    parts = [*features, *targets, *weights, *groups]
    twice = next((name for name in parts if parts.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"Column {twice!r} is named twice among features, targets, weights and groups.")
    if not features:
        raise ValueError(f"{str(table.path)!r} has no column that is left to be a feature.")
    return Columns(features, targets, weights, groups)


def predict_table(path: Path, data: Path, output: Path, added: Added, drop_missing: bool, jobs: int, warn: Announce) -> int:
    """Predict for the rows of a table, block by block; the number of rows written, NaN in those that lack a number."""
    if added.interval is not None and not 0.0 < added.interval < 1.0:
        raise ValueError(f"`--interval` must be a confidence between 0 and 1, such as 0.9, got {added.interval}.")
    check_output(output, inputs=[path, data])
    model, table, threads = load(path).model_, open_table(data), Threads(jobs)
    features = model.feature_names
    table.check(features, "feature of the model")
    names, written, empty = _column_names(model, added), 0, 0
    with table_writer(output, names) as write:
        blocks = _checked_blocks(table, features, drop_missing)
        for block in tqdm(blocks, desc="predict", unit=" blocks", leave=False, disable=None):
            complete = np.isfinite(block).all(axis=1)
            rows = np.full((len(block), len(names)), np.nan)
            if complete.any():
                rows[complete] = _predict(model, block[complete], added, threads)
            write(rows)
            written, empty = written + len(block), empty + int((~complete).sum())
    if empty:
        warn(f"stitchwork: {empty:,} of {written:,} rows of {str(data)!r} lack a number, and their predictions are empty.")
    return written


def _column_names(model: StitchedModel, added: Added) -> list[str]:
    features, targets = model.feature_names, model.target_names
    names = list(targets)
    if added.gradient:
        names += [derivative_name(y, a) for y in targets for a in features]
    if added.hessian:
        names += [derivative_name(y, *pair) for y in targets for pair in combinations_with_replacement(features, 2)]
    if added.coverage:
        names.append("coverage")
    if added.std:
        names += [f"{y}_std" for y in targets]
    if added.interval is not None:
        names += [f"{y}_{end}" for y in targets for end in ("lower", "upper")]
    return names


def _predict(model: StitchedModel, X: Array, added: Added, threads: Threads) -> Array:
    """The columns of `_column_names`."""
    jet, (n, d) = model.jet(X, 2 if added.hessian else 1 if added.gradient else 0, threads), X.shape
    columns = [jet.value]
    if added.gradient:
        columns.append(jet.gradient.reshape(n, -1))
    if added.hessian:
        columns.append(jet.hessian[..., *np.triu_indices(d)].reshape(n, -1))
    if added.coverage:
        columns.append(model.coverage(X, threads)[:, None])
    if added.std or added.interval is not None:
        moments = model.moments(X, threads)
        if added.std:
            columns.append(moments.deviation())
        if added.interval is not None:
            columns.append(model.calibration(threads).intervals(moments, added.interval).reshape(n, -1))
    return np.concatenate(columns, axis=1)


def evaluate_table(path: Path, data: Path, drop_missing: bool, jobs: int, announce: Announce, warn: Announce) -> None:
    """Print the errors of a model on a table, for each target."""
    model, table = load(path).model_, open_table(data)
    X, y = _test_data(model, table, drop_missing, warn)
    moments, calibration = model.moments(X, Threads(jobs)), model.calibration(Threads(jobs))
    inside = {level: share_inside(calibration.intervals(moments, level), y) for level in (0.5, 0.9)}
    scores = crps(moments.value, moments.deviation(), y).mean(axis=0)
    announce(f"{len(X):,} rows")
    for k, (name, predicted, truth) in enumerate(zip(model.target_names, moments.value.T, y.T, strict=True)):
        measured = errors(predicted, truth)
        spread = float(((truth - truth.mean()) ** 2).sum())
        r2 = 1.0 - float(((truth - predicted) ** 2).sum()) / spread if spread else float("nan")
        announce(
            f"{name}: RMSE {measured.rmse:.6g}, largest relative error {measured.max_relative:.6g},"
            f" mean relative error {measured.mean_relative:.6g}, R² {r2:.6g}"
        )
        shares = ", ".join(f"{share[k]:.1%} inside of intervals of {level:.0%}" for level, share in inside.items())
        announce(f"{name}: {shares}, CRPS {scores[k]:.6g}")


def model_facts(path: Path) -> list[tuple[str, str]]:
    """What the header of a saved model says."""
    header, shapes, arrays = read_facts(path / COARSE if path.is_dir() else path)
    d = shapes["frame"][1]
    features = ", ".join(json.loads(header["feature_names"]) or [f"x{k}" for k in range(d)])
    if path.is_dir():
        return [*_folder_facts(path), ("features", features), ("parameters", _parameters(header))]
    m, h = shapes[f"regions{int(arrays['levels/regions'][0])}/model0/members"]
    targets = json.loads(header["target_names"]) or [f"{shapes['points/y'][1]} without a name"]
    return [
        ("file", f"{path}, {path.stat().st_size / 2**20:.1f} MB, format version {header['version']}"),
        ("points", f"{shapes['points/X'][0]:,}"),
        ("features", features),
        ("targets", ", ".join(targets)),
        ("regions", f"{m:,} of {h} points"),
        ("leave-one-out", _loo_text(json.loads(header["loo_error"]))),
        ("parameters", _parameters(header)),
    ]


def version_facts() -> list[tuple[str, str]]:
    """Versions of what predictions depend on, and whether they are compiled."""
    packages = ("stitchwork", "numpy", "scipy", "scikit-learn", "safetensors")
    compiled = native.library() if native.available() else "no: built without a C compiler, or STITCHWORK_NATIVE=0; NumPy answers"
    python = (f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}", sys.platform)
    return [("python", " on ".join(python)), *((name, version(name)) for name in packages), ("compiled", compiled)]


def _folder_facts(folder: Path) -> list[tuple[str, str]]:
    manifest = read_manifest(folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    return [
        ("folder", f"{folder}, {size / 2**20:.1f} MB, {len(manifest.boxes)} parts"),
        ("points", f"{manifest.n_points:,}"),
        ("regions", f"{manifest.n_regions:,}"),
        ("leave-one-out", _loo_text(manifest.loo_error)),
    ]


def _loo_text(error: float | None) -> str:
    return "not computed" if error is None else f"RMSE {error:.3g}"


def _parameters(header: dict[str, str]) -> str:
    """The parameters that are not the default; a matrix by its shape."""

    def shown(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return dict(value["pairs"]) if "pairs" in value else f"array of shape {np.shape(value['array'])}"

    return repr(StitchedRegressor(**{name: shown(value) for name, value in json.loads(header["parameters"]).items()}))


def write_grid(
    path: Path,
    shape: int | Sequence[int],
    bounds: Mapping[str, tuple[float, float]],
    output: Path,
    gradient: bool,
    coverage: bool,
    std: bool,
    jobs: int,
) -> None:
    """Write a model on a regular grid as NetCDF."""
    check_output(output, (".nc",), inputs=[path])
    dataset = load_model(path, jobs).grid(shape, bounds, gradient=gradient, coverage=coverage, std=std)
    # A slash separates groups in NetCDF: dy/da becomes dy_da, and keeps its name as an attribute.
    renamed = {name: str(name).replace("/", "_") for name in dataset.variables}
    for name in dataset.variables:
        dataset[name].attrs["long_name"] = name
    with replacing(output) as temporary:
        dataset.rename(renamed).to_netcdf(temporary)


def report_page(path: Path, data: Path | None, output: Path, drop_missing: bool, warn: Announce) -> None:
    """Write the page of a model, with the errors on a table if there is one."""
    from ..report._page import write_page

    check_output(output, (".html", ".htm"), inputs=[path])
    model = load(path).model_
    test = None if data is None else _test_data(model, open_table(data), drop_missing, warn)
    write_page(model, output, test, path.name, Threads(-1))


def _test_data(model: StitchedModel, table: Table, drop_missing: bool, warn: Announce) -> tuple[Array, Array]:
    features, targets = model.feature_names, model.target_names
    table.check(features, "feature of the model")
    table.check(targets, "target of the model")
    names = [*features, *targets]
    rows = stack_blocks(_complete_rows(table, names, drop_missing, warn), len(names))
    if not len(rows):
        raise ValueError(f"{str(table.path)!r} has no complete row.")
    return rows[:, : len(features)], rows[:, len(features) :]


def load_model(path: Path, jobs: int) -> StitchedRegressor:
    """A saved model that uses so many threads."""
    model = load(path)
    model.n_jobs = jobs
    return model


def _complete_rows(table: Table, names: Sequence[str], drop_missing: bool, warn: Announce) -> Iterator[Array]:
    """Blocks of complete rows; a warning says how many were left out."""
    rows = dropped = 0
    for block in _checked_blocks(table, names, drop_missing):
        complete = np.isfinite(block).all(axis=1)
        rows, dropped = rows + len(block), dropped + int((~complete).sum())
        yield block[complete]
    if dropped:
        warn(f"stitchwork: {dropped:,} of {rows:,} rows of {str(table.path)!r} lack a number and were left out.")


def _checked_blocks(table: Table, names: Sequence[str], drop_missing: bool) -> Iterator[Array]:
    """Blocks of rows; unless rows that lack a number are to be dropped, an error says where they are."""
    before, blocks = 0, table.blocks(names)
    for block in blocks:
        if not (drop_missing or np.isfinite(block).all()):
            raise ValueError(_missing(table, names, chain([block], blocks), before))
        before += len(block)
        yield block


def _missing(table: Table, names: Sequence[str], blocks: Iterable[Array], before: int) -> str:
    """Which columns lack numbers in which rows, from the first block that does to the last."""
    rows: list[list[int]] = [[] for _ in names]
    for block in blocks:
        for found, column in zip(rows, ~np.isfinite(block.T), strict=True):
            found += (before + 1 + np.flatnonzero(column)).tolist()
        before += len(block)
    where = [
        f"{name} in {len(found):,} rows ({', '.join(map(str, found[:_NAMED]))}{', …' if len(found) > _NAMED else ''})"
        for name, found in zip(names, rows, strict=True)
        if found
    ]
    return f"{str(table.path)!r} lacks numbers: {'; '.join(where)}. Use `--drop-missing` to leave these rows out."
