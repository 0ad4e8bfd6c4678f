"""How many points a function needs: models that say where to measure next, beside designs that do not look.

    pip install '.[bench]' && python -m benchmarks.growing [--seeds 5] [--functions ring peak …] [--methods ours random …]

RMSE on 4,096 random places of the box against the number of points, the geometric mean over seeds: ours (20 points of a Sobol
sequence, then batches of 20 by `suggest` and `partial_fit`), random and Sobol points fitted by `StitchedRegressor()`, the
triangulation of adaptive's `LearnerND`, and scikit-learn's Gaussian process where its variance is largest, up to 400 points. Then
the points that each needs to reach the error of 1,000 random ones, and the CPU seconds of a suggestion. Errors do not depend on
the machine's load.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import cache

import numpy as np
from scipy.stats import qmc
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from benchmarks.results import record
from stitchwork import StitchedRegressor
from stitchwork.datasets import make_2d

BATCH, MOST, LARGEST_PROCESS = 20, 1000, 400
SHOWN = (100, 200, 300, 400, 600, 800, 1000)


def paper(U):
    """The paper's two-dimensional test on [-6, 30]²."""
    return make_2d(1).function(12.0 + 18.0 * U)


def ring(U):
    """A steep ring."""
    return np.tanh((np.linalg.norm(U, axis=1) - 0.6) / 0.05)


def peak(U):
    """A narrow peak on a slope, in three dimensions."""
    return U[:, 0] + 0.01 / (0.01 + np.square(U - [0.3, -0.2, 0.4]).sum(axis=1))


def ignition(U):
    """log10 of the ignition delay of hydrogen in air: 910 to 1,430 K, 1 to 30 atm, equivalence ratio 0.4 to 2."""
    return np.array([log_delay(1000 / (0.9 + 0.2 * u[0]), 10 ** (0.75 + 0.75 * u[1]), 1.2 + 0.8 * u[2]) for u in U])


@cache
def hydrogen():
    """The mechanism, read once."""
    import cantera

    return cantera.Solution("h2o2.yaml")


@cache
def log_delay(temperature, atmospheres, ratio):
    """When a closed reactor of constant volume has become 400 K hotter, log10 of seconds."""
    import cantera

    gas = hydrogen()
    gas.set_equivalence_ratio(ratio, "H2", "O2:1, N2:3.76")
    gas.TP = temperature, atmospheres * cantera.one_atm
    reactor = cantera.IdealGasReactor(gas, clone=False)
    network = cantera.ReactorNet([reactor])
    hot = temperature + 400.0
    while hot > reactor.T:
        before = network.time, reactor.T
        network.step()
    share = (hot - before[1]) / (reactor.T - before[1])
    return np.log10(before[0] + share * (network.time - before[0]))


FUNCTIONS = {"2d": (paper, 2), "ring": (ring, 2), "peak": (peak, 3), "ignition": (ignition, 3)}


def sobol(n, d, seed):
    """The first n points of a scrambled sequence in [-1, 1]^d."""
    return 2.0 * qmc.Sobol(d, rng=seed).random(1 << int(np.ceil(np.log2(n))))[:n] - 1.0


def grow_ours(function, d, seed, judge):
    """Batches where the model suggests them; where what was chosen no longer suits, it is chosen anew."""
    X = sobol(BATCH, d, seed)
    y = function(X)
    model, errors = StitchedRegressor(random_state=seed).fit(X, y), {}
    while True:
        errors[len(X)] = judge(model.predict)
        if len(X) >= MOST:
            return errors
        new = model.suggest(BATCH, bounds=[(-1.0, 1.0)] * d)
        X, y = np.concatenate([X, new]), np.concatenate([y, function(new)])
        model.partial_fit(new, y[-BATCH:])
        if model.stale_ > 2.0:
            model.fit(X, y)


def fit_design(draw):
    """A design that does not look at the function, fitted anew at the sizes that are shown."""

    def run(function, d, seed, judge):
        X = draw(MOST, d, seed)
        y = function(X)
        return {n: judge(StitchedRegressor().fit(X[:n], y[:n]).predict) for n in SHOWN}

    return run


