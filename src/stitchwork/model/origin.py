"""How a model came about, and what it needs to know to grow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .._types import Array
from .link import IDENTITY


@dataclass(frozen=True)
class Origin:
    """How a model came about: the constructor's parameters, the names of the columns, and what the choice was based on.

    ``attributes`` are ``units`` and ``long_name`` of columns by name, where the data had them. ``metric_trials`` are log squared
    errors by metric, ``scores`` (shapes, ridges) the errors of the candidates; see `StitchedRegressor`. With the ``link`` "log"
    the levels model the logarithm of the responses.
    """

    parameters: dict[str, Any]
    feature_names: tuple[str, ...] | None = None
    target_names: tuple[str, ...] | None = None
    metric_trials: dict[str, float] = field(default_factory=dict)
    scores: Array | None = None
    link: str = IDENTITY
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)


class Growth(NamedTuple):
    """What a model needs to know to grow.

    Attributes
    ----------
    overlap : of its regions, as in the cover
    chosen : number of points on which hyperparameters were chosen; they come first
    seen : number of rows that were ever added, forgotten ones included
    changed : points that came, changed or went since the last level was fitted
    judged, surprise : number of new points that were compared with their predictions, capped so that old ones fade, and the sum
        over them of fourth roots of squared errors relative to those expected; see `stale`
    basis : number of points when hyperparameters were chosen; ``chosen`` of them are left
    """

    overlap: float
    chosen: int
    seen: int
    changed: int = 0
    judged: int = 0
    surprise: float = 0.0
    basis: int = 0

    @property
    def stale(self) -> float:
        """Errors of new points relative to those of the points on which it was chosen; about one if nothing changed."""
        # Powers of squared errors are averaged, so that a few large ones do not decide: (mean of ratio^¼)² is a ratio of errors.
        return (self.surprise / self.judged) ** 2 if self.judged else 1.0
