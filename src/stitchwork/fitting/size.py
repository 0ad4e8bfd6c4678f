"""How many points a region has.

A hundred in fields, unless their variation is mostly noise: a smooth function with noise needs few degrees of freedom, and larger
regions average over more of the noise. Regions stay small where functions are rough, since small regions adapt better there, and
where leave-one-out errors would grow, as at a front in a smooth field. Large regions are searched on a part of their points, so
such a part must represent all of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._types import Array
from .defaults import (
    EXACT_DOF,
    FEW_POINTS,
    LEAST_GAIN,
    MOST_EQUATIONS,
    NOISY_DOF,
    PART_TOLERANCE,
    REGION_SIZE,
    SIZE_TOLERANCE,
    large_region,
)
from .metric import Learner
from .scores import pool


def grow_regions(learner: Learner, A: Array, n: int) -> int:
    """Points of the regions of a field of n points: those of the ``learner``, or with much noise as many as time allows.

    Metrics have been tried with the learner; ``A`` is the root of the chosen one.
    """
    h, candidates = learner.h, learner.candidates
    most = min(large_region(n), len(learner.points.X))
    if candidates is None or most <= h or n < FEW_POINTS:
        return h
    scorer, _ = learner.look(A, asked=True)
    regions = np.arange(len(scorer.cover))
    table, dof = scorer.judge(regions, candidates, "metric")
    volume = scorer.volume(regions)
    error = pool(table, volume)
    needed = dof[error <= error.min() + LEAST_GAIN].min()
    if learner.points.slopes is not None:
        return h if needed > EXACT_DOF else grow_with_slopes(learner, A, n)
    if needed > NOISY_DOF:
        return h
    larger = learner.look(A, min(2 * h, most), asked=True)[0].score(regions, candidates, "metric")
    if pool(larger, volume).min() > error.min() + SIZE_TOLERANCE:
        return h
    widest, _ = learner.look(A, most)
    thin = widest._replace(cover=widest.cover.thin(h)).score(regions, candidates, "metric")
    return most if pool(thin, volume[:1]).min() <= pool(table[:1], volume[:1]).min() + PART_TOLERANCE else h


def grow_with_slopes(learner: Learner, A: Array, n: int) -> int:
    """Locations of regions with noise and slopes: as many as responses alone would have, while systems stay solvable."""
    points = learner.points
    alone = points.at(np.flatnonzero(points.measured))._replace(slopes=None)
    plain = replace(learner, points=alone, h=min(REGION_SIZE, len(alone.X)))
    return max(min(grow_regions(plain, A, n), MOST_EQUATIONS // points.equations, len(points.X)), learner.h)
