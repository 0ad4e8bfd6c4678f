"""How fast, against what a user would pick, and against the bare work: ``python -m benchmarks.speed [case …] [--json FILE]``

Every fit runs in a process of its own, on one thread unless it says otherwise, so that peak memory is its own; all figures of a
case come from one run. CPU seconds, wall seconds, peak memory beyond that before the fit, µs of CPU per query, error on the
queries. The floor is the LAPACK calls and exponentials of the same fit, counted while it runs and timed again alone. ``quick``
runs the small cases; ``profile`` shows the stages and how cost grows with dimension, region size and outputs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np

import stitchwork.native
from stitchwork import StitchedRegressor
from stitchwork._parallel import single_threaded_blas
from stitchwork.datasets import load_dataset, make_2d
from stitchwork.datasets._generated import function_2d

from . import rivals
from .results import record

FIXED = {"selection": None}
HAND = {"selection": None, "kernel": "gaussian", "degree": 4, "bandwidth": 2.0, "ridge": 1e-14, "metric": "euclidean"}
STITCHWORK = {"stitchwork": {}, "stitchwork, fixed": FIXED, "stitchwork, by hand": HAND}
RIVALS = {
    "scipy 50": rivals.scipy_rbf(50),
    "scipy 100": rivals.scipy_rbf(100),
    "XGBoost": rivals.xgboost,
    "LightGBM": rivals.lightgbm,
    "KNN": rivals.knn,
    "KernelRidge": rivals.kernel_ridge,
    "SVGP": rivals.svgp,
    "MuyGPyS": rivals.muygpys,
    "ferreus_rbf": rivals.ferreus,
}
# Rivals that take too long or too much memory beyond so many points, or know other dimensions only.
MOST = {"KernelRidge": 10_000, "SVGP": 100_000, "MuyGPyS": 1_000_000, "ferreus_rbf": 1_000_000}
FEW_QUERIES = {"scipy 50": 5000, "scipy 100": 2000, "MuyGPyS": 5000}
QUERIES = 100_000
_LONG = 150.0  # CPU seconds of a fit that is not run again for threads and floor


def waves(X):
    """A smooth function of eight variables, of which the first matter most."""
    return np.sin(3 * X[:, 0] + X[:, 1]) * np.cos(2 * X[:, 2]) + 0.5 * X[:, 3] * X[:, 4] + 0.2 * X[:, 5:].sum(axis=1)


def vortex(X):
    """A smooth function of three variables."""
    return np.sin(4 * X[:, 0]) * np.cos(3 * X[:, 1]) * np.exp(-(X[:, 2] ** 2))


def data_of(case):
    """Training points and values, queries and their true values."""
    rng = np.random.default_rng(7)
    kind, size = case.split()
    if kind == "2d":
        data = make_2d(int(float(size)))
        Q = rng.uniform(data.data.min(axis=0), data.data.max(axis=0), (QUERIES, 2))
        return data.data, data.target, Q, function_2d(Q)
    if kind == "8d":
        X, Q = rng.uniform(size=(round(float(size)), 8)), rng.uniform(size=(QUERIES, 8))
        return X, waves(X), Q, waves(Q)
    if kind == "rbf25":
        X = rng.uniform(-1, 1, (52_850, 3))
        axis = np.linspace(-1, 1, int(size))
        Q = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
        return X, vortex(X), Q, vortex(Q)
    data = load_dataset("britain")
    order = np.random.default_rng(0).permutation(len(data.data))
    train, test = np.split(order, [int(0.9 * len(order))])
    return data.data[train], data.target[train], data.data[test], data.target[test]


CASES = {
    "2d 1e4": [*STITCHWORK, *RIVALS],
    "2d 1e5": [*STITCHWORK, *RIVALS],
    "2d 1e6": [*STITCHWORK, *RIVALS],
    "2d 1e7": ["stitchwork, fixed"],
    "8d 1e4": ["stitchwork", "stitchwork, fixed", *RIVALS],
    "8d 1e5": ["stitchwork", "stitchwork, fixed", *RIVALS],
    "8d 316228": ["stitchwork", "stitchwork, fixed", *RIVALS],
    "britain all": ["stitchwork", "stitchwork, fixed", "scipy 50", "XGBoost", "LightGBM", "KNN"],
    "rbf25 100": ["stitchwork", "stitchwork, fixed", "scipy 50", "KNN", "ferreus_rbf"],
}
QUICK = ["2d 1e4", "2d 1e5"]


def clocks():
    return np.array([time.process_time(), time.perf_counter()])


def least(function, runs=3):
    """The least CPU and wall seconds of some runs: what noise adds, it never takes away."""
    taken = []
    for _ in range(runs):
        started = clocks()
        function()
        taken.append(clocks() - started)
    return np.min(taken, axis=0).tolist()


def peak():
    """Peak memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Work:
    """Counts the LAPACK calls and exponentials of what runs inside, to time them again alone."""

    NAMES = ("eigh", "solve", "qr", "inv", "svd")

    def __enter__(self):
        self.calls, self.exps = Counter(), 0
        self.originals = {name: getattr(np.linalg, name) for name in self.NAMES} | {"exp": np.exp}
        for name in self.NAMES:
            setattr(np.linalg, name, partial(self.counted, name))
        np.exp = self.counted_exp
        return self

    def counted(self, name, *args, **kwargs):
        self.calls[name, *(np.shape(a) for a in args if np.ndim(a) > 1)] += 1
        return self.originals[name](*args, **kwargs)

    def counted_exp(self, x, *args, **kwargs):
        self.exps += np.size(x)
        return self.originals["exp"](x, *args, **kwargs)

    def __exit__(self, *_):
        for name in self.NAMES:
            setattr(np.linalg, name, self.originals[name])
        np.exp = self.originals["exp"]

    def floor(self):
        """CPU seconds of all that, alone: each kind of call is timed a few times and counted."""
        rng, total = np.random.default_rng(0), 0.0
        with single_threaded_blas():
            for (name, *shapes), count in self.calls.items():
                arrays = [rng.normal(size=shape) for shape in shapes]
                if name in ("eigh", "solve", "inv"):
                    arrays[0] = arrays[0] @ arrays[0].swapaxes(-1, -2)
                keywords = {"full_matrices": False} if name == "svd" else {}
                total += count * least(lambda: self.originals[name](*arrays, **keywords), 5)[0]
            x = -rng.uniform(size=(12, 100, 100))
            total += self.exps / x.size * least(lambda: np.exp(x), 5)[0]
        return total


