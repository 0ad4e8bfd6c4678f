"""What a local model is: the types that flow between regions, and models of the user's own (paper, sections 3.1 and 4).

`RegionModels` is what stitching asks of the models of all regions: `evaluate(region, Q, order)`. The built-in ones are in
`_blocks`; `ForeignModels` holds those of a `LocalModel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ._cover import Cover
from ._parallel import parallel_map

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Jet(NamedTuple):
    """A function at q points with its derivatives up to some order; those beyond it are None."""

    value: Array  # (q, t)
    gradient: Array | Any = None  # (q, t, d)
    hessian: Array | Any = None  # (q, t, d, d)


class Points(NamedTuple):
    """Distinct locations X (n, d), in Fortran order, with responses y (n, t), weights v (n,) and rows (n,) of the data."""

    X: Array
    y: Array
    v: Array
    row: Index

    def at(self, index: Index) -> Points:
        """Some of them."""
        return Points(gather(self.X, index).T, self.y[index], self.v[index], self.row[index])

    def neighbourly(self) -> Points:
        """The same, reordered so that neighbours in space are near in memory: whoever gathers them waits for it."""
        return self.at(cKDTree(self.X, leafsize=64, balanced_tree=False, compact_nodes=False).indices)


@runtime_checkable
class FittedLocalModel(Protocol):
    """A model of one region; shapes as in `StitchedRegressor`. `hessian` is needed only where a Hessian is asked for.

    Examples
    --------
    A plane, f(x) = a·x + b.

    >>> from stitchwork import FittedLocalModel
    >>> class FittedPlane:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    ...     def predict(self, X):
    ...         return X @ self.a + self.b
    ...     def gradient(self, X):
    ...         return np.tile(self.a, (len(X), 1))
    ...     def hessian(self, X):
    ...         return np.zeros((len(X), len(self.a), len(self.a)))
    >>> isinstance(FittedPlane([1.0], 0.0), FittedLocalModel)
    True
    """

    def predict(self, X: Array) -> Array:
        """Values at ``X``."""

    def gradient(self, X: Array) -> Array:
        """Exact gradients of `predict` at ``X``."""

    def hessian(self, X: Array) -> Array:
        """Exact Hessians of `predict` at ``X``."""


@runtime_checkable
class LocalModel(Protocol):
    """A model of the user's own for every region: any smooth regression with its derivatives.

    ``smoothness`` is t where the models are C^t. `fit` gets the region's points in the unit ball around 0 and must return a new
    fitted model, since it is called once per region.

    Examples
    --------
    Least squares by planes, stitched; `FittedPlane` is that of `FittedLocalModel`.

    >>> from stitchwork import StitchedRegressor
    >>> class Plane:
    ...     smoothness = np.inf
    ...     def fit(self, X, y, sample_weight):
    ...         root = np.sqrt(sample_weight)[:, None]
    ...         *a, b = np.linalg.lstsq(root * np.c_[X, np.ones(len(X))], root[:, 0] * y)[0]
    ...         return FittedPlane(np.array(a), b)
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> model = StitchedRegressor(local_model=Plane(), region_size=20).fit(X, X @ [1.0, 2.0])
    >>> model.gradient([[0.5, 0.5]])
    array([[1., 2.]])
    """

    smoothness: float

    def fit(self, X: Array, y: Array, sample_weight: Array) -> FittedLocalModel:
        """Fit one region."""


class RegionModels(Protocol):
    """What stitching needs to know of the models of all regions."""

    @property
    def smoothness(self) -> float:
        """t, where all of the models are C^t."""

    def evaluate(self, region: Index, Q: Array, order: int) -> Jet:
        """The models of ``region`` (p,), sorted, each at its row of ``Q`` (p, d)."""


def gather(X: Array, index: Index) -> Array:
    """Points of ``X`` (n, d) at ``index``, coordinates first: (d, *index.shape), so that loops run over points.

    Fast where X is in Fortran order, as `Points` and queries are.
    """
    return X.T.take(index, axis=1) if X.flags.f_contiguous else np.moveaxis(X[index], -1, 0)


def empty_jet(p: int, t: int, d: int, order: int) -> Jet:
    """Room for p points, t outputs and derivatives up to ``order`` in d dimensions."""
    return Jet(*(np.empty((p, t) + (d,) * k) for k in range(order + 1)))


def groups(region: Index) -> tuple[Index, Index]:
    """Where each run of equal values in ``region`` (p,), sorted, starts, and how long it is."""
    new = np.ones(len(region), dtype=bool)
    np.not_equal(region[1:], region[:-1], out=new[1:])
    start = np.flatnonzero(new)
    end = np.full(len(start), len(region))
    end[:-1] = start[1:]
    return start, end - start


@dataclass(frozen=True)
class ForeignModels:
    """Models of the user's own, one per region."""

    models: list[FittedLocalModel]
    origin: Array
    scale: Array
    smoothness: float
    n_outputs: int

    def evaluate(self, region: Index, Q: Array, order: int) -> Jet:
        """The user's models of ``region`` (p,), sorted, each at its row of ``Q`` (p, d)."""
        out = empty_jet(len(Q), self.n_outputs, Q.shape[1], order)
        for start, count in zip(*groups(region), strict=True):
            part = slice(start, start + count)
            for target, source in zip(out, self._one(int(region[start]), Q[part], order), strict=False):
                target[part] = source
        return out

    def _one(self, region: int, Q: Array, order: int) -> tuple[Array, ...]:
        scale, model = self.scale[region], self.models[region]
        Z = (Q - self.origin[region]) / scale
        q, d, t = *Q.shape, self.n_outputs
        names = ("predict", "gradient", "hessian")[: order + 1]
        return tuple(np.reshape(getattr(model, name)(Z), (q, t) + (d,) * k) / scale**k for k, name in enumerate(names))


def fit_foreign(points: Points, cover: Cover, model: LocalModel, flat: bool, n_jobs: int | None = None) -> ForeignModels:
    """Fit the user's model in every region; ``flat`` hands y over as (h,) instead of (h, t)."""
    origin = points.X[cover.center]

    def fit_region(region: int) -> FittedLocalModel:
        members = cover.members[region]
        Z = (points.X[members] - origin[region]) / cover.radii[region]
        y = points.y[members]
        return model.fit(Z, y[:, 0] if flat else y, points.v[members])

    models = parallel_map(fit_region, range(len(cover)), n_jobs)
    return ForeignModels(models, origin, cover.radii, model.smoothness, points.y.shape[1])
