"""Where a command says things: results and facts, warnings, how long each stage took, and mistakes in one line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer


class Console:
    """What a command announces goes to standard output, unless that is where ``results`` go; warnings to standard error.

    Time runs from the beginning of the command. Every moment belongs to a stage, so that their times add up to what the user
    waited for.
    """

    def __init__(self, results: Path | None = None):
        self._beside = str(results) == "-"
        self._stages: dict[str, float] = {}
        self._name, self._since = "starting", time.perf_counter()

    def announce(self, text: str) -> None:
        """Say something where facts are said."""
        typer.echo(text, err=self._beside)

    def warn(self, text: str) -> None:
        """Say something on standard error."""
        typer.echo(f"stitchwork: {text}", err=True)

    def enter(self, stage: str, show: bool = False) -> None:
        """Begin a stage; with ``show``, name it on a terminal until the next begins."""
        self._close()
        self._name = stage
        if show and self.live:
            typer.echo(f"\r\033[K{stage} …", err=True, nl=False)

    @property
    def live(self) -> bool:
        """Whether somebody watches: standard error is a terminal."""
        return sys.stderr.isatty()

    def clear(self) -> None:
        """Take the name of the stage off the terminal."""
        if self.live:
            typer.echo("\r\033[K", err=True, nl=False)

    def took(self) -> str:
        """Seconds since the command began, and those of each stage that took a tenth of a second or more."""
        self._close()
        total = sum(self._stages.values())
        parts = [f"{name} {seconds:.1f}" for name, seconds in self._stages.items() if seconds >= 0.1]
        return f"{total:.1f} s" + (f" ({', '.join(parts)})" if len(parts) > 1 else "")

    def _close(self) -> None:
        now = time.perf_counter()
        self._stages[self._name] = self._stages.get(self._name, 0.0) + now - self._since
        self._since = now


@contextmanager
def failing(extra: str = "", folder: Path | None = None) -> Iterator[None]:
    """Report errors of the input in one line; ``extra`` is the extra to install where a module is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = f". Run: pip install 'stitchwork[{extra}]'" if extra and "pip install" not in str(error) else ""
        fail(f"{error}{remedy}")
    except BrokenPipeError:  # the reader of our output has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
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


def check_folder(output: Path) -> None:
    """Fail if the output folder is a file."""
    if output.exists() and not output.is_dir():
        fail(f"`--output` must be a folder, and {str(output)!r} is a file. Name another place.")
