"""`StitchedRegressor`: the estimator. Recipes only; the mathematics is in the modules below."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from ._growing import GrowingModel
from ._parallel import Threads
from ._types import Array, Index
from ._validation import (
    as_table,
    attributes_of,
    check_parameters,
    check_range,
    check_size,
    check_work,
    make_chart,
    names_of,
    warn_of_features,
)
from ._validation.rows import check_errors, check_groups, check_weights, warn_of_errors
from ._validation.slopes import check_given, check_responses, check_slopes
from .fitting.defaults import PAPER_BANDWIDTHS, PAPER_RIDGES
from .fitting.errors import fit_errors
from .fitting.points import find_merging, merge_coincident
from .fitting.recipe import fit_here
from .fitting.robust import fit_robust, fit_robust_slopes
from .fitting.slopes import add_slopes, fill_responses, weigh_by_errors
from .local.own import LocalModel
from .local.points import Points
from .model.origin import Origin
from .model.stitched import StitchedModel
from .storage.file import write_model
from .views.notebook import notebook_view


class StitchedRegressor(GrowingModel, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Many small models, stitched into one smooth function with exact derivatives.

    The points are covered by balls of ``region_size`` points; each region gets a local model, kernel ridge regression with a
    polynomial by default; a prediction is the average of the regions that contain the query, with smooth weights that vanish at
    their borders. Beyond all regions a background of the same kind takes over, fitted to thinner samples.

    Parameters
    ----------
    region_size : int or "auto", default="auto"
        Points per region, h. ``"auto"`` is 100 in up to three dimensions, up to 400 where noise dominates, and all of up to 1,000
        points if all hyperparameters are left to ``"auto"``; with more features all of a table of up to 1,500 rows, and 100 to 400
        points of a larger one.
    local_model : {"krr-poly", "krr", "poly"} or `LocalModel`, default="krr-poly"
        Kernel ridge regression with or without a polynomial part, the polynomial alone, or a custom model.
    kernel : str or sequence of str, default="auto"
        ``"gaussian"``, ``"matern32"``, ``"matern52"``, ``"matern72"``, ``"exponential"``, ``"wendland"``, ``"multiquadric"``,
        ``"linear"``, ``"thin-plate"``, ``"cubic"``, ``"quintic"``, ``"soft-exponential"``, or ``"auto"``: chosen from those that
        are as smooth as `smoothness` requires; in many dimensions and for few points several are averaged. A sequence is a grid.
    degree : int, sequence of int or "auto", default="auto"
        Total degree of the polynomial part, -1 for none; a sequence is a grid to choose from.
    bandwidth : float, sequence of floats or "auto", default="auto"
        Scale σ of the kernel, in units of the mean pairwise distance in the region; a sequence is a grid to choose from.
    ridge : float, sequence of floats, "auto" or "response", default="auto"
        Ridge η; ``"response"`` is 0.01 % of the mean response in the region, the paper's fixed default.
    selection : {"loo", "holdout", None}, default="loo"
        How hyperparameters are chosen from the grid: by leave-one-out in closed form, and for few points by likelihood; by held-out
        points, the same for all regions; or not at all (one value each).
    weight : str, default="auto"
        Stitching weight: ``"wendland-c{2k}"`` for any k makes the prediction up to C^2k; ``"wendland-c{2k}-native"`` is φ_{d,k}
        of the data's dimension; ``"truncated-gaussian"`` is discontinuous. ``"auto"`` follows `smoothness`.
    smoothness : int or "auto", default="auto"
        The prediction is at least of class C^t with this t. ``"auto"`` weights and kernels are chosen accordingly; explicit ones
        that are less smooth are refused. ``"auto"`` is 2, or the smoothness of a given `weight` if that is less. With 1, thin-plate
        splines are tried, too, which suit kinks.
    overlap : float or "auto", default="auto"
        How much regions overlap beyond the paper's cover: a point counts as covered within radius / (1 + overlap), and the support
        of a region is 1.3 times that, at most its radius. More is more accurate and costs time to fit, not to predict. ``"auto"``
        has about four times the regions of the paper's cover.
    metric : {"auto", "euclidean", "standardized", "learned"} or array of shape (d, d), default="auto"
        How distance is measured; a matrix M means (x - x')ᵀ M (x - x'). ``"learned"`` takes the average outer product of the
        model's own gradients. ``"auto"`` compares metrics on a sample of regions and takes a more complex one only where
        leave-one-out errors clearly fall; tables also try length scales by likelihood, and may average two metrics. It is Euclidean
        where `selection` is not ``"loo"``. With `periodic` or `geographic` features, the metric is that of embedded points: two
        coordinates for a circle with the period as circumference, and at the place of the longitude three for a sphere with one
        degree of arc as unit.
    periodic : mapping of features to periods, optional
        Features, by name or index, that repeat after a period: ``{"phase": 360, "hour": 24}``. They are embedded in circles, so
        that there is no seam; derivatives are by the features themselves.
    geographic : pair of features, optional
        Longitude and latitude in degrees, by name or index: ``("lon", "lat")``. They are embedded in a sphere, so that neither the
        dateline nor the poles are seams. Derivatives are per degree, or per metre: see `gradient`.
    background : {"hierarchy", "polynomial"}, default="hierarchy"
        The model beyond all regions: stitched models on thinner samples, or one global polynomial.
    background_weight : float, default=0.03
        Weight w_0 of the background, relative to the mean sum of weights at the points.
    rank_tolerance : float, default=1e-10
        Relative size below which a singular value of the polynomial part counts as zero.
    robust : bool, default=False
        Leave out gross errors: rows more than six standard deviations from the prediction without them, or farther if errors have
        heavy tails. See `outlier_weights_`.
    order : {"stored", "random"}, default="stored"
        The order in which the cover visits points.
    random_state : int, RandomState or None, default=None
        Seed of the random order, and of the candidates of `suggest`.
    n_jobs : int or None, default=None
        Threads; None means 1, -1 all cores. Predictions use it, too; it is not saved.
    verbose : bool, default=False
        Show progress bars; not saved.

    Attributes
    ----------
    model_ : StitchedModel
        The fitted function, frozen. A fit replaces it as its last step, so that a fit that fails or is interrupted changes nothing;
        `set_params` has no effect until the next fit.
    n_regions_ : int
    centers_, radii_ : arrays of shape (m, d) and (m,)
        The regions; radii as the metric measures them.
    kernels_, degrees_, bandwidths_, ridges_ : arrays of shape (m,), or (m, k) where k models are averaged
        Hyperparameters of the regions; absent for a `LocalModel`. Bandwidths are in units of the mean pairwise distance, as the
        parameter.
    scores_ : array of shape (shapes, ridges) or None
        Error of each candidate, from leave-one-out or from held-out points, in standard deviations of the responses; None
        if there was nothing to choose. Shapes are the combinations of kernel, degree and bandwidth that remained in the search.
    loo_error_ : float
        Root mean squared leave-one-out error of the stitched prediction, computed at first use.
    smoothness_ : float
        t, where the prediction is C^t.
    metric_ : array of shape (d, d), or (e, e) for points embedded by `periodic` and `geographic`
    metric_trials_ : dict
        Metrics that ``"auto"`` or ``"learned"`` tried: log squared leave-one-out errors by name, the chosen one first.
    feature_relevance_ : array of shape (d,), or (t, d) for several outputs
        Share of each feature in the variation of the response, from the slopes of the model.
    n_samples_seen_ : int
        Rows passed to `fit` and `partial_fit`, including those forgotten since.
    stale_ : float
        Leave-one-out errors at points added by `partial_fit`, relative to those at earlier points: about one while new data are
        like the old, and 1.0 after a fit.
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

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init__(
        self,
        *,
        region_size: int | str = "auto",
        local_model: str | LocalModel = "krr-poly",
        kernel: str | Sequence[str] = "auto",
        degree: int | Sequence[int] | str = "auto",
        bandwidth: float | ArrayLike | str = "auto",
        ridge: float | ArrayLike | str = "auto",
        selection: str | None = "loo",
        weight: str = "auto",
        smoothness: int | str = "auto",
        overlap: float | str = "auto",
        metric: str | ArrayLike = "auto",
        periodic: Mapping[int | str, float] | None = None,
        geographic: Sequence[int | str] | None = None,
        background: str = "hierarchy",
        background_weight: float = 0.03,
        rank_tolerance: float = 1e-10,
        robust: bool = False,
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
        self.smoothness = smoothness
        self.overlap = overlap
        self.metric = metric
        self.periodic = periodic
        self.geographic = geographic
        self.background = background
        self.background_weight = background_weight
        self.rank_tolerance = rank_tolerance
        self.robust = robust
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
        StitchedRegressor(background_weight=1e-05, bandwidth=1.0, degree=2,...region_size=50, ridge='response',...)
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

    # scikit-learn's metadata routing passes groups by default: they mean the same as in its splitters.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"groups": True}

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        noise_std: ArrayLike | None = None,
        gradient: ArrayLike | None = None,
        gradient_std: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, d), a data frame, or an `xarray.Dataset` of variables along one dimension
            Names of columns are kept, and so are units and long names: those in the ``attrs`` of an xarray variable, or a data
            frame's ``attrs["units"]`` and ``attrs["long_name"]`` by column.
        y : array-like of shape (n,) or (n, t)
        sample_weight : array-like of shape (n,), optional
            An integer weight equals repeating the row. Repeated rows with different responses also determine the noise.
        groups : array-like of shape (n,), optional
            Points with the same label, a number or a word, belong together: one curve, track, profile or subject. They are left out
            together in every leave-one-out error, so that hyperparameters suit the space between groups, and `loo_error_` and
            intervals are those of a new group.
        noise_std : array-like of shape (n,) or (n, t), optional
            The standard deviation of the error of each observation, in the unit of y, instead of `sample_weight`. It determines the
            weights of observations and is part of standard deviations and intervals. If the residuals show further noise, `noise_`
            is its standard deviation, and it is added to all errors. Outputs share weights, from the mean of their log errors.
        gradient : array-like of shape (n, d) or (n, t, d), optional
            Measured slopes, the derivatives of each response by each feature, NaN where one was not measured. Then y may be NaN,
            too, in rows where only slopes were measured. A row is left out with its slopes in every leave-one-out error.
        gradient_std : number or array-like of shape (d,) or (n, d), optional
            Standard deviation of the errors of slopes, in their unit; requires `noise_std`. Without it, their weight is chosen.

        Examples
        --------
        Three points on a line, one feature, one output; then two outputs.

        >>> model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> model.n_regions_, model.n_features_in_
        (1, 1)
        >>> model.fit([[0.0], [1.0], [2.0]], [[1.0, 0.0], [3.0, 0.0], [5.0, 1.0]]).predict([[1.0]]).shape
        (1, 2)

        A sine of which five values and slopes were measured.

        >>> x = np.linspace(0, 6, 5)[:, None]
        >>> model = StitchedRegressor().fit(x, np.sin(x[:, 0]), gradient=np.cos(x))
        >>> abs(model.predict([[2.0]]) - np.sin(2.0)).max() < 0.02
        np.True_
        """
        parameters = self.get_params(deep=False)
        # scikit-learn stores the features on the estimator it validates: use a copy, so that a refused fit changes nothing.
        fresh = type(self)(**parameters)
        attributes = attributes_of(X) | attributes_of(y)
        X, y = as_table(X), as_table(y, "y")
        if gradient is None:
            inputs, outputs = validate_data(fresh, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        else:
            inputs = validate_data(fresh, X, dtype=np.float64)
            outputs = check_responses(y, inputs)
        names = tuple(fresh.feature_names_in_) if hasattr(fresh, "feature_names_in_") else None
        chart = make_chart(parameters["periodic"], parameters["geographic"], names, inputs.shape[1])
        check_parameters(parameters, inputs.shape[1] if chart is None else chart.dimension)
        check_work(self.n_jobs, self.random_state)
        responses = np.asarray(outputs, dtype=np.float64).reshape(len(inputs), -1)
        s2 = check_errors(noise_std, sample_weight, *responses.shape)
        check_given(gradient, gradient_std, noise_std)
        given = None if gradient is None else check_slopes(gradient, gradient_std, inputs, responses, parameters)
        v = check_weights(sample_weight, len(inputs))
        group = check_groups(groups, len(inputs))
        places = inputs if chart is None else (chart := chart.choose_range(inputs)).embed_data(inputs)
        errors_of_slopes = None if given is None else given.known_variance
        rows = Points(places, responses, v, np.arange(len(inputs)), group)
        rows = rows if given is None else add_slopes(rows, given.slopes, given.measured, inputs, chart)
        check_size(rows.y)
        warn_of_features(inputs.shape[1])
        warn_of_errors(s2, responses)
        origin = Origin(kept_parameters(parameters), names, names_of(y), attributes=attributes)
        threads = Threads(self.n_jobs, bool(self.verbose))

        def fit_rows(rows: Points, noise: Array | None = None) -> StitchedModel:
            points = fill_responses(merge_coincident(rows))
            check_range(points.y)
            return fit_here(points, outputs.ndim == 1, origin, threads, chart, noise)

        def fit_some(some: Index) -> StitchedModel:
            known = None if errors_of_slopes is None else errors_of_slopes[some]
            return fit_rows(rows.at(some)) if s2 is None else fit_errors(rows.at(some), s2[some], fit_rows, threads, known)

        used = np.arange(len(inputs))
        if self.robust and rows.slopes is not None:
            model, used = fit_robust_slopes(fit_some, inputs, threads)
        else:
            model, used = fit_robust(fit_some, inputs, responses, threads) if self.robust else (fit_some(used), used)
        if model.points.repeats is not None:
            weights = v if s2 is None or model.errors is None else model.errors.weights(s2)
            counted = np.zeros(len(inputs))
            counted[used] = weights[used]
            known = rows._replace(v=weights)
            if errors_of_slopes is not None:
                known = weigh_by_errors(known, 1.0, errors_of_slopes)
            model = replace(model, merged=find_merging(known._replace(v=counted)))
        self.model_ = replace(model, growth=model.growth._replace(seen=len(inputs)))
        return self

    def save(self, path: str | os.PathLike[str], *, factors: bool = False, compact: bool = False) -> None:
        """Write one safetensors file with a checksum, no pickle, see `load`; ``factors`` adds what standard deviations in C need.

        A ``compact`` file is about half as large: kernel coefficients in single precision. It is refused where accuracy suffers.

        Examples
        --------
        >>> model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> model.save("line.stitch")
        """
        write_model(self._current(), path, factors, compact, self._threads)

    def __getattr__(self, name: str) -> Any:
        """Attributes that scikit-learn sets on an estimator; here the model has them."""
        model = vars(self).get("model_")
        if model is not None and name == "n_features_in_":
            return model.n_features
        if model is not None and name == "feature_names_in_" and model.origin.feature_names is not None:
            return np.array(model.origin.feature_names, dtype=object)
        return object.__getattribute__(self, name)  # raises, with the words of a property that did

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What notebooks show: scikit-learn's view of the parameters, and the summary of a fitted model."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle and "model_" in vars(self):
            bundle["text/html"] += notebook_view(self._current(), self._threads)
        return bundle


def estimator_of(model: StitchedModel, kind: type[StitchedRegressor] = StitchedRegressor) -> StitchedRegressor:
    """The estimator of this kind that holds a fitted model."""
    estimator = kind(**model.origin.parameters)
    estimator.model_ = model
    return estimator


_OF_THIS_PROCESS = ("n_jobs", "verbose")


def kept_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that determine the model, without those of this process (threads, progress bars)."""
    return {name: parameters[name] for name in StitchedRegressor._get_param_names() if name not in _OF_THIS_PROCESS}


def check_kept(parameters: dict[str, Any], d: int) -> None:
    """Raise a `ValueError` unless these are the parameters of an estimator whose regions are in ``d`` dimensions."""
    known = set(StitchedRegressor._get_param_names()) - set(_OF_THIS_PROCESS)
    odd = sorted((set(parameters) ^ known) - {"robust"})  # which older files do not have
    if odd:
        raise ValueError(f"its parameter {odd[0]!r} is unknown or missing")
    check_parameters(parameters, d)
    check_work(None, parameters["random_state"])
