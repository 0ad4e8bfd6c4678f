"""Scores of candidates: the log of the mean squared leave-one-out residual of a region.

In closed form, from one factorisation per (kernel, degree, bandwidth) for all ridges, each point counted by the weight with which
its region speaks there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._parallel import Threads, slices
from .._types import Array, Index
from ..local.batch import Batch, batch_size, from_center, is_rough, make_batch
from ..local.curves import find_curves
from ..local.groups import Together, judge_groups, weigh_judged
from ..local.points import Points
from ..local.radial import Radial
from ..local.system import Spectrum, block_residuals, loo_residuals, spectrum
from .candidates import Candidates
from .cover import Cover
from .defaults import BETWEEN, CAP, HARDNESS, JITTER, LEAST_WEIGHT, NEGLIGIBLE, ON_CURVES, RIDGE_STEPS


class Scorer(NamedTuple):
    """Leave-one-out scores of regions: what they need to know besides the candidates; outputs of the points have unit deviation.

    ``reach`` is the share of its radius within which a region speaks; points count by the weight with which it does so at them, or
    ``alike`` where that means nothing: one region answers for everything. Where most points of a region lie on ``curves``, these
    are left out, too, and count more.
    """

    points: Points
    cover: Cover
    tolerance: float
    weight: Radial
    reach: float
    threads: Threads
    alike: bool = False
    curves: bool = False

    def score(self, regions: Index, candidates: Candidates, name: str = "select") -> Array:
        """Log mean squared leave-one-out residuals, (len(regions), shapes, ridges)."""
        return self.judge(regions, candidates, name)[0]

    def judge(self, regions: Index, candidates: Candidates, name: str = "select") -> tuple[Array, Array]:
        """What `score` says, and the share of their points' freedom that models use, on average, (shapes, ridges).

        That is tr H / h = 1 - η tr B / h.
        """
        kernels, ridges = candidates.kernels, candidates.ridges
        rough = is_rough([kernels[shape.kernel] for shape in candidates.shapes])

        def judge_stack(part: slice) -> Array:
            members, w = self.cover.members[regions[part]], self.point_weights(regions[part])
            w = w / np.einsum("bh,bh->b", w, self.points.v[members])[:, None]  # residuals are those of weighted points
            table = np.empty((2, len(w), len(candidates.shapes), len(ridges)))
            batches: dict[int, Batch] = {}
            curves: Curves | None = None
            for i, (kernel, degree, bandwidth, turn) in enumerate(candidates.shapes):
                if turn not in batches:
                    batches[turn] = make_batch(self.points, members, rough, candidates.turn(turn))
                    curves = judge_curves(batches[turn]) if self.curves else None
                K, R, _ = batches[turn].system(kernels[kernel], np.full(len(w), bandwidth), degree, self.tolerance)
                S = spectrum(K, R.U)
                table[0, :, i] = mean_errors(batches[turn], S, ridges, w, curves)
                table[1, :, i] = 1.0 - ridges * S.inverse(ridges).mean(axis=1)
            return table

        parts = slices(len(regions), batch_size(self.cover.members.shape[1]))
        errors, freedom = np.concatenate(self.threads.map(judge_stack, parts, name), axis=1)
        return np.log(errors + NEGLIGIBLE**2), freedom.mean(axis=0)

    def score_caps(self, regions: Index, candidates: Candidates, ridge: Index, name: str = "holes") -> Array:
        """Log mean squared errors beyond the points, (len(regions), shapes), of caps of the regions that are left out whole.

        ``ridge`` (shapes,) is the index of the ridge of each shape.
        """
        kernels = candidates.kernels
        rough = is_rough([kernels[shape.kernel] for shape in candidates.shapes])

        def score_stack(part: slice) -> Array:
            batch = make_batch(self.points, self.cover.members[regions[part]], rough)
            caps = find_caps(batch.Z)
            root_v = 1.0 if batch.root_v is None else batch.root_v[np.arange(len(caps))[:, None, None], caps][..., None, None]
            table = np.empty((len(caps), len(candidates.shapes)))
            for i, (kernel, degree, bandwidth, _) in enumerate(candidates.shapes):
                ridges = candidates.ridges[ridge[i] : ridge[i] + 1]
                K, R, _ = batch.system(kernels[kernel], np.full(len(caps), bandwidth), degree, self.tolerance)
                e = block_residuals(spectrum(K, R.U), batch.weighted_y, ridges, caps) / root_v
                table[:, i] = np.square(e).mean(axis=(1, 2, 3, 4))
            return np.log(table + NEGLIGIBLE**2)

        parts = slices(len(regions), max(batch_size(self.cover.members.shape[1]) // 4, 1))
        return np.concatenate(self.threads.map(score_stack, parts, name))

    def point_weights(self, regions: Index) -> Array:
        """How much each member counts in the score of its region, (B, h); they sum to one."""
        if self.alike or len(self.cover) == 1:
            w = np.ones((len(regions), self.cover.members.shape[1]))
        else:
            (w,) = self.weight(from_center(self.points.X, self.cover.members[regions], self.cover.radii[regions]) / self.reach**2)
        w = weigh_judged(self.points, self.cover.members[regions], w + LEAST_WEIGHT)
        return w / w.sum(axis=1, keepdims=True)

    def spread(self) -> Array:
        """Deviation of the responses in each region, (m,)."""
        members = self.cover.members
        parts = [self.points.y[members[part]].std(axis=1).mean(axis=1) for part in slices(len(members), 8192)]
        return np.concatenate(parts)


def mean_errors(batch: Batch, S: Spectrum, ridges: Array, w: Array, curves: Curves | None) -> Array:
    """Mean squared leave-one-out residuals (B, ridges) of a stack, whose points count by ``w`` (B, h); on ``curves``, the geometric
    mean with those of points without their curves. Coefficients that rounding spoils are penalised.
    """
    residuals, alpha = batch.leave_out(S, ridges)
    errors = np.einsum("bh,bhte->be", w, residuals * residuals)
    if curves is not None:
        found = curves.region
        between = score_between(curves, S.at(found), ridges, w[found], errors[found])
        errors[found] = errors[found] ** (1.0 - BETWEEN) * between**BETWEEN
    alpha = alpha if batch.root_v is None else alpha * batch.root_v[..., None, None]
    return np.asarray(errors * jitter_penalty(alpha, batch.y))


class Curves(NamedTuple):
    """Regions of a stack, by their index, whose points lie on curves, as a stack of their own, and what they leave out together."""

    region: Index
    batch: Batch
    together: Together


def judge_curves(batch: Batch) -> Curves | None:
    """The regions of a stack most of whose points lie on curves, some of them between others."""
    region, together = find_on_curves(batch)
    found = np.flatnonzero(together.judged.any(axis=1))
    return Curves(region[found], batch.at(region[found]), Together(*(field[found] for field in together))) if len(found) else None


def find_on_curves(batch: Batch) -> tuple[Index, Together]:
    """The regions of a stack most of whose points lie on curves, by their index, and these curves."""
    mask, on = find_curves(batch.Z, batch.distances2)
    region = np.flatnonzero(on.mean(axis=1) > ON_CURVES)
    return region, judge_groups(batch.Z[:, region], mask[region])


def score_between(curves: Curves, S: Spectrum, ridges: Array, w: Array, single: Array) -> Array:
    """Mean squared residuals (B, ridges) of the points that are judged, each without its curve, if they count by ``w`` (B, h).

    Every ridge needs a factorisation of its own, so that only those near the best for ``single`` points, by their errors
    (B, ridges), are asked; those beyond count as the last one asked, and are worse between single points.
    """
    best = single.argmin(axis=1)
    first, last = max(best.min() - RIDGE_STEPS, 0), min(best.max() + RIDGE_STEPS, len(ridges) - 1)
    asked = ridges[first : last + 1]
    _, alpha = loo_residuals(S, curves.batch.weighted_y, asked)
    residuals = curves.batch.leave_out_together(S, asked, alpha, curves.together)
    counted = w * curves.together.judged
    counted *= (w.sum(axis=1) / counted.sum(axis=1))[:, None]
    errors = np.einsum("bh,bhte->be", counted, residuals * residuals)
    return np.asarray(errors[:, np.clip(np.arange(len(ridges)), first, last) - first])


def find_caps(Z: Array) -> Index:
    """Members (B, 2d, g) of each region that lie farthest along every axis and against it, from members ``Z`` (d, B, h)."""
    g = max(int(CAP * Z.shape[2]), 1)
    order = np.argsort(Z, axis=2, kind="stable")
    return np.moveaxis(np.concatenate([order[:, :, :g], order[:, :, -g:]]), 0, 1)


def jitter_penalty(alpha: Array, y: Array) -> Array:
    """1 + (ε Σ|α| / jitter that may be)², (B, e): what rounding makes of coefficients that are huge and cancel.

    On noisy data a wide kernel with a tiny ridge is a polynomial in disguise. It may predict as well as others, but its
    coefficients are the noise divided by the ridge.
    """
    jitter = np.finfo(float).eps * np.abs(alpha).sum(axis=1).max(axis=1)
    allowed = JITTER * np.maximum(y.std(axis=1).max(axis=1), NEGLIGIBLE)
    return 1.0 + (jitter / allowed[:, None]) ** 2


def pool(scores: Array) -> Array:
    """One score for all regions from log squared errors (r, ...): between their mean, which the many easy regions decide, and the
    log of the mean squared error, which the few hard ones do.
    """
    return pool_sums([(sum_scores(scores), len(scores))])


def sum_scores(scores: Array) -> Array:
    """The log of the sum that `pool` takes the mean of, for a part of the regions."""
    return np.asarray(np.logaddexp.reduce(HARDNESS * scores, axis=0))


def pool_sums(sums: Sequence[tuple[Array, int]]) -> Array:
    """`pool` of all regions from `sum_scores` and the number of regions of each part."""
    total = np.logaddexp.reduce([part for part, _ in sums], axis=0)
    return np.asarray((total - np.log(sum(count for _, count in sums))) / HARDNESS)
