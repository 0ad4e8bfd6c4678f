"""Data on a cluster as the source of a fit: survey, cut space into boxes, shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask
import numpy as np

from ..fitting.defaults import COARSE_POINTS
from ..fitting.exchange import count_usable
from ..fitting.plan import Plan
from ..fitting.points import merge_coincident
from ..fitting.recipe import Executor, Survey
from ..fitting.slopes import fill_embedded, fill_responses
from ..local.points import Points, join_points
from ..model.boxes import Boxes, cut_boxes
from ..model.chart import Chart
from ..model.space import Space
from ._cluster import Cluster
from ._inputs import Block, Blocks, empty_block
from ._rows import Reading, choose_evenly, find_facts, frame_block, join_facts, unframe_box

NO_ROW = "There is no row to fit: all partitions are empty, or all `sample_weight` are zero."


@dataclass(frozen=True)
class Collections:
    """Blocks of rows, which are read in this way, to be cut into boxes of about ``box_size`` points."""

    blocks: Blocks
    box_size: int
    cluster: Cluster
    reading: Reading

    @property
    def flat(self) -> bool:
        """Whether y has one axis."""
        return self.blocks.flat

    def survey(self, executor: Executor) -> Survey:
        """A sample of distinct points, the number of all rows, and the chart with the ranges of all features."""
        size, parts = most_of_each(self.blocks), self.blocks.parts
        looks = [dask.delayed(look_at)(block, number, size, self.reading) for number, block in enumerate(parts)]
        surveys = executor.gather(self.cluster.client.compute(looks), "survey")
        if not sum(part.n for part in surveys):
            raise ValueError(NO_ROW)
        noise = None if self.reading.errors is None else self.reading.errors.unit
        return sample_evenly(surveys, COARSE_POINTS)._replace(chart=join_charts(surveys), noise=noise)

    def boxes(self, executor: Executor, sample: Points, n: int, plan: Plan) -> tuple[Boxes, list[Any]]:
        """Boxes with at least h distinct points each, or one, and their points."""
        boxes, t = cut_boxes(sample.X, n, max(self.box_size, 2 * plan.h)), sample.y.shape[1]
        own = shuffle_blocks(self.cluster, self.blocks, t, plan.space, self.reading._replace(chart=plan.chart), boxes)
        counts = executor.gather(executor.map(count_usable, own, name="facts"), "shuffle")
        boxes, groups = boxes.merged(counts, plan.h)
        own = [
            own[group[0]] if len(group) == 1 else executor.submit(unite_boxes, *(own[i] for i in group), name="unite")
            for group in groups
        ]
        if sample.slopes is not None:
            own = executor.map(fill_embedded, own, name="fill", shared=(plan.features, plan.chart))
        return boxes, own


def most_of_each(blocks: Blocks) -> int:
    """How many rows of each block are looked at: four times its share of a sample, since blocks differ in size."""
    return -(-4 * COARSE_POINTS // max(len(blocks.parts), 1)) + 1


def know_rows(cluster: Cluster, blocks: Blocks) -> Reading:
    """What is to be known of all rows before errors and slopes can be read, if any are given."""
    if not (blocks.errors or blocks.sloped):
        return Reading(None)
    looks = [dask.delayed(find_facts)(block, most_of_each(blocks)) for block in blocks.parts]
    facts = cluster.gather(cluster.client.compute(looks), "survey")
    if not sum(one.n for one in facts):
        raise ValueError(NO_ROW)
    return join_facts(facts, COARSE_POINTS, blocks)


def look_at(block: Block, number: int, size: int, reading: Reading) -> Survey:
    """Number of rows of one block, and some of them, with the ranges of all."""
    used, chart = np.flatnonzero(block.v > 0.0), reading.chart
    chosen = used if len(used) <= size else np.sort(np.random.default_rng(number).choice(used, size, replace=False))
    chart = None if chart is None else chart.choose_sign(block.X.min(axis=0, initial=0.0))
    return Survey(reading.points(block, number, chosen), len(used), len(chosen) == len(used), chart)


def join_charts(looks: Sequence[Survey]) -> Chart | None:
    """The chart with ranges that hold the features of all blocks."""
    charts = [look.chart for look in looks if look.chart is not None]
    return replace(charts[0], start=tuple(map(min, zip(*(chart.start for chart in charts), strict=True)))) if charts else None


def sample_evenly(looks: Sequence[Survey], size: int) -> Survey:
    """All rows of all blocks if there are at most ``size``, else about so many, from each as many as its share."""
    n = sum(look.n for look in looks)
    chosen = choose_evenly([len(look.points.X) for look in looks], [look.n for look in looks], size)
    points = join_points(*(look.points.at(some) for look, some in zip(looks, chosen, strict=True)))
    return Survey(fill_responses(merge_coincident(points)), n, n <= size and all(look.whole for look in looks))


def shuffle_blocks(cluster: Cluster, blocks: Blocks, t: int, space: Space, reading: Reading, boxes: Boxes) -> list[Any]:
    """The points of every box, by Dask's own shuffle."""
    import dask.dataframe as dd

    group = np.zeros(0, dtype=np.int64) if blocks.grouped else None
    empty = empty_block(blocks.d, t, group, blocks.errors, blocks.sloped, blocks.told)
    frames = [dask.delayed(frame_block)(block, number, space, reading, boxes) for number, block in enumerate(blocks.parts)]
    frame = dd.from_delayed(frames, meta=frame_block(empty, 0, space, reading, boxes), verify_meta=False)
    parts = frame.set_index("box", divisions=list(range(len(boxes) + 1))).to_delayed()
    return list(cluster.client.compute([dask.delayed(unframe_box)(part, space, len(space.shift), t, reading) for part in parts]))


def unite_boxes(*parts: Points) -> Points:
    """The points of boxes with too few points to stand alone, as those of one box."""
    return join_points(*parts).sort_in_space()
