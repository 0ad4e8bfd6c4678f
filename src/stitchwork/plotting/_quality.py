"""How far to trust a model: errors over space, leave-one-out predictions against the data, relevance of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._types import Array
from ..views.slices import label_of, make_slice
from ._axes import ACCENT, INK, MUTED, Display, color_scale, colorbar, some_points


@dataclass(repr=False)
class ErrorDisplay(Display):
    """Absolute errors over space, on a logarithmic scale, the greatest on top.

    Parameters
    ----------
    labels : names of the two features, or of one
    points : (n, s)
    errors : (n,)
    label : what they are
    """

    labels: tuple[str, ...]
    points: Array
    errors: Array
    label: str
    scatter_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        features: Sequence[int | str] | None = None,
        output: int = 0,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the absolute errors of test data, or without them the leave-one-out errors of the training data.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from stitchwork import StitchedRegressor
        >>> from stitchwork.plotting import ErrorDisplay
        >>> X = np.random.default_rng(0).uniform(size=(300, 2))
        >>> model = StitchedRegressor(selection=None).fit(X, X[:, 0])
        >>> bool((ErrorDisplay.from_estimator(model).errors < 1e-6).all())
        True
        """
        check_is_fitted(model)
        if (X is None) != (y is None):
            raise ValueError("Test data are both `X` and `y`. Without either, leave-one-out errors are shown.")
        view, name = make_slice(model.model_, features), label_of(model.model_, model.model_.target_names[output])
        if X is None:
            left_out = model.leave_one_out()
            points, errors, label = left_out.X, left_out.residual.reshape(len(left_out.X), -1), f"leave-one-out error of {name}"
        else:
            truth = np.asarray(y, dtype=np.float64)
            errors = truth.reshape(len(truth), -1) - model.predict(X).reshape(len(truth), -1)
            points, label = np.asarray(X, dtype=np.float64), f"error of {name}"
        return cls(view.labels, points[:, list(view.features)], np.abs(errors[:, output]), f"absolute {label}").plot(ax, **options)

    def _draw(self, **options: Any) -> None:
        self.ax_.set_xlabel(self.labels[0])
        if len(self.labels) == 1:
            self.scatter_ = self.ax_.scatter(self.points[:, 0], self.errors, **({"s": 8, "color": INK} | options))
            self.ax_.set(ylabel=self.label, yscale="log" if (self.errors > 0.0).any() else "linear")
            return
        order = np.argsort(self.errors)
        settings = {"s": 6, "linewidth": 0} | color_scale(self.errors, log=True) | options
        self.scatter_ = self.ax_.scatter(*self.points[order].T, c=np.maximum(self.errors[order], 1e-300), **settings)
        colorbar(self.ax_, self.scatter_, self.label)
        self.ax_.set_ylabel(self.labels[1])


@dataclass(repr=False)
class LeaveOneOutDisplay(Display):
    """Every training point as predicted without it, against its value: on the diagonal where the model is right.

    Parameters
    ----------
    predicted, actual : (n,)
    label : name of the output
    error : their root mean squared difference, every point with its weight
    """

    predicted: Array
    actual: Array
    label: str
    error: float
    scatter_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(cls, model: Any, *, output: int = 0, ax: Any = None, **options: Any) -> Self:
        """Draw the leave-one-out predictions of a fitted model.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from stitchwork import StitchedRegressor
        >>> from stitchwork.plotting import LeaveOneOutDisplay
        >>> X = np.random.default_rng(0).uniform(size=(300, 1))
        >>> model = StitchedRegressor(selection=None).fit(X, np.sin(X[:, 0]))
        >>> display = LeaveOneOutDisplay.from_estimator(model)
        >>> bool(np.allclose(display.predicted, display.actual, atol=1e-4))
        True
        """
        check_is_fitted(model)
        left_out = model.model_.left_out()
        residual, y = left_out.residual[:, output], left_out.y[:, output]
        return cls(
            y - residual, y, label_of(model.model_, model.model_.target_names[output]), float(left_out.errors()[output])
        ).plot(ax, **options)

    def _draw(self, **options: Any) -> None:
        rows = some_points(self.actual)
        ends = [float(self.actual.min()), float(self.actual.max())]
        self.ax_.plot(ends, ends, color=MUTED, linewidth=1)
        settings = {"s": 6, "color": INK, "alpha": 0.5, "linewidth": 0} | options
        self.scatter_ = self.ax_.scatter(self.predicted[rows], self.actual[rows], **settings)
        self.ax_.set(xlabel=f"{self.label}, predicted without the point", ylabel=self.label, title=f"RMSE {self.error:.3g}")


