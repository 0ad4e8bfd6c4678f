"""A fitted model in parts on a cluster: the interface of `StitchedModel`, each query answered by the part that it lies in.

Dask collections are answered lazily, arrays at once. Parts and the coarse model are futures, or delayed files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from .._parallel import ALONE, Threads
from .._types import Array
from ..fitting.defaults import COARSE_POINTS
from ..fitting.errors import likely_further
from ..fitting.points import random_sample
from ..local.points import Jet, Points
from ..local.radial import Radial
from ..local.settings import Settings, join_settings
from ..model.boxes import Boxes
from ..model.chart import Chart
from ..model.deviation import Calibration, Moments, calibrate
from ..model.errors import KnownErrors
from ..model.known_errors import RegionsJudged, find_common, further_noise, join_judged, judge_regions, scale_regions
from ..model.loo import LeftOut, stitched_loo_residuals
from ..model.parts import Part, assemble, number_rows
from ..model.space import Space
from ..model.stitch import Contribution, Support, average_models, check_smoothness
from ..model.stitched import StitchedModel
from ..storage.folder import Manifest
from ._inputs import as_collection, check_queries, is_frame, row_blocks

_AT_ONCE = 1 << 14  # queries of a part that are worked on at once
_SHARED = (
    "n_features",
    "dimension",
    "n_outputs",
    "flat",
    "origin",
    "grouped",
    "growth",
    "space",
    "chart",
    "original",
    "errors",
    "embed",
    "metric_at",
    "frame",
    "extremes",
    "weight",
    "feature_names",
    "target_names",
    "relevance",
    "spread",
)


@dataclass(frozen=True, eq=False)
class PartedModel:
    """A fitted function in parts.

    Attributes
    ----------
    manifest : boxes, supports and counts
    coarse : the background of all parts; coarse_handle : the same on the cluster
    parts : handles, one for every box
    files : the file of each part that has not changed since it was saved, None for others
    """

    manifest: Manifest
    coarse: StitchedModel
    coarse_handle: Any
    parts: list[Any]
    files: list[Path | None] | None = None

    def __getattr__(self, name: str) -> Any:
        """What all parts share comes from the coarse model; what describes the data comes from its sample."""
        if name in _SHARED:
            return getattr(self.coarse, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def n_points(self) -> int:
        """Number of distinct points."""
        return self.manifest.n_points

    @property
    def n_regions(self) -> int:
        """m."""
        return self.manifest.n_regions

    @property
    def smoothness(self) -> float:
        """t, where the function is C^t."""
        return self.manifest.smoothness

    @property
    def levels(self) -> list[Any]:
        """A place for every level of a part."""
        return [None] * (len(self.manifest.supports) + len(self.coarse.levels))

    @cached_property
    def _regions(self) -> list[tuple[Array, Array, Settings, int, Array]]:
        """Centres, radii, settings, size and shares of the models of the regions of every box: some hundred bytes a region."""
        return list(dask.compute(*(dask.delayed(show_regions)(part) for part in self.parts)))

    @property
    def models_per_ball(self) -> int:
        """k, the number of local models of each region."""
        return len(self._regions[0][4])

    @property
    def region_size(self) -> int:
        """h."""
        return self._regions[0][3]

    @property
    def centers(self) -> Array:
        """(m, d), in the user's features."""
        return np.asarray(self.original(np.concatenate([part[0] for part in self._regions])))

    @property
    def X(self) -> Array:
        """The distinct points in the user's features, (n, d)."""
        places = np.concatenate(dask.compute(*(dask.delayed(show_places)(part) for part in self.parts)))
        return places if self.chart is None else self.chart.original(places)

    @property
    def radii(self) -> Array:
        """(m,), as the metric measures them."""
        return np.concatenate([part[1] for part in self._regions]) / self.space.unit

    @property
    def settings(self) -> Settings:
        """What the regions use."""
        return join_settings([part[2] for part in self._regions])

    def jet(self, X: Any, order: int, threads: Threads = ALONE) -> Jet:
        """Values (q, t) with derivatives (q, t, d), (q, t, d, d) up to ``order``."""
        check_smoothness(order, self.smoothness, self.weight.name)
        d, t = self.n_features, self.n_outputs
        shapes = [(t,) + (d,) * k for k in range(order + 1)]
        together = self._ask(X, partial(answer_jet, order=order), sum(int(np.prod(shape)) for shape in shapes))
        found, start = [], 0
        for shape in shapes:
            size = int(np.prod(shape))
            rows = together[:, start : start + size]
            found.append(rows.reshape(-1, *shape) if isinstance(rows, np.ndarray) else split_columns(rows, shape))
            start += size
        return Jet(*found)

    def coverage(self, X: Any, threads: Threads = ALONE) -> Any:
        """The share of the answer that comes from regions, times how near their points are, (q,): one inside the data."""
        return self._ask(X, answer_coverage, 1)[:, 0]

    def moments(self, X: Any, threads: Threads = ALONE, s2: Array | None = None) -> Moments:
        """Values, variances of the function and of the noise of one observation, (q, t) each, calibrated; see `StitchedModel`."""
        t = self.n_outputs
        together = self._ask(X, answer_moments, 3 * t, self._calibrations)
        value, variance, noise = (together[:, k * t : (k + 1) * t] for k in range(3))
        return Moments(value, variance, noise if s2 is None else s2 if self.errors is None else self.errors.variance(s2))

    def slopes(self, X: Any, threads: Threads = ALONE) -> tuple[Any, Any]:
        """Gradients and their deviations, (q, t, d) each."""
        t, d = self.n_outputs, self.n_features
        together = self._ask(X, answer_slopes, 2 * t * d, self._calibrations)
        halves = (together[:, : t * d], together[:, t * d :])
        gradient, deviation = (
            half.reshape(-1, t, d) if isinstance(half, np.ndarray) else split_columns(half, (t, d)) for half in halves
        )
        return gradient, deviation

    def per_metre(self, X: Any) -> Any:
        """Factors (q, d) that make derivatives by longitude and latitude those by metres to the east and north."""
        return self._ask(X, StitchedModel.per_metre, self.n_features)

    @cached_property
    def _calibrations(self) -> list[Calibration]:
        """The calibration of each part; all share their quantiles, and the scales of the coarse levels."""
        if self.errors is not None:
            return self._calibrate_errors(self.errors)
        coarse = calibrate(self.coarse.points, self.coarse.levels, self.weight)
        task = dask.delayed(calibrate_part)
        found = dask.compute(*(task(part, self.weight, self.manifest.supports) for part in self.parts))
        quantiles = np.average([own.quantiles for own, _ in found], axis=0, weights=[count for _, count in found])
        return [
            Calibration((*own.scales, *coarse.scales), (*own.noises, *coarse.noises), quantiles, (*own.slopes, *coarse.slopes))
            for own, _ in found
        ]

    def _calibrate_errors(self, errors: KnownErrors) -> list[Calibration]:
        """The same where errors are known: one factor and quantiles for all, from a sample of the left-out points."""
        found, coarse = self._judge(errors), scale_regions(self.coarse.levels, self.weight, ALONE)
        common = find_common(join_judged(found), self.coarse.points.y.std(axis=0), errors)
        return [common.calibration((*one.scales, *coarse), self.dimension, errors) for one in found]

    def ask_further(self, errors: KnownErrors) -> Array:
        """The variances (t,) of further noise that leave-one-out residuals, a sample of them, ask for."""
        if self.n_regions == 1:
            return likely_further(self.coarse.points, errors.unit)
        return further_noise(join_judged(self._judge(errors)), errors)

    def _judge(self, errors: KnownErrors) -> Sequence[RegionsJudged]:
        """Scales and left-out points of each part, of about as many points in all as the coarse sample has."""
        task, rate = dask.delayed(judge_part), min(1.0, COARSE_POINTS / self.n_points)
        found: Sequence[RegionsJudged] = dask.compute(
            *(task(part, self.weight, self.manifest.supports, errors, rate) for part in self.parts)
        )
        return found

    def calibration(self, threads: Threads = ALONE) -> Calibration:
        """The calibration of the first part; its quantiles and its factor are those of all parts."""
        return self._calibrations[0]

    def noises(self, threads: Threads = ALONE) -> Array:
        """Standard deviation of the noise of one observation in each region, (m, t)."""
        if self.errors is not None:
            return np.tile(np.sqrt(self.errors.further), (self.n_regions, 1))
        shares, t = self._regions[0][4], self.n_outputs
        rows = [len(part[1]) * len(shares) for part in self._regions]
        noise = [one.noises[0][:count] for one, count in zip(self._calibrations, rows, strict=True)]
        variance = np.concatenate(noise).reshape(-1, len(shares), t)
        return np.asarray(self.calibration().factor * np.sqrt(average_models(shares, variance)))

    def contributions(self, x: Array) -> list[Contribution]:
        """What makes up the prediction at one point; regions are counted within the part that answers for it."""
        box = int(self.manifest.boxes.of(self.space.coordinates(self.embed(x[None])))[0])
        task = dask.delayed(answer_contributions)(x, self.parts[box], self.coarse_handle, self.manifest.supports)
        found: list[Contribution] = dask.compute(task)[0]
        return found

    def left_out(self, threads: Threads = ALONE) -> LeftOut:
        """What every point would be without it."""
        task = dask.delayed(leave_out)
        found = dask.compute(*(task(part, self.weight, self.manifest.supports[0]) for part in self.parts))
        points, residuals = [part[0] for part in found], np.concatenate([part[1] for part in found])
        X, y, v = (np.concatenate([getattr(part, name) for part in points]) for name in ("X", "y", "v"))
        return LeftOut(self.original(X), y, residuals, v, np.arange(len(X)))

    def loo_error(self, threads: Threads = ALONE) -> float:
        """Root mean squared leave-one-out error, computed when first asked for."""
        error = self.manifest.loo_error
        if error is None:
            task = dask.delayed(sum_left_out)
            sums = dask.compute(*(task(part, self.weight, self.manifest.supports[0]) for part in self.parts))
            error = float(np.sqrt(sum(part for part, _ in sums) / sum(weight for _, weight in sums)))
            object.__setattr__(self.manifest, "loo_error", error)  # the one thing that is filled in later
        return error

    def gather(self) -> StitchedModel:
        """The whole model in the memory of this process."""
        own = dask.compute(*(dask.delayed(Part.own)(part) for part in self.parts))
        whole = number_rows(assemble(self.coarse, own, self.manifest.supports))
        return replace(whole, known_loo_error=self.manifest.loo_error)

    def _ask(self, X: Any, answer: Callable[..., Array], columns: int, calibrations: Sequence[Calibration] | None = None) -> Any:
        """``answer`` at ``X``, (q, columns), of parts with these calibrations: lazily for collections."""
        known = [None] * len(self.parts) if calibrations is None else calibrations
        lazy = is_frame(X) or isinstance(X, da.Array)
        queries, d, B = as_collection(X), self.n_features, len(self.parts)
        lengths = [np.nan] * queries.npartitions if is_frame(queries) else queries.chunks[0]
        parts = []
        for number, (block, length) in enumerate(zip(row_blocks(queries), lengths, strict=True)):
            names = self.origin.feature_names
            routed = dask.delayed(route_queries, nout=B + 1)(number, block, d, names, self.space, self.chart, self.manifest.boxes)
            task = dask.delayed(answer_part)
            shared = self.coarse_handle, self.manifest.supports, columns
            answers = [task(answer, routed[b], self.parts[b], known[b], *shared) for b in range(B)]
            whole = dask.delayed(collect_answers)(routed[B], columns, answers)
            parts.append(da.from_delayed(whole, shape=(length, columns), dtype=np.float64))
        result = da.concatenate(parts, allow_unknown_chunksizes=True)
        return result if lazy else result.compute()


