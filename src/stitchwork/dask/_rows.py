"""Blocks of rows as points, and as the data frames that Dask shuffles.

A frame has a column for each number of a row: the box, the row of the data, the weight, how often a place was observed and how
responses spread there, its coordinates, its responses, its group, and of measured slopes their values and weights. On a chart it
has their directions, too: at a pole these do not follow from the place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index
from .._validation.slopes import check_measured
from ..fitting.errors import weigh
from ..fitting.exchange import own_points
from ..fitting.points import merge_coincident, random_sample
from ..fitting.slopes import add_slopes, directions_of
from ..local.points import Points, Repeats, Slopes
from ..model.boxes import Boxes
from ..model.chart import Chart
from ..model.errors import KnownErrors, know_errors
from ..model.parts import ROW_BITS
from ..model.space import Space
from ._inputs import Block, Blocks


class Reading(NamedTuple):
    """How rows become points: the chart, known errors, and the features (k,) by which some slope was measured, if there are any.

    ``told`` says whether errors of slopes are known.
    """

    chart: Chart | None
    errors: KnownErrors | None = None
    used: Index | None = None
    told: bool = False

    def points(self, block: Block, number: int, chosen: Index) -> Points:
        """Some of the rows of a block, as places with their weights."""
        X, chart = block.X[chosen], self.chart
        places, group = X if chart is None else chart.embed_data(X), None if block.group is None else block.group[chosen]
        rows = Points(places, block.y[chosen], block.v[chosen], (number << ROW_BITS) + chosen, group)
        variance = None
        if block.slopes is not None:
            slopes, measured, s2 = block.slopes
            rows = add_slopes(rows, slopes[chosen], measured[chosen], X, chart, self.used)
            variance = None if s2 is None else s2[chosen][:, self.used]
        return rows if self.errors is None or block.s2 is None else weigh(rows, block.s2[chosen], self.errors, variance)


class Facts(NamedTuple):
    """Of a block: number of rows, some of the variances of their errors, features by which slopes were measured, ends of features
    (2, d), and whether there is a response.
    """

    n: int
    s2: Array | None
    measured: NDArray[np.bool_]
    ends: Array
    valued: bool


def find_facts(block: Block, size: int) -> Facts:
    """The facts of a block on which reading known errors and measured slopes depends."""
    ends = np.stack([block.X.min(axis=0, initial=np.inf), block.X.max(axis=0, initial=-np.inf)])
    given = np.zeros((1, block.X.shape[1]), dtype=bool) if block.slopes is None else block.slopes.measured
    s2 = None if block.s2 is None else block.s2[random_sample(len(block.X), size)]
    return Facts(len(block.X), s2, np.asarray(given.any(axis=0)), ends, bool((~np.isnan(block.y)).any()))


def join_facts(facts: Sequence[Facts], size: int, blocks: Blocks) -> Reading:
    """How rows are read, but for the chart. The median error is that of a sample of some ``size`` rows."""
    errors, used = None, None
    if blocks.errors:
        s2 = [one.s2 for one in facts if one.s2 is not None]
        chosen = choose_evenly([len(one) for one in s2], [one.n for one in facts], size)
        errors = know_errors(np.concatenate([one[some] for one, some in zip(s2, chosen, strict=True)]))
    if blocks.sloped:
        measured = np.any([one.measured for one in facts], axis=0)
        check_measured(
            measured, np.stack([np.min([one.ends[0] for one in facts], axis=0), np.max([one.ends[1] for one in facts], axis=0)])
        )
        if not any(one.valued for one in facts):
            raise ValueError("`y` must have a response in at least one row: slopes tell a function up to a constant.")
        used = np.flatnonzero(measured)
    return Reading(None, errors, used, blocks.told)


def choose_evenly(kept: Sequence[int], counts: Sequence[int], size: int) -> list[Index]:
    """Choose a sample of about ``size`` rows from the ``kept`` rows of every block, in proportion to the ``counts`` of all rows.

    All rows, if there are at most ``size`` and all were kept.
    """
    n = sum(counts)
    whole = n <= size and list(kept) == list(counts)
    shares = [min(k, count if whole else -(-count * size // max(n, 1))) for k, count in zip(kept, counts, strict=True)]
    return [np.sort(np.random.default_rng(i).permutation(k)[:share]) for i, (k, share) in enumerate(zip(kept, shares, strict=True))]


def frame_block(block: Block, number: int, space: Space, reading: Reading, boxes: Boxes) -> Any:
    """A block as a data frame with the box of every row; rows at one location are merged here already."""
    import pandas as pd

    points = merge_coincident(reading.points(block, number, np.arange(len(block.X))))
    often, spread = points.observed()
    columns: dict[str, Any] = {"box": boxes.of(space.coordinates(points.X)), "row": points.row, "v": points.v, "often": often}
    tables = [("x", points.X), ("y", points.y), ("s", spread)]
    if points.slopes is not None:
        n, k, t = points.slopes.value.shape
        tables += [("g", points.slopes.value.reshape(n, k * t)), ("w", points.slopes.weight)]
        tables += [] if reading.chart is None else [("c", points.slopes.direction.reshape(n, k * points.X.shape[1]))]
    for letter, table in tables:
        columns |= {f"{letter}{k}": column for k, column in enumerate(table.T)}
    if points.group is not None:
        columns["group"] = points.group
    return pd.DataFrame(columns).astype({"box": "int64", "row": "int64"})


def unframe_box(frame: Any, space: Space, d: int, t: int, reading: Reading) -> Points:
    """The points of a box from what was shuffled to it."""

    def table(letter: str, size: int) -> Array:
        return np.asarray(frame[[f"{letter}{k}" for k in range(size)]].to_numpy(float))

    v, often, row = (frame[name].to_numpy() for name in ("v", "often", "row"))
    repeats = Repeats(often, table("s", t)) if (often > 1.0).any() else None
    points = Points(table("x", d), table("y", t), v, row, frame["group"].to_numpy() if "group" in frame else None, repeats)
    if reading.used is not None:
        points = points._replace(slopes=read_slopes(table, points.X, t, reading))
    return own_points(points, space)


def read_slopes(table: Callable[[str, int], Array], X: Array, t: int, reading: Reading) -> Slopes:
    """The slopes of places ``X`` (n, e) from tables of the columns that begin with a letter."""
    assert reading.used is not None
    (n, e), k, chart = X.shape, len(reading.used), reading.chart
    value, weight = table("g", k * t).reshape(n, k, t), table("w", 1 + k)
    direction = directions_of(reading.used, X, None) if chart is None else table("c", k * e).reshape(n, k, e)
    every = k == (e if chart is None else chart.n_features)
    return Slopes(direction, value, weight, reading.told, None if every else reading.used)
