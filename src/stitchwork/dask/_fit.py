"""Fitting on a cluster: survey, cut space into boxes, shuffle, borrow, cover, choose, fit, exchange.

The client decides what concerns all boxes, from facts of a few kilobytes; points and models stay on the workers.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.distributed import Client, as_completed
from dask.tokenize import tokenize
from numpy.typing import NDArray

from .._assembly import assemble, coarse_plan, make_scorer
from .._boxes import Boxes, cut_boxes
from .._io import ModelState, frame_of
from .._learn import choose_metric
from .._local import Points
from .._metric import Space, make_space
from .._parallel import shown, single_threaded_blas
from .._plan import Plan, make_plan
from .._select import Grid, auto_overlap, output_scale, overall_mean, search
from .._shard_io import Manifest
from .._shards import (
    Cell,
    complete,
    excerpt,
    extent,
    fit_box,
    joined_excerpts,
    joined_points,
    lend,
    meet,
    needs,
    offer,
    open_box,
    own_points,
    score_box,
    tally,
    wide_balls,
)
from .._validation import distinct_points
from ._inputs import Blocks

Array = NDArray[np.float64]

_SAMPLE = 1 << 15  # points of the coarse model
_SEARCHED = 128  # regions, over all boxes, that the grid is searched among
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_ROW_BITS = 40  # a row of the data is the number of its partition and, in this many bits, the row in it


@dataclass(frozen=True)
class Cluster:
    """A client, and whether to show progress."""

    client: Client
    verbose: bool

    def submit(self, function: Callable[..., Any], *arguments: Any, name: str, priority: int = 0) -> Any:
        """Run one task; it appears under ``name`` on the dashboard."""
        key = f"{name}-{tokenize(function, *arguments)}"
        return self.client.submit(_quietly, function, *arguments, key=key, priority=priority)

    def map(self, function: Callable[..., Any], *columns: Sequence[Any], name: str, shared: tuple[Any, ...] = ()) -> list[Any]:
        """One task for every row of ``columns``, followed by what all of them share."""
        return [self.submit(function, *row, *shared, name=name) for row in zip(*columns, strict=True)]

    def gathered(self, futures: Sequence[Any], name: str) -> list[Any]:
        """Results of tasks, with a progress bar."""
        if self.verbose:
            for _ in shown(as_completed(list(futures)), name, total=len(futures)):
                pass
        return list(self.client.gather(list(futures)))


def _quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    allocator = _allocator()
    try:
        with single_threaded_blas():
            return function(*arguments)
    finally:
        if allocator is not None:
            allocator.malloc_trim(0)


@cache
def _allocator() -> Any:
    """The C library where it is glibc, told to keep up to 64 MB of what is freed in pieces of less than 4 MB while a task runs.

    Dask has workers give freed memory back at once, and the stacks of a fit would be asked for again, page by page, ten thousand
    times: half of the time of a fit, measured. Between tasks it is given back: holes in the heap count against a worker's limit.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "malloc_trim"):
        return None
    library.mallopt(_M_TRIM_THRESHOLD, 1 << 26)
    library.mallopt(_M_MMAP_THRESHOLD, 1 << 22)
    return library


class Survey(NamedTuple):
    """Number of rows of a block and some of them."""

    n: int
    sample: Points


def survey(block: tuple[Array, Array, Array], number: int, size: int) -> Survey:
    """Look at one block."""
    X, y, v = block
    used = np.flatnonzero(v > 0.0)
    chosen = used if len(used) <= size else np.sort(np.random.default_rng(number).choice(used, size, replace=False))
    return Survey(len(used), Points(X[chosen], y[chosen], v[chosen], (number << _ROW_BITS) + chosen))


