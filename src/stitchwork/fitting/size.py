"""How many points a region has.

A hundred in fields, unless most of what a region's points could tell is noise: a smooth function with noise needs few degrees of
freedom, and regions of more points average over more of it. They are kept small where functions are rough, since there the local
choice gains by small regions, and leave-one-out has its say: at a front in a smooth field larger regions lose. As large regions are
searched by a part of their points, these must show what all do.
"""

from __future__ import annotations

import numpy as np

from .._types import Array
from .defaults import BEARABLE, FEW_POINTS, FREEDOM, NOTICEABLE, RESOLVED, large_region
from .metric import Learner
from .scores import pool


def grow_regions(learner: Learner, A: Array, n: int) -> int:
    """Points of the regions of a field of n points: those of the ``learner``, or as many as time allows.

    Metrics have been tried with the learner; ``A`` is the root of the chosen one.
    """
    h, candidates = learner.h, learner.candidates
    most = min(large_region(n), len(learner.points.X))
    if candidates is None or most <= h or n < FEW_POINTS:
        return h
    scorer, _ = learner.look(A)
    regions = np.arange(len(scorer.cover))
    scores = pool(scorer.score(regions, candidates, "metric"))
    needed = scorer.measure_freedom(regions, candidates)[scores <= scores.min() + NOTICEABLE].min()
    if needed > FREEDOM:
        return h
    larger, widest = (learner.look(A, size)[0] for size in (min(2 * h, most), most))
    thin = widest._replace(cover=widest.cover.thin(h))
    bearable = pool(larger.score(regions, candidates, "metric")).min() <= scores.min() + BEARABLE
    return most if bearable and pool(thin.score(regions, candidates, "metric")).min() <= scores.min() + RESOLVED else h
