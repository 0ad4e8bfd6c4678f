"""The prediction as a linear map of the responses: f̂(q) = Σ_i W(q, x_i) y_i, at fixed hyperparameters.

A region's prediction is linear in the responses of its members, and in their slopes where these were measured. The stitched
weights are those of the regions, times their shares, summed over regions and levels. Bounds are not linear: where one of them
applies, W y is the prediction without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack
from scipy.spatial import cKDTree

from .._types import Array, Index
from ..local.blocks import BlockModels
from ..local.hermite import hermite_monomials, place_slopes
from ..local.points import Jet, Points, equations_of, gather
from ..local.polynomial import monomials
from ..local.system import span_range
from .bounds import chain_inner
from .deviation import blocks_of
from .link import IDENTITY
from .stitch import Level, Shares, check_smoothness, multiply, share_regions

_BYTES = 1 << 28  # weights that are worked on at once


def weigh_rows(model: Any, X: Array, order: int, output: int | None) -> csr_array:
    """W (q dᵏ, n) of a model at ``X`` (q, d), derivatives of ``order`` k, in the order of the queries and then of the features.

    Its columns are the n rows of the data that the model was fitted to; with slopes n (1 + d), those of responses, then those of
    slopes row by row.
    """
    check_linear(model, order, output)
    n = model.growth.seen * model.points.equations
    chunks = list(_chunks(model, X, order))
    W = csr_array(vstack([_weigh_chunk(model, X[part], n, order, output or 0) for part in chunks], format="csr"))
    at = np.empty(len(X), dtype=np.intp)
    at[np.concatenate(chunks)] = np.arange(len(X))
    each = model.n_features**order
    W = W[(at[:, None] * each + np.arange(each)).ravel()]
    check_filled(model, W)
    W = W if model.merged is None else csr_array(W @ model.merged.matrix())
    return W if model.points.slopes is None else _spread_features(model, W)


def check_filled(model: Any, W: csr_array) -> None:
    """Raise a `ValueError` where a response that was not measured, but filled in from others, has a weight."""
    if model.points.slopes is not None and np.isin(W.indices, model.points.row[~model.points.measured]).any():
        raise ValueError(
            "Some regions hold slopes alone, and their level comes from the responses of others. Measure a response in each, or"
            " raise `region_size`."
        )


def _spread_features(model: Any, W: csr_array) -> csr_array:
    """W (q, n (1 + d)) with columns for slopes by all features, from those by k features: others weigh nothing."""
    n, d, k = model.growth.seen, model.n_features, model.points.equations - 1
    used, entries = model.points.slopes.feature, W.tocoo()
    column = entries.coords[1]
    if used is not None:
        row, nth = np.divmod(column - n, k)
        column = np.where(column < n, column, n + row * d + used[nth])
    return csr_array(coo_array((entries.data, (entries.coords[0], column)), shape=(W.shape[0], n * (1 + d))))


def check_linear(model: Any, order: int, output: int | None) -> None:
    """Raise a `ValueError` unless predictions have derivatives of the ``order`` that are linear in the rows of the data."""
    if order not in (0, 1, 2):
        raise ValueError(f"`derivative` must be 0, 1 or 2, got {order!r}.")
    if model.origin.link != IDENTITY:
        raise ValueError("This model is of the logarithm of the responses, and its predictions are not linear in the responses.")
    check_smoothness(order, model.smoothness, model.weight.name)
    if output is None and any(level.regions.output_factor is not None for level in model.levels):
        raise ValueError("The outputs of this model have operators of their own. Name one with `output`.")
    if output is not None and not 0 <= output < model.n_outputs:
        raise ValueError(f"`output` must be between 0 and {model.n_outputs - 1}, got {output!r}.")
    check_rows(model)


def check_rows(model: Any) -> None:
    """Raise a `ValueError` unless it is known which rows of the data make up each point."""
    merged = 0 if model.merged is None else len(model.merged.first)
    if model.points.repeats is not None and merged != model.growth.seen:
        raise ValueError(
            "Rows at one location were averaged while the model grew, or on a cluster. Call `StitchedRegressor.fit` with all rows"
            " to have an operator."
        )
    samples = {id(level.models.points): level.models.points for level in model.levels if isinstance(level.models, BlockModels)}
    if not all(_knows_rows(model, points) for points in (model.points, *samples.values())):
        raise ValueError(
            "Which rows of the data make up this model's points is not known: it was put together from parts that grew, that left"
            " out rows without weight, or that an older version saved. Call `StitchedRegressor.fit` with all rows to have an"
            " operator."
        )


def _knows_rows(model: Any, points: Points) -> bool:
    """Whether the rows of ``points``, those of a model or a sample of them, are rows of the data that it has seen."""
    row, own = points.row, model.points
    if points is own:
        return bool(row.max() < model.growth.seen and np.bincount(row).max() == 1)
    y = np.full((model.growth.seen, own.y.shape[1]), np.nan)
    y[own.row] = own.y
    return bool(row.max() < len(y) and (y[row] == points.y).all())


def find_bound(model: Any, X: Array) -> NDArray[np.bool_]:
    """Whether a bound may apply at each of ``X`` (q, d): that of a region does, or W y leaves the range of the responses."""
    E = model.embed(X)
    inside = model.inside.saturate(E)[0]
    Q = model.space.coordinates(inside)
    held, total = np.zeros(len(X), dtype=bool), np.zeros((len(X), model.n_outputs))
    for level, region, query, share in share_regions(model.levels, Q, 0, model.weight, model.w0):
        said = level.models.evaluate(region, gather(Q, query).T, 0).value
        np.add.at(total, query, share.value * said)
        if level.regions.bounds is not None:
            held[query[level.regions.bounds.at(region).beyond(said).any(axis=1)]] = True
    return np.asarray(held | (total < model.extremes[0]).any(axis=1) | (total > model.extremes[1]).any(axis=1))


def _chunks(model: Any, X: Array, order: int) -> Iterator[Index]:
    """Chunks of neighbouring queries whose weights fit into memory."""
    Q = model.space.coordinates(model.embed(X))
    near = np.arange(len(Q)) if len(Q) < 2 else cKDTree(Q, leafsize=64, balanced_tree=False, compact_nodes=False).indices
    equations = model.region_size * model.points.equations
    size = max(_BYTES // (8 * 16 * equations * sum(model.dimension**k for k in range(order + 1))), 1)
    for start in range(0, len(X), size):
        yield near[start : start + size]


def _weigh_chunk(model: Any, x: Array, n: int, order: int, output: int) -> csr_array:
    """The rows of W for queries ``x`` (q, d)."""
    inner, first, second = model.inside.saturate(model.embed(x))
    Q = model.space.coordinates(inner)
    found: tuple[list[Any], ...] = [], [], []
    for shares in share_regions(model.levels, Q, order, model.weight, model.w0):
        if not len(shares.query):  # no region of this level is near
            continue
        weights, row = _weigh_members(model, shares, Q, order)
        jet = multiply(_scale_by_output(shares, output), weights)
        jet = chain_inner(model.space.pull_back(jet), first[shares.query], second[shares.query])
        jet = jet if model.chart is None else model.chart.pull_back(jet, x[shares.query])
        value = jet[order].reshape(*jet.value.shape, -1)  # (p, h, dᵏ)
        rows = shares.query[:, None, None] * value.shape[2] + np.arange(value.shape[2])
        for column, more in zip(found, (rows, row[..., None], value), strict=True):
            column.append(np.broadcast_to(more, value.shape).ravel())
    rows, columns, values = (np.concatenate(column) for column in found)
    some = values != 0.0
    shape = (len(x) * model.n_features**order, n)
    return csr_array(coo_array((values[some], (rows[some], columns[some])), shape=shape))  # sums duplicate entries


def _scale_by_output(shares: Shares, output: int) -> Jet:
    """The shares for one output."""
    output_factor = shares.level.regions.output_factor
    if output_factor is None:
        return shares.jet
    own = output_factor[shares.region, output]
    value, *derivatives = (None if a is None else a * own.reshape(-1, *(1,) * (a.ndim - 1)) for a in shares.jet)
    return Jet(np.asarray(value), *derivatives)


def _weigh_members(model: Any, shares: Shares, Q: Array, order: int) -> tuple[Jet, Index]:
    """Weights of the members in the prediction of each pair's region, (p, h) with derivatives, and their columns in W.

    Columns are the rows in the data, or with slopes (p, H) the numbers of their equations.
    """
    at = gather(Q, shares.query).T
    models = blocks_of(shares.level.regions)
    if np.isinf(shares.level.regions.radii).all():
        row = columns_of(model, models.points.row[None])
        return unit_polynomial(shares.level).evaluate(shares.region, at, order), np.broadcast_to(row, (len(at), row.shape[1]))
    return models.weights(shares.region, at, order), columns_of(model, models.points.row[models.members[shares.region]])


def columns_of(model: Any, row: Index) -> Index:
    """The columns (p, H) of all equations at rows (p, h): responses, then slopes row by row."""
    if model.points.slopes is None:
        return row
    (p, h), k = row.shape, model.points.equations - 1
    every = equations_of(row, model.growth.seen, k)
    return np.concatenate([row, every[..., 1:].reshape(p, h * k)], axis=1)


def unit_polynomial(level: Level) -> BlockModels:
    """The polynomial behind all levels fitted to unit responses: an output for each point, or with slopes for each equation."""
    models = blocks_of(level.regions)
    points, origin, scale, settings = models.points, models.origin[0], models.scale[0], models.settings
    basis, Z, weights, units = monomials(len(origin), int(settings.degree[0])), ((points.X - origin) / scale).T, points.v, None
    P = basis.values(Z)
    if points.slopes is not None:
        every, size = np.arange(len(points.X))[None], np.array([scale])
        placed = place_slopes(points.slopes, every, points.v[None], None, size, size, 1.0)
        P, weights, units = hermite_monomials(basis, Z[:, None], placed.direction)[0], placed.weight[0], placed.unit[0]
    R = span_range((P * np.sqrt(weights)[:, None])[None], float(settings.tolerance[0]))
    lam = R.back @ (R.U.swapaxes(1, 2) * np.sqrt(weights))
    if units is not None:
        lam[..., len(points.X) :] *= units
    return replace(models, alpha=np.zeros((1, 1, len(weights))), lam=lam)
