"""The background: what speaks where the regions are silent (the infinite ball B_0 of the paper, section 3.1).

A hierarchy of levels, each the background of the one before: the same regions with a wider radius, since a model a little outside
of its ball beats one on thinner data; stitched models on thinner and thinner samples of the points, up to one region that holds
a sample of everything; and last a polynomial that is defined everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._blocks import BlockModels, Settings
from ._linalg import polynomial_range
from ._local import Points
from ._polynomial import monomials
from ._radial import NO_KERNEL
from ._stitch import Level

Array = NDArray[np.float64]
Index = NDArray[np.intp]

WIDER = 1.25  # how far a region may speak beyond its points before a thinner sample takes over
ALL_AROUND = 2.0  # the same for the one region that holds a sample of everything
_THINNING = 4


def thinned_samples(n: int, h: int) -> list[Index]:
    """Nested samples of n points that are sorted in space, each a quarter of the one before, the last of ``h`` points.

    One point is drawn from every few neighbours, so that samples are even.
    """
    rng, sample, samples = np.random.default_rng(0), np.arange(n), []
    while len(sample) > h:
        size = max(len(sample) // _THINNING, h)
        edges = np.arange(size + 1) * len(sample) // size
        sample = sample[rng.integers(edges[:-1], edges[1:])]
        samples.append(sample)
    return samples


def everywhere(points: Points, degree: int, tolerance: float) -> Level:
    """One infinite ball with the least-squares polynomial of all points, at least a constant."""
    X, y, v, _ = points
    d = X.shape[1]
    degree = max(degree, 0)
    origin = np.average(X, axis=0, weights=v)
    scale = np.abs(X - origin).max() or 1.0
    root_v = np.sqrt(v)[:, None]
    R = polynomial_range((monomials(d, degree).values(((X - origin) / scale).T) * root_v)[None], tolerance)
    lam = R.back @ (R.U.swapaxes(1, 2) @ (y * root_v)[None])
    zero = np.zeros(1, dtype=np.intp)
    settings = Settings((NO_KERNEL,), zero, np.ones(1), np.zeros(1), zero + degree, np.full(1, tolerance))
    alpha = np.zeros((1, 1, y.shape[1]))
    models = BlockModels(X, zero[:, None], origin[None], np.array([scale]), settings, np.ones(1), alpha, lam)
    return Level(origin[None], np.array([np.inf]), models)