def split_columns(rows: Any, shape: tuple[int, ...]) -> Any:
    """Rows (q, columns) of a dask array as (q, *shape), block by block: the number of rows may not be known."""
    return da.map_blocks(
        lambda block: block.reshape(-1, *shape), rows, new_axis=list(range(2, len(shape) + 1)), chunks=(rows.chunks[0], *shape),
        dtype=np.float64,
    )  # fmt: skip


def route_queries(
    number: int, X: Any, d: int, names: tuple[str, ...] | None, space: Space, chart: Chart | None, boxes: Boxes
) -> list[Array]:
    """The queries of a block by box, in the user's features, and then the box of every row."""
    queries = check_queries(number, X, d, names)
    box = boxes.of(space.coordinates(queries if chart is None else chart.embed(queries)))
    return [*(queries[box == b] for b in range(len(boxes))), box]


def answer_part(
    answer: Callable[..., Array],
    X: Array,
    part: Part,
    calibration: Calibration | None,
    coarse: StitchedModel,
    supports: tuple[Support, ...],
    columns: int,
) -> Array:
    """One part at its own queries, (q, columns)."""
    model = replace(assemble_part(part, coarse, supports), known_calibration=calibration)
    found = [answer(model, X[start : start + _AT_ONCE]) for start in range(0, len(X), _AT_ONCE)]
    return np.concatenate(found) if found else np.empty((0, columns))


