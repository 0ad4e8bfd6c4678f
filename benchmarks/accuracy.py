"""How accurate is the default, and what does choosing cost? ``python -m benchmarks.accuracy [data …] [--json FILE] [--no-peers]``

Fields: published masks where there are any (heaton), else the first 80 % of ``numpy.random.default_rng(0).permutation(n)`` to train
(britain: 90 %). Tables: the folds that came with them, all ten below 1,000 rows, the first five below 5,000; their ratio to the
best peer, the geometric mean of the ratios, and the worst. Peers are tuned on a validation part of the same training data. CPU
seconds on all threads.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.peers import LARGEST_PROCESS, PEERS, gaussian_process, rmse
from benchmarks.results import record
from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset, make_2d
from stitchwork.fitting import recipe

BARS = {
    "2d": "RMSE ≤ 1.3e-5",
    "2d, noisy": "RMSE ≤ 0.53, gradient ≤ 1.28",
    "combustion": "RMSE ≤ 4e-7",
    "heaton": "RMSE ≤ 1.41, MAE ≤ 1.02",
    "britain": "RMSE ≤ 9.2",
    "rio": "RMSE ≤ 10",
    "baja": "RMSE ≤ 138",
    "ozone": "RMSE ≤ 0.531",
}
TABLES = (
    "servo",
    "concreteslump",
    "solar",
    "autos",
    "airfoil",
    "pendulum",
    "wine",
    "skillcraft",
    "sml",
    "tamielectric",
    "pumadyn32nm",
    "keggdirected",
    "parkinsons",
    "kin40k",
    "pol",
    "protein",
)
JUDGED = TABLES[:12]  # in the geometric mean
FOLDS = {1000: 10, 5000: 5}  # splits of tables with fewer rows


def split(name):
    """Training and test data; the noisy 2-D test is judged by the truth."""
    if name.startswith("2d"):
        data = make_2d()
        y = data.target
        if name.endswith("noisy"):
            y = y + (0.05 * np.abs(y) + 0.01) * np.random.default_rng(1).normal(size=len(y))
        return data.data, y, data.test_data, data.test_target
    data = load_dataset(name)
    X, y = data.data, data.target
    if name == "heaton":
        return X[~data.test_mask], y[~data.test_mask], X[data.test_mask], y[data.test_mask]
    order = np.random.default_rng(0).permutation(len(X))
    train, test = np.split(order, [int((0.9 if name == "britain" else 0.8) * len(X))])
    return X[train], y[train], X[test], y[test]


class Stages:
    """CPU seconds of the stages of a fit, by wrapping the functions that they are."""

    STAGES = (
        (recipe, "make_plan", "metric"),
        (recipe, "open_boxes", "cover"),
        (recipe, "choose", "select"),
        (recipe, "fit_box", "factor"),
        (recipe, "make_coarse", "background"),
    )

    def __enter__(self):
        self.seconds = dict.fromkeys((name for _, _, name in self.STAGES), 0.0)
        self.originals = [(module, attribute, getattr(module, attribute)) for module, attribute, _ in self.STAGES]
        for (module, attribute, original), (_, _, stage) in zip(self.originals, self.STAGES, strict=True):
            setattr(module, attribute, self.timed(original, stage))
        return self

    def timed(self, function, stage):
        def wrapper(*args, **kwargs):
            started = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[stage] += time.process_time() - started

        return wrapper

    def __exit__(self, *_):
        for module, attribute, original in self.originals:
            setattr(module, attribute, original)


def run(name, peers):
    """All figures of one data set."""
    X, y, T, truth = split(name)
    with Stages() as stages:
        started = time.process_time()
        model = StitchedRegressor(n_jobs=2).fit(X, y)
        fitted = time.process_time()
    prediction = model.predict(T)
    done = time.process_time()
    result = {
        "n": len(X),
        "d": X.shape[1],
        "bar": BARS[name],
        "default": {"rmse": rmse(prediction - truth), "mae": float(np.abs(prediction - truth).mean())},
        "loo_error": model.loo_error_,
        "fit_cpu": fitted - started,
        "predict_cpu": done - fitted,
        "stages_cpu": stages.seconds,
        "summary": str(model.summary()),
    }
    # The same regions with the hyperparameters given: what a fit costs when nothing is chosen.
    started = time.process_time()
    StitchedRegressor(selection=None, metric=model.metric_, n_jobs=2, kernel="gaussian", degree=1, bandwidth=1.0, ridge=1e-6).fit(
        X, y
    )
    result["fixed_fit_cpu"] = time.process_time() - started
    if name == "2d, noisy":
        result |= noisy_extras(model, X, y, T, truth)
    if name == "2d":
        result["default"]["gradient_rmse"] = rmse(model.gradient(T) - make_2d(1).gradient(T))
    for peer, fit in PEERS.items() if peers else ():
        started = time.process_time()
        prediction = fit(X, y)(T)
        result[peer] = {
            "rmse": rmse(prediction - truth),
            "mae": float(np.abs(prediction - truth).mean()),
            "cpu": time.process_time() - started,
        }
    return result


def run_table(name, peers, known):
    """Mean errors over the folds of a table, of the default and of peers; ``known`` are those of peers from an earlier run."""
    data = load_dataset(name)
    X, y, rows = data.data, data.target, {}
    for fold in range(next((folds for rows, folds in FOLDS.items() if len(X) < rows), 1)):
        test = data.test_mask[:, fold]
        train = X[~test], y[~test]
        fits = {"default": lambda A, b: StitchedRegressor(n_jobs=2).fit(A, b).predict} | (dict(PEERS) if peers else {})
        if peers and len(train[0]) <= LARGEST_PROCESS:
            fits["gaussian process"] = gaussian_process
        for one, fit in fits.items():
            key = f"{name}/{fold}/{one}"
            if one == "default" or key not in known:
                started = time.process_time()
                known[key] = {"rmse": rmse(fit(*train)(X[test]) - y[test]), "cpu": time.process_time() - started}
            rows.setdefault(one, []).append(known[key])
    means = {one: {k: float(np.mean([row[k] for row in found])) for k in ("rmse", "cpu")} for one, found in rows.items()}
    best = min((found["rmse"] for one, found in means.items() if one != "default"), default=np.nan)
    return {"n": len(X), "d": X.shape[1], **means, "ratio": means["default"]["rmse"] / best}


def noisy_extras(model, X, y, T, truth):
    """The gradient's error, and the best fixed hyperparameters that the truth itself would pick."""
    best = min(
        (
            rmse(
                StitchedRegressor(selection=None, kernel=k, degree=g, bandwidth=b, ridge=r, n_jobs=2).fit(X, y).predict(T) - truth
            ),
            f"{k}, degree {g}, bandwidth {b}, ridge {r:g}",
        )
        for k, g, b, r in product(("gaussian", "matern52"), (1, 2), (1.0, 2.0, 4.0, 8.0), (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7))
    )
    gradient = rmse(model.gradient(T) - make_2d(1).gradient(T))
    return {"gradient_rmse": gradient, "best_fixed": {"rmse": best[0], "settings": best[1]}}


