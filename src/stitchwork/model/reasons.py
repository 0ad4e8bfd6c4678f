"""Why a region has the hyperparameters that it has, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..local.blocks import BlockModels
from .stitch import Level

GIVEN = "given by the user"
HELD_OUT = "the same for all regions: the least error on points held out"
WHOLE = "one region holds all points: length scales by likelihood, models averaged by leave-one-out"
AVERAGED = "models averaged by leave-one-out, with the same shares in all regions"
COMMON = "the common choice: the least error of all regions, at their points and between them"
LOCAL = "its neighbourhood is better off than with the common choice, by two standard errors"
SAMPLE = "a thinner sample of the points, where no finer region reaches; "
BEHIND = "the least-squares polynomial of all points, behind everything"
OWN = "a local model of your own"


def reasons_of(levels: Sequence[Level], depth: int, parameters: dict[str, Any]) -> list[str]:
    """The reason of each region of the level at ``depth``, (m,), from the constructor's ``parameters``."""
    regions = levels[depth].regions
    m, sample = len(regions.radii), regions is not levels[0].regions
    if not isinstance(regions.models, BlockModels):
        return [OWN] * m
    if not np.isfinite(regions.radii).all():
        return [BEHIND] * m
    settings = regions.models.settings
    start = SAMPLE if sample else ""
    if parameters["selection"] is None:
        return [start + GIVEN] * m
    if parameters["selection"] == "holdout":
        return [start + HELD_OUT] * m
    if regions.models_per_ball > 1 or m == 1:
        return [start + (WHOLE if m == regions.models_per_ball else AVERAGED)] * m
    rows = list(zip(settings.kernel, settings.degree, settings.bandwidth, settings.ridge, strict=True))
    common = Counter(rows).most_common(1)[0][0]
    return [start + (COMMON if row == common else LOCAL) for row in rows]
