"""Dask collections as blocks of rows, each checked where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np

from .._types import Array, Index
from .._validation import check_range, names_of, number_groups, unmasked
from .._validation.rows import check_weights

Block = tuple[Array, Array, Array, Index | None]

_ROWS = 100_000  # per block of a NumPy array


@dataclass(frozen=True)
class Blocks:
    """Row blocks of the data: delayed (X, y, v, group), the names of the features if they have any, whether y has one axis,
    and whether there are groups."""

    parts: list[Any]
    d: int
    names: tuple[str, ...] | None
    flat: bool
    grouped: bool


def is_frame(collection: Any) -> bool:
    """Whether a collection is a dask data frame or series."""
    return hasattr(collection, "to_delayed") and hasattr(collection, "divisions")


def as_collection(X: Any, chunks: Any = None) -> Any:
    """A dask array or data frame as it is, anything else as a dask array."""
    if is_frame(X):
        return X
    array = X if isinstance(X, da.Array) else da.from_array(np.asarray(unmasked(X, "X")), chunks=(_ROWS, *np.shape(X)[1:]))
    if array.ndim == 2 and array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    if chunks is not None and array.chunks[0] != chunks and not np.isnan(chunks + array.chunks[0]).any():
        array = array.rechunk({0: chunks})
    return array


def row_blocks(collection: Any) -> list[Any]:
    """The delayed blocks of a collection, one after the other.

    Not optimised: that may put Parquet files together, more of them the fewer columns are read, and part what belongs together.
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


def make_blocks(X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Blocks:
    """Blocks of (X, y, v, group) from collections whose partitions belong together."""
    X = as_collection(X)
    chunks = None if is_frame(X) else X.chunks[0]
    d, names = n_columns(X), column_names(X)
    y = as_collection(y, chunks)
    if y.ndim not in (1, 2):
        raise ValueError(f"`y` must have one axis, or two for several outputs, got {y.ndim}. Reshape it to (n, t).")
    given = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
    parts = {name: row_blocks(as_collection(part, chunks)) for name, part in given.items() if part is not None}
    counts = {name: len(part) for name, part in parts.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"Partitions must belong together, but there are {', '.join(f'{k} of `{name}`' for name, k in counts.items())}."
            " Take them from one data frame, or repartition them alike."
        )
    columns = [parts.get(name, [None] * len(parts["X"])) for name in given]
    checked = dask.delayed(check_block)
    blocks = [checked(i, *block, d, names) for i, block in enumerate(zip(*columns, strict=True))]
    return Blocks(blocks, d, None if names is None else tuple(names), y.ndim == 1, groups is not None)


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


def check_block(number: int, X: Any, y: Any, v: Any, groups: Any, d: int, names: list[str] | None) -> Block:
    """One block as arrays X (n, d), y (n, t), v (n,), and group (n,) or None, or a `ValueError` that says where it is wrong."""
    inputs, outputs = check_queries(number, X, d, names), _as_floats("y", number, y)
    if len(outputs) != len(inputs):
        raise ValueError(
            f"Partition {number} has {len(inputs)} rows of `X`, but {len(outputs)} of `y`. Take both from one data frame, or"
            " repartition them alike."
        )
    outputs = outputs.reshape(len(inputs), outputs.shape[1] if outputs.ndim == 2 else 1)
    _check_finite("y", number, outputs, None)
    check_range(outputs)
    v = np.ones(0) if not len(inputs) else _weights(number, v, len(inputs))
    return inputs, outputs, v, None if groups is None else _groups(number, groups, len(inputs))


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
        return np.zeros(n)  # a block may weigh nothing, the whole may not
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