def ask_from_c(model, Q):
    """Seconds to open the file of a model, and µs per query, from C: see `asked.c`. Nothing without a compiler."""
    if shutil.which("cc") is None or not stitchwork.native.available():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        program, path, queries = (os.path.join(folder, name) for name in ("asked", "m.stitch", "queries"))
        source, include = Path(__file__).parent / "asked.c", Path(stitchwork.native.include_dir())
        flags = ["-std=gnu99", "-O2", f"-I{include}", f"-Wl,-rpath,{include}"]
        subprocess.run(["cc", *flags, source, stitchwork.native.library(), "-o", program], check=True)
        model.save(path)
        Q.tofile(queries)
        done = subprocess.run([program, path, queries, str(len(Q))], capture_output=True, text=True, check=True)
    names = ("c_open_s", "c_single_us", "c_value_us", "c_gradient_us", "c_hessian_us")
    return dict(zip(names, map(float, done.stdout.split()), strict=True))


def measure_stitchwork(case, name):
    """All figures of one of our fits."""
    X, y, Q, truth = data_of(case)
    StitchedRegressor(**STITCHWORK[name]).fit(X[:500], y[:500]).gradient(Q[:100])  # imports and caches
    before = peak()
    started = clocks()
    model = StitchedRegressor(**STITCHWORK[name]).fit(X, y)
    fit = clocks() - started
    result = {"fit_cpu": fit[0], "fit_wall": fit[1], "fit_gb": peak() - before, "regions": model.n_regions_}
    before, started = peak(), clocks()
    model.predict(Q[:1])  # makes the handle of the compiled library
    result["first_cpu"] = clocks()[0] - started[0]
    error = model.predict(Q) - truth
    result |= {"rmse": float(np.sqrt(np.mean(error**2))), "predict_gb": peak() - before}
    predict = least(lambda: model.predict(Q))
    result["query_us"] = 1e6 * predict[0] / len(Q)
    result["gradient_ratio"] = least(lambda: model.gradient(Q), 2)[0] / predict[0]
    if Q.shape[1] <= 3:
        some = Q[:QUERIES]
        result["hessian_ratio"] = least(lambda: model.hessian(some), 2)[0] / least(lambda: model.predict(some), 2)[0]
    result |= ask_from_c(model, Q[:QUERIES])
    rows = [q[None] for q in Q[:: len(Q) // 500]]
    result["single_us"] = 1e6 * least(lambda: [model.predict_with_gradient(row) for row in rows])[1] / len(rows)
    if fit[0] > _LONG:  # not once more
        return result
    if os.cpu_count() > 1:
        model.n_jobs = 2
        result["threads_predict"] = predict[1] / least(lambda: model.predict(Q))[1]
        two = StitchedRegressor(**STITCHWORK[name], n_jobs=2)
        result["threads_fit"] = result["fit_wall"] / least(lambda: two.fit(X, y), 1)[1]
    with Work() as work:
        StitchedRegressor(**STITCHWORK[name]).fit(X, y)
    result["floor_cpu"] = work.floor()
    result["over_floor"] = result["fit_cpu"] / result["floor_cpu"]
    return result


def measure_rival(case, name):
    """The figures of a rival."""
    X, y, Q, truth = data_of(case)
    few = FEW_QUERIES.get(name, QUERIES)
    rows = np.random.default_rng(0).permutation(len(Q))[:few]
    RIVALS[name](X[:1000], y[:1000])(Q[:10])
    before, started = peak(), clocks()
    predict = RIVALS[name](X, y)
    fit = clocks() - started
    error = predict(Q[rows]) - truth[rows]
    taken = least(lambda: predict(Q[rows]), 1 if few < QUERIES else 2)
    return {
        "fit_cpu": fit[0],
        "fit_wall": fit[1],
        "fit_gb": peak() - before,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "query_us": 1e6 * taken[0] / len(rows),
    }


def run(case, name, timeout=1500):
    """One measurement in a process of its own."""
    n = {"britain": 487_000, "rbf25": 52_850}.get(case.split()[0]) or float(case.split()[1])
    if n > MOST.get(name, np.inf) or (name == "ferreus_rbf" and case.startswith("8d")):
        return None
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed", "--one", case, name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {timeout} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1][:120]}
    return json.loads(done.stdout.splitlines()[-1])


def show(case, name, result):
    """One line."""
    if "failed" in result:
        print(f"{case:10} {name:20} failed: {result['failed']}", flush=True)
        return
    line = f"{case:10} {name:20} fit {result['fit_cpu']:8.2f} CPU s {result['fit_gb']:5.2f} GB  query {result['query_us']:8.2f} µs"
    line += f"  RMSE {result['rmse']:.3g}"
    extras = {
        "over_floor": "floor × {:.2f}",
        "gradient_ratio": "gradient × {:.2f}",
        "hessian_ratio": "Hessian × {:.2f}",
        "first_cpu": "first {:.2f} CPU s",
        "single_us": "single {:.1f} µs",
        "c_single_us": "from C: single {:.2f} µs",
        "c_value_us": "value {:.2f}",
        "c_gradient_us": "with gradient {:.2f}",
        "c_hessian_us": "and Hessian {:.2f}",
        "c_open_s": "open {:.2f} s",
        "threads_fit": "2 threads: fit {:.2f} ×",
        "threads_predict": "predict {:.2f} ×",
    }
    print(line + "".join("  " + text.format(result[key]) for key, text in extras.items() if key in result), flush=True)


def profile():
    """Stages of a default fit, and how cost grows; the latter by name."""
    from .accuracy import Stages

    for case in ("2d 1e5", "8d 1e4"):
        X, y, Q, _ = data_of(case)
        with Stages() as stages:
            started = time.process_time()
            model = StitchedRegressor().fit(X, y)
            total = time.process_time() - started
        print(f"{case}: fit {total:.1f} CPU s: " + ", ".join(f"{k} {v:.1f}" for k, v in stages.seconds.items() if v > 0.005))
        print(f"{case}: query {1e6 * least(lambda: model.predict(Q))[0] / len(Q):.2f} µs")
    rng = np.random.default_rng(0)
    found = {}
    print("fixed hyperparameters, 20,000 points; CPU ms per thousand points, µs per query")
    for label, d, h, t in (
        *((f"d = {d}", d, 100, 1) for d in (1, 2, 3, 5, 8, 12, 20)),
        *((f"h = {h}", 2, h, 1) for h in (25, 50, 100, 200, 400)),
        *((f"{t} outputs", 2, 100, t) for t in (1, 10, 100)),
    ):
        X, Q = rng.uniform(size=(20_000, d)), rng.uniform(size=(20_000, d))
        y = np.stack([np.sin(3 * X[:, 0] + k) for k in range(t)], axis=1)
        model = StitchedRegressor(selection=None, region_size=h, degree=1 if d > 3 else 2)
        fit = least(lambda: model.fit(X, y), 2)[0]
        found[label] = {"fit": 50 * fit, "query": 1e6 * least(lambda: model.predict(Q), 2)[0] / len(Q)}
        print(f"{label:12} fit {found[label]['fit']:8.2f}  query {found[label]['query']:8.2f}", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"from {', '.join(map(repr, CASES))}, 'quick', 'profile'")
    parser.add_argument("--json")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results.json as they come")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "METHOD"))
    arguments = parser.parse_args()
    if arguments.one:
        case, name = arguments.one
        with single_threaded_blas():
            print(json.dumps((measure_stitchwork if name in STITCHWORK else measure_rival)(case, name)))
        return
    cases = arguments.cases or [*CASES, "profile"]
    cases = [case for group in cases for case in (QUICK if group == "quick" else [group])]
    results = {}
    for case in cases:
        if case == "profile":
            found = profile()
            if arguments.record:
                record("speed, profile", "python -m benchmarks.speed profile", found)
            continue
        for name in CASES[case]:
            if arguments.no_rivals and name not in STITCHWORK:
                continue
            result = run(case, name)
            if result is not None:
                show(case, name, result)
                results[f"{case}, {name}"] = result
                if arguments.record:
                    record("speed", "python -m benchmarks.speed", {f"{case}, {name}": result})
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
