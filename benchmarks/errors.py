"""Known errors, gross errors and stations whose errors are published: what they cost, and whether intervals hold.

    python -m benchmarks.errors [gross] [known] [stations]

gross: shares of rows are off by 100 standard deviations of the noise; errors to held-out rows, relative to a fit without the wrong
rows, for a curve, a noisy field and three tables. known: a random field whose observations have errors over a factor of 100, beside
the exact process that knows the field's covariance; intervals of 90 % for new observations by fifths of their errors. stations:
velocities of GPS stations in California, of which most are listed several times: rows left out, and stations left out whole.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset

TABLES = ("airfoil", "concreteslump", "servo")
SHARES = (0.0, 0.01, 0.05, 0.1)
SAME_STATION = 0.005  # degrees
FOLDS = 10


def draw_curve(rng, n=600):
    """A curve with noise of 0.05."""
    X = rng.uniform(0, 6, (n, 1))
    return X, np.sin(X[:, 0]) + 0.3 * np.cos(5 * X[:, 0]) + 0.05 * rng.normal(size=n)


def draw_field(rng, n=3000):
    """A field with noise of 0.1."""
    X = rng.uniform(0, 6, (n, 2))
    return X, np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=n)


def gross():
    """Ratios of errors, good rows lost and CPU time, by share of wrong rows."""
    rng = np.random.default_rng(0)
    data = {"curve": draw_curve(rng), "field": draw_field(rng)}
    for name in TABLES:
        table = load_dataset(name)
        data[name] = table.data, table.target
    print(f"{'':10}{'wrong':>7}{'error':>8}{'plain':>8}{'found':>8}{'good lost':>11}{'CPU':>7}")
    for name, (X, y) in data.items():
        test = rng.permutation(len(X)) < len(X) // 4
        for share in SHARES:
            print(f"{name:10}{share:7.2f}{spoil(X[~test], y[~test], X[test], y[test], share, rng)}", flush=True)


def spoil(X, y, Q, z, share, rng):
    """One line of `gross`."""
    wrong = rng.random(len(y)) < share
    started = time.process_time()
    clean = StitchedRegressor().fit(X[~wrong], y[~wrong])
    middle = time.process_time()
    spoiled = y + wrong * rng.choice([-100.0, 100.0], len(y)) * clean.loo_error_
    middle, before = time.process_time(), middle - started
    robust = StitchedRegressor(robust=True).fit(X, spoiled)
    cost = (time.process_time() - middle) / before
    error, own, plain = (rmse(m.predict(Q), z) for m in (clean, robust, StitchedRegressor().fit(X, spoiled)))
    lost = robust.outlier_weights_ < 0.5
    found = lost[wrong].mean() if wrong.any() else np.nan
    return f"{own / error:8.3f}{plain / error:8.2f}{found:8.3f}{lost[~wrong].mean():11.4f}{cost:7.1f}"


def rmse(value, truth):
    """Root mean squared difference."""
    return np.sqrt(np.mean((value - truth) ** 2))


def matern(A, B, length=1.0):
    """Matérn covariance, ν = 5/2."""
    r = np.sqrt(5.0) * cdist(A, B) / length
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


def known(seeds=range(4), n=800, q=1500):
    """RMSE relative to the exact process, and shares inside 90 % intervals by fifths of the errors."""
    shares = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, s = rng.uniform(0, 6, (n + q, 2)), 10 ** rng.uniform(-2, 0, n + q)
        C = matern(X, X)
        truth = np.linalg.cholesky(C + 1e-10 * np.eye(n + q)) @ rng.normal(size=n + q)
        y, old, new = truth + s * rng.normal(size=n + q), np.arange(n), np.arange(n, n + q)
        factor = cho_factor(C[:n, :n] + np.diag(s[old] ** 2))
        exact = C[n:, :n] @ cho_solve(factor, y[old])
        model = StitchedRegressor().fit(X[old], y[old], noise_std=s[old])
        ends = model.predict_interval(X[new], 0.9, noise_std=s[new])
        held, fifth = (ends[:, 0] <= y[new]) & (y[new] <= ends[:, 1]), np.argsort(np.argsort(s[new])) * 5 // q
        shares.append([held[fifth == k].mean() for k in range(5)])
        ratio = rmse(model.predict(X[new]), truth[new]) / rmse(exact, truth[new])
        print(
            f"known errors, seed {seed}: RMSE {ratio:.3f} of the exact process, further noise {float(model.noise_):.3g}", flush=True
        )
    print("  inside 90 % intervals, by fifths of the errors:", " ".join(f"{share:.3f}" for share in np.mean(shares, axis=0)))


def stations():
    """Standardised residuals of each component: rows left out at random, and stations left out whole, which are the groups then."""
    data = load_dataset("gps")
    X, y, s = data.data, data.target, data.target_std
    near = cKDTree(X).sparse_distance_matrix(cKDTree(X), SAME_STATION)
    count, station = connected_components(near)
    print(f"{len(X):,} rows of {count:,} stations; standard deviation of standardised residuals, and share inside 90 %")
    rng = np.random.default_rng(0)
    for label, fold, groups in (
        ("rows", rng.permutation(len(X)) % FOLDS, None),
        ("stations", (rng.permutation(count) % FOLDS)[station], station),
    ):
        z, held = np.empty_like(y), np.empty(y.shape, dtype=bool)
        for k in range(FOLDS):
            out = fold == k
            model = StitchedRegressor().fit(X[~out], y[~out], noise_std=s[~out], groups=None if groups is None else groups[~out])
            value, std = model.predict(X[out], return_std=True, noise_std=s[out])
            ends = model.predict_interval(X[out], 0.9, noise_std=s[out])
            z[out], held[out] = (y[out] - value) / std, (ends[..., 0] <= y[out]) & (y[out] <= ends[..., 1])
        print(f"{label:10}{z.std(axis=0).round(3)}   {held.mean(axis=0).round(3)}", flush=True)


def main():
    """What is named, or everything."""
    parts = {"gross": gross, "known": known, "stations": stations}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="all, unless some are named")
    warnings.simplefilter("ignore", UserWarning)  # of wrong rows, which are there on purpose
    for name in parser.parse_args().parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()