def print_field(name, result):
    """One field with the seconds of its stages."""
    peers = "  ".join(f"{peer} {result[peer]['rmse']:.4g}" for peer in PEERS if peer in result)
    extras = "".join(f"  {k} {result[k]}" for k in ("gradient_rmse", "best_fixed") if k in result)
    own = f"default {result['default']['rmse']:.4g} (MAE {result['default']['mae']:.4g})  [{result['bar']}]"
    print(f"{name} ({result['n']:,} × {result['d']}): {own}  {peers}{extras}")
    stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in result["stages_cpu"].items())
    fixed = f"fixed hyperparameters {result['fixed_fit_cpu']:.1f}; predict {result['predict_cpu']:.1f}"
    print(f"    fit {result['fit_cpu']:.1f} CPU s ({stages}); {fixed}", flush=True)


def record_errors(results):
    """Write the errors of fields and tables, and of the peers that were run, to the results file."""
    for kind, names in {"accuracy": BARS, "tables": TABLES}.items():
        own, others = {}, {}
        for name in (name for name in names if name in results):
            found = {one: part["rmse"] for one, part in results[name].items() if isinstance(part, dict) and "rmse" in part}
            error = found.pop("default")
            found.pop("best_fixed", None)
            own[name] = error if kind == "accuracy" else {"n": results[name]["n"], "d": results[name]["d"], "rmse": error}
            if found:
                others[name] = found
        record(kind, "python -m benchmarks.accuracy", own)
        if others:
            record(f"{kind}, peers", "python -m benchmarks.accuracy", others)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=[], help=f"from {', '.join(map(repr, (*BARS, *TABLES)))}")
    parser.add_argument("--json", default="accuracy.json")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--record", action="store_true", help="write the errors to docs/results.json")
    parser.add_argument("--known", help="a file that keeps the errors of peers on tables for the next run")
    arguments = parser.parse_args()
    kept = Path(arguments.known) if arguments.known else None
    known = json.loads(kept.read_text()) if kept and kept.exists() else {}
    results = {}
    for name in arguments.data or (*BARS, *TABLES):
        if name in BARS:
            results[name] = run(name, not arguments.no_peers)
            print_field(name, results[name])
        else:
            results[name] = result = run_table(name, not arguments.no_peers, known)
            peers = "  ".join(f"{one} {found['rmse']:.4g}" for one, found in result.items() if isinstance(found, dict))
            seconds = result["default"]["cpu"]
            print(
                f"{name} ({result['n']:,} × {result['d']}): ratio {result['ratio']:.3f}  {peers}  ({seconds:.1f} CPU s)", flush=True
            )
            if kept:
                kept.write_text(json.dumps(known, indent=1))
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)
    if arguments.record:
        record_errors(results)
    ratios = {name: results[name]["ratio"] for name in JUDGED if name in results}
    if ratios and not arguments.no_peers:
        mean = np.exp(np.mean(np.log(list(ratios.values()))))
        print(
            f"geometric mean of {len(ratios)} tables {mean:.3f}, worst {max(ratios.values()):.3f} ({max(ratios, key=ratios.get)})"
        )


if __name__ == "__main__":
    main()
