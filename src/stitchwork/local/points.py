"""The arrays that flow between the steps: points with their responses, and functions with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from .._types import Array, Index

_FEW = 2000


class Jet(NamedTuple):
    """A function at q points with its derivatives up to some order; those beyond it are None."""

    value: Array  # (q, t)
    gradient: Array | Any = None  # (q, t, d)
    hessian: Array | Any = None  # (q, t, d, d)


def empty_jet(q: int, t: int, d: int, order: int) -> Jet:
    """Room for q points, t outputs and derivatives up to ``order`` in d dimensions."""
    return Jet(*(np.empty((q, t) + (d,) * k) for k in range(order + 1)))


class Repeats(NamedTuple):
    """How many responses each of n locations has, (n,), and their weighted sum of squares about the mean, (n, t)."""

    often: Array
    spread: Array

    def at(self, index: Index) -> Repeats:
        """Of some locations."""
        return Repeats(self.often[index], self.spread[index])


class Merging(NamedTuple):
    """Which of N rows share a location: the first row there, -1 for rows without weight, and each row's share in the mean.

    With slopes, shares are (N, 1 + k): those in the response, and in each slope.
    """

    first: Index
    share: Array

    def matrix(self) -> csr_array:
        """C (N, N) with the shares of each location's rows in the row of its first: C y has the mean responses.

        With slopes (N (1 + k), N (1 + k)): responses, then slopes row by row.
        """
        rows, n = np.flatnonzero(self.first >= 0), len(self.first)
        share = self.share.reshape(n, -1)
        each = share.shape[1]
        to, own = equations_of(self.first[rows], n, each - 1), equations_of(rows, n, each - 1)
        C = csr_array((share[rows].ravel(), (to.ravel(), own.ravel())), shape=(n * each, n * each))
        C.eliminate_zeros()  # what was not measured may be NaN
        return C


def equations_of(row: Index, n: int, k: int) -> Index:
    """Of rows (…) among n, with k slopes each, the numbers (…, 1 + k) of equations: n responses, then slopes row by row."""
    return np.concatenate([row[..., None], n + row[..., None] * k + np.arange(k)], axis=-1)


class Slopes(NamedTuple):
    """Measured slopes of n locations, k directional derivatives at each.

    Attributes
    ----------
    direction : (n, k, d) in the coordinates of the locations
    value : (n, k, t)
    weight : (n, 1 + k) of the response and of each slope, in units of the location's weight; zero where it was not measured
    told : whether weights of slopes are ratios of variances of errors; otherwise slopes are compared per radius of a region
    feature : (k,) the feature by which each slope is; None where these are all features, in their order
    """

    direction: Array
    value: Array
    weight: Array
    told: bool = False
    feature: Index | None = None

    def at(self, index: Index) -> Slopes:
        """Of some locations."""
        return self._replace(direction=self.direction[index], value=self.value[index], weight=self.weight[index])

    def map_by(self, A: Array) -> Slopes:
        """The same slopes where locations are multiplied by ``A`` (d, e)."""
        return self._replace(direction=self.direction @ A)


class Points(NamedTuple):
    """Distinct locations X (n, d), in Fortran order, with responses y (n, t), weights v (n,) and rows (n,) of the data.

    Points of one ``group`` (n,), a curve, a track or a subject, are left out together; None where each stands alone. ``repeats`` is
    None where each was observed once. ``given`` (n, d) are the features as they were given, where X is in the space of the regions.
    ``slopes`` are measured ones, None where there are none; then y is filled in where it was not measured.
    """

    X: Array
    y: Array
    v: Array
    row: Index
    group: Index | None = None
    repeats: Repeats | None = None
    given: Array | None = None
    slopes: Slopes | None = None

    @property
    def equations(self) -> int:
        """Number of equations of each location: its response, and its slopes."""
        return 1 if self.slopes is None else self.slopes.weight.shape[1]

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Whether the response of each location was measured, (n,)."""
        return np.ones(len(self.v), dtype=bool) if self.slopes is None else self.slopes.weight[:, 0] > 0.0

    def in_units(self, unit: Array) -> Points:
        """The same with responses in these units (t,)."""
        slopes = None if self.slopes is None else self.slopes._replace(value=self.slopes.value / unit)
        return self._replace(y=self.y / unit, slopes=slopes)

    def output(self, k: int) -> Points:
        """The same with one of its outputs."""
        slopes = None if self.slopes is None else self.slopes._replace(value=np.array(self.slopes.value[..., [k]]))
        repeats = None if self.repeats is None else self.repeats._replace(spread=np.array(self.repeats.spread[:, [k]]))
        return self._replace(y=np.array(self.y[:, [k]]), repeats=repeats, slopes=slopes)

    def at(self, index: Index) -> Points:
        """Some of them."""
        group = None if self.group is None else self.group[index]
        repeats = None if self.repeats is None else self.repeats.at(index)
        given = None if self.given is None else self.given[index]
        slopes = None if self.slopes is None else self.slopes.at(index)
        return Points(gather(self.X, index).T, self.y[index], self.v[index], self.row[index], group, repeats, given, slopes)

    def observed(self) -> Repeats:
        """The repeats of all locations, also where each was observed once."""
        return Repeats(np.ones(len(self.v)), np.zeros_like(self.y)) if self.repeats is None else self.repeats

    def sort_in_space(self) -> Points:
        """The same, reordered so that neighbours in space are near in memory: gathering them is bound by memory access.

        The new order does not depend on the old one, so that samples of the points do not either. Few points are near each other in
        memory anyway: they are sorted by their coordinates alone, which a unit or a repeated feature does not change.
        """
        order = np.lexsort(self.X.T[::-1])
        if len(order) <= _FEW:
            return self.at(order)
        return self.at(order[cKDTree(self.X[order], leafsize=64, balanced_tree=False, compact_nodes=False).indices])


def join_points(*parts: Points) -> Points:
    """Points of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    X, y, v, row = (np.concatenate([part[k] for part in parts]) for k in range(4))
    groups = [part.group for part in parts if part.group is not None]
    repeats = None
    if any(part.repeats is not None for part in parts):
        repeats = Repeats(*(np.concatenate(column) for column in zip(*(part.observed() for part in parts), strict=True)))
    given = [part.given for part in parts if part.given is not None]
    return Points(
        np.asfortranarray(X),
        y,
        v,
        row,
        np.concatenate(groups) if groups else None,
        repeats,
        np.concatenate(given) if given else None,
        join_slopes([part.slopes for part in parts if part.slopes is not None]),
    )


def join_slopes(parts: Sequence[Slopes]) -> Slopes | None:
    """Slopes of all parts, one after the other; None of none."""
    if not parts:
        return None
    direction, value, weight = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("direction", "value", "weight")
    )
    return Slopes(direction, value, weight, parts[0].told, parts[0].feature)


def gather(X: Array, index: Index) -> Array:
    """Points of ``X`` (n, d) at ``index``, coordinates first: (d, *index.shape), so that loops run over points.

    Fast where X is in Fortran order, as `Points` and queries are.
    """
    return X.T.take(index, axis=1) if X.flags.f_contiguous else np.moveaxis(X[index], -1, 0)


def find_runs(region: Index) -> tuple[Index, Index]:
    """Where each run of equal values in ``region`` (p,), sorted, starts, and how long it is."""
    new = np.ones(len(region), dtype=bool)
    np.not_equal(region[1:], region[:-1], out=new[1:])
    start = np.flatnonzero(new)
    end = np.full(len(start), len(region))
    end[:-1] = start[1:]
    return start, end - start