def assemble_part(part: Part, coarse: StitchedModel, supports: tuple[Support, ...]) -> StitchedModel:
    """The model that answers in the box of a part."""
    return replace(coarse, levels=(*part.levels(supports), *coarse.levels), points=part.points)


def answer_jet(model: StitchedModel, X: Array, order: int) -> Array:
    """Values and derivatives side by side."""
    return np.concatenate([part.reshape(len(X), -1) for part in model.jet(X, order)[: order + 1]], axis=1)


def answer_moments(model: StitchedModel, X: Array) -> Array:
    """Values, variances and noise side by side."""
    return np.concatenate(model.moments(X), axis=1)


def answer_slopes(model: StitchedModel, X: Array) -> Array:
    """Gradients and their deviations side by side."""
    return np.concatenate([part.reshape(len(X), -1) for part in model.slopes(X)], axis=1)


def calibrate_part(part: Part, weight: Radial, supports: tuple[Support, ...]) -> tuple[Calibration, int]:
    """What leave-one-out says of the regions of a part, and the number of its own points."""
    level = part.levels(supports)[0]
    return calibrate(part.points, [level, level], weight), part.own_points  # the last level is not used


def judge_part(part: Part, weight: Radial, supports: tuple[Support, ...], errors: KnownErrors, rate: float) -> RegionsJudged:
    """What the regions of a part say where errors are known: of its own points, this share is left out."""
    level = part.levels(supports)[0]
    judged = judge_regions(part.points, [level, level], weight, ALONE, errors, part.own_points)  # the last is not used
    n = len(judged.parts.error)
    return judged._replace(parts=judged.parts.at(random_sample(n, ceil(rate * n))))


