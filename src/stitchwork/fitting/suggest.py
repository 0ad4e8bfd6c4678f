"""Where a measurement would help most.

The error at a location x is predicted from its surroundings: from E, the leave-one-out error of the nearest points, and from the
change of the function between the nearest point and x, of which a share κ may be wrong. It grows with the distance δ from all
points that are measured, pending or already picked:

    score(x) = δ(x) √(E² + κ² |f(x) - y_nearest|²)

So rough areas get more points than smooth ones, steps get points before errors are seen beside them, and a batch spreads
out. Errors and responses are in units of the deviation of each output. Where slopes were measured, less of a change may be wrong:
there κ is multiplied by the ratio of what leave-one-out says of locations with slopes and without.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.stats import qmc

from .._parallel import Threads
from .._types import Array, Index
from ..model.link import IDENTITY
from ..model.loo import sampled_residuals
from ..model.stitched import StitchedModel
from .defaults import CHANGE_WEIGHT, LEAST_CANDIDATES, LOCAL_STEP, NEGLIGIBLE, SUGGEST_NEIGHBOURS, SUGGEST_REGIONS
from .points import deviation_of

_LEAST_COMPARED = 10  # locations with slopes, and without, whose errors are compared


class Known(NamedTuple):
    """Points (n, d) with responses y (n, t) and leave-one-out errors (n,) in units of the responses' deviations, ``scale`` (t,).

    And whether slopes were measured at each, (n,).
    """

    X: Array
    y: Array
    error: Array
    scale: Array
    sloped: NDArray[np.bool_]


def suggest_points(model: Any, n: int, bounds: Array, pending: Array, random: np.random.RandomState, threads: Threads) -> Array:
    """The best n points (n, d) within ``bounds`` (d, 2), for a `StitchedModel` or one in parts."""
    known = know_errors(model, threads)
    count = 1 << int(np.ceil(np.log2(max(LEAST_CANDIDATES, 8 * n))))
    spread = bounds[:, 0] + qmc.Sobol(len(bounds), rng=random.randint(2**31 - 1)).random(count) * np.ptp(bounds, axis=1)
    beside = draw_beside(known, coordinates(model, known.X), count, random)
    candidates = np.concatenate([spread, beside[((beside >= bounds[:, 0]) & (beside <= bounds[:, 1])).all(axis=1)]])
    return candidates[pick(model, n, candidates, known, pending, threads)]


def choose_candidates(model: Any, n: int, candidates: Array, pending: Array, threads: Threads) -> Array:
    """The best n of given ``candidates`` (c, d)."""
    return candidates[pick(model, n, candidates, know_errors(model, threads), pending, threads)]


def know_errors(model: Any, threads: Threads) -> Known:
    """Leave-one-out errors of all points. A custom local model has none, and all points count alike."""
    if model.settings is None:
        X, y, residuals, rows = model.X, model.points.y, np.zeros(model.points.y.shape), model.points.row
    elif isinstance(model, StitchedModel) and is_sampled(model):
        X, y, residuals, rows = model.X, model.responses, sample_errors(model, threads), model.points.row
    else:
        X, y, residuals, _, rows, _ = model.left_out(threads)
    scale = deviation_of(y)
    return Known(X, y / scale, np.sqrt(np.square(residuals / scale).mean(axis=1)) + NEGLIGIBLE, scale, find_sloped(model, rows))


def find_sloped(model: Any, rows: Index) -> NDArray[np.bool_]:
    """Whether slopes were measured at the locations from these ``rows`` (n,) of the data; none are known of a model in parts."""
    if not isinstance(model, StitchedModel) or model.points.slopes is None:
        return np.zeros(len(rows), dtype=bool)
    return np.isin(rows, model.points.row[(model.points.slopes.weight[:, 1:] > 0.0).any(axis=1)])


def share_wrong(known: Known, places: Array) -> Array:
    """The share (n,) of a change that may be wrong near each location, relative to where responses alone were measured.

    Where slopes were measured it is smaller: by the ratio of the medians of leave-one-out errors over the change to the nearest
    point. One where all locations are alike.
    """
    if min(known.sloped.sum(), (~known.sloped).sum()) < _LEAST_COMPARED:
        return np.ones(len(places))
    nearest = cKDTree(places).query(places, k=[2])[1][:, 0]
    change = np.sqrt(np.square(known.y - known.y[nearest]).mean(axis=1))
    ratio = known.error / (change + NEGLIGIBLE)
    return np.where(known.sloped, min(1.0, np.median(ratio[known.sloped]) / np.median(ratio[~known.sloped])), 1.0)


def is_sampled(model: StitchedModel) -> bool:
    """Whether a sample of the regions tells errors: where there are many, and nobody has asked for the errors of all points."""
    return len(model.levels[0].regions.radii) > SUGGEST_REGIONS and not model.grouped and "_left_out" not in vars(model)


def sample_errors(model: StitchedModel, threads: Threads) -> Array:
    """Residuals (n, t) of all points, from a sample of the regions; points outside of all of these have that of the nearest."""
    if "_sampled_errors" in vars(model):
        return np.asarray(vars(model)["_sampled_errors"])
    level = model.levels[0]
    balls = np.random.default_rng(0).choice(model.n_regions, SUGGEST_REGIONS // model.models_per_ball, replace=False)
    regions = (np.sort(balls)[:, None] * model.models_per_ball + np.arange(model.models_per_ball)).ravel()
    residuals, seen = sampled_residuals(model.points, level, model.weight, threads, regions)
    nearest = cKDTree(model.points.X[seen]).query(model.points.X)[1]
    found = residuals[nearest]
    found = found if model.origin.link == IDENTITY else model.responses - np.exp(model.points.y - found)
    vars(model)["_sampled_errors"] = found
    return found


def coordinates(model: Any, X: Array) -> Array:
    """Points ``X`` (n, d) where distance is Euclidean."""
    return np.asarray(model.space.coordinates(model.embed(X)))


def draw_beside(known: Known, places: Array, count: int, random: np.random.RandomState) -> Array:
    """Candidates around points, more where errors and gaps are large: x_i + s (x_a - x_i) + u (x_b - x_i), a and b near i."""
    X, near = known.X, min(SUGGEST_NEIGHBOURS + 1, len(known.X))
    distance, neighbour = cKDTree(places).query(places, k=np.arange(1, near + 1))
    w = np.sqrt(np.square(known.error[neighbour]).mean(axis=1)) * (distance[:, min(1, near - 1)] + np.finfo(float).tiny)
    i = random.choice(len(X), count, p=w / w.sum())
    s, u = random.uniform(-LOCAL_STEP, LOCAL_STEP, (2, count, 1))
    a, b = neighbour[i[:, None], random.randint(near, size=(count, 2))].T
    return np.asarray(X[i] + s * (X[a] - X[i]) + u * (X[b] - X[i]))


def pick(model: Any, n: int, candidates: Array, known: Known, pending: Array, threads: Threads) -> list[int]:
    """Indices of n candidates, one after the other, each counting as measured for the next."""
    at, near = coordinates(model, candidates), min(SUGGEST_NEIGHBOURS, len(known.X))
    places = coordinates(model, known.X)
    neighbour = cKDTree(places).query(at, k=np.arange(1, near + 1))[1]
    share = CHANGE_WEIGHT * share_wrong(known, places)[neighbour].mean(axis=1)
    change = model.jet(candidates, 0, threads).value / known.scale - known.y[neighbour[:, 0]]
    error = np.sqrt(np.square(known.error[neighbour]).mean(axis=1) + share**2 * np.square(change).mean(axis=1))
    free = cKDTree(coordinates(model, np.concatenate([model.X, pending]))).query(at)[0]
    picked: list[int] = []
    for _ in range(n):
        best = int((error * free).argmax())
        if not free[best] > 0.0:
            raise ValueError(f"No candidates are left after {len(picked)} of {n}: all others are measured, pending or picked.")
        picked.append(best)
        free = np.minimum(free, np.linalg.norm(at - at[best], axis=1))
    return picked
