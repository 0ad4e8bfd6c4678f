"""Axes, colours and scales that all displays share. The colour maps are safe for colour-blind readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..views.slices import Slice

SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"
INK, MUTED, ACCENT = "#1f5a8a", "#8c8c8c", "#c2410c"
_MANY_POINTS = 5000


class Display(ABC):
    """What is drawn, kept so that it can be drawn again; ``ax_`` and ``figure_`` are where it was drawn last."""

    ax_: Any = None
    figure_: Any = None

    def __repr__(self) -> str:
        """One line: texts as they are, of arrays their shapes."""
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        texts = [f"{name}={value!r}" for name, value in kept.items() if isinstance(value, str)]
        shapes = [f"{name} {' × '.join(map(str, value.shape))}" for name, value in kept.items() if isinstance(value, np.ndarray)]
        return f"{type(self).__name__}({', '.join(texts + shapes)})"

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw on ``ax``, or on an axis of a new figure."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(**options)
        return self

    @abstractmethod
    def _draw(self, **options: Any) -> None:
        """Draw on ``ax_``."""


def labelled(ax: Any, view: Slice, vertical: str | None = None) -> None:
    """Label the axes, and put the values of the other features into the title."""
    ax.set_xlabel(view.labels[0])
    ax.set_ylabel(view.labels[1] if len(view.features) == 2 else (vertical or ""))
    if view.others:
        ax.set_title(", ".join(f"{name} = {value:.4g}" for name, value in view.others), fontsize="medium")


def color_scale(values: NDArray[np.float64], log: bool = False) -> dict[str, Any]:
    """Colour map and scale: even around zero if the values cross it, logarithmic if asked for and possible."""
    from matplotlib.colors import LogNorm

    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if log and high > 0.0:
        positive = finite[finite > 0.0]
        low = max(float(positive.min()), 1e-12 * high)
        return {"cmap": SEQUENTIAL, "norm": LogNorm(low, high) if high > low else None}
    if low < 0.0 < high and min(-low, high) > 0.05 * max(-low, high):
        bound = max(-low, high)
        return {"cmap": DIVERGING, "vmin": -bound, "vmax": bound}
    return {"cmap": SEQUENTIAL, "vmin": low, "vmax": high}


def colorbar(ax: Any, shown: Any, label: str) -> Any:
    """A colour bar beside the axis."""
    return ax.figure.colorbar(shown, ax=ax, label=label)


def some_points(X: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows to draw: all, or some thousands."""
    return np.arange(0, len(X), max(1, len(X) // _MANY_POINTS))
