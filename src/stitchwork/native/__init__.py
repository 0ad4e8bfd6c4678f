"""The compiled evaluator: one C99 file, built with the package where there is a compiler, and called through `ctypes`.

`stitchwork.h` is its interface for C, C++ and Fortran; Python uses the same functions. Where it is absent, or the environment says
``STITCHWORK_NATIVE=0``, NumPy answers.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._parallel import Threads, slices

__all__ = ["available", "include_dir", "library"]

_NAME = {"win32": "stitchwork.dll", "darwin": "libstitchwork.dylib"}.get(sys.platform, "libstitchwork.so")
_PER_THREAD = 1 << 11  # queries that are worth a thread


def include_dir() -> str:
    """The folder of ``stitchwork.h``, ``stitchwork.c``, ``stitchwork.hpp`` and ``stitchwork.f90``, for compilers.

    Examples
    --------
    >>> import os, stitchwork.native
    >>> sorted(name for name in os.listdir(stitchwork.native.include_dir()) if name.endswith((".c", ".h")))
    ['fmi.c', 'stitchwork.c', 'stitchwork.h']
    """
    return str(Path(__file__).parent)


def library() -> str:
    """The shared library to link against; it knows nothing of Python.

    Raises
    ------
    FileNotFoundError
        If the package was built without a compiler.

    Examples
    --------
    >>> import stitchwork.native
    >>> not stitchwork.native.available() or "stitchwork" in stitchwork.native.library()
    True
    """
    path = Path(__file__).parent / _NAME
    if not path.is_file():
        raise FileNotFoundError(
            f"The compiled library was not built with this installation: {_NAME} is missing. Install a C compiler and then"
            f" stitchwork again, or compile {Path(include_dir()) / 'stitchwork.c'} with your program."
        )
    return str(path)


def available() -> bool:
    """Whether predictions come from the compiled library.

    Examples
    --------
    >>> import stitchwork.native
    >>> isinstance(stitchwork.native.available(), bool)
    True
    """
    return _loaded() is not None


@cache
def _loaded() -> ctypes.CDLL | None:
    if os.environ.get("STITCHWORK_NATIVE", "1") == "0" or not (Path(__file__).parent / _NAME).is_file():
        return None
    loaded = ctypes.CDLL(library())
    pointer, count = ctypes.c_void_p, ctypes.c_long
    loaded.st_wrap.argtypes = [pointer, count, ctypes.c_char_p, ctypes.c_char_p, pointer]
    loaded.st_batch.argtypes = [pointer, count, pointer, pointer, pointer, pointer]
    loaded.st_coverages.argtypes = [pointer, count, pointer, pointer]
    loaded.st_distances.argtypes = [count, count, count, pointer, pointer, pointer]
    loaded.st_kernel.argtypes = [ctypes.c_char_p, count, count, count, pointer, pointer, pointer]
    loaded.st_posterior.argtypes = [ctypes.c_char_p, *(pointer,) * 9]
    loaded.st_contributions.argtypes = [pointer, ctypes.c_char_p, count, *(pointer,) * 4]
    loaded.st_part_variances.argtypes = [pointer, ctypes.c_char_p, count, *(pointer,) * 3]
    loaded.st_close.argtypes, loaded.st_close.restype = [pointer], None
    loaded.st_message.restype = ctypes.c_char_p
    return loaded


class _Named(ctypes.Structure):
    """`st_array` of the header."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_int64 * 3),
        ("dimensions", ctypes.c_int32),
        ("kind", ctypes.c_char),
    )


