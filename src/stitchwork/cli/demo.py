"""The demonstration: the paper's two-dimensional test, as a table, pictures and one self-contained page."""

from __future__ import annotations

import base64
import html
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._regressor import StitchedRegressor
from .._types import Array
from ..datasets import make_2d
from ..storage.whole import write_whole
from ..views.errors import errors, root_mean_square

# Table 1 of the paper: RMSE, largest and mean relative error.
PRINTED = ("PU-KRR-POLY, as printed in the paper", 0.041, 50.392, 0.021)


class Row(NamedTuple):
    """One line of the table; times in seconds, None where they are not known."""

    method: str
    rmse: float
    max_relative: float
    mean_relative: float
    gradient_rmse: float | None = None
    fit: float | None = None
    predict: float | None = None


HEADINGS = ("method", "RMSE", "max rel. error", "mean rel. error", "gradient RMSE", "fit, s", "predict, s")


_TABLE_ROWS = 3000  # of the table to try the other commands on
# Transparent pictures, with lines in a grey that is legible on white and on black: one page for light and dark screens.
_GREY = "#76808b"
_STYLE: Any = {"figure.facecolor": "none", "axes.facecolor": "none"} | dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _GREY
)


def _table(X: Array, y: Array) -> str:
    """Text of a table with the columns x, y and height."""
    rows = (",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist())
    return "\n".join(["x,y,height", *rows]) + "\n"


def run_demo(folder: Path, n: int = 20_000, announce: Callable[[str], None] = lambda text: None) -> list[Row]:
    """Fit the paper's settings and the default, measure both, and write pictures, page and a table into ``folder``."""
    from tqdm.auto import tqdm

    folder.mkdir(parents=True, exist_ok=True)
    data = make_2d(n)
    models = {"paper's settings": StitchedRegressor.paper(n_jobs=-1), "default": StitchedRegressor(n_jobs=-1)}
    rows, predictions, gradients = [Row(*PRINTED)], {}, {}
    with tqdm(total=2 * len(models) + 1, desc="demo", leave=False) as bar:
        for name, model in models.items():
            bar.set_postfix_str(f"fit, {name}")
            started = time.perf_counter()
            model.fit(data.data, data.target)
            fitted = time.perf_counter()
            bar.update()
            bar.set_postfix_str(f"predict, {name}")
            predictions[name] = model.predict(data.test_data)
            predicted = time.perf_counter()
            gradients[name] = model.gradient(data.test_data)
            bar.update()
            measured = errors(predictions[name], data.test_target)
            slope = root_mean_square(gradients[name] - data.test_gradient)
            rows.append(Row(f"stitchwork, {name}", *measured, slope, fitted - started, predicted - fitted))
        bar.set_postfix_str("pictures")
        pictures = _draw(data, models, predictions, gradients)
        for name, (png, _) in pictures.items():
            write_whole(folder / f"{name}.png", png)
        write_whole(folder / "demo.html", _page(rows, pictures, n).encode())
        write_whole(folder / "field.csv", _table(data.data[:_TABLE_ROWS], data.target[:_TABLE_ROWS]).encode())
        bar.update()
    announce(format_table(rows))
    return rows


def format_table(rows: list[Row]) -> str:
    """The table as text."""
    cells = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEADINGS))]
    lines = [
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]) for line in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _cells(row: Row) -> tuple[str, ...]:
    return (row.method, *("" if value is None else f"{value:.3g}" for value in row[1:]))


def _draw(
    data: Any, models: dict[str, Any], predictions: dict[str, Array], gradients: dict[str, Array]
) -> dict[str, tuple[bytes, str]]:
    """Pictures by name, as PNG with a caption."""
    from matplotlib import rc_context

    with rc_context(_STYLE):
        return {
            "truth": (
                _truth(data, predictions["default"]),
                "The function of the paper's test, and the default's prediction of it from scattered points.",
            ),
            "errors": (_errors(data, predictions), "Absolute errors on one logarithmic scale."),
            "gradient": (
                _gradient(data, models["default"], gradients["default"]),
                "The exact gradient of the prediction, and its distance from the gradient of the true function.",
            ),
            "regions": (
                _regions(models),
                "The regions: balls of 100 points, each with a small model; the prediction averages those that a query lies in.",
            ),
        }


