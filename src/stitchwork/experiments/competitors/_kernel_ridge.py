"""Kernel ridge regression on all points at once, and Local KRR (Han, Ye, Phillips 2022).

The Gaussian kernel is exp(-|x - x'|² / σ²) with σ = ``bandwidth`` · b, the models solve (K + ηI) α = y.
"""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from ..._parallel import Threads, slices
from ..._types import Array
from ...fitting.cover import greedy_cover

_SAMPLED_POINTS = 2000  # of which b of all points is estimated
_MEMORY_SHARE = 0.6  # of the machine's memory that one kernel matrix may take


def mean_distance(X: Array) -> float:
    """b, the mean pairwise distance, from at most `_SAMPLED_POINTS` points; 1 for a single point."""
    if len(X) > _SAMPLED_POINTS:
        X = X[np.random.default_rng(0).choice(len(X), _SAMPLED_POINTS, replace=False)]
    return (float(pdist(X).mean()) if len(X) > 1 else 0.0) or 1.0


def kernel_bytes(n: int) -> int:
    """Memory that the kernel matrix of ``n`` points takes."""
    return 8 * n * n


def memory_limit() -> int:
    """Largest number of points whose kernel matrix fits into `_MEMORY_SHARE` of this machine's memory."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(np.sqrt(_MEMORY_SHARE * memory / 8))


class GlobalKRR(RegressorMixin, BaseEstimator):
    """Kernel ridge regression on all points; `sklearn.kernel_ridge.KernelRidge` with γ = 1/σ², in a third of its memory."""

    def __init__(self, bandwidth: float = 1.0, ridge: float = 1e-3):
        self.bandwidth = bandwidth
        self.ridge = ridge

    def fit(self, X: Any, y: Any) -> Self:
        """Solve (K + ηI) α = y in place; a `MemoryError` before any work where K does not fit."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        if len(X) > memory_limit():
            raise MemoryError(
                f"The kernel matrix of {len(X):,} points takes {kernel_bytes(len(X)) / 1e9:.1f} GB; this machine holds"
                f" {memory_limit():,} points."
            )
        self.sigma_ = self.bandwidth * mean_distance(X)
        K = np.empty((len(X), len(X)), order="F")
        for part in slices(len(X), 1024):
            K[:, part] = self._kernel(X, X[part])
        K.flat[:: len(X) + 1] += self.ridge
        # With two threads, OpenBLAS 0.3.30 and 0.3.31 crash on a matrix of 20,000 rows (AVX-512).
        with threadpool_limits(1, user_api="blas"):
            self.alpha_ = cho_solve(cho_factor(K, lower=True, overwrite_a=True, check_finite=False), y)
        self.X_ = X
        return self

    def predict(self, X: Any) -> Array:
        """Σ α_i k(x, x_i)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.concatenate([self._kernel(X[part], self.X_) @ self.alpha_ for part in slices(len(X), 1024)])

    def _kernel(self, A: Array, B: Array) -> Array:
        s = cdist(A, B, "sqeuclidean")
        s *= -1.0 / self.sigma_**2
        return np.exp(s, out=s)


class LocalKRR(RegressorMixin, BaseEstimator):
    """Local KRR: kernel ridge models around centres, averaged over the ``n_models`` nearest centres, more than d + 1 of them.

    The centres are those of the greedy cover, so that the regions are those of PU-KRR. With r_1 ≤ … ≤ r_k the distances of a query
    to its k = ``n_models`` nearest centres, the weights are (r_k - r_i) / Σ (r_k - r_i): the farthest has none, so nothing jumps
    where it is exchanged, and the slope does (C⁰).
    """

    def __init__(
        self,
        bandwidth: float = 1.0,
        ridge: float = 1e-3,
        region_size: int = 100,
        n_models: int | None = None,
        n_jobs: int | None = None,
    ):
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.region_size = region_size
        self.n_models = n_models
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Cover the points and fit one model a region."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        cover = greedy_cover(X, min(self.region_size, len(X)))
        self.centers_ = cover.centers
        members = np.asarray(cover.members)
        self._X, self._sigma, self._alpha = X[members], np.empty(len(members)), np.empty(members.shape)

        def solve(region: int) -> None:
            self._sigma[region] = self.bandwidth * mean_distance(self._X[region])
            K = np.exp(-cdist(self._X[region], self._X[region], "sqeuclidean") / self._sigma[region] ** 2)
            K.flat[:: len(K) + 1] += self.ridge
            self._alpha[region] = cho_solve(cho_factor(K, lower=True), y[members[region]])

        Threads(self.n_jobs).map(solve, range(len(members)))
        self._tree = cKDTree(self.centers_)
        return self

    def predict(self, X: Any) -> Array:
        """Average of the nearest models with weights that fall to zero at the farthest of them."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        k = min(self.n_models or X.shape[1] + 2, len(self.centers_))
        r, region = (a.reshape(len(X), k) for a in self._tree.query(X, k=k))
        w = r[:, -1:] - r
        w[w.sum(axis=1) == 0.0] = 1.0  # one model, or all centres equally far
        values = np.empty((len(X), k))
        order = np.argsort(region, axis=None, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(region.ravel()[order])) + 1)

        def evaluate(pairs: NDArray[np.intp]) -> None:
            j = region.flat[pairs[0]]
            K = np.exp(-cdist(X[pairs // k], self._X[j], "sqeuclidean") / self._sigma[j] ** 2)
            values.flat[pairs] = K @ self._alpha[j]

        Threads(self.n_jobs).map(evaluate, groups)
        return np.sum(w * values, axis=1) / w.sum(axis=1)
