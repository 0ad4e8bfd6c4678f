"""The plan of a fit: the constructor's parameters, resolved for given data. Nothing is added to it later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._parallel import Threads
from .._types import Array, Index
from ..local.own import LocalModel
from ..local.points import Points
from ..local.radial import Radial, weight_named
from ..model.bounds import extremes_of, frame_of
from ..model.chart import Chart
from ..model.space import Space, make_space
from .candidates import Candidates, Move, make_families, metric_candidates, read_candidates
from .cover import fills_space, measure_overlap
from .defaults import (
    FIELD_DIMENSION,
    GAP_REACH,
    HOLE_REACH,
    METRIC_KERNEL,
    PROMISED_SMOOTHNESS,
    SEARCHED_PART,
    SLOPE_WEIGHTS,
    SUPPORT_MARGIN,
    WHOLE_FIELD,
    WHOLE_SLOPES,
    WHOLE_TABLE,
    region_size,
)
from .metric import Learner, choose_metric
from .points import deviation_of
from .size import grow_regions


@dataclass(frozen=True)
class Plan:
    """Everything that a fit needs besides the points.

    Attributes
    ----------
    h, overlap : size and overlap of the regions; searched : how many points of a large region the search uses
    noisy : whether regions are large because most of the variation between their points is noise
    shuffle : seed of a random scan of the cover, None for the order of the data
    candidates, moves, selection : what to choose from, how the search varies it, and how it is decided
    families : candidates of models that are averaged, empty if each region has one model
    field : whether queries lie anywhere between the points; tables, and points on a sheet, are queried at rows like their own
    features : number of features; least : least smoothness of kernels; degrees : those given by the user, else empty
    whole : whether one region holds all points, and its models are chosen by likelihood
    alone : whether one region holds all points
    any_kernel : whether `kernel` is "auto"; own : the custom local model; flat : whether y had one axis
    response_ridge : whether the paper's fixed ridge is used; tolerance : for the rank of the polynomial
    space, trials : the metric in use, and the scores of those that were tried
    chart, limits : the embedding of the features, if there is one, and (2, e) the extremes of embedded points
    frame : (3, d) least, greatest and median features; extremes, deviation : (2, t) and (t,) of the responses
    noise : (t,) known variance of the error of an observation of weight one, or None
    """

    h: int
    searched: int
    noisy: bool
    overlap: float
    shuffle: int | None
    candidates: Candidates
    families: tuple[Candidates, ...]
    moves: tuple[Move, ...]
    field: bool
    features: int
    least: float
    degrees: tuple[int, ...]
    whole: bool
    alone: bool
    selection: str | None
    any_kernel: bool
    own: LocalModel | None
    flat: bool
    response_ridge: bool
    tolerance: float
    weight: Radial
    w0: float
    background: str
    space: Space
    trials: dict[str, float]
    chart: Chart | None
    limits: Array
    frame: Array
    extremes: Array
    deviation: Array
    noise: Array | None
    threads: Threads

    @property
    def reach(self) -> float:
        """Radius of the support of a region, relative to the region's: a little beyond the covered points, at most one."""
        return min(1.0, SUPPORT_MARGIN / (1.0 + self.overlap))

    @property
    def reaches(self) -> tuple[float, ...]:
        """Relative radii of the supports of the levels that the regions form: `reach`, and in a hierarchy wider ones."""
        return (self.reach,) if self.background == "polynomial" else (self.reach, GAP_REACH, HOLE_REACH)

    def reaching(self, *extremes: tuple[Array, Array, Array]) -> Plan:
        """The plan with limits, frame and extremes widened to those of embedded points, features and responses in every box."""
        limits, frame, y = (widest(start, *found) for start, found in zip(self._extremes, zip(*extremes, strict=True), strict=True))
        return replace(self, limits=limits, frame=np.concatenate([frame, self.frame[2:]]), extremes=y)

    @property
    def _extremes(self) -> tuple[Array, Array, Array]:
        return self.limits, self.frame[:2], self.extremes

    def scan(self, row: Index) -> Index:
        """The order in which the cover visits points from these rows of the data: as stored there, or at random."""
        stored = np.argsort(row)
        return stored if self.shuffle is None else stored[np.random.RandomState(self.shuffle).permutation(len(row))]

    @property
    def chooses(self) -> bool:
        """Whether there is more than one candidate."""
        return self.own is None and self.selection is not None and (len(self.candidates) > 1 or bool(self.moves))


def widest(*extremes: Array) -> Array:
    """The pair (2, k) of minimum and maximum that contains several such pairs."""
    found = np.stack(extremes)
    return np.stack([found[:, 0].min(axis=0), found[:, 1].max(axis=0)])


def read_smoothness(p: dict[str, Any], d: int) -> tuple[Radial, float]:
    """The stitching weight, and the least smoothness of the kernels that ``"auto"`` tries."""
    asked = None if isinstance(p["smoothness"], str) else int(p["smoothness"])
    if p["weight"] != "auto":
        weight = weight_named(p["weight"], d)
        return weight, min(weight.smoothness, PROMISED_SMOOTHNESS) if asked is None else asked
    least = PROMISED_SMOOTHNESS if asked is None else asked
    return weight_named(f"wendland-c{least + least % 2}", d), least


