"""What a compiled kernel would bring: ``pip install numba && python -m benchmarks.compiled``

A prototype of value and gradient at one query and at many, for Gaussian kernels with one output: lookup by scipy's trees as now,
the rest in one compiled loop. Same model, same run, results compared.
"""

from __future__ import annotations

import time

import numba
import numpy as np

from stitchwork import StitchedRegressor
from stitchwork.datasets import make_2d
from stitchwork.local.polynomial import monomials

from .speed import least


@numba.njit(fastmath=True, cache=False)
def pairs_at(Q, query, region, centers, radii, X, members, origin, scale, sigma, alpha, lam, exponents, gradient):
    """Σ w_j f_j / Σ w_j with the gradient, for the C² weight."""
    q, d = Q.shape
    N, W, dN, dW = np.zeros(q), np.zeros(q), np.zeros((q, d)), np.zeros((q, d))
    z, df, dw = np.empty(d), np.empty(d), np.empty(d)
    for p in range(len(query)):
        i, j = query[p], region[p]
        r2 = 0.0
        for k in range(d):
            r2 += (Q[i, k] - centers[j, k]) ** 2
        r = np.sqrt(r2) / radii[j]
        u = 1.0 - r
        w = u**4 * (4.0 * r + 1.0)
        f = 0.0
        for k in range(d):
            z[k] = (Q[i, k] - origin[j, k]) / scale[j]
            df[k] = 0.0
            dw[k] = -20.0 * u**3 * (Q[i, k] - centers[j, k]) / radii[j] ** 2
        for s in range(len(exponents)):
            value = lam[j, s]
            for k in range(d):
                value *= z[k] ** exponents[s, k]
            f += value
            if gradient:
                for k in range(d):
                    if exponents[s, k] > 0:
                        slope = lam[j, s] * exponents[s, k] * z[k] ** (exponents[s, k] - 1)
                        for other in range(d):
                            if other != k:
                                slope *= z[other] ** exponents[s, other]
                        df[k] += slope
        inverse = 1.0 / sigma[j] ** 2
        for m in range(members.shape[1]):
            s2 = 0.0
            for k in range(d):
                s2 += (z[k] - (X[members[j, m], k] - origin[j, k]) / scale[j]) ** 2
            a = alpha[j, m] * np.exp(-s2 * inverse)
            f += a
            if gradient:
                for k in range(d):
                    df[k] -= 2.0 * inverse * a * (z[k] - (X[members[j, m], k] - origin[j, k]) / scale[j])
        N[i] += w * f
        W[i] += w
        for k in range(d):
            dN[i, k] += w * df[k] / scale[j] + f * dw[k]
            dW[i, k] += dw[k]
    for i in range(q):
        N[i] /= W[i]
        for k in range(d):
            dN[i, k] = (dN[i, k] - N[i] * dW[i, k]) / W[i]
    return N, dN


def main():
    data = make_2d(100_000)
    settings = {"selection": None, "kernel": "gaussian", "degree": 4, "bandwidth": 2.0, "ridge": 1e-10, "metric": "euclidean"}
    model = StitchedRegressor(**settings).fit(data.data, data.target)
    level = model.model_.levels[0]
    m = level.models
    exponents = monomials(2, 4).exponents
    arrays = (
        level.balls.centers,
        level.balls.radii,
        m.X,
        m.members,
        m.origin,
        m.scale,
        m.sigma,
        m.alpha[..., 0],
        m.lam[..., 0],
        exponents,
    )

    def compiled(Q, gradient=True):
        U = model.model_.space.coordinates(Q)
        pairs = level.balls.covering_pairs(U)
        value, slope = pairs_at(np.ascontiguousarray(U), pairs.query, pairs.region, *arrays, gradient)
        return value, slope @ model.model_.space.A.T

    Q = 0.9 * np.random.default_rng(1).uniform(data.data.min(axis=0), data.data.max(axis=0), (100_000, 2))
    started = time.perf_counter()
    value, slope = compiled(Q[:2])
    print(f"compiling {time.perf_counter() - started:.1f} s")
    ours = model.predict_with_gradient(Q[:2000])
    value, slope = compiled(Q[:2000])
    print("largest differences", np.abs(value - ours[0]).max(), np.abs(slope - ours[1]).max())

    rows = [q[None] for q in Q[:500]]
    for name, one in (("NumPy", model.predict_with_gradient), ("compiled", compiled)):
        print(f"{name:10} single query with gradient {1e6 * least(lambda: [one(row) for row in rows])[0] / 500:6.0f} µs")
    for name, many in (("NumPy", model.predict), ("compiled", lambda Q: compiled(Q, False))):
        print(f"{name:10} 10⁵ values {10 * least(lambda: many(Q))[0]:6.2f} µs each")
    for name, many in (("NumPy", model.gradient), ("compiled", compiled)):
        print(f"{name:10} 10⁵ gradients {10 * least(lambda: many(Q))[0]:6.2f} µs each")


if __name__ == "__main__":
    main()
