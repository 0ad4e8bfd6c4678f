"""Block models of which some regions are fitted when first asked for.

Models that grow in many small steps touch the same regions again and again, and need their coefficients only once a prediction is
made. Until then they record only which rows they will take from complete models.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from .._parallel import Threads
from .._types import Array, Index
from .blocks import COEFFICIENTS, BlockModels
from .fit import fit_blocks
from .points import Points
from .polynomial import count_monomials
from .settings import Settings

_SOLVED = COEFFICIENTS[1:]  # what a fit adds to members and settings


class GrownModels(BlockModels):
    """Block models over ``points``, taken from rows ``source`` (m,) of the complete models ``base``; those with -1 are fitted."""

    def __init__(self, points: Points, members: Index, settings: Settings, base: BlockModels, source: Index, threads: Threads):
        vars(self).update(points=points, members=members, settings=settings, waiting=(base, source, threads), lock=Lock())

    def __getattr__(self, name: str) -> Any:
        """Coefficients, which are not there until somebody asks."""
        if name not in _SOLVED or "lock" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        with vars(self)["lock"]:  # of several threads that ask at once the first fits, and the others wait for it
            if "waiting" in vars(self):
                self._complete()
        return vars(self)[name]

    @property
    def beta(self) -> Array | None:
        """Like the other coefficients; a property, since the default of the dataclass would bypass `__getattr__`."""
        if self.points.slopes is None:
            return None
        self.__getattr__("alpha")
        return np.asarray(vars(self)["beta"])

    def _complete(self) -> None:
        """Fit the regions that were put off."""
        base, source, threads = vars(self)["waiting"]
        anew = np.flatnonzero(source < 0)
        fresh = fit_blocks(self.points, self.members[anew], self.settings.at(anew), threads)
        names = _SOLVED if fresh.beta is None else (*_SOLVED, "beta")
        solved = {each: _patch(getattr(base, each), source, getattr(fresh, each), anew) for each in names}
        degree = self.settings.highest_degree  # regions of a higher one may be gone
        solved["lam"] = solved["lam"][:, : count_monomials(self.points.X.shape[1], degree)]
        vars(self).update(solved)
        del vars(self)["waiting"]  # which also releases the former models

    def __reduce__(self) -> tuple[type[BlockModels], tuple[Any, ...]]:
        """Other processes get them complete."""
        origin, scale, sigma, alpha, lam = (getattr(self, name) for name in _SOLVED)
        return BlockModels, (self.points, self.members, origin, scale, self.settings, sigma, alpha, lam, self.beta)


def grow_models(
    former: BlockModels, points: Points, members: Index, settings: Settings, rows: Index, anew: Index, threads: Threads
) -> BlockModels:
    """The models at ``rows`` (m,) of ``former``, unchanged but for those to fit ``anew``."""
    waiting = vars(former).get("waiting")
    base, source, _ = waiting if waiting is not None else (former, np.arange(len(former.members)), threads)
    source = source[rows]
    source[anew] = -1
    if waiting is None and not len(anew) and len(rows) == len(former.members):
        same = former.origin, former.scale, settings, former.sigma, former.alpha, former.lam, former.beta
        return BlockModels(points, members, *same)
    return GrownModels(points, members, settings, base, source, threads)


def _patch(old: Array, source: Index, fresh: Array, anew: Index) -> Array:
    """Rows of ``old`` at ``source``, but those ``anew`` are ``fresh``."""
    if old.ndim == 3 and fresh.shape[1] < old.shape[1]:  # polynomials of a lower degree than elsewhere
        fresh = np.pad(fresh, ((0, 0), (0, old.shape[1] - fresh.shape[1]), (0, 0)))
    patched = np.empty((len(source), *old.shape[1:]), dtype=old.dtype)
    first = len(old) if len(old) <= len(source) and _runs(source, len(old)) else 0
    patched[:first] = old[:first]
    patched[first:] = old[np.maximum(source[first:], 0)]
    patched[anew] = fresh
    return patched


def _runs(source: Index, count: int) -> bool:
    """Whether the first rows stand where they stood, as where regions were only added: copying them is faster than gathering."""
    return bool(((source[:count] == np.arange(count)) | (source[:count] < 0)).all())