@dataclass(repr=False)
class RelevanceDisplay(Display):
    """Share of each feature in the variation of the response, from the slopes of the model.

    Parameters
    ----------
    names : of the features
    relevance : (d,), of several outputs the mean
    """

    names: list[str]
    relevance: Array
    bars_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, **options: Any) -> Self:
        """Draw the relevance of the features of a fitted model.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from stitchwork import StitchedRegressor
        >>> from stitchwork.plotting import RelevanceDisplay
        >>> X = np.random.default_rng(0).uniform(size=(300, 2))
        >>> model = StitchedRegressor(selection=None, metric=np.diag([4.0, 0.0])).fit(X, X[:, 0])
        >>> RelevanceDisplay.from_estimator(model).relevance
        array([1., 0.])
        """
        check_is_fitted(model)
        return cls(model.model_.feature_names, model.model_.relevance.mean(axis=0)).plot(ax, **options)

    def _draw(self, **options: Any) -> None:
        order = np.argsort(self.relevance, kind="stable")
        self.bars_ = self.ax_.barh([self.names[k] for k in order], self.relevance[order], **({"color": ACCENT} | options))
        self.ax_.set(xlabel="share of what the response depends on", xlim=(0.0, None))


@dataclass(repr=False)
class CalibrationDisplay(Display):
    """How often intervals hold an observation, against how often they should: the diagonal is right, below it they are too narrow.

    Parameters
    ----------
    nominal : (k,) confidence levels
    actual : (k,) shares of observations inside their intervals
    label : what was compared with
    """

    nominal: Array
    actual: Array
    label: str
    line_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls, model: Any, X: ArrayLike, y: ArrayLike, *, output: int = 0, levels: int = 19, ax: Any = None, **options: Any
    ) -> Self:
        """Compare the intervals of a fitted model with observations ``y`` at ``X`` that it has not seen.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from stitchwork import StitchedRegressor
        >>> from stitchwork.plotting import CalibrationDisplay
        >>> X = np.random.default_rng(0).uniform(size=(3000, 1))
        >>> y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=3000)
        >>> model = StitchedRegressor(kernel="matern52").fit(X[:1000], y[:1000])
        >>> display = CalibrationDisplay.from_estimator(model, X[1000:], y[1000:])
        >>> bool(np.abs(display.actual - display.nominal).max() < 0.1)
        True
        """
        check_is_fitted(model)
        nominal, truth = np.arange(1, levels + 1) / (levels + 1), np.asarray(y, dtype=np.float64)
        ends = model.predict_interval(X, nominal).reshape(levels, len(truth), -1, 2)[:, :, output]
        truth = truth.reshape(len(truth), -1)[:, output]
        actual = ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(axis=1)
        return cls(nominal, actual, f"{len(truth):,} observations of {model.model_.target_names[output]}").plot(ax, **options)

    def _draw(self, **options: Any) -> None:
        self.ax_.plot([0, 1], [0, 1], color=MUTED, linewidth=1)
        (self.line_,) = self.ax_.plot(self.nominal, self.actual, **({"color": INK, "marker": ".", "label": self.label} | options))
        self.ax_.set(xlabel="confidence level", ylabel="share inside intervals", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        self.ax_.legend()
