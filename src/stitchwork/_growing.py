"""Updates of a fitted estimator: `partial_fit`, `refit` and `forget`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, validate_data

from ._attributes import FittedAttributes
from ._validation import as_table, check_outputs, check_range, check_work
from ._validation.rows import check_more_errors, check_more_groups, check_weights
from ._validation.slopes import check_given, check_more_slopes, check_other_slopes, check_responses
from .fitting.errors import weigh
from .fitting.growth import forget, grow, is_stale
from .fitting.refit import check_fields, find_better_ridge, refit
from .fitting.slopes import add_slopes
from .local.points import Points
from .model.link import IDENTITY
from .model.stitched import StitchedModel


class GrowingModel(FittedAttributes):
    """Methods that update a fitted model: points added or removed, or other responses."""

    fit: Callable[..., Any]  # that of the estimator

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        noise_std: ArrayLike | None = None,
        gradient: ArrayLike | None = None,
        gradient_std: ArrayLike | None = None,
    ) -> Self:
        """Add points: only the regions that contain them are refitted.

        The first call fits. While there are fewer points than five regions hold, every call chooses the hyperparameters again and
        refits everything. With more points, hyperparameters are kept, and the cost depends on the number of new points only. Once
        half of the points came after the last choice, one call chooses again and refits everything. Points at known locations are
        averaged in. `stale_` says whether the hyperparameters still suit the new data; a warning is issued when they do not.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, t), as in `fit`
        sample_weight : array-like of shape (n,), optional
        groups : array-like of shape (n,)
            Required if the model was fitted with groups, otherwise not allowed. Known labels denote the same groups as before.
        noise_std : array-like of shape (n,) or (n, t)
            Required if the model was fitted with `noise_std`, otherwise not allowed.
        gradient, gradient_std : array-like, optional
            Measured slopes, as in `fit`; leave them out for rows without any. The first slopes by a feature change the number of
            points per region, so that call refits everything.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(0, 6, (2000, 2))
        >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
        >>> model = StitchedRegressor(kernel="gaussian").fit(X[:1900], y[:1900])
        >>> model.partial_fit(X[1900:], y[1900:]).n_samples_seen_
        2000
        """
        if "model_" not in vars(self):
            self.fit(X, y, sample_weight, groups, noise_std, gradient, gradient_std)
            return self
        before = self._current()
        rows = self._check_more(before, as_table(X), as_table(y, "y"), sample_weight, groups, noise_std, gradient, gradient_std)
        grown = self._grow(before, rows)
        self.model_ = grown
        if is_stale(grown.growth) and not is_stale(before.growth):
            warnings.warn(
                f"Errors at new points are {grown.growth.stale:.1f} times larger than expected: the hyperparameters no longer suit"
                " the data. Call `fit` with all data to choose them again.",
                stacklevel=2,
            )
        return self

    def _check_more(
        self, model: Any, X: Any, y: Any, sample_weight: Any, groups: Any, noise_std: Any, gradient: Any, gradient_std: Any
    ) -> Points:
        """Check new rows for a model, and embed their features."""
        if gradient is None:
            inputs, outputs = validate_data(self, X, y, reset=False, dtype=np.float64, multi_output=True, y_numeric=True)
        else:
            inputs = validate_data(self, X, reset=False, dtype=np.float64)
            outputs = check_responses(y, inputs, some=False)
        check_work(self.n_jobs, None)
        check_outputs(outputs, model.flat, model.n_outputs)
        responses = np.asarray(outputs, dtype=np.float64).reshape(len(inputs), -1)
        s2 = check_more_errors(noise_std, sample_weight, model.errors, *responses.shape)
        v, group = check_weights(sample_weight, len(inputs)), check_more_groups(groups, len(inputs), model.grouped)
        places = inputs if model.chart is None else model.chart.embed_data(inputs)
        rows, variance = Points(places, responses, v, np.arange(len(inputs)), group), None
        if gradient is not None:
            given = check_more_slopes(gradient, gradient_std, inputs, responses, model)
            rows, variance = add_slopes(rows, given.slopes, given.measured, inputs, model.chart), given.known_variance
        check_given(gradient, gradient_std, noise_std)
        rows = rows if s2 is None else weigh(rows, s2, model.errors, variance)
        check_range(np.concatenate([model.extremes, rows.y[rows.measured]]))
        return rows

    def _grow(self, model: Any, rows: Points) -> Any:
        """The model with more rows."""
        return grow(model, rows, self._threads)

    def refit(self, y: ArrayLike, gradient: ArrayLike | None = None) -> Self:
        """Fit other responses ``y`` (n,) or (n, t) at the training rows, with the same hyperparameters.

        Only the linear systems of the regions are solved. A warning says if another ridge would suit the new responses far better.
        All columns of ``y`` share the factorisations. `fit` keeps these in memory as far as `stitchwork.set_cache_bytes` allows;
        missing ones are computed again.

        A model that was fitted with slopes also needs a ``gradient`` (n, d) or (n, t, d); what was NaN in `fit` may be NaN again.
        Its factorisations are always recomputed.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(0, 6, (2000, 2))
        >>> model = StitchedRegressor(kernel="gaussian").fit(X, np.sin(X[:, 0]) * np.cos(X[:, 1]))
        >>> model.refit(np.cos(X[:, 0]) * np.sin(X[:, 1])).predict([[0.0, 1.5]]).round(3)
        array([0.997])
        """
        before = self._current()
        if not isinstance(before, StitchedModel):
            raise ValueError("`refit` needs the whole model in one process. Use `to_local()`.")
        finite = before.points.slopes is None or "allow-nan"
        responses = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_all_finite=finite)
        n = before.growth.seen
        if responses.shape[:1] != (n,) or responses.ndim > 2:
            raise ValueError(f"`y` must have {n} rows, those that the model was fitted to, got shape {responses.shape}.")
        responses, slopes = check_other_slopes(gradient, responses, before)
        check_fields(before, responses)
        check_range(responses.reshape(n, -1))
        if before.origin.link != IDENTITY:
            raise ValueError("`refit` does not support models of the logarithm. Call `fit` with the new responses.")
        found = refit(before, responses, self._threads, slopes)
        factor = find_better_ridge(found, self._threads)
        self.model_ = found
        if factor != 1.0:
            warnings.warn(
                f"With ridges {factor:g} times as large, leave-one-out errors would be far smaller: the hyperparameters"
                " do not suit these responses. Call `fit` to choose them again.",
                stacklevel=2,
            )
        return self

    def forget(self, X: ArrayLike) -> Self:
        """Remove the locations ``X`` (k, d), for example for a moving window: only the regions that held them are refitted.

        Hyperparameters are kept until half of the points that they were chosen on are gone; then everything is refitted.

        Locations must match exactly, and all observations at a location are removed. A location that is not in the model raises a
        `ValueError` and leaves the model unchanged.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(0, 6, (2000, 2))
        >>> model = StitchedRegressor(kernel="gaussian").fit(X, np.sin(X[:, 0]) * np.cos(X[:, 1]))
        >>> model.forget(X[:100]).model_.n_points
        1900
        """
        before, inputs = self._ask(X)
        self.model_ = forget(before, inputs, self._threads)
        return self
