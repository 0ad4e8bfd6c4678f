"""Many fields on the same points: what it costs to fit them with the hyperparameters of one.

    python -m benchmarks.fields [--points 100000] [--fields 1 100 1000] [--record]

CPU seconds of one thread, in units of one fit with fixed hyperparameters (``selection=None``) in the same run. `refit` takes at
most a hundred fields at a time, so that coefficients need no more memory than a thousand fields themselves. Beside it the operator
of 10,000 queries, which asks all fields at once, and leave-one-out errors of a hundred fields.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

import numpy as np

from benchmarks.results import record
from stitchwork import StitchedRegressor
from stitchwork._parallel import single_threaded_blas

AT_ONCE = 100  # fields
QUERIES = 10_000


def make_fields(X, t):
    """Waves of other lengths and phases, (n, t)."""
    k = np.arange(t)
    return np.sin(X[:, :1] * (1 + 0.2 * (k % 7)) + k / 9) * np.cos(X[:, 1:] * (1 + 0.2 * (k % 5)))


def make_many(X, t):
    """The same, with no further memory to speak of."""
    Y = np.empty((len(X), t))
    for start in range(0, len(X), 1000):
        Y[start : start + 1000] = make_fields(X[start : start + 1000], t)
    return Y


def cpu(action):
    """CPU seconds of an action."""
    started = time.process_time()
    action()
    return time.process_time() - started


def peak():
    """Peak memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def refit_all(model, Y):
    """Refit all fields, some at a time, and ask each for one prediction."""
    for start in range(0, Y.shape[1], AT_ONCE):
        found = model.refit(Y[:, start : start + AT_ONCE]).predict(np.full((1, 2), 3.0))
        np.testing.assert_allclose(found, make_fields(np.full((1, 2), 3.0), Y.shape[1])[:, start : start + AT_ONCE], atol=0.01)


def measure(n, counts):
    """CPU seconds of a fit, of refits and of the operator."""
    X = np.random.default_rng(0).uniform(0, 6, (n, 2))
    y = make_fields(X, 1)[:, 0]
    fit = min(cpu(lambda: StitchedRegressor(selection=None).fit(X, y)) for _ in range(3))
    model = StitchedRegressor(selection=None).fit(X, y)
    found = {"points": n, "fit_cpu": fit}
    print(f"{n:,} points: fit with fixed hyperparameters {fit:.2f} CPU s", flush=True)
    for t in counts:
        Y = make_many(X, t)
        before = peak()
        spent = cpu(lambda Y=Y: refit_all(model, Y))
        found |= {f"refit_{t}_fits": spent / fit, f"refit_{t}_gb": peak() - before}
        print(f"refit of {t:,} fields: {spent:.2f} CPU s, {spent / fit:.2f} fits, {peak() - before:.2f} GB beside them", flush=True)
    Q = np.random.default_rng(1).uniform(0, 6, (QUERIES, 2))
    found["operator_cpu"] = cpu(lambda: model.operator(Q))
    W = model.operator(Q)
    found["product_cpu"] = cpu(lambda: W @ Y)
    found["loo_fits"] = cpu(lambda: model.refit(Y[:, :AT_ONCE]).loo_error_) / fit
    print(f"operator of {QUERIES:,} queries: {found['operator_cpu']:.2f} CPU s, times all fields {found['product_cpu']:.2f}")
    print(f"refit of {min(AT_ONCE, Y.shape[1])} fields with their leave-one-out error: {found['loo_fits']:.2f} fits", flush=True)
    return found


def main():
    """Print all of it, and record it if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10**5)
    parser.add_argument("--fields", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results.json")
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore", message="With ridges")
    with single_threaded_blas():
        found = measure(chosen.points, chosen.fields)
    if chosen.record:
        record("refits", "python -m benchmarks.fields", {f"{chosen.points:,} points": found})


if __name__ == "__main__":
    main()