def _truth(data: Any, prediction: Array) -> bytes:
    canvas, axes = _figure()
    bound = float(np.abs(data.test_target).max())
    for ax, values, title in zip(axes, (data.test_target, prediction), ("truth", "prediction, default"), strict=True):
        shown = _image(ax, data, values, cmap="RdBu_r", vmin=-bound, vmax=bound)
        ax.set_title(title)
    _colorbar(canvas, axes[1], shown, "y")
    return _png(canvas)


def _errors(data: Any, predictions: dict[str, Array]) -> bytes:
    from matplotlib.colors import LogNorm

    canvas, axes = _figure()
    for ax, (name, prediction) in zip(axes, predictions.items(), strict=True):
        error = np.maximum(np.abs(prediction - data.test_target), 1e-9)
        shown = _image(ax, data, error, cmap="cividis", norm=LogNorm(1e-8, 1e1))
        ax.set_title(name)
    _colorbar(canvas, axes[1], shown, "absolute error")
    return _png(canvas)


def _gradient(data: Any, model: Any, gradient: Array) -> bytes:
    from matplotlib.colors import LogNorm

    from ..plotting import GradientDisplay

    canvas, axes = _figure()
    GradientDisplay.from_estimator(model, ax=axes[0])
    axes[0].set_title("gradient field, default")
    error = np.linalg.norm(gradient - data.test_gradient, axis=1)
    shown = _image(axes[1], data, np.maximum(error, 1e-9), cmap="cividis", norm=LogNorm(1e-6, 1e1))
    axes[1].set_title("error of the gradient")
    _colorbar(canvas, axes[1], shown, "length of the difference")
    return _png(canvas)


def _regions(models: dict[str, Any]) -> bytes:
    from ..plotting import RegionsDisplay

    canvas, axes = _figure()
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        RegionsDisplay.from_estimator(model, ax=ax)
        ax.set_title(f"{model.n_regions_} regions, {name}")
    return _png(canvas)


def _colorbar(canvas: Any, ax: Any, shown: Any, label: str) -> None:
    """A colour bar as tall as its picture."""
    canvas.colorbar(shown, cax=ax.inset_axes([1.04, 0.0, 0.05, 1.0]), label=label)


def _figure() -> tuple[Any, Any]:
    """Two axes that need no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(10.4, 4.4), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots(1, 2)
    for ax in axes:
        ax.set(xlabel="x0", ylabel="x1", aspect="equal")
    return canvas, axes


def _image(ax: Any, data: Any, values: Array, **options: Any) -> Any:
    return ax.imshow(values.reshape(data.grid_shape).T, origin="lower", extent=(-6.0, 30.0, -6.0, 30.0), **options)


def _png(canvas: Any) -> bytes:
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _page(rows: list[Row], pictures: dict[str, tuple[bytes, str]], n: int) -> str:
    """One HTML page with everything inside."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in HEADINGS)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in rows)
    figures = "".join(
        f'<figure><img alt="{html.escape(name)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        for name, (png, caption) in pictures.items()
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>stitchwork demo</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: light-dark(#1c2733, #e4eaf0); background: light-dark(#fff, #12181f); }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .35rem .8rem; text-align: right; border-bottom: 1px solid light-dark(#ddd, #36414d); white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }}
figure {{ margin: 2rem 0; }} img {{ max-width: 100%; height: auto; }}
figcaption {{ color: light-dark(#555, #a3afbb); }}
</style></head><body>
<h1>stitchwork: the paper's test in two dimensions</h1>
<p>{n:,} scattered points on [-6, 30]², a function whose size grows a thousandfold from left to right; errors on a grid of step 0.2.
Relative errors are |y - f| / |y| and are ruled by the lines where y crosses zero. Times are wall-clock seconds of this run.</p>
<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>
{figures}
</body></html>
"""
