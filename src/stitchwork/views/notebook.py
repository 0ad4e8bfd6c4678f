"""How a fitted model shows itself in a notebook: its summary beside a small picture, with nothing but NumPy."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from .._parallel import ALONE, Threads
from .._types import Array
from ..model.stitched import StitchedModel
from .slices import label_of, make_slice
from .summary import summarize

_SIDE = 64  # points along a side of the picture
_WIDTH, _HEIGHT = 240, 200  # of the frame of a picture, in pixels
_LEFT, _TOP, _RIGHT, _BELOW = 52, 8, 78, 40  # beside it: ticks, names, the colour bar
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
    low, high = float(values.min()), float(values.max())
    name = label_of(model, model.target_names[0])
    bar = _across((low, high), _HEIGHT)
    x = _WIDTH + 12
    ticks = "".join(f'<text x="{x + 18}" y="{_HEIGHT - bar(v) + 4:.1f}">{v:g}</text>' for v in _ticks(low, high))
    drawn = (
        _picture(_colored((values.T[::-1] - low) / ((high - low) or 1.0)), 0, _WIDTH)
        + _picture(_colored(np.linspace(1.0, 0.0, _SIDE)[:, None]), x, 12)
        + f"{ticks}{_rotated(name, x + 62)}"
    )
    text = f"{name} from {low:.3g} (dark) to {high:.3g} over {view.labels[0]} (across) and {view.labels[1]} (up)"
    return _framed(drawn, view.bounds[:, 0], view.bounds[:, 1], view.labels, text)


def _curve(model: StitchedModel) -> str:
    view = make_slice(model, (0,))
    (x,) = view.axes(4 * _SIDE)
    y = model.jet(x[:, None], 0).value[:, 0]
    ends = np.stack([y, y]) if model.settings is None else model.interval(x[:, None], _BAND)[:, 0].T
    low, high = float(ends.min()), float(ends.max())
    right, up = _across((x[0], x[-1]), _WIDTH), _across((low, high), _HEIGHT)

    def trace(at: Array, values: Array) -> str:
        return " ".join(f"{right(a):.1f},{_HEIGHT - up(b):.1f}" for a, b in zip(at, values, strict=True))

    around = trace(np.concatenate([x, x[::-1]]), np.concatenate([ends[0], ends[1, ::-1]]))
    drawn = (
        f'<polygon points="{around}" fill="#3b82b6" fill-opacity="0.25"/>'
        f'<polyline points="{trace(x, y)}" fill="none" stroke="#3b82b6" stroke-width="2"/>'
    )
    name = label_of(model, model.target_names[0])
    text = f"{name} from {y.min():.3g} to {y.max():.3g} over {view.labels[0]} from {x[0]:.3g} to {x[-1]:.3g}"
    text += "" if model.settings is None else f"; the band holds {_BAND:.0%} of new observations"
    return _framed(drawn, view.bounds[:, 0], (low, high), (view.labels[0], name), text)


def _framed(
    drawn: str, across: Array | tuple[float, float], up: Array | tuple[float, float], labels: Sequence[str], text: str
) -> str:
    """What is drawn, in pixels from the upper left corner of a frame, with ticks and names beside it and ``text`` below."""
    at_x, at_y = _across(across, _WIDTH), _across(up, _HEIGHT)
    x = "".join(_tick(at_x(v), _HEIGHT, 0, 4, f'<text x="{at_x(v):.1f}" y="{_HEIGHT + 16}"', "middle", v) for v in _ticks(*across))
    y = "".join(_tick(0, _HEIGHT - at_y(v), -4, 0, f'<text x="-7" y="{_HEIGHT - at_y(v) + 4:.1f}"', "end", v) for v in _ticks(*up))
    width, height = _LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BELOW
    return (
        f'<figure style="margin:0;width:{width}px"><svg role="img" aria-label="{html.escape(text)}"'
        f' width="{width}" height="{height}" font-size="11" fill="currentColor" font-family="sans-serif">'
        f'<g transform="translate({_LEFT} {_TOP})">{drawn}'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="currentColor"/>{x}{y}'
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT + 34}" text-anchor="middle">{html.escape(labels[0])}</text>{_rotated(labels[1], -41)}'
        f'</g></svg><figcaption style="font-size:80%">{html.escape(text)}</figcaption></figure>'
    )


def _tick(x: float, y: float, dx: float, dy: float, place: str, anchor: str, value: float) -> str:
    line = f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + dx:.1f}" y2="{y + dy:.1f}" stroke="currentColor"/>'
    return f'{line}{place} text-anchor="{anchor}">{value:g}</text>'


def _rotated(text: str, x: float) -> str:
    middle = _HEIGHT / 2
    return f'<text x="{x}" y="{middle}" text-anchor="middle" transform="rotate(-90 {x} {middle})">{html.escape(text)}</text>'


def _across(ends: Array | tuple[float, float], pixels: float) -> Callable[[float], float]:
    """From a value between two ends to pixels from the first."""
    low, high = ends
    return lambda value: pixels * (value - low) / ((high - low) or 1.0)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ends: steps of 1, 2 or 5 times a power of ten, about four of them."""
    if not high > low:
        return [float(low)]
    rough = (high - low) / 4.0
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * min((1.0, 2.0, 5.0, 10.0), key=lambda factor: abs(factor * power - rough))
    return [float(f"{k * step:.12g}") for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def _picture(pixels: NDArray[np.uint8], x: float, width: float) -> str:
    data = base64.b64encode(_png(pixels)).decode()
    size = f'x="{x}" width="{width}" height="{_HEIGHT}" preserveAspectRatio="none"'
    return f'<image {size} href="data:image/png;base64,{data}"/>'


def _colored(level: Array) -> NDArray[np.uint8]:
    """Levels between zero and one as pixels (…, 3)."""
    steps = np.linspace(0.0, 1.0, len(_COLORS))
    return np.stack([np.interp(level, steps, channel) for channel in _COLORS.T], axis=-1).round().astype(np.uint8)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """An image (height, width, 3) as PNG (RFC 2083): header, deflated rows that each begin with filter 0, end."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
