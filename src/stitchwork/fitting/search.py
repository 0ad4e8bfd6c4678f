"""The search: which few shapes are worth having, on a sample of the regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from .._types import Array, Index
from .candidates import Candidates, Move, Shape
from .defaults import (
    ALSO_SMOOTH,
    GLANCE,
    HOPELESS,
    KEPT_SHAPES,
    LEAST_SCREENED,
    MANY_SHAPES,
    NOTICEABLE,
    POOLED_REGIONS,
    SCREENED_POINTS,
)
from .points import random_sample
from .scores import Scorer, pool


def search(
    scorer: Scorer, candidates: Candidates, moves: Sequence[Move], keep: int = KEPT_SHAPES, tie: str = "widest"
) -> Candidates:
    """Narrow the candidates to the few shapes worth having on a sample of regions, then vary one thing after the other.

    Of shapes that ``tie`` with the best, the first is the ``"widest"`` of its kernel, the ``"smoothest"`` of any, or the widest and
    at last the most ``"telling"``; see `find_telling`.
    """
    sample = pick_telling(scorer)
    centers = scorer.points.X[scorer.cover.center[sample]]
    known = score_likely(scorer, candidates, sample) if len(candidates.shapes) >= MANY_SHAPES else {}
    candidates = replace(candidates, shapes=tuple(known)) if known else candidates
    for move in (None, *moves):
        candidates = candidates if move is None else move(candidates)
        new = replace(candidates, shapes=tuple(shape for shape in candidates.shapes if shape not in known))
        if new.shapes:
            known |= dict(zip(new.shapes, np.moveaxis(scorer.score(sample, new), 1, 0), strict=True))
        if len(candidates.shapes) > 1:
            candidates = narrow(candidates, np.stack([known[shape] for shape in candidates.shapes], axis=1), centers, keep, tie)
    if tie == "smoothest":
        return candidates.add_shapes(find_analytic(candidates, known))
    if tie != "telling":
        return candidates
    first, *others = candidates.shapes
    return replace(candidates, shapes=(find_telling(scorer, sample, candidates, known, first), *others))


def score_likely(scorer: Scorer, candidates: Candidates, sample: Index) -> dict[Shape, Array]:
    """Scores (r, ridges) of shapes in a sample of regions, but for those that are far behind at a glance at a few of these, and
    best in none of them.
    """
    glance = np.arange(len(sample)) % int(1 / GLANCE) == 0
    first = scorer.score(sample[glance], candidates)
    best, pooled = first.min(axis=2), pool(first).min(axis=1)
    likely = (pooled <= pooled.min() + HOPELESS) | (best == best.min(axis=1, keepdims=True)).any(axis=0)
    shapes = tuple(shape for shape, keep in zip(candidates.shapes, likely, strict=True) if keep)
    scores = np.empty((len(sample), len(shapes), len(candidates.ridges)))
    scores[glance] = first[:, likely]
    if not glance.all():
        scores[~glance] = scorer.score(sample[~glance], replace(candidates, shapes=shapes))
    return dict(zip(shapes, np.moveaxis(scores, 1, 0), strict=True))


def pick_telling(scorer: Scorer, share: float = 1.0) -> Index:
    """Regions to search on, or a ``share`` of so many: one half at random, the other from the quarter that varies most."""
    size = max(int(share * SCREENED_POINTS / scorer.cover.members.shape[1]), LEAST_SCREENED)
    m = len(scorer.cover)
    if m <= size:
        return np.arange(m)
    lively = np.argsort(-scorer.spread(), kind="stable")[: max(m // 4, size // 2)]
    return np.union1d(random_sample(m, size // 2), lively[random_sample(len(lively), size // 2)])


def narrow(candidates: Candidates, scores: Array, centers: Array, keep: int, tie: str = "widest") -> Candidates:
    """The few shapes that together serve the regions of a sample nearly as well as all do, from scores (r, shapes, ridges)."""
    k = min(POOLED_REGIONS, len(centers))
    _, nearest = cKDTree(centers).query(centers, k=np.arange(1, k + 1))
    best = scores[nearest].mean(axis=1).min(axis=2)  # (r, shapes), each shape at its best ridge in the neighbourhood
    kept = [find_smoothest(candidates, scores, any_kernel=tie == "smoothest")]
    while len(kept) < min(keep, best.shape[1]):
        so_far = best[:, kept].min(axis=1, keepdims=True)
        gain = np.maximum(so_far - best, 0.0).mean(axis=0)
        if gain.max() < NOTICEABLE:
            break
        kept.append(int(gain.argmax()))
    return replace(candidates, shapes=tuple(candidates.shapes[i] for i in kept))


def find_telling(scorer: Scorer, sample: Index, candidates: Candidates, known: dict[Shape, Array], first: Shape) -> Shape:
    """Of all shapes with the kernel of ``first`` that tie, the one that best foretells a side of the regions' points.

    Between points such shapes are the same, beyond them not.
    """
    alike = [shape for shape in known if shape.kernel == first.kernel]
    ridge = np.array([pool(known[shape]).argmin() for shape in alike])
    scores = np.stack([known[shape][:, k] for shape, k in zip(alike, ridge, strict=True)], axis=1)  # (r, shapes)
    tied = find_ties(scores, int(pool(scores).argmin()))
    shapes = tuple(alike[i] for i in tied)
    return shapes[int(pool(scorer.score_caps(sample, replace(candidates, shapes=shapes), ridge[tied])).argmin())]


def find_analytic(candidates: Candidates, known: dict[Shape, Array]) -> list[Shape]:
    """The best shape of an analytic kernel, if it comes near the best of all: parts of regions may see less than whole ones."""
    errors = {shape: float(pool(scores).min()) for shape, scores in known.items()}
    analytic = [shape for shape in known if candidates.smoothness(shape)[0] == np.inf]
    best = min(analytic, key=errors.__getitem__, default=None)
    return [best] if best is not None and errors[best] < min(errors.values()) + ALSO_SMOOTH else []


def find_smoothest(candidates: Candidates, scores: Array, any_kernel: bool = False) -> int:
    """The smoothest shape that ties with the best: like it but for its bandwidth, or of any kernel."""
    best = int(pool(scores).min(axis=1).argmin())
    at_ridge = np.take_along_axis(scores, pool(scores).argmin(axis=1)[None, :, None], axis=2)[..., 0]  # (r, shapes)
    first = candidates.shapes[best]._replace(bandwidth=0.0)
    tied = [i for i in find_ties(at_ridge, best) if any_kernel or candidates.shapes[i]._replace(bandwidth=0.0) == first]
    return max(tied, key=lambda i: (candidates.smoothness(candidates.shapes[i]), i == best))


def find_ties(scores: Array, best: int) -> list[int]:
    """The shapes of scores (r, shapes) that are not worse than the ``best`` by a standard error, that one among them."""
    D = scores - scores[:, [best]]
    tied = D.mean(axis=0) <= D.std(axis=0) / np.sqrt(len(D))
    tied[best] = True
    return [int(i) for i in np.flatnonzero(tied)]
