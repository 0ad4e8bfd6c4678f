"""What it costs to add points: one into many, some in one place, some everywhere, and doubling in parts.

``python -m benchmarks.updating`` takes some minutes at 10⁶ points; ``--points 100000`` is quicker. CPU seconds, one thread.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from stitchwork import StitchedRegressor
from stitchwork.datasets import make_2d

SIDE = 6.0  # of the square that the points are in
FIXED = {"kernel": "gaussian", "degree": 2, "bandwidth": 1.0, "ridge": 1e-6, "metric": "euclidean"}


def wave(X):
    """A smooth field."""
    return np.sin(X[:, 0]) * np.cos(X[:, 1])


def scattered(n, seed, low=0.0, high=SIDE):
    """Points in a square."""
    return np.random.default_rng(seed).uniform(low, high, (n, 2))


def cpu(action):
    """CPU seconds of an action."""
    started = time.process_time()
    action()
    return time.process_time() - started


def add(model, X):
    """Add points and ask for one prediction."""
    model.partial_fit(X, wave(X))
    model.predict(X[:1])


def measure_additions(n):
    """One point, a hundredth in one place and a hundredth everywhere, beside fits."""
    X = scattered(n, 0)
    model = StitchedRegressor()
    default = cpu(lambda: model.fit(X, wave(X)))
    fixed = StitchedRegressor(**FIXED)
    plain = cpu(lambda: fixed.fit(X, wave(X)))
    singles = [cpu(lambda x=x: add(fixed, x[None])) for x in scattered(12, 1)]
    place, everywhere = scattered(n // 100, 2, 2.0, 2.6), scattered(n // 100, 3)
    print(f"n = {n:,}: default fit {default:.2f} CPU s, with fixed settings {plain:.2f}")
    print(f"  one point and the next prediction: {1e3 * np.median(singles):.0f} ms (median of 12, most {1e3 * max(singles):.0f})")
    spent = cpu(lambda: add(model, place))
    print(f"  1 % in one place: {spent:.2f} CPU s, {spent / default:.3f} of a default fit")
    spent = cpu(lambda: add(fixed, everywhere))
    print(f"  1 % everywhere: {spent:.2f} CPU s, {spent / plain:.2f} of a fit with fixed settings")


def measure_doubling(n, noise):
    """The paper's 2-D test with twice as many points in twenty parts, beside fits of all of them; noise in deviations."""
    data = make_2d(2 * n)
    X, Q, truth = data.data, data.test_data, data.test_target
    y = data.target + noise * data.target.std() * np.random.default_rng(0).normal(size=2 * n)
    model = StitchedRegressor().fit(X[:n], y[:n])

    def grow():
        for part in np.array_split(np.arange(n, 2 * n), 20):
            model.partial_fit(X[part], y[part])
        model.predict(Q[:1])

    grown, fresh = cpu(grow), StitchedRegressor()
    fitted = cpu(lambda: fresh.fit(X, y))
    errors = [float(np.sqrt(np.mean((one.predict(Q) - truth) ** 2))) for one in (model, fresh)]
    print(f"doubling {n:,} points in twenty parts, noise {noise}: {grown:.2f} CPU s, {grown / fitted:.2f} fits of all of them;")
    print(f"  RMSE {errors[0]:.3g}, fresh {errors[1]:.3g}, ratio {errors[0] / errors[1]:.2f}; stale_ {model.stale_:.2f}")


def measure_window(updates, n=1000):
    """Memory after many updates of a moving window."""
    X = scattered(n + updates, 6)
    model = StitchedRegressor(**FIXED | {"region_size": 50}).fit(X[:n], wave(X[:n]))
    marks, regions = [], []
    for k in range(updates):
        model.partial_fit(X[n + k : n + k + 1], wave(X[n + k : n + k + 1])).forget(X[k : k + 1])
        if (k + 1) % (updates // 4) == 0:
            model.predict(X[:1])
            marks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
            regions.append(model.n_regions_)
    told = ", ".join(f"{mark:.0f} MB with {m} regions" for mark, m in zip(marks, regions, strict=True))
    print(f"{updates:,} updates of a window of {n:,} points: after each quarter {told}")


def main():
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10**6)
    parser.add_argument("--updates", type=int, default=10**4)
    chosen = parser.parse_args()
    for noise in (0.0, 0.1):
        measure_doubling(10**4, noise)
    measure_additions(chosen.points)
    measure_window(chosen.updates)


if __name__ == "__main__":
    main()
