"""A fitted model as a function: values, derivatives, coverage, and which regions speak at a point.

What is asked is checked, cut into chunks of neighbouring queries bounded by memory, shared among threads, evaluated by `_stitch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from sklearn import get_config
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ._assembly import Assembly
from ._grid import grid_dataset
from ._local import Jet, Points, gather
from ._metric import Space
from ._parallel import parallel_map, slices
from ._radial import Radial, weight_named
from ._stitch import coverage, stitched, voices
from ._validation import check_normals

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_LARGEST_CHUNK = 1 << 16
_SMALL_QUERY = 64  # up to here, sorting, chunking and threads cost more than they bring


class Voice(NamedTuple):
    """One region's part in a prediction.

    Attributes
    ----------
    level : 0 for the regions, more for the levels of the background behind them
    region : index of the region in its level
    share : its weight in the average; those of all voices sum to one
    value : what it says, a float or (t,)
    center, radius : of the region, the radius as the metric measures it
    settings : kernel, degree, bandwidth and ridge, empty for a model of your own

    Examples
    --------
    >>> X = np.linspace(0, 1, 400)[:, None]
    >>> loudest = StitchedRegressor(kernel="cubic").fit(X, X[:, 0] ** 2).voices([0.3])[0]
    >>> loudest.level, loudest.settings["kernel"]
    (0, 'cubic')
    """

    level: int
    region: int
    share: float
    value: Any
    center: Array
    radius: float
    settings: dict[str, Any]


class StitchedFunction:
    """What can be asked of a fitted model. `StitchedRegressor` is one."""

    _assembly: Assembly
    _points: Points
    _space: Space
    _frame: Array  # least, greatest and median value of every feature, (3, d)
    _flat: bool
    n_features_in_: int
    n_jobs: int | None
    smoothness_: float
    weight: str
    background_weight: float

    def predict(self, X: ArrayLike) -> Array:
        """Values at ``X`` (q, d), as (q,) or (q, t).

        Examples
        --------
        >>> model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> model.predict([[1.5], [3.0]])
        array([4., 7.])
        """
        return self._flattened(self._jet(self._checked(X), 0).value)

    def gradient(self, X: ArrayLike, normals: ArrayLike | None = None) -> Array:
        """Exact gradients at ``X`` (q, d), as (q, d) or (q, t, d).

        With ``normals`` (q, d) of a surface at the queries, surface gradients (I - n nᵀ) ∇f.

        Examples
        --------
        The gradient of 2 x + 3 y + z, and its part along the plane z = 0.

        >>> X = np.random.default_rng(0).uniform(size=(50, 3))
        >>> model = StitchedRegressor().fit(X, X @ [2.0, 3.0, 1.0])
        >>> model.gradient([[0.5, 0.5, 0.5]])
        array([[2., 3., 1.]])
        >>> np.round(model.gradient([[0.5, 0.5, 0.5]], normals=[[0.0, 0.0, 1.0]]), 6)
        array([[2., 3., 0.]])
        """
        return self.predict_with_gradient(X, normals)[1]

    def predict_with_gradient(self, X: ArrayLike, normals: ArrayLike | None = None) -> tuple[Array, Array]:
        """Values and gradients in one lookup.

        Examples
        --------
        >>> model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> value, gradient = model.predict_with_gradient([[1.5]])
        >>> value, gradient
        (array([4.]), array([[2.]]))
        """
        jet = self._jet(self._checked(X), 1)
        gradient = self._flattened(jet.gradient)
        if normals is not None:
            N = check_normals(normals, (len(gradient), gradient.shape[-1]))
            N = N if gradient.ndim == 2 else N[:, None, :]
            gradient = gradient - (gradient * N).sum(axis=-1, keepdims=True) * N
        return self._flattened(jet.value), gradient

    def hessian(self, X: ArrayLike) -> Array:
        """Exact Hessians at ``X`` (q, d), as (q, d, d) or (q, t, d, d).

        Raises
        ------
        ValueError
            If the prediction is not twice continuously differentiable.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(size=(100, 2))
        >>> model = StitchedRegressor(local_model="poly", degree=2).fit(X, X[:, 0] ** 2 + 3 * X.prod(axis=1))
        >>> np.round(model.hessian([[0.5, 0.5]]), 6)
        array([[[2., 3.],
                [3., 0.]]])
        """
        return self._flattened(self._jet(self._checked(X), 2).hessian)

    def __call__(self, x: ArrayLike, nu: Sequence[int] | None = None) -> Array:
        """The function or one of its partial derivatives at ``x`` (…, d), as `scipy.interpolate.NdBSpline` does it: (…) or (…, t).

        ``nu`` has the order of the derivative in each feature, (d,); they sum to two at most.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(size=(50, 2))
        >>> model = StitchedRegressor(local_model="poly", degree=2).fit(X, X[:, 0] * X[:, 1])
        >>> np.round(model([0.5, 0.25], nu=(1, 1)), 6)
        1.0
        """
        check_is_fitted(self)
        d = self.n_features_in_
        x = self._checked(x) if hasattr(x, "columns") else np.asarray(x, dtype=np.float64)
        orders = np.zeros(d) if nu is None else np.asarray(nu)
        if x.ndim == 0 or x.shape[-1] != d:
            raise ValueError(f"`x` must have {d} features along its last axis, got shape {x.shape}.")
        if orders.shape != (d,) or not (np.isin(orders, (0, 1, 2)).all() and orders.sum() <= 2):
            raise ValueError(f"`nu` must have {d} orders of derivatives, one for each feature, of sum two at most, got {nu!r}.")
        along = np.repeat(np.arange(d), orders.astype(int))
        flat = check_array(x.reshape(-1, d), ensure_min_samples=0)
        found = self._flattened(self._jet(flat, len(along))[len(along)][(..., *along)])
        return found.reshape(x.shape[:-1] + found.shape[1:])

    def coverage(self, X: ArrayLike) -> Array:
        """How much of the prediction at ``X`` (q, d) comes from regions that hold data there, (q,).

        1 inside the data, falling smoothly to 0 outside of all regions, where the background answers.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> StitchedRegressor(kernel="gaussian").fit(X, X[:, 0] ** 2).coverage([[0.5], [2.0]])
        array([1., 0.])
        """
        return self._coverage(self._checked(X))

    def voices(self, x: ArrayLike) -> list[Voice]:
        """Which regions speak at one point ``x`` (d,), with what weight and to say what; the loudest first.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> model = StitchedRegressor(kernel="gaussian").fit(X, X[:, 0] ** 2)
        >>> voices = model.voices([0.3])
        >>> round(sum(voice.share for voice in voices), 12), round(sum(voice.share * voice.value for voice in voices), 6)
        (1.0, 0.09)
        """
        check_is_fitted(self)
        point = check_array(np.reshape(x, (1, -1)), dtype=np.float64)
        if point.shape[1] != self.n_features_in_:
            raise ValueError(f"`x` must be one point of {self.n_features_in_} features, got {point.shape[1]}.")
        Q, found = self._space.coordinates(point), []
        for depth, region, share, value in voices(self._assembly.levels, Q, self._weight, float(self.background_weight)):
            level = self._assembly.levels[depth]
            center = self._space.original(level.centers[region : region + 1])[0]
            radius, said = float(level.radii[region] / self._space.unit), float(value[0]) if self._flat else value
            settings = getattr(level.models, "settings", None)
            found.append(Voice(depth, region, share, said, center, radius, settings.named(region) if settings else {}))
        return sorted(found, key=lambda voice: -voice.share)

    def grid(
        self,
        shape: int | Sequence[int],
        bounds: Mapping[str, tuple[float, float]] | None = None,
        *,
        gradient: bool = False,
        coverage: bool = False,
    ) -> Any:
        """The function on a regular grid, as an `xarray.Dataset`.

        Parameters
        ----------
        shape : int or sequence of int
            Number of coordinates along each feature.
        bounds : mapping of a feature's name to its least and greatest coordinate, optional
            The data's own unless given.
        gradient, coverage : bool
            Whether to add the derivatives, named ``dy/da``, and the coverage.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(size=(50, 2))
        >>> field = StitchedRegressor().fit(X, X @ [2.0, 3.0]).grid((3, 4), gradient=True)
        >>> dict(field.sizes), list(field.data_vars)
        ({'x0': 3, 'x1': 4}, ['y', 'dy/dx0', 'dy/dx1'])
        """
        check_is_fitted(self)
        return grid_dataset(self, shape, bounds, gradient, coverage)

    @property
    def _weight(self) -> Radial:
        return weight_named(self.weight, self.n_features_in_)

    def _checked(self, X: ArrayLike) -> Array:
        """Queries (q, d) as a clean array.

        A clean array is taken as it is: scikit-learn would return the same, but a call for one row would spend its time there.
        """
        if not hasattr(self, "_assembly"):
            check_is_fitted(self)
        clean = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and len(X) > 0 and np.isfinite(X).all()
        if not clean or hasattr(self, "feature_names_in_") or np.shape(X)[1] != self.n_features_in_:
            X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(X)

    def _coverage(self, X: Array) -> Array:
        Q, level = self._space.coordinates(X), self._assembly.levels[0]
        out = np.empty(len(Q))

        def fill(query: Index) -> None:
            out[query] = coverage(level, gather(Q, query).T, self._weight, float(self.background_weight))

        self._in_chunks(Q, 8 * self._assembly.cover.members.shape[1], fill)
        return out

    def _jet(self, X: Array, order: int) -> Jet:
        """The stitched function at ``X`` with derivatives up to ``order``, in chunks bounded by scikit-learn's working memory."""
        check_smoothness(order, self.smoothness_, self.weight)
        Q = self._space.coordinates(X)
        (q, d), t = Q.shape, self._points.y.shape[1]
        evaluate = partial(stitched, self._assembly.levels, order=order, weight=self._weight, w0=float(self.background_weight))
        if q <= _SMALL_QUERY:
            return self._space.pull_back(evaluate(Q))
        out = [np.empty((q, t) + (d,) * k) for k in range(order + 1)]

        def fill(query: Index) -> None:
            jet = self._space.pull_back(evaluate(gather(Q, query).T))
            for target, source in zip(out, jet, strict=False):
                target[query] = source

        h = self._assembly.cover.members.shape[1]
        self._in_chunks(Q, 8 * (h * (order + 3) + 8 * (t + 1) * sum(d**k for k in range(order + 1))), fill)
        return Jet(*out)

    def _in_chunks(self, Q: Array, per_query: int, fill: Callable[[Index], None]) -> None:
        """Call ``fill`` with chunks of neighbouring queries, so that each touches few regions, of so many bytes each."""
        threads = max(1, effective_n_jobs(self.n_jobs))
        budget = get_config()["working_memory"] * 2**20 / (8 * threads)
        size = min(int(np.clip(budget / per_query, _SMALL_QUERY, _LARGEST_CHUNK)), max(1, -(-len(Q) // threads)))
        order = cKDTree(Q, leafsize=size, balanced_tree=True).indices if len(Q) > size else np.arange(len(Q))
        parallel_map(lambda part: fill(order[part]), slices(len(Q), size), self.n_jobs)

    def _flattened(self, array: Any) -> Array:
        return array[:, 0] if self._flat else array


def check_smoothness(order: int, smoothness: float, weight: str) -> None:
    """Raise a `ValueError` where a prediction of class C^smoothness has no derivatives of that ``order``."""
    if order == 0 or order <= smoothness:
        return
    name = {1: "gradient", 2: "hessian"}[order]
    is_ = f"is of class C{smoothness:.0f}" if smoothness >= 0 else "jumps at the borders of regions"
    raise ValueError(
        f"`{name}` needs a prediction of class C{order}, but with `weight`={weight!r} and the kernels in use this one"
        f" {is_}. Fit with `weight`='wendland-c2' (or a higher order) and a smoother `kernel`, such as 'gaussian' or 'auto'."
    )
