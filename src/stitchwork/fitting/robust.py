"""Fits without gross errors: points far from what the others say of them are left out, then judged by the model without them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .._parallel import Threads, slices
from .._types import Array, Index
from ..model.stitched import StitchedModel

_GROSS = 6.0  # standard deviations, from the median of the absolute errors around: beyond it a point is a gross error
_NEIGHBOURS = 30  # points whose errors tell what is usual around one, and at least that tell a plane
_STEPS = 8  # of the search of a plane with the least sum of absolute errors
_LEAST = 1e-3  # of the range of the responses around: without noise, smaller errors are those of the function
_NORMAL = 1.4826  # standard deviations in a median absolute error


def fit_robust(fit: Callable[[Index], StitchedModel], X: Array, y: Array, threads: Threads) -> tuple[StitchedModel, Index]:
    """The model of those of the rows ``X`` (n, d), ``y`` (n, t) that are no gross errors, and which; ``fit`` fits some of them.

    First each row is compared with a plane through its neighbours, then with what a model says of it without it: rows of the model
    by leave-one-out, others by the prediction. So good rows that no plane fits come back.
    """
    units = np.where((spread := X.std(axis=0)) > 0.0, spread, 1.0)
    good = judge_errors(np.abs(y - predict_by_planes(X / units, y, threads)), X / units, y, threads)
    if good.sum() < 2:
        good[:] = True
    model = fit(np.flatnonzero(good))
    error = np.abs(y - predict_without(model, X, threads))
    found = judge_errors(error, model.space.coordinates(model.places(X)), y, threads)
    if (found == good).all() or found.sum() < 2:
        return model, np.flatnonzero(good)
    return fit(np.flatnonzero(found)), np.flatnonzero(found)


def judge_errors(error: Array, places: Array, y: Array, threads: Threads) -> NDArray[np.bool_]:
    """Whether each of the rows has an ``error`` (n, t) as errors are around it."""
    k = min(_NEIGHBOURS, len(places))
    near = cKDTree(places).query(places, k=np.arange(1, k + 1), workers=threads.count)[1]
    usual = np.maximum(np.median(error[near], axis=1), np.median(error, axis=0))
    around = np.subtract(*np.quantile(y[near], (0.75, 0.25), axis=1))
    usual = np.maximum(_NORMAL * usual, np.maximum(_LEAST * around, np.finfo(float).tiny))
    return np.asarray((error <= _GROSS * usual).all(axis=1))


def predict_by_planes(X: Array, y: Array, threads: Threads) -> Array:
    """What the neighbours of each row say of it, (n, t): the plane through them with the least sum of absolute errors.

    By least squares with weights 1 / |error|, again and again.
    """
    n, d = X.shape
    k = min(max(_NEIGHBOURS, 3 * (d + 1)), n - 1)
    found = np.tile(np.median(y, axis=0), (n, 1))
    if k < d + 2:
        return found
    near = cKDTree(X).query(X, k=np.arange(2, k + 2), workers=threads.count)[1]
    for part in slices(n, 4096):
        Z = X[near[part]] - X[part, None]
        P = np.concatenate([np.ones((*Z.shape[:2], 1)), Z], axis=2)
        ridge = 1e-6 * np.eye(d + 1) * np.einsum("bki,bki->b", P, P)[:, None, None] / k
        for output in range(y.shape[1]):
            Y = y[near[part], output]
            w = np.ones_like(Y)
            for _ in range(_STEPS):
                A = np.einsum("bki,bk,bkj->bij", P, w, P) + ridge * w.mean(axis=1)[:, None, None]
                plane = np.linalg.solve(A, np.einsum("bki,bk,bk->bi", P, w, Y)[..., None])[..., 0]
                error = np.abs(Y - np.einsum("bki,bi->bk", P, plane))
                w = 1.0 / np.maximum(error, 1e-3 * np.median(error, axis=1, keepdims=True) + np.finfo(float).tiny)
            found[part, output] = plane[:, 0]
    return found


def predict_without(model: StitchedModel, X: Array, threads: Threads) -> Array:
    """The prediction at each of the rows (n, d) of the data without that row, (n, t)."""
    value = np.array(model.jet(X, 0, threads).value)
    left_out = model.left_out(threads)
    value[left_out.row] = left_out.y - left_out.residual
    return value
