#!/usr/bin/env python3
"""Throw hostile data at stitchwork and check what it promises; every violation is printed with the command that repeats it.

python tests/fuzz.py --seconds 600 --seed 1          in an environment with stitchwork
python tests/fuzz.py --seed 1 --case 417             one data set again, with what was drawn and full tracebacks
python tests/fuzz.py --seconds 600 --largest 300     small data only; --plain leaves out numbers beyond 1e±100
Promises: never NaN; gradient and Hessian are those of the prediction; no jump at any border, up to the smoothness promised; nothing
depends on order, chunks, threads or memory layout; an integer weight is repetition, a zero weight absence; far responses do not
matter; equivariance; saved = loaded; bad input is a ValueError and leaves the model as it was. Exit status 1 if anything was violated.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
import argparse
import copy
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from math import comb
from pathlib import Path

import numpy as np
import sklearn

from stitchwork import StitchedRegressor, load

EPS = np.finfo(float).eps
SMOOTH = ("gaussian", "soft-exponential", "matern32", "matern52", "matern72", "wendland", "multiquadric", "cubic", "quintic")
ROUGH = ("exponential", "linear", "thin-plate")
WEIGHTS = ("wendland-c2", "wendland-c4", "wendland-c6", "wendland-c2-native", "wendland-c0", "truncated-gaussian")
PATIENCE = 120  # seconds for one data set


# ---------------------------------------------------------------------------------------------------------- what is drawn


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def draw_size(rng, largest):
    low, high = pick(rng, (1, 5), (1, 12), (5, 40), (5, 40), (5, 40), (20, 90), (20, 90), (20, 90), (60, 200), (100, 400))
    if rng.random() < 0.005:
        low, high = 500, 3000
    return int(min(rng.integers(low, high + 1), largest))


def draw_points(rng, n, d, plain):
    U = rng.uniform(-1, 1, (n, d))
    t = rng.uniform(-1, 1, n)
    kinds = {
        "uniform": lambda: U,
        "normal": lambda: rng.normal(size=(n, d)),
        "duplicates": lambda: U[rng.integers(0, max(1, n // 3), n)],
        "near duplicates": lambda: U[rng.integers(0, max(1, n // 2), n)] + 10.0 ** rng.integers(-15, -7) * rng.normal(size=(n, d)),
        "lattice": lambda: np.round(U * pick(rng, 1, 2, 4, 8)) / pick(rng, 1, 3, 8),
        "integer grid": lambda: np.stack(np.unravel_index(np.arange(n), (int(np.ceil(n ** (1 / d))) + 1,) * d), 1).astype(float),
        "curve": lambda: np.stack([np.sin((k + 1) * 2 * t + k) for k in range(d)], 1),
        "two curves": lambda: np.stack([np.sin((k + 1) * t + k) for k in range(d)], 1) + 0.3 * (np.arange(n) % 2)[:, None],
        "plane": lambda: U[:, : max(1, d - 1)] @ rng.normal(size=(max(1, d - 1), d)),
        "collinear": lambda: t[:, None] * rng.normal(size=d) + rng.normal(size=d),
        "sphere": lambda: (lambda Z: Z / np.linalg.norm(Z, axis=1, keepdims=True))(rng.normal(size=(n, d)) + 1e-9),
        "clusters": lambda: (
            rng.normal(size=(4, d))[np.arange(n) % 4] + 10.0 ** np.array([0, -3, -6, -9])[np.arange(n) % 4, None] * U
        ),
        "dense to sparse": lambda: U * 10.0 ** rng.uniform(-8, 0, (n, 1)),
        "one far point": lambda: np.vstack([U[1:], np.full((1, d), 10.0 ** rng.integers(3, 12))]),
        "two far clusters": lambda: U + 10.0 ** rng.integers(2, 9) * (np.arange(n) % 2)[:, None],
        "heavy tails": lambda: rng.standard_cauchy((n, d)),
        "offset": lambda: U + 10.0 ** rng.integers(3, 9),
        "scaled": lambda: U * 10.0 ** rng.integers(-30, 31),
        "features of many scales": lambda: U * 10.0 ** rng.integers(-9, 10, d),
        "a constant feature": lambda: np.where(np.arange(d) == 0, 7.0, U),
        "a nearly constant feature": lambda: np.where(np.arange(d) == 0, 7.0 + 1e-14 * U, U),
        "categories": lambda: np.where(np.arange(d) == 0, np.round(2 * U), U),
        "tracks": lambda: np.where(np.arange(d) == 0, np.round(3 * U) / 3 + 1e-4 * U, U),
        "negative zeros": lambda: np.round(U * 2) * pick(rng, 1.0, -1.0),
    }
    extreme = {
        "extreme: huge": lambda: U * 10.0 ** rng.integers(100, 151),
        "extreme: tiny": lambda: U * 10.0 ** -rng.integers(100, 151).astype(float),
        "extreme: a cluster without width": lambda: np.where(np.arange(n)[:, None] % 2 == 0, U * 1e-170, U),
        "extreme: features 1e±150": lambda: U * 10.0 ** rng.choice([-150.0, 0.0, 150.0], d),
    }
    if not plain and rng.random() < 0.06:
        kinds = extreme
    name = pick(rng, *kinds)
    return name, np.ascontiguousarray(kinds[name]())


def draw_response(rng, X, plain):
    n, d = X.shape
    Z = (X - X.mean(0)) / np.where(np.ptp(X, 0) > 0, np.ptp(X, 0), 1.0)
    wave = np.sin(rng.uniform(1, 6) * Z @ rng.normal(size=d)) + 0.3 * Z[:, 0]
    noise = rng.normal(size=n)
    kinds = {
        "smooth": lambda: wave,
        "linear": lambda: Z @ rng.normal(size=d) + 1.0,
        "noisy": lambda: wave + 10.0 ** rng.integers(-6, 1) * noise,
        "noise": lambda: noise,
        "constant": lambda: np.full(n, rng.choice([0.0, 1.0, -3e7, 1e-9])),
        "outliers": lambda: wave + np.where(rng.random(n) < 0.05, 10.0 ** rng.integers(1, 9), 0.0),
        "one nonzero": lambda: (np.arange(n) == rng.integers(n)).astype(float),
        "heavy tails": lambda: rng.standard_cauchy(n),
        "log-normal": lambda: np.exp(3 * noise),
        "discrete": lambda: np.round(2 * wave),
        "step": lambda: (Z[:, 0] > 0).astype(float),
        "alternating": lambda: (-1.0) ** np.arange(n),
        "offset": lambda: 1e8 + wave,
        "scaled": lambda: wave * 10.0 ** rng.integers(-30, 31),
        "peak": lambda: np.exp(-1e4 * (Z**2).sum(1)),
    }
    extreme = {
        "extreme: huge": lambda: wave * 10.0 ** rng.integers(100, 151),
        "extreme: tiny": lambda: wave * 10.0 ** -rng.integers(100, 151).astype(float),
    }
    if not plain and rng.random() < 0.04:
        kinds = extreme
    name = pick(rng, *kinds)
    y = kinds[name]()
    if rng.random() < 0.12:
        other = pick(rng, np.zeros(n), wave * 1e-6, noise, -y, np.round(wave))
        return name + ", several outputs", np.stack([y, other], 1)
    return name, y


def draw_weights(rng, n):
    kinds = {
        "zeros": lambda: rng.integers(0, 3, n).astype(float),
        "integers": lambda: rng.integers(1, 5, n).astype(float),
        "huge ratios": lambda: 10.0 ** rng.uniform(-9, 9, n),
        "one": lambda: (np.arange(n) == 0).astype(float),
        "uniform": lambda: rng.uniform(0.1, 1, n),
        "tiny": lambda: np.full(n, 1e-12),
    }
    if rng.random() < 0.7:
        return "none", None
    name = pick(rng, *kinds)
    v = kinds[name]()
    v[rng.integers(n)] = v.max() or 1.0
    return name, v


def draw_parameters(rng, n, d):
    mode = rng.choice(["default", "paper", "paper, fixed", "fixed", "random"], p=[0.2, 0.08, 0.07, 0.25, 0.4])
    size = {} if rng.random() < 0.3 else {"region_size": int(rng.integers(2, 41))}
    if mode == "default":
        return mode, size
    if mode.startswith("paper"):
        return mode, size
    degrees = [k for k in range(-1, 5) if k < 0 or comb(k + d, d) <= 120]
    p = size | {"metric": pick(rng, "euclidean", "euclidean", "standardized", "auto", "learned", "matrix", "singular")}
    if p["metric"] in ("matrix", "singular"):
        B = rng.normal(size=(d, d))
        if p["metric"] == "singular" and d > 1:
            B[:, 0] = 0.0
        p["metric"] = B @ B.T
    p["kernel"] = pick(rng, *SMOOTH, *SMOOTH, *ROUGH)
    p["weight"] = pick(rng, *WEIGHTS[:4], *WEIGHTS[:4], *WEIGHTS)
    p["local_model"] = pick(rng, "krr-poly", "krr-poly", "krr-poly", "krr", "poly")
    p["background"] = pick(rng, "hierarchy", "hierarchy", "polynomial")
    p["overlap"] = pick(rng, "auto", 0.0, 0.3, 1.0, 3.0)
    p["background_weight"] = pick(rng, 0.03, 0.03, 1.0, 1e-9)
    p["order"], p["random_state"] = pick(rng, "stored", "random"), 0
    p["degree"] = int(rng.choice(degrees))
    if mode == "fixed":
        return mode, p | {"selection": None, "bandwidth": 10.0 ** rng.uniform(-1, 1), "ridge": 10.0 ** rng.uniform(-12, 0)}
    p["selection"] = pick(rng, "loo", "loo", "holdout", None)
    p["rank_tolerance"] = pick(rng, 1e-10, 1e-10, 0.0, 1e-3)
    one = p["selection"] is None
    p["bandwidth"] = pick(rng, "auto", 1.0, 1.0 if one else (0.25, 1.0, 4.0))
    p["ridge"] = pick(rng, "auto", "response", 1e-6, 1e-14, 1e-3 if one else (1e-1, 1e-4, 1e-8))
    p["degree"] = pick(rng, "auto", p["degree"])
    p["kernel"] = pick(rng, "auto", p["kernel"])
    return mode, p


class Case:
    """One data set with constructor parameters, all of it from one seed."""

    def __init__(self, seed, number, largest=3000, plain=False):
        rng = np.random.default_rng([seed, number])
        n, d = draw_size(rng, largest), int(pick(rng, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5, 8, 12))
        self.points, self.X = draw_points(rng, n, d, plain)
        self.response, self.y = draw_response(rng, self.X, plain)
        self.weights, self.v = draw_weights(rng, n)
        self.mode, self.parameters = draw_parameters(rng, n, d)
        if self.mode != "fixed" and n > 600:
            self.X, self.y, self.v = self.X[:600], self.y[:600], None if self.v is None else np.maximum(self.v[:600], 0.1)
        self.rng = rng

    @property
    def extreme(self):
        return "extreme" in self.points + self.response

    def make(self, **changes):
        if self.mode.startswith("paper"):
            fixed = {"selection": None} if self.mode == "paper, fixed" else {}
            return StitchedRegressor.paper(**{**fixed, **self.parameters, **changes})
        return StitchedRegressor(**{**self.parameters, **changes})

    def __str__(self):
        n, d = self.X.shape
        p = {k: "matrix" if isinstance(v, np.ndarray) else v for k, v in self.parameters.items()}
        return f"n={n} d={d} X: {self.points} | y: {self.response} | weights: {self.weights} | {self.mode} {p}"


# --------------------------------------------------------------------------------------------------------- what is checked


class Probe:
    """A fitted case with queries of all kinds, the size of its numbers, and how much rounding moves its predictions."""

    def __init__(self, case):
        self.case, self.rng = case, case.rng
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.model = case.make().fit(case.X, case.y, case.v)
        self.fit_warnings = caught
        X = case.X if case.v is None else case.X[case.v > 0]
        y = case.y if case.v is None else case.y[case.v > 0]
        self.X, self.y = X, y.reshape(len(X), -1)
        self.span = np.ptp(X / 2, axis=0) * 2
        self.span = np.where(self.span > 0, self.span, self.span.max() or np.abs(X).max() or 1.0)
        self.size = max(np.abs(self.y).max(), np.finfo(float).tiny)
        self.spread = np.ptp(self.y / 2, axis=0).max() * 2
        self.rounding = EPS * max(np.abs(level.models.alpha).sum(axis=1).max() for level in self.model.model_.levels)
        self.inside = self._inside()
        self.borders = self._borders()
        self.near = X[self.rng.integers(len(X), size=8)] + self.rng.normal(size=(8, X.shape[1])) * self.span
        self.far = X[:1] + self.rng.normal(size=(6, X.shape[1])) * self.span * 10.0 ** np.arange(1, 7)[:, None]

    def _inside(self):
        """Convex combinations of data points, and data points."""
        X, rng = self.X, self.rng
        pairs = X[rng.integers(len(X), size=(40, 2))]
        t = rng.random((40, 1)) ** 3
        return np.vstack([pairs[:, 0] * (1 - t) + pairs[:, 1] * t, X[rng.integers(len(X), size=20)]])

    def _borders(self, count=10):
        """Centres, radii and directions, in the space of the metric, of some borders of all levels."""
        levels = [level for level in self.model.model_.levels if np.isfinite(level.balls.radii).all()]
        out = []
        for _ in range(count):
            level = pick(self.rng, levels[0], *levels)
            region = self.rng.integers(len(level.balls.radii))
            u = self.rng.normal(size=self.X.shape[1])
            out.append((level.balls.centers[region], level.balls.radii[region], u / np.linalg.norm(u)))
        return out

    def at_borders(self, share):
        """Points at this share of the radius."""
        return self.model.model_.space.original(np.stack([c + r * share * u for c, r, u in self.borders]))

    def resolved(self, Q, share):
        """Queries whose units in the last place are below this share of the features' ranges, (q,)."""
        return (np.spacing(np.abs(Q)) < share * self.span).all(axis=1)

    def rows(self, jet):
        return np.asarray(jet).reshape(len(jet), -1)

    def noise(self, f, Q, tries=3):
        """How far a few units in the last place of the queries move f: (q,), at least a tenth of the greatest."""
        ulp = np.spacing(np.maximum(np.abs(Q), np.maximum(np.abs(self.model.model_.space.shift), 1e-300)))
        moved = Q + self.rng.integers(-2, 3, (tries + 1, *Q.shape)) * ulp
        moved[0] = Q
        found = self.rows(f(moved.reshape(-1, Q.shape[1]))).reshape(tries + 1, len(Q), -1)
        base, most = found[0], np.abs(found - found[0]).max(axis=(0, 2))
        return np.maximum(most, 0.1 * most.max()) + EPS * np.abs(base).max()