def answer_coverage(model: StitchedModel, X: Array) -> Array:
    """Coverage as a column."""
    return model.coverage(X)[:, None]


def answer_contributions(x: Array, part: Part, coarse: StitchedModel, supports: tuple[Support, ...]) -> list[Contribution]:
    """What makes up the prediction at one point."""
    return assemble_part(part, coarse, supports).contributions(x)


def collect_answers(box: NDArray[np.intp], columns: int, answers: list[Array]) -> Array:
    """The answers of all boxes in the order of the queries."""
    whole = np.empty((len(box), columns))
    for number, answer in enumerate(answers):
        whole[box == number] = answer
    return whole


def show_regions(part: Part) -> tuple[Array, Array, Settings, int, Array]:
    """Centres, radii, settings and size of the box's own regions, and the shares of the models of each."""
    k, models = part.regions.models_per_ball, part.regions.models
    settings = models.settings.at(np.arange(part.own_regions))  # type: ignore[attr-defined]
    own = slice(0, part.own_regions, k)
    shares = np.ones(1) if part.regions.share is None else part.regions.share[:k]
    return part.regions.centers[own], part.regions.radii[own], settings, models.members.shape[1], shares


def count_part(part: Part) -> tuple[int, int, float]:
    """Number of points and regions of the box, and the smoothness of all."""
    return part.own_points, part.own_regions // part.regions.models_per_ball, part.regions.models.smoothness


def show_places(part: Part) -> Array:
    """The box's own points, as they were given."""
    assert part.points.given is not None
    return part.points.given[: part.own_points]


def leave_out(part: Part, weight: Radial, support: Support) -> tuple[Points, Array]:
    """The box's own points and their leave-one-out residuals."""
    residuals, known = stitched_loo_residuals(part.points, part.levels([support]), weight)
    own = np.flatnonzero(known[: part.own_points])
    return part.points.at(own), residuals[own]


def sum_left_out(part: Part, weight: Radial, support: Support) -> tuple[float, float]:
    """Weighted sum of squared leave-one-out errors of the observations at the box's own points, and their weight."""
    points, residuals = leave_out(part, weight, support)
    spread = 0.0 if points.repeats is None else float(points.repeats.spread.mean(axis=1).sum())
    return float((points.v * (residuals**2).mean(axis=1)).sum()) + spread, float(points.v.sum())
