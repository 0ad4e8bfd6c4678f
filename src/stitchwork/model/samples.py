"""Covariances and samples of the function, by conditioning whole paths on the data (Matheron's rule).

A region's function given its data is distributed as f_j + g − W_j (g(X_j) + ε): g a random path of the region's prior, ε noise of
its ridge, W_j the weights of the members, and of their slopes where these were measured: then g(X_j) has slopes, too. Here g is a
sum of plane waves that all regions have in common (see `local.waves`), with amplitudes of their own. So neighbours with
similar hyperparameters draw similar paths, and the stitched function

    f̂ + Σ share_j (g_j − W_j (g_j(X_j) + ε_j))

is a sample that is as smooth as the prediction and interpolates noise-free data. It is linear in the standard normal numbers
of waves and rows, so that its covariance is R Rᵀ with R the coefficients. What the standard deviations include besides
(disagreement of regions, bounds, noise that grows along a slope) enters as a factor at every query.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from .._parallel import ALONE, Threads
from .._types import Array, Index
from ..local.blocks import BlockModels
from ..local.own import OwnModels
from ..local.points import find_runs, gather
from ..local.radial import Radial, kernel_named
from ..local.waves import WAVES, Waves, find_band, make_waves
from .deviation import LevelScales, blocks_of
from .link import IDENTITY, link_values, unlink_values
from .operator import columns_of
from .query import in_chunks
from .stitch import Shares, distinct_levels, share_regions

_SMOOTHING = 0.01  # of the typical variance: below it samples keep the variance of their paths, to be smooth at data points
_REGIONS = 64  # whose waves are worked on at once
_ROWS, _KEPT_BYTES = 1 << 14, 1 << 28  # rows of the data whose noise is drawn at once, and how much of it is kept


class Root(NamedTuple):
    """R of the covariance R Rᵀ of the function at q points.

    Attributes
    ----------
    waves : (q, t, 2 F) coefficients of the waves
    noise : for each output (q, n) those of the rows of the data
    usual : (q, t) about what the variance is between points
    """

    waves: Array
    noise: tuple[csr_array, ...]
    typical_variance: Array

    def variance(self) -> Array:
        """The diagonal of R Rᵀ, (q, t)."""
        noise = np.stack([np.asarray(one.multiply(one).sum(axis=1)).ravel() for one in self.noise], axis=1)
        return np.asarray(np.square(self.waves).sum(axis=2) + noise)


def check_samples(model: Any) -> None:
    """Raise a `ValueError` unless the regions are block models."""
    if any(isinstance(level.models, OwnModels) for level in model.levels):
        raise ValueError(
            "Samples and covariances need the built-in local models. A `local_model` of your own tells its `deviation` alone: use"
            " `predict(X, return_std=True)`."
        )


def sample_paths(model: Any, X: Array, count: int, random: np.random.RandomState, threads: Threads = ALONE) -> Array:
    """Samples (q, t, count) of the function at ``X`` (q, d); the same ``random`` state gives the same functions."""
    check_samples(model)
    t, seed = model.n_outputs, random.randint(2**31 - 1)
    normal = np.random.default_rng(seed).standard_normal((t, 2 * WAVES, count))
    moments, rows = model.moments(X, threads), RowNoise(seed, count)
    mean, factor = unlink_values(model.origin.link, moments.value), model.calibration(threads).factor
    out = np.empty((len(X), t, count))

    def fill(query: Index) -> None:
        root = find_root(model, X[query], threads)
        floor = _SMOOTHING * root.typical_variance
        scale = np.sqrt((moments.variance[query] / factor**2 + floor) / np.maximum(root.variance() + floor, np.finfo(float).tiny))
        paths = np.stack([root.waves[:, o] @ normal[o] + rows.apply(one, o) for o, one in enumerate(root.noise)], 1)
        out[query] = mean[query][..., None] + (factor * scale)[..., None] * paths

    in_chunks(model.space.coordinates(model.embed(X)), _bytes_per_query(model), fill, threads)
    return link_values(model.origin.link, out)


def find_covariance(
    model: Any, X: Array, threads: Threads = ALONE, s2: Array | None = None, of_function: bool = False
) -> tuple[Array, Array]:
    """Values (q, t) at ``X`` (q, d), and the covariance (q, q, t) of new observations there, or of the function.

    The variances ``s2`` (q, t) of the observations' errors may be known.
    """
    check_samples(model)
    moments = model.moments(X, threads, s2)
    root, q = find_root(model, X, threads), len(X)
    raw = np.sqrt(root.variance())
    inverse = np.divide(1.0, raw, out=np.zeros_like(raw), where=raw > 0.0)
    scale, found = np.sqrt(moments.variance) * inverse, np.empty((q, q, model.n_outputs))
    for o, noise in enumerate(root.noise):
        waves = root.waves[:, o] * scale[:, o, None]
        rows = csr_array(noise.multiply(scale[:, o, None]))
        found[..., o] = waves @ waves.T + (rows @ rows.T).toarray()
        found[np.arange(q), np.arange(q), o] = moments.variance[:, o] + (0.0 if of_function else moments.noise[:, o])
    if model.origin.link == IDENTITY:
        return moments.value, found
    # Of log-normal variables: m_i m_j exp((C_ii + C_jj) / 2) (exp C_ij − 1), m the medians.
    mean = moments.value * np.exp(0.5 * np.einsum("qqt->qt", found))
    return moments.value, mean[:, None] * mean[None] * np.expm1(found)


def find_root(model: Any, X: Array, threads: Threads = ALONE) -> Root:
    """R at ``X`` (q, d), in units of the calibrated factor."""
    chain, _, spread = model.level_scales(threads)
    Q = model.space.coordinates(model.inside.saturate(model.embed(X))[0])
    (q, t), ids = (len(Q), model.n_outputs), find_ids(model)
    waves, typical_variance = np.zeros((q, t, 2 * WAVES)), np.zeros((q, t))
    noise: list[list[Any]] = [[] for _ in range(t)]
    by_level = {id(level): scales for level, scales in zip(model.levels[:-1], chain, strict=True)}
    for shares in share_regions(model.levels, Q, 0, model.weight, model.w0):
        if id(shares.level) not in by_level:
            waves[shares.query] += shares.jet.value[..., None] * np.sqrt(spread)[:, None] * _waves_behind(Q[shares.query])[:, None]
            typical_variance[shares.query] += shares.jet.value * spread
            continue
        _add_level(model, shares, by_level[id(shares.level)], Q, waves, typical_variance, noise)
    return Root(waves, tuple(_add_rows(found, q, ids) for found in noise), typical_variance)


def find_ids(model: Any) -> Index:
    """The rows of the data, in order: mostly 0, 1, …, but models that come from a cluster have others; with slopes all columns."""
    if model.points.slopes is not None:
        return np.arange(model.growth.seen * model.points.equations)
    rows = [blocks_of(level.regions).points.row for level in distinct_levels(model.levels)]
    return np.arange(model.growth.seen) if max(row.max() for row in rows) < model.growth.seen else np.unique(np.concatenate(rows))


def _add_level(
    model: Any, shares: Shares, scales: LevelScales, Q: Array, waves: Array, typical_variance: Array, noise: list[list[Any]]
) -> None:
    """Add the waves and the noise of the regions of one level, each with its share."""
    models, regions, (region, query) = blocks_of(shares.level.regions), shares.level.regions, shares[1:3]
    w = shares.jet.value * (1.0 if regions.output_factor is None else regions.output_factor[region])  # (p, t) or (p, 1)
    c = np.sqrt(scales.scale[region])
    found = condition_waves(models, region, gather(Q, query).T)
    rows = columns_of(model, models.points.row[models.members[region]])
    spread = found.noise * np.sqrt(models.settings.ridge[region])[:, None]
    for o, pieces in enumerate(noise):
        amount = w[:, min(o, w.shape[1] - 1)] * c[:, o]
        by_query = csr_array((amount, (query, np.arange(len(query)))), shape=(len(Q), len(query)))
        waves[:, o] += by_query @ found.waves
        typical_variance[:, o] += by_query @ (c[:, o] * found.typical_variance)
        pieces.append((np.repeat(query, rows.shape[1]), rows.ravel(), (amount[:, None] * spread).ravel()))


def _add_rows(pieces: list[Any], q: int, ids: Index) -> csr_array:
    """The coefficients (q, n) of the rows with these ``ids`` (n,)."""
    if not pieces:
        return csr_array((q, len(ids)))
    query, row, value = (np.concatenate(column) for column in zip(*pieces, strict=True))
    column = row if ids[-1] == len(ids) - 1 else np.searchsorted(ids, row)
    return csr_array(coo_array((value, (query, column)), shape=(q, len(ids))))


class Conditioned(NamedTuple):
    """Of p pairs of a region and a query: A (Φ(q) − W Φ(X)) (p, 2 F), the weights of noise (p, H), and the usual variance (p,)."""

    waves: Array
    noise: Array
    typical_variance: Array


def condition_waves(models: BlockModels, region: Index, at: Array) -> Conditioned:
    """The waves of each of ``region`` (p,), sorted, given its data, at its row ``at`` (p, d)."""
    (p, d), h = at.shape, models.members.shape[1] * models.points.equations
    found, metrics = Conditioned(np.empty((p, 2 * WAVES)), np.empty((p, h)), np.empty(p)), models.settings.local_metrics
    nth = np.repeat(np.arange(len(start := find_runs(region)[0])), np.diff(start, append=p))
    order = np.argsort(np.argsort(models.members[region[start], 0], kind="stable"))[nth]  # points, so centres, are sorted in space
    for first in range(0, len(start), _REGIONS):  # neighbours, which share their members
        block = np.flatnonzero((order >= first) & (order < first + _REGIONS))
        for metric, waves in enumerate(models.waves):
            T = np.eye(d) if metrics is None else metrics[metric]
            pairs = block if metrics is None else block[models.settings.local_metric[region[block]] == metric]
            if len(pairs):
                _condition_block(models, waves, T, region, at, pairs, found)
    return found


def _condition_block(
    models: BlockModels, waves: Waves, T: Array, region: Index, at: Array, pairs: Index, found: Conditioned
) -> None:
    """Fill in some ``pairs`` of regions with the same local metric T."""
    used, place = np.unique(models.members[region[pairs]], return_inverse=True)
    asked, own_row = np.unique(at[pairs], axis=0, return_inverse=True)
    place, own_row = place.reshape(len(pairs), -1), own_row.ravel()
    known, there, slopes = waves.values(models.X[used] @ T), waves.values(asked @ T), models.points.slopes
    along = None if slopes is None else waves.slopes(models.X[used] @ T, slopes.direction[used] @ T)
    for rows, post, kernel in models.posteriors(region[pairs], np.asfortranarray(at[pairs])):
        A = waves.amplitudes(kernel, post.length) * np.sqrt(post.scale)[:, None]
        for one, own, w, e, typical_variance in zip(rows, A, post.weights, post.noise, post.typical_variance, strict=True):
            to, here = pairs[one], place[one[0]]
            data = known[here] if along is None else np.concatenate([known[here], along[here].reshape(-1, known.shape[1])])
            found.waves[to] = own * (there[own_row[one]] - w @ data)
            found.noise[to], found.typical_variance[to] = e, typical_variance


def _waves_behind(Q: Array) -> Array:
    """Of the prior behind all levels, whose length scale is that of the data: (q, 2 F)."""
    kernel: Radial = kernel_named("gaussian", Q.shape[1])
    one = np.ones(1)
    waves = make_waves(Q.shape[1], find_band(kernel, Q.shape[1], 1, one, one))
    A = waves.amplitudes(kernel, one)
    return np.asarray(waves.values(Q) * A * np.sqrt(2.0 / np.square(A).sum()))


class RowNoise:
    """Standard normal numbers of the rows of the data, for each output and ``count`` samples: they depend on seed and row alone."""

    def __init__(self, seed: int, count: int):
        self.seed, self.count = seed, count
        self._known: dict[tuple[int, int], Array] = {}

    def draw(self, output: int, block: int) -> Array:
        """Those of a block of rows, (_ROWS, count); they are kept as long as they are few."""
        if (output, block) in self._known:
            return self._known[output, block]
        drawn = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(output, block))).standard_normal(
            (_ROWS, self.count)
        )
        if (len(self._known) + 1) * drawn.nbytes <= _KEPT_BYTES:
            self._known[output, block] = drawn
        return drawn

    def apply(self, noise: csr_array, output: int) -> Array:
        """Sums (q, count) with these coefficients (q, n)."""
        total, columns = np.zeros((noise.shape[0], self.count)), noise.tocsc()
        for block, start in enumerate(range(0, noise.shape[1], _ROWS)):
            part = columns[:, start : start + _ROWS]
            if part.nnz:
                total += part @ self.draw(output, block)[: part.shape[1]]
        return total


def _bytes_per_query(model: Any) -> int:
    return 8 * 2 * WAVES * (model.n_outputs + 12) + 8 * 2 * WAVES * 16
