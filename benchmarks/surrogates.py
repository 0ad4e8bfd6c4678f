"""How good is the default on few runs of a simulation? ``python -m benchmarks.surrogates [function …] [--n 20,50] [--json FILE]``

Twelve noise-free functions of public libraries, in the unit cube: Latin hypercubes of n points, judged at 4,000 uniform ones. For
the default and for three Gaussian processes: RMSE over the standard deviation of the truth, the share of truths inside 90 %
intervals, CPU seconds of the fit on one thread, and the RMSE of the gradient, at the first 500 points, over the root mean squared
norm of the true one. Figures of a row are geometric means over the seeds, shares plain ones; a peer that fails at a seed is absent
from the row. ``--json`` keeps every figure, and those of peers are not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import norm, qmc
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from threadpoolctl import threadpool_limits

from benchmarks.peers import rmse
from benchmarks.results import record
from stitchwork import StitchedRegressor

SIZES = (20, 50, 100, 200, 500, 1000)
N_TEST, N_GRADIENT = 4000, 500  # points; SMT takes a microsecond of Python for each n d² of a gradient
LEVEL = 0.9  # of the intervals
QUANTILE = norm.ppf((1 + LEVEL) / 2)  # half the width of a Gaussian one, in standard deviations


@dataclass(frozen=True)
class Simulation:
    """A formula of d inputs in physical units, as a function of (n, d) points in the unit cube."""

    formula: Callable
    ranges: np.ndarray  # (d, 2): least and largest value of each input

    def __call__(self, U):
        """(n,) values."""
        low, high = self.ranges.T
        return self.formula(*(low + (high - low) * U).T)

    def gradient(self, U):
        """(n, d) derivatives by complex steps, exact to rounding: Im f(u + ihe_k) / h."""
        h = 1e-30
        return np.stack([self(U + 1j * h * unit).imag / h for unit in np.eye(len(self.ranges))], axis=1)

    def in_cube(self, x):
        """(n, d) points of the unit cube for inputs in physical units."""
        low, high = self.ranges.T
        return (np.atleast_2d(x) - low) / (high - low)


SIMULATIONS: dict[str, Simulation] = {}


def inputs(*ranges):
    """Adds a formula of these inputs to the simulations."""

    def add(formula):
        SIMULATIONS[formula.__name__] = Simulation(formula, np.array(ranges, dtype=float))
        return formula

    return add


# Formulas and ranges are those of Surjanovic & Bingham's Virtual Library of Simulation Experiments (www.sfu.ca/~ssurjano); above
# each stands where it has them from.


# Dixon & Szegö (1978), Towards Global Optimisation 2
@inputs((-5, 10), (0, 15))
def branin(x1, x2):
    return (x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10


# Franke (1979), A critical comparison of some methods for interpolation of scattered data
@inputs(*2 * [(0, 1)])
def franke(x1, x2):
    a, b = 9 * x1, 9 * x2
    hills = 0.75 * np.exp(-((a - 2) ** 2 + (b - 2) ** 2) / 4) + 0.75 * np.exp(-((a + 1) ** 2) / 49 - (b + 1) / 10)
    return hills + 0.5 * np.exp(-((a - 7) ** 2 + (b - 3) ** 2) / 4) - 0.2 * np.exp(-((a - 4) ** 2) - (b - 7) ** 2)


# Ishigami & Homma (1990), with a = 7 and b = 0.1 of Crestaux et al. (2007)
@inputs(*3 * [(-np.pi, np.pi)])
def ishigami(x1, x2, x3):
    return np.sin(x1) + 7 * np.sin(x2) ** 2 + 0.1 * x3**4 * np.sin(x1)


# Dette & Pepelyshev (2010), doi:10.1198/TECH.2010.09157, the "highly curved" one
@inputs(*3 * [(0, 1)])
def curved(x1, x2, x3):
    return 4 * (x1 - 2 + 8 * x2 - 8 * x2**2) ** 2 + (3 - 4 * x2) ** 2 + 16 * np.sqrt(x3 + 1) * (2 * x3 - 1) ** 2


# Friedman (1991), doi:10.1214/aos/1176347963, without noise and without the inert inputs
@inputs(*5 * [(0, 1)])
def friedman(x1, x2, x3, x4, x5):
    return 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5


HARTMANN_A = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]])
HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


# Dixon & Szegö (1978), Towards Global Optimisation 2; its six-dimensional one
@inputs(*6 * [(0, 1)])
def hartmann(*x):
    exponents = (HARTMANN_A[..., None] * (np.array(x) - HARTMANN_P[..., None]) ** 2).sum(axis=1)  # (4, n)
    return -np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-exponents)


# Ben-Ari & Steinberg (2007), doi:10.1080/08982110701580930: midpoint voltage of a push-pull circuit
@inputs((50, 150), (25, 70), (0.5, 3), (1.2, 2.5), (0.25, 1.2), (50, 300))
def circuit(Rb1, Rb2, Rf, Rc1, Rc2, beta):
    Vb1, gain = 12 * Rb2 / (Rb1 + Rb2), beta * (Rc2 + 9)
    return ((Vb1 + 0.74) * gain + 11.35 * Rf + 0.74 * Rf * gain / Rc1) / (gain + Rf)


# Ben-Ari & Steinberg (2007), doi:10.1080/08982110701580930: seconds of a piston's cycle
@inputs((30, 60), (0.005, 0.020), (0.002, 0.010), (1000, 5000), (90_000, 110_000), (290, 296), (340, 360))
def piston(M, S, V0, k, P0, Ta, T0):
    A = P0 * S + 19.62 * M - k * V0 / S
    V = S / (2 * k) * (np.sqrt(A**2 + 4 * k * P0 * V0 * Ta / T0) - A)
    return 2 * np.pi * np.sqrt(M / (k + S**2 * P0 * V0 * Ta / (T0 * V**2)))


# Morris, Mitchell & Ylvisaker (1993), doi:10.1080/00401706.1993.10485320: flow through a borehole, m³ a year
@inputs((0.05, 0.15), (100, 50_000), (63_070, 115_600), (990, 1110), (63.1, 116), (700, 820), (1120, 1680), (9855, 12_045))
def borehole(rw, r, Tu, Hu, Tl, Hl, L, Kw):
    ratio = np.log(r / rw)
    return 2 * np.pi * Tu * (Hu - Hl) / (ratio * (1 + 2 * L * Tu / (ratio * rw**2 * Kw) + Tu / Tl))


# An & Owen (2001), doi:10.1006/jcom.2001.0588: distance of the end of four segments from the shoulder; no derivative where it is 0
@inputs(*4 * [(0, 1)], *4 * [(0, 2 * np.pi)])
def arm(*x):
    lengths, angles = np.array(x[:4]), np.cumsum(x[4:], axis=0)
    return np.sqrt((lengths * np.cos(angles)).sum(axis=0) ** 2 + (lengths * np.sin(angles)).sum(axis=0) ** 2)


# Forrester, Sóbester & Keane (2008), doi:10.1002/9780470770801: weight of a light aircraft's wing
@inputs((150, 200), (220, 300), (6, 10), (-10, 10), (16, 45), (0.5, 1), (0.08, 0.18), (2.5, 6), (1700, 2500), (0.025, 0.08))
def wing(Sw, Wfw, A, sweep, q, taper, tc, Nz, Wdg, Wp):
    cos = np.cos(np.pi / 180 * sweep)
    loads = (A / cos**2) ** 0.6 * q**0.006 * taper**0.04 * (100 * tc / cos) ** -0.3 * (Nz * Wdg) ** 0.49
    return 0.036 * Sw**0.758 * Wfw**0.0035 * loads + Sw * Wp


WELCH = np.array([0, 0.05, 0.08, 0, 1, -0.03, 0.03, 0, -0.09, -0.01, -0.07, 0, 0, -0.04, 0.06, 0, -0.01, -0.03, -5, 0])


# Welch et al. (1992), doi:10.1080/00401706.1992.10485229: six strong inputs, twelve weak ones, two without effect
@inputs(*20 * [(-0.5, 0.5)])
def welch(*x):
    curves = 5 * x[11] / (1 + x[0]) + 5 * (x[3] - x[19]) ** 2 + 40 * x[18] ** 3 + 0.25 * x[12] ** 2
    return curves + WELCH @ np.array(x)


def default(X, y):
    """`StitchedRegressor()`."""
    model = StitchedRegressor().fit(X, y)
    return lambda Q: (model.predict(Q), model.predict_interval(Q, LEVEL)), model.gradient


def gaussian_answer(mean, deviation):
    """(n,) values and the (n, 2) ends of their intervals."""
    mean, deviation = np.ravel(mean), np.ravel(deviation)
    return mean, mean[:, None] + QUANTILE * np.stack([-deviation, deviation], axis=1)


def scikit_learn(X, y):
    """Gaussian or Matérn-5/2 with one length scale an input, by likelihood; fewer restarts where one takes a minute."""
    restarts = 5 if len(X) < 500 else 2 if len(X) < 1000 else 0
    ones, bounds, models = np.ones(X.shape[1]), (1e-2, 1e3), []
    for kernel in (RBF(ones, bounds), Matern(ones, bounds, nu=2.5)):
        model = GaussianProcessRegressor(
            ConstantKernel(1.0, (1e-3, 1e6)) * kernel, alpha=1e-10, n_restarts_optimizer=restarts, normalize_y=True, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # length scales of inputs without effect grow to their bound
            models.append(model.fit(X, y))
    model = max(models, key=lambda one: one.log_marginal_likelihood_value_)

    def answer(Q):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Predicted variances smaller than 0", UserWarning)
            return gaussian_answer(*model.predict(Q, return_std=True))

    return answer, lambda Q: process_gradient(model, Q, y.std())


def process_gradient(model, Q, scale):
    """(n, d) derivatives Σ_i α_i ∂k(q, x_i)/∂q of scikit-learn's prediction, which it does not offer; ``scale``: that of y."""
    scaled, lengths = model.kernel_, model.kernel_.k2.length_scale
    offsets = (Q[:, None] - model.X_train_) / lengths  # (n, m, d)
    squared = (offsets**2).sum(axis=2)
    if isinstance(scaled.k2, Matern):  # k = (1 + √5 r + 5/3 r²) exp(-√5 r), so k' / r = -5/3 (1 + √5 r) exp(-√5 r)
        slopes = -5 / 3 * (1 + np.sqrt(5 * squared)) * np.exp(-np.sqrt(5 * squared))
    else:  # k = exp(-r² / 2), so k' / r = -k
        slopes = -np.exp(-squared / 2)
    return scale * scaled.k1.constant_value * np.einsum("nm,nmd->nd", slopes * model.alpha_, offsets) / lengths


