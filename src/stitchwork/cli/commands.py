"""What commands do with a model that is there: more points, suggestions, the page.

A command that reads X, y, weights and groups for such a model calls `reading.read_known`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from .._parallel import Threads
from ..model.link import IDENTITY
from .columns import column_values, fix_categories, suggest_rows
from .console import Console
from .loading import load_model
from .options import title_of
from .reading import Columns, read_known
from .tables import open_table
from .text import Reading
from .writing import SUFFIXES, check_output, placed, table_writer


def update_table(path: Path, data: Path, reading: Reading, columns: Columns, output: Path, jobs: int, console: Console) -> None:
    """Add the rows of a table to a model and save it."""
    check_output(output, inputs=[data])
    model = load_model(path, jobs)
    console.enter("reading")
    rows = read_known(model.model_, open_table(data, reading), reading, console, columns)
    X, y, v, group, s, more = rows.X, rows.y, rows.weights, rows.groups, rows.errors, {}
    if rows.slopes is not None:
        more["gradient"] = rows.slopes
    before = model.model_.n_points
    console.enter("update", show=True)
    with warnings.catch_warnings(record=True) as caught:  # names of columns were matched above; what is stale is said in one line
        warnings.simplefilter("always")
        model.partial_fit(X, y[:, 0] if model.model_.flat else y, v, group, s, **more)
    model.model_ = fix_categories(model.model_)
    new, now = model.model_.n_points - before, model.model_
    console.clear()
    console.announce(f"points         {now.n_points:,}, {new:,} of them new, {len(X) - new:,} rows at known places")
    if now.growth.chosen == now.n_points:
        error = "" if now.settings is None else f", leave-one-out RMSE {now.loo_error(Threads(jobs)):.3g}"
        console.announce(f"chosen         anew, with all points{error}")
    console.enter("saving")
    with placed(output) as temporary:
        model.save(temporary)
    console.announce(f"updated in     {console.took()}\nsaved to       {title_of(output)}")
    for warning in caught:
        if "choose them again" in str(warning.message):
            console.warn(str(warning.message))


def suggest_table(path: Path, n: int, bounds: dict[str, tuple[float, float]], seed: int | None, output: Path, jobs: int) -> None:
    """Write the points where a measurement would help most."""
    import pyarrow as pa

    check_output(output, SUFFIXES, inputs=[path])
    model = load_model(path, jobs)
    model.random_state = model.random_state if seed is None else seed
    columns = column_values(model.model_, suggest_rows(model, n, bounds))
    with table_writer(output, list(columns)) as write:
        write(pa.table(columns))


def report_page(paths: Sequence[Path], reading: Reading, output: Path, console: Console) -> None:
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
        test = read_known(models[names[0]], open_table(data, reading), reading, console, quiet=True)[:2]
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
