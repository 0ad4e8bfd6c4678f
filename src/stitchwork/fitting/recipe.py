"""The recipe of a fit, written once: survey, plan, cover, choose, fit, exchange, and the background.

An executor carries out the steps: `Here` in this process, with threads inside each step, or a cluster, box by box. Results stay
where they were computed. The recipe holds handles, and gathers only what concerns all boxes, a few kilobytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._parallel import ALONE, Progress, Threads, single_threaded_blas
from .._types import Array
from ..local.points import Points
from ..model.boxes import Boxes
from ..model.chart import Chart
from ..model.lookup import Balls
from ..model.origin import Growth, Origin
from ..model.parts import assemble
from ..model.stitch import Support
from ..model.stitched import StitchedModel
from .background import cover_samples, fit_background
from .box import (
    balls_of,
    bound_data,
    excerpt_box,
    fit_box,
    judge_box,
    open_box,
    score_box,
    search_excerpts,
    tally_products,
    tally_scores,
    tally_weights,
)
from .choice import Choice, Family, Scores, choose_one, take_whole
from .exchange import (
    bound_balls,
    bound_regions,
    complete_part,
    count_points,
    find_needs,
    lend_points,
    near_cells,
    offer_regions,
)
from .holdout import hold_out
from .plan import Plan, make_plan
from .scores import pool_sums
from .whole import choose_whole, share_out

# Stages shown to the user, by step, and their times in seconds, fixed and per point: 20,000 points in the plane, two threads.
_STAGES = {"plan": "metric", "cover": "cover", "search": "search", "score": "search", "average": "search"}
_STAGES |= {"coarse": "background", "fit": "regions"}
_EXPECTED = {"metric": (0.5, 0.0), "cover": (0.1, 1e-5), "search": (2.2, 0.0), "background": (1.3, 1e-5), "regions": (0.3, 3e-5)}


class Executor(Protocol):
    """Carries out steps. A handle stands for the result of one, and may be an argument of others."""

    @property
    def threads(self) -> Threads:
        """Threads inside of a step."""

    @property
    def keeps(self) -> bool:
        """Whether the model stays in the process that fits it, so that factors of its regions may be kept there."""

    def submit(self, step: Callable[..., Any], *arguments: Any, name: str, priority: int = 0) -> Any:
        """A handle of one step."""

    def map(self, step: Callable[..., Any], *columns: Sequence[Any], name: str, shared: tuple[Any, ...] = ()) -> list[Any]:
        """A handle for every row of ``columns``; the arguments ``shared`` by all are appended to each row."""

    def gather(self, handles: Sequence[Any], name: str) -> list[Any]:
        """The results of handles; ``name`` is that of a progress bar."""


class Survey(NamedTuple):
    """Distinct points of n rows, all of them (``whole``) or a sample; with a ``chart``, these points embedded.

    ``noise`` (t,) is the variance of the error of an observation of weight one, where it is known.
    """

    points: Points
    n: int
    whole: bool
    chart: Chart | None = None
    noise: Array | None = None


class Source(Protocol):
    """Where the data are."""

    @property
    def flat(self) -> bool:
        """Whether y has one axis."""

    def survey(self, executor: Executor) -> Survey:
        """Look at the data."""

    def boxes(self, executor: Executor, sample: Points, n: int, plan: Plan) -> tuple[Boxes, list[Any]]:
        """Boxes of at least h distinct points each, or one, and handles of their points."""


@dataclass(frozen=True)
class Here:
    """This process: a handle is the result itself."""

    threads: Threads
    keeps: bool = True

    def submit(self, step: Callable[..., Any], *arguments: Any, name: str, priority: int = 0) -> Any:
        """Carry out one step."""
        self._tell(name)
        with single_threaded_blas():
            return step(*arguments)

    def map(self, step: Callable[..., Any], *columns: Sequence[Any], name: str, shared: tuple[Any, ...] = ()) -> list[Any]:
        """Carry out a step for every row of ``columns``."""
        self._tell(name)
        return [step(*row, *shared) for row in zip(*columns, strict=True)]

    def gather(self, handles: Sequence[Any], name: str) -> list[Any]:
        """The results."""
        return list(handles)

    def _tell(self, step: str) -> None:
        if self.threads.progress is not None and step in _STAGES:
            self.threads.progress.enter(_STAGES[step])


@dataclass(frozen=True)
class Memory:
    """Distinct points in memory, with a chart embedded, as one box."""

    points: Points
    flat: bool
    chart: Chart | None
    noise: Array | None

    def survey(self, executor: Executor) -> Survey:
        """All of them."""
        return Survey(self.points, len(self.points.X), True, self.chart, self.noise)

    def boxes(self, executor: Executor, sample: Points, n: int, plan: Plan) -> tuple[Boxes, list[Any]]:
        """One box."""
        return Boxes(0, sample.X.shape[1]), [sample]


@dataclass(frozen=True)
class Fitted:
    """Handles of the coarse model and of the parts, the boxes they answer for, and the supports of their levels."""

    coarse: Any
    parts: list[Any]
    boxes: Boxes
    supports: tuple[Support, ...]


def fit_here(
    points: Points, flat: bool, origin: Origin, threads: Threads = ALONE, chart: Chart | None = None, noise: Array | None = None
) -> StitchedModel:
    """Fit distinct points, embedded if there is a chart, in this process, with one progress bar if one is wanted.

    ``noise`` (t,) is the variance of the error of an observation of weight one, where it is known.
    """
    progress = Progress(expected_times(len(points.X))) if threads.verbose else None
    try:
        fitted = fit_parts(Here(replace(threads, progress=progress)), Memory(points, flat, chart, noise), origin)
    finally:
        if progress is not None:
            progress.close()
    return assemble(fitted.coarse, fitted.parts, fitted.supports)


def expected_times(n: int) -> dict[str, float]:
    """About how long the stages of a fit take with n points, in seconds on the machine where they were measured."""
    return {stage: fixed + each * n for stage, (fixed, each) in _EXPECTED.items()}


def fit_parts(executor: Executor, source: Source, origin: Origin) -> Fitted:
    """Fit the data of a source: a part for every box, and one coarse model behind them all."""
    points, n, whole, chart, noise = source.survey(executor)
    planned = executor.submit(make_plan, origin.parameters, points, n, source.flat, executor.threads, chart, noise, name="plan")
    ((plan, sample),) = executor.gather([planned], "plan")
    boxes, own = source.boxes(executor, sample, n, plan)
    plan = plan.reaching(*executor.gather(executor.map(bound_data, own, name="facts", shared=(plan.space, chart)), "shuffle"))
    opened = open_boxes(executor, own, boxes, plan)
    supported = executor.gather(executor.map(bound_regions, opened, name="facts", shared=(max(plan.reaches),)), "cover")
    supports = measure_supports(executor, opened, plan)
    choice, scores = choose(executor, opened, sample, plan)
    before = executor.gather(executor.map(balls_of, opened, name="facts", shared=(max(plan.reaches),)), "cover") if whole else []
    coarse = executor.submit(make_coarse, sample, whole, choice, before, plan, origin, executor.keeps, name="coarse", priority=1)
    parts = executor.map(fit_box, opened, scores, name="fit", shared=(choice, plan, executor.keeps))
    # Release these handles, so that a cluster can free the data once no step waits for them.
    del own, opened, scores
    return Fitted(coarse, exchange_regions(executor, parts, boxes, supported, max(plan.reaches)), boxes, supports)


def open_boxes(executor: Executor, own: list[Any], boxes: Boxes, plan: Plan) -> list[Any]:
    """Boxes with the points that they borrow from others, and with the covers of their own."""
    if len(own) == 1:
        return executor.map(open_box, own, [0], name="cover", shared=(plan,))
    around = [cell for _, cell in executor.gather(executor.map(count_points, own, name="facts"), "shuffle")]
    wanted = executor.map(find_needs, own, [plan.h] * len(own), boxes.cells, name="needs")
    reached = executor.gather(executor.map(bound_balls, wanted, name="facts"), "borrow")
    opened = []
    for box, points in enumerate(own):
        lenders = near_cells(reached[box], around, without=box)
        loans = [executor.submit(lend_points, own[other], other, wanted[box], name="lend") for other in lenders]
        opened.append(executor.submit(open_box, points, box, plan, *loans, name="cover"))
    return opened


def measure_supports(executor: Executor, opened: list[Any], plan: Plan) -> tuple[Support, ...]:
    """The mean sum of the weights of all regions at their points, for each reach."""
    tallies = executor.gather(executor.map(tally_weights, opened, name="facts", shared=(plan,)), "cover")
    totals, n = np.sum([sums for sums, _ in tallies], axis=0), sum(count for _, count in tallies)
    return tuple(Support(reach, float(total) / n) for reach, total in zip(plan.reaches, totals, strict=True))


def choose(executor: Executor, opened: list[Any], sample: Points, plan: Plan) -> tuple[Choice | None, list[Any]]:
    """The common choice, and, if regions may deviate from it, scores of some regions of every box."""
    nothing: list[Any] = [None] * len(opened)
    if plan.own is not None:
        return None, nothing
    if not plan.chooses:
        return choose_one(plan.candidates, 0), nothing
    if plan.whole:
        (choice,) = executor.gather([executor.submit(choose_whole, sample, plan, name="search")], "search")
        return choice, nothing
    if plan.selection == "holdout":
        (errors,) = executor.gather([executor.submit(hold_out, sample, plan, name="search")], "search")
        return choose_one(plan.candidates, int(errors.argmin()), errors), nothing
    excerpts = executor.map(excerpt_box, opened, name="excerpt", shared=(1.0 / len(opened), plan))
    (families,) = executor.gather([executor.submit(search_excerpts, plan, *excerpts, name="search")], "search")
    scores = executor.map(score_box, opened, name="score", shared=(families, plan))
    tallies = executor.gather(executor.map(tally_scores, scores, name="facts"), "select")
    pooled = [pool_sums([(sums[k], count) for sums, count in tallies]) for k in range(len(families))]
    members = tuple(Family(family, int(errors.argmin())) for family, errors in zip(families, pooled, strict=True))
    if plan.noisy:
        judged = executor.gather(executor.map(judge_box, opened, name="score", shared=(families[0], plan)), "select")
        members = (take_whole(families[0], *(np.concatenate(column, axis=1) for column in zip(*judged, strict=True))),)
    choice = Choice(members, np.exp(0.5 * np.concatenate(pooled)), local=True)
    return (choice, scores) if len(members) == 1 else average(executor, opened, scores, choice, plan)


def average(executor: Executor, opened: list[Any], scores: list[Any], choice: Choice, plan: Plan) -> tuple[Choice, list[Any]]:
    """The choice with a share for each family, and the scores; families without a share are dropped."""
    tallies = executor.gather(executor.map(tally_products, opened, scores, name="average", shared=(choice, plan)), "average")
    counts = [count for *_, count in tallies]
    shares = share_out(np.average([C for _, C, _ in tallies], axis=0, weights=counts), sum(counts))
    kept = [k for k, share in enumerate(shares) if share > 0.0]
    families = tuple(replace(tallies[0][0][k], share=float(shares[k])) for k in kept)
    return replace(choice, families=families), executor.map(Scores.keep, scores, name="facts", shared=(kept,))


def make_coarse(
    sample: Points, whole: bool, choice: Choice | None, before: list[Balls], plan: Plan, origin: Origin, keep: bool
) -> StitchedModel:
    """The background of all parts, as a model of its own."""
    levels = fit_background(sample, cover_samples(sample, whole, plan), choice, plan, before, keep)
    origin = replace(origin, metric_trials=plan.trials, scores=None if choice is None else choice.errors)
    growth, bounds = Growth(plan.overlap, len(sample.X), len(sample.X), basis=len(sample.X)), (plan.frame, plan.extremes)
    model = StitchedModel(tuple(levels), sample, plan.space, plan.weight, plan.w0, *bounds, plan.flat, origin, growth)
    return model if plan.chart is None else replace(model, chart=plan.chart, limits=plan.limits)


def exchange_regions(executor: Executor, parts: list[Any], boxes: Boxes, supported: list[Any], reach: float) -> list[Any]:
    """Parts with the regions that reach into them; each offers its own right after it was fitted, while it is in memory."""
    if len(parts) == 1:
        return parts
    complete = []
    for box, (part, cell) in enumerate(zip(parts, boxes.cells, strict=True)):
        near = near_cells(cell, supported, without=box)
        offers = [executor.submit(offer_regions, parts[other], cell, reach, name="offer", priority=10) for other in near]
        complete.append(executor.submit(complete_part, part, *offers, name="part", priority=10))
    return complete