def smt(X, y):
    """SMT's kriging as it comes, Gaussian with ten starts; with one from 500 points on, where each takes 20 to 100 s."""
    from smt.surrogate_models import KRG

    model = KRG(print_global=False, n_start=10 if len(X) < 500 else 1)
    model.set_training_values(X, y)
    model.train()

    def answer(Q):
        return gaussian_answer(model.predict_values(Q), np.sqrt(np.maximum(model.predict_variances(Q), 0)))

    return answer, lambda Q: np.column_stack([model.predict_derivatives(Q, k) for k in range(Q.shape[1])])


def libkriging(X, y):
    """libKriging: Gaussian or Matérn-5/2 by likelihood, five starts."""
    from pylibkriging import Kriging

    models = [Kriging(y, X, kernel, "constant", False, "BFGS5", "LL") for kernel in ("gauss", "matern5_2")]
    model = max(models, key=lambda one: one.logLikelihood())
    return lambda Q: gaussian_answer(*model.predict(Q, True, False, False)[:2]), lambda Q: model.predict(Q, True, False, True)[3]


METHODS = {"default": default, "scikit-learn": scikit_learn, "smt": smt, "libkriging": libkriging}
PEERS = tuple(METHODS)[1:]
LARGEST = {"smt": 500}  # points: beyond it a single start takes minutes


