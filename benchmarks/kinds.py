"""Is the default's choice near the best one, on fields of many kinds?

``python -m benchmarks.kinds [SET …] [--seeds 2] [--single] [--json FILE]``

Windows of real fields with random rows, blocks or whole lines held out, and synthetic fields: surveys, fronts, peaks, rough
processes, holes with and without noise, clusters, uneven noise, sheets, curves. Errors are relative to the standard deviation of
the held-out truth. ``--single`` fits every kernel alone, too: the ratio to the best of them in hindsight says what choosing costs.
``--against FILE`` compares with an earlier run, set by set.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from stitchwork import StitchedRegressor  # noqa: E402
from stitchwork.datasets import load_dataset, make_2d  # noqa: E402

KERNELS = ("gaussian", "multiquadric", "matern52", "cubic", "quintic")
WINDOW = 4000  # points of a window of a real field


def held_rows(X, rng):
    """A random fifth of the rows."""
    return rng.random(len(X)) < 0.2


def held_blocks(X, rng):
    """Eight squares of an eighth of the extent, in the first two coordinates."""
    U = (X[:, :2] - X[:, :2].min(axis=0)) / np.ptp(X[:, :2], axis=0)
    corners = rng.uniform(0.05, 0.82, (8, 2))
    return ((corners[:, None] <= U) & (corners[:, None] + 0.125 >= U)).all(axis=2).any(axis=0)


HOLD = {"rows": held_rows, "blocks": held_blocks}


@cache
def real(name):
    """Points, responses and line of each of a real field."""
    data = load_dataset(name)
    if name == "rio" or name == "britain":
        return data.data, data.target, data.line if name == "rio" else None
    if name == "baja":
        jump = np.linalg.norm(np.diff(data.data, axis=0), axis=1) > 0.1
        return data.data, data.target, np.concatenate([[0], np.cumsum(jump)])
    if name == "combustion":
        return data.data, data.target, data.flamelet
    return data.data, data.target, None


def window(name, hold):
    """A part of a real field around one of its points, with some of it held out."""

    def make(seed):
        rng = np.random.default_rng([1, seed])
        X, y, line = real(name)
        U = X[:, :2] / X[:, :2].std(axis=0)
        near = np.abs(U - U[rng.integers(len(U))]).max(axis=1).argpartition(min(WINDOW, len(U) - 1))[:WINDOW]
        near.sort()
        X, y, line = X[near], y[near], None if line is None else line[near]
        if hold == "lines":
            lines = np.unique(line)
            held = np.isin(line, rng.permutation(lines)[: max(len(lines) // 5, 1)])
        else:
            held = HOLD[hold](X, rng)
        return X[~held], y[~held], X[held], y[held]

    return make


def flamelets(seed):
    """Every fifth flamelet held out, another one first for each seed."""
    X, y, line = real("combustion")
    held = line % 5 == (2 + seed) % 5
    return X[~held], y[~held], X[held], y[held]


def combustion(seed):
    """A random fifth of the rows held out."""
    X, y, _ = real("combustion")
    held = np.random.default_rng([2, seed]).random(len(X)) < 0.2
    return X[~held], y[~held], X[held], y[held]


def waves(rng, d, roughness, least=1.0, most=60.0, terms=80):
    """A sum of plane waves whose amplitudes fall with this power of the frequency."""
    frequency = np.geomspace(least, most, terms)
    k, phase = rng.normal(size=(terms, d)) * frequency[:, None], rng.uniform(0, 2 * np.pi, terms)
    return lambda X: (np.sin(X @ k.T + phase) * frequency**-roughness).sum(axis=1)


def synthetic(function, n=3000, d=2, noise=0.0, hole=False, places=None):
    """Points in the unit cube; with a hole, the queries are in it and the points are not."""

    def make(seed):
        rng = np.random.default_rng([3, seed])
        f = function(rng)
        X = rng.uniform(size=(n, d)) if places is None else places(rng, n)
        T = rng.uniform(0.02, 0.98, (3000, d)) if places is None else places(rng, 3000)
        scale = f(T).std()
        if hole:
            center, radius = rng.uniform(0.3, 0.7, d), 0.12
            X = X[np.linalg.norm(X - center, axis=1) > radius]
            U = rng.normal(size=(800, d))
            T = center + radius * U / np.linalg.norm(U, axis=1)[:, None] * rng.uniform(size=(800, 1)) ** (1 / d)
        level = noise(X) if callable(noise) else noise
        return X, f(X) + level * scale * rng.normal(size=len(X)), T, f(T)

    return make


def smooth(rng):
    return waves(rng, 2, 1.0, 1.0, 6.0, 8)


def smooth_in_space(rng):
    return waves(rng, 3, 1.0, 1.0, 4.0, 8)


def smooth_on_a_line(rng):
    return waves(rng, 1, 1.0, 2.0, 30.0, 12)


def rough(rng):
    return waves(rng, 2, 1.5)


def very_rough(rng):
    return waves(rng, 2, 1.0)


def front(rng):
    a, angle = rng.uniform(0.3, 0.7, 2), rng.uniform(0, np.pi)
    along = np.array([np.cos(angle), np.sin(angle)])
    return lambda X: np.tanh(((X - a) @ along + 0.1 * np.sin(8 * X[:, 0])) / 0.03) + np.sin(3 * X[:, 1])


def step(rng):
    f = front(rng)
    return lambda X: np.sign(f(X))


def peaks(rng):
    centers, depth, height = rng.uniform(size=(20, 2)), 10 ** rng.uniform(-2, -0.7, 20), rng.normal(size=20)

    def f(X):
        far = ((X[:, None] - centers) ** 2).sum(axis=2) / depth**2
        return ((2 - far) / (1 + far) ** 2.5) @ height

    return f


def stretched(rng):
    """Ten times as fast along the second coordinate."""
    f = rough(rng)
    return lambda X: f(X * [0.3, 1.0])


def bent(rng):
    """Rough on one side, smooth on the other."""
    f, g = smooth(rng), very_rough(rng)
    return lambda X: f(X) + g(X) / (1 + np.exp(-(X[:, 0] - 0.5) / 0.05))


def survey(rng, n):
    """Lines, ten times as dense along as apart, two of them across."""
    each = n // 22
    lines = [np.stack([rng.uniform(size=each), a + 0.002 * rng.normal(size=each)], axis=1) for a in np.linspace(0.02, 0.98, 20)]
    lines += [np.stack([a + 0.002 * rng.normal(size=each), rng.uniform(size=each)], axis=1) for a in (0.3, 0.7)]
    return np.concatenate(lines)


def survey_lines(function, noise=0.0):
    """A survey asked everywhere."""

    def make(seed):
        rng = np.random.default_rng([4, seed])
        f, X, T = function(rng), survey(rng, 3000), rng.uniform(0.03, 0.97, (3000, 2))
        return X, f(X) + noise * f(T).std() * rng.normal(size=len(X)), T, f(T)

    return make


def clusters(rng, n):
    """Clusters of all sizes, asked like their points."""
    centers, width = np.random.default_rng(5).uniform(0.1, 0.9, (25, 2)), np.geomspace(0.003, 0.15, 25)
    which = rng.integers(25, size=n)
    return centers[which] + width[which, None] * rng.normal(size=(n, 2))


def grid(rng, n):
    """A regular grid, asked between its points."""
    side = round(n**0.5)
    return np.stack(np.meshgrid(*2 * [np.linspace(0, 1, side)]), axis=-1).reshape(-1, 2) if n != 3000 else rng.uniform(size=(n, 2))


def sphere(rng, n):
    X = rng.normal(size=(n, 3))
    return X / np.linalg.norm(X, axis=1)[:, None]


def roll(rng, n):
    t, z = rng.uniform(1.5, 8, n), rng.uniform(0, 3, n)
    return np.stack([t * np.cos(t) / 4, z, t * np.sin(t) / 4], axis=1)


def uneven(X):
    """Noise that grows hundredfold."""
    return 0.003 * 100 ** X[:, 0]


def paper(noise):
    """8,000 points of the paper's test, whose noise grows with the response."""

    def make(seed):
        data = make_2d(8000, seed)
        y = data.target
        disturbed = y + noise * (0.05 * np.abs(y) + 0.01) * np.random.default_rng([6, seed]).normal(size=len(y))
        return data.data, disturbed, data.test_data, data.test_target

    return make