class Evaluator:
    """A handle of the C library over arrays that Python holds: those of `model.description`, by their names."""

    def __init__(self, loaded: ctypes.CDLL, arrays: Mapping[str, NDArray[Any]], weight: str, kernels: str):
        self._loaded, self._handle = loaded, ctypes.c_void_p()
        self._arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # the handle points to them
        self._d, self._t = self._arrays["frame"].shape[1], self._arrays["points/y"].shape[1]
        named = (_Named * len(self._arrays))(*(_name(name, array) for name, array in self._arrays.items()))
        _check(loaded, loaded.st_wrap(named, len(named), weight.encode(), kernels.encode(), ctypes.byref(self._handle)))
        self._address = self._handle.value
        self._batch = loaded.st_batch
        self._most = 64  # parts of one answer for which there is room at first
        self._sizes = [self._t * self._d**k for k in range(3)]
        self._row = [ctypes.c_double * sum(self._sizes[: order + 1]) for order in range(3)]

    def __del__(self) -> None:
        if self._handle:
            self._loaded.st_close(self._handle)

    def jet(self, X: NDArray[np.float64], order: int, threads: Threads) -> tuple[NDArray[np.float64], ...]:
        """Values (q, t) with derivatives (q, t, d), (q, t, d, d) up to ``order`` at ``X`` (q, d)."""
        if len(X) == 1:
            return self._row_jet(X, order)
        X, q, d, t = np.ascontiguousarray(X), len(X), self._d, self._t
        found = tuple(np.empty((q, t, *(d,) * k)) for k in range(order + 1))

        def fill(part: slice) -> None:
            addresses = [array[part].ctypes.data for array in found]
            count = part.stop - part.start
            _check(self._loaded, self._batch(self._address, count, X[part].ctypes.data, *addresses, *(None,) * (2 - order)))

        _share(fill, q, threads)
        return found

    def _row_jet(self, X: NDArray[np.float64], order: int) -> tuple[NDArray[np.float64], ...]:
        """The same for one row, with as little of the interpreter as possible: one buffer, and no address asked of NumPy."""
        d, (v, g, _), buffer = self._d, self._sizes, self._row[order]()
        F = ctypes.addressof(buffer)
        G, H = F + 8 * v if order >= 1 else None, F + 8 * (v + g) if order >= 2 else None
        status = self._batch(self._address, 1, X.tobytes(), F, G, H)
        if status:
            _check(self._loaded, status)
        numbers = np.frombuffer(buffer)
        if order == 0:
            return (numbers.reshape(1, v),)
        if order == 1:
            return numbers[:v].reshape(1, v), numbers[v:].reshape(1, v, d)
        return numbers[:v].reshape(1, v), numbers[v : v + g].reshape(1, v, d), numbers[v + g :].reshape(1, v, d, d)

    def parts(self, x: bytes) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """What makes up the answer at one row of features: level, region and model (k, 3), shares and values, (k, t) each."""
        count = ctypes.c_long()
        while True:
            most = self._most
            found, numbers = np.empty((most, 3), dtype=np.int32), np.empty((2, most, self._t))
            share = numbers.ctypes.data
            rest = found.ctypes.data, share, share + numbers.nbytes // 2, ctypes.addressof(count)
            _check(self._loaded, self._loaded.st_contributions(self._address, x, most, *rest))
            k = count.value
            if k <= most:
                return found[:k], numbers[0, :k], numbers[1, :k]
            self._most = 2 * k

    def part_variances(self, x: bytes, parts: NDArray[np.int32], factors: list[int]) -> NDArray[np.float64]:
        """Variances (k,) of the parts (k, 3) of the answer at that row, from the addresses of the factors of their regions."""
        k = len(factors)
        v, rows = np.empty(k), (ctypes.c_void_p * k)(*factors)
        _check(self._loaded, self._loaded.st_part_variances(self._address, x, k, parts.ctypes.data, rows, v.ctypes.data))
        return v

    def coverage(self, X: NDArray[np.float64], threads: Threads) -> NDArray[np.float64]:
        """Coverage (q,) at ``X`` (q, d)."""
        X, found = np.ascontiguousarray(X), np.empty(len(X))

        def fill(part: slice) -> None:
            count = part.stop - part.start
            status = self._loaded.st_coverages(self._address, count, X[part].ctypes.data, found[part].ctypes.data)
            _check(self._loaded, status)

        _share(fill, len(X), threads)
        return found


def _share(fill: Callable[[slice], None], q: int, threads: Threads) -> None:
    """Call ``fill`` with slices of q queries, one for each thread; few are not worth the threads, nor asking how many there are."""
    if q <= _PER_THREAD:
        fill(slice(0, q))
    else:
        threads.map(fill, slices(q, max(_PER_THREAD, -(-q // threads.count))))


def make_evaluator(arrays: Mapping[str, NDArray[Any]], weight: str, kernels: str) -> Evaluator | None:
    """The evaluator of a model's arrays, or None where there is no compiled library."""
    loaded = _loaded()
    return None if loaded is None else Evaluator(loaded, arrays, weight, kernels)


def pair_distances(Z: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Squared distances (B, h, h) of the points ``Z`` (d, B, h) of B regions, and the mean distance in each, (B,), or None."""
    loaded = _loaded()
    if loaded is None:
        return None
    (d, B, h), Z = Z.shape, np.ascontiguousarray(Z)
    D, b = np.empty((B, h, h)), np.empty(B)
    _check(loaded, loaded.st_distances(B, h, d, Z.ctypes.data, D.ctypes.data, b.ctypes.data))
    return D, b


def kernel_matrices(kernel: str, d: int, D: NDArray[np.float64], sigma: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Values (B, h, h) of a kernel in ``d`` dimensions at squared distances ``D`` / ``sigma`` (B,) squared; None without C."""
    loaded = _loaded()
    if loaded is None:
        return None
    (B, h, _), D, sigma = D.shape, np.ascontiguousarray(D), np.ascontiguousarray(sigma)
    K = np.empty((B, h, h))
    _check(loaded, loaded.st_kernel(kernel.encode(), B, h, d, D.ctypes.data, sigma.ctypes.data, K.ctypes.data))
    return K


def evaluate_posterior(
    kernel: str, X: NDArray[Any], Z: NDArray[Any], P: NDArray[Any], alpha: NDArray[Any], lam: NDArray[Any],
    factors: list[int], r: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:  # fmt: skip
    """Values (B, c, t) and variances (B, c) of regions of one kernel, or None: see `local.factors` and ``st_posterior``."""
    loaded = _loaded()
    if loaded is None:
        return None
    (d, B, h), c, t, s = X.shape, Z.shape[2], alpha.shape[2], P.shape[2]
    values, v = np.empty((B, c, t)), np.empty((B, c))
    given = [np.ascontiguousarray(array) for array in (X, Z, P, alpha, lam)]
    addresses = [array.ctypes.data for array in (*given, values, v)]
    size, rows = (ctypes.c_long * 7)(B, c, h, d, t, s, r), (ctypes.c_void_p * B)(*factors)
    _check(loaded, loaded.st_posterior(kernel.encode(), size, *addresses[:5], rows, *addresses[5:]))
    return values, v


def _name(name: str, array: NDArray[Any]) -> _Named:
    shape = (*array.shape, 0, 0, 0)[:3]
    return _Named(name.encode(), array.ctypes.data, shape, array.ndim, array.dtype.kind.encode())


def _check(loaded: ctypes.CDLL, status: int) -> None:
    """Raise what a status means; queries were checked before, so that only memory can be short."""
    if status:
        message = loaded.st_message(status).decode()
        raise MemoryError(message) if message.endswith("memory") else RuntimeError(f"The compiled library says: {message}.")
