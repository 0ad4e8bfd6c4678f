"""How many points a region has.

A hundred in fields, unless most of what a region's points could tell is noise: a smooth function with noise needs few degrees of
freedom, and regions of more points average over more of it. They are kept small where functions are rough, since there the local
choice gains by small regions, and leave-one-out has its say: at a front in a smooth field larger regions lose.
"""

from __future__ import annotations

import numpy as np

from .._types import Array
from .defaults import FEW_POINTS, FREEDOM, LARGEST_REGION, MOST_WORK, NOTICEABLE
from .metric import Learner
from .scores import pool


def grow_regions(learner: Learner, A: Array, n: int) -> int:
    """Points of the regions of a field of n points: those of the ``learner``, or as many as time allows.

    Metrics have been tried with the learner; ``A`` is the root of the chosen one.
    """
    h, candidates = learner.h, learner.candidates
    most = min(int(np.sqrt(MOST_WORK / n)), LARGEST_REGION, len(learner.points.X))
    if candidates is None or most <= h or n < FEW_POINTS:
        return h
    scorer, _ = learner.look(A)
    regions = np.arange(len(scorer.cover))
    before = scorer.score(regions, candidates, "metric")
    scores = pool(before)
    needed = scorer.measure_freedom(regions, candidates)[scores <= scores.min() + NOTICEABLE].min()
    if needed > FREEDOM:
        return h
    larger, _ = learner.look(A, min(2 * h, most))
    after = larger.score(regions, candidates, "metric")
    return most if all(level(after).min() <= level(before).min() + NOTICEABLE for level in (pool, mean_of_squares)) else h


def mean_of_squares(scores: Array) -> Array:
    """Log of the mean squared error of all regions, from log squared errors (r, ...): the hard ones decide, as at a front."""
    return np.asarray(np.logaddexp.reduce(scores, axis=0) - np.log(len(scores)))
