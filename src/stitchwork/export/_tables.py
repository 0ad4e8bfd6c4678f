"""A fitted model as plain tables: what the exported code reads, and nothing else.

Levels that share their models (the regions and the wider regions) are one group: one set of tables, one lookup, one evaluation of
the local models, and one set of weights for each of the levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..local.polynomial import monomials
from ..local.radial import NO_KERNEL, Profile, kernel_named
from ..model.bounds import bound_answers, bound_regions
from ..model.chart import Chart
from ..model.description import describe
from ..model.stitched import StitchedModel
from ._overlaps import most_balls_at_a_point

Arrays = dict[str, NDArray]

# Regions are ranked in single precision, so a ball counts as this much larger where the number of regions to look at is bounded.
_RANKING = 1.0 + 1e-6


@dataclass(frozen=True)
class Group:
    """What is fixed about levels that share their models.

    Attributes
    ----------
    regions_per_query : K, a bound on how many regions of the widest level contain one point
    kernels : those in use; the table ``kernel`` holds indices into them
    blocks : number of monomials of each degree
    """

    regions_per_query: int
    kernels: tuple[Profile, ...]
    blocks: tuple[int, ...]


@dataclass(frozen=True)
class Design:
    """What is fixed about a model; radial functions are differentiated up to ``order``."""

    groups: tuple[Group, ...]
    weight: Profile
    order: int
    handover: float
    background_weight: float
    mean_weight: tuple[float, ...]
    flat: bool
    link: str
    chart: Chart | None


@dataclass(frozen=True)
class Tables:
    """A model: its design, the map of its metric, and the arrays of its groups, see `_make_group`."""

    design: Design
    space: Arrays
    groups: tuple[Arrays, ...]


def make_tables(estimator: Any) -> Tables:
    """The tables of a fitted estimator with built-in local models."""
    if isinstance(estimator, BaseEstimator):
        check_is_fitted(estimator)
    model = getattr(estimator, "model_", None)
    if not isinstance(model, StitchedModel):
        raise TypeError(
            f"`model` must be a fitted `StitchedRegressor`, got {type(estimator).__name__}. A model of `stitchwork.dask` becomes"
            " one by `to_local`, or by saving it and reading the folder with `stitchwork.load`."
        )
    if model.settings is None:
        raise ValueError(
            "A `local_model` of your own cannot be exported, since its code is not known here. Fit with `local_model`='krr-poly',"
            " 'krr' or 'poly'."
        )
    header, arrays = describe(model)
    kernels = tuple(kernel_named(name, model.dimension).profile for name in header["kernels"].split(","))
    made, mean_weight = [], []
    pairs = zip(arrays["levels/regions"].tolist(), model.levels, strict=True)
    for k, same in groupby(pairs, key=lambda level: level[0]):
        supports = [level.support for _, level in same]
        own = {name.removeprefix(f"regions{k}/").removeprefix("model0/"): arrays[name] for name in arrays if f"regions{k}/" in name}
        if (own["radii"] > 0.0).any():
            made.append(_make_group({"X": arrays["points/X"]} | own, np.array([support.reach for support in supports]), kernels))
            mean_weight += [support.mean_weight for support in supports]
    design = Design(
        groups=tuple(group for group, _ in made),
        weight=model.weight.profile,
        # Twice at least: a derivative that exists almost everywhere is of use to an optimiser.
        order=max(2, int(model.smoothness)),
        handover=float(arrays["stitch/handover"][0]),
        background_weight=float(arrays["stitch/background_weight"][0]),
        mean_weight=tuple(mean_weight),
        flat=model.flat,
        link=model.origin.link,
        chart=model.chart,
    )
    box, answers = model.inside, bound_answers(model.extremes)
    space = {"shift": arrays["space/shift"], "A": arrays["space/A"], "lower": box.lower, "upper": box.upper, "margin": box.margin}
    space |= {"least": answers.lower, "most": answers.upper, "leeway": answers.margin}
    return Tables(design, space, tuple(tables for _, tables in made))


def _make_group(own: Arrays, reach: NDArray, kernels: tuple[Profile, ...]) -> tuple[Group, Arrays]:
    """Levels of the same regions with a support of each ``reach``, and their arrays.

    Members (m, d, h) are in the regions' coordinates and in units of σ; ``beta`` (m, d, h, t) are the vectors of measured slopes.
    Balls without extent contain nothing and are left out.
    """
    kept = np.flatnonzero(own["radii"] > 0.0)
    whole = {name: own.pop(name) for name in ("X", "turns", "together", "extremes") if name in own}
    X, own = whole["X"], {name: array[kept] for name, array in own.items()} | {k: v for k, v in whole.items() if k == "turns"}
    radii, d = reach[:, None] * own["radii"], own["origin"].shape[1]
    used, kernel = np.unique(own["kernel"], return_inverse=True)
    basis = monomials(d, int(own["degree"].max()))
    blocks = tuple(basis.count(e) - basis.count(e - 1) for e in range(basis.degree + 1))
    # The parent of a monomial as its place among those of one degree less.
    first = np.cumsum((0, 0, *blocks))[basis.exponents.sum(axis=1)]
    members = X[own["members"]] - own["origin"][:, None]
    tables = {name: own[name] for name in ("centers", "origin", "scale", "sigma", "alpha")}
    if "turns" in own:
        tables["turns"] = own["turns"][own["turn"]]
        members = members @ tables["turns"]
    members /= (own["scale"] * own["sigma"])[:, None, None]
    tables["share"] = own.get("share", np.ones(len(kept))).reshape(len(kept), -1)
    tables |= {
        "radii": radii,
        "reach": radii.max(axis=0),
        "kernel": kernel.astype(np.int64),
        "members": np.ascontiguousarray(members.swapaxes(1, 2)),
        "lam": own["lam"][:, : len(basis)],
        "parent": (basis.parent - first).astype(np.int64),
        "variable": basis.variable.astype(np.int64),
    }
    if "beta" in own:
        tables["beta"] = np.moveaxis(own["beta"].reshape(*own["alpha"].shape, d), 3, 1).copy()
    if "extremes" in whole:
        bounds = bound_regions(whole["extremes"][:, kept])
        tables |= {"least": bounds.lower, "most": bounds.upper, "leeway": bounds.margin}
    profiles = tuple(kernels[k] for k in used)
    most = most_balls_at_a_point(tables["centers"], _RANKING * tables["reach"])
    return Group(min(most, len(kept)), () if profiles == (NO_KERNEL.profile,) else profiles, blocks), tables
