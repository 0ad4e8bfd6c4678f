"""What must not change a prediction: ``python -m benchmarks.invariances [--sets 60] [--first 0] [--largest 3000] [--record]``

Generated data sets as users have them: eleven kinds of points, eight functions, nine kinds of noise, 30 to 3,000 rows of 1 to 15
features. Each is fitted as it is, with every single feature in another unit in turn, with a constant added to the responses, with a
constant column, with a column twice and with its rows in another order. Printed is the greatest change of a prediction between the
data, as a share of the range of the responses, and every set where it is more than one per cent.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.results import record
from stitchwork import StitchedRegressor

BEARABLE = 0.01  # of the range of the responses
FEWEST, QUERIES = 30, 400  # rows of a set that counts, and places where it is asked
FEATURES = (1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 5, 6, 8, 10, 12, 15)
POINTS = (
    *("uniform", "clustered", "grid with holes", "tracks", "repeated", "units", "categories", "dominating", "collinear"),
    *("heavy tails", "subspace"),
)
FUNCTIONS = ("smooth", "steps", "constant region", "ridge", "additive", "peak", "linear", "multiplicative")
NOISES = ("none", "normal", "small", "uneven", "heavy", "1 % outliers", "3 % outliers", "5 % outliers", "stray rows")


class Set(NamedTuple):
    """A data set, with queries that are like its rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray


