"""What do measured slopes bring? ``python -m benchmarks.slopes [functions] [field] [noise] [flamelets] [time] [options]``

functions: the simulations of `benchmarks.surrogates` with all slopes, against n (1 + d) values without slopes, and against SMT's
GEKPLS. field: the 2-D test with and without slopes. noise: the same with noise of a tenth of the deviation on responses and on
slopes. flamelets: every fifth held out whole, slopes along the mixture fraction by splines of the solution. time: fixed settings,
with and without slopes. Errors are RMSE, of functions over the deviation of the truth; CPU seconds on one thread.
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from benchmarks.peers import rmse
from benchmarks.surrogates import N_TEST, SIMULATIONS, geometric_mean
from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset, make_2d

NOISE = 0.1  # share of the deviation of the responses, and of that of their slopes


def fit_timed(*arguments, **more):
    """A fitted default, and CPU seconds."""
    started = time.process_time()
    model = StitchedRegressor(**more.pop("parameters", {})).fit(*arguments, **more)
    return model, time.process_time() - started


def gekpls(X, y, G):
    """SMT's gradient-enhanced kriging with partial least squares, one extra point and two components, as its guide has it."""
    from smt.surrogate_models import GEKPLS

    d = X.shape[1]
    limits = np.tile([[0.0, 1.0]], (d, 1))
    model = GEKPLS(
        theta0=[1e-2] * min(2, d),
        xlimits=limits,
        extra_points=min(2, d),
        n_comp=min(2, d),
        print_global=False,
        print_prediction=False,
    )
    model.set_training_values(X, y)
    for k in range(d):
        model.set_training_derivatives(X, G[:, [k]], k)
    model.train()
    return lambda Q: model.predict_values(Q)[:, 0]


def measure_functions(arguments):
    """One line for each function and n, and the ratios over all."""
    print(f"{'function':<9} {'d':>2} {'n':>4} | values  with slopes  n (1 + d) values  GEKPLS | gradient with, n (1 + d) | CPU s")
    ratios, peers = {}, {}
    for n, name in product(map(int, arguments.n.split(",")), arguments.only.split(",") if arguments.only else SIMULATIONS):
        simulation, rows = SIMULATIONS[name], []
        d = len(simulation.ranges)
        for seed in range(arguments.seeds):
            X, more = (qmc.LatinHypercube(d, seed=seed).random(size) for size in (n, n * (1 + d)))
            Q = np.random.default_rng([seed, 1]).uniform(size=(N_TEST, d))
            truth, slopes = simulation(Q), simulation.gradient(Q)
            with_slopes, seconds = fit_timed(X, simulation(X), gradient=simulation.gradient(X))
            many, others = fit_timed(more, simulation(more))
            models = (StitchedRegressor().fit(X, simulation(X)), with_slopes, many)
            row = [rmse(model.predict(Q) - truth) / truth.std() for model in models]
            try:
                peer = (
                    np.nan
                    if arguments.no_peers
                    else rmse(gekpls(X, simulation(X), simulation.gradient(X))(Q) - truth) / truth.std()
                )
            except (ValueError, RuntimeError):  # a matrix that is not positive definite
                peer = np.nan
            row += [peer, *(rmse(model.gradient(Q) - slopes) / rmse(slopes) for model in models[1:]), seconds, others]
            rows.append(row)
        values, found, others, peer, *rest = (geometric_mean(column) for column in zip(*rows, strict=True))
        ratios.setdefault(n, []).append(found / others)
        peers.setdefault(n, []).append(found / peer)
        print(f"{name:<9} {d:>2} {n:>4} | {values:.2e} {found:.2e} {others:.2e} {peer:.2e} | {rest[0]:.2e} {rest[1]:.2e} |"
              f" {rest[2]:.1f} {rest[3]:.1f}", flush=True)  # fmt: skip
    for n, found in ratios.items():
        against = [ratio for ratio in peers[n] if np.isfinite(ratio)]
        print(
            f"n = {n}: error / that of n (1 + d) values: median {np.median(found):.2f}, geometric mean {geometric_mean(found):.2f}"
        )
        if against:
            print(f"n = {n}: error / GEKPLS's: geometric mean {geometric_mean(against):.2f}, worst {max(against):.2f}")