def grow_triangles(function, d, seed, judge):
    """adaptive's `LearnerND`, points one by one, and its linear interpolation: after the corners there is no chance in it."""
    from adaptive import LearnerND
    from scipy.interpolate import LinearNDInterpolator

    learner, errors = LearnerND(lambda x: float(function(np.array([x]))[0]), [(-1.0, 1.0)] * d), {}
    while learner.npoints < MOST:
        for x in learner.ask(1)[0]:
            learner.tell(x, learner.function(x))
        if learner.npoints in SHOWN:
            errors[learner.npoints] = judge(LinearNDInterpolator(learner.points, learner.values))
    return errors


def grow_process(function, d, seed, judge):
    """Batches where a Gaussian process with a length scale for each feature is least sure, each point counting for the next."""
    X = sobol(BATCH, d, seed)
    y, errors, fitted, kernel = function(X), {}, 0, ConstantKernel() * Matern(np.ones(d), (1e-2, 1e2), nu=2.5)
    while True:
        search = len(X) >= 1.3 * fitted  # length scales are sought anew when there are a third more points
        model = GaussianProcessRegressor(kernel, alpha=1e-10, normalize_y=True, optimizer="fmin_l_bfgs_b" if search else None)
        kernel, fitted = model.fit(X, y).kernel_, len(X) if search else fitted
        errors[len(X)] = judge(model.predict)
        if len(X) >= LARGEST_PROCESS:
            return errors
        candidates = sobol(2048, d, seed + len(X))
        new = candidates[least_sure(model.predict(candidates, return_cov=True)[1])]
        X, y = np.concatenate([X, new]), np.concatenate([y, function(new)])


def least_sure(covariance):
    """Indices of a batch, each of largest variance given those before it: C - c cᵀ / v."""
    picked = []
    for _ in range(BATCH):
        best = int(np.diag(covariance).argmax())
        picked.append(best)
        covariance = covariance - np.outer(covariance[best], covariance[best]) / covariance[best, best]
    return picked


def random_points(n, d, seed):
    """Uniform on [-1, 1]^d."""
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (n, d))


METHODS = {
    "ours": grow_ours,
    "random": fit_design(random_points),
    "sobol": fit_design(sobol),
    "learner-nd": grow_triangles,
    "process": grow_process,
}


def compare(name, methods, seeds):
    """Print the errors of one function, and the points that each needs; both returned."""
    function, d = FUNCTIONS[name]
    Q = random_points(4096, d, 10**6)
    truth = function(Q)
    print(f"\n{name}: deviation {truth.std():.3g}\n{'RMSE at':12}" + "".join(f"{n:>10}" for n in SHOWN), flush=True)
    rows = {}
    for method in methods:
        drawn = 1 if method == "learner-nd" else seeds
        runs = [METHODS[method](function, d, seed, lambda f: np.sqrt(np.mean((f(Q) - truth) ** 2))) for seed in range(drawn)]
        rows[method] = {n: float(np.exp(np.mean([np.log(run[n]) for run in runs]))) for n in runs[0]}
        shown = "".join(f"{rows[method][n]:10.2e}" if n in rows[method] else f"{'':10}" for n in SHOWN)
        print(f"{method:12}{shown}", flush=True)
    goal, needed = rows.get("random", {}).get(MOST), {}
    for method in methods if goal else ():
        reached = [n for n, error in rows[method].items() if error <= goal]
        needed[method] = min(reached, default=None)
        print(
            f"  {method} reaches {goal:.2e} with {min(reached) if reached else f'more than {max(rows[method])}'} points", flush=True
        )
    return {"errors": {method: {str(n): error for n, error in row.items()} for method, row in rows.items()}, "needed": needed}


def time_suggestion(n=10_000):
    """CPU seconds of 20 points for a model of n that has just grown."""
    X = random_points(n + BATCH, 2, 0)
    y = ring(X)
    model = StitchedRegressor(random_state=0).fit(X[:n], y[:n]).partial_fit(X[n:], y[n:])
    started = time.process_time()
    model.suggest(BATCH)
    print(f"\nA suggestion of {BATCH} points at n = {n:,}: {time.process_time() - started:.2f} CPU s")


def main():
    """Everything, or what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results.json")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    warnings.filterwarnings("ignore", "New points are missed")  # then it is chosen anew
    for name in arguments.functions:
        found = compare(name, arguments.methods, arguments.seeds)
        if arguments.record:
            record("growing", "python -m benchmarks.growing", {name: found})
    time_suggestion()


if __name__ == "__main__":
    main()