def even_sample(surveys: Sequence[Survey], size: int) -> Points:
    """About ``size`` rows of all blocks, from each as many as its share."""
    n = sum(part.n for part in surveys)
    parts = []
    for number, (count, sample) in enumerate(surveys):
        share = min(len(sample.X), -(-count * size // n))
        parts.append(sample.at(np.sort(np.random.default_rng(number).permutation(len(sample.X))[:share])))
    X, y, v, row = joined_points(*parts)
    points = distinct_points(X, y, v)
    return points._replace(row=row[points.row])


def framed(block: tuple[Array, Array, Array], number: int, space: Space, boxes: Boxes) -> Any:
    """A block as a data frame with the box of every row; repeated locations are one already here."""
    import pandas as pd

    points = distinct_points(*block)
    columns: dict[str, Any] = {"box": boxes.of(space.coordinates(points.X)), "row": (number << _ROW_BITS) + points.row}
    columns |= {f"x{k}": column for k, column in enumerate(points.X.T)} | {f"y{k}": column for k, column in enumerate(points.y.T)}
    columns["v"] = points.v
    return pd.DataFrame(columns).astype({"box": "int64", "row": "int64"})


def unframed(frame: Any, space: Space, d: int, t: int) -> Points:
    """The points of a box from what was shuffled to it."""
    X = frame[[f"x{k}" for k in range(d)]].to_numpy(dtype=np.float64)
    y = frame[[f"y{k}" for k in range(t)]].to_numpy(dtype=np.float64)
    return own_points(X, y, frame["v"].to_numpy(), frame["row"].to_numpy(), space)


def shuffled(cluster: Cluster, blocks: Blocks, t: int, space: Space, boxes: Boxes) -> list[Any]:
    """The points of every box, by Dask's own shuffle."""
    import dask.dataframe as dd

    empty = np.zeros((0, blocks.d)), np.zeros((0, t)), np.zeros(0)
    frames = [dask.delayed(framed)(block, number, space, boxes) for number, block in enumerate(blocks.parts)]
    frame = dd.from_delayed(frames, meta=framed(empty, 0, space, boxes), verify_meta=False)
    parts = frame.set_index("box", divisions=list(range(len(boxes) + 1))).to_delayed()
    return list(cluster.client.compute([dask.delayed(unframed)(part, space, blocks.d, t) for part in parts]))


def facts(points: Points) -> tuple[int, Cell]:
    """Number of points and the box around them."""
    if not len(points.X):
        return 0, (np.full(points.X.shape[1], np.inf), np.full(points.X.shape[1], -np.inf))
    return len(points.X), (points.X.min(axis=0), points.X.max(axis=0))


def united(*parts: Points) -> Points:
    """Boxes that are too poor to stand alone, as one."""
    return joined_points(*parts).neighbourly()


def searched_grid(plan: Plan, scale: Array, *excerpts: Any) -> Grid:
    """The grid that the search leaves, on regions from all boxes."""
    return search(make_scorer(*joined_excerpts(*excerpts), plan, scale), plan.grid, plan.moves)


def reach_of(box: Any, hierarchy: bool) -> Cell:
    """The box around all that the regions of a box can ever speak of."""
    return extent(wide_balls(box.loan.points, box.cover, hierarchy))


def shard_facts(shard: Any) -> tuple[int, float]:
    """Number of regions of the box and the smoothness of all."""
    return shard.own_regions, shard.models.smoothness


class Fitted(NamedTuple):
    """A fitted model: futures of the coarse model and of the shards, and what the client knows."""

    coarse: Any
    shards: list[Any]
    manifest: Manifest
    state: ModelState


def fit_on(cluster: Cluster, blocks: Blocks, parameters: dict[str, Any], box_size: int) -> Fitted:
    """Fit the data on a cluster."""
    points, n = surveyed(cluster, blocks)
    plan = replace(make_plan(parameters, n, blocks.d, blocks.flat), n_jobs=None, verbose=False)
    trials, A = cluster.submit(choose_metric, parameters["metric"], points, plan, name="stitchwork-metric").result()
    space = make_space(points.X, A)
    sample = points._replace(X=space.coordinates(points.X)).neighbourly()
    if plan.overlap is None:
        plan = replace(plan, overlap=auto_overlap(sample.X, plan.h))
    scale, hierarchy = output_scale(sample), plan.background == "hierarchy"
    boxes, own = boxed(cluster, blocks, sample, n, box_size, space, plan)
    covered = covered_boxes(cluster, own, boxes, plan)
    reaches = cluster.gathered(cluster.map(reach_of, covered, name="stitchwork-facts", shared=(hierarchy,)), "cover")
    shards, coarse = fitted_boxes(cluster, covered, sample, plan, scale)
    whole = exchanged(cluster, shards, boxes.cells, reaches, hierarchy)
    # What the client no longer holds may go as soon as nothing waits for it; the scheduler still knows how to make it again.
    del own, covered, shards
    known = cluster.gathered(cluster.map(shard_facts, whole, name="stitchwork-facts"), "fit")
    assembly = coarse.result()
    weight = plan.weight.smoothness
    smoothness = min(weight, *(part[1] for part in known), *(level.models.smoothness for level in assembly.levels))
    manifest = Manifest(boxes, plan.reach, hierarchy, sum(part[0] for part in known), float(smoothness), None)
    about = parameters, blocks.names, None, blocks.flat, None, trials, frame_of(points.X), space, sample
    # A task, not scattered data: what a lost worker held is computed again.
    return Fitted(
        cluster.submit(ModelState, *about, coarse, name="stitchwork-coarse"), whole, manifest, ModelState(*about, assembly)
    )


def surveyed(cluster: Cluster, blocks: Blocks) -> tuple[Points, int]:
    """A sample of distinct points, and the number of all rows."""
    size = -(-4 * _SAMPLE // max(len(blocks.parts), 1)) + 1
    looks = [dask.delayed(survey)(block, number, size) for number, block in enumerate(blocks.parts)]
    surveys = cluster.gathered(cluster.client.compute(looks), "survey")
    n = sum(part.n for part in surveys)
    if not n:
        raise ValueError("There is no row to fit: all partitions are empty, or all `sample_weight` are zero.")
    return even_sample(surveys, _SAMPLE), n


def boxed(
    cluster: Cluster, blocks: Blocks, sample: Points, n: int, box_size: int, space: Space, plan: Plan
) -> tuple[Boxes, list[Any]]:
    """Boxes with at least h distinct points each, or one, and their points."""
    boxes = cut_boxes(sample.X, n, max(box_size, 2 * plan.h))
    own = shuffled(cluster, blocks, sample.y.shape[1], space, boxes)
    counts = [count for count, _ in cluster.gathered(cluster.map(facts, own, name="stitchwork-facts"), "shuffle")]
    boxes, groups = boxes.merged(counts, plan.h)
    return boxes, [
        own[group[0]] if len(group) == 1 else cluster.submit(united, *(own[i] for i in group), name="stitchwork-unite")
        for group in groups
    ]


def covered_boxes(cluster: Cluster, own: list[Any], boxes: Boxes, plan: Plan) -> list[Any]:
    """Boxes that borrowed what they need, and covered their points."""
    numbers = list(range(len(own)))
    if len(own) == 1:
        return cluster.map(open_box, own, numbers, name="stitchwork-cover", shared=(plan,))
    known = cluster.gathered(cluster.map(facts, own, name="stitchwork-facts"), "shuffle")
    wanted = cluster.map(needs, own, [plan.h] * len(own), boxes.cells, name="stitchwork-needs")
    reaches = cluster.gathered(cluster.map(extent, wanted, name="stitchwork-facts"), "borrow")
    covered = []
    for box in numbers:
        near = [other for other in numbers if other != box and meet(reaches[box], known[other][1])]
        loans = [cluster.submit(lend, own[other], other, wanted[box], name="stitchwork-lend") for other in near]
        covered.append(cluster.submit(open_box, own[box], box, plan, *loans, name="stitchwork-cover"))
    return covered


def exchanged(cluster: Cluster, shards: list[Any], cells: list[Cell], reaches: list[Cell], hierarchy: bool) -> list[Any]:
    """Shards with the regions that reach into them; each offers its own right after it was fitted, while it is in memory."""
    whole = []
    for box, shard in enumerate(shards):
        near = [other for other in range(len(shards)) if other != box and meet(reaches[other], cells[box])]
        offers = [
            cluster.submit(offer, shards[other], cells[box], hierarchy, name="stitchwork-offer", priority=10) for other in near
        ]
        whole.append(cluster.submit(complete, shard, *offers, name="stitchwork-shard", priority=10))
    return whole


def fitted_boxes(cluster: Cluster, covered: list[Any], sample: Points, plan: Plan, scale: Array) -> tuple[list[Any], Any]:
    """The boxes with the settings of all regions chosen, and fitted; and the coarse model, on a sample of all points."""

    def coarse_model(plan: Plan) -> Any:
        return cluster.submit(assemble, sample, plan, name="stitchwork-coarse", priority=1)

    if plan.selection == "loo" and (len(plan.grid) > 1 or plan.moves):
        size = max(4, -(-_SEARCHED // len(covered)))
        excerpts = cluster.map(excerpt, covered, name="stitchwork-excerpt", shared=(size,))
        grid = cluster.submit(searched_grid, plan, scale, *excerpts, name="stitchwork-search").result()
        coarse = coarse_model(coarse_plan(plan, grid))
        scores = cluster.map(score_box, covered, name="stitchwork-score", shared=(grid, plan, scale))
        sums = cluster.gathered(cluster.map(tally, scores, name="stitchwork-facts"), "select")
        common = int(overall_mean(sums).argmin())
        return cluster.map(fit_box, covered, scores, name="stitchwork-fit", shared=(grid, common, plan, scale)), coarse
    coarse = coarse_model(plan)
    decided = plan.selection == "holdout" and len(plan.grid) > 1
    common = int(coarse.result().scores.argmin()) if decided else 0
    nothing = [None] * len(covered)
    return cluster.map(fit_box, covered, nothing, name="stitchwork-fit", shared=(plan.grid, common, plan, scale)), coarse
