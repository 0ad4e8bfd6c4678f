"""The command line. Commands import what they need when they run, so that ``--help`` answers at once.

Whatever is wrong with what was asked is one line on standard error and exit code 2.
"""

from __future__ import annotations

import csv
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Many small models, stitched into one smooth function.",
)

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model, m.stitch.")]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="A table: .csv, .tsv, .txt, .parquet, .npz or .nc.")]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows that lack a number, instead of stopping.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 is all cores.")]


@app.callback()
def stitchwork() -> None:
    """Many small models, stitched into one smooth function with exact derivatives."""


@app.command()
def fit(
    data: Data,
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict, or several: y1,y2.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the model.")] = Path("m.stitch"),
    features: Annotated[str, typer.Option("--features", "-f", help="Columns to predict from: a,b,c. All others by default.")] = "",
    weight: Annotated[str, typer.Option("--sample-weight", help="Column of weights of the rows.")] = "",
    groups: Annotated[
        str, typer.Option("--groups", help="Column that names the curve, track or subject of a row: they are left out together.")
    ] = "",
    periodic: Annotated[
        list[str] | None, typer.Option("--periodic", help="A feature that is the same after a period: phase=360. May be repeated.")
    ] = None,
    geographic: Annotated[
        str, typer.Option("--geographic", help="The features that are longitude and latitude in degrees: lon,lat.")
    ] = "",
    validate: Annotated[
        str,
        typer.Option("--validate", help="Also tell the errors on fifths that are held out: of blocks of space, groups, or random."),
    ] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of StitchedRegressor, NAME=VALUE, such as kernel=cubic.")
    ] = None,
    drop_missing: DropMissing = False,
    jobs: Jobs = -1,
) -> None:
    """Fit a model to a table and save it."""
    with failing():
        from .commands import Columns, fit_table

        columns = Columns(_listed(features), _listed(target), [weight] if weight else [], [groups] if groups else [])
        chosen, how = dict(map(_parameter, settings or ())), validate or None
        chosen |= {"periodic": dict(map(_period, periodic))} if periodic else {}
        chosen |= {"geographic": tuple(_listed(geographic))} if geographic else {}
        fit_table(data, columns, output, chosen, jobs, drop_missing, how, typer.echo, _warn)


@app.command()
def predict(
    model: Model,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="A table to write: .csv, .tsv, .txt, .parquet or .npz.")],
    gradient: Annotated[bool, typer.Option("--gradient", help="Also write columns dy/da, …")] = False,
    hessian: Annotated[bool, typer.Option("--hessian", help="Also write columns d2y/dada, d2y/dadb, …")] = False,
    coverage: Annotated[bool, typer.Option("--coverage", help="Also write how much of each comes from nearby data.")] = False,
    std: Annotated[bool, typer.Option("--std", help="Also write deviations of a new observation, y_std.")] = False,
    interval: Annotated[
        float | None, typer.Option("--interval", help="Also write intervals of this confidence, such as 0.9: y_lower, y_upper.")
    ] = None,
    drop_missing: DropMissing = False,
    jobs: Jobs = -1,
) -> None:
    """Predict for a table, with derivatives if asked.

    A row is written for each row that is read, in blocks: CSV and Parquet may be larger than memory. With --drop-missing, the
    predictions of rows that lack a number stay empty.
    """
    with failing():
        from .commands import Added, predict_table

        rows = predict_table(model, data, output, Added(gradient, hessian, coverage, std, interval), drop_missing, jobs, _warn)
        typer.echo(f"{rows:,} rows: {output}")


@app.command()
def evaluate(model: Model, data: Data, drop_missing: DropMissing = False, jobs: Jobs = -1) -> None:
    """Compare a model with data: errors, R², and whether intervals hold what they say.

    RMSE, largest and mean relative error, R², the share of rows inside of intervals of 50 and 90 %, and the CRPS, for each target.
    """
    with failing():
        from .commands import evaluate_table

        evaluate_table(model, data, drop_missing, jobs, typer.echo, _warn)


@app.command()
def info(
    model: Annotated[Path | None, typer.Argument(metavar="MODEL", help="A saved model, m.stitch.")] = None,
    versions: Annotated[
        bool, typer.Option("--versions", help="Tell the versions in use, and whether predictions are compiled.")
    ] = False,
) -> None:
    """Tell what a saved model is, without loading its arrays."""
    with failing():
        from .commands import model_facts, version_facts

        if model is None and not versions:
            raise ValueError("Name a saved model, or ask for `--versions`.")
        facts = [*(version_facts() if versions else []), *(model_facts(model) if model else [])]
        for name, text in facts:
            typer.echo(f"{name:<14}{text}")


@app.command()
def grid(
    model: Model,
    shape: Annotated[str, typer.Option("--shape", help="Coordinates along each feature: 200,200, or one number for all.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A NetCDF file to write: field.nc.")],
    bounds: Annotated[
        list[str] | None, typer.Option("--bounds", help="a=0:1, once for each feature; the data's own if not given.")
    ] = None,
    gradient: Annotated[bool, typer.Option("--gradient", help="Add the derivatives.")] = False,
    coverage: Annotated[bool, typer.Option("--coverage", help="Add the coverage.")] = False,
    std: Annotated[bool, typer.Option("--std", help="Add the deviations of a new observation.")] = False,
    jobs: Jobs = -1,
) -> None:
    """Evaluate a model on a regular grid."""
    with failing():
        from .commands import write_grid

        write_grid(model, _numbers(shape), dict(map(_bound, bounds or ())), output, gradient, coverage, std, jobs)
        typer.echo(f"Grid: {output}")


