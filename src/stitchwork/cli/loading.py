"""Saved models for commands: from a file, a folder of parts, or standard input."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .._loading import load
from .._regressor import StitchedRegressor
from .table import STANDARD
from .writing import SUFFIXES


def load_model(path: Path, jobs: int) -> StitchedRegressor:
    """A saved model that uses so many threads; ``-`` is read from standard input."""
    if path.suffix.lower() in SUFFIXES and path.is_file():
        raise ValueError(f"{str(path)!r} is a table. Name the model first, then the table.")
    with _at_a_place(path) as place:
        model = load(place)
    model.n_jobs = check_jobs(jobs)
    return model


@contextmanager
def _at_a_place(path: Path) -> Iterator[Path]:
    if path != STANDARD:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "standard input"
        place.write_bytes(sys.stdin.buffer.read())
        yield place


def check_jobs(jobs: int) -> int:
    """A number of threads, or a `ValueError`."""
    if jobs == 0:
        raise ValueError("`--jobs` must be a number of threads, or -1 for all cores, got 0. Leave it out to use all cores.")
    return jobs
