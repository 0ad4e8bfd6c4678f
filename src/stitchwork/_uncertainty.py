"""Uncertainty of a fitted model: intervals, covariances, samples and probabilities.

Arguments are checked here and passed to the current model; results get the shape that users expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ._parallel import Threads
from ._types import Array
from ._validation import as_table, check_jobs
from ._validation.rows import check_errors
from .model.samples import find_covariance, sample_paths
from .model.stitched import StitchedModel


class UncertainFunction:
    """Methods for the uncertainty of a fitted model, and the checks of queries that all methods share."""

    model_: StitchedModel | Any
    n_jobs: int | None

    def predict_interval(
        self, X: ArrayLike, confidence_level: float | Sequence[float] = 0.9, noise_std: ArrayLike | None = None
    ) -> Array:
        """Intervals at ``X`` (q, d) that hold a new observation with this confidence, (q, 2) or (q, t, 2): lower and upper end.

        Their widths are calibrated on leave-one-out residuals; there is no guarantee for finite samples. Several levels at once
        are stacked along a first axis. ``noise_std`` as in `predict`.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> y = X[:, 0] ** 2 + 0.1 * np.random.default_rng(0).normal(size=400)
        >>> model = StitchedRegressor(kernel="matern52").fit(X, y)
        >>> lower, upper = model.predict_interval(X, confidence_level=0.9).T
        >>> bool(0.87 < np.mean((lower <= y) & (y <= upper)) < 0.95)
        True
        """
        levels = np.asarray(confidence_level, dtype=float)
        if levels.ndim > 1 or not ((levels > 0.0) & (levels < 1.0)).all() or not levels.size:
            raise ValueError(f"`confidence_level` must be between 0 and 1, such as 0.9, got {confidence_level!r}.")
        model, Q = self._ask(X)
        s2 = self._variances_at(Q, noise_std, model.n_outputs)
        moments, calibration = model.moments(Q, self._threads, s2), model.calibration(self._threads)
        found = [shape_like(model, calibration.intervals(moments, float(level))) for level in np.atleast_1d(levels)]
        return found[0] if levels.ndim == 0 else np.stack(found)

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: int | np.random.RandomState | None = 0) -> Array:
        """Samples of the function given the data, at ``X`` (q, d): (q, n_samples) or (q, t, n_samples).

        Samples exclude the noise of observations. They are as smooth as the prediction, pass through data without noise, and have
        the standard deviation of ``predict(X, return_std=True, std_of="function")``. Each sample is one function: with the same
        ``random_state`` and ``n_samples``, other queries evaluate the same functions. So the samples also give the distribution of
        a mean over an area, of a maximum, or of where a threshold is crossed.

        Examples
        --------
        The mean over an interval is more certain than single values in it.

        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 1, (200, 1))
        >>> model = StitchedRegressor(kernel="matern52").fit(X, np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=200))
        >>> samples = model.sample_y(np.linspace(0, 1, 100)[:, None], n_samples=200)
        >>> samples.shape, bool(samples.mean(axis=0).std() < 0.5 * samples.std(axis=1).mean())
        ((100, 200), True)
        """
        count, random = check_count(n_samples, "n_samples", 1), check_random_state(random_state)
        model, Q = self._ask(X)
        check_whole(model, "sample_y")
        return np.asarray(shape_like(model, sample_paths(model, Q, count, random, self._threads)))

    def exceedance(self, X: ArrayLike, threshold: float) -> Any:
        """The probability that the function exceeds a ``threshold`` at each of ``X`` (q, d), (q,) or (q, t).

        From a normal distribution with the mean and the standard deviation of the function, without the noise of observations;
        for `LogStitchedRegressor`, from a log-normal one.

        Examples
        --------
        >>> X = np.linspace(0, 1, 400)[:, None]
        >>> y = X[:, 0] + 0.1 * np.random.default_rng(0).normal(size=400)
        >>> StitchedRegressor(kernel="matern52").fit(X, y).exceedance([[0.2], [0.8]], 0.5).round(3)
        array([0., 1.])
        """
        if not (isinstance(threshold, float | int | np.floating | np.integer) and isfinite(threshold)):
            raise ValueError(f"`threshold` must be a finite number, in the unit of `y`, got {threshold!r}.")
        model, Q = self._ask(X)
        return shape_like(model, model.moments(Q, self._threads).beyond(float(threshold)))

    def _predict_covariance(self, model: Any, Q: Array, of_function: bool, noise_std: ArrayLike | None) -> tuple[Array, Array]:
        """Values, and the covariance (q, q) or (q, q, t) of observations, or of the function."""
        check_whole(model, "return_cov")
        s2 = self._variances_at(Q, noise_std, model.n_outputs)
        value, covariance = find_covariance(model, Q, self._threads, s2, of_function)
        return shape_like(model, value), covariance[..., 0] if model.flat else covariance

    def _variances_at(self, Q: Array, noise_std: ArrayLike | None, t: int) -> Array | None:
        """Variances (q, t) of errors that observations at ``Q`` have, if they are given."""
        return check_errors(noise_std, None, len(Q), t)

    @property
    def _threads(self) -> Threads:
        return Threads(check_jobs(self.n_jobs))

    def _current(self) -> Any:
        """The model, taken once for a call: another thread may fit meanwhile."""
        model = vars(self).get("model_")
        if model is None:
            check_is_fitted(self)
        return model

    def _ask(self, X: ArrayLike) -> tuple[Any, Array]:
        """The model, and queries (q, d) for it as a clean array.

        A clean array skips scikit-learn's validation, which would return it unchanged. For one row, validation would dominate the
        cost; and optimisers, which pass arrays, would get a warning about missing feature names at every call.
        """
        model = self._current()
        clean = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and len(X) > 0 and _is_finite(X)
        if not clean or np.shape(X)[1] != model.n_features:
            shell: Any = type(self)(**self.get_params(deep=False))  # type: ignore[attr-defined]
            shell.model_ = model
            X = validate_data(shell, as_table(X), reset=False, dtype=np.float64)
        return model, np.asarray(X)


def _is_finite(X: Array) -> bool:
    return all(map(isfinite, X[0].tolist())) if len(X) == 1 else bool(np.isfinite(X).all())


def check_count(count: int, name: str = "samples", least: int = 0) -> int:
    """A number of samples, or a `ValueError`."""
    if isinstance(count, bool) or not isinstance(count, Integral) or count < least:
        raise ValueError(f"`{name}` must be a whole number of at least {least}, got {count!r}.")
    return int(count)


def check_whole(model: Any, name: str) -> None:
    """Raise a `ValueError` where a model is in parts."""
    if not isinstance(model, StitchedModel):
        raise ValueError(f"`{name}` needs the whole model in one process. Use `to_local()`.")


def shape_like(model: Any, answer: Any) -> Any:
    """Drop the axis of outputs, (q, t, …) to (q, …), if the responses had one axis."""
    return answer[:, 0] if model.flat else answer