def measure(method, simulation, n, seed):
    """Figures of one fit, or the reason why there are none."""
    d = len(simulation.ranges)
    X = qmc.LatinHypercube(d, seed=seed).random(n)
    Q = np.random.default_rng([seed, 1]).uniform(size=(N_TEST, d))
    truth, slopes = simulation(Q), simulation.gradient(Q[:N_GRADIENT])
    started = time.process_time()
    try:
        answer, gradient = METHODS[method](X, simulation(X))
        seconds = time.process_time() - started
        values, ends = answer(Q)
        found = gradient(Q[:N_GRADIENT])
    except (ValueError, RuntimeError) as error:  # a matrix that is not positive definite (LinAlgError is a ValueError)
        if method == "default":
            raise
        return {"absent": f"{type(error).__name__}: {error}"}
    if not (np.isfinite(values).all() and np.isfinite(found).all()):
        return {"absent": "predicts what is not finite"}
    return {
        "error": rmse(values - truth) / float(truth.std()),
        "inside": float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))),
        "cpu": seconds,
        "gradient": rmse(found - slopes) / rmse(slopes),
    }


class Known:
    """Figures by function, n, seed and method, kept in a file if one is named; peers' are computed once."""

    def __init__(self, path):
        self.path = Path(path) if path else None
        self.figures = self.read()

    def read(self):
        return json.loads(self.path.read_text()) if self.path and self.path.exists() else {}

    def write(self, new):
        """Adds to what is in the file by now, since another run may write to it; at no time is it half written."""
        draft = self.path.with_name(self.path.name + ".part")
        draft.write_text(json.dumps(self.read() | new, indent=1))
        draft.replace(self.path)

    def figure(self, name, n, seed, method, compute):
        """The figures, or None where there are none and they shall not be computed."""
        key = f"{name}/{n}/{seed}/{method}"
        if compute and (method == "default" or key not in self.figures):
            new = {key: measure(method, SIMULATIONS[name], n, seed)}
            self.figures |= new
            if self.path:
                self.write(new)
        return self.figures.get(key)


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(values))))


