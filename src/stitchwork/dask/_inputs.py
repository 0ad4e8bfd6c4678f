"""Dask collections as blocks of rows, each checked where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np

from .._types import Array, Index
from .._validation import check_range, names_of, number_groups, unmasked
from .._validation.rows import check_errors, check_weights
from .._validation.slopes import Measured, check_responses, read_slopes

_ROWS = 100_000  # per block of a NumPy array


class Block(NamedTuple):
    """Checked rows: X (n, d), y (n, t), weights v (n,), and where they are given groups (n,), variances (n, t) of errors, slopes.

    Where slopes are given, y may be NaN.
    """

    X: Array
    y: Array
    v: Array
    group: Index | None = None
    s2: Array | None = None
    slopes: Measured | None = None


@dataclass(frozen=True)
class Blocks:
    """Row blocks of the data: delayed `Block`, the names of the features if they have any, and whether y has one axis, and
    whether there are groups, known errors, slopes, and known errors of these."""

    parts: list[Any]
    d: int
    names: tuple[str, ...] | None
    flat: bool
    grouped: bool
    errors: bool
    sloped: bool
    told: bool


def is_frame(collection: Any) -> bool:
    """Whether a collection is a dask data frame or series."""
    return hasattr(collection, "to_delayed") and hasattr(collection, "divisions")


def as_collection(X: Any, chunks: Any = None) -> Any:
    """A dask array or data frame as it is, anything else as a dask array."""
    if is_frame(X):
        return X
    array = X if isinstance(X, da.Array) else da.from_array(np.asarray(unmasked(X, "X")), chunks=(_ROWS, *np.shape(X)[1:]))
    if any(count > 1 for count in array.numblocks[1:]):
        array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    if chunks is not None and array.chunks[0] != chunks and not np.isnan(chunks + array.chunks[0]).any():
        array = array.rechunk({0: chunks})
    return array


def row_blocks(collection: Any) -> list[Any]:
    """The delayed blocks of a collection, one after the other.

    Not optimised: that may merge Parquet files, more of them the fewer columns are read, so that blocks of X and y no longer match.
    """
    return list(np.ravel(collection.to_delayed(optimize_graph=False)))


def n_columns(X: Any) -> int:
    """Number of features of a collection."""
    shape = (None, len(X.columns)) if is_frame(X) and hasattr(X, "columns") else X.shape
    if len(shape) != 2:
        raise ValueError(f"`X` must have two axes, rows and features, got {len(shape)}. Reshape it to (n, d).")
    return int(shape[1])


def column_names(X: Any) -> list[str] | None:
    """Names of the features of a data frame."""
    return [str(name) for name in X.columns] if is_frame(X) else None


def target_names(y: Any) -> tuple[str, ...] | None:
    """Names of the outputs if ``y`` is a dask series or data frame that has them."""
    return names_of(y) if is_frame(y) else None


def make_blocks(X: Any, y: Any, **given: Any) -> Blocks:
    """Blocks from collections whose partitions belong together; what is ``given`` besides are arguments of `check_block`."""
    X = as_collection(X)
    chunks = None if is_frame(X) else X.chunks[0]
    d, names = n_columns(X), column_names(X)
    y = as_collection(y, chunks)
    if y.ndim not in (1, 2):
        raise ValueError(f"`y` must have one axis, or two for several outputs, got {y.ndim}. Reshape it to (n, t).")
    given = {"X": X, "y": y} | {name: part for name, part in given.items() if part is not None}
    common = {name: part for name, part in given.items() if is_common(name, part)}
    parts = {name: row_blocks(as_collection(part, chunks)) for name, part in given.items() if name not in common}
    counts = {name: len(part) for name, part in parts.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"Partitions must belong together, but there are {', '.join(f'{k} of `{name}`' for name, k in counts.items())}."
            " Take them from one data frame, or repartition them alike."
        )
    checked = dask.delayed(check_block)
    rows = zip(*parts.values(), strict=True)
    blocks = [checked(i, d, names, **dict(zip(parts, row, strict=True)), **common) for i, row in enumerate(rows)]
    has = [name in given for name in ("groups", "noise_std", "gradient", "gradient_std")]
    return Blocks(blocks, d, None if names is None else tuple(names), y.ndim == 1, *has)


def is_common(name: str, given: Any) -> bool:
    """Whether something is said of all rows at once: one error, or one for the slopes by each feature."""
    axes = 2 if is_frame(given) or isinstance(given, da.Array) else np.ndim(given)
    return (name == "noise_std" and axes == 0) or (name == "gradient_std" and axes < 2)


def check_queries(number: int, X: Any, d: int, names: Sequence[str] | None) -> Array:
    """One block of features as a float array (n, d), or a `ValueError` that says where it is wrong."""
    columns = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    if names is not None and columns is not None and columns != list(names):
        raise ValueError(
            f"Partition {number} has the columns {columns}, but the model has {list(names)}. Select and order them alike."
        )
    array = _as_floats("X", number, X)
    if array.ndim != 2 or array.shape[1] != d:
        raise ValueError(f"Partition {number} of `X` has shape {array.shape}, but {d} features were announced.")
    _check_finite("X", number, array, columns)
    return array


def check_block(
    number: int,
    d: int,
    names: list[str] | None,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
    noise_std: Any = None,
    gradient: Any = None,
    gradient_std: Any = None,
) -> Block:
    """One block as arrays, or a `ValueError` that says where it is wrong."""
    inputs = check_queries(number, X, d, names)
    outputs = _as_floats("y", number, y)
    n = len(inputs)
    if len(outputs) != n:
        raise ValueError(
            f"Partition {number} has {n} rows of `X`, but {len(outputs)} of `y`. Take both from one data frame, or"
            " repartition them alike."
        )
    outputs = outputs.reshape(n, outputs.shape[1] if outputs.ndim == 2 else 1)
    if gradient is None:
        _check_finite("y", number, outputs, None)
    check_range(outputs[~np.isnan(outputs).any(axis=1)])
    group = None if groups is None else _groups(number, groups, n)
    if not n:
        return empty_block(d, outputs.shape[1], group, noise_std is not None, gradient is not None, gradient_std is not None)
    try:
        s2, slopes = check_errors(noise_std, None, *outputs.shape), None
        if gradient is not None:
            check_responses(outputs, inputs, some=False)
            slopes = read_slopes(gradient, gradient_std, inputs, outputs)
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error
    return Block(inputs, outputs, _weights(number, sample_weight, n), group, s2, slopes)


def empty_block(d: int, t: int, group: Index | None, errors: bool, sloped: bool, told: bool) -> Block:
    """A block without rows, of the form that the others have."""
    nothing = Measured(np.zeros((0, d, t)), np.zeros((0, d), dtype=bool), np.zeros((0, d)) if told else None)
    s2 = np.zeros((0, t)) if errors else None
    return Block(np.zeros((0, d)), np.zeros((0, t)), np.zeros(0), group, s2, nothing if sloped else None)


def _as_floats(name: str, number: int, block: Any) -> Array:
    """A block as real numbers; complex and masked ones are refused."""
    types = list(block.dtypes) if hasattr(block, "columns") else [getattr(block, "dtype", None)]
    if any(getattr(kind, "kind", "") == "c" for kind in types):
        raise ValueError(
            f"`{name}` has complex numbers in partition {number}. Give real and imaginary parts as columns of their own."
        )
    try:
        return np.asarray(unmasked(block, name), dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error


def _groups(number: int, groups: Any, n: int) -> Index:
    """Numbers (n,) of the groups, the same in every partition."""
    import pandas as pd

    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"Partition {number} has {n} rows of `X`, but `groups` of shape {labels.shape}. Give one entry per row.")
    if pd.isna(labels).any():
        raise ValueError(f"Partition {number} of `groups` has missing entries. Give rows that belong to no group one of their own.")
    entries, group = np.unique(labels, return_inverse=True)
    return number_groups(entries)[group]


def _weights(number: int, v: Any, n: int) -> Array:
    if v is not None and not np.any(np.asarray(v)):
        return np.zeros(n)  # one block may have zero weights only, all blocks together may not
    try:
        return check_weights(None if v is None else np.asarray(unmasked(v, "sample_weight")), n)
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error


def _check_finite(name: str, number: int, array: Array, columns: list[str] | None) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        where = f"column {columns[column]!r}" if columns else f"column {column}"
        raise ValueError(
            f"`{name}` has {int(bad.any(axis=1).sum())} rows with NaN or infinite values in partition {number}, the first at row"
            f" {row}, {where}. Drop them (`dropna`) or fill them before fitting."
        )