def compare_fields(n, noise, seed, parameters=None):
    """Errors and gradient errors without and with slopes, and CPU seconds of both."""
    data, rng = make_2d(n, seed), np.random.default_rng(seed)
    y, G = data.target, data.gradient(data.data)
    y, G = y + noise * y.std() * rng.standard_normal(n), G + noise * G.std() * rng.standard_normal(G.shape)
    found = []
    for slopes in ({}, {"gradient": G}):
        model, seconds = fit_timed(data.data, y, parameters=parameters or {}, **slopes)
        values, gradients = model.predict_with_gradient(data.test_data)
        found.append((rmse(values - data.test_target), rmse(gradients - data.test_gradient), seconds))
    return found


def measure_field(arguments, noise=0.0):
    """The 2-D test."""
    for n, seed in product(map(int, arguments.points.split(",")), range(arguments.seeds)):
        (a, ga, ta), (b, gb, tb) = compare_fields(n, noise, seed)
        print(
            f"2-D test, n = {n}, noise {noise:g}, seed {seed}: {a:.3g} → {b:.3g} ({b / a:.3f}), gradient {ga:.3g} → {gb:.3g}"
            f" ({gb / ga:.3f}), CPU {ta:.1f} → {tb:.1f} s",
            flush=True,
        )


def measure_noise(arguments):
    """Noisy slopes beside noisy responses."""
    measure_field(arguments, NOISE)


def measure_flamelets(arguments):
    """Whole flamelets held out, a table over mixture fraction and log dissipation rate; slopes along the former by splines."""
    data = load_dataset("combustion")
    X, y, group, out = np.stack([data.Z, np.log(data.chi_st)], axis=1), data.target, data.flamelet, data.flamelet % 5 == 2
    G = np.full(X.shape, np.nan)
    for one in np.unique(group):
        rows = np.flatnonzero(group == one)
        rows = rows[np.argsort(X[rows, 0])]
        G[rows, 0] = CubicSpline(X[rows, 0], y[rows])(X[rows, 0], 1)
    errors = []
    for slopes in ({}, {"gradient": G[~out]}):
        model, seconds = fit_timed(X[~out], y[~out], groups=group[~out], **slopes)
        errors.append(rmse(model.predict(X[out]) - y[out]))
        print(f"flamelets {'with' if slopes else 'without'} slopes: {errors[-1]:.3g}, CPU {seconds:.1f} s", flush=True)
    print(f"ratio {errors[1] / errors[0]:.3f}")


def measure_time(arguments):
    """Fixed settings: the fit, and queries with gradients."""
    n = arguments.large
    data = make_2d(n)
    fixed = {"selection": None, "kernel": "gaussian", "degree": 1, "bandwidth": 2.0, "ridge": 1e-10, "metric": "euclidean"}
    Q, figures = np.random.default_rng(1).uniform(-5.0, 29.0, (20_000, 2)), []
    for slopes in ({}, {"gradient": data.gradient(data.data)}):
        model, seconds = fit_timed(data.data, data.target, parameters=fixed, **slopes)
        model.predict_with_gradient(Q)
        started = time.process_time()
        model.predict_with_gradient(Q)
        figures.append((seconds, time.process_time() - started))
    (fit, ask), (fit_slopes, ask_slopes) = figures
    print(f"n = {n}: fit {fit:.1f} → {fit_slopes:.1f} CPU s ({fit_slopes / fit:.1f}), value and gradient"
          f" {1e6 * ask / len(Q):.2f} → {1e6 * ask_slopes / len(Q):.2f} µs a query ({ask_slopes / ask:.1f})")  # fmt: skip


PARTS = {
    "functions": measure_functions,
    "field": measure_field,
    "noise": measure_noise,
    "flamelets": measure_flamelets,
    "time": measure_time,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"from {', '.join(PARTS)}")
    parser.add_argument("--n", default="20,50,100,200", help="runs of the functions, with commas")
    parser.add_argument("--only", default="", help="functions, with commas")
    parser.add_argument("--points", default="2000,20000", help="points of the 2-D test, with commas")
    parser.add_argument("--large", type=int, default=100_000, help="points of the part on time")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--no-peers", action="store_true")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - PARTS.keys():
        parser.error(f"unknown parts {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    with threadpool_limits(1):
        for part in arguments.parts:
            PARTS[part](arguments)


if __name__ == "__main__":
    main()
