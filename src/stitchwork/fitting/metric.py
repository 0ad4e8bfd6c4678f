"""The metric: the root that is asked for, or learned from the model's own gradients.

Where a function varies along some directions only, neighbours should be near in those. The average outer product of the gradients,
G = mean ∇f̂ ∇f̂ᵀ over regions of a sample, says how much it varies along each; distance is then measured by G, or by its diagonal
alone. A candidate is kept only if leave-one-out errors fall clearly, around the same points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._parallel import Threads
from .._types import Array, Index
from ..local.fit import fit_blocks
from ..local.groups import find_blind
from ..local.points import Points
from ..local.radial import Radial, kernel_named
from ..model.chart import Chart
from ..model.space import Space, invert_root, make_space
from .candidates import Candidates
from .cover import Cover, plain_tree
from .defaults import (
    AVERAGED_KERNELS,
    CONSTANT,
    FEW_POINTS,
    FIELD_DIMENSION,
    LIKELY_METRIC_ROWS,
    LIKELY_STEPS,
    METRIC_FLOOR,
    METRIC_GAIN,
    METRIC_KERNEL,
    METRIC_POINTS,
    METRIC_REACH,
    METRIC_ROUNDS,
    MOST_METRIC_POINTS,
    NEGLIGIBLE,
)
from .likelihood import Rows, maximise_likelihood
from .points import deviation_of, random_sample
from .questions import draw_questions
from .scores import Scorer, pool


def metric_root(metric: Any, X: Array, v: Array, chart: Chart | None = None) -> Array:
    """A with A Aᵀ the metric: ``"euclidean"``, ``"standardized"`` or a symmetric positive semidefinite (d, d) matrix.

    Columns of a chart that belong to one feature share a standard deviation, so that rotating them changes nothing.
    """
    d = X.shape[1]
    if not isinstance(metric, str):
        values, vectors = np.linalg.eigh(np.asarray(metric, dtype=float))
        return vectors * np.sqrt(np.maximum(values, 0.0))
    if metric == "euclidean":
        return np.eye(d)
    middle = 0.5 * X.min(axis=0) + 0.5 * X.max(axis=0)
    extent = np.abs(X - middle).max(axis=0)
    varies = extent > CONSTANT * np.abs(X).max(axis=0)
    unit = np.where(varies, extent, 1.0)
    scaled = (X - middle) / unit  # so that no square overflows
    deviation = unit * np.sqrt(np.average((scaled - np.average(scaled, axis=0, weights=v)) ** 2, axis=0, weights=v))
    deviation = deviation if chart is None else np.sqrt(chart.pool_columns(deviation**2))
    return np.diag(np.divide(1.0, deviation, out=np.zeros(d), where=varies & (deviation > 0.0)))


Roots = Mapping[str, Array]  # of a metric by kernel: of one by likelihood, every kernel has its own


def same_root(A: Array) -> Roots:
    """One root for all kernels."""
    return dict.fromkeys(AVERAGED_KERNELS, A)


@dataclass(frozen=True)
class Trial:
    """A metric with its scores around the sampled points, (r,), and the gradients' outer product that it found."""

    name: str
    roots: Roots
    scores: Array
    G: Array

    @property
    def score(self) -> float:
        """One number for all regions; less is better."""
        return float(pool(self.scores[None], np.ones((1, len(self.scores)))))


