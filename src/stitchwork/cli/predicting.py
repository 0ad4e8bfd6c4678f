"""Predictions for the rows of a table, written block by block; for a grid in NetCDF, the same grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._extras import need
from .._parallel import Threads, bar_size
from ..model.stitched import StitchedModel
from ..views.asked import Asked
from ..views.like import evaluate_like, find_features
from .cells import NUMBER
from .console import Console
from .loading import check_jobs, load_model
from .notices import Outside, tell_formulas
from .options import title_of
from .reading import SAID, check_latitudes, checked_blocks, collapse, expand, find_sources, make_filler, say_unknown
from .tables import Table, open_table
from .text import Reading
from .writing import SUFFIXES, check_output, holds_formulas, make_block, placed, table_writer, write_dataset

_TEXT = (".csv", ".tsv", ".txt", "")


class Wanted(NamedTuple):
    """What is written: predictions with what is ``asked`` besides, ``only`` those or with the columns that were read."""

    asked: Asked
    only: bool = False


def predict_table(path: Path, data: Path, reading: Reading, output: Path, wanted: Wanted, jobs: int, console: Console) -> None:
    """Predict for the rows of a table, block by block; predictions are empty in rows that lack a number."""
    threads = Threads(check_jobs(jobs))
    check_output(output, SUFFIXES, inputs=[path, data])
    model = load_model(path, jobs).model_
    wanted.asked.check(model)
    if data.suffix.lower() == output.suffix.lower() == ".nc":
        predict_field(model, data, output, wanted, threads, console)
    else:
        _predict_rows(model, open_table(data, reading), reading, output, wanted, threads, console)
    console.announce(f"written to     {title_of(output)} in {console.took()}")


def _predict_rows(
    model: StitchedModel, table: Table, reading: Reading, output: Path, wanted: Wanted, threads: Threads, console: Console
) -> None:
    sources = find_sources(model.feature_names, table)
    columns = [source.column for source in sources]
    names, written, empty, filled = wanted.asked.names(model), 0, 0, 0
    as_text, formulas = output.suffix.lower() in _TEXT, dict[str, None]()
    kept = {} if wanted.only else name_kept(table.names, names)
    outside = Outside(model)
    fill = make_filler(sources, collapse(model.X, sources), reading) if reading.impute else None
    console.announce(f"read           {table.title}: {table.note}")
    console.announce(f"columns        {', '.join(model.target_names)} from {', '.join(source.describe() for source in sources)}")
    console.enter("prediction")
    with table_writer(output, [*kept.values(), *names]) as write, progress("predict") as show:
        for block in checked_blocks(table, columns, reading, len(columns)):
            numbers, lacking = block.numbers, np.isnan(block.numbers).any(axis=1)
            if fill is not None and lacking.any():
                numbers, filled = fill(numbers), filled + int(lacking.sum())
            X = expand(numbers, sources)
            check_latitudes(model, X, np.arange(written, written + len(X)) + 1)
            complete = np.isfinite(X).all(axis=1)
            rows = np.full((len(X), len(names)), np.nan)
            if complete.any():
                rows[complete] = wanted.asked.rows(model, X[complete], threads)
                outside.add(X[complete])
            beside = keep_columns(table, block.batch, kept, as_text)
            formulas |= dict.fromkeys(name for name, column in beside.items() if as_text and holds_formulas(column))
            write(make_block(names, rows, beside))
            written, empty = written + len(X), empty + int((~complete).sum())
            show(table.done, written)
    tell_formulas(list(formulas), console)
    unknown = [text for name in table.unknown if (text := say_unknown(table, name))]
    known = sum(sum(table.unknown[name].values()) for name in table.unknown)
    why = "; ".join([*unknown, *(["others lack a number" if unknown else "they lack a number"] if empty > known else [])])
    left = f", {empty:,} of them empty: {why}" if empty else ""
    done = f", {filled:,} of them with features filled in by {SAID[reading.impute]}" if filled else ""
    console.announce(f"rows           {written:,} predicted{left}{done}")
    outside.tell(console)


def predict_field(model: StitchedModel, data: Path, output: Path, wanted: Wanted, threads: Threads, console: Console) -> None:
    """Predict on the grid of a NetCDF file; its own variables stay, but for those with the names of predictions."""
    xarray = need("xarray", "NetCDF")
    if not data.is_file():
        raise FileNotFoundError(f"There is no file {str(data)!r}.")
    with xarray.open_dataset(data) as like:
        like = like.load()
    absent = [name for name in model.feature_names if name not in find_features(model, like)]
    if absent:
        raise ValueError(f"{str(data)!r} has no variable {absent[0]!r} (feature of the model). It has {', '.join(like.variables)}.")
    field = evaluate_like(model, like, wanted.asked, threads)
    shape = " × ".join(f"{size:,} {name}" for name, size in field.sizes.items())
    console.announce(f"read           {data}: a grid of {shape}")
    console.announce(f"columns        {', '.join(model.target_names)} from {', '.join(model.feature_names)}")
    if not wanted.only:
        renamed = {name: f"{name}_given" for name in like.data_vars if name in field.data_vars}
        own = like.rename(renamed)
        field = own.assign({name: one.variable for name, one in field.data_vars.items() if name not in own.coords})
    with placed(output) as temporary:
        write_dataset(temporary, field)


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
                plain = table.decimal == "." or pc.any(pc.match_substring(column, ".")).as_py()  # 1.234,5 stays as it is
                column = column if plain else pc.replace_substring(column, table.decimal, ".")
            else:
                column = pa.array(table.numbers_of(batch, name), from_pandas=True)
        found[new] = column
    return found


@contextmanager
def progress(name: str) -> Iterator[Any]:
    """A function that shows the share of a file that is done, where it is known, and how many rows; only on a terminal."""
    from tqdm.auto import tqdm

    form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}, {remaining} left"
    with tqdm(total=1.0, desc=name, leave=False, disable=None, bar_format=form, **bar_size()) as bar:

        def show(share: float | None, rows: int) -> None:
            if share is None:
                bar.bar_format = "{desc} {elapsed}"
            bar.set_description_str(f"{name}: {rows:,} rows", refresh=False)
            bar.update((share or 0.0) - bar.n)

        yield show
