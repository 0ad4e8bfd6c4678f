"""Learning the metric from the model's own gradients.

Where a function varies along some directions only, neighbours should be near in those. The average outer product of the gradients,
G = mean ∇f̂ ∇f̂ᵀ over regions of a sample, says how much it varies along each; distance is then measured by G, or by its diagonal
alone. A candidate is kept only if leave-one-out errors fall clearly, around the same points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ._blocks import fit_blocks, from_center
from ._cover import Cover
from ._local import Points
from ._metric import make_space, metric_root
from ._plan import Plan
from ._select import Scorer, even_outputs, overall, spread_sample

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_SAMPLED_POINTS = 4800  # in all regions together
_REACH = 0.65  # a region is judged, and its gradients are taken, within this share of its radius
_FEW_POINTS = 30
_ROUNDS = 3
_CLEAR_GAIN = 0.2  # in log squared error: a metric that is harder to understand must lower the error by a tenth
_FLOOR = 1e-4  # least relative eigenvalue of a learned metric: no direction is forgotten


@dataclass(frozen=True)
class Trial:
    """A metric root with its scores around the sampled points, (r,), and the gradients' outer product that it found."""

    name: str
    A: Array
    scores: Array
    G: Array

    @property
    def score(self) -> float:
        """One number for all regions; less is better."""
        return float(overall(self.scores))


def choose_metric(metric: Any, points: Points, plan: Plan) -> tuple[dict[str, float], Array]:
    """Scores of what was tried, by name, the chosen one first, and the root of the chosen metric."""
    if not isinstance(metric, str) or metric in ("euclidean", "standardized"):
        return {}, metric_root(metric, points.X, points.v)
    n, d = points.X.shape
    if plan.selection != "loo" and metric == "auto":
        return {}, metric_root("euclidean", points.X, points.v)  # the user decides, and said nothing
    if plan.foreign is not None or n < _FEW_POINTS or d == 1:
        return {}, metric_root("standardized", points.X, points.v)  # too little to learn from, or nothing to choose
    learner = Learner(points, plan)
    trials = learner.named(("standardized",) if metric == "learned" else ("euclidean", "standardized"))
    tried = list(trials)
    for round_ in range(_ROUNDS if 2 * plan.h <= n or metric == "learned" else 0):
        news = learner.learned(trials[0], round_ + 1)
        tried += news
        if not clearly_better(news[0], trials[0]) and not (metric == "learned" and round_ == 0):
            break
        trials = news
    best = trials[0]
    return {trial.name: trial.score for trial in (best, *(t for t in tried if t is not best))}, best.A


@dataclass(frozen=True)
class Learner:
    """Tries metrics on regions around a sample of the points."""

    points: Points
    plan: Plan

    def named(self, names: Sequence[str]) -> list[Trial]:
        """The metrics of these names, the best first."""
        return sorted((self.attempt(name, metric_root(name, self.points.X, self.points.v)) for name in names), key=_score)

    def learned(self, trial: Trial, round_: int) -> list[Trial]:
        """Metrics from the gradients that a trial found, the best first; all is measured per deviation of each feature."""
        spread = metric_root("standardized", self.points.X, self.points.v)
        G = np.linalg.solve(spread, np.linalg.solve(spread, trial.G).T)
        return sorted((self.attempt(f"learned, {k}, round {round_}", spread @ root(G)) for k, root in LEARNED.items()), key=_score)

    def attempt(self, name: str, A: Array) -> Trial:
        """Score the metric with root ``A`` and find the gradients in it."""
        space = make_space(self.points.X, A)
        points = even_outputs(self.points._replace(X=space.coordinates(self.points.X)))
        cover = self.sampled_cover(points.X)
        plan = self.plan
        scorer = Scorer(points, cover, plan.tolerance, plan.weight, _REACH, plan.n_jobs, plan.progress("metric"))
        regions = np.arange(len(cover))
        table = scorer.scores(regions, plan.grid)
        best = int(overall(table).argmin())
        models = fit_blocks(points, cover, plan.grid.settings(np.full(len(cover), best), plan.tolerance), plan.n_jobs)
        G = np.zeros((len(A), len(A)))
        for region in range(len(cover)):
            X = points.X[cover.members[region]]
            inside = from_center(points, cover, np.array([region]))[0] < _REACH**2
            gradient = models.evaluate(np.full(inside.sum(), region), X[inside], 1).gradient
            G += np.einsum("qtd,qte->de", gradient, gradient) / gradient.shape[0]
        return Trial(name, A, table.reshape(len(cover), -1)[:, best], space.A @ G @ space.A.T / len(cover))

    def sampled_cover(self, X: Array) -> Cover:
        """Regions around the same sample of points, whatever the metric."""
        size = min(_SAMPLED_POINTS, 4 * len(X)) // self.plan.h  # few points need no more regions than a cover of them has
        center = spread_sample(len(X), max(size, 4))
        distance, members = cKDTree(X).query(X[center], k=np.arange(1, self.plan.h + 1), workers=self.plan.n_jobs or 1)
        return Cover(center, np.where(distance[:, -1] > 0.0, distance[:, -1], 1.0), members)


def clearly_better(trial: Trial, than: Trial) -> bool:
    """Whether errors around the same points fell by more than their standard error and enough to care, hard regions included."""
    D = trial.scores - than.scores
    return bool(D.mean() < -max(_CLEAR_GAIN, D.std() / np.sqrt(len(D))) and trial.score < than.score - _CLEAR_GAIN)


def _score(trial: Trial) -> float:
    return trial.score


def full_root(G: Array) -> Array:
    """G^½ with small eigenvalues raised to the floor."""
    values, vectors = np.linalg.eigh(G)
    top = values[-1] if values[-1] > 0.0 else 1.0
    return (vectors * np.sqrt(np.maximum(values / top, _FLOOR))) @ vectors.T


def diagonal_root(G: Array) -> Array:
    """The root of the diagonal of G alone, in units of the features' own spread."""
    values = np.diagonal(G)
    top = values.max() if values.max() > 0.0 else 1.0
    return np.diag(np.sqrt(np.maximum(values / top, _FLOOR)))


LEARNED = {"full": full_root, "diagonal": diagonal_root}
