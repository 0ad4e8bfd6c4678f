"""`StitchedRegressor`: the estimator. Recipes only; the mathematics is in the modules below."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._assembly import assemble
from ._function import StitchedFunction
from ._io import ModelState, frame_of, read_model, write_model
from ._learn import choose_metric
from ._local import LocalModel
from ._loo import stitched_loo_residuals
from ._metric import make_space
from ._notebook import notebook_view
from ._plan import make_plan
from ._select import PAPER_BANDWIDTHS, PAPER_RIDGES
from ._shard_io import read_whole
from ._summary import Summary, summarize
from ._validation import check_parameters, check_weights, distinct_points, names_of

Array = NDArray[np.float64]


class LeaveOneOut(NamedTuple):
    """What every point is predicted to be without it.

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


class StitchedRegressor(StitchedFunction, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Many small models, stitched into one smooth function with exact derivatives.

    The points are covered by balls of ``region_size`` points; each region gets a local model, kernel ridge regression with a
    polynomial by default; a query is answered by the average of the regions that contain it, with smooth weights that vanish at
    their borders. What lies in no region is answered by a background of the same make on thinner samples.

    Parameters
    ----------
    region_size : int or "auto", default="auto"
        Points per region, h. ``"auto"`` is 100 in up to three dimensions and grows to 400 for small tables with more features.
    local_model : {"krr-poly", "krr", "poly"} or `LocalModel`, default="krr-poly"
        Kernel ridge regression with or without a polynomial part, the polynomial alone, or a model of your own.
    kernel : str, default="auto"
        ``"gaussian"``, ``"matern32"``, ``"matern52"``, ``"matern72"``, ``"exponential"``, ``"wendland"``, ``"multiquadric"``,
        ``"linear"``, ``"thin-plate"``, ``"cubic"``, ``"quintic"``, or ``"auto"``: chosen from those that are as smooth as the
        weight, up to C².
    degree : int or "auto", default="auto"
        Total degree of the polynomial part.
    bandwidth : float, sequence of floats or "auto", default="auto"
        Scale σ of the kernel, in units of the mean pairwise distance in the region; a sequence is a grid to choose from.
    ridge : float, sequence of floats, "auto" or "response", default="auto"
        Ridge η; ``"response"`` is 0.01 % of the mean response in the region, the paper's fixed default.
    selection : {"loo", "holdout", None}, default="loo"
        How the grid is decided: by leave-one-out in closed form, region by region; by held-out points, the same for all regions; or
        not at all (one value each).
    weight : str, default="wendland-c2"
        Stitching weight: ``"wendland-c{2k}"`` for any k makes the prediction up to C^2k; ``"wendland-c{2k}-native"`` is φ_{d,k}
        of the data's dimension; ``"truncated-gaussian"`` jumps.
    overlap : float or "auto", default="auto"
        How much regions overlap beyond the paper's cover: a point counts as covered within radius / (1 + overlap), and a region
        speaks within 1.3 times that, at most its radius. More is more accurate and costs time to fit, not to predict. ``"auto"``
        has about four times the regions of the paper's cover.
    metric : {"auto", "euclidean", "standardized", "learned"} or array of shape (d, d), default="auto"
        How distance is measured; a matrix M means (x - x')ᵀ M (x - x'). ``"learned"`` takes the average outer product of the
        model's own gradients; ``"auto"`` takes whichever of the three has the least leave-one-out error on a sample of regions, and
        is Euclidean where `selection` is not ``"loo"``.
    background : {"hierarchy", "polynomial"}, default="hierarchy"
        What answers where no region does: stitched models on thinner samples, or one global polynomial.
    background_weight : float, default=1e-5
        Weight w_0 of the background.
    rank_tolerance : float, default=1e-10
        Relative size below which a singular value of the polynomial part counts as zero.
    order : {"stored", "random"}, default="stored"
        The order in which the cover visits points.
    random_state : int, RandomState or None, default=None
        Seed of the random order.
    n_jobs : int or None, default=None
        Threads; None means 1, -1 all cores.
    verbose : bool, default=False
        Show progress bars.

    Attributes
    ----------
    n_regions_ : int
    centers_, radii_ : arrays of shape (m, d) and (m,)
        The regions; radii as the metric measures them.
    kernels_, degrees_, bandwidths_, ridges_ : arrays of shape (m,)
        What the regions use; absent for a `LocalModel`. Bandwidths are in units of the mean pairwise distance, as the parameter.
    scores_ : array or None
        What decided: (regions scored, shapes, ridges) log mean squared leave-one-out errors of the shapes that the search left, or
        (shapes, ridges) held-out errors.
    loo_error_ : float
        Root mean squared leave-one-out error of the stitched prediction, computed when first asked for.
    smoothness_ : float
        t, where the prediction is C^t.
    metric_ : array of shape (d, d)
    metric_trials_ : dict
        What was tried for ``metric="auto"`` or ``"learned"``: log squared leave-one-out errors by name, the chosen one first.
    feature_relevance_ : array of shape (d,)
    n_features_in_ : int
    feature_names_in_ : array of shape (d,), only if X had names
    target_names_ : list of t names if y had names, else None

    Examples
    --------
    >>> import numpy as np
    >>> from stitchwork import StitchedRegressor
    >>> X = np.random.default_rng(0).uniform(0, 6, (2000, 2))
    >>> model = StitchedRegressor().fit(X, np.sin(X[:, 0]) * np.cos(X[:, 1]))
    >>> np.round(model.predict([[1.0, 2.0]]) - np.sin(1) * np.cos(2), 5) + 0.0
    array([0.])
    >>> np.round(model.gradient([[1.0, 2.0]]) - [np.cos(1) * np.cos(2), -np.sin(1) * np.sin(2)], 3) + 0.0
    array([[0., 0.]])
    """

    _loo_error: float | None

    def __init__(
        self,
        *,
        region_size: int | str = "auto",
        local_model: str | LocalModel = "krr-poly",
        kernel: str = "auto",
        degree: int | str = "auto",
        bandwidth: float | ArrayLike | str = "auto",
        ridge: float | ArrayLike | str = "auto",
        selection: str | None = "loo",
        weight: str = "wendland-c2",
        overlap: float | str = "auto",
        metric: str | ArrayLike = "auto",
        background: str = "hierarchy",
        background_weight: float = 1e-5,
        rank_tolerance: float = 1e-10,
        order: str = "stored",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.region_size = region_size
        self.local_model = local_model
        self.kernel = kernel
        self.degree = degree
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.selection = selection
        self.weight = weight
        self.overlap = overlap
        self.metric = metric
        self.background = background
        self.background_weight = background_weight
        self.rank_tolerance = rank_tolerance
        self.order = order
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of the paper: h = 100, degree 2, Gaussian kernel, 5 × 5 held-out search, C² weight, no extra overlap.

        ``paper(selection=None)`` takes the paper's fixed defaults instead of the search: σ = b and η = 0.01 % of the mean response.

        Examples
        --------
        >>> StitchedRegressor.paper().degree
        2
        >>> StitchedRegressor.paper(selection=None, region_size=50)
        StitchedRegressor(bandwidth=1.0, degree=2, kernel='gaussian',...region_size=50, ridge='response',...)
        """
        fixed = "selection" in changes and changes["selection"] is None
        settings = {
            "region_size": 100,
            "kernel": "gaussian",
            "degree": 2,
            "bandwidth": 1.0 if fixed else PAPER_BANDWIDTHS,
            "ridge": "response" if fixed else PAPER_RIDGES,
            "selection": "holdout",
            "weight": "wendland-c2",
            "overlap": 0.0,
            "metric": "euclidean",
            "background": "hierarchy",
            "background_weight": 1e-5,
            "order": "stored",
        }
        return cls(**{**settings, **changes})

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, t)
        sample_weight : array-like of shape (n,), optional
            An integer weight is the same as repeating the point.

        Examples
        --------
        Three points on a line, one feature, one output; then two outputs.

        >>> model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> model.n_regions_, model.n_features_in_
        (1, 1)
        >>> model.fit([[0.0], [1.0], [2.0]], [[1.0, 0.0], [3.0, 0.0], [5.0, 1.0]]).predict([[1.0]]).shape
        (1, 2)
        """
        inputs, outputs = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        check_parameters(self.get_params(deep=False), inputs.shape[1])
        v = check_weights(sample_weight, len(inputs))
        self._flat = outputs.ndim == 1
        self.target_names_ = names_of(y)
        points = distinct_points(inputs, np.asarray(outputs, dtype=np.float64).reshape(len(inputs), -1), v)
        plan = make_plan(self.get_params(deep=False), len(points.X), points.X.shape[1], self._flat)
        self.metric_trials_, A = choose_metric(self.metric, points, plan)
        self._space = make_space(points.X, A)
        self._frame = frame_of(points.X)
        self._points = points._replace(X=self._space.coordinates(points.X)).neighbourly()
        self._assembly = assemble(self._points, plan)
        self._publish()
        return self

    def summary(self) -> Summary:
        """What was chosen and why: text, and a table in notebooks.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> print(StitchedRegressor(kernel="gaussian").fit(X, X[:, 0] ** 2).summary())
        data           400 distinct points, 1 feature, 1 output of deviation 0.299
        metric         auto
        regions        15 of 100 points, each point in 3.8 on average, 3 levels behind
        local models   gaussian with degree ...
        """
        check_is_fitted(self)
        return summarize(self)

    @property
    def feature_relevance_(self) -> Array:
        """Share of each feature in squared distances, (d,): large where the learned metric saw the response vary.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(size=(300, 2))
        >>> model = StitchedRegressor(kernel="gaussian", degree=1, bandwidth=1.0, metric="learned")
        >>> np.round(model.fit(X, np.sin(9 * X[:, 0])).feature_relevance_, 1)
        array([1., 0.])
        """
        check_is_fitted(self)
        variance = self._space.original(self._points.X).var(axis=0)
        share = np.diagonal(self.metric_) * variance
        return share / share.sum() if share.any() else np.full(len(share), 1.0 / len(share))

    @property
    def loo_error_(self) -> float:
        """Root mean squared leave-one-out error of the stitched prediction.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> noise = 0.1 * np.random.default_rng(0).normal(size=400)
        >>> round(StitchedRegressor(kernel="matern52").fit(X, X[:, 0] ** 2 + noise).loo_error_, 2)
        0.1
        """
        check_is_fitted(self)
        if self._loo_error is None:
            self._loo_residuals()
        return self._loo_error  # type: ignore[return-value]

    def leave_one_out(self) -> LeaveOneOut:
        """Leave-one-out residuals of the stitched prediction at every distinct point, in closed form.

        Examples
        --------
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = StitchedRegressor(kernel="gaussian", ridge=1e-6).fit(X, X[:, 0] ** 2)
        >>> X, y, residual = model.leave_one_out()
        >>> X.shape, residual.shape, bool(np.abs(residual).max() < 1e-4)
        ((200, 1), (200,), True)
        """
        check_is_fitted(self)
        X = self._space.original(self._points.X)
        return LeaveOneOut(X, self._flattened(self._points.y), self._flattened(self._loo_residuals()))

    def _loo_residuals(self) -> Array:
        if self._assembly.settings is None:
            raise AttributeError("Leave-one-out has a closed form for the built-in local models only.")
        cover, settings, reach = self._assembly.cover, self._assembly.settings, self._assembly.reach
        residuals = stitched_loo_residuals(self._points, cover, settings, self._weight, reach, self.n_jobs)
        self._loo_error = float(np.sqrt(np.average((residuals**2).mean(axis=1), weights=self._points.v)))
        return residuals

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to ``path``: arrays and a JSON header in one safetensors file, no pickle. See `load`.

        Examples
        --------
        >>> model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> model.save("line.stitch")
        """
        check_is_fitted(self)
        state = ModelState(
            parameters=self.get_params(deep=False),
            feature_names=self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None,
            target_names=self.target_names_,
            flat=self._flat,
            loo_error=self._loo_error,
            metric_trials=self.metric_trials_,
            frame=self._frame,
            space=self._space,
            points=self._points,
            assembly=self._assembly,
        )
        write_model(state, path)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What notebooks show: scikit-learn's view of the parameters, and of a fitted model what it is."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle and hasattr(self, "_assembly"):
            bundle["text/html"] += notebook_view(self)
        return bundle

    def _take_names(self, features: Sequence[str], targets: Sequence[str]) -> None:
        """Name the columns of a model that was fitted to arrays."""
        self.feature_names_in_ = np.array(features, dtype=object)
        self.target_names_ = list(targets)

    def _publish(self) -> None:
        """Set the fitted attributes."""
        cover, settings = self._assembly.cover, self._assembly.settings
        self.n_regions_ = len(cover)
        self.radii_ = cover.radii / self._space.unit
        self.centers_ = self._space.original(self._points.X[cover.center])
        self.metric_ = self._space.metric
        self.smoothness_ = min(self._weight.smoothness, *(level.models.smoothness for level in self._assembly.levels))
        self.scores_ = self._assembly.scores
        self._loo_error = None
        if settings is not None:
            self.kernels_ = np.array([kernel.name for kernel in settings.kernels])[settings.kernel]
            self.degrees_, self.bandwidths_, self.ridges_ = settings.degree, settings.bandwidth, settings.ridge


def load(path: str | os.PathLike[str]) -> StitchedRegressor:
    """Read a model that `StitchedRegressor.save` wrote, or a folder of shards of a `DaskStitchedRegressor`.

    Raises
    ------
    ValueError
        If the file is truncated, is something else, or was written by a newer version.

    Examples
    --------
    >>> StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).save("line.stitch")
    >>> load("line.stitch").predict([[1.5]])
    array([4.])
    """
    return restored(read_whole(path) if Path(path).is_dir() else read_model(path))


def restored(state: ModelState) -> StitchedRegressor:
    """A fitted estimator from all there is to it."""
    model = StitchedRegressor(**state.parameters)
    model._space, model._points, model._assembly, model._flat = state.space, state.points, state.assembly, state.flat
    model._frame = state.frame
    model.n_features_in_ = state.points.X.shape[1]
    if state.feature_names is not None:
        model.feature_names_in_ = np.array(state.feature_names, dtype=object)
    model.metric_trials_, model.target_names_ = state.metric_trials, state.target_names
    model._publish()
    model._loo_error = state.loo_error
    return model
