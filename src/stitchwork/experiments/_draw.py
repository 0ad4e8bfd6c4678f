"""Pictures of the report: maps, and errors against sizes. Matplotlib without a display; colours that all eyes can tell apart."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._types import Array
from ._methods import DEFAULT, METHODS

# Okabe and Ito's colours; the default is the blue one, the paper's method the vermilion one.
_COLOURS = ["#0072B2", "#D55E00", "#E69F00", "#999999", "#009E73", "#56B4E9", "#CC79A7", "#000000"]
_MARKERS = ["o", "s", "^", "v", "D", "P", "X"]


def canvas(rows: int, columns: int, width: float = 3.4, height: float = 3.0) -> tuple[Any, list[Any]]:
    """A figure and its axes, row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(np.atleast_1d(figure.subplots(rows, columns)).ravel())


def png(figure: Any, dpi: int = 100) -> bytes:
    """The figure as PNG with a palette of 200 colours, a third of the size."""
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    Image.open(drawn).convert("RGB").quantize(200).save(small, format="png", optimize=True)
    return small.getvalue()


def style(name: str) -> dict[str, Any]:
    """Colour and marker of a method, the same in every picture."""
    place = list(METHODS).index(name)
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "marker": _MARKERS[place % len(_MARKERS)],
        "linewidth": 2.4 if name == DEFAULT else 1.2,
        "markersize": 5,
        "linestyle": "-" if place < len(_COLOURS) else "--",
    }


def error_maps(
    maps: Mapping[str, Array], extent: Sequence[float], labels: Sequence[str], bounds: tuple[float, float], unit: str = ""
) -> bytes:
    """Images of absolute errors (rows, columns) on one logarithmic scale."""
    from matplotlib.colors import LogNorm

    columns = min(4, len(maps))
    figure, axes = canvas(-(-len(maps) // columns), columns)
    for ax, (title, values) in zip(axes, maps.items(), strict=False):
        shown = ax.imshow(
            np.maximum(values, bounds[0]).T, origin="lower", extent=extent, cmap="cividis", norm=LogNorm(*bounds), aspect="auto"
        )
        ax.set_title(title, fontsize=10)
        ax.set(xlabel=labels[0], ylabel=labels[1])
    for ax in axes[len(maps) :]:
        ax.remove()
    figure.colorbar(shown, ax=axes[: len(maps)], label=f"absolute error{unit}", shrink=0.7)
    return png(figure)


def close_ups(maps: Mapping[str, Array], extent: Sequence[float], labels: Sequence[str]) -> bytes:
    """Images of signed errors (rows, columns), each on its own scale."""
    figure, axes = canvas(1, max(len(maps), 1), 3.6, 3.0)
    for ax, (title, values) in zip(axes, maps.items(), strict=False):
        bound = float(np.quantile(np.abs(values), 0.995)) or 1.0
        shown = ax.imshow(values.T, origin="lower", extent=extent, cmap="RdBu_r", vmin=-bound, vmax=bound, aspect="auto")
        ax.set_title(title, fontsize=10)
        ax.set(xlabel=labels[0], ylabel=labels[1])
        figure.colorbar(shown, ax=ax, shrink=0.85)
    return png(figure)


def scatter_maps(panels: Sequence[tuple[str, Array, Array, dict[str, Any]]], labels: Sequence[str]) -> bytes:
    """Points (n, 2) coloured by values, one panel each: title, points, values, options of `scatter`."""
    figure, axes = canvas(1, len(panels), 4.6, 3.8)
    for ax, (title, X, values, options) in zip(axes, panels, strict=True):
        shown = ax.scatter(*X.T, c=values, s=4, linewidths=0, rasterized=True, **options)
        ax.set(title=title, xlabel=labels[0], ylabel=labels[1])
        figure.colorbar(shown, ax=ax, shrink=0.85)
    return png(figure)


def curves(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]], xlabel: str, styled: bool = True, columns: int = 3
) -> bytes:
    """Log-log curves: panel title → label → (x, y), with one legend."""
    columns = min(columns, len(panels))
    figure, axes = canvas(-(-len(panels) // columns), columns, 4.2, 3.6)
    labels: dict[str, Any] = {}
    for ax, (title, lines) in zip(axes, panels.items(), strict=False):
        for place, (label, (x, y)) in enumerate(lines.items()):
            look = style(label) if styled else {"color": _COLOURS[place % len(_COLOURS)], "marker": _MARKERS[place % len(_MARKERS)]}
            labels.setdefault(label, ax.loglog(x, y, label=label, **look)[0])
        ax.set(title=title, xlabel=xlabel)
        ax.grid(alpha=0.3, which="both", linewidth=0.4)
    for ax in axes[len(panels) :]:
        ax.remove()
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=min(5, len(labels)), fontsize=9)
    return png(figure)