@app.command()
def report(
    model: Model,
    data: Annotated[Path | None, typer.Argument(metavar="[DATA]", help="A table to compare with.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    drop_missing: DropMissing = False,
) -> None:
    """Write one HTML page to explore a model in a browser, offline."""
    with failing("plot"):
        from .commands import report_page

        report_page(model, data, output, drop_missing, _warn)
        typer.echo(f"Open {output.resolve()} in a browser.")


@app.command()
def explore(
    model: Model, port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on this machine.")] = 8642
) -> None:
    """Serve the page with a live model, on this machine.

    No other machine can reach it. Ctrl+C stops it.
    """
    with failing("explore"):
        from ..report import explore as serve
        from .commands import load_model

        serve(load_model(model, -1), port, model.name, lambda address: typer.echo(f"Open {address} in a browser. Ctrl+C stops it."))


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pictures and the page.")] = Path("stitchwork-demo"),
) -> None:
    """Run the paper's two-dimensional test.

    Fit, predict, gradient, the table, pictures and a page.
    """
    _check_folder(output)
    with failing("plot", output):
        from .demo import run_demo

        run_demo(output, announce=typer.echo)
    typer.echo(f"\nPictures and page: {output.resolve()}\nOpen {(output / 'demo.html').resolve()} in a browser.")


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[EXPERIMENT]...", help="Experiments to run; all of them by default.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: everything in under ten minutes.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Run finished parts again.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Name the experiments and stop.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for results and report.")] = Path(
        "stitchwork-reproduction"
    ),
) -> None:
    """Run the paper's evaluation and write one report.

    Every experiment with every competitor. What is finished is not run again.
    """
    _check_folder(output)
    with failing("paper", output):
        from ..experiments import EXPERIMENTS, experiment
        from ..experiments import reproduce as run

        if listed:
            for name in EXPERIMENTS:
                typer.echo(f"{name:<12}{experiment(name).TITLE}")
            return
        unknown = [name for name in names or () if name not in EXPERIMENTS]
        if unknown:
            fail(f"There is no experiment {unknown[0]!r}. Choose from {', '.join(EXPERIMENTS)}.")
        page = run(names or (), output, quick, again, announce=typer.echo)
    typer.echo(f"\nReport: {page.resolve()}\nOpen it in a browser.")


@contextmanager
def failing(extra: str = "", folder: Path | None = None) -> Iterator[None]:
    """Say in one line what is wrong with what was asked; ``extra`` is what to install where a module is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = f". Run: pip install 'stitchwork[{extra}]'" if extra and "pip install" not in str(error) else ""
        fail(f"{error}{remedy}")
    except OSError as error:
        if folder is not None:
            fail(f"Cannot write to {str(folder)!r} ({error.strerror}). Name another folder with `--output`.")
        place = "" if error.filename is None else f": {str(error.filename)!r}"
        fail(str(error) if error.strerror is None else f"{error.strerror}{place}.")
    except MemoryError as error:
        fail(f"There is not enough memory ({error}). Ask for less at once.")
    except ValueError as error:
        fail(str(error))


def fail(message: str) -> NoReturn:
    """One clear line on standard error, exit code 2."""
    typer.echo("stitchwork: " + " ".join(message.split()), err=True)
    raise typer.Exit(2)


def _warn(message: str) -> None:
    typer.echo(message, err=True)


def _check_folder(output: Path) -> None:
    if output.exists() and not output.is_dir():
        fail(f"`--output` must be a folder, and {str(output)!r} is a file. Name another place.")


def _listed(names: str) -> list[str]:
    """Names between commas; a name with a comma stands in quotes."""
    return [name.strip() for name in next(csv.reader([names], skipinitialspace=True), []) if name.strip()]


def _parameter(text: str) -> tuple[str, Any]:
    """NAME=VALUE, where the value is a number, null, a list of numbers, or else a word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"`--set` must look like kernel=cubic, got {text!r}.")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _period(text: str) -> tuple[str, float]:
    name, _, period = text.rpartition("=")
    try:
        return name, float(period)
    except ValueError:
        raise ValueError(f"`--periodic` must look like phase=360, got {text!r}.") from None


def _numbers(shape: str) -> Any:
    try:
        numbers = [int(part) for part in _listed(shape)]
    except ValueError:
        raise ValueError(f"`--shape` must be whole numbers such as 200,200, got {shape!r}.") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _bound(text: str) -> tuple[str, tuple[float, float]]:
    name, _, limits = text.rpartition("=")
    low, _, high = limits.partition(":")
    try:
        return name, (float(low), float(high))
    except ValueError:
        raise ValueError(f"`--bounds` must look like a=0:1, got {text!r}.") from None


def main() -> None:
    """Entry point of the ``stitchwork`` command. A polite kill cleans up as Ctrl+C does."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    app()
