"""Attributes of a fitted estimator, whose names end in an underscore; each is read from the current model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._function import StitchedFunction
from ._types import Array
from ._uncertainty import shape_like
from .views.summary import Summary, mean_noise, summarize


class LeaveOneOut(NamedTuple):
    """Leave-one-out residuals: each point compared with the prediction from all other points.

    Attributes
    ----------
    X : (n, d) the distinct points of the training data
    y : (n,) or (n, t) their responses, averaged where a point was repeated
    residual : of the shape of y, the response less the prediction from all other points

    Examples
    --------
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> left_out = StitchedRegressor(kernel="cubic").fit(X, np.sin(9 * X[:, 0])).leave_one_out()
    >>> bool(np.abs(left_out.residual).max() < 0.01)
    True
    """

    X: Array
    y: Array
    residual: Array


class FittedAttributes(StitchedFunction):
    """The attributes of a fitted `StitchedRegressor`."""

    def summary(self) -> Summary:
        """What was chosen and why: text, and a table in notebooks.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> print(StitchedRegressor(kernel="gaussian").fit(X, X[:, 0] ** 2).summary())
        data           400 distinct points, 1 feature, 1 output of standard deviation 0.299
        metric         auto
        regions        15 of 100 points, each point in 3.8 on average, 4 levels behind
        local models   gaussian with degree ...
        """
        return summarize(self._current(), self._threads)

    @property
    def n_samples_seen_(self) -> int:
        """Rows passed to `fit` and `partial_fit`, including those forgotten since.

        Examples
        --------
        >>> model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> model.partial_fit([[3.0]], [7.0]).forget([[0.0]]).n_samples_seen_
        4
        """
        return int(self._current().growth.seen)

    @property
    def stale_(self) -> float:
        """Errors at points added by `partial_fit`, relative to errors at earlier points; above 2, call `fit` again.

        Examples
        --------
        >>> StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).stale_
        1.0
        """
        return float(self._current().growth.stale)

    @property
    def n_regions_(self) -> int:
        """Number of regions.

        Examples
        --------
        >>> StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).n_regions_
        1
        """
        return int(self._current().n_regions)

    @property
    def centers_(self) -> Array:
        """Centres of the regions, (m, d).

        Examples
        --------
        >>> StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).centers_.shape
        (1, 1)
        """
        return np.asarray(self._current().centers)

    @property
    def radii_(self) -> Array:
        """Radii of the regions as the metric measures them, (m,).

        Examples
        --------
        >>> StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).radii_.shape
        (1,)
        """
        return np.asarray(self._current().radii)

    @property
    def kernels_(self) -> NDArray[np.str_]:
        """Kernel of each region, (m,), or (m, k) where regions have k models; absent for a custom local model.

        Examples
        --------
        >>> StitchedRegressor(kernel="cubic").fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).kernels_
        array(['cubic'], dtype='<U5')
        """
        return self._by_region("kernels_", "kernel_names")

    @property
    def degrees_(self) -> NDArray[np.intp]:
        """Degree of each region's polynomial, (m,) or (m, k), -1 where there is none.

        Examples
        --------
        >>> StitchedRegressor(kernel="gaussian", degree=1).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).degrees_
        array([1])
        """
        return self._by_region("degrees_", "degree")

    @property
    def bandwidths_(self) -> Array:
        """Bandwidth of each region in units of the mean pairwise distance, (m,) or (m, k).

        Examples
        --------
        >>> StitchedRegressor(selection=None).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).bandwidths_
        array([1.])
        """
        return self._by_region("bandwidths_", "bandwidth")

    @property
    def ridges_(self) -> Array:
        """Ridge of each region, (m,) or (m, k).

        Examples
        --------
        >>> StitchedRegressor(selection=None).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).ridges_
        array([1.e-06])
        """
        return self._by_region("ridges_", "ridge")

    @property
    def metric_(self) -> Array:
        """The metric M of distances (x - x')ᵀ M (x - x'), (d, d); of embedded points, with `periodic` or `geographic`.

        Examples
        --------
        >>> StitchedRegressor(metric="euclidean").fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).metric_
        array([[1.]])
        """
        return np.asarray(self._current().space.metric)

    @property
    def metric_trials_(self) -> dict[str, float]:
        """Log squared leave-one-out errors of the metrics that were tried, by name, the chosen one first.

        Examples
        --------
        >>> StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).metric_trials_
        {}
        """
        return dict(self._current().origin.metric_trials)

    @property
    def scores_(self) -> Array | None:
        """Errors of the candidates, (shapes, ridges), in standard deviations of the responses; None if nothing was chosen.

        Examples
        --------
        >>> StitchedRegressor(kernel="gaussian", degree=0, bandwidth=1.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).scores_.shape
        (1, 16)
        """
        return self._current().origin.scores

    @property
    def smoothness_(self) -> float:
        """t, where the prediction is C^t.

        Examples
        --------
        >>> StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).smoothness_
        2.0
        """
        return float(self._current().smoothness)

    @property
    def target_names_(self) -> list[str] | None:
        """Names of the outputs, if y had any.

        Examples
        --------
        >>> StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).target_names_ is None
        True
        """
        return _listed(self._current().origin.target_names)

    @property
    def feature_relevance_(self) -> Array:
        """Share of each feature in the variation of the response: mean squared slope times the variance of the feature.

        (d,), or (t, d) for several outputs. It does not depend on the metric; the shares add up to one.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(size=(300, 2))
        >>> model = StitchedRegressor(kernel="gaussian", metric="euclidean")
        >>> np.round(model.fit(X, 2 * X[:, 0] + X[:, 1]).feature_relevance_, 1)
        array([0.8, 0.2])
        """
        model = self._current()
        return np.asarray(model.relevance[0] if model.flat else model.relevance)

    @property
    def loo_error_(self) -> float:
        """Root mean squared leave-one-out error of the stitched prediction, computed at first use.

        The error refers to single observations: where a location was observed repeatedly, the spread about its mean counts, too.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> noise = 0.1 * np.random.default_rng(0).normal(size=400)
        >>> round(StitchedRegressor(kernel="matern52").fit(X, X[:, 0] ** 2 + noise).loo_error_, 2)
        0.1
        """
        return float(self._current().loo_error(self._threads))

    @property
    def outlier_weights_(self) -> Array:
        """1 for each row of the data that is part of the model, else 0, (n,).

        Gross errors found with `robust`, rows of weight zero and rows that were forgotten are not part of it.

        Examples
        --------
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> y = np.sin(6 * X[:, 0]) + 0.01 * np.random.default_rng(0).normal(size=200)
        >>> y[17] = 40.0
        >>> np.flatnonzero(StitchedRegressor(robust=True).fit(X, y).outlier_weights_ == 0.0)
        array([17])
        """
        model = self._current()
        weights = np.zeros(model.growth.seen)
        if model.merged is None:
            weights[model.points.row] = 1.0
        else:
            weights[: len(model.merged.first)] = model.merged.first >= 0
        return weights

    @property
    def noises_(self) -> Array:
        """Standard deviation of the noise of one observation in each region, (m,) or (m, t), by leave-one-out.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> noise = 0.1 * np.random.default_rng(0).normal(size=400)
        >>> model = StitchedRegressor(kernel="matern52").fit(X, X[:, 0] ** 2 + noise)
        >>> model.noises_.shape == (model.n_regions_,)
        True
        """
        model = self._current()
        return np.asarray(shape_like(model, model.noises(self._threads)))

    @property
    def noise_(self) -> Any:
        """Standard deviation of the noise of one observation, a float or (t,): the root mean square of `noises_`.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> noise = 0.1 * np.random.default_rng(0).normal(size=400)
        >>> round(StitchedRegressor(kernel="matern52").fit(X, X[:, 0] ** 2 + noise).noise_, 2)
        0.1
        """
        model = self._current()
        mean = mean_noise(model.noises(self._threads))
        return float(mean[0]) if model.flat else mean

    def leave_one_out(self) -> LeaveOneOut:
        """Leave-one-out residuals of the stitched prediction at every distinct point, in closed form.

        In the order of the given rows, each location at its first row; with Dask in the order of the boxes.

        Examples
        --------
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = StitchedRegressor(kernel="gaussian", ridge=1e-6).fit(X, X[:, 0] ** 2)
        >>> X, y, residual = model.leave_one_out()
        >>> X.shape, residual.shape, bool(np.abs(residual).max() < 1e-4)
        ((200, 1), (200,), True)
        """
        model = self._current()
        X, y, residual, _, row, _ = model.left_out(self._threads)
        order = np.argsort(row, kind="stable")  # a model has its points sorted in space
        return LeaveOneOut(X[order], shape_like(model, y[order]), shape_like(model, residual[order]))

    def _by_region(self, name: str, setting: str) -> Any:
        model = self._current()
        if model.settings is None:
            raise AttributeError(f"`{name}` exists only for built-in local models, not for a custom `local_model`.")
        values, k = getattr(model.settings, setting), model.models_per_ball
        return values if k == 1 else values.reshape(-1, k)


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)
