"""The variance at a single query: the same as in `moments`, with as little Python as possible.

The compiled library returns the regions that contribute, with their predictions and their shares s̄ through all levels. Stitching
variances level by level gives the variance of the mixture of all contributions,

    variance = Σ s̄_i (c_i² v_i + (f_i − f̂)²),      noise = Σ s̄_i c_i² η_i,

and factors of regions that were asked before are in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._types import Array, Index
from ..local.blocks import BlockModels
from ..local.factors import CACHE, Factor
from ..native import Evaluator
from .deviation import LevelScales
from .stitch import Level


def row_moments(
    evaluator: Evaluator, levels: Sequence[Level], scales: Sequence[LevelScales], x: Array, place: Callable[[Array], Array]
) -> tuple[Array, Array] | None:
    """Variance and noise (1, t) at one row of features ``x`` (1, d), to which ``place`` gives the coordinates (1, e) of regions.

    None where the answer comes from the last level, or from regions without a factor: `stitch_moments` has those.
    """
    row = x.tobytes()
    which, share, value = evaluator.parts(row)
    depth = which[:, 0]
    if depth.max() >= len(scales):
        return None
    region = which[:, 1] * levels[0].regions.models_per_ball + which[:, 2]
    factors: list[int] = [0] * len(region)
    terms = np.empty((2, *share.shape))
    groups: dict[int, tuple[LevelScales, Level, list[int]]] = {}
    for i, level in enumerate(depth.tolist()):
        groups.setdefault(id(scales[level]), (scales[level], levels[level], []))[2].append(i)
    for _, level, rows in groups.values():
        if level.regions.models_per_ball != levels[0].regions.models_per_ball:
            region[rows] = which[rows, 1] * level.regions.models_per_ball + which[rows, 2]
        found = _find_factors(level.models, region[rows])
        if found is None:
            return None
        for i, factor in zip(rows, found, strict=True):
            factors[i] = factor.address
    v = np.maximum(evaluator.part_variances(row, which, factors), 0.0)
    for own, level, rows in groups.values():
        which_own = region[rows]
        scale, noise = own.scale[which_own], own.noise[which_own]
        if own.sloped:
            growth = own.growth(level.regions, which_own, np.repeat(place(x), len(rows), axis=0))
            scale, noise = growth * scale, growth * noise
        terms[0, rows], terms[1, rows] = np.minimum(scale * v[rows, None], own.most[which_own]), noise
    mean = (share * value).sum(axis=0)
    terms[0] += (value - mean) ** 2
    variance, noise = (share * terms).sum(axis=1)
    return variance[None], noise[None]


def _find_factors(models: object, regions: Index) -> list[Factor] | None:
    """Factors of regions (k,), from the cache or made now; None for models of slopes or where one has none."""
    if not isinstance(models, BlockModels) or models.beta is not None:
        return None
    known = CACHE.find(models.owner, regions)
    found = [models.factors(regions[i : i + 1])[0] if one is None else one for i, one in enumerate(known)]
    return found if all(factor.whole is None for factor in found) else None
