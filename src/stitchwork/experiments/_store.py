"""Parts of experiments and where their results are kept.

A part is run, stored and skipped as a whole: its numbers as JSON, its arrays beside them as ``.npz``. What is stored is not run
again, so an interrupted reproduction goes on where it stopped.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..storage.whole import write_whole

Numbers = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Part:
    """One piece of an experiment; ``run`` returns its numbers and its arrays."""

    name: str
    run: Callable[[], tuple[Numbers, Arrays]]


@dataclass
class Results:
    """Numbers of an experiment by part; arrays are read when asked for. ``missing`` says why a part was not run."""

    folder: Path
    numbers: dict[str, Numbers] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, part: str) -> Numbers:
        return self.numbers[part]

    def __contains__(self, part: str) -> bool:
        return part in self.numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def arrays(self, part: str) -> Arrays:
        """Arrays that the part left; empty where it left none."""
        path = _path(self.folder, part, ".npz")
        if not path.exists():
            return {}
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)


def is_stored(folder: Path, part: str) -> bool:
    """Whether the part was finished."""
    return _path(folder, part, ".json").exists()


def read_part(folder: Path, part: str) -> Numbers:
    """Numbers of a finished part."""
    return json.loads(_path(folder, part, ".json").read_text())


def store_part(folder: Path, part: str, numbers: Numbers, arrays: Arrays) -> None:
    """Write a finished part; the numbers come last, since they mark it as finished."""
    folder.mkdir(parents=True, exist_ok=True)
    if arrays:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        write_whole(_path(folder, part, ".npz"), buffer.getvalue())
    write_whole(_path(folder, part, ".json"), json.dumps(numbers, indent=1, default=_plain).encode())


def _path(folder: Path, part: str, suffix: str) -> Path:
    return folder / (re.sub(r"[^A-Za-z0-9.=-]+", "_", part) + suffix)


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON can hold them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON.")