def count_locations(h: int, features: int, equations: int) -> int:
    """Locations of a region of h equations, with ``equations`` of them each; at least enough to surround a query."""
    return h if equations == 1 else max(-(-h // equations), 2 * (features + 1))


def is_whole(p: dict[str, Any], n: int, features: int, equations: int = 1) -> bool:
    """Whether one region holds all n points, with models as in `whole`: they are few, and all hyperparameters are ``"auto"``."""
    ours = all(isinstance(p[name], str) and p[name] == "auto" for name in ("region_size", "bandwidth", "ridge", "kernel", "metric"))
    few = n * equations <= (WHOLE_FIELD if features <= FIELD_DIMENSION else WHOLE_TABLE if equations == 1 else WHOLE_SLOPES)
    return ours and few and n > 1 and p["selection"] == "loo" and p["local_model"] == "krr-poly"


def make_plan(
    parameters: dict[str, Any],
    points: Points,
    n: int,
    flat: bool,
    threads: Threads,
    chart: Chart | None = None,
    noise: Array | None = None,
) -> tuple[Plan, Points]:
    """The plan for n rows, of which ``points`` are all or a sample, from checked parameters; and the points in the regions' space.

    They are sorted so that neighbours are near each other in memory. ``noise`` (t,) is the variance of the error of an observation
    of weight one, where it is known.
    """
    p, d = parameters, points.X.shape[1]
    X = points.X if chart is None else chart.original(points.X)
    features, each = X.shape[1], points.equations  # of the data before embedding, and equations per point
    whole = is_whole(p, n, features, each)
    h = n if whole else region_size(n, features) if isinstance(p["region_size"], str) else p["region_size"]
    h = min(h if whole else count_locations(h, features, each), n, len(points.X))
    (weight, smoothness), tolerance = read_smoothness(p, d), float(p["rank_tolerance"])
    smoothness += points.slopes is not None  # kernels are differentiated once more
    own = None if isinstance(p["local_model"], str) else p["local_model"]
    read = partial(read_candidates, p, h * each, d, smoothness, float(points.v.mean()))
    candidates, moves = read()
    tried = None if own is not None else metric_candidates(candidates, p["kernel"], d)
    learner = Learner(points, chart, min(h, SEARCHED_PART), tried, tolerance, weight, threads)
    trials, metrics = choose_metric("standardized" if whole else p["metric"], p["selection"], learner)
    A = metrics[0][METRIC_KERNEL]
    searched, noisy = min(h, SEARCHED_PART) if n <= h else h, False
    ours = all(isinstance(p[name], str) and p[name] == "auto" for name in ("region_size", "bandwidth", "ridge"))
    if ours and p["selection"] == "loo" and features <= FIELD_DIMENSION and not whole:
        grown = grow_regions(learner, A, n)
        h, noisy = grown, grown > h
    space = make_space(points.X, A)
    any_kernel = isinstance(p["kernel"], str) and p["kernel"] == "auto"
    families: tuple[Candidates, ...] = ()
    if any_kernel and p["selection"] == "loo" and p["local_model"] == "krr-poly" and features > FIELD_DIMENSION and not whole:
        families, moves = make_families(metrics, candidates.ridges, p["degree"], p["bandwidth"], h * each, d, smoothness)
    placed = space.place(points)._replace(given=points.X).sort_in_space()
    field = features <= FIELD_DIMENSION and fills_space(placed.X, h)
    if features <= FIELD_DIMENSION and not field and points.group is None:  # a sheet, queried at rows like its own
        candidates, moves = read(sheet=True)
    if points.slopes is not None and not points.slopes.told:
        moves = (*moves, partial(Candidates.vary_slopes, weights=SLOPE_WEIGHTS))
    plan = Plan(
        h=h,
        searched=searched,
        noisy=noisy,
        overlap=measure_overlap(placed.X, h) if isinstance(p["overlap"], str) else float(p["overlap"]),
        shuffle=check_random_state(p["random_state"]).randint(2**31 - 1) if p["order"] == "random" else None,
        candidates=candidates,
        families=families,
        moves=moves,
        field=field,
        features=features,
        least=smoothness,
        degrees=() if isinstance(p["degree"], str) else tuple(int(k) for k in np.atleast_1d(p["degree"])),
        whole=whole,
        alone=n <= h,
        selection=p["selection"],
        any_kernel=any_kernel,
        own=own,
        flat=flat,
        response_ridge=isinstance(p["ridge"], str) and p["ridge"] == "response",
        tolerance=tolerance,
        weight=weight,
        w0=float(p["background_weight"]),
        background=p["background"],
        space=space,
        trials=trials,
        chart=chart,
        limits=extremes_of(points.X),
        frame=frame_of(X),
        extremes=extremes_of(points.y),
        deviation=deviation_of(points.y),
        noise=noise,
        threads=threads,
    )
    return plan, placed
