"""How a fitted estimator grows and forgets."""

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
    """What changes a fitted model by points that come and go."""

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
        """Add points: only the regions that they concern are fitted anew.

        The first call fits. As long as there are fewer than five regions' worth of points, each call fits all of them anew, choice
        included; beyond that what was chosen stays, and the cost follows the new points, not those that are there, but for one call
        in as many points as there are: once half of them are not those of the last choice, all are fitted anew. Points at known
        locations are averaged in. `stale_` tells whether the choice still suits what comes; a warning says when it does not.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, t), as in `fit`
        sample_weight : array-like of shape (n,), optional
        groups : array-like of shape (n,)
            For a model that was fitted with groups, and only then. Entries that were there before name the same groups.
        noise_std : array-like of shape (n,) or (n, t)
            For a model that was fitted with errors, and only then.
        gradient, gradient_std : array-like, optional
            Measured slopes, as in `fit`; rows without any need none. Slopes by a feature that had none so far change how many
            points a region has, and that call fits all points anew.

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
        """Rows that come to a model, with their places."""
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
        """Fit other responses ``y`` (n,) or (n, t) at the rows that the model was fitted to, with the hyperparameters that it has.

        Nothing is searched for and nothing is chosen: only the systems of the regions are solved. A warning says if another ridge
        would suit the new responses far better. Many fields, the columns of ``y``, share their factorisations. `fit` keeps these in
        memory, as far as `stitchwork.set_cache_bytes` allows; what is not there is made again.

        A model that was fitted with slopes needs a ``gradient`` (n, d) or (n, t, d), too; what was NaN in `fit` may be NaN. Its
        factors are made again.

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
            raise ValueError("`refit` is not for models of the logarithm. Call `fit` with the new responses.")
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
        """Take the locations ``X`` (k, d) out, as a moving window does: those regions that held them are fitted anew.

        What was chosen stays until half of the points that it was chosen on are gone; then all are fitted anew.

        A location is recognised exactly, and goes with all that was observed there. One that is not in the model is a
        `ValueError`, and the model stays as it was.

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
