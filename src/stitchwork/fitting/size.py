"""How many points a region has.

A hundred in fields, unless most of what a region's points could tell is noise: a smooth function with noise needs few degrees of
freedom, and regions of more points average over more of it. They are kept small where functions are rough, since there the local
choice gains by small regions, and leave-one-out has its say: at a front in a smooth field larger regions lose. As large regions are
searched by a part of their points, these must show what all do.

Where points lie on curves, a region needs more than one of them: it must hold enough beside a curve to tell what is there.
"""

from __future__ import annotations

import numpy as np

from .._types import Array, Index
from ..local.batch import make_batch
from ..local.groups import Together
from ..local.points import Points
from .cover import measure_curves, plain_tree
from .defaults import BEARABLE, CURVE_REGIONS, FEW_POINTS, FREEDOM, MANY_CURVES, NOTICEABLE, RESOLVED, TOLD, large_region
from .metric import Learner
from .points import random_sample
from .scores import find_on_curves, pool


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
    table, freedom = scorer.judge(regions, candidates, "metric")
    scores = pool(table)
    needed = freedom[scores <= scores.min() + NOTICEABLE].min()
    if needed > FREEDOM:
        return h
    larger, widest = (learner.look(A, size)[0] for size in (min(2 * h, most), most))
    thin = widest._replace(cover=widest.cover.thin(h))
    bearable = pool(larger.score(regions, candidates, "metric")).min() <= scores.min() + BEARABLE
    return most if bearable and pool(thin.score(regions, candidates, "metric")).min() <= scores.min() + RESOLVED else h


def holds_curves(points: Points, h: int) -> bool:
    """Whether many points lie on curves, and many regions of ``h`` points do."""
    if measure_curves(points.X, h) < MANY_CURVES:
        return False
    region, _ = look_at_curves(points, h)
    return len(region) >= MANY_CURVES * min(CURVE_REGIONS, len(points.X))


def widen_regions(points: Points, h: int, n: int) -> int:
    """Points of the regions of n points on curves, from ``h`` on: doubled until most of them lie between other curves."""
    most = min(large_region(n), len(points.X))
    while 2 * h <= most:
        region, together = look_at_curves(points, h)
        if not len(region) or together.judged.mean() >= TOLD:
            break
        h *= 2
    return h


def look_at_curves(points: Points, h: int) -> tuple[Index, Together]:
    """The regions on curves among some of ``h`` points, and these curves."""
    center = random_sample(len(points.X), CURVE_REGIONS)
    _, members = plain_tree(points.X).query(points.X[center], k=np.arange(1, h + 1))
    return find_on_curves(make_batch(points, members, rough=False))
