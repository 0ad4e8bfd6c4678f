"""Files of about half the size: kernel coefficients in single precision, and other arrays in 32 bits where that is lossless.

Coefficients of a smooth function without noise are huge and cancel: there, rounding them costs all accuracy. So predictions are
first compared at some points, and a model whose leave-one-out error would grow is refused. Coordinates stay in double precision,
because kernel values of neighbouring points differ by less than the rounding. Readers convert everything back to doubles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .._parallel import ALONE, Threads
from .._types import Array
from ..model.arrays import Arrays
from ..model.deviation import blocks_of
from ..model.stitch import Level, distinct_levels
from ..model.stitched import StitchedModel

_MOST = 0.1  # greatest change of predictions, as a share of the leave-one-out error, which then grows by half a per cent
_ROWS = 1000  # points at which predictions are compared


def round_coefficients(model: StitchedModel) -> StitchedModel:
    """The model with kernel coefficients rounded to single precision, stored as doubles."""
    rounded = {}
    for level in distinct_levels(model.levels):
        models = blocks_of(level.regions)
        beta = None if models.beta is None else _round(models.beta)
        rounded[id(level.regions)] = replace(level.regions, models=replace(models, alpha=_round(models.alpha), beta=beta))
    levels = (Level(rounded.get(id(level.regions), level.regions), level.support) for level in model.levels)
    return replace(model, levels=tuple(levels))


def check_rounding(model: StitchedModel, rounded: StitchedModel, threads: Threads = ALONE) -> None:
    """Raise a `ValueError` if rounding changes predictions by too large a share of the leave-one-out error."""
    X = model.X[np.unique(np.linspace(0, model.n_points - 1, _ROWS).astype(np.intp))]
    with np.errstate(over="ignore", invalid="ignore"):
        difference = np.sqrt(np.mean(np.square(model.jet(X, 0).value - rounded.jet(X, 0).value), axis=0))
    error = model.left_out(threads).errors()
    if not (difference <= _MOST * error).all():
        k = int(np.argmax(difference - _MOST * error))
        raise ValueError(
            f"Coefficients in single precision would change predictions by {difference[k]:.3g}, more than {_MOST:g} of the"
            f" leave-one-out error of {error[k]:.3g}. Save without `compact`, or fit with a larger `ridge`."
        )


def narrow(arrays: Arrays, model: StitchedModel) -> Arrays:
    """The arrays in 32 bits where that is lossless, without the transformed points if the given ones determine them."""
    arrays = {name: _narrowed(array) for name, array in arrays.items()}
    given = model.points.given
    if given is not None and np.array_equal(model.space.coordinates(given), model.points.X):
        del arrays["points/X"]
    return arrays


def widen(arrays: Mapping[str, NDArray]) -> Arrays:
    """The arrays in 64 bits again."""
    wide = {"f": np.float64, "i": np.int64}
    return {name: array.astype(wide.get(array.dtype.kind, array.dtype), copy=False) for name, array in arrays.items()}


def _round(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x.astype(np.float32).astype(np.float64)


def _narrowed(array: NDArray) -> NDArray:
    if array.dtype.kind not in "fi" or array.dtype.itemsize != 8:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        short = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
    return short if np.array_equal(short, array) else array