class Violated(Exception):
    pass


def expect(condition, text):
    if not np.all(condition):
        raise Violated(text)


def worst(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return float(np.abs(a - b).max()) if a.size else 0.0


def expect_close(p, a, b, tolerance, what):
    a, b = np.asarray(a), np.asarray(b)
    expect(a.shape == b.shape, f"{what}: shapes {a.shape} and {b.shape}")
    excess = np.abs(p.rows(a) - p.rows(b)).max(axis=1) - tolerance if len(a) else np.zeros(1)
    expect(
        np.all(excess <= 0),
        f"{what}: differs by {worst(a, b):.3g}, responses up to {p.size:.3g}, tolerance {np.max(tolerance):.3g}",
    )


def check_fit_is_quiet(p):
    texts = {str(w.message) for w in p.fit_warnings if issubclass(w.category, RuntimeWarning)}
    expect(not texts, f"warnings: {sorted(texts)}")


def check_finite(p):
    m = p.model
    for name, Q in (("inside", p.inside), ("border", p.at_borders(1.0)), ("near", p.near), ("far", p.far)):
        expect(np.isfinite(m.predict(Q)), f"predict {name}")
        if m.smoothness_ >= 1:
            expect(np.isfinite(m.gradient(Q)), f"gradient {name}")
        if m.smoothness_ >= 2:
            H = m.hessian(Q)
            expect(np.isfinite(H), f"hessian {name}")
        c = m.coverage(Q)
        expect((c >= 0) & (c <= 1), f"coverage {name}: {c.min()} to {c.max()}")
    expect(np.isfinite(m.loo_error_), "loo_error_")
    expect(np.isfinite(m.leave_one_out().residual), "leave_one_out")
    for name in ("centers_", "radii_", "metric_", "feature_relevance_"):
        expect(np.isfinite(getattr(m, name)), name)
    str(m.summary())


def check_sane(p):
    """Where leave-one-out chooses everything, the prediction between the data stays within ten ranges of it."""
    if p.case.mode != "default" or p.case.v is not None:
        return None
    f = p.rows(p.model.predict(p.inside))
    low, high = p.y.min(0), p.y.max(0)
    beyond = np.maximum(f - high, low - f).max(axis=0)
    wild = float(np.max(beyond / np.where(high > low, high - low, np.maximum(np.abs(high), np.finfo(float).tiny) * 1e-6)))
    expect(wild <= 10, f"{wild:.3g} ranges beyond the responses")
    return wild


def check_constant(p):
    """A constant response is predicted, inside the data, wherever a polynomial part may say so."""
    constant = np.ptp(p.y, axis=0) == 0
    if not constant.any() or p.case.mode != "default":
        return
    f, c = p.rows(p.model.predict(p.inside))[:, constant], p.y[0, constant]
    expect(np.abs(f - c) <= 1e-5 * np.abs(c) + 1e-12 * p.size, f"constant {c} predicted as {f.min()} to {f.max()}")


def check_rounding(p):
    """What the default chooses is not moved by rounding by more than 1e-6 deviations (ten times that is let pass)."""
    if p.case.mode != "default" or p.spread == 0:
        return None
    Q = p.inside[p.resolved(p.inside, 1e-12)]
    if not len(Q) or p.model.smoothness_ < 1:
        return None
    ulp = np.spacing(np.maximum(np.abs(Q), np.abs(p.model.model_.space.shift)))
    slope = np.abs(p.model.gradient(Q).reshape(len(Q), -1, Q.shape[1]) * ulp[:, None]).sum(axis=2).max(axis=1)
    jitter = float(np.max(p.noise(p.model.predict, Q) - 4 * slope) / max(p.y.std(axis=0).max(), EPS * p.size))
    expect(
        jitter <= 1e-5 + 100 * EPS * p.size / max(p.y.std(axis=0).max(), EPS * p.size),
        f"rounding moves predictions by {jitter:.3g} deviations",
    )
    return jitter


def directions(p, count):
    u = p.rng.normal(size=(count, p.X.shape[1]))
    return u / np.linalg.norm(u, axis=1, keepdims=True) * p.span


def differences(p, f, derivative, Q, what):
    """f (q, k) has the directional derivative ``derivative(Q, u)`` (q, k): at some step, central differences must agree."""
    Q = Q[p.resolved(Q, 1e-7)]
    if not len(Q):
        return
    u = directions(p, len(Q))
    claimed = derivative(Q, u)
    noise, size = p.noise(f, Q)[:, None], np.abs(p.rows(f(Q)))
    best = np.full(claimed.shape, np.inf)
    steps = 10.0 ** -np.arange(1.0, 17.0)
    ups, downs = Q + steps[:, None, None] * u, Q - steps[:, None, None] * u
    at = p.rows(f(np.vstack([ups, downs]).reshape(-1, Q.shape[1]))).reshape(2, len(steps), len(Q), -1)
    for step, up, down, above, below in zip(steps, ups, downs, *at):
        true_step = ((up - down) / (2 * u)).mean(axis=1, keepdims=True)  # what is left of it in floating point
        moved = (np.abs(up - down - 2 * step * u) > 0.02 * np.abs(2 * step * u)).any(axis=1)
        found = (above - below) / (2 * true_step)
        allowed = 30 * noise / step + 1e-3 * np.maximum(np.abs(found), np.abs(claimed)) + 1e-9 * size.max() + 1e-8 * p.size
        excess = np.abs(found - claimed) / np.maximum(allowed, np.finfo(float).tiny)
        best = np.where(moved[:, None], best, np.minimum(best, excess))
    best[np.isinf(best) | (1e-11 * np.abs(claimed) > size)] = 0.0  # steps of no use, or too steep for any
    i = np.unravel_index(np.argmax(best), best.shape)
    expect(
        best <= 1.0,
        f"{what} at {Q[i[0]].tolist()}: claimed {claimed[i]:.6g} along {u[i[0]].tolist()}, off by {best[i]:.3g} allowances",
    )


def query_mix(p):
    return np.vstack([p.inside[::12], p.at_borders(p.rng.uniform(0.6, 1.0))[:4], p.near[:2], p.far[:2]])


def check_gradient(p):
    m = p.model
    if m.smoothness_ >= 1:

        def along(Q, u):
            return np.einsum("qtd,qd->qt", m.gradient(Q).reshape(len(Q), -1, Q.shape[1]), u)

        differences(p, m.predict, along, query_mix(p), "gradient")


def check_hessian(p):
    m = p.model
    if m.smoothness_ >= 2:
        q = query_mix(p)

        def scaled_gradient(Q):
            return (m.gradient(Q).reshape(len(Q), -1, Q.shape[1]) * p.span).reshape(len(Q), -1)

        def along(Q, u):
            H = m.hessian(Q).reshape(len(Q), -1, Q.shape[1], Q.shape[1])
            return (np.einsum("qtde,qe->qtd", H, u) * p.span).reshape(len(Q), -1)

        H = m.hessian(q)
        expect_close(
            p, H, H.swapaxes(-1, -2), 1e-9 * np.abs(p.rows(H)).max(axis=1) + 10 * p.noise(m.hessian, q), "symmetry of the Hessian"
        )
        differences(p, scaled_gradient, along, q, "hessian")


def check_borders(p):
    """What jumps at a border does not shrink as the two sides come nearer."""
    m = p.model
    asked = [("value", m.predict, 0), ("gradient", m.gradient, 1), ("hessian", m.hessian, 2)]
    radius = np.linalg.norm(p.at_borders(1.0) - p.at_borders(0.0), axis=1).min()
    if radius == 0.0:
        return  # all points are at one location, and there is nothing to cross
    for what, f, order in asked:
        if m.smoothness_ < order:
            break
        sides = [p.at_borders(1.0 + delta) for delta in (1e-5, -1e-5, 1e-9, -1e-9)]
        noise = p.noise(f, np.vstack(sides[1:3])).reshape(2, -1).max(axis=0)
        c, e, a, b = np.split(p.rows(f(np.vstack(sides))), 4)
        gaps = np.abs(c - e).max(axis=1), np.abs(a - b).max(axis=1)
        size = np.maximum(np.abs(a).max(axis=1), np.abs(b).max(axis=1))
        # Weights vary by 1 / radius, so the responses' rounding comes through by as much.
        rounding = EPS * np.abs(p.case.y).max() / radius**order
        allowed = 0.2 * gaps[0] + 50 * noise + 4 * rounding + 1e-7 * size + 1e-10 * p.size / p.span.min() ** order
        expect(gaps[1] <= allowed, f"{what} jumps by {np.max(gaps[1]):.3g} of {np.max(size):.3g} (rounding {np.max(noise):.3g})")


def check_calls_agree(p):
    if p.rounding > 1e-6 * p.size and p.case.mode != "default":
        return  # coefficients that cancel, as asked for
    m, Q = p.model, np.vstack([p.inside, p.near, p.far])
    f, groups = m.predict(Q), (slice(0, len(p.inside)), slice(len(p.inside), None))
    tolerance = 1e-11 * np.maximum(np.abs(p.rows(f)).max(axis=1), p.size) + p.rounding
    for group in groups:
        tolerance[group] += 100 * p.noise(m.predict, Q[group]).max()
    order = p.rng.permutation(len(Q))
    expect_close(p, m.predict(Q[order]), f[order], tolerance[order], "order of queries")
    some = p.rng.integers(len(Q), size=12)
    expect_close(p, np.concatenate([m.predict(Q[i : i + 1]) for i in some]), f[some], tolerance[some], "single queries")
    many = np.repeat(Q, 6, axis=0)
    with sklearn.config_context(working_memory=1e-3):
        expect_close(p, m.predict(many), np.repeat(f, 6, axis=0), np.repeat(tolerance, 6), "small chunks")
    m.n_jobs = 2
    expect_close(p, m.predict(many), np.repeat(f, 6, axis=0), np.repeat(tolerance, 6), "two threads")
    m.n_jobs = None
    expect_close(p, m(Q), f, tolerance, "call")
    expect_close(p, m.predict(np.asfortranarray(Q)), f, tolerance, "Fortran order")
    expect_close(p, m.predict(np.repeat(Q, 2, axis=1)[:, ::2]), f, tolerance, "strided")
    if m.smoothness_ >= 1:
        value, g = m.predict_with_gradient(Q)
        expect_close(p, value, f, tolerance, "predict_with_gradient")
        tolerance_g = 1e-9 * np.abs(p.rows(g)).max(axis=1) + np.finfo(float).tiny
        for group in groups:
            tolerance_g[group] += 100 * p.noise(m.gradient, Q[group]).max()
        nu = np.eye(Q.shape[1], dtype=int)[0]
        expect_close(p, m(Q, nu), g[..., 0], tolerance_g, "call with nu")
        expect_close(
            p, np.concatenate([m.gradient(Q[i : i + 1]) for i in some]), g[some], tolerance_g[some], "gradient of single queries"
        )
    for i in some[:3]:
        parts = m.contributions(Q[i])
        expect(abs(sum(one.share for one in parts) - 1) < 1e-9, "shares of contributions")
        expect_close(
            p,
            sum(np.atleast_1d(one.value) * one.share for one in parts)[None],
            p.rows(f[i : i + 1]),
            10 * tolerance[i : i + 1] + 1e-9 * p.size,
            "contributions",
        )


def same_choice(a, b):
    return all(np.array_equal(getattr(a, k), getattr(b, k)) for k in ("kernels_", "degrees_", "bandwidths_", "ridges_"))


def check_saved(p):
    m, Q = p.model, np.vstack([p.inside, p.near, p.far])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.stitch"
        m.save(path)
        again = load(path)
        expect(os.listdir(folder) == ["m.stitch"], "files are left behind")
    twins = {"loaded": again, "copied": copy.deepcopy(m), "pickled": pickle.loads(pickle.dumps(m))}
    for name, twin in twins.items():
        expect(
            np.array_equal(twin.predict(Q), m.predict(Q)),
            f"{name}: predictions differ by {worst(twin.predict(Q), m.predict(Q)):.3g}",
        )
        for attribute in (
            "centers_",
            "radii_",
            "kernels_",
            "ridges_",
            "metric_",
            "smoothness_",
            "loo_error_",
            "feature_relevance_",
        ):
            expect(
                np.array_equal(getattr(twin, attribute), getattr(m, attribute), equal_nan=attribute != "kernels_"),
                f"{name}: {attribute}",
            )
        expect(str(twin.summary()) == str(m.summary()), f"{name}: summary")
        expect(all(np.array_equal(v, twin.get_params()[k]) for k, v in m.get_params().items()), f"{name}: parameters")


def check_growth(p):
    """A model of some rows that gets the others and loses some is finite and bounded, and its regions hold the nearest points."""
    case, rng, n = p.case, p.rng, len(p.case.X)
    if n < 6:
        return
    order = rng.permutation(n)
    first, rest = np.array_split(order, [int(rng.integers(2, n - 2))])
    v = case.v if case.v is None else np.where(case.v > 0, case.v, case.v.max())
    weights = (None, None) if v is None else (v[first], v[rest])
    m = case.make().fit(case.X[first], case.y[first], weights[0])
    m.partial_fit(case.X[rest], case.y[rest], weights[1])
    points = m.model_.X
    if len(points) < 2:
        return
    m.forget(points[rng.permutation(len(points))[: max(1, len(points) // 4)]])
    Q = np.vstack([p.inside, p.near, p.far])
    expect(np.isfinite(m.predict(Q)), "predict after growing")
    y = np.asarray(case.y).reshape(n, -1)
    low, high, f = y.min(0), y.max(0), p.rows(m.predict(Q))
    slack = (high - low) * (1 + 1e-9) + 1e-9 * p.size
    expect((f >= low - slack) & (f <= high + slack), f"{f.min():.3g} to {f.max():.3g} beyond the bounds")
    level, X = m.model_.levels[0], m.model_.points.X
    members = level.models.members
    away = np.linalg.norm(X[members] - level.regions.centers[:, None], axis=2).max(axis=1)
    others = np.sort(np.linalg.norm(X[None] - level.regions.centers[:, None], axis=2), axis=1)[:, members.shape[1] - 1]
    expect(np.abs(away - others) <= 1e-9 * (1 + np.abs(X).max()), "regions hold other points than the nearest")


def check_weights(p):
    """Integer weights are repetition, zero is absence."""
    case, rng = p.case, p.rng
    if not 1e-300 < p.size <= 1e15:
        return
    coarse = 2.0 ** np.ceil(np.log2(p.size)) * 2.0**-20
    y, v = np.round(case.y / coarse) * coarse, rng.integers(0, 4, len(case.X))
    v[0] = 2
    a = case.make().fit(case.X, y, v)
    b = case.make().fit(np.repeat(case.X, v, axis=0), np.repeat(y, v, axis=0))
    repeats = a.model_.points.repeats
    if repeats is not None and repeats.spread.any():
        return  # rows at one place that differ tell the noise, and copies are further observations
    expect_close(
        p,
        a.predict(p.inside),
        b.predict(p.inside),
        1e-9 * p.size + 100 * p.noise(b.predict, p.inside),
        f"repetition (same choice: {same_choice(a, b)})",
    )


def check_layout(p):
    case, f = p.case, p.model.predict(p.inside)
    before = case.X.copy(), case.y.copy()
    for name, X in (
        ("Fortran order", np.asfortranarray(case.X)),
        ("strided", np.repeat(case.X, 2, axis=1)[:, ::2]),
        ("lists", case.X.tolist()),
    ):
        other = case.make().fit(X, case.y, case.v)
        expect_equivariant(p, other, other.predict(p.inside), p.inside, f, f"{name} of X")
    expect(np.array_equal(before[0], case.X) and np.array_equal(before[1], case.y), "arguments were changed")
    with np.errstate(over="ignore", under="ignore"):
        X32 = case.X.astype(np.float32)
    if np.isfinite(X32).all():
        a, b = case.make().fit(X32, case.y, case.v), case.make().fit(X32.astype(float), case.y, case.v)
        expect(np.array_equal(a.predict(p.inside), b.predict(p.inside)), "float32")
    expect(np.array_equal(case.make(n_jobs=2).fit(case.X, case.y, case.v).predict(p.inside), f), "n_jobs=2")


def expect_equivariant(p, other, g, Q, f, what):
    """``g`` of another fit is ``f``, to rounding; where rounding tipped a close choice, to a tenth of the responses' range."""
    chosen = p.case.mode in ("default", "random", "paper")
    tolerance = (1e-5 if chosen else 1e-8) * np.maximum(p.size, np.abs(p.rows(f)).max(axis=1)) + 1e3 * p.noise(p.model.predict, Q)
    if not same_choice(p.model, other):
        what, tolerance = f"{what}, choice differs", tolerance + 0.1 * p.spread
    expect_close(p, g, f, tolerance, what)


def check_response_scale(p):
    """y → a y with a power of two, which rounds nothing."""
    case = p.case
    if case.parameters.get("ridge") == "response" or case.mode == "paper, fixed" or case.extreme:
        return
    Q = np.vstack([p.inside, p.near])
    a = 2.0 ** p.rng.integers(-20, 20)
    other = case.make().fit(case.X, a * case.y, case.v)
    expect_equivariant(p, other, other.predict(Q) / a, Q, p.model.predict(Q), f"y times 2^{np.log2(a):.0f}")


def unique_polynomial(p):
    """Whether regions hold more points than monomials: a least-norm polynomial depends on axes and origin."""
    (n, d), settings = p.X.shape, p.case.parameters
    return 2 * comb(max(settings["degree"], 2) + d, d) <= min(n, settings.get("region_size", 100))


def check_response_shift(p):
    """y → y + b where every region has a constant, and its polynomial is unique."""
    case = p.case
    if (
        case.mode != "fixed"
        or case.parameters["local_model"] == "krr"
        or case.points not in ("uniform", "normal", "offset", "scaled")
    ):
        return
    if not unique_polynomial(p) or np.ndim(case.parameters["metric"]):
        return
    if case.parameters["degree"] < 0:
        return
    b = p.size
    other = case.make().fit(case.X, case.y + b, case.v)
    expect_equivariant(p, other, other.predict(p.inside) - b, p.inside, p.model.predict(p.inside), "y plus its size")


def check_feature_scale(p):
    """X → a X with a power of two."""
    case = p.case
    if case.extreme:
        return
    # A feature that is constant has no scale but one, so that queries beside it may differ.
    a, Q = 2.0 ** p.rng.integers(-20, 20), p.inside if (np.ptp(p.X, axis=0) == 0).any() else np.vstack([p.inside, p.near])
    other = case.make().fit(a * case.X, case.y, case.v)
    expect_equivariant(p, other, other.predict(a * Q), Q, p.model.predict(Q), f"X times 2^{np.log2(a):.0f}")


def check_feature_shift(p):
    """X → X + b where nothing rounds."""
    case = p.case
    metric = case.parameters.get("metric")
    if case.mode != "fixed" or (isinstance(metric, str) and metric != "euclidean") or case.extreme:
        return
    unit = 2.0 ** np.ceil(np.log2(np.abs(case.X).max() or 1.0))
    X = np.round(case.X / unit * 2**16) / 2**16 * unit
    Q = np.round(p.inside / unit * 2**16) / 2**16 * unit
    a, b = case.make().fit(X, case.y, case.v), case.make().fit(X + 8 * unit, case.y, case.v)
    tolerance = 1e-8 * p.size + 1e3 * p.noise(a.predict, Q)
    expect_close(p, b.predict(Q + 8 * unit), a.predict(Q), tolerance, "X shifted")


def check_rotation(p):
    case, d = p.case, p.X.shape[1]
    if d == 1 or case.mode != "fixed" or not isinstance(case.parameters["metric"], str) or case.parameters["metric"] != "euclidean":
        return
    if case.points not in ("uniform", "normal", "dense to sparse") or not unique_polynomial(p):
        return
    if case.parameters["overlap"] == "auto" or p.model.smoothness_ < 0:
        return  # the dimension is told from a sample in memory's order
    R = np.linalg.qr(p.rng.normal(size=(d, d)))[0]
    other = case.make().fit(case.X @ R, case.y, case.v)
    Q = p.inside[(p.model.coverage(p.inside) == 1.0)]
    if len(Q) and np.allclose(np.sort(other.radii_), np.sort(p.model.radii_), rtol=1e-9):
        expect_close(p, other.predict(Q @ R), p.model.predict(Q), 1e-7 * p.size + 1e4 * p.noise(p.model.predict, Q), "X rotated")


def check_locality(p):
    """With nothing chosen, responses that no speaking region holds cannot matter, but for the bounds that all responses set."""
    case, m = p.case, p.model
    metric = case.parameters.get("metric")
    if case.mode != "fixed" or case.v is not None or (isinstance(metric, str) and metric in ("auto", "learned")):
        return
    Q = p.inside[:10]
    Q = Q[m.coverage(Q) == 1.0][:3]
    low, high = p.rows(case.y).min(axis=0), p.rows(case.y).max(axis=0)
    inside = ((p.rows(m.predict(Q)) >= low) & (p.rows(m.predict(Q)) <= high)).all(axis=1) if len(Q) else []
    for q in Q[inside]:
        speaking = [one.region for one in m.contributions(q) if one.level == 0]
        held = np.unique(m.model_.levels[0].models.members[speaking])
        seen = (
            (case.X[:, None] == case.X[m.model_.points.row[held]][None]).all(axis=2).any(axis=1)
            if len(case.X) <= 600
            else np.ones(len(case.X), bool)
        )
        if seen.all():
            continue
        y = case.y.copy()
        y[~seen] = y[~seen] * -3 + 17 * p.size
        other = case.make().fit(case.X, y)
        expect_close(p, other.predict(q[None]), m.predict(q[None]), 1e-13 * p.size, "far responses")


BAD = {
    "NaN in X": lambda X, y: (np.where(np.arange(X.size).reshape(X.shape) == 0, np.nan, X), y, None),
    "inf in y": lambda X, y: (X, np.where(np.arange(y.size).reshape(y.shape) == 0, np.inf, y), None),
    "rows differ": lambda X, y: (X, np.vstack([y.reshape(len(y), -1)] * 2), None),
    "negative weight": lambda X, y: (X, y, np.where(np.arange(len(X)) == 0, -1.0, 1.0)),
    "NaN weight": lambda X, y: (X, y, np.where(np.arange(len(X)) == 0, np.nan, 1.0)),
    "all weights zero": lambda X, y: (X, y, np.zeros(len(X))),
    "too many weights": lambda X, y: (X, y, np.ones(len(X) + 1)),
    "text": lambda X, y: (X, np.array(["a"] * len(X), dtype=object), None),
    "complex": lambda X, y: (X + 1j, y, None),
    "no rows": lambda X, y: (X[:0], y[:0], None),
    "three axes": lambda X, y: (X[..., None], y, None),
    "another width, NaN in y": lambda X, y: (np.hstack([X, X]), np.full(y.shape, np.nan), None),
    "another width, weights bad": lambda X, y: (np.hstack([X, X]), y, -np.ones(len(X))),
}
BAD_PARAMETERS = (
    {"region_size": 1},
    {"region_size": 2.5},
    {"kernel": "nope"},
    {"degree": -2},
    {"degree": True},
    {"bandwidth": 0.0},
    {"bandwidth": []},
    {"ridge": np.nan},
    {"ridge": "nope"},
    {"weight": "wendland-c3"},
    {"weight": None},
    {"overlap": -1},
    {"metric": "nope"},
    {"metric": [[1.0]] * 2},
    {"background": 0},
    {"background_weight": 0.0},
    {"background_weight": np.inf},
    {"rank_tolerance": np.nan},
    {"order": "x"},
    {"selection": "cv"},
    {"local_model": 3},
    {"bandwidth": (1.0, 2.0), "selection": None},
    {"overlap": np.nan},
    {"kernel": None},
    {"local_model": None},
    {"order": "random", "random_state": "x"},
    {"n_jobs": 0},
    {"n_jobs": "two"},
    {"overlap": np.array([1.0, 2.0])},
    {"region_size": np.array([3, 4])},
    {"metric": np.array([["a"]])},
    {"degree": None},
)


def check_bad_input(p):
    """Bad data are refused by a ValueError with a message, and the model is as it was."""
    case, m = p.case, copy.deepcopy(p.model)
    name = pick(p.rng, *BAD)
    f = m.predict(p.inside)
    X, y, v = BAD[name](case.X, case.y)
    refused(lambda: m.fit(X, y, v), name)
    try:
        after = m.predict(p.inside)
    except Exception as error:
        raise Violated(f"after a refused fit ({name}) predict raises {type(error).__name__}: {str(error)[:90]}") from error
    expect(np.array_equal(after, f), f"after a refused fit ({name}) predictions differ")
    Q = np.where(np.arange(p.inside.size).reshape(p.inside.shape) == 0, np.nan, p.inside)
    for what, call in (
        ("predict", m.predict),
        ("coverage", m.coverage),
        ("call", m),
        ("contributions", lambda Q: m.contributions(Q[0])),
    ):
        refused(lambda call=call: call(Q), f"NaN in a query of {what}")
        refused(lambda call=call: call(np.hstack([p.inside, p.inside])), f"too many features in {what}")


def check_bad_parameters(p):
    bad = BAD_PARAMETERS[p.rng.integers(len(BAD_PARAMETERS))]
    refused(lambda: p.case.make(**bad).fit(p.case.X, p.case.y), str(bad))


def refused(call, name):
    try:
        call()
    except ValueError as error:
        expect(len(str(error)) > 10, f"{name}: no message")
    except Exception as error:
        raise Violated(f"{name}: {type(error).__name__} instead of ValueError: {str(error)[:90]}") from error
    else:
        raise Violated(f"{name}: not refused")


ALWAYS = (check_fit_is_quiet, check_finite, check_sane, check_constant, check_rounding)
SOMETIMES = (  # two of the first line and two of the others for each data set
    check_gradient,
    check_hessian,
    check_borders,
    check_calls_agree,
    check_saved,
    check_growth,
    check_weights,
    check_layout,
    check_response_scale,
    check_response_shift,
    check_feature_scale,
    check_feature_shift,
    check_rotation,
    check_locality,
    check_bad_input,
    check_bad_parameters,
)


# ------------------------------------------------------------------------------------------------------------------- the run


class Tired(Exception):
    pass


def _alarm(number, frame):
    raise Tired(f"longer than {PATIENCE} s")


def run_case(case, record, every=False):
    """All checks on one case; ``record(check, error)`` is told of each, with None where it held."""
    try:
        p = Probe(case)
    except Tired:
        raise
    except Exception as error:
        record("fit", error)
        return
    record("fit", None)
    chosen = (
        SOMETIMES if every else [SOMETIMES[i] for i in (*p.rng.permutation(5)[:2], *5 + p.rng.permutation(len(SOMETIMES) - 5)[:2])]
    )
    root = [2**31 - 1, *np.frombuffer(case.X[:1].tobytes(), np.uint32).tolist()]  # a check draws the same whichever others run
    for check in (*ALWAYS, *chosen):
        p.rng = np.random.default_rng([*root, [c.__name__ for c in (*ALWAYS, *SOMETIMES)].index(check.__name__)])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                figure = check(p)
        except Tired:
            raise
        except Exception as error:
            record(check.__name__.removeprefix("check_"), error)
        else:
            record(check.__name__.removeprefix("check_"), None, figure)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--seconds", type=float, default=60.0)
    a.add_argument("--seed", type=int, default=0)
    a.add_argument("--case", type=int, help="only this data set")
    a.add_argument("--largest", type=int, default=3000, help="most points of a data set")
    a.add_argument("--plain", action="store_true", help="no numbers beyond 1e±100")
    a.add_argument("--shown", type=int, default=10**9, help="violations of one kind that are printed")
    a = a.parse_args()
    signal.signal(signal.SIGALRM, _alarm)
    start, tried, made, found, kinds = time.time(), 0, Counter(), defaultdict(list), Counter()
    figures, slowest = defaultdict(lambda: (-np.inf, None)), (0.0, None)
    options = (" --plain" if a.plain else "") + (f" --largest {a.largest}" if a.largest != 3000 else "")
    number = -1 if a.case is None else a.case - 1
    while time.time() - start < a.seconds:
        number += 1
        case = Case(a.seed, number, a.largest, a.plain)
        if a.case is not None:
            print(case)

        def record(check, error, figure=None, number=number, case=case):
            made[check] += 1
            if figure is not None and figure > figures[check][0]:
                figures[check] = (figure, number)
            if error is None:
                return
            raised = "" if isinstance(error, Violated) else f" raised {type(error).__name__}"
            kind = check + raised + (" [extreme]" if case.extreme else "")
            kinds[kind] += 1
            found[kind].append(number)
            if a.case is not None and raised:
                traceback.print_exception(error)
            if kinds[kind] <= a.shown:
                print(f"VIOLATION {kind}: {str(error)[:300]}\n    --seed {a.seed} --case {number}{options}   {case}", flush=True)

        began = time.time()
        signal.alarm(PATIENCE)
        try:
            run_case(case, record, every=a.case is not None)
        except Tired as error:
            record("patience", error)
        finally:
            signal.alarm(0)
        tried += 1
        slowest = max(slowest, (time.time() - began, number), key=lambda s: s[0])
        if a.case is not None:
            break
    print(
        f"\ndata sets {tried}   checks {sum(made.values())}   violations {sum(kinds.values())}   seconds {time.time() - start:.0f}   slowest {slowest[0]:.1f} s (--case {slowest[1]})"
    )
    for check, count in made.most_common():
        bad = {kind: n for kind, n in kinds.items() if kind.split(" ")[0] == check}
        worst_figure = f"   worst {figures[check][0]:.3g} (--case {figures[check][1]})" if check in figures else ""
        print(f"  {check:18s}{count:7d} checks  {sum(bad.values()):5d} violations{worst_figure}")
        for kind, n in bad.items():
            print(f"      {n:5d}  {kind}   cases {found[kind][:6]}")
    sys.exit(bool(kinds))


if __name__ == "__main__":
    main()
