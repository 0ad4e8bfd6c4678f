"""Models of the logarithm of positive responses, with derivatives, standard deviations and intervals in the unit of the response.

Concentrations, rates, prices and the like vary by factors: their logarithm is smooth where they are steep, and exp of it is never
negative. The regions model log y; all results are converted to y, see `model.link`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._regressor import StitchedRegressor
from ._validation import unmasked
from .model.link import LOG

__all__ = ["LogStitchedRegressor"]


class LogStitchedRegressor(StitchedRegressor):
    """A `StitchedRegressor` of log y that answers in y.

    Predictions are medians and always positive; gradients and Hessians are exact. Standard deviations are those of a log-normal
    variable. Intervals keep their confidence level, because exp is monotonic. `leave_one_out`, `loo_error_` and `grid` are in y;
    `noise_` is that of log y, about the relative error of one observation. Parameters are those of `StitchedRegressor`.
    Hyperparameters are chosen by errors in log y: small responses count as much as large ones.

    Equivalent in its values to `sklearn.compose.TransformedTargetRegressor` with ``func=np.log``, which has no derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from stitchwork.transform import LogStitchedRegressor
    >>> X = np.random.default_rng(0).uniform(0, 3, (500, 1))
    >>> model = LogStitchedRegressor().fit(X, np.exp(2 * X[:, 0]))
    >>> value, gradient = model.predict_with_gradient([[1.5]])
    >>> np.round([value[0] / np.exp(3), gradient[0, 0] / value[0]], 6)
    array([1., 2.])
    >>> bool(model.predict([[-50.0]])[0] > 0)
    True
    """

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
        """Fit the model to responses ``y`` (n,) or (n, t), which must be positive; see `StitchedRegressor.fit`.

        Slopes are those of y, and need a response in their row: d log y = dy / y.

        Examples
        --------
        >>> LogStitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 10.0, 100.0]).predict([[1.5]]).round()
        array([32.])
        """
        slopes = {"gradient": _relative_slopes(gradient, y), "gradient_std": _relative_slopes(gradient_std, y)}
        fitted = StitchedRegressor(**self.get_params(deep=False)).fit(
            X, _log_of(y), sample_weight, groups, _relative(noise_std, y), **slopes
        )
        self.model_ = replace(fitted.model_, origin=replace(fitted.model_.origin, link=LOG))
        return self

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
        """Add points with positive responses; see `StitchedRegressor.partial_fit`.

        Examples
        --------
        >>> model = LogStitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 10.0, 100.0])
        >>> model.partial_fit([[3.0]], [1000.0]).n_samples_seen_
        4
        """
        if "model_" not in vars(self):
            return self.fit(X, y, sample_weight, groups, noise_std, gradient, gradient_std)
        slopes = {"gradient": _relative_slopes(gradient, y), "gradient_std": _relative_slopes(gradient_std, y)}
        return super().partial_fit(X, _log_of(y), sample_weight, groups, _relative(noise_std, y), **slopes)

    def __sklearn_tags__(self) -> Any:
        """Responses must be positive."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _relative(noise_std: Any, y: Any) -> Any:
    """Errors of log y: d log y = dy / y. Mismatched shapes are passed on, for `fit` to refuse them."""
    if noise_std is None:
        return None
    s, size = np.asarray(noise_std, dtype=float), np.asarray(y, dtype=float)
    if s.ndim == 1 and size.ndim == 2:
        s = s[:, None]
    return s / size if s.ndim == 0 or len(s) == len(size) else s


def _relative_slopes(slopes: Any, y: Any) -> Any:
    """Slopes (n, d) or (n, t, d) of log y; mismatched shapes are passed on, for `fit` to refuse them."""
    if slopes is None:
        return None
    G, size = np.asarray(slopes, dtype=float), np.asarray(y, dtype=float)
    if G.ndim < 2 and size.ndim == 1:  # one error for all rows
        G = np.broadcast_to(G, (len(size), max(G.size, 1)))
    if G.ndim == 2 and size.ndim == 2 and size.shape[1] == 1:
        size = size[:, 0]
    if G.ndim == 3 and size.ndim == 1:  # (n, 1, d), as a table has them
        size = size[:, None]
    if len(G) != len(size) or G.ndim != size.ndim + 1:
        return G
    return G / size[..., None]


def _log_of(y: Any) -> Any:
    """log y, with the names of its columns if it has any; what is not a number is passed on, for `fit` to refuse it."""
    y = unmasked(y, "y")
    numbers = np.asarray(y)
    if y is None or numbers.dtype.kind not in "fiubO":
        return y
    numbers = numbers.astype(float)
    if (numbers <= 0.0).any():
        raise ValueError(
            f"`y` must be positive to be modelled by its logarithm, and its least value is {np.nanmin(numbers):g}. Leave such rows"
            " out, or fit a `StitchedRegressor` to `y` itself."
        )
    return np.log(y if hasattr(y, "columns") or hasattr(y, "name") else numbers)