def summarise(known, name, n, seeds, peers):
    """Means over the seeds of each method that has figures at all of them, and the ratios to the best peer."""
    means = {}
    for method in METHODS:
        compute = method == "default" or (peers and n <= LARGEST.get(method, np.inf))
        rows = [known.figure(name, n, seed, method, compute) for seed in range(seeds)]
        for seed, row in enumerate(rows):
            if row and "absent" in row:
                print(f"    {name}, n = {n}, seed {seed}: {method} is absent ({row['absent']})")
        if all(row and "absent" not in row for row in rows):
            means[method] = {k: geometric_mean([row[k] for row in rows]) for k in ("error", "cpu", "gradient")}
            means[method]["inside"] = float(np.mean([row["inside"] for row in rows]))
    ratios = {
        k: means["default"][k] / min((means[peer][k] for peer in PEERS if peer in means), default=np.nan)
        for k in ("error", "gradient")
    }
    return means, ratios


COLUMNS = {
    "error": ("RMSE / std", "9.2e"),
    "inside": ("inside 90 %", "6.3f"),
    "cpu": ("CPU s", "7.2f"),
    "gradient": ("gradient", "9.2e"),
}


def print_head():
    """What the columns are: within each, the methods in their order."""
    print(f"RMSE / std, share inside 90 %, CPU seconds and gradient error, each of: {', '.join(METHODS)}")
    print(
        f"{'function':<9} {'d':>2} {'n':>5} {'ratio':>7}"
        + "".join(f" | {title:<{len(METHODS) * (int(form.split('.')[0]) + 1) - 1}}" for title, form in COLUMNS.values())
    )


def print_row(name, n, means, ratios):
    """One function and n."""
    cells = ""
    for k, (_, form) in COLUMNS.items():
        width = form.split(".")[0]
        cells += " | " + " ".join(format(means[one][k], form) if one in means else format("–", ">" + width) for one in METHODS)
    print(f"{name:<9} {len(SIMULATIONS[name].ranges):>2} {n:>5} {ratios['error']:>7.2f}{cells}", flush=True)


def print_sizes(results):
    """For each n: how the ratios are over the functions, printed and returned; results: (name, n) -> (means, ratios)."""
    print()
    summary = {}
    for n in dict.fromkeys(n for _, n in results):
        rows = {name: found for (name, size), found in results.items() if size == n}
        inside = np.mean([means["default"]["inside"] for means, _ in rows.values()])
        summary[str(n)] = {"inside": float(inside), "cpu": geometric_mean([means["default"]["cpu"] for means, _ in rows.values()])}
        line = f"n = {n:>4}, {len(rows):>2} functions: inside 90 % {inside:.3f}"
        for k, title in (("error", "RMSE"), ("gradient", "gradient")):
            found = {name: ratios[k] for name, (_, ratios) in rows.items() if np.isfinite(ratios[k])}
            if found:
                worst = max(found, key=found.get)
                summary[str(n)][k] = [geometric_mean(list(found.values())), found[worst], worst]
                line += f"; {title} / best peer {geometric_mean(list(found.values())):.3f}, worst {found[worst]:.2f} ({worst})"
        print(line)
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", default=list(SIMULATIONS), help=f"from {', '.join(SIMULATIONS)}")
    parser.add_argument("--n", default=",".join(map(str, SIZES)), help="numbers of points, with commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true", help="run the default alone; peers' figures in the file are still shown")
    parser.add_argument("--json", help="a file that keeps the figures for the next run")
    parser.add_argument("--record", action="store_true", help="write the figures of each n to docs/results.json")
    arguments = parser.parse_args()
    if unknown := set(arguments.functions) - SIMULATIONS.keys():
        parser.error(f"unknown functions {', '.join(sorted(unknown))}; there are {', '.join(SIMULATIONS)}")
    if not arguments.no_peers:
        for module in ("smt.surrogate_models", "pylibkriging"):  # so that the first fit does not take the time of an import
            import_module(module)
    known, results = Known(arguments.json), {}
    print_head()
    with threadpool_limits(1):
        for n, name in product(map(int, arguments.n.split(",")), arguments.functions):
            results[name, n] = summarise(known, name, n, arguments.seeds, not arguments.no_peers)
            print_row(name, n, *results[name, n])
    summary = print_sizes(results)
    if arguments.record:
        record("surrogates", "python -m benchmarks.surrogates", {n: row for n, row in summary.items() if "error" in row})


if __name__ == "__main__":
    main()
