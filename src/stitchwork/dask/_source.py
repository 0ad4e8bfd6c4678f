"""Data on a cluster as the source of a fit: survey, cut space into boxes, shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask
import numpy as np

from ..fitting.defaults import COARSE_POINTS
from ..fitting.exchange import count_points, own_points
from ..fitting.plan import Plan
from ..fitting.points import merge_coincident
from ..fitting.recipe import Executor, Survey
from ..local.points import Points, Repeats, join_points
from ..model.boxes import Boxes, cut_boxes
from ..model.chart import Chart
from ..model.space import Space
from ._cluster import Cluster
from ._inputs import Block, Blocks

_ROW_BITS = 40  # a row of the data is the number of its partition and, in this many bits, the row in it


@dataclass(frozen=True)
class Collections:
    """Blocks of rows, behind a ``chart`` if there is one, to be cut into boxes of about ``box_size`` points."""

    blocks: Blocks
    box_size: int
    cluster: Cluster
    chart: Chart | None = None

    @property
    def flat(self) -> bool:
        """Whether y has one axis."""
        return self.blocks.flat

    def survey(self, executor: Executor) -> Survey:
        """A sample of distinct points, the number of all rows, and the chart with the ranges of all features."""
        size = -(-4 * COARSE_POINTS // max(len(self.blocks.parts), 1)) + 1
        looks = [dask.delayed(look_at)(block, number, size, self.chart) for number, block in enumerate(self.blocks.parts)]
        surveys = executor.gather(self.cluster.client.compute(looks), "survey")
        if not sum(part.n for part in surveys):
            raise ValueError("There is no row to fit: all partitions are empty, or all `sample_weight` are zero.")
        return sample_evenly(surveys, COARSE_POINTS)._replace(chart=join_charts(surveys))

    def boxes(self, executor: Executor, sample: Points, n: int, plan: Plan) -> tuple[Boxes, list[Any]]:
        """Boxes with at least h distinct points each, or one, and their points."""
        boxes = cut_boxes(sample.X, n, max(self.box_size, 2 * plan.h))
        own = shuffle_blocks(self.cluster, self.blocks, sample.y.shape[1], plan, boxes)
        counts = [count for count, _ in executor.gather(executor.map(count_points, own, name="facts"), "shuffle")]
        boxes, groups = boxes.merged(counts, plan.h)
        return boxes, [
            own[group[0]] if len(group) == 1 else executor.submit(unite_boxes, *(own[i] for i in group), name="unite")
            for group in groups
        ]


def look_at(block: Block, number: int, size: int, chart: Chart | None) -> Survey:
    """Number of rows of one block, and some of them, with the ranges of all."""
    X, y, v, group = block
    used = np.flatnonzero(v > 0.0)
    chosen = used if len(used) <= size else np.sort(np.random.default_rng(number).choice(used, size, replace=False))
    row = (number << _ROW_BITS) + chosen
    places = X[chosen] if chart is None else chart.embed_data(X[chosen])
    points = Points(places, y[chosen], v[chosen], row, None if group is None else group[chosen])
    chart = None if chart is None else chart.choose_sign(X.min(axis=0, initial=0.0))
    return Survey(points, len(used), len(chosen) == len(used), chart)


def join_charts(looks: Sequence[Survey]) -> Chart | None:
    """The chart with ranges that hold the features of all blocks."""
    charts = [look.chart for look in looks if look.chart is not None]
    return replace(charts[0], start=tuple(map(min, zip(*(chart.start for chart in charts), strict=True)))) if charts else None


def sample_evenly(looks: Sequence[Survey], size: int) -> Survey:
    """All rows of all blocks if there are at most ``size``, else about so many, from each as many as its share."""
    n = sum(look.n for look in looks)
    whole = n <= size and all(look.whole for look in looks)
    parts = []
    for number, (sample, count, *_) in enumerate(looks):
        share = min(len(sample.X), count if whole else -(-count * size // n))
        parts.append(sample.at(np.sort(np.random.default_rng(number).permutation(len(sample.X))[:share])))
    return Survey(merge_coincident(join_points(*parts)), n, whole)


def frame_block(block: Block, number: int, space: Space, chart: Chart | None, boxes: Boxes) -> Any:
    """A block as a data frame with the box of every row; repeated locations are one already here."""
    import pandas as pd

    X, y, v, group = block
    places = X if chart is None else chart.embed_data(X)
    points = merge_coincident(Points(places, y, v, (number << _ROW_BITS) + np.arange(len(X)), group))
    often, spread = points.observed()
    columns: dict[str, Any] = {"box": boxes.of(space.coordinates(points.X)), "row": points.row, "v": points.v, "often": often}
    for letter, table in (("x", points.X), ("y", points.y), ("s", spread)):
        columns |= {f"{letter}{k}": column for k, column in enumerate(table.T)}
    if points.group is not None:
        columns["group"] = points.group
    return pd.DataFrame(columns).astype({"box": "int64", "row": "int64"})


def unframe_box(frame: Any, space: Space, d: int, t: int) -> Points:
    """The points of a box from what was shuffled to it."""
    X, y, spread = (frame[[f"{letter}{k}" for k in range(size)]].to_numpy(float) for letter, size in (("x", d), ("y", t), ("s", t)))
    v, often, row = (frame[name].to_numpy() for name in ("v", "often", "row"))
    repeats = Repeats(often, spread) if (often > 1.0).any() else None
    return own_points(Points(X, y, v, row, frame["group"].to_numpy() if "group" in frame else None, repeats), space)


def shuffle_blocks(cluster: Cluster, blocks: Blocks, t: int, plan: Plan, boxes: Boxes) -> list[Any]:
    """The points of every box, by Dask's own shuffle."""
    import dask.dataframe as dd

    empty = np.zeros((0, blocks.d)), np.zeros((0, t)), np.zeros(0), np.zeros(0, dtype=np.int64) if blocks.grouped else None
    space, chart = plan.space, plan.chart
    frames = [dask.delayed(frame_block)(block, number, space, chart, boxes) for number, block in enumerate(blocks.parts)]
    frame = dd.from_delayed(frames, meta=frame_block(empty, 0, space, chart, boxes), verify_meta=False)
    parts = frame.set_index("box", divisions=list(range(len(boxes) + 1))).to_delayed()
    return list(cluster.client.compute([dask.delayed(unframe_box)(part, space, len(space.shift), t) for part in parts]))


def unite_boxes(*parts: Points) -> Points:
    """Boxes that are too poor to stand alone, as one."""
    return join_points(*parts).sort_in_space()
