"""Predictions for the rows of a table, and on a grid, written block by block."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._parallel import Threads
from .._types import Array
from ..model.samples import sample_paths
from ..model.stitched import StitchedModel
from ..views.grid import LARGEST_TABLE, Asked, Limits, Shape, grid_dataset, make_grid
from ..views.slices import derivative_name
from .cells import NUMBER
from .columns import column_values
from .commands import check_jobs, load_model
from .reading import Announce, checked_blocks, expand, find_sources
from .tables import STANDARD, Table, open_table
from .text import TextHints
from .writing import SUFFIXES, check_output, make_block, placed, table_writer, write_dataset

_TEXT = (".csv", ".tsv", ".txt", "")


class Added(NamedTuple):
    """What is written besides predictions; ``only`` those, without the columns that were read."""

    gradient: bool
    hessian: bool
    coverage: bool
    std: bool
    interval: float | None
    only: bool = False
    samples: int = 0
    seed: int = 0


def predict_table(
    path: Path, data: Path, hints: TextHints, output: Path, added: Added, drop_missing: bool, jobs: int, announce: Announce
) -> None:
    """Predict for the rows of a table, block by block; predictions are empty in rows that lack a number."""
    if added.interval is not None and not 0.0 < added.interval < 1.0:
        raise ValueError(f"`--interval` must be a confidence between 0 and 1, such as 0.9, got {added.interval}.")
    threads = Threads(check_jobs(jobs))
    check_output(output, SUFFIXES, inputs=[path, data])
    model, table = load_model(path, jobs).model_, open_table(data, hints)
    sources = find_sources(model.feature_names, table)
    columns = [source.column for source in sources]
    names, written, empty = column_names(model, added), 0, 0
    kept = {} if added.only else name_kept(table.names, names)
    announce(f"read           {table.title}: {table.note}")
    announce(f"columns        {', '.join(model.target_names)} from {', '.join(source.describe() for source in sources)}")
    with table_writer(output, [*kept.values(), *names]) as write, progress("predict") as show:
        for block in checked_blocks(table, columns, drop_missing):
            X = expand(block.numbers, sources)
            complete = np.isfinite(X).all(axis=1)
            rows = np.full((len(X), len(names)), np.nan)
            if complete.any():
                rows[complete] = predict_rows(model, X[complete], added, threads)
            write(make_block(names, rows, keep_columns(table, block.batch, kept, output.suffix.lower() in _TEXT)))
            written, empty = written + len(X), empty + int((~complete).sum())
            show(table.done, written)
    left = f", {empty:,} of them empty, since they lack a number" if empty else ""
    announce(f"rows           {written:,} predicted{left}")
    announce(f"written to     {'standard output' if output == STANDARD else output}")


def name_kept(columns: Sequence[str], predicted: Sequence[str]) -> dict[str, str]:
    """How columns that are kept are called beside those that are ``predicted``: one of the same name becomes ``y_given``."""
    taken, found = set(predicted), {}
    for k, name in enumerate(columns):
        new = name or f"column{k + 1}"
        while new in taken or (new != name and new in columns):
            new += "_given"
        taken.add(new)
        found[name] = new
    return found


def keep_columns(table: Table, batch: Any, kept: dict[str, str], as_text: bool) -> dict[str, Any]:
    """The columns of a batch as they are; text that holds numbers keeps its digits in text files and is numbers elsewhere."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = {}
    for name, new in kept.items():
        column = batch.column(table.names.index(name))
        if pa.types.is_string(column.type) and table.kind(name) == NUMBER and name not in table.padded:
            if as_text:
                column = column if table.decimal == "." else pc.replace_substring(column, table.decimal, ".")
            else:
                column = pa.array(table.numbers_of(batch, name), from_pandas=True)
        found[new] = column
    return found


def column_names(model: StitchedModel, added: Added) -> list[str]:
    """Names of what `predict_rows` gives."""
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
    return [*names, *(f"{y}_sample{k}" for y in targets for k in range(added.samples))]


def predict_rows(model: StitchedModel, X: Array, added: Added, threads: Threads) -> Array:
    """The columns of `column_names` for the rows of ``X``."""
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
    if added.samples:
        columns.append(sample_paths(model, X, added.samples, np.random.RandomState(added.seed), threads).reshape(n, -1))
    return np.concatenate(columns, axis=1)


def write_grid(path: Path, shape: Shape, bounds: Limits, output: Path, asked: Asked, jobs: int) -> int:
    """Write a model on a regular grid: as a field in NetCDF, else a row for each point; the number of points."""
    check_output(output, SUFFIXES, inputs=[path])
    model, threads = load_model(path, jobs).model_, Threads(check_jobs(jobs), sys.stderr.isatty())
    if output.suffix.lower() == ".nc":
        dataset = grid_dataset(model, shape, bounds, asked, threads)
        with placed(output) as temporary:
            write_dataset(temporary, dataset)
        return int(np.prod(list(dataset.sizes.values())))
    grid, answers = make_grid(model, shape, bounds, LARGEST_TABLE), asked.names(model)
    with table_writer(output, [*column_values(model, model.frame[2:]), *answers]) as write:
        for part in threads.show(list(grid.parts()), "grid"):
            X = grid.points(part)
            write(make_block(answers, asked.rows(model, X, threads), column_values(model, X)))
    return grid.size


@contextmanager
def progress(name: str) -> Iterator[Any]:
    """A function that shows the share of a file that is done, where it is known, and how many rows; only on a terminal."""
    from tqdm.auto import tqdm

    form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}, {remaining} left"
    with tqdm(total=1.0, desc=name, leave=False, disable=None, bar_format=form) as bar:

        def show(share: float | None, rows: int) -> None:
            if share is None:
                bar.bar_format = "{desc} {elapsed}"
            bar.set_description_str(f"{name}: {rows:,} rows", refresh=False)
            bar.update((share or 0.0) - bar.n)

        yield show
