"""Named arrays from a file, each checked when it is taken: its shape and type, and every number and index."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import Array
from .arrays import Arrays


class Reader(NamedTuple):
    """Named arrays that are checked when they are taken; a size of None may be any."""

    arrays: Arrays

    def take(self, name: str, kind: str, shape: tuple[int | None, ...]) -> NDArray:
        """One array of this kind ("f" or "i", of 8 bytes) and shape."""
        if name not in self.arrays:
            raise ValueError(f"{name} is missing")
        array = self.arrays[name]
        fits = array.ndim == len(shape) and all(want in (None, size) for want, size in zip(shape, array.shape, strict=True))
        if not fits or array.dtype.kind != kind or array.dtype.itemsize != 8:
            expected = ", ".join("any" if size is None else str(size) for size in shape)
            raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}, expected ({expected}) and {kind}8")
        return array

    def floats(self, name: str, *shape: int | None) -> Array:
        """Finite numbers."""
        array = self.take(name, "f", shape)
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite")
        return array

    def positive(self, name: str, *shape: int | None) -> Array:
        """Finite numbers above zero."""
        array = self.floats(name, *shape)
        if not (array > 0.0).all():
            raise ValueError(f"{name} must be positive")
        return array

    def indices(self, name: str, *shape: int | None, below: int, least: int = 0) -> NDArray[np.intp]:
        """Whole numbers of at least ``least`` and less than ``below``."""
        array = self.take(name, "i", shape)
        if array.size and not (array.min() >= least and array.max() < below):
            raise ValueError(f"{name} must be from {least} to {below - 1}")
        return array.astype(np.intp, copy=False)
