"""Robust fits: points far from the predictions of the others are left out, and then judged by the model without them.

The threshold depends on the data: on the standard deviation at that point, on errors around it, and on the tails of all errors.
Where slopes were measured, a model of all rows says whose response or slopes the others contradict: see `model.deletion`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import stdtrit

from .._parallel import Threads, slices
from .._types import Array, Index
from ..model.deletion import delete_equations
from ..model.deviation import leave_out_deviations
from ..model.stitched import StitchedModel

_GROSS = 6.0  # standard deviations, estimated by median absolute errors: points within so many are never gross errors
_LOST = 1e-3  # share of the good rows that may be taken for gross errors where errors have heavy tails
_INNER = (0.5, 0.8)  # shares of the good rows whose errors tell how heavy the tails are
_FREEDOM = np.array([2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 100.0])  # that are tried
_ROUNDS, _REFITS, _SLOPE_REFITS = 4, 2, 4
_NEIGHBOURS = 30  # points that determine the usual error around one; at least so many determine a plane
_STEPS = 8  # of the search of a plane with the least sum of absolute errors
_LEAST = 1e-3  # of the range of the responses around: without noise, smaller errors are those of the function
_NORMAL = 1.4826  # standard deviations in a median absolute error


def fit_robust(fit: Callable[[Index], StitchedModel], X: Array, y: Array, threads: Threads) -> tuple[StitchedModel, Index]:
    """The model of those of the rows ``X`` (n, d), ``y`` (n, t) that are no gross errors, and which; ``fit`` fits some of them.

    First each row is compared with a plane through its neighbours, then with the prediction of a model without it: leave-one-out
    for rows in the model, the plain prediction for others, in units of its standard deviation. So good rows that no plane fits come
    back, and gross errors that others masked are removed.
    """
    units = np.where((spread := X.std(axis=0)) > 0.0, spread, 1.0)
    good = judge_errors(np.abs(y - predict_by_planes(X / units, y, threads)), None, X / units, y, threads)
    if good.sum() < 2:
        good[:] = True
    for _ in range(_REFITS):
        model = fit(np.flatnonzero(good))
        error, deviation = predict_without(model, X, y, threads)
        found = judge_errors(error, deviation, model.space.coordinates(model.embed(X)), y, threads, ~good)
        if (found == good).all() or found.sum() < 2:
            return model, np.flatnonzero(good)
        good = found
    return fit(np.flatnonzero(good)), np.flatnonzero(good)


def fit_robust_slopes(fit: Callable[[Index], StitchedModel], X: Array, threads: Threads) -> tuple[StitchedModel, Index]:
    """The model of those of the rows ``X`` (n, d) whose responses and slopes the others do not contradict, and which rows.

    A row goes with its slopes, and with other rows at its place.
    """
    place = np.unique(X + 0.0, axis=0, return_inverse=True)[1].ravel()
    good = np.ones(len(X), dtype=bool)
    for _ in range(_SLOPE_REFITS):
        model = fit(np.flatnonzero(good))
        wrong = model.points.row[delete_equations(model, threads).contradicted().any(axis=1)]
        kept = good & ~np.isin(place, place[wrong])
        if not len(wrong) or kept.sum() < 2:
            return model, np.flatnonzero(good)
        good = kept
    return fit(np.flatnonzero(good)), np.flatnonzero(good)


def judge_errors(
    error: Array,
    deviation: Array | None,
    places: Array,
    y: Array,
    threads: Threads,
    suspected: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Whether the ``error`` (n, t) of each row, in units of its ``deviation``, is like those around it and everywhere: good rows.

    Errors of planes come without deviations. They are mostly the planes' own, so the threshold is fixed: good rows come back later.
    A row that was ``suspected`` (n,) comes back if its error is at most half of what other rows may have.
    """
    k = min(_NEIGHBOURS, len(places))
    near = cKDTree(places).query(places, k=np.arange(1, k + 1), workers=threads.count)[1]
    tiny = np.finfo(float).tiny
    z = error if deviation is None else error / np.maximum(deviation, tiny)
    usual = np.maximum(np.maximum(np.median(z[near], axis=1), np.median(z, axis=0)), tiny)
    around = np.subtract(*np.quantile(y[near], (0.75, 0.25), axis=1))
    ratio = z / usual
    most = np.array(_GROSS * _NORMAL) if deviation is None else most_usual(ratio)
    if suspected is not None:
        most = np.where(suspected[:, None], np.maximum(0.5 * most, _GROSS * _NORMAL), most)
    return np.asarray(((ratio <= most) | (error <= _GROSS * _LEAST * around)).all(axis=1))


def most_usual(ratio: Array) -> Array:
    """The greatest error (t,) that good rows have, in units of the median error around them, from all of these, ``ratio`` (n, t).

    Errors of rough data have heavy tails. Student's distribution describes them, with the degrees of freedom at which it has the
    ratio of two of their quantiles, both below any gross errors. Its tail tells how large errors of good rows may be.
    """
    most = np.full(ratio.shape[1], _GROSS * _NORMAL)
    inner = stdtrit(_FREEDOM[:, None], 0.5 + 0.5 * np.array(_INNER))
    tail = stdtrit(_FREEDOM, 1.0 - 0.5 * _LOST) / stdtrit(_FREEDOM, 0.75)
    for _ in range(_ROUNDS):
        for k, column in enumerate(ratio.T):
            low, high = np.quantile(column[column <= most[k]], _INNER)
            like = int(np.abs(inner[:, 1] / inner[:, 0] - high / max(low, np.finfo(float).tiny)).argmin())
            most[k] = max(_GROSS * _NORMAL, tail[like])
    return most


def predict_by_planes(X: Array, y: Array, threads: Threads) -> Array:
    """The prediction of each row from its neighbours, (n, t): the plane with the least sum of absolute errors.

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


def predict_without(model: StitchedModel, X: Array, y: Array, threads: Threads) -> tuple[Array, Array]:
    """The absolute errors (n, t) of the prediction at each of the rows (n, d) without that row, and their standard deviations."""
    found = leave_out_deviations(model.points, model.levels, model.weight, threads)
    row, known = model.points.row[found.seen], np.zeros(len(X), dtype=bool)
    error, deviation = np.zeros(y.shape), np.ones(y.shape)
    error[row], deviation[row], known[row] = np.abs(found.error), np.sqrt(found.variance), True
    others = np.flatnonzero(~known)
    if len(others):
        moments = model.moments(X[others], threads)
        error[others] = np.abs(y[others] - moments.value)
        deviation[others] = moments.deviation() / model.calibration(threads).factor
    return error, deviation
