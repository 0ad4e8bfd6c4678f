"""How commands fail: one clear line that names the remedy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer


@contextmanager
def failing(extra: str = "", folder: Path | None = None) -> Iterator[None]:
    """Say in one line what is wrong with what was asked; ``extra`` is what to install where a module is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = f". Run: pip install 'stitchwork[{extra}]'" if extra and "pip install" not in str(error) else ""
        fail(f"{error}{remedy}")
    except BrokenPipeError:  # whoever read our output has had enough
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
    """A folder to write to is none that is a file."""
    if output.exists() and not output.is_dir():
        fail(f"`--output` must be a folder, and {str(output)!r} is a file. Name another place.")
