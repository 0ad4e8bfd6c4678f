"""Leave-one-out of a whole model, in the unit of its responses."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._parallel import Threads
from .link import IDENTITY
from .loo import LeftOut, levels_over, stitched_loo_residuals


def leave_out_points(model: Any, threads: Threads) -> LeftOut:
    """What every point of a `StitchedModel` would be without it, in the unit of the responses."""
    residuals, known = stitched_loo_residuals(model.points, levels_over(model.points, model.levels), model.weight, threads)
    y = model.responses
    residuals = residuals if model.origin.link == IDENTITY else y - np.exp(model.points.y - residuals)
    repeats = model.points.repeats if model.origin.link == IDENTITY else None
    spread = 0.0 if repeats is None else repeats.spread[known].sum(axis=0)
    return LeftOut(model.X[known], y[known], residuals[known], model.points.v[known], model.points.row[known], spread)
