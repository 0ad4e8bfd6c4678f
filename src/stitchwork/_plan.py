"""The plan of a fit: what the constructor's parameters come to on data of a given size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ._local import LocalModel
from ._radial import Radial, weight_named
from ._select import (
    AUTO_RIDGES,
    FIXED_BANDWIDTH,
    FIXED_RIDGE,
    Grid,
    auto_degrees,
    auto_region_size,
    candidate_kernels,
    make_grid,
    with_bandwidths,
    with_degrees,
)

Index = NDArray[np.intp]

_SPOKEN = 1.3  # how far beyond the points that it covers a region speaks


@dataclass(frozen=True)
class Plan:
    """Everything that a fit needs besides the points.

    ``overlap`` is None where the points decide, ``shuffle`` seeds a random scan of the cover, ``moves`` vary the grid during the
    search, ``foreign`` is the user's own local model, ``flat`` says that y had one axis, ``response_ridge`` asks for the paper's
    fixed ridge.
    """

    h: int
    overlap: float | None
    shuffle: int | None
    grid: Grid
    foreign: LocalModel | None
    flat: bool
    selection: str | None
    moves: tuple[Callable[[Grid], Grid], ...]
    response_ridge: bool
    tolerance: float
    weight: Radial
    w0: float
    background: str
    n_jobs: int | None
    verbose: bool

    def progress(self, name: str) -> str | None:
        """Name of a progress bar, if bars are wanted."""
        return name if self.verbose else None

    @property
    def reach(self) -> float:
        """Share of its radius within which a region speaks: a little beyond where it covers, never beyond its points."""
        return min(1.0, _SPOKEN / (1.0 + (self.overlap or 0.0)))

    def scan(self, row: Index) -> Index:
        """The order in which the cover visits points from these rows of the data: as stored there, or at random."""
        stored = np.argsort(row)
        return stored if self.shuffle is None else stored[np.random.RandomState(self.shuffle).permutation(len(row))]


def make_plan(parameters: dict[str, Any], n: int, d: int, flat: bool) -> Plan:
    """The plan for n distinct points in d dimensions, from checked constructor parameters."""
    p = parameters
    h = min(auto_region_size(n, d) if isinstance(p["region_size"], str) else p["region_size"], n)
    foreign = None if isinstance(p["local_model"], str) else p["local_model"]
    random = p["order"] == "random"
    grid, moves = _grid_and_moves(p, h, d)
    return Plan(
        h=h,
        overlap=None if isinstance(p["overlap"], str) else float(p["overlap"]),
        shuffle=check_random_state(p["random_state"]).randint(2**31 - 1) if random else None,
        grid=grid,
        foreign=foreign,
        flat=flat,
        selection=p["selection"],
        moves=moves,
        response_ridge=isinstance(p["ridge"], str) and p["ridge"] == "response",
        tolerance=float(p["rank_tolerance"]),
        weight=weight_named(p["weight"], d),
        w0=float(p["background_weight"]),
        background=p["background"],
        n_jobs=p["n_jobs"],
        verbose=bool(p["verbose"]),
    )


def _grid_and_moves(p: dict[str, Any], h: int, d: int) -> tuple[Grid, tuple[Callable[[Grid], Grid], ...]]:
    """The candidates to begin with, and how the search varies them."""
    chosen = p["selection"] is not None
    kind = p["local_model"] if isinstance(p["local_model"], str) else "krr-poly"
    name = p["kernel"] if chosen or p["kernel"] != "auto" else "gaussian"
    kernels = candidate_kernels(name, kind, h, d, weight_named(p["weight"], d).smoothness)
    moves: list[Callable[[Grid], Grid]] = []
    degree = -1 if kind == "krr" else p["degree"]
    if isinstance(degree, str):
        every = auto_degrees(h, d)
        degree = min(every[-1], 1 if chosen else 2)
        moves.append(partial(with_degrees, degrees=every))
    if isinstance(p["bandwidth"], str):
        moves += [partial(with_bandwidths, factor=2.0), partial(with_bandwidths, factor=2.0**0.5)]
    bandwidths = _values(p["bandwidth"], () if chosen else (FIXED_BANDWIDTH,))
    ridges = _values(p["ridge"], AUTO_RIDGES if chosen and p["ridge"] == "auto" else (FIXED_RIDGE,))
    return make_grid(kernels, (int(degree),), bandwidths, ridges), tuple(moves)


def _values(value: Any, auto: tuple[float, ...]) -> tuple[float, ...]:
    """A parameter as candidates; a word stands for ``auto``."""
    return auto if isinstance(value, str) else tuple(np.atleast_1d(value).ravel().astype(float))
