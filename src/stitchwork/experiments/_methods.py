"""The methods of every experiment by the names of the paper's tables, each ready to tune itself on the data it is given.

Tuning is the paper's: a grid, judged on a held-out part of the training data, refitted on all of it. Searches that would take
hours use a part of the training rows, and networks successive halving over their epochs instead of training every candidate to the
end.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  (makes HalvingGridSearchCV importable)
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, ShuffleSplit
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._regressor import StitchedRegressor
from .._types import Array
from ..fitting.defaults import PAPER_BANDWIDTHS, PAPER_RIDGES
from ..views.errors import errors
from .competitors import KNNSVM, GlobalKRR, LocalKRR, LocalSVM, NadarayaWatson, NeighborRBF, Siren

_TREE_ROWS, _KRR_ROWS, _NETWORK_ROWS = 10_000, 4000, 3000  # that a search is fitted on, at most
_QUICK_ROWS = 1000
_MOST_HELD = 1000  # rows that candidates are judged on
_BANDWIDTHS_AND_RIDGES = {"bandwidth": list(PAPER_BANDWIDTHS), "ridge": list(PAPER_RIDGES)}

DEFAULT, PAPER = "stitchwork", "PU-KRR-POLY"


@dataclass(frozen=True)
class Task:
    """What a method is to be tuned for."""

    n: int
    d: int
    quick: bool = False
    n_jobs: int = 2


def held_out(task: Task, most_rows: int | None = None, most_held: int = _MOST_HELD) -> ShuffleSplit:
    """One split of the training rows: candidates are fitted on the first part and judged on the second."""
    if task.quick:
        most_rows, most_held = min(most_rows or _QUICK_ROWS, _QUICK_ROWS), most_held // 4
    held = max(1, min(most_held, task.n // 5))
    rows = min(task.n - held, most_rows or task.n)
    return ShuffleSplit(1, test_size=held, train_size=rows, random_state=1)


def grid_search(model: Any, grid: Any, task: Task, most_rows: int | None = None, most_held: int = _MOST_HELD) -> GridSearchCV:
    """Every candidate of ``grid`` on one split, the best of them on everything; a candidate that cannot be fitted drops out."""
    cv = held_out(task, most_rows, most_held)
    return GridSearchCV(model, grid, scoring="neg_root_mean_squared_error", cv=cv, error_score=np.nan)


def halving_search(model: Any, grid: Any, task: Task, resource: str, epochs: int) -> HalvingGridSearchCV:
    """Networks: all candidates for few epochs, a quarter of them for four times as many, and so on up to ``epochs``."""
    return HalvingGridSearchCV(
        model,
        grid,
        resource=resource,
        max_resources=epochs,
        min_resources="exhaust",  # so that the last round, and the refit, take all epochs
        factor=4,
        scoring="neg_root_mean_squared_error",
        cv=held_out(task, _NETWORK_ROWS),
        random_state=0,
        error_score=np.nan,
    )


def _stitched(local_model: str) -> Callable[[Task], Any]:
    return lambda task: StitchedRegressor.paper(local_model=local_model, n_jobs=task.n_jobs)


def _xgboost(task: Task) -> Any:
    from xgboost import XGBRegressor

    model = XGBRegressor(tree_method="hist", subsample=0.8, n_jobs=task.n_jobs, random_state=0)
    grid = {"n_estimators": [300, 1000, 3000], "max_depth": [4, 6, 9], "learning_rate": [0.03, 0.1]}
    if task.quick:
        grid = {"n_estimators": [100, 300], "max_depth": [4, 6], "learning_rate": [0.1]}
    scaled = TransformedTargetRegressor(model, transformer=StandardScaler())  # so that single precision does not limit it
    return grid_search(scaled, _prefixed(grid, "regressor__"), task, _TREE_ROWS)


def _forest(task: Task) -> Any:
    model = RandomForestRegressor(60 if task.quick else 300, n_jobs=task.n_jobs, random_state=0)
    return grid_search(model, {"max_features": [1 / 3, 1.0], "min_samples_leaf": [1, 3]}, task, _TREE_ROWS)


def _epochs(task: Task) -> int:
    """Passes over the training data: 100, and fewer where there are more than 20,000 rows."""
    return 40 if task.quick else max(20, min(100, 2_000_000 // task.n))


def _network(task: Task) -> Any:
    epochs = _epochs(task)
    model = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), MLPRegressor(activation="logistic", random_state=0, n_iter_no_change=epochs)),
        transformer=StandardScaler(),
    )
    depths, widths = ((2, 3), (16, 64)) if task.quick else ((2, 3, 4, 5), (8, 16, 32, 64, 128, 256))
    shapes = [(width,) * layers for layers in depths for width in widths]
    grid = _prefixed({"hidden_layer_sizes": shapes, "learning_rate_init": [1e-3, 1e-2]}, "regressor__mlpregressor__")
    return halving_search(model, grid, task, "regressor__mlpregressor__max_iter", epochs)


def _siren(task: Task) -> Any:
    grid = {"hidden_layers": [2, 3, 4, 5], "width": [64, 256], "omega": [10.0, 30.0]}
    if task.quick:
        grid = {"hidden_layers": [2], "width": [32], "omega": [3.0, 30.0]}
    return halving_search(Siren(), grid, task, "epochs", _epochs(task))


def _rbf(task: Task) -> Any:
    # Degree 2 as named in the tables, and the least that a kernel allows, for neighbours that do not determine a quadratic well.
    splines = {"kernel": ["thin_plate_spline", "cubic"], "smoothing": [0.0, 1e-6, 1e-3, 1e-1], "degree": [1, 2]}
    quintic = {"kernel": ["quintic"], "smoothing": [0.0, 1e-6, 1e-3]}
    gaussians = {
        "kernel": ["gaussian"],
        "scale": [0.25, 0.5, 1.0, 2.0, 4.0],
        "smoothing": [1e-12, 1e-9, 1e-6, 1e-3],
        "degree": [0, 2],
    }
    return grid_search(NeighborRBF(), [splines, quintic, gaussians], task)


def _nadaraya_watson(task: Task) -> Any:
    return grid_search(NadarayaWatson(), {"n_neighbors": [2, 5, 10, 20, 50], "power": [0.3, 0.6, 0.9]}, task)


METHODS: dict[str, Callable[[Task], Any]] = {
    DEFAULT: lambda task: StitchedRegressor(n_jobs=task.n_jobs),
    PAPER: _stitched("krr-poly"),
    "PU-KRR": _stitched("krr"),
    "PU-POLY": _stitched("poly"),
    "KNN SVM": lambda task: grid_search(KNNSVM(n_jobs=task.n_jobs), _BANDWIDTHS_AND_RIDGES, task, most_held=300),
    "Local SVM": lambda task: LocalSVM(n_jobs=task.n_jobs),
    "Local KRR": lambda task: grid_search(LocalKRR(n_jobs=task.n_jobs), _BANDWIDTHS_AND_RIDGES, task),
    "Global KRR": lambda task: grid_search(GlobalKRR(), _BANDWIDTHS_AND_RIDGES, task, _KRR_ROWS),
    "XGBoost": _xgboost,
    "Random forest": _forest,
    "Neural network": _network,
    "SIREN": _siren,
    "Nadaraya-Watson": _nadaraya_watson,
    "scipy RBF": _rbf,
}

OURS = (DEFAULT, PAPER, "PU-KRR", "PU-POLY")
_FEWER_TRIALS = {"KNN SVM": 2, "Local SVM": 2, "XGBoost": 2, "Global KRR": 1, "Neural network": 1, "SIREN": 1}

ABOUT = {
    DEFAULT: "StitchedRegressor() as it comes",
    PAPER: "the paper's method and settings: StitchedRegressor.paper()",
    "PU-KRR": "the same without polynomials",
    "PU-POLY": "the same with the polynomial alone",
    "KNN SVM": "a support-vector regression on the 50 nearest points of each query (Hable 2013)",
    "Local SVM": "Voronoi cells, one cross-validated support-vector regression each (Steinwart and Thomann 2017)",
    "Local KRR": "kernel ridge models averaged over the d + 2 nearest centres (Han, Ye and Phillips 2022)",
    "Global KRR": "one kernel ridge regression on all points",
    "XGBoost": "boosted trees",
    "Random forest": "scikit-learn's, 300 trees",
    "Neural network": "sigmoid MLP, 2 to 5 layers of 8 to 256 units",
    "SIREN": "sine network, 2 to 5 layers of 64 or 256 units (Sitzmann et al. 2020)",
    "Nadaraya-Watson": "with Belkin's singular kernel, cut off",
    "scipy RBF": "RBFInterpolator(neighbors=100), degree 2 or less, not in the paper",
}


def trials(name: str, most: int) -> int:
    """How many samples or splits a method is run on: ``most``, and one or two where a run takes minutes."""
    return min(most, _FEWER_TRIALS.get(name, most))


def build(name: str, task: Task, standardize: bool = False) -> Any:
    """The method called ``name``; with ``standardize``, features get unit deviation first (the default sees to that itself)."""
    model = METHODS[name](task)
    return make_pipeline(StandardScaler(), model) if standardize and name != DEFAULT else model


def fit_quietly(model: Any, X: Array, y: Array, **told: Any) -> Any:
    """``model.fit(X, y)`` without the warnings that a search over unsuitable candidates is bound to raise."""
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, FitFailedWarning):
            warnings.simplefilter("ignore", kind)
        warnings.filterwarnings("ignore", "One or more of the test scores are non-finite")
        warnings.filterwarnings("ignore", "Scoring failed")
        return model.fit(X, y, **told)


def measure(model: Any, X: Array, y: Array, Q: Array, truth: Array, **told: Any) -> tuple[dict[str, Any], Array]:
    """Fit (with its tuning, and with what else `fit` is ``told``), predict, and report errors, seconds and what the search chose;
    and the prediction.
    """
    start, cpu = time.perf_counter(), time.process_time()
    fit_quietly(model, X, y, **told)
    fitted, fitted_cpu = time.perf_counter(), time.process_time()
    prediction = model.predict(Q)
    predicted, predicted_cpu = time.perf_counter(), time.process_time()
    return {
        **errors(prediction, truth)._asdict(),
        "n": len(X),
        "fit_seconds": fitted - start,
        "fit_cpu_seconds": fitted_cpu - cpu,
        "predict_seconds": predicted - fitted,
        "predict_cpu_seconds": predicted_cpu - fitted_cpu,
        "chosen": chosen(model),
    }, prediction


def listed(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What `measure` said of several trials as lists, and what the search of the first chose."""
    return {key: [run[key] for run in runs] for key in runs[0]} | {"chosen": runs[0]["chosen"]}


def chosen(model: Any) -> dict[str, Any]:
    """What a search chose, as JSON can hold it; empty where there was none."""
    model = _last(model)
    if hasattr(model, "best_params_"):
        return {key.split("__")[-1]: value for key, value in model.best_params_.items()}
    if isinstance(model, StitchedRegressor) and model.selection == "holdout":
        return {"bandwidth": float(model.bandwidths_[0]), "ridge": float(model.ridges_[0])}
    return {}


def with_chosen(model: Any) -> Any:
    """An unfitted copy with the parameters that the search of a fitted model chose, for further trials of the same task."""
    if hasattr(model, "best_estimator_"):
        return clone(model.best_estimator_)
    if hasattr(model, "steps"):
        return make_pipeline(*(clone(step) for _, step in model.steps[:-1]), with_chosen(model.steps[-1][1]))
    return clone(model)


def _last(model: Any) -> Any:
    return model.steps[-1][1] if hasattr(model, "steps") else model


def _prefixed(grid: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {prefix + key: value for key, value in grid.items()}
