"""A few figures of every release, in one file: ``python -m benchmarks.history [--record] [--plot]``

Errors and times of small fits that never change, so that a release can be compared with those before it. What is measured is the
package that is imported: ``PYTHONPATH=older/src python benchmarks/history.py --record`` adds an older one. Times are CPU seconds in
units of a fixed task of LAPACK in the same process (a hundred eigenvalue problems of 100 × 100), since machines differ; ratios are
worth a few per cent at best. ``--record`` writes `docs/history.json`, ``--plot`` draws `docs/history.png` of it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import stitchwork
from stitchwork import StitchedRegressor

DOCS = Path(__file__).parents[1] / "docs"
HISTORY, PICTURE = DOCS / "history.json", DOCS / "history.png"
SEED = 12


def seconds(function: Callable[[], Any], runs: int = 3) -> float:
    """The least CPU seconds of some runs."""
    taken = []
    for _ in range(runs):
        started = time.process_time()
        function()
        taken.append(time.process_time() - started)
    return min(taken)


def lapack() -> float:
    """CPU seconds of the task that times are told in."""
    A = np.random.default_rng(0).normal(size=(100, 100, 100))
    A += A.transpose(0, 2, 1)
    return seconds(lambda: np.linalg.eigh(A), 5)


def waves(X: Any) -> Any:
    """Smooth in any number of features."""
    return np.sin(3 * X[:, 0] + X[:, 1] ** 2) + np.cos(2 * X.sum(axis=1))


def step(X: Any) -> Any:
    """A steep front."""
    return np.tanh(20 * (X[:, 0] - 0.3 * np.sin(3 * X[:, 1])))


# Name: function, features, points, deviation of the noise.
CASES: dict[str, tuple[Callable[[Any], Any], int, int, float]] = {
    "waves, 2-D, 5,000 points": (waves, 2, 5000, 0.0),
    "the same with noise": (waves, 2, 5000, 0.1),
    "a front, 2-D, 2,000 points": (step, 2, 2000, 0.0),
    "waves, 6-D, 1,000 points": (waves, 6, 1000, 0.0),
    "waves, 3-D, 200 points": (waves, 3, 200, 0.0),
}


def measure() -> dict[str, dict[str, float]]:
    """Errors over the deviation of the responses, and times of fit and query in units of the task of LAPACK."""
    unit, found = lapack(), {}
    for name, (function, d, n, noise) in CASES.items():
        rng = np.random.default_rng(SEED)
        X, Q = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, (4000, d))
        y, truth = function(X) + noise * rng.normal(size=n), function(Q)
        model = StitchedRegressor()
        fit = seconds(lambda model=model, X=X, y=y: model.fit(X, y), 1)
        model.predict(Q[:2])
        query = seconds(lambda model=model, Q=Q: model.predict(Q))
        error = float(np.sqrt(np.mean((model.predict(Q) - truth) ** 2)) / truth.std())
        found[name] = {"error": error, "fit": fit / unit, "queries": query / unit}
        print(f"{name:28} error {error:.2e}  fit {fit / unit:8.2f}  4,000 queries {query / unit:8.4f}", flush=True)
    return found


def record(figures: dict[str, dict[str, float]]) -> None:
    """Put the figures of this version into the file, in the place of those that it had."""
    kept = json.loads(HISTORY.read_text()) if HISTORY.exists() else []
    kept = [entry for entry in kept if entry["version"] != stitchwork.__version__]
    kept.append({"version": stitchwork.__version__, "measured": date.today().isoformat(), "figures": figures})
    kept.sort(key=lambda entry: [int(part) for part in entry["version"].split(".")[:3]])
    HISTORY.write_text(json.dumps(kept, indent=1) + "\n")


def plot() -> None:
    """Draw each figure by release."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    history = json.loads(HISTORY.read_text())
    versions = [entry["version"].removesuffix(".dev0") for entry in history]
    titles = {"error": "error / deviation", "fit": "fit, in units of LAPACK", "queries": "4,000 queries, in units of LAPACK"}
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for axis, (key, title) in zip(axes, titles.items(), strict=True):
        for case in CASES:
            values = [entry["figures"].get(case, {}).get(key, np.nan) for entry in history]
            axis.semilogy(range(len(versions)), values, "o-", label=case)
        axis.set_xticks(range(len(versions)), versions)
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    """Measure, and record or draw if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the figures to docs/history.json")
    parser.add_argument("--plot", action="store_true", help="draw docs/history.png of what is recorded, and measure nothing")
    arguments = parser.parse_args()
    if not arguments.plot:
        with threadpool_limits(1):
            figures = measure()
        if arguments.record:
            record(figures)
    else:
        plot()


if __name__ == "__main__":
    main()
