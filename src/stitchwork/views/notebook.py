"""How a fitted model shows itself in a notebook: its summary beside a small picture, with nothing but NumPy."""

from __future__ import annotations

import base64
import html
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from .._parallel import ALONE, Threads
from .._types import Array
from ..model.stitched import StitchedModel
from .slices import make_slice
from .summary import summarize

_SIDE = 64  # points along a side of the picture
_WIDTH = 220  # pixels
_BAND = 0.9  # confidence of the band around a curve
# Dark violet to yellow, in even steps of lightness for every kind of eye (anchors of the colour map viridis).
_COLORS = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], dtype=float)


def notebook_view(model: StitchedModel, threads: Threads = ALONE) -> str:
    """HTML of a fitted model: the summary, and for one or two features the prediction."""
    picture = "" if model.n_features > 2 else _curve(model) if model.n_features == 1 else _image(model)
    table = summarize(model, threads)._repr_html_()
    return f'<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">{table}{picture}</div>'


def _image(model: StitchedModel) -> str:
    view = make_slice(model, (0, 1))
    values = model.jet(view.points(view.axes(_SIDE)), 0).value[:, 0].reshape(_SIDE, _SIDE)
    low, high = values.min(), values.max()
    level = (values.T[::-1] - low) / ((high - low) or 1.0)
    steps = np.linspace(0.0, 1.0, len(_COLORS))
    pixels = np.stack([np.interp(level, steps, channel) for channel in _COLORS.T], axis=-1).round().astype(np.uint8)
    data = base64.b64encode(_png(pixels)).decode()
    text = f"{model.target_names[0]} from {low:.3g} (dark) to {high:.3g} over {view.labels[0]} (across) and {view.labels[1]} (up)"
    return (
        f'<figure style="margin:0;width:{_WIDTH}px"><img alt="{html.escape(text)}" width="{_WIDTH}" height="{_WIDTH}"'
        f' src="data:image/png;base64,{data}"><figcaption style="font-size:80%">{html.escape(text)}</figcaption></figure>'
    )


def _curve(model: StitchedModel) -> str:
    view = make_slice(model, (0,))
    (x,) = view.axes(4 * _SIDE)
    y = model.jet(x[:, None], 0).value[:, 0]
    ends = np.stack([y, y]) if model.settings is None else model.interval(x[:, None], _BAND)[:, 0].T
    low, high = ends.min(), ends.max()

    def trace(at: Array, values: Array) -> str:
        up = 120.0 - 110.0 * (values - low) / ((high - low) or 1.0)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(at, up, strict=True))

    across = np.linspace(0.0, _WIDTH, len(x))
    around = trace(np.concatenate([across, across[::-1]]), np.concatenate([ends[0], ends[1, ::-1]]))
    text = f"{model.target_names[0]} from {y.min():.3g} to {y.max():.3g} over {view.labels[0]} from {x[0]:.3g} to {x[-1]:.3g}"
    text += "" if model.settings is None else f"; the band holds {_BAND:.0%} of new observations"
    return (
        f'<figure style="margin:0;width:{_WIDTH}px"><svg role="img" aria-label="{html.escape(text)}" width="{_WIDTH}" height="125">'
        f'<polygon points="{around}" fill="#1f5a8a" fill-opacity="0.18"/>'
        f'<polyline points="{trace(across, y)}" fill="none" stroke="#1f5a8a" stroke-width="2"/></svg>'
        f'<figcaption style="font-size:80%">{html.escape(text)}</figcaption></figure>'
    )


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """An image (height, width, 3) as PNG (RFC 2083): header, deflated rows that each begin with filter 0, end."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
