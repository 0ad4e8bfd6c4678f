"""The command line. Commands import what they need when they run, so that ``--help`` answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Many small models, stitched into one smooth function.")


@app.callback()
def stitchwork() -> None:
    """Many small models, stitched into one smooth function with exact derivatives."""


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pictures and the page.")] = Path("stitchwork-demo"),
) -> None:
    """Run the paper's two-dimensional test: fit, predict, gradient, the table, pictures and a page."""
    if output.exists() and not output.is_dir():
        fail(f"`--output` must be a folder, and {str(output)!r} is a file. Name another place.")
    try:
        from .demo import run_demo

        run_demo(output, announce=typer.echo)
    except ModuleNotFoundError as error:
        fail(f"The demo draws with {error.name}, which is not installed. Run: pip install 'stitchwork[plot]'")
    except OSError as error:
        fail(f"Cannot write to {str(output)!r} ({error.strerror}). Name another folder with `--output`.")
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
    """Run the paper's evaluation: every experiment, every competitor, one report. What is finished is not run again."""
    if output.exists() and not output.is_dir():
        fail(f"`--output` must be a folder, and {str(output)!r} is a file. Name another place.")
    try:
        from .experiments import EXPERIMENTS, experiment
        from .experiments import reproduce as run

        if listed:
            for name in EXPERIMENTS:
                typer.echo(f"{name:<12}{experiment(name).TITLE}")
            return
        unknown = [name for name in names or () if name not in EXPERIMENTS]
        if unknown:
            fail(f"There is no experiment {unknown[0]!r}. Choose from {', '.join(EXPERIMENTS)}.")
        report = run(names or (), output, quick, again, announce=typer.echo)
    except ModuleNotFoundError as error:
        fail(f"The reproduction needs {error.name}, which is not installed. Run: pip install 'stitchwork[paper]'")
    except OSError as error:
        fail(f"Cannot write to {str(output)!r} ({error.strerror}). Name another folder with `--output`.")
    typer.echo(f"\nReport: {report.resolve()}\nOpen it in a browser.")


def fail(message: str) -> NoReturn:
    """One clear line on standard error, exit code 2."""
    typer.echo(f"stitchwork: {message}", err=True)
    raise typer.Exit(2)


def main() -> None:
    """Entry point of the ``stitchwork`` command."""
    app()
