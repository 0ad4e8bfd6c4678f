"""Scores of candidates: the log of the mean squared error of a region at its own points when they are left out.

In closed form, from one factorisation per (kernel, degree, bandwidth) for all ridges. In tables every point is left out by itself,
or with its group; in fields also together with its neighbours, as far as the region's `questions` reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._parallel import Threads, slices
from .._types import Array, Index
from ..local.batch import Batch, batch_size, is_rough, make_batch
from ..local.groups import targets_left_out, weigh_judged
from ..local.hermite import equations_of
from ..local.points import Points
from ..local.radial import Radial
from ..local.system import Spectrum, spectrum
from .candidates import Candidates
from .cover import Cover
from .defaults import ASKED_STEPS, JITTER, LEAST_WEIGHT, MATCH_TOLERANCE, MATCHED_WITHIN, MOST_ERROR, NEGLIGIBLE
from .expected import Asked, ask, expect_errors
from .questions import Questions


class Scorer(NamedTuple):
    """Scores the regions of a cover: all that is needed besides candidates. Outputs of the points have unit standard deviation.

    ``reach`` is the radius of the support, relative to that of the region. Points count by the region's weight at them, or
    ``alike`` if one region holds everything. ``questions`` are those of the regions of a field.
    """

    points: Points
    cover: Cover
    tolerance: float
    weight: Radial
    reach: float
    threads: Threads
    alike: bool = False
    questions: Questions | None = None

    def score(self, regions: Index, candidates: Candidates, name: str = "select") -> Array:
        """Log mean squared errors (k, len(regions), shapes, ridges): of rows like those known, and, in a field, anywhere."""
        return self.judge(regions, candidates, name)[0]

    def judge(self, regions: Index, candidates: Candidates, name: str = "select") -> tuple[Array, Array]:
        """The scores, and the mean effective degrees of freedom as a share of the points, (shapes, ridges).

        That is tr H / h = 1 - η tr B / h.
        """
        kernels, ridges = candidates.kernels, candidates.ridges
        rough = is_rough([kernels[shape.kernel] for shape in candidates.shapes])

        def judge_stack(part: slice) -> Array:
            members, w = self.cover.members[regions[part]], self.point_weights(regions[part])
            w = w * self.points.v[members]
            w /= w.sum(axis=1, keepdims=True)
            table = np.empty((2 + (self.questions is not None), len(w), len(candidates.shapes), len(ridges)))
            batches: dict[tuple[int, float], Batch] = {}
            left: LeftOut | None = None
            for i, (kernel, degree, bandwidth, metric, slopes) in enumerate(candidates.shapes):
                key = metric, slopes
                if key not in batches:
                    batches[key] = make_batch(self.points, members, rough, candidates.local_metric(metric), slopes)
                    left = None if self.questions is None else choose_left_out(batches[key], self.questions.at(regions[part]))
                batch, wide = batches[key], np.full(len(w), bandwidth)
                system = batch.system(kernels[kernel], wide, degree, self.tolerance)
                asked = left and ask(batch, kernels[kernel], wide, degree, system, left.questions, candidates.local_metric(metric))
                S = spectrum(system[0], system[1].U)
                table[1:, :, i] = mean_errors(batch, S, ridges, w, left, asked)
                table[0, :, i] = 1.0 - ridges * S.inverse(ridges).mean(axis=1)
            return table

        parts = slices(len(regions), batch_size(self.cover.members.shape[1] * self.points.equations))
        dof, *errors = np.concatenate(self.threads.map(judge_stack, parts, name), axis=1)
        return np.log(np.stack(errors) + NEGLIGIBLE**2), dof.mean(axis=0)

    def point_weights(self, regions: Index) -> Array:
        """How much each member counts in the score of its region, (B, h); they sum to one."""
        if self.alike or len(self.cover) == 1:
            w = np.ones((len(regions), self.cover.members.shape[1]))
        else:
            (w,) = self.weight(self.cover.at(regions).distances2(self.points.X) / self.reach**2)
        w = weigh_judged(self.points, self.cover.members[regions], w + LEAST_WEIGHT)
        return w / w.sum(axis=1, keepdims=True)

    def volume(self, regions: Index) -> Array:
        """What each region counts for in the pooled scores, (k, r): alike for rows like those known, elsewhere by its volume."""
        alike = np.ones((1, len(regions)))
        if self.questions is None:
            return alike
        volume = self.questions.volume[None, regions]
        return np.concatenate([alike, volume if volume.any() else alike])


class LeftOut(NamedTuple):
    """The points of a stack that are left out to imitate its questions, each with others.

    Attributes
    ----------
    questions : of the stack
    order : (B, J, g) members by their distance from the target, which is the first
    size : (B, J) how many of them are left out
    """

    questions: Questions
    order: Index
    size: Index


def choose_left_out(batch: Batch, questions: Questions) -> LeftOut:
    """The members that are left out to imitate the questions: neighbours that the target has and the query has not, and its group.

    At most half of the region's points are left out, so that enough are left for a prediction.
    """
    B, h = batch.distances2.shape[:2]
    rows, most = np.arange(B)[:, None], max(h // 2, 1)
    apart = batch.distances2[rows, questions.target].copy()  # (B, J, h)
    apart[rows, np.arange(questions.target.shape[1]), questions.target] = -1.0
    out = find_unlike(batch, questions, apart)
    if batch.together is not None:
        out |= batch.together.mask[rows, questions.target]
    order = np.argsort(np.where(out, apart, np.inf), axis=2, kind="stable")[:, :, :most]
    return LeftOut(questions, order, np.clip(out.sum(axis=2), 1, most))


def find_unlike(batch: Batch, questions: Questions, apart: Array) -> NDArray[np.bool_]:
    """Members (B, J, h) that the target has and the query has not, at squared distances ``apart`` from the target.

    These are, first, members nearer to the target than the query is to any point. Second, members with no counterpart: shifted from
    the target to the query, they are near no point, as along a curve if the query lies beside it. Members farther away than a few
    times the query's distance from its nearest point always count as alike.
    """
    Z = np.moveaxis(batch.Z, 0, 2)
    nearest = ((questions.distance / batch.scale[:, None]) ** 2)[..., None]
    out = apart < nearest
    asked = ~out & (apart < MATCHED_WITHIN**2 * nearest) & (questions.share > 0.0)[..., None]
    for b in range(len(Z)):
        j, x = np.nonzero(asked[b])
        moved = Z[b, x] + (questions.shift[b] / batch.scale[b])[j]
        size = np.einsum("hd,hd->h", Z[b], Z[b])
        found = (size - 2.0 * moved @ Z[b].T).min(axis=1) + np.einsum("nd,nd->n", moved, moved)
        out[b, j, x] = found > MATCH_TOLERANCE**2 * apart[b, j, x]
    return out


def mean_errors(batch: Batch, S: Spectrum, ridges: Array, w: Array, left: LeftOut | None, asked: Asked | None) -> Array:
    """Mean squared errors (k, B, ridges) of a stack: of points left out one by one, counted by ``w`` (B, h), and where it is asked.

    The error where it is asked is the sum of the error of imitated questions and of the error that the region expects. Neither is
    enough alone: expected errors do not show that a narrow kernel falls back to a constant (satellite field 1.32 times the error
    of the best candidate), imitations do not reach the middle between two tracks (4.7 times).
    Predictions of a region are bounded by its responses; coefficients that are lost to rounding are penalised.
    """
    residuals, alpha = batch.leave_out(S, ridges)
    root_v = np.ones((1, 1)) if batch.root_v is None else batch.root_v
    if batch.slopes is None:
        free = residuals / root_v[..., None, None]
    else:
        free = judge_locations(residuals, np.broadcast_to(root_v, batch.y.shape[:2]), batch.h)
    single = bound_residuals(batch.responses[..., None], free, *(end[..., None] for end in bounds_of(batch)))
    errors = np.einsum("bh,bhte->be", w, single * single)
    found = [errors]
    if left is not None:
        found.append(errors.copy())
        share = left.questions.share
        regions = np.flatnonzero(share.any(axis=1))
        if asked is not None and len(regions):
            expected = expect_errors(batch, asked.variance(S, ridges), residuals, alpha, share)
            found[1][regions] = expected[regions] + imitate_questions(batch, S, ridges, alpha, errors, left, regions)
    return np.asarray(np.stack(found) * jitter_penalty(alpha * root_v[..., None, None], batch.responses))


def judge_locations(residuals: Array, root_v: Array, h: int) -> Array:
    """Residuals (B, h, t, e) of locations, from those (B, H, t, e) of weighted equations with roots of weights (B, H).

    Of the response, or where there is none the root mean square of the slopes, which are in the same unit, per radius.
    """
    B, H = root_v.shape
    free = residuals / np.where(root_v > 0.0, root_v, 1.0)[..., None, None]
    slopes, known = free[:, h:].reshape(B, h, H // h - 1, *free.shape[2:]), (root_v[:, h:] > 0.0).reshape(B, h, -1).sum(axis=2)
    mean = np.sqrt(np.square(slopes).sum(axis=2) / np.maximum(known, 1)[..., None, None])
    return np.where((root_v[:, :h] > 0.0)[..., None, None], free[:, :h], mean)


def imitate_questions(batch: Batch, S: Spectrum, ridges: Array, alpha: Array, single: Array, left: LeftOut, asked: Index) -> Array:
    """Mean squared errors (r, ridges) at the questions of the regions ``asked`` (r,) of a stack.

    Every ridge costs a product of matrices, so errors are computed only for ridges near the best one for ``single`` points, by
    their errors (B, ridges). Ridges beyond take the error of the last one computed, or that of single points if it is larger.
    """
    rows, e = np.arange(len(asked)), len(ridges)
    best = single[asked].argmin(axis=1)[:, None]
    window = np.clip(best + np.arange(-ASKED_STEPS, ASKED_STEPS + 1), 0, e - 1)  # (r, asked ridges)
    share = left.questions.share[asked]
    share = share / share.sum(axis=1, keepdims=True)
    order, size = left.order[asked], left.size[asked]
    target = order[..., 0]
    if batch.slopes is not None:  # a location is left out with its slopes
        order = equations_of(order, batch.h, batch.slopes.shape[2]).reshape(*order.shape[:2], -1)
        size = size * (1 + batch.slopes.shape[2])
    systems = list(buckets(size))
    y, (low, high), unknown = batch.y[asked[:, None], target], (end[asked] for end in bounds_of(batch)), batch.unknown_y[asked]
    root_v = np.ones(1) if batch.root_v is None else batch.root_v[asked[:, None], target][..., None]
    if batch.slopes is not None and batch.root_v is not None:  # one without a response imitates nothing
        share = share * (root_v[..., 0] > 0.0)
        share /= np.maximum(share.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        root_v = np.where(root_v > 0.0, root_v, 1.0)
    V, inverse = S.V[asked], np.broadcast_to(S.inverse(ridges), (len(S.V), S.V.shape[1], e))[asked]
    errors = np.empty(window.shape)
    for k, column in enumerate(window.T):
        if k and (column == window[:, k - 1]).all():  # at the end of the grid
            errors[:, k] = errors[:, k - 1]
            continue
        B = (V * inverse[rows, :, column][:, None, :]) @ V.swapaxes(1, 2)
        at_ridge, residual = alpha[asked, :, :, column], np.empty(y.shape)
        for r, j, most in systems:
            residual[r, j] = targets_left_out(B, at_ridge, unknown, r, order[r, j, :most], size[r, j])
        residual = bound_residuals(y, residual / root_v, low, high)
        errors[:, k] = np.einsum("bj,bjt->b", share, residual * residual)
    nearest = np.clip(np.arange(e) - best + ASKED_STEPS, 0, window.shape[1] - 1)
    beyond = np.abs(np.arange(e) - best) > ASKED_STEPS
    found = np.take_along_axis(errors, nearest, axis=1)
    return np.where(beyond, np.maximum(found, single[asked]), found)


def buckets(size: Index) -> Iterator[tuple[Index, Index, int]]:
    """Indices of the ``size`` (B, J) between two powers of two, and the largest of them: systems of about one size."""
    low = 0
    while low < size.max():
        high = max(2 * low, 1)
        r, j = np.nonzero((size > low) & (size <= high))
        if len(r):
            yield r, j, int(size[r, j].max())
        low = high


def bounds_of(batch: Batch) -> tuple[Array, Array]:
    """Lower and upper bounds of the predictions of each region, (B, 1, t) each: its responses, extended by their range."""
    low, high = batch.responses.min(axis=1, keepdims=True), batch.responses.max(axis=1, keepdims=True)
    return 2.0 * low - high, 2.0 * high - low


def bound_residuals(y: Array, residuals: Array, low: Array, high: Array) -> Array:
    """Residuals of what a region says within its bounds."""
    return np.asarray(y - np.clip(y - residuals, low, high))


def jitter_penalty(alpha: Array, y: Array) -> Array:
    """1 + (ε Σ|α| / allowed jitter)², (B, e): a penalty for rounding errors of coefficients that are huge and cancel.

    On noisy data a wide kernel with a tiny ridge is a polynomial in disguise. It may predict as well as others, but its
    coefficients are the noise divided by the ridge.
    """
    jitter = np.finfo(float).eps * np.abs(alpha).sum(axis=1).max(axis=1)
    allowed = JITTER * np.maximum(y.std(axis=1).max(axis=1), NEGLIGIBLE)
    return 1.0 + (jitter / allowed[:, None]) ** 2


def pool(scores: Array, volume: Array) -> Array:
    """One score for all regions from log squared errors (k, r, …): mean squared errors, regions counted by ``volume`` (k, r).

    The two questions of a field count alike, whatever their errors.
    """
    return pool_sums([(sum_scores(scores, volume), volume.sum(axis=1))])


def sum_scores(scores: Array, volume: Array) -> Array:
    """The logs of the sums (k, …) that `pool` takes the means of, for a part of the regions.

    No region counts for more than so many times the median: one with a gross error would decide for all.
    """
    scores = np.minimum(scores, np.median(scores, axis=1, keepdims=True) + np.log(MOST_ERROR))
    weight = np.log(np.maximum(volume, np.finfo(float).tiny)).reshape(*volume.shape, *(1,) * (scores.ndim - 2))
    return np.asarray(np.logaddexp.reduce(scores + weight, axis=1))


def pool_sums(sums: Sequence[tuple[Array, Array]]) -> Array:
    """`pool` of all regions from `sum_scores` and the volumes (k,) of the regions of each part."""
    total = np.logaddexp.reduce([part for part, _ in sums], axis=0)
    volume = np.sum([volume for _, volume in sums], axis=0)
    return np.asarray((total - np.log(volume).reshape(-1, *(1,) * (total.ndim - 1))).mean(axis=0))