SETS = {
    f"{name}, {hold}": window(name, hold)
    for name in ("heaton", "forest", "ozone", "elevation-west", "mountains", "britain", "rio", "baja", "wind")
    for hold in ("rows", "blocks")
}
SETS |= {f"{name}, lines": window(name, "lines") for name in ("rio", "baja")}
SETS |= {
    "flamelets": flamelets,
    "combustion": combustion,
    "smooth": synthetic(smooth),
    "smooth, noise": synthetic(smooth, noise=0.1),
    "smooth, hole": synthetic(smooth, hole=True),
    "smooth, noise, hole": synthetic(smooth, noise=0.05, hole=True),
    "smooth in space": synthetic(smooth_in_space, d=3),
    "smooth in space, noise": synthetic(smooth_in_space, d=3, noise=0.1),
    "line": synthetic(smooth_on_a_line, n=1200, d=1),
    "line, noise": synthetic(smooth_on_a_line, n=1200, d=1, noise=0.1),
    "rough": synthetic(rough),
    "rough, noise": synthetic(rough, noise=0.1),
    "rough, hole": synthetic(rough, hole=True),
    "rough, noise, hole": synthetic(rough, noise=0.1, hole=True),
    "very rough": synthetic(very_rough),
    "front": synthetic(front),
    "front, noise": synthetic(front, noise=0.05),
    "step, noise": synthetic(step, noise=0.05),
    "peaks": synthetic(peaks),
    "peaks, noise": synthetic(peaks, noise=0.02),
    "stretched": synthetic(stretched),
    "bent": synthetic(bent),
    "uneven noise": synthetic(rough, noise=uneven),
    "clusters": synthetic(rough, places=clusters),
    "clusters, noise": synthetic(rough, places=clusters, noise=0.05),
    "grid": synthetic(rough, n=3136, places=grid),
    "survey, smooth": survey_lines(smooth),
    "survey, rough": survey_lines(rough),
    "survey, peaks": survey_lines(peaks),
    "survey, noise": survey_lines(rough, noise=0.05),
    "sphere": synthetic(smooth_in_space, places=sphere),
    "roll": synthetic(smooth_in_space, places=roll),
    "paper": paper(0.0),
    "paper, noise": paper(1.0),
}


