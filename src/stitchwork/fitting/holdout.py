"""The paper's search: every candidate, the same in all regions, judged on points that were held out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._parallel import Threads
from .._types import Array
from ..local.points import Points
from ..model.stitch import Support, stitch
from .background import cover_samples, fit_background
from .box import fit_box, open_box, tally_weights
from .choice import choose_one
from .defaults import HELD_OUT
from .plan import Plan


def hold_out(points: Points, plan: Plan) -> Array:
    """Root mean squared error of every candidate in deviations of the responses, (shapes, ridges)."""
    n = len(points.X)
    # Ranked by response before they are shuffled, so that the split does not depend on the order of the rows.
    shuffled = np.lexsort((*points.X.T, *points.y.T))[np.random.default_rng(0).permutation(n)]
    if points.group is not None:  # whole groups, in the order in which their first point was drawn
        _, first, group = np.unique(points.group[shuffled], return_index=True, return_inverse=True)
        shuffled = shuffled[np.argsort(first[group], kind="stable")]
    held, kept = np.split(shuffled, [max(1, round(HELD_OUT * n))])
    table = np.zeros((len(plan.candidates.shapes), len(plan.candidates.ridges)))
    if not len(kept):
        return table
    test = points.at(np.sort(held))
    train = points.at(np.sort(kept))
    quiet = replace(plan, threads=Threads(plan.threads.n_jobs))
    box, covers = open_box(train, 0, quiet), cover_samples(train, True, quiet)
    supports = [Support(reach, total / box.own) for reach, total in zip(plan.reaches, tally_weights(box, plan)[0], strict=True)]
    for candidate in plan.threads.show(range(table.size), "search"):
        choice = choose_one(plan.candidates, candidate)
        part = fit_box(box, None, choice, quiet)
        levels = [*part.levels(supports), *fit_background(train, covers, choice, quiet)]
        error = (stitch(levels, test.X, 0, plan.weight, plan.w0).value - test.y) / plan.deviation
        table.flat[candidate] = np.sqrt(np.average((error * error).mean(axis=1), weights=test.v))
    return table
