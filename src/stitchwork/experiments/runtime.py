"""Seconds to fit and to predict against n on the 2-D test (section 6): is building linear and a query sublinear?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._regressor import StitchedRegressor
from ..datasets import make_2d
from ._draw import curves
from ._methods import DEFAULT, PAPER, measure
from ._section import Figure, Section, Table, number
from ._store import Arrays, Numbers, Part, Results
from .competitors import KNNSVM, GlobalKRR, LocalKRR, LocalSVM, NadarayaWatson, NeighborRBF, Siren
from .theory import slope

NAME, TITLE = "runtime", "Runtime: fit and predict against the number of points"

_QUERIES = 2000
_ALL_SIZES = (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
_QUICK_SIZES = (500, 1000, 2000)


def _xgboost() -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=500, max_depth=6, learning_rate=0.1, n_jobs=1)


def _network() -> Any:
    return make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(64, 64), activation="logistic", max_iter=20, n_iter_no_change=20)
    )


# Every method at one setting, without its search, on one thread; and the largest n that takes less than some minutes.
MODELS: dict[str, tuple[Callable[[], Any], int]] = {
    DEFAULT: (StitchedRegressor, 64_000),
    PAPER: (lambda: StitchedRegressor.paper(bandwidth=1.0, ridge=1e-5, selection=None), 64_000),
    "PU-KRR": (lambda: StitchedRegressor.paper(local_model="krr", bandwidth=1.0, ridge=1e-5, selection=None), 64_000),
    "KNN SVM": (lambda: KNNSVM(1.0, 1e-2), 64_000),
    "Local SVM": (LocalSVM, 16_000),
    "Local KRR": (lambda: LocalKRR(1.0, 1e-5), 64_000),
    "Global KRR": (lambda: GlobalKRR(0.25, 1e-5), 16_000),
    "XGBoost": (_xgboost, 64_000),
    "Random forest": (lambda: RandomForestRegressor(300, n_jobs=1), 32_000),
    "Neural network": (_network, 64_000),
    "SIREN": (lambda: Siren(width=64, epochs=20), 64_000),
    "Nadaraya-Watson": (NadarayaWatson, 64_000),
    "scipy RBF": (NeighborRBF, 64_000),
}


def _run(name: str, n: int) -> tuple[Numbers, Arrays]:
    from threadpoolctl import threadpool_limits

    data = make_2d(n)
    Q = np.random.default_rng(1).uniform(-6.0, 30.0, (_QUERIES, 2))
    with threadpool_limits(1):
        numbers, _ = measure(MODELS[name][0](), data.data, data.target, Q, data.function(Q))
    return numbers, {}


def parts(quick: bool) -> list[Part]:
    """One part a method and size."""
    sizes = _QUICK_SIZES if quick else _ALL_SIZES
    return [Part(f"{name}, n = {n}", partial(_run, name, n)) for name, (_, most) in MODELS.items() for n in sizes if n <= most]


def section(results: Results) -> Section:
    """Curves and slopes of CPU seconds."""
    fits: dict[str, Any] = {}
    queries: dict[str, Any] = {}
    rows = []
    for name in MODELS:
        known = [n for n in sorted({*_ALL_SIZES, *_QUICK_SIZES}) if f"{name}, n = {n}" in results]
        if len(known) < 2:
            continue
        fit = [results[f"{name}, n = {n}"]["fit_cpu_seconds"] for n in known]
        predict = [1e6 * results[f"{name}, n = {n}"]["predict_cpu_seconds"] / _QUERIES for n in known]
        fits[name], queries[name] = (known, fit), (known, predict)
        last = slice(-min(4, len(known)), None)  # the larger sizes, where overheads no longer show
        cells = [f"{slope(known[last], np.maximum(seconds[last], 1e-9)):.2f}" for seconds in (fit, predict)]
        rows.append([name, f"{known[-1]:,}", number(fit[-1]), cells[0], number(predict[-1]), cells[1]])
    headings = ["method", "largest n", "fit, CPU s", "exponent of n", "query, CPU µs", "exponent of n"]
    return Section(
        NAME,
        TITLE,
        [
            "Every method at one setting, without the search for it (the default searches: that is part of it), on one thread,"
            f" on the 2-D test; {_QUERIES:,} queries at once. Methods whose cost grows out of hand stop at smaller n. The paper"
            " claims that building is about linear in n and that a query is sublinear. Exponents are fitted to the four largest"
            " sizes.",
        ],
        [
            Table("CPU seconds at the largest n, and exponents of n.", headings, rows),
            Figure("runtime", curves({"fit, CPU s": fits, "query, CPU µs": queries}, "n", columns=2), "Cost against n, log-log."),
            _verdict(fits, queries),
        ],
    )


def _verdict(fits: dict[str, Any], queries: dict[str, Any]) -> str:
    if PAPER not in fits:
        return ""
    build, query = (slope(*(np.asarray(v)[-4:] for v in lines[PAPER])) for lines in (fits, queries))
    outcome = "as claimed" if build < 1.15 and query < 0.9 else "not as claimed"
    return (
        f"For PU-KRR-POLY the measured exponents are {build:.2f} to build and {query:.2f} a query, {outcome}: about linear, and"
        f" sublinear. That a query grows at all is the price of few queries: {_QUERIES:,} of them touch more regions the more"
        " there are, and each region has its overhead."
    )
