"""A fitted model as a function: values, derivatives, coverage, and what each region contributes.

Queries are checked here and passed to the current model; results get the shape that users expect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from ._types import Array
from ._uncertainty import UncertainFunction, check_count, check_whole, shape_like
from ._validation import check_normals, read_bounds
from ._validation.rows import as_frame
from .fitting.suggest import choose_candidates, suggest_points
from .model.operator import find_bound, weigh_rows
from .model.stitch import Contribution
from .model.stitched import StitchedModel
from .views.asked import Asked, per_unit
from .views.grid import grid_dataset, make_grid


class StitchedFunction(UncertainFunction):
    """Predictions, derivatives and samples of a fitted model. `StitchedRegressor` is one."""

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        std_of: str = "observation",
        noise_std: ArrayLike | None = None,
        return_cov: bool = False,
    ) -> Any:
        """Values at ``X`` (q, d), as (q,) or (q, t), optionally with standard deviations of the same shape, or a covariance.

        Parameters
        ----------
        X : array-like of shape (q, d)
        return_std : bool
            Whether to return standard deviations, too. They are calibrated by leave-one-out, which is computed at first use.
        std_of : {"observation", "function"}
            The standard deviation of a new observation, noise included, or that of the function without noise.
        noise_std : array-like of shape (q,) or (q, t), optional
            Standard deviation of the error of each new observation. By default, new observations are as noisy as the data; if the
            model was fitted with `noise_std`, they have its typical error.
        return_cov : bool
            Whether to return the covariance of new observations at the queries, too, (q, q) or (q, q, t): the covariance of the
            function plus the noise variance on the diagonal. ``std_of="function"`` leaves out the noise.

        Examples
        --------
        >>> model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> model.predict([[0.5], [1.5]]).round(2)
        array([2., 4.])
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> noise = 0.1 * np.random.default_rng(0).normal(size=400)
        >>> value, deviation = StitchedRegressor(kernel="matern52").fit(X, X[:, 0] ** 2 + noise).predict([[0.5]], return_std=True)
        >>> bool(0.08 < deviation[0] < 0.12)
        True

        Errors of nearby predictions are correlated:

        >>> model = StitchedRegressor(kernel="matern52").fit(X[::40], X[::40, 0] ** 2 + noise[::40])
        >>> value, covariance = model.predict([[0.5], [0.51], [0.9]], return_cov=True, std_of="function")
        >>> deviation = np.sqrt(np.diag(covariance))
        >>> correlation = covariance / np.outer(deviation, deviation)
        >>> bool(correlation[0, 1] > 0.9 > 0.6 > correlation[0, 2])
        True
        """
        if std_of not in ("observation", "function"):
            raise ValueError(f"`std_of` must be 'observation' or 'function', got {std_of!r}.")
        if return_std and return_cov:
            raise ValueError("Ask for one of `return_std` and `return_cov`: the diagonal of the covariance is the variance.")
        model, Q = self._ask(X)
        if not (return_std or return_cov):
            return shape_like(model, model.jet(Q, 0, self._threads).value)
        if return_cov:
            return self._predict_covariance(model, Q, std_of == "function", noise_std)
        s2 = self._variances_at(Q, noise_std, model.n_outputs)
        moments = model.moments(Q, self._threads, s2)
        return shape_like(model, moments.value), shape_like(model, moments.deviation(std_of == "function"))

    def gradient(self, X: ArrayLike, normals: ArrayLike | None = None, return_std: bool = False, unit: str | None = None) -> Any:
        """Exact gradients at ``X`` (q, d), as (q, d) or (q, t, d), optionally with standard deviations of the same shape.

        With ``normals`` (q, d) of a surface at the queries, surface gradients (I - n nᵀ) ∇f. With ``unit="metres"``, a `geographic`
        model returns derivatives per metre to the east and to the north instead of per degree of longitude and latitude, on a
        sphere of radius 6,371,008.8 m. At a pole, the longitude of the query defines east and north.

        Examples
        --------
        The gradient of 2 x + 3 y + z, and its part along the plane z = 0.

        >>> X = np.random.default_rng(0).uniform(size=(50, 3))
        >>> model = StitchedRegressor().fit(X, X @ [2.0, 3.0, 1.0])
        >>> model.gradient([[0.5, 0.5, 0.5]])
        array([[2., 3., 1.]])
        >>> np.round(model.gradient([[0.5, 0.5, 0.5]], normals=[[0.0, 0.0, 1.0]]), 6)
        array([[2., 3., 0.]])

        A field that falls by 30 from the equator to the poles: by 4.7e-6 per metre where it is steepest, halfway.

        >>> X = np.random.default_rng(0).uniform((-180, -90), (180, 90), size=(500, 2))
        >>> globe = StitchedRegressor(geographic=(0, 1)).fit(X, 30 * np.cos(np.radians(X[:, 1])) ** 2)
        >>> np.round(1e6 * globe.gradient([[180.0, 45.0]], unit="metres"), 1) + 0.0
        array([[ 0. , -4.7]])
        """
        if not return_std:
            return self.predict_with_gradient(X, normals, unit)[1]
        if normals is not None:
            raise ValueError("Standard deviations exist for the full gradient only: use `return_std` without `normals`.")
        model, Q = self._ask(X)
        scale = per_unit(model, Q, unit)
        gradient, deviation = model.slopes(Q, self._threads)
        return shape_like(model, gradient * scale), shape_like(model, deviation * scale)

    def predict_with_gradient(self, X: ArrayLike, normals: ArrayLike | None = None, unit: str | None = None) -> tuple[Array, Array]:
        """Values and gradients in one lookup; ``normals`` and ``unit`` are those of `gradient`.

        Examples
        --------
        >>> model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> value, gradient = model.predict_with_gradient([[1.5]])
        >>> value, gradient
        (array([4.]), array([[2.]]))
        """
        model, Q = self._ask(X)
        scale = per_unit(model, Q, unit)
        jet = model.jet(Q, 1, self._threads)
        gradient = shape_like(model, jet.gradient if unit is None else jet.gradient * scale)
        return shape_like(model, jet.value), gradient if normals is None else self._project(gradient, normals)

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
        >>> np.round(model.hessian([[0.5, 0.5]]), 6) + 0.0
        array([[[2., 3.],
                [3., 0.]]])
        """
        model, Q = self._ask(X)
        return shape_like(model, model.jet(Q, 2, self._threads).hessian)

    def operator(self, X: ArrayLike, derivative: int = 0, output: int | None = None, return_bound: bool = False) -> Any:
        """The prediction at ``X`` (q, d) as a sparse matrix W: ``W @ y`` equals ``predict(X)`` for responses y.

        For fixed hyperparameters, the prediction is linear in the responses. W has one column for each row of the training data, in
        their order. Where local models have a polynomial, rows of W sum to one, and rows for derivatives to zero. Predictions far
        outside the data, or far beyond the responses of a region, are bounded: there, ``W @ y`` is the unbounded prediction.

        With measured slopes, W has n (1 + d) columns: first those of the responses, then those of the slopes, row by row. Apply it
        to ``np.concatenate([y, G.ravel()])``, where G (n, d) is the `gradient` passed to `fit`, with its NaNs.

        Parameters
        ----------
        X : array-like of shape (q, d)
        derivative : {0, 1, 2}
            0: W is (q, n). 1: (q d, n), and ``(W @ y).reshape(q, d)`` is `gradient`. 2: (q d d, n), likewise for `hessian`.
        output : int, optional
            Which output, if each output has its own models. Otherwise one operator serves all outputs.
        return_bound : bool
            Whether to return also which predictions are bounded, bool (q,).

        Returns
        -------
        W : scipy.sparse.csr_array

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(size=(300, 2))
        >>> y = np.sin(3 * X[:, 0]) * X[:, 1]
        >>> model = StitchedRegressor(kernel="matern52").fit(X, y)
        >>> W = model.operator([[0.5, 0.5]])
        >>> W.shape, np.allclose(W @ y, model.predict([[0.5, 0.5]]))
        ((1, 300), True)
        """
        model, Q = self._ask(X)
        if not isinstance(model, StitchedModel):
            raise ValueError("`operator` needs the whole model in one process. Use `to_local()`.")
        W = weigh_rows(model, Q, derivative, output)
        return (W, find_bound(model, Q)) if return_bound else W

    def __call__(self, x: ArrayLike, nu: Sequence[int] | None = None) -> Array:
        """The function or one of its partial derivatives at ``x`` (…, d), like `scipy.interpolate.NdBSpline`: (…) or (…, t).

        ``nu`` (d,) holds the order of the derivative in each feature; the orders sum to at most two.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(size=(50, 2))
        >>> model = StitchedRegressor(local_model="poly", degree=2).fit(X, X[:, 0] * X[:, 1])
        >>> np.round(model([0.5, 0.25], nu=(1, 1)), 6)
        1.0
        """
        model = self._current()
        d = model.n_features
        x = self._ask(x)[1] if hasattr(x, "columns") else np.asarray(x, dtype=np.float64)
        orders = np.zeros(d) if nu is None else np.asarray(nu)
        if x.ndim == 0 or x.shape[-1] != d:
            raise ValueError(f"`x` must have {d} features along its last axis, got shape {x.shape}.")
        if orders.shape != (d,) or not (np.isin(orders, (0, 1, 2)).all() and orders.sum() <= 2):
            raise ValueError(f"`nu` must have {d} orders of derivatives, one per feature, with a sum of at most two, got {nu!r}.")
        along = np.repeat(np.arange(d), orders.astype(int))
        queries = check_array(x.reshape(-1, d), ensure_min_samples=0)
        found = shape_like(model, model.jet(queries, len(along), self._threads)[len(along)][(..., *along)])
        return found.reshape(x.shape[:-1] + found.shape[1:])

    def coverage(self, X: ArrayLike) -> Array:
        """How much of the prediction at ``X`` (q, d) comes from regions that hold data there, (q,).

        1 near points within the supports of regions. Slightly less than 1 where regions a little farther away contribute, which
        also happens inside the data. Coverage falls smoothly to 0 at twice the radius of the nearest region. It also falls to 0
        where the nearest point is ten times as far away as it typically is from locations between the points.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> StitchedRegressor(kernel="gaussian").fit(X, X[:, 0] ** 2).coverage([[0.5], [2.0]])
        array([1., 0.])
        """
        model, Q = self._ask(X)
        return model.coverage(Q, self._threads)

    def contributions(self, x: ArrayLike) -> list[Contribution]:
        """Which regions make up the prediction at one point ``x`` (d,): their shares and values, the largest first.

        For several outputs both are (t,), since shares may differ between outputs.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> model = StitchedRegressor(kernel="gaussian").fit(X, X[:, 0] ** 2)
        >>> parts = model.contributions([0.3])
        >>> round(sum(part.share for part in parts), 12), round(sum(part.share * part.value for part in parts), 6)
        (1.0, 0.09)
        """
        model = self._current()
        point = check_array(np.reshape(x, (1, -1)), dtype=np.float64)
        if point.shape[1] != model.n_features:
            raise ValueError(f"`x` must be one point of {model.n_features} features, got {point.shape[1]}.")
        found: list[Contribution] = model.contributions(point[0])
        return found

    def grid(
        self,
        shape: int | Sequence[int] | Mapping[str, int] | None = None,
        bounds: Sequence[tuple[float, float]] | Mapping[str, tuple[float, float]] | None = None,
        *,
        spacing: float | Mapping[str, float] | None = None,
        gradient: bool = False,
        unit: str | None = None,
        coverage: bool = False,
        std: bool = False,
        samples: int = 0,
        function_std: bool = False,
    ) -> Any:
        """The function on a regular grid, as an `xarray.Dataset`; of a `geographic` model, latitude comes before longitude.

        Parameters
        ----------
        shape : int, sequence of int, or mapping of a feature's name to an int, optional
            Number of coordinates along each feature. Features that a mapping leaves out stay at their medians.
        bounds : d pairs (low, high), or a mapping of features' names to such pairs, optional
            By default those of the data. A range may cross the end of a period, for example longitudes from 170 to 190.
        spacing : float, or mapping of a feature's name to a float, optional
            Step between coordinates, instead of ``shape``: they are its multiples. With neither, steps are round numbers.
        gradient, coverage, std, function_std : bool
            Whether to add derivatives (``dy_da``), the coverage, standard deviations of a new observation (``y_std``), and standard
            deviations of the function (``y_function_std``), with `gradient` also of the derivatives (``dy_da_std``).
        samples : int
            How many samples to add, those of `sample_y`, named ``y_sample``, along a dimension ``sample``.
        unit : str, optional
            ``"metres"``: derivatives by longitude and latitude as in `gradient`, named ``dy_deast`` and ``dy_dnorth``.

        Variables have the attributes ``long_name`` and, where the data had them, ``units``. Names have no slash, for NetCDF.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(size=(50, 2))
        >>> model = StitchedRegressor().fit(X, X @ [2.0, 3.0])
        >>> field = model.grid((3, 4), gradient=True)
        >>> dict(field.sizes), list(field.data_vars)
        ({'x0': 3, 'x1': 4}, ['y', 'dy_dx0', 'dy_dx1'])
        >>> model.grid(spacing={"x1": 0.25})["x1"].values
        array([0.  , 0.25, 0.5 , 0.75, 1.  ])
        """
        model = self._current()
        if bounds is not None and not isinstance(bounds, Mapping):
            bounds = dict(zip(model.feature_names, read_bounds(bounds, model).tolist(), strict=True))
        if samples:
            check_whole(model, "samples")
        asked = Asked(gradient, coverage, std, function_std, unit, samples=check_count(samples))
        return grid_dataset(model, make_grid(model, shape, bounds, spacing=spacing), asked, self._threads)

    def suggest(
        self,
        n: int,
        bounds: Sequence[tuple[float, float]] | Mapping[str, tuple[float, float]] | None = None,
        candidates: ArrayLike | None = None,
        pending: ArrayLike | None = None,
    ) -> Any:
        """Where to measure next: n points (n, d) that would help most, spread out as a batch should be.

        A data frame if the model was fitted to one, else an array.

        Preferred are points with large leave-one-out errors nearby, steep slopes, or no data around them. Each pick counts as
        measured when the next one is chosen. `random_state` seeds the candidates.

        Parameters
        ----------
        n : int
        bounds : d pairs (low, high), or a mapping of features' names to such pairs, optional
            Where to look; the data's own box unless given.
        candidates : array-like of shape (c, d), optional
            Choose among these instead.
        pending : array-like of shape (k, d), optional
            Measurements that are under way.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
        >>> model = StitchedRegressor(random_state=0).fit(X, np.tanh(10 * X[:, 0]))
        >>> next_ = model.suggest(20, bounds=[(-1, 1), (-1, 1)])
        >>> next_.shape, bool(np.mean(np.abs(next_[:, 0]) < 0.3) > 0.5)  # most where it is steep
        ((20, 2), True)
        """
        model = self._current()
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise ValueError(f"`n` must be a whole number of at least 1, got {n!r}.")
        waiting = np.empty((0, model.n_features)) if pending is None or not np.size(pending) else self._ask(pending)[1]
        if candidates is None:
            random = check_random_state(getattr(self, "random_state", None))
            return as_frame(
                model.origin.feature_names,
                suggest_points(model, int(n), read_bounds(bounds, model), waiting, random, self._threads),
            )
        if bounds is not None:
            raise ValueError("Give `bounds` or `candidates`, not both.")
        return as_frame(
            model.origin.feature_names, choose_candidates(model, int(n), self._ask(candidates)[1], waiting, self._threads)
        )

    def _project(self, gradient: Array, normals: ArrayLike) -> Array:
        return project_out(gradient, normals)


def project_out(gradient: Array, normals: ArrayLike) -> Array:
    """(I - n nᵀ) ∇f for gradients (q, d) or (q, t, d) and normals (q, d) of any length but zero."""
    N = check_normals(normals, (len(gradient), gradient.shape[-1]))
    N = N if gradient.ndim == 2 else N[:, None, :]
    return gradient - (gradient * N).sum(axis=-1, keepdims=True) * N
