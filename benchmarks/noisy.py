"""Smooth functions hidden in noise: how near do values and gradients come? ``python -m benchmarks.noisy [CASE …] [--seeds 3]``

Errors to the truth, not to noisy observations, as means over seeds: the default, the same with regions of 100 points, with one
kernel, and scipy's RBFInterpolator on 100 neighbours, tuned on a validation part. The noise is a share of the function's deviation.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.peers import rbf, rmse
from benchmarks.results import record
from stitchwork import StitchedRegressor


def waves(X):
    return np.sin(X[:, 0]) * np.cos(X[:, 1])


def franke(X):
    x, y = 9.0 * X.T
    hills = 0.75 * np.exp(-((x - 2) ** 2 + (y - 2) ** 2) / 4) + 0.75 * np.exp(-((x + 1) ** 2) / 49 - (y + 1) / 10)
    return hills + 0.5 * np.exp(-((x - 7) ** 2 + (y - 3) ** 2) / 4) - 0.2 * np.exp(-((x - 4) ** 2) - (y - 7) ** 2)


def ripples(X):
    return np.sin(6 * np.hypot(X[:, 0] - 1, X[:, 1] - 1)) * np.exp(-X[:, 0] / 4)


def ring(X):
    return np.tanh((np.hypot(X[:, 0] - 0.5, X[:, 1] - 0.5) - 0.3) / 0.05)


def peak(X):
    return np.sin(2 * X[:, 0]) + 3 * np.exp(-((X[:, 0] - 1) ** 2 + (X[:, 1] - 1) ** 2) / 0.01)


def stripes(X):
    return np.sign(np.sin(20 * X[:, 0] + 6 * X[:, 1]))


def curve(X):
    return np.sin(X[:, 0]) + 0.5 * np.sin(2.3 * X[:, 0])


def chirp(X):
    return np.sin(12 * X[:, 0] ** 2)


def space(X):
    return np.sin(X).sum(axis=1) + 0.3 * np.sin(X[:, 0] * X[:, 1])


# name: function, features, extent, points, noise
CASES = {
    "waves": (waves, 2, 6.0, 2000, 0.1),
    "waves, more": (waves, 2, 6.0, 10_000, 0.1),
    "Franke": (franke, 2, 1.0, 3000, 0.2),
    "Franke, less noise": (franke, 2, 1.0, 3000, 0.01),
    "ripples": (ripples, 2, 4.0, 8000, 0.1),
    "ring": (ring, 2, 1.0, 3000, 0.1),
    "peak": (peak, 2, 2.0, 5000, 0.05),
    "stripes": (stripes, 2, 1.0, 4000, 0.05),
    "curve": (curve, 1, 10.0, 500, 0.1),
    "curve, more": (curve, 1, 10.0, 3000, 0.3),
    "chirp": (chirp, 1, 3.0, 400, 0.1),
    "space": (space, 3, 4.0, 5000, 0.05),
    "space, more": (space, 3, 4.0, 20_000, 0.2),
}
WAYS = {"default": {}, "100 points": {"region_size": 100}, "matern52": {"kernel": "matern52"}}


def slope(f, X, step=1e-5):
    """The gradient of a formula, by central differences."""
    return np.stack([(f(X + step * e) - f(X - step * e)) / (2 * step) for e in np.eye(X.shape[1])], axis=1)


def run(name, seed):
    """Errors of values and gradients, and CPU seconds, of each way."""
    f, d, extent, n, noise = CASES[name]
    rng = np.random.default_rng(seed)
    X, T = rng.uniform(0, extent, (n, d)), rng.uniform(0.02 * extent, 0.98 * extent, (3000, d))
    y, found = f(X) + noise * f(X).std() * rng.normal(size=n), {}
    for way, settings in WAYS.items():
        started = time.process_time()
        model = StitchedRegressor(**settings).fit(X, y)
        seconds = time.process_time() - started
        found[way] = [rmse(model.predict(T) - f(T)), rmse(model.gradient(T) - slope(f, T)), seconds]
    found["scipy rbf"] = [rmse(rbf(X, y)(T) - f(T)), np.nan, np.nan]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"from {', '.join(map(repr, CASES))}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results.json")
    arguments = parser.parse_args()
    print("| | n × d | " + " | ".join(f"{way}" for way in (*WAYS, "scipy rbf")) + " | CPU s |\n|" + "---|" * 7)
    for name in arguments.cases or CASES:
        runs = [run(name, seed) for seed in range(arguments.seeds)]
        means = {way: np.mean([found[way] for found in runs], axis=0) for way in runs[0]}
        cells = [f"{v:.3g}" + ("" if np.isnan(g) else f", {g:.3g}") for v, g, _ in means.values()]
        print(
            f"| {name} | {CASES[name][3]:,} × {CASES[name][1]} | " + " | ".join(cells) + f" | {means['default'][2]:.1f} |",
            flush=True,
        )
        if arguments.record:
            errors = {way: [None if np.isnan(error) else error for error in found[:2]] for way, found in means.items()}
            size = f"{CASES[name][3]:,} × {CASES[name][1]}"
            record(
                "noisy",
                "python -m benchmarks.noisy",
                {name: {"size": size, "ways": [*means], "cpu": means["default"][2], **errors}},
            )


if __name__ == "__main__":
    main()
