"""The search: which few shapes are worth having, on a sample of the regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from .._types import Array, Index
from .candidates import Candidates, Move, Shape
from .defaults import DROPPED_BEYOND, FIRST_SHARE, KEPT_SHAPES, LEAST_GAIN, MANY_SHAPES, POOLED_REGIONS
from .points import random_sample
from .scores import Scorer, pool


def search(scorer: Scorer, candidates: Candidates, moves: Sequence[Move], keep: int = KEPT_SHAPES) -> Candidates:
    """Narrow the candidates to the few shapes worth having in the regions of a scorer, then vary one thing after the other.

    The best for all regions is the first.
    """
    sample = np.arange(len(scorer.cover))
    centers, volume = scorer.cover.centers, scorer.volume(sample)
    known = score_likely(scorer, candidates, sample) if len(candidates.shapes) >= MANY_SHAPES else {}
    candidates = replace(candidates, shapes=tuple(known)) if known else candidates
    for move in (None, *moves):
        candidates = candidates if move is None else move(candidates)
        new = replace(candidates, shapes=tuple(shape for shape in candidates.shapes if shape not in known))
        if new.shapes:
            known |= dict(zip(new.shapes, np.moveaxis(scorer.score(sample, new), 2, 0), strict=True))
        if len(candidates.shapes) > 1:
            scores = np.stack([known[shape] for shape in candidates.shapes], axis=2)
            candidates = narrow(candidates, scores, volume, centers, keep)
    return candidates


def score_likely(scorer: Scorer, candidates: Candidates, sample: Index) -> dict[Shape, Array]:
    """Scores (k, r, ridges) of shapes in a sample of regions.

    Shapes that are far behind in a few of these regions, and best in none of them, are dropped first.
    """
    glance = np.arange(len(sample)) % int(1 / FIRST_SHARE) == 0
    first = scorer.score(sample[glance], candidates)
    best, pooled = first.mean(axis=0).min(axis=2), pool(first, scorer.volume(sample[glance])).min(axis=1)
    likely = (pooled <= pooled.min() + DROPPED_BEYOND) | (best == best.min(axis=1, keepdims=True)).any(axis=0)
    shapes = tuple(shape for shape, keep in zip(candidates.shapes, likely, strict=True) if keep)
    scores = np.empty((len(first), len(sample), len(shapes), len(candidates.ridges)))
    scores[:, glance] = first[:, :, likely]
    if not glance.all():
        scores[:, ~glance] = scorer.score(sample[~glance], replace(candidates, shapes=shapes))
    return dict(zip(shapes, np.moveaxis(scores, 2, 0), strict=True))


def sample_regions(volume: Array, size: int) -> tuple[Index, Array]:
    """About ``size`` regions, drawn in proportion to the ``volume`` (m,) that they answer for, and what each of them counts for.

    A region of more than an even part of the volume is drawn once and counts for all of it.
    """
    m = len(volume)
    if m <= size or not volume.any():
        chosen = random_sample(m, size)
        return chosen, volume[chosen] if volume.any() else np.ones(len(chosen))
    order = np.random.default_rng(0).permutation(m)
    edges = np.cumsum(volume[order])
    step = edges[-1] / size
    drawn = np.searchsorted(edges, step * (np.arange(size) + 0.5), side="right")
    chosen = np.unique(order[np.minimum(drawn, m - 1)])
    return chosen, np.maximum(volume[chosen] / step, 1.0)


def narrow(candidates: Candidates, scores: Array, volume: Array, centers: Array, keep: int) -> Candidates:
    """The few shapes that together serve the regions of a sample nearly as well as all do, from scores (k, r, shapes, ridges).

    The first is the best for all.
    """
    k = min(POOLED_REGIONS, len(centers))
    _, nearest = cKDTree(centers).query(centers, k=np.arange(1, k + 1))
    best = scores.mean(axis=0)[nearest].mean(axis=1).min(axis=2)  # (r, shapes), each at its best ridge in the neighbourhood
    kept = [int(pool(scores, volume).min(axis=1).argmin())]
    while len(kept) < min(keep, best.shape[1]):
        so_far = best[:, kept].min(axis=1, keepdims=True)
        gain = np.average(np.maximum(so_far - best, 0.0), axis=0, weights=volume[-1])
        if gain.max() < LEAST_GAIN:
            break
        kept.append(int(gain.argmax()))
    return replace(candidates, shapes=tuple(candidates.shapes[i] for i in kept))
