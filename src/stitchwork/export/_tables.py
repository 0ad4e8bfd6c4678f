"""A fitted model as plain tables: what the exported code reads, and nothing else.

Levels that share their models (the regions and the wider regions) are one group: one set of tables, one lookup, one evaluation of
the local models, and one set of weights for each of the levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._blocks import BlockModels
from .._local import gather
from .._polynomial import monomials
from .._radial import NO_KERNEL, weight_named
from .._regressor import StitchedRegressor
from .._stitch import Level
from ._crowding import most_balls_at_a_point
from ._formulas import Profile, derivatives

Arrays = dict[str, NDArray]

# Regions are ranked in single precision, so a ball counts as this much larger where the number of regions to look at is bounded.
_RANKING = 1.0 + 1e-6


@dataclass(frozen=True)
class Group:
    """What is fixed about levels that share their models.

    Attributes
    ----------
    regions_per_query : K, a bound on how many regions of the widest level contain one point
    kernels : those in use, each with its derivatives; the table ``kernel`` holds indices into them
    blocks : number of monomials of each degree
    """

    regions_per_query: int
    kernels: tuple[tuple[Profile, ...], ...]
    blocks: tuple[int, ...]


@dataclass(frozen=True)
class Design:
    """What is fixed about a model; the weight comes with its derivatives."""

    groups: tuple[Group, ...]
    weight: tuple[Profile, ...]
    background_weight: float
    flat: bool


@dataclass(frozen=True)
class Tables:
    """A model: its design, the map of its metric, and the arrays of its groups, see `_group_arrays`."""

    design: Design
    space: Arrays
    groups: tuple[Arrays, ...]


def make_tables(model: StitchedRegressor) -> Tables:
    """The tables of a fitted model with built-in local models."""
    if not isinstance(model, StitchedRegressor):
        raise TypeError(
            f"`model` must be a `StitchedRegressor`, got {type(model).__name__}. A model of `stitchwork.dask` becomes one by saving"
            " it and reading the folder with `stitchwork.load`."
        )
    check_is_fitted(model)
    shared = [list(levels) for _, levels in groupby(model._assembly.levels, key=lambda level: id(level.models))]
    # Twice at least: a derivative that exists almost everywhere is of use to an optimiser.
    order = max(2, int(model.smoothness_))
    made = [_make_group(levels, order) for levels in shared if (levels[0].radii > 0.0).any()]
    design = Design(
        groups=tuple(group for group, _ in made),
        weight=derivatives(weight_named(model.weight, model.n_features_in_), order),
        background_weight=float(model.background_weight),
        flat=model._flat,
    )
    return Tables(design, {"shift": model._space.shift, "A": model._space.A}, tuple(arrays for _, arrays in made))


def _make_group(levels: Sequence[Level], order: int) -> tuple[Group, Arrays]:
    """Levels of the same regions, and their arrays. Balls without extent contain nothing and are left out."""
    models = levels[0].models
    if not isinstance(models, BlockModels):
        raise ValueError(
            "A `local_model` of your own cannot be exported, since its code is not known here. Fit with `local_model`='krr-poly',"
            " 'krr' or 'poly'."
        )
    regions = np.flatnonzero(levels[0].radii > 0.0)
    radii = np.stack([level.radii[regions] for level in levels])
    kernels, kernel = np.unique(models.settings.kernel[regions], return_inverse=True)
    profiles = tuple(derivatives(models.settings.kernels[k], order) for k in kernels)
    basis = monomials(models.X.shape[1], int(models.settings.degree.max()))
    blocks = tuple(basis.count(e) - basis.count(e - 1) for e in range(basis.degree + 1))
    arrays = _group_arrays(models, regions)
    arrays |= {"centers": levels[0].centers[regions], "radii": radii, "reach": radii.max(axis=0), "kernel": kernel.astype(np.int64)}
    # The parent of a monomial as its place among those of one degree less.
    first = np.cumsum((0, 0, *blocks))[basis.exponents.sum(axis=1)]
    arrays |= {"parent": (basis.parent - first).astype(np.int64), "variable": basis.variable.astype(np.int64)}
    if [models.settings.kernels[k] for k in kernels] == [NO_KERNEL]:
        profiles = ()
    most = most_balls_at_a_point(arrays["centers"], _RANKING * arrays["reach"])
    return Group(min(most, len(regions)), profiles, blocks), arrays


def _group_arrays(models: BlockModels, regions: NDArray[np.intp]) -> Arrays:
    """Of local models: coordinates, members (m, d, h) in them and in units of σ, coefficients (m, h, t), (m, s, t)."""
    origin, scale, sigma = models.origin[regions], models.scale[regions], models.sigma[regions]
    X = gather(models.X, models.members[regions])  # (d, m, h)
    members = (X - origin.T[..., None]) / (scale * sigma)[:, None]
    return {
        "origin": origin,
        "scale": scale,
        "sigma": sigma,
        "members": np.ascontiguousarray(members.transpose(1, 0, 2)),
        "alpha": models.alpha[regions],
        "lam": models.lam[regions],
    }
