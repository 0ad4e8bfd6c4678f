"""The arrays of a fitted function by their names, those that evaluating it needs: see `description`, which adds the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._types import Array
from ..local.blocks import COEFFICIENTS, BlockModels
from ..local.points import Points
from ..local.settings import SETTINGS
from .chart import Chart
from .space import Space
from .stitch import HANDOVER, Level, Regions

Arrays = dict[str, NDArray]

STORED_AS = {"local_metric": "turn"}  # attributes whose names in files differ, and must not change


def describe_function(levels: Sequence[Level], points: Points, space: Space, w0: float) -> Arrays:
    """Named arrays of levels, their ``points`` and the space. Regions that several levels share are stored once."""
    sets = _sets(levels)
    kernels = kernel_names(levels)
    arrays: Arrays = {
        "space/shift": space.shift,
        "space/A": space.A,
        "space/unit": np.array([space.unit]),
        "stitch/background_weight": np.array([w0]),
        "stitch/handover": np.array([HANDOVER]),
        "levels/regions": np.array([next(k for k, r in enumerate(sets) if r is level.regions) for level in levels]),
        "levels/reach": np.array([level.reach for level in levels], dtype=float),
        "levels/usual": np.array([level.mean_weight for level in levels], dtype=float),
    }
    arrays |= describe_points("points", points)
    for k, regions in enumerate(sets):
        arrays |= describe_regions(f"regions{k}", regions, kernels, points.X)
    return arrays


def describe_chart(chart: Chart | None, limits: Array | None) -> Arrays:
    """The arrays of a chart and of the limits of its places; none without a chart."""
    if chart is None or limits is None:
        return {}
    arrays: Arrays = {"chart/period": np.array(chart.periods), "chart/start": np.array(chart.start)}
    return arrays | {"chart/globe": np.array(chart.globe or (-1, -1), dtype=np.int64), "chart/limits": limits}


def kernel_names(levels: Sequence[Level]) -> list[str]:
    """Names of the kernels of all levels; stored kernel indices refer to this list."""
    return list(dict.fromkeys(kernel.name for regions in _sets(levels) for kernel in _blocks(regions).settings.kernels))


def describe_regions(prefix: str, regions: Regions, kernels: list[str], X: Array) -> Arrays:
    """The arrays of a set of regions over points ``X`` or its own."""
    models = _blocks(regions)
    position = np.array([kernels.index(kernel.name) for kernel in models.settings.kernels])
    arrays = {f"{prefix}/centers": regions.centers, f"{prefix}/radii": regions.radii}
    if regions.share is not None:
        arrays |= {f"{prefix}/share": regions.share, f"{prefix}/together": np.array([regions.models_per_ball])}
    if regions.extremes is not None:
        arrays[f"{prefix}/extremes"] = regions.extremes
    if models.settings.local_metrics is not None:
        arrays[f"{prefix}/model0/turns"] = models.settings.local_metrics
    arrays |= {f"{prefix}/model0/{name}": getattr(models, name) for name in COEFFICIENTS}
    arrays |= {f"{prefix}/model0/{STORED_AS.get(name, name)}": getattr(models.settings, name) for name in SETTINGS}
    arrays[f"{prefix}/model0/kernel"] = position[models.settings.kernel]
    if models.beta is not None:
        arrays[f"{prefix}/model0/beta"] = models.beta.reshape(*models.beta.shape[:2], -1)
    if models.settings.slopes is not None:
        arrays[f"{prefix}/model0/slopes"] = models.settings.slopes
    own = {} if models.X is X else describe_points(prefix, models.points) | {f"{prefix}/row": models.points.row}
    return arrays | own


def describe_points(prefix: str, points: Points) -> Arrays:
    """The arrays of points under a prefix."""
    arrays: Arrays = {f"{prefix}/{name}": getattr(points, name) for name in ("X", "y", "v")}
    if points.group is not None:
        arrays[f"{prefix}/group"] = points.group
    if points.repeats is not None:
        arrays |= {f"{prefix}/often": points.repeats.often, f"{prefix}/spread": points.repeats.spread}
    if points.given is not None:
        arrays[f"{prefix}/given"] = points.given
    if points.slopes is not None:
        arrays |= {f"{prefix}/slopes/{name}": getattr(points.slopes, name) for name in ("direction", "value", "weight")}
        arrays[f"{prefix}/slopes/told"] = np.array([int(points.slopes.told)])
        if points.slopes.feature is not None:
            arrays[f"{prefix}/slopes/feature"] = points.slopes.feature
    return arrays


def _blocks(regions: Regions) -> BlockModels:
    if not isinstance(regions.models, BlockModels):
        raise ValueError("A `local_model` of your own has no description: its code is not known here.")
    return regions.models


def _sets(levels: Sequence[Level]) -> list[Regions]:
    return list({id(level.regions): level.regions for level in levels}.values())
