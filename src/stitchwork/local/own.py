"""Local models of the user's own, and what stitching asks of the models of all regions.

`RegionModels` is that: `evaluate(region, Q, order)`. The built-in ones are in `blocks`; `OwnModels` holds those of a `LocalModel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from .._parallel import Threads
from .._types import Array, Index
from .points import Jet, Points, empty_jet, find_runs


@runtime_checkable
class FittedLocalModel(Protocol):
    """A model of one region; shapes as in `StitchedRegressor`. `hessian` is needed only where a Hessian is asked for.

    It may also have ``deviation(X)``, the standard deviation of a new observation in the shape of `predict`. Then the stitched
    model has standard deviations and intervals. They include the disagreement between regions, and are Gaussian, not calibrated.

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
    """What stitching needs to know of the models of all regions, whose points are ``members`` (m, h), the centre first."""

    @property
    def members(self) -> Index:
        """(m, h)"""

    @property
    def points(self) -> Points:
        """The points that ``members`` are of."""

    @property
    def smoothness(self) -> float:
        """t, where all of the models are C^t."""

    def evaluate(self, region: Index, Q: Array, order: int) -> Jet:
        """The models of ``region`` (p,), sorted, each at its row of ``Q`` (p, d)."""


@dataclass(frozen=True)
class OwnModels:
    """Models of the user's own, one per region."""

    points: Points
    members: Index
    models: list[FittedLocalModel]
    origin: Array
    scale: Array
    smoothness: float
    n_outputs: int

    def evaluate(self, region: Index, Q: Array, order: int) -> Jet:
        """The user's models of ``region`` (p,), sorted, each at its row of ``Q`` (p, d)."""
        out = empty_jet(len(Q), self.n_outputs, Q.shape[1], order)
        for start, count in zip(*find_runs(region), strict=True):
            part = slice(start, start + count)
            for target, source in zip(out, self._one(int(region[start]), Q[part], order), strict=False):
                target[part] = source
        return out

    def variance(self, region: Index, Q: Array) -> Array:
        """Squares of the deviations that the models of ``region`` (p,), sorted, tell at their rows of ``Q`` (p, d): (p, t)."""
        found = np.empty((len(Q), self.n_outputs))
        for start, count in zip(*find_runs(region), strict=True):
            part, one = slice(start, start + count), int(region[start])
            deviation = self.models[one].deviation((Q[part] - self.origin[one]) / self.scale[one])  # type: ignore[attr-defined]
            found[part] = np.square(np.reshape(deviation, (count, self.n_outputs)))
        return found

    def _one(self, region: int, Q: Array, order: int) -> tuple[Array, ...]:
        scale, model = self.scale[region], self.models[region]
        Z = (Q - self.origin[region]) / scale
        q, d, t = *Q.shape, self.n_outputs
        names = ("predict", "gradient", "hessian")[: order + 1]
        return tuple(np.reshape(getattr(model, name)(Z), (q, t) + (d,) * k) / scale**k for k, name in enumerate(names))


def fit_own(points: Points, members: Index, radii: Array, model: LocalModel, flat: bool, threads: Threads) -> OwnModels:
    """Fit the user's model in the region of each row of ``members`` (m, h); ``flat`` hands y over as (h,) instead of (h, t)."""
    origin = points.X[members[:, 0]]

    def fit_region(region: int) -> FittedLocalModel:
        Z = (points.X[members[region]] - origin[region]) / radii[region]
        y = points.y[members[region]]
        return model.fit(Z, y[:, 0] if flat else y, points.v[members[region]])

    models = threads.map(fit_region, range(len(members)), "fit")
    return OwnModels(points, members, models, origin, radii, model.smoothness, points.y.shape[1])
