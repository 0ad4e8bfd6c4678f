"""The command line. Commands import what they need when they run, so that ``--help`` is fast.

An error in the input or the options is one line on standard error and exit code 2.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .console import Console, check_folder, fail, failing
from .options import (
    Bounds,
    Data,
    Error,
    FunctionStd,
    Jobs,
    Model,
    Slopes,
    Unit,
    bound_in,
    names_in,
    parameter_in,
    period_in,
    reads_a_table,
    shape_in,
    spacing_in,
    title_of,
)

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Many small models, stitched into one smooth function.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"stitchwork {__version__}")
        raise typer.Exit


@app.callback()
def stitchwork(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Many small models, stitched into one smooth function with exact derivatives."""


@app.command()
@reads_a_table
def fit(
    data: Data,
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict, or several: y1,y2.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the model; - is standard output.")] = Path(
        "m.stitch"
    ),
    features: Annotated[
        str, typer.Option("--features", "-f", help="Columns to predict from, also patterns: a,temp_*. All others by default.")
    ] = "",
    exclude: Annotated[str, typer.Option("--exclude", help="Columns to leave out of the features, also patterns: id,*_flag.")] = "",
    weight: Annotated[str, typer.Option("--sample-weight", help="Column of weights of the rows.")] = "",
    error: Error = "",
    gradient: Slopes = "",
    groups: Annotated[str, typer.Option("--groups", help="Column of curves, tracks or subjects that are left out together.")] = "",
    log: Annotated[
        bool,
        typer.Option("--log", "--positive", help="Model the logarithm of positive targets: predictions are medians, above zero."),
    ] = False,
    periodic: Annotated[
        list[str] | None, typer.Option("--periodic", help="A feature that is the same after a period: phase=360. May be repeated.")
    ] = None,
    geographic: Annotated[
        str, typer.Option("--geographic", help="The features that are longitude and latitude in degrees: lon,lat.")
    ] = "",
    validate: Annotated[
        str,
        typer.Option("--validate", help="Also print errors on held-out fifths: blocks (of space), groups, or random (rows)."),
    ] = "",
    robust: Annotated[bool, typer.Option("--robust", help="Leave gross errors of the target out.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only fit and save, without leave-one-out error, noise and advice, which take long.")
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of StitchedRegressor, NAME=VALUE, such as kernel=cubic.")
    ] = None,
    reading: Any = None,
    jobs: Jobs = -1,
) -> None:
    """Fit a model to a table and save it.

    Dates become days since 1970-01-01, words become categories; the output says how the file was read.
    """
    console = Console(output)
    with failing():
        from .fitting import Extras, fit_table, make_estimator
        from .reading import Columns

        columns = Columns(*map(names_in, (features, target, weight, groups, exclude, error, gradient)))
        chosen = dict(map(parameter_in, settings or ()))
        chosen |= {"periodic": dict(map(period_in, periodic))} if periodic else {}
        chosen |= {"geographic": tuple(names_in(geographic))} if geographic else {}
        chosen |= {"robust": True} if robust else {}
        model = make_estimator(chosen, log, jobs)
        fit_table(data, reading, columns, output, model, Extras(validate or None, quick), console)


@app.command()
@reads_a_table
def predict(
    model: Model,
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A table to write: .csv, .tsv, .txt, .parquet, .nc or .npz; - is standard output."),
    ],
    gradient: Annotated[bool, typer.Option("--gradient", help="Also write columns dy/da, …")] = False,
    hessian: Annotated[bool, typer.Option("--hessian", help="Also write columns d2y/dada, d2y/dadb, …")] = False,
    coverage: Annotated[bool, typer.Option("--coverage", help="Also write the coverage, the share from nearby data.")] = False,
    unit: Unit = "",
    std: Annotated[bool, typer.Option("--std", help="Also write standard deviations of a new observation, y_std.")] = False,
    function_std: FunctionStd = False,
    interval: Annotated[
        float | None, typer.Option("--interval", help="Also write intervals of this confidence, such as 0.9: y_lower, y_upper.")
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Write only the predictions, without the columns of the input.")] = False,
    reading: Any = None,
    jobs: Jobs = -1,
) -> None:
    """Predict for a table, with derivatives if asked.

    A row is written for each row that is read, its own columns first, in blocks: CSV and Parquet may be larger than memory. A
    column with the name of the target becomes y_given. With --drop-missing, the predictions of rows that lack a number stay empty.
    From NetCDF to NetCDF, what was a grid comes back as that grid.
    """
    console = Console(output)
    with failing():
        from ..views.asked import Asked
        from .predicting import Wanted, predict_table

        asked = Asked(gradient, coverage, std, function_std, unit or None, hessian, interval)
        predict_table(model, data, reading, output, Wanted(asked, only), jobs, console)


@app.command()
@reads_a_table
def update(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to save the model; in place of the old one if not given.")
    ] = None,
    weight: Annotated[str, typer.Option("--sample-weight", help="Column of weights of the rows.")] = "",
    error: Error = "",
    gradient: Slopes = "",
    groups: Annotated[str, typer.Option("--groups", help="Column that names the curve, track or subject of a row.")] = "",
    reading: Any = None,
    jobs: Jobs = -1,
) -> None:
    """Add the points of a table to a model.

    Regions near them are refitted with the same hyperparameters; a line warns when these no longer suit the data.
    """
    console = Console(output or model)
    with failing():
        from .commands import update_table
        from .reading import Columns

        columns = Columns((), (), *map(names_in, (weight, groups, "", error, gradient)))
        update_table(model, data, reading, columns, output or model, jobs, console)