def run(name, seed, single):
    """Relative errors of the default and, if wanted, of every kernel alone; share inside 90 % intervals; CPU seconds."""
    X, y, T, truth = SETS[name](seed)
    scale = truth.std()

    def error(model):
        return float(np.sqrt(np.mean((model.fit(X, y).predict(T) - truth) ** 2)) / scale)

    started = time.process_time()
    model = StitchedRegressor()
    found = {"default": error(model)}
    found["seconds"] = time.process_time() - started
    for kernel in KERNELS if single else ():
        found[kernel] = error(StitchedRegressor(kernel=kernel))
    return f"{name} {seed}", found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", help=f"from {', '.join(map(repr, SETS))}")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--single", action="store_true", help="fit every kernel alone, too")
    parser.add_argument("--json", type=Path, help="write the errors to this file")
    parser.add_argument("--against", type=Path, help="an earlier file to compare with")
    arguments = parser.parse_args()
    tasks = [(name, arguments.first + seed) for name in arguments.sets or SETS for seed in range(arguments.seeds)]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        found = dict(pool.map(run, *zip(*tasks, strict=True), [arguments.single] * len(tasks)))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))
    before = json.loads(arguments.against.read_text()) if arguments.against else {}
    logs, best = [], []
    for name, one in found.items():
        line = f"{name:<28} {one['default']:<10.3g} {one['seconds']:5.1f} s"
        known = [one.get(k, before.get(name, {}).get(k)) for k in KERNELS]
        if None not in known:
            best.append(np.log(one["default"] / min(known)))
            line += f"   best single {min(known):<9.3g} {KERNELS[int(np.argmin(known))]:<13} ratio {np.exp(best[-1]):.2f}"
        if name in before:
            logs.append(np.log(one["default"] / before[name]["default"]))
            line += f"   against {np.exp(logs[-1]):.3f}"
        print(line)
    print(f"seconds {sum(one['seconds'] for one in found.values()):.0f}")
    for words, values in (("best single kernel", best), ("earlier run", logs)):
        if values:
            mean, median, worst = (np.exp(summary(values)) for summary in (np.mean, np.median, np.max))
            print(f"ratio to the {words}: geometric mean {mean:.3f}, median {median:.3f}, worst {worst:.2f}")


if __name__ == "__main__":
    main()
