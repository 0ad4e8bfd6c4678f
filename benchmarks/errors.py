"""Known errors, gross errors and stations whose errors are published: what they cost, and whether intervals hold.

    python -m benchmarks.errors [gross] [known] [stations] [--data NAME …] [--seeds K] [--record]

gross: shares of rows are off by 100 standard deviations of the noise; errors to held-out rows, relative to a fit without the wrong
rows, for a curve, a noisy field, a survey and three tables (or those of ``--data``). known: random fields whose observations have
errors over a factor of 100, beside the exact process that knows the field's covariance; intervals of 90 % for new observations by
fifths of their errors, with the standard error that differences between fields (``--seeds``) leave. stations: velocities of GPS
stations in California, of which most are listed several times: rows left out, and stations left out whole.
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

from benchmarks.results import record
from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset

REAL = {"rio": 1, "concreteslump": 10, "airfoil": 2, "kin40k": 1}  # how many splits are looked at
LARGEST = 3000  # of their rows that are used
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


def read_some(rng, name):
    """Some rows of a data set."""
    table = load_dataset(name)
    rows = rng.permutation(len(table.data))[:LARGEST]
    return table.data[rows], table.target[rows]


def gross(keep, names):
    """Ratios of errors, wrong rows found, good rows lost and CPU time, by share of wrong rows."""
    drawn = {"curve": draw_curve, "field": draw_field}
    print(f"{'':14}{'wrong':>7}{'error':>8}{'plain':>8}{'found':>8}{'good lost':>11}{'CPU':>7}")
    for name in names or (*drawn, *REAL):
        rng, found = np.random.default_rng(0), {}
        X, y = drawn[name](rng) if name in drawn else read_some(rng, name)
        splits = [rng.permutation(len(X)) < len(X) // 4 for _ in range(REAL.get(name, 2))]
        for share in SHARES:
            error, plain, caught, lost, cost = spoil_splits(X, y, splits, share, rng)
            print(f"{name:14}{share:7.2f}{error:8.3f}{plain:8.2f}{caught:8.3f}{lost:11.4f}{cost:7.1f}", flush=True)
            found[f"{share:g}"] = {"error": error, "plain": plain, "lost": lost, "cost": cost}
        keep("errors, gross", {name: {"n": len(X), "d": X.shape[1], "shares": found}})


def spoil_splits(X, y, splits, share, rng):
    """Errors of a robust and of a plain fit relative to one without the wrong rows, wrong and good rows left out, CPU time."""
    rows = np.sum([spoil(X[~test], y[~test], X[test], y[test], share, rng) for test in splits], axis=0)
    squares, (wrong, caught, good, lost), (clean, robust) = rows[:3], rows[3:7], rows[7:]
    own, plain = np.sqrt(squares[1:] / squares[0])
    return float(own), float(plain), float(caught / wrong) if wrong else 1.0, float(lost / good), float(robust / clean)


def spoil(X, y, Q, z, share, rng):
    """Of one split: squared errors of three fits; wrong rows and those found, good rows and those lost; CPU seconds of two fits."""
    wrong = rng.random(len(y)) < share
    clean, first = timed_fit(X[~wrong], y[~wrong])
    spoiled = y + wrong * rng.choice([-100.0, 100.0], len(y)) * clean.loo_error_
    robust, second = timed_fit(X, spoiled, robust=True)
    plain = StitchedRegressor().fit(X, spoiled) if wrong.any() else clean
    out = robust.outlier_weights_ < 0.5
    squares = [np.square(model.predict(Q) - z).sum() for model in (clean, robust, plain)]
    return np.array([*squares, wrong.sum(), out[wrong].sum(), (~wrong).sum(), out[~wrong].sum(), first, second])


def timed_fit(X, y, **parameters):
    """A model, and the CPU seconds of its fit."""
    started = time.process_time()
    model = StitchedRegressor(**parameters).fit(X, y)
    return model, time.process_time() - started


def rmse(value, truth):
    """Root mean squared difference."""
    return np.sqrt(np.mean((value - truth) ** 2))


def matern(A, B, length=1.0):
    """Matérn covariance, ν = 5/2."""
    r = np.sqrt(5.0) * cdist(A, B) / length
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


def known(keep, seeds, n=800, q=2500):
    """RMSE relative to the exact process; shares of observations by fifths of errors, and of the truth, inside 90 % intervals."""
    shares, errors, truths = [], [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, s = rng.uniform(0, 6, (n + q, 2)), 10 ** rng.uniform(-2, 0, n + q)
        C = matern(X, X)
        truth = np.linalg.cholesky(C + 1e-10 * np.eye(n + q)) @ rng.normal(size=n + q)
        y, old, new = truth + s * rng.normal(size=n + q), np.arange(n), np.arange(n, n + q)
        exact = C[n:, :n] @ cho_solve(cho_factor(C[:n, :n] + np.diag(s[old] ** 2)), y[old])
        model = StitchedRegressor().fit(X[old], y[old], noise_std=s[old])
        ends = model.predict_interval(X[new], 0.9, noise_std=s[new])
        held, fifth = (ends[:, 0] <= y[new]) & (y[new] <= ends[:, 1]), np.argsort(np.argsort(s[new])) * 5 // q
        shares.append([held[fifth == k].mean() for k in range(5)])
        value, std = model.predict(X[new], return_std=True, std_of="function")
        truths.append(np.mean(np.abs(value - truth[new]) < 1.645 * std))
        errors.append([rmse(model.predict(X[new]), truth[new]), rmse(exact, truth[new])])
        told = " ".join(f"{share:.3f}" for share in shares[-1])
        print(
            f"seed {seed}: RMSE {errors[-1][0] / errors[-1][1]:.3f} of the exact process, further noise {float(model.noise_):.3g};"
            f" inside 90 %, by fifths: {told}; of the truth {truths[-1]:.3f}",
            flush=True,
        )
    own, best = np.sqrt(np.mean(np.square(errors), axis=0))
    mean, spread = np.mean(shares, axis=0), np.std(shares, axis=0, ddof=1) / np.sqrt(seeds)
    print(f"all: RMSE {own / best:.3f}; inside 90 %:", " ".join(f"{a:.3f} ± {b:.3f}" for a, b in zip(mean, spread, strict=True)))
    print(f"truth inside 90 % of the function: {np.mean(truths):.3f}, from {min(truths):.3f} to {max(truths):.3f}")
    figures = {"ratio": float(own / best), "inside": mean.tolist(), "standard error": spread.tolist(), "fields": seeds}
    figures["truth"] = [float(np.mean(truths)), float(min(truths)), float(max(truths))]
    keep("errors, known", {"factor of 100": figures})


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = ["gross", "known", "stations"]
    parser.add_argument("parts", nargs="*", choices=[*choices, []], help="all, unless some are named")
    parser.add_argument("--data", nargs="*", choices=["curve", "field", *REAL], help="of gross errors; all by default")
    parser.add_argument("--seeds", type=int, default=16, help="fields with known errors")
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results.json as they come")
    arguments = parser.parse_args()

    def keep(benchmark, figures):
        if arguments.record:
            record(benchmark, f"python -m benchmarks.errors {benchmark.split()[-1]}", figures)

    parts = {"gross": lambda: gross(keep, arguments.data), "known": lambda: known(keep, arguments.seeds), "stations": stations}
    warnings.simplefilter("ignore", UserWarning)  # of wrong rows, which are there on purpose
    for name in arguments.parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()
