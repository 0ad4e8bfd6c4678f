"""The regions, and what each of them chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._types import Array
from ..views.slices import Ellipses, Slice, make_slice
from ._axes import INK, MUTED, SEQUENTIAL, Display, color_scale, colorbar, labelled, some_points

MANY_REGIONS = 400  # more of them cannot be told apart in a picture


@dataclass(repr=False)
class RegionsDisplay(Display):
    """Regions over the data: intervals along one feature, ellipses along two, exact cuts of the balls of the metric.

    With more than 400, it shows how many centres lie in each cell of a grid instead.

    Parameters
    ----------
    view : the slice
    regions : where the balls meet it
    points : (n, s) training points along the features of the slice
    """

    view: Slice
    regions: Ellipses
    points: Array
    collection_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        features: Sequence[int | str] | None = None,
        at: ArrayLike | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the regions of a fitted model; ``features`` and ``at`` as for `FieldDisplay`, ``options`` for the collection.

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from stitchwork import StitchedRegressor
        >>> from stitchwork.plotting import RegionsDisplay
        >>> X = np.random.default_rng(0).uniform(size=(500, 2))
        >>> model = StitchedRegressor(selection=None).fit(X, X[:, 0])
        >>> display = RegionsDisplay.from_estimator(model)
        >>> len(display.regions.center) == model.n_regions_
        True
        """
        check_is_fitted(model)
        fitted = model.model_
        view = make_slice(fitted, features, at)
        regions = view.cut(fitted.centers, fitted.radii, fitted.metric_at(view.at))
        points = fitted.X[:, list(view.features)]
        return cls(view, regions, points).plot(ax, **options)

    def _draw(self, **options: Any) -> None:
        if len(self.regions.center) > MANY_REGIONS:
            self._draw_density(**options)
        else:
            self._draw_each(**options)
        self.ax_.set_xlim(*self.view.bounds[:, 0])
        if len(self.view.features) == 2:
            self.ax_.set_ylim(*self.view.bounds[:, 1])

    def _draw_density(self, **options: Any) -> None:
        center, ends = self.regions.center, self.view.bounds
        if len(self.view.features) == 1:
            *_, self.collection_ = self.ax_.hist(
                np.clip(center[:, 0], *ends[:, 0]), bins=80, range=tuple(ends[:, 0]), **({"color": INK} | options)
            )
            labelled(self.ax_, self.view, "regions in a cell")
            return
        cells = int(np.clip(np.sqrt(len(center) / 10.0), 8, 40))  # along a side: about ten regions in each
        settings = {"gridsize": cells, "extent": (*ends[:, 0], *ends[:, 1]), "cmap": SEQUENTIAL, "mincnt": 1, "linewidths": 0.2}
        self.collection_ = self.ax_.hexbin(*center.T, **(settings | options))
        colorbar(self.ax_, self.collection_, f"regions in a cell, of {len(center):,}")
        labelled(self.ax_, self.view)

    def _draw_each(self, **options: Any) -> None:
        from matplotlib.collections import EllipseCollection, LineCollection

        points, (_, center, axes) = self.points[some_points(self.points)], self.regions
        if len(self.view.features) == 1:
            # Staggered, so that overlapping intervals can be told apart.
            height, half = np.arange(len(center)) % 12 / 12.0 + 0.1, np.abs(axes[:, 0, 0])
            ends = [[(c - r, y), (c + r, y)] for c, r, y in zip(center[:, 0], half, height, strict=True)]
            lines: dict[str, Any] = {"color": INK, "linewidth": 1.2, "alpha": 0.7} | options
            self.collection_ = LineCollection(ends, **lines)
            self.ax_.plot(points[:, 0], np.zeros(len(points)), "|", color=MUTED)
            self.ax_.set(yticks=[], ylim=(-0.1, 1.2))
        else:
            widths, heights = 2.0 * np.linalg.norm(axes, axis=1).T
            angles = np.degrees(np.arctan2(axes[:, 1, 0], axes[:, 0, 0]))
            settings = {"facecolor": "none", "edgecolor": INK, "linewidth": 0.6, "alpha": 0.6} | options
            self.collection_ = EllipseCollection(
                widths, heights, angles, units="xy", offsets=center, offset_transform=self.ax_.transData, **settings
            )
            self.ax_.plot(*points.T, ".", color=MUTED, markersize=1.5, zorder=0)
        self.ax_.add_collection(self.collection_)
        labelled(self.ax_, self.view, "regions")


@dataclass(repr=False)
class SettingsDisplay(Display):
    """Hyperparameters of the regions over space: a dot at each centre, coloured by bandwidth, ridge, degree or kernel.

    Parameters
    ----------
    labels : names of the two features, or of one
    centers : (m, s)
    values : (m,) numbers, or names
    setting : what they are
    """

    labels: tuple[str, ...]
    centers: Array
    values: Any
    setting: str
    scatter_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        setting: str = "bandwidth",
        *,
        features: Sequence[int | str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw a setting of the regions of a fitted model.

        Parameters
        ----------
        model : StitchedRegressor
        setting : {"bandwidth", "ridge", "degree", "kernel"}
        features : one or two features, by name or number, optional
        ax : matplotlib axis, optional
        **options : passed on to ``scatter``

        Examples
        --------
        >>> import matplotlib; matplotlib.use("Agg")
        >>> import numpy as np
        >>> from stitchwork import StitchedRegressor
        >>> from stitchwork.plotting import SettingsDisplay
        >>> X = np.random.default_rng(0).uniform(size=(500, 2))
        >>> model = StitchedRegressor(selection=None, kernel="gaussian").fit(X, X[:, 0])
        >>> set(SettingsDisplay.from_estimator(model, "kernel").values.tolist())
        {'gaussian'}
        """
        check_is_fitted(model)
        if setting not in ("bandwidth", "ridge", "degree", "kernel"):
            raise ValueError(f"`setting` must be 'bandwidth', 'ridge', 'degree' or 'kernel', got {setting!r}.")
        if model.model_.settings is None:
            raise ValueError("A `local_model` of your own has no settings to show.")
        view = make_slice(model.model_, features)
        values = getattr(model, {"bandwidth": "bandwidths_", "ridge": "ridges_", "degree": "degrees_"}.get(setting, "kernels_"))
        return cls(view.labels, model.centers_[:, list(view.features)], np.asarray(values), setting).plot(ax, **options)

    def _draw(self, **options: Any) -> None:
        place = (*self.centers.T, *(np.zeros_like(self.centers[:, :1]).T if self.centers.shape[1] == 1 else ()))
        settings = {"s": 14, "linewidth": 0} | options
        if self.setting in ("kernel", "degree"):
            names, number = np.unique(self.values, return_inverse=True)
            scale = {"cmap": SEQUENTIAL, "vmin": 0, "vmax": max(len(names) - 1, 1)}
            self.scatter_ = self.ax_.scatter(*place, c=number, **(scale | settings))
            handles = self.scatter_.legend_elements(num=list(range(len(names))))[0]
            self.ax_.legend(handles, [str(name) for name in names], title=self.setting)
        else:
            scale = color_scale(np.asarray(self.values, dtype=float), log=True)
            self.scatter_ = self.ax_.scatter(*place, c=self.values, **(scale | settings))
            label = "bandwidth / mean distance" if self.setting == "bandwidth" else self.setting
            colorbar(self.ax_, self.scatter_, label)
        self.ax_.set_xlabel(self.labels[0])
        if len(self.labels) == 2:
            self.ax_.set_ylabel(self.labels[1])
        else:
            self.ax_.set_yticks([])