@app.command()
def suggest(
    model: Model,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="How many points.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A table to write; - is standard output.")],
    bounds: Bounds = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Make the suggestion repeatable.")] = None,
    jobs: Jobs = -1,
) -> None:
    """Suggest where to measure next: points that would help most, spread out."""
    with failing():
        from .commands import suggest_table

        suggest_table(model, number, dict(map(bound_in, bounds or ())), seed, output, jobs)
        Console(output).announce(f"{number:,} points: {title_of(output)}")


@app.command()
@reads_a_table
def evaluate(
    model: Model,
    data: Data,
    reading: Any = None,
    jobs: Jobs = -1,
) -> None:
    """Compare a model with data: errors, skill, and the coverage of intervals.

    For each target: one sentence; RMSE, mean and median error, R²; skill against the mean and the nearest known point, one
    minus the ratio of mean squared errors; the share of rows inside intervals of 50 and 90 %, and the CRPS.
    """
    with failing():
        from .evaluating import evaluate_table

        evaluate_table(model, data, reading, jobs, Console())


@app.command()
def info(
    model: Annotated[Path | None, typer.Argument(metavar="MODEL", help="A saved model, m.stitch.")] = None,
    versions: Annotated[
        bool, typer.Option("--versions", help="Print the versions in use, and whether the compiled library is used.")
    ] = False,
) -> None:
    """Describe a saved model, without loading its arrays."""
    with failing():
        from .facts import model_facts, version_facts

        if model is None and not versions:
            raise ValueError("Name a saved model, or ask for `--versions`.")
        facts = [*(version_facts() if versions else []), *(model_facts(model) if model else [])]
        for name, text in facts:
            typer.echo(f"{name:<14}{text}")


@app.command()
def grid(
    model: Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="NetCDF or GeoTIFF for a field, field.nc, or a table: .csv, .parquet, …; - is standard output."
        ),
    ],
    shape: Annotated[
        str,
        typer.Option(
            "--shape",
            help="Coordinates along each feature: 200,200, one number for all, or a=200,b=100 with the others at medians.",
        ),
    ] = "",
    spacing: Annotated[
        str, typer.Option("--spacing", help="Step along each feature, 0.25 or lon=0.5,lat=0.25: coordinates are its multiples.")
    ] = "",
    like: Annotated[
        Path | None, typer.Option("--like", help="NetCDF or GeoTIFF: evaluate on its grid, and keep its dimensions and attributes.")
    ] = None,
    bounds: Bounds = None,
    gradient: Annotated[bool, typer.Option("--gradient", help="Add the derivatives.")] = False,
    unit: Unit = "",
    coverage: Annotated[bool, typer.Option("--coverage", help="Add the coverage.")] = False,
    std: Annotated[bool, typer.Option("--std", help="Add the standard deviations of a new observation.")] = False,
    function_std: FunctionStd = False,
    jobs: Jobs = -1,
) -> None:
    """Evaluate a model on a regular grid; maps have the dimensions latitude and longitude.

    Without --shape, --spacing or --like, coordinates are round numbers, up to 200 along each of one or two features.
    """
    console = Console(output)
    with failing():
        from ..views.asked import Asked
        from .gridding import Place, write_grid

        asked = Asked(gradient, coverage, std, function_std, unit or None)
        place = Place(shape_in(shape) if shape else None, spacing_in(spacing), like, dict(map(bound_in, bounds or ())))
        write_grid(model, place, output, asked, jobs, console)


@app.command()
@reads_a_table
def sample(
    model: Model,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="A table, a column for each sample, or with `--shape` NetCDF; - is standard output."),
    ],
    data: Annotated[Path | None, typer.Argument(metavar="[DATA]", help="A table of points; without it, a grid.")] = None,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="How many samples.")] = 1,
    shape: Annotated[str, typer.Option("--shape", help="Coordinates along each feature, as those of `grid`.")] = "",
    bounds: Bounds = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed: other numbers draw other samples.")] = 0,
    reading: Any = None,
    jobs: Jobs = -1,
) -> None:
    """Draw samples of the function, at the rows of a table or on a grid."""
    console = Console(output)
    with failing():
        from ..views.asked import Asked

        asked = Asked(samples=number, seed=seed)
        if (data is None) != bool(shape):
            raise ValueError("Name a table of places, or ask for a grid with `--shape`, and not both.")
        if data is None:
            from .gridding import Place, write_grid

            write_grid(model, Place(shape_in(shape), None, None, dict(map(bound_in, bounds or ()))), output, asked, jobs, console)
        else:
            from .predicting import Wanted, predict_table

            predict_table(model, data, reading, output, Wanted(asked, False), jobs, console)


@app.command()
@reads_a_table
def report(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL [MODEL] [DATA]", help="A saved model, or two side by side; a table to compare with."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    reading: Any = None,
) -> None:
    """Write one HTML page to explore a model in a browser, or to compare two, offline."""
    with failing("plot"):
        from .commands import report_page

        report_page(files, reading, output, Console())
        if str(output) != "-":
            typer.echo(f"Open {output.resolve()} in a browser.")


@app.command()
def explore(
    model: Model, port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on this machine.")] = 8642
) -> None:
    """Serve the page with a live model, on this machine.

    No other machine can reach it. Ctrl+C stops it.
    """
    with failing("explore"):
        from .exploring import explore_model

        explore_model(model, port, Console())


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pictures and the page.")] = Path("stitchwork-demo"),
) -> None:
    """Run the paper's two-dimensional test.

    Fit, predict, gradient, the table, pictures and a page.
    """
    check_folder(output)
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
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for results and report.")] = Path(
        "stitchwork-reproduction"
    ),
) -> None:
    """Run the paper's evaluation and write one report.

    Every experiment with every competitor. What is finished is not run again.
    """
    check_folder(output)
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


def main() -> None:
    """Entry point of the ``stitchwork`` command. SIGTERM cleans up as Ctrl+C does."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    app()
