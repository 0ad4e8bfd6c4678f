"""What the commands do: tables in, tables out, in the words of the Python interface."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import errors
from ._files import replacing
from ._io import read_facts
from ._regressor import StitchedRegressor, load
from ._shard_io import COARSE, read_manifest
from ._slices import derivative_name, feature_names, target_names
from ._tables import Table, check_output, open_table, written_table

Array = NDArray[np.float64]
Announce = Callable[[str], None]

_NAMED = 5  # rows with missing values that are named in an error


def fit_table(
    data: Path,
    targets: Sequence[str],
    features: Sequence[str],
    weight: str,
    output: Path,
    drop_missing: bool,
    jobs: int,
    announce: Announce,
    warn: Announce,
) -> None:
    """Fit a model to the columns of a table and save it."""
    check_output(output)
    table = open_table(data)
    weights = [weight] if weight else []
    table.check(targets, "target")
    features = list(features) or [name for name in table.names if name not in {*targets, *weights}]
    table.check(features, "feature")
    table.check(weights, "weight")
    shared = set(targets) & set(features)
    if shared or not features:
        raise ValueError(f"Column {sorted(shared)[0]!r} is target and feature." if shared else "No column is left to be a feature.")
    names = [*features, *targets, *weights]
    rows = np.concatenate([np.empty((0, len(names))), *_complete(table, names, drop_missing, warn)])
    if not len(rows):
        raise ValueError(f"{str(data)!r} has no complete row to fit.")
    d, t = len(features), len(targets)
    X, y, v = rows[:, :d], rows[:, d : d + t], rows[:, -1] if weights else None
    started = time.perf_counter()
    model = StitchedRegressor(n_jobs=jobs, verbose=len(X) > 20_000).fit(X, y[:, 0] if t == 1 else y, v)
    model._take_names(features, targets)
    seconds = time.perf_counter() - started
    summary = model.summary()  # with the leave-one-out error, which is saved along
    model.set_params(n_jobs=None, verbose=False).save(output)
    announce(f"{summary}\nfitted in      {seconds:.1f} s\nsaved to       {output} ({output.stat().st_size / 2**20:.1f} MB)")


def predict_table(
    path: Path, data: Path, output: Path, added: tuple[bool, bool, bool], order: int, drop_missing: bool, jobs: int, warn: Announce
) -> int:
    """Predict for the rows of a table, block by block; the number of rows written. ``added``: gradient, Hessian, coverage."""
    with_gradient, with_hessian, with_coverage = added
    check_output(output)
    model, table = _loaded(path, jobs), open_table(data)
    features, targets = feature_names(model), target_names(model)
    table.check(features, "feature of the model")
    d, pairs = len(features), [(i, j) for i in range(len(features)) for j in range(i, len(features))]
    names = list(targets)
    if with_gradient:
        names += [derivative_name(y, a) for y in targets for a in features]
    if with_hessian:
        names += [derivative_name(y, features[i], features[j]) for y in targets for i, j in pairs]
    names += ["coverage"] if with_coverage else []
    written = 0
    with written_table(output, names) as write:
        for X in _complete(table, features, drop_missing, warn):
            jet = model._jet(X, order)
            columns = [jet.value]
            if with_gradient:
                columns.append(jet.gradient.reshape(len(X), -1))
            if with_hessian:
                columns.append(jet.hessian.reshape(len(X), -1, d * d)[..., [i * d + j for i, j in pairs]].reshape(len(X), -1))
            if with_coverage:
                columns.append(model._coverage(X)[:, None])
            write(np.concatenate(columns, axis=1))
            written += len(X)
    return written


def evaluate_table(path: Path, data: Path, drop_missing: bool, jobs: int, announce: Announce, warn: Announce) -> None:
    """Print the errors of a model on a table, for each target."""
    model, table = _loaded(path, jobs), open_table(data)
    X, y = _test_data(model, table, drop_missing, warn)
    prediction = model._jet(X, 0).value
    announce(f"{len(X):,} rows")
    for name, predicted, truth in zip(target_names(model), prediction.T, y.T, strict=True):
        measured = errors(predicted, truth)
        spread = float(((truth - truth.mean()) ** 2).sum())
        r2 = 1.0 - float(((truth - predicted) ** 2).sum()) / spread if spread else float("nan")
        announce(
            f"{name}: RMSE {measured.rmse:.6g}, largest relative error {measured.max_relative:.6g},"
            f" mean relative error {measured.mean_relative:.6g}, R² {r2:.6g}"
        )


def model_facts(path: Path) -> list[tuple[str, str]]:
    """What the header of a saved model says."""
    header, shapes = read_facts(path / COARSE if path.is_dir() else path)
    n, d = shapes["points/X"]
    if path.is_dir():
        return [*_shard_facts(path), ("features", _feature_list(header, d)), ("parameters", _parameters(header))]
    return [
        ("file", f"{path}, {path.stat().st_size / 2**20:.1f} MB, format version {header['version']}"),
        ("points", f"{n:,}"),
        ("features", _feature_list(header, d)),
        ("targets", ", ".join(header.get("target_names") or [f"{shapes['points/y'][1]} without a name"])),
        ("regions", f"{shapes['cover/members'][0]:,} of {shapes['cover/members'][1]} points"),
        ("leave-one-out", "not computed" if header["loo_error"] is None else f"RMSE {header['loo_error']:.3g}"),
        ("parameters", _parameters(header)),
    ]


def _shard_facts(folder: Path) -> list[tuple[str, str]]:
    manifest = read_manifest(folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    return [
        ("folder", f"{folder}, {size / 2**20:.1f} MB, {len(manifest.boxes)} shards"),
        ("regions", f"{manifest.n_regions:,}"),
        ("leave-one-out", "not computed" if manifest.loo_error is None else f"RMSE {manifest.loo_error:.3g}"),
    ]


def _feature_list(header: dict[str, Any], d: int) -> str:
    return ", ".join(header["feature_names"] or [f"x{k}" for k in range(d)])


def _parameters(header: dict[str, Any]) -> str:
    """The parameters that are not the default."""
    plain = {name: value for name, value in header["parameters"].items() if not isinstance(value, dict)}
    return repr(StitchedRegressor(**plain))


def write_grid(
    path: Path,
    shape: int | Sequence[int],
    bounds: Mapping[str, tuple[float, float]],
    output: Path,
    gradient: bool,
    coverage: bool,
    jobs: int,
) -> None:
    """Write a model on a regular grid as NetCDF."""
    check_output(output, (".nc",))
    dataset = _loaded(path, jobs).grid(shape, bounds, gradient=gradient, coverage=coverage)
    # A slash separates groups in NetCDF: dy/da becomes dy_da, and keeps its name as an attribute.
    renamed = {name: str(name).replace("/", "_") for name in dataset.data_vars}
    for name in dataset.data_vars:
        dataset[name].attrs["long_name"] = name
    with replacing(output) as temporary:
        dataset.rename(renamed).to_netcdf(temporary)


def report_page(path: Path, data: Path | None, output: Path, drop_missing: bool, warn: Announce) -> None:
    """Write the page of a model, with the errors on a table if there is one."""
    from .report import write_report

    check_output(output, (".html", ".htm"))
    model = _loaded(path, -1)
    X, y = (None, None) if data is None else _test_data(model, open_table(data), drop_missing, warn)
    write_report(model, output, X, y, title=path.name)


def _test_data(model: Any, table: Table, drop_missing: bool, warn: Announce) -> tuple[Array, Array]:
    features, targets = feature_names(model), target_names(model)
    table.check(features, "feature of the model")
    table.check(targets, "target of the model")
    names = [*features, *targets]
    rows = np.concatenate([np.empty((0, len(names))), *_complete(table, names, drop_missing, warn)])
    if not len(rows):
        raise ValueError(f"{str(table.path)!r} has no complete row.")
    return rows[:, : len(features)], rows[:, len(features) :]


def _loaded(path: Path, jobs: int) -> StitchedRegressor:
    model = load(path)
    model.n_jobs = jobs
    return model


def _complete(table: Table, names: Sequence[str], drop_missing: bool, warn: Announce) -> Iterator[Array]:
    """Blocks of rows without a missing or infinite number; unless those are to be dropped, an error says where they are."""
    before, dropped = 0, 0
    blocks = table.blocks(names)
    for block in blocks:
        complete = np.isfinite(block).all(axis=1)
        if not (drop_missing or complete.all()):
            raise ValueError(_missing(table, names, chain([block], blocks), before))
        before, dropped = before + len(block), dropped + int((~complete).sum())
        if complete.any():
            yield block[complete]
    if dropped:
        warn(f"stitchwork: {dropped:,} of {before:,} rows of {str(table.path)!r} lack a number and were left out.")


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