def choose_metric(metric: Any, selection: str | None, learner: Learner) -> tuple[dict[str, float], list[Roots]]:
    """Scores of what was tried, by name, the chosen one first, and the roots of the metrics to use, the chosen one first.

    A table uses two metrics if neither is clearly better.
    """
    n, d = len(learner.points.X), learner.features
    if not isinstance(metric, str) or metric in ("euclidean", "standardized"):
        return {}, [same_root(learner.root(metric))]
    if selection != "loo" and metric == "auto":
        return {}, [same_root(learner.root("euclidean"))]  # metrics are compared by leave-one-out only
    if learner.candidates is None or n < FEW_POINTS or d == 1:
        return {}, [same_root(learner.root("standardized"))]  # too little to learn from, or nothing to choose
    table = metric == "auto" and d > FIELD_DIMENSION
    if table:
        likely = learner.attempt("likelihood", learner.likely_roots())
        tried = [likely, *learner.try_named(("standardized",))]
        trials = sorted(tried, key=_score)
    else:
        tried = learner.try_named(("standardized",) if metric == "learned" else ("euclidean", "standardized"))
        trials = tried[-1:] if surely_better(tried[-1], tried[0]) else tried[:1]
    for round_ in range(METRIC_ROUNDS if 2 * learner.h <= n or metric == "learned" else 0):
        news = learner.try_learned(trials[0], round_ + 1)
        tried += news
        if not clearly_better(news[0], trials[0]) and not (metric == "learned" and round_ == 0):
            break
        trials = news
    others = sorted((trial for trial in tried if trial is not trials[0]), key=_score)
    used = [trials[0], *(other for other in others[:1] if table and not clearly_better(trials[0], other))]
    scores = {" and ".join(trial.name for trial in used): trials[0].score}
    return scores | {trial.name: trial.score for trial in others[len(used) - 1 :]}, [trial.roots for trial in used]


@dataclass(frozen=True)
class Learner:
    """Tries metrics on regions of ``h`` points around a sample of the points; without candidates there is nothing to score."""

    points: Points
    chart: Chart | None
    h: int
    candidates: Candidates | None
    tolerance: float
    weight: Radial
    threads: Threads

    @property
    def features(self) -> int:
        """Number of features; embedded points may have more coordinates."""
        return self.points.X.shape[1] if self.chart is None else self.chart.n_features

    def root(self, metric: Any) -> Array:
        """The root of a metric that is given, or by its name."""
        return metric_root(metric, self.points.X, self.points.v, self.chart)

    def try_named(self, names: Sequence[str]) -> list[Trial]:
        """The metrics of these names."""
        return [self.attempt(name, same_root(self.root(name))) for name in names]

    def likely_roots(self) -> Roots:
        """The roots of a metric with one length scale a feature, by the likelihood of each kernel on some rows."""
        spread = self.root("standardized")
        space = make_space(self.points.X, spread)
        some = self.points.at(random_sample(len(self.points.X), LIKELY_METRIC_ROWS))
        X, v = space.coordinates(some.X) / space.unit, some.v / some.v.mean()
        y = some.y / deviation_of(some.y)
        block = np.arange(X.shape[1]) if self.chart is None else np.unique(self.chart.blocks, return_inverse=True)[1]
        rows = Rows(X - X.mean(axis=0), y - np.average(y, axis=0, weights=v), np.sqrt(v), block)
        start = np.append(np.full(block.max() + 1, -0.5 * np.log(2.0 * X.shape[1])), np.log(1e-2))
        found = {}
        for kernel in (kernel_named(name, len(spread)) for name in AVERAGED_KERNELS):
            theta, _ = maximise_likelihood(rows, kernel, 0, [start], 2 * LIKELY_STEPS, self.tolerance)
            found[kernel.name] = spread * np.exp(theta[:-1] - theta[:-1].max())[block]
        return found

    def try_learned(self, trial: Trial, round_: int) -> list[Trial]:
        """Metrics from the gradients that a trial found, the best first, in units of the standard deviation of each feature."""
        spread = self.root("standardized")
        back = invert_root(spread)
        G = back @ trial.G @ back.T
        roots = {"full": full_root(G), "diagonal": diagonal_root(G, self.chart)}
        found = {f"learned, {k}, round {round_}": same_root(spread @ root) for k, root in roots.items()}
        return sorted((self.attempt(name, roots) for name, roots in found.items()), key=_score)

    def attempt(self, name: str, roots: Roots) -> Trial:
        """Score a metric and find the gradients in it.

        A region within one group cannot judge predictions between groups. Along one curve everything looks easy, so the metric with
        most such regions would win: their error is set to the variance of their responses.
        """
        A = roots[METRIC_KERNEL]
        scorer, space = self.look(A)
        points, cover, candidates = scorer.points, scorer.cover, self.candidates
        assert candidates is not None
        (table,) = scorer.score(np.arange(len(cover)), candidates, "metric")
        blind = find_blind(points, cover.members)
        table[blind] = log_variance(points, cover.members[blind])[:, None, None]
        best = int(pool(table[None], np.ones((1, len(cover)))).argmin())
        settings = candidates.settings(np.full(len(cover), best), self.tolerance)
        models = fit_blocks(points, cover.members, settings, self.threads)
        G = np.zeros((len(A), len(A)))
        for region in range(len(cover)):
            X = points.X[cover.members[region]]
            inside = cover.at(np.array([region])).distances2(points.X)[0] < METRIC_REACH**2
            gradient = models.evaluate(np.full(inside.sum(), region), X[inside], 1).gradient
            G += np.einsum("qtd,qte->de", gradient, gradient) / gradient.shape[0]
        return Trial(name, roots, table.reshape(len(cover), -1)[:, best], space.A @ G @ space.A.T / len(cover))

    def look(self, A: Array, size: int = 0, asked: bool = False) -> tuple[Scorer, Space]:
        """The scorer of regions around the sample in the metric with root ``A``, and its space.

        Regions of any ``size`` are scored on the same points near the centre. ``asked``: with the questions of a field.
        """
        space = make_space(self.points.X, A)
        points = space.place(self.points).in_units(deviation_of(self.points.y))
        cover = self.cover_some(points.X, max(size, self.h))
        questions = None
        if asked:
            questions = draw_questions(points.X, cover, np.arange(len(cover)), (METRIC_REACH,), self.weight, self.features)
        return Scorer(points, cover, self.tolerance, self.weight, METRIC_REACH, self.threads, questions=questions), space

    def cover_some(self, X: Array, size: int) -> Cover:
        """Regions of ``size`` points around the same sample of points, whatever the metric, with the radius of ``h`` points."""
        # Few points need no more regions than a cover of them has.
        regions = min(METRIC_POINTS * X.shape[1], MOST_METRIC_POINTS, 4 * len(X)) // self.h
        center = random_sample(len(X), max(regions, 4))
        distance, members = plain_tree(X).query(X[center], k=np.arange(1, size + 1), workers=self.threads.count)
        radius = distance[:, self.h - 1]
        return Cover(members, X[center], np.where(radius > 0.0, radius, 1.0))