def draw_points(rng: np.random.Generator, kind: str, n: int, more: int, d: int) -> np.ndarray:
    """``n`` points (n + more, d) and as many ``more`` like them."""
    total = n + more
    U = rng.uniform(0, 1, (total, d))
    if kind == "clustered":
        centers = rng.uniform(0, 1, (max(2, min(8, n // 10 + 1)), d))
        width, which = 10 ** rng.uniform(-3, -0.7, len(centers)), rng.integers(len(centers), size=total)
        return centers[which] + width[which, None] * rng.normal(size=(total, d))
    if kind == "grid with holes":
        k = max(2, int(np.ceil(n ** (1 / min(d, 3))))) + 1
        return rng.integers(0, k, (total, d)) / (k - 1)
    if kind == "tracks":
        k = max(2, n // 40)
        t, which = rng.uniform(0, 1, (total, 1)), rng.integers(k, size=total)
        a, b = rng.uniform(0, 1, (2, k, d))
        return a[which] * (1 - t) + b[which] * t + 1e-3 * rng.normal(size=(total, d))
    if kind == "repeated":
        return U[rng.integers(0, max(2, n // 3), total)]
    if kind == "categories":
        U[:, 0] = rng.integers(0, 5, total) / 4.0
        if d > 2:
            U[:, 1] = rng.integers(0, 3, total) / 2.0
    if kind == "collinear" and d > 1:
        U[:, 1] = U[:, 0] + 10 ** rng.uniform(-8, -2) * rng.normal(size=total)
    if kind == "heavy tails":
        return rng.standard_t(2, (total, d)) * 0.2 + 0.5
    if kind == "subspace":
        A = rng.normal(size=(min(d, 2), d))
        return rng.uniform(0, 1, (total, min(d, 2))) @ A / np.abs(A).sum(0)
    return U


def respond(rng: np.random.Generator, function: str, kind: str, P: np.ndarray) -> np.ndarray:
    """The function at points ``P`` (n, d)."""
    d = P.shape[1]
    w = rng.normal(size=d) if kind != "dominating" else np.where(np.arange(d) == rng.integers(d), 1.0, 0.02)
    w, frequency, phase = w / np.linalg.norm(w), rng.uniform(1, 8), rng.uniform(0, 6)
    s, other = P @ w, P @ rng.normal(size=d) / np.sqrt(d)
    return {
        "smooth": lambda: np.sin(frequency * s + phase) + 0.5 * np.cos(2 * other),
        "steps": lambda: np.floor(3 * s) + (P[:, 0] > rng.uniform(0.2, 0.8)),
        "constant region": lambda: np.maximum(0, s - np.median(s)) * frequency,
        "ridge": lambda: np.tanh(20 * (s - np.median(s))),
        "additive": lambda: np.sin(frequency * P).sum(axis=1),
        "peak": lambda: np.exp(-30 * np.square(P - np.median(P, axis=0)).sum(axis=1)),
        "linear": lambda: 3 * s + 1,
        "multiplicative": lambda: np.exp(np.clip(3 * s, -8, 8)),
    }[function]()


def draw_noise(rng: np.random.Generator, noise: str, P: np.ndarray) -> np.ndarray:
    """Errors in deviations of the function."""
    g = rng.normal(size=len(P))
    if noise == "none":
        return 0.0 * g
    if noise == "normal":
        return 0.2 * g
    if noise == "uneven":
        return (0.02 + 0.6 * (P[:, 0] > np.median(P[:, 0]))) * g
    if noise == "heavy":
        return 0.1 * rng.standard_t(2, len(P))
    wrong = rng.random(len(P)) < (int(noise[0]) / 100 if "outliers" in noise else 0.0)
    return 0.03 * g + np.where(wrong, 3.0 * rng.choice([-1, 1], len(P)) * (1 + 0.3 * g), 0.0)


def make_set(seed: int, largest: int) -> Set:
    """The data set of a seed."""
    rng = np.random.default_rng([7, seed])
    n, d = int(np.exp(rng.uniform(np.log(FEWEST), np.log(largest)))), int(rng.choice(FEATURES))
    kind, function, noise = (str(rng.choice(names)) for names in (POINTS, FUNCTIONS, NOISES))
    X = draw_points(rng, kind, n, QUERIES, d)
    truth = respond(rng, function, kind, X)
    y = truth + (truth.std() or 1.0) * draw_noise(rng, noise, X)
    if kind == "units":
        unit = 10.0 ** rng.uniform(-9, 9, d)
        X = unit * (X + rng.uniform(-3, 3, d))
    if noise == "stray rows":
        X[rng.choice(n, max(1, n // 100), replace=False)] += 100 * X.std(axis=0)
    if rng.random() < 0.3:
        y = y * 10.0 ** rng.uniform(-9, 9)
    return Set(f"seed {seed}: n={n} d={d}, {kind}, {function}, noise: {noise}", X[:n], y[:n], X[n:])


def changes(rng: np.random.Generator, one: Set) -> Iterator[tuple[str, Set, float]]:
    """What must not matter: its name, the changed set, and what is added to its responses."""
    name, X, y, Q = one
    n, d = X.shape
    for k in range(d):
        unit = np.where(np.arange(d) == k, 10.0 ** rng.uniform(-4, 4), 1.0)
        yield "the unit of a feature", Set(name, X * unit, y, Q * unit), 0.0
    shift = float(rng.choice([-1.0, 1.0])) * 10 * np.ptp(y)
    yield "a constant added to y", one._replace(y=y + shift), shift
    place, value = int(rng.integers(d + 1)), float(rng.normal())
    yield "a constant column", Set(name, np.insert(X, place, value, axis=1), y, np.insert(Q, place, value, axis=1)), 0.0
    again = int(rng.integers(d))
    yield "a column twice", Set(name, np.insert(X, place, X[:, again], axis=1), y, np.insert(Q, place, Q[:, again], axis=1)), 0.0
    order = rng.permutation(n)
    yield "the order of rows", Set(name, X[order], y[order], Q), 0.0


def compare(one: Set, seed: int) -> dict[str, float]:
    """The greatest change of a prediction inside the box of the data, in ranges of the responses, by what was changed."""
    low, high = one.X.min(axis=0), one.X.max(axis=0)
    inside = (np.clip(one.Q, low, high) == one.Q).all(axis=1)
    one = one._replace(Q=one.Q[inside] if inside.any() else one.X)
    plain = StitchedRegressor().fit(one.X, one.y).predict(one.Q)
    found: dict[str, float] = defaultdict(float)
    for name, other, shift in changes(np.random.default_rng([8, seed]), one):
        moved = np.abs(StitchedRegressor().fit(other.X, other.y).predict(other.Q) - shift - plain).max()
        found[name] = max(found[name], float(moved / (np.ptp(one.y) or 1.0)))
    return found


def main() -> None:
    """Print the greatest changes, and the sets where they are too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="seed of the first set")
    parser.add_argument("--largest", type=int, default=3000, help="most rows of a set")
    parser.add_argument("--record", action="store_true", help="keep the figures in docs/results.json")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    all_found, started = defaultdict(list), time.process_time()
    for seed in range(chosen.first, chosen.first + chosen.sets):
        one = make_set(seed, chosen.largest)
        for name, moved in compare(one, seed).items():
            all_found[name].append(moved)
            if moved > BEARABLE:
                print(f"{100 * moved:6.2f} % by {name}: {one.name}", flush=True)
    figures = {}
    for name, moved in all_found.items():
        figures[f"{name}: sets within 1 %"] = float((np.array(moved) <= BEARABLE).mean())
        figures[f"{name}: greatest change"] = float(np.max(moved))
        print(f"{name}: {np.sum(np.array(moved) <= BEARABLE)} of {len(moved)} sets within 1 %, at most {100 * np.max(moved):.2g} %")
    print(f"{time.process_time() - started:.0f} CPU s")
    if chosen.record:
        record("invariances", "python -m benchmarks.invariances --record", figures)


if __name__ == "__main__":
    main()
