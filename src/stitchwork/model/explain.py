"""What makes up a prediction, region by region."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..local.blocks import BlockModels
from .bounds import bound_answers
from .link import link_values
from .reasons import reasons_of
from .stitch import Contribution, contributions, stitch


def explain(model: Any, x: Array) -> list[Contribution]:
    """What makes up the prediction of a model at one point ``x`` (d,), the largest share first, on average over the outputs."""
    found = []
    q = model.space.coordinates(model.inside.saturate(model.embed(x[None]))[0])
    free = stitch(model.levels, q, 0, model.weight, model.w0).value
    held = (bound_answers(model.extremes).saturate(free)[0] - free)[0]  # zero, unless a bound on the prediction applies
    for depth, region, share, value in contributions(model.levels, q, model.weight, model.w0):
        regions = model.levels[depth].regions
        center = model.original(regions.centers[region : region + 1])[0]
        radius = float(model.levels[depth].balls.radii[region] / model.space.unit)
        settings = regions.models.settings.named(region) if isinstance(regions.models, BlockModels) else {}
        said = link_values(model.origin.link, value + held)
        told, counts = (float(said[0]), float(share[0])) if model.flat else (said, share)
        reason = reasons_of(model.levels, depth, model.origin.parameters)[region]
        found.append(Contribution(depth, region // regions.models_per_ball, counts, told, center, radius, settings, reason))
    return sorted(found, key=lambda one: -float(np.mean(one.share)))