def log_variance(points: Points, members: Index) -> Array:
    """The log of the mean squared error (B,) of predicting ``members`` (B, h) by their mean."""
    return np.asarray(np.log(points.y[members].var(axis=1).mean(axis=1) + NEGLIGIBLE**2))


def surely_better(trial: Trial, than: Trial) -> bool:
    """Whether errors around the same points fell by more than their standard error."""
    D = trial.scores - than.scores
    return bool(D.mean() < -D.std() / np.sqrt(len(D)))


def clearly_better(trial: Trial, than: Trial) -> bool:
    """Whether errors around the same points fell by more than their standard error and by METRIC_GAIN, on average and pooled."""
    gain = (than.scores - trial.scores).mean()
    return surely_better(trial, than) and bool(gain > METRIC_GAIN and trial.score < than.score - METRIC_GAIN)


def _score(trial: Trial) -> float:
    return trial.score


def full_root(G: Array) -> Array:
    """G^½ with small eigenvalues raised to the floor."""
    values, vectors = np.linalg.eigh(G)
    top = values[-1] if values[-1] > 0.0 else 1.0
    return (vectors * np.sqrt(np.maximum(values / top, METRIC_FLOOR))) @ vectors.T


def diagonal_root(G: Array, chart: Chart | None = None) -> Array:
    """The root of the diagonal of G alone, in units of the features' own spread."""
    values = np.diagonal(G) if chart is None else chart.pool_columns(np.diagonal(G))
    top = values.max() if values.max() > 0.0 else 1.0
    return np.diag(np.sqrt(np.maximum(values / top, METRIC_FLOOR)))
