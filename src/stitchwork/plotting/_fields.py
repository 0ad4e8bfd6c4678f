"""The function itself on a slice: values, derivatives, coverage, and the gradient as arrows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._types import Array
from ..views.slices import Slice, layer_label, layer_values, make_slice, map_aspect
from ._axes import INK, MUTED, Display, color_scale, colorbar, labelled, some_points

_KINDS = {"prediction": "value", "gradient": "gradient", "laplacian": "laplacian", "coverage": "coverage", "deviation": "deviation"}


@dataclass(repr=False)
class FieldDisplay(Display):
    """A scalar field of a model on a slice: a curve along one feature, an image along two.

    Parameters
    ----------
    view : the slice
    axes : coordinates along each of its features
    values : the field on their grid
    label : what it is
    data : training points in the slice's features and their responses, to be drawn over a curve
    band : (q, 2) lower and upper ends of intervals along a curve
    """

    view: Slice
    axes: list[Array]
    values: Array
    label: str
    data: tuple[Array, Array] | None = None
    band: Array | None = None
    image_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        kind: str = "prediction",
        *,
        features: Sequence[int | str] | None = None,
        at: ArrayLike | None = None,
        output: int = 0,
        grid: int | None = None,
        interval: float | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw a field of a fitted model.

        Parameters
        ----------
        model : StitchedRegressor
        kind : {"prediction", "gradient", "laplacian", "coverage", "deviation"}
            Values, length of the gradient, trace of the Hessian, how much of the answer comes from regions with data, or the
            standard deviation of a new observation.
        features : one or two features, by name or number, optional
            What the slice runs along; the two most relevant unless given.
        at : array of shape (d,), optional
            Where the other features stand; at their medians unless given.
        output : int
            Which output, of several.
        grid : int, optional
            Points along a side.
        interval : float, optional
            A confidence, such as 0.9: draws intervals of it as a band around a predicted curve.
        ax : matplotlib axis, optional
        **options : passed on to ``imshow`` or ``plot``

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from stitchwork import StitchedRegressor
        >>> from stitchwork.plotting import FieldDisplay
        >>> X = np.random.default_rng(0).uniform(size=(300, 2))
        >>> model = StitchedRegressor(selection=None).fit(X, X[:, 0] * X[:, 1])
        >>> FieldDisplay.from_estimator(model, "coverage", grid=20).values.shape
        (20, 20)
        """
        check_is_fitted(model)
        if kind not in _KINDS:
            raise ValueError(f"`kind` must be one of {', '.join(map(repr, _KINDS))}, got {kind!r}.")
        fitted, data = model.model_, None
        view = make_slice(fitted, features, at)
        axes = view.axes(grid)
        values = layer_values(fitted, view.points(axes), _KINDS[kind], output).reshape([len(axis) for axis in axes])
        if fitted.n_features == 1 and kind == "prediction":
            data = fitted.X[:, 0], fitted.responses[:, output]
        band = None
        if interval is not None:
            if kind != "prediction" or len(axes) != 1:
                raise ValueError("An `interval` is drawn as a band around a prediction along one feature. Give one of `features`.")
            band = fitted.interval(view.points(axes), interval)[:, output]
        display = cls(view, axes, values, layer_label(fitted, _KINDS[kind], output), data, band)
        return display.plot(ax, **options)

    def _draw(self, **options: Any) -> None:
        if len(self.axes) == 1:
            if self.data is not None:
                rows = some_points(self.data[0])
                self.ax_.plot(self.data[0][rows], self.data[1][rows], ".", color=MUTED, markersize=3, zorder=0)
            if self.band is not None:
                self.ax_.fill_between(self.axes[0], *self.band.T, color=INK, alpha=0.2, linewidth=0)
            (self.image_,) = self.ax_.plot(self.axes[0], self.values, **({"color": INK} | options))
        else:
            # Points are the middles of pixels.
            steps = [0.5 * (axis[-1] - axis[0]) / max(len(axis) - 1, 1) for axis in self.axes]
            extent = [float(end) for axis, s in zip(self.axes, steps, strict=True) for end in (axis[0] - s, axis[-1] + s)]
            settings = (
                {"origin": "lower", "extent": extent, "aspect": map_aspect(self.view) or "auto"}
                | color_scale(self.values)
                | options
            )
            self.image_ = self.ax_.imshow(self.values.T, **settings)
            colorbar(self.ax_, self.image_, self.label)
        labelled(self.ax_, self.view, self.label)


@dataclass(repr=False)
class GradientDisplay(Display):
    """The gradient as arrows on a slice along two features; colours are lengths, which may differ by orders of magnitude.

    Parameters
    ----------
    view : the slice
    points, arrows : (k, 2) places and gradients along the features of the slice
    label : what it is
    """

    view: Slice
    points: Array
    arrows: Array
    label: str
    quiver_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        features: Sequence[int | str] | None = None,
        at: ArrayLike | None = None,
        output: int = 0,
        grid: int = 22,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the gradient of a fitted model of at least two features; parameters as for `FieldDisplay`.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from stitchwork import StitchedRegressor
        >>> from stitchwork.plotting import GradientDisplay
        >>> X = np.random.default_rng(0).uniform(size=(300, 2))
        >>> model = StitchedRegressor(selection=None).fit(X, X @ [1.0, 2.0])
        >>> np.round(GradientDisplay.from_estimator(model, grid=5).arrows[0], 6)
        array([1., 2.])
        """
        check_is_fitted(model)
        fitted = model.model_
        view = make_slice(fitted, features, at)
        if len(view.features) != 2:
            raise ValueError("Arrows need two `features`. Draw the derivative along one with `FieldDisplay`.")
        X = view.points(view.axes(grid))
        arrows = fitted.jet(X, 1).gradient[:, output][:, list(view.features)]
        label = f"length of the gradient of {fitted.target_names[output]} along {' and '.join(view.labels)}"
        return cls(view, X[:, list(view.features)], arrows, label).plot(ax, **options)

    def _draw(self, **options: Any) -> None:
        length = np.linalg.norm(self.arrows, axis=1)
        # Directions as seen: axes may have different units, and arrows live on the screen.
        span = np.ptp(self.view.bounds, axis=0)
        seen = self.arrows * span
        seen = seen / np.maximum(np.linalg.norm(seen, axis=1), 1e-300)[:, None]
        scale = color_scale(length, log=True)
        settings = {
            "pivot": "mid",
            "scale": 1.2 * np.sqrt(len(length)),
            "width": 0.004,
            "cmap": scale["cmap"],
            "norm": scale.get("norm"),
        }
        self.quiver_ = self.ax_.quiver(*self.points.T, *seen.T, length, **(settings | options))
        colorbar(self.ax_, self.quiver_, self.label)
        self.ax_.set_aspect(map_aspect(self.view) or self.ax_.get_aspect())
        labelled(self.ax_, self.view)
