"""Whole curves, lines, tracks and subjects held out: ``python -m benchmarks.groups [data …] [--record]``

Every fifth flamelet; a random tenth of the flight lines of `rio`, of the ship tracks of `baja` (a new one where two rows are 0.1
degrees apart) and of the passes of `jason3` (a new one where the satellite turns, or a minute is missing); a random fifth of the
subjects of `parkinsons`. The default without and with ``groups``: root mean squared error, what `loo_error_` promised, the share
inside of 90 % intervals, CPU seconds; beside scipy's splines on 100 neighbours, and five nearest neighbours.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from scipy.interpolate import RBFInterpolator
from sklearn.neighbors import KNeighborsRegressor

from benchmarks.results import record
from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset


def flamelets():
    """Points, responses, groups, and what is held out."""
    data = load_dataset("combustion")
    return data.data, data.target, data.flamelet, data.flamelet % 5 == 2


def rio():
    """Airborne lines and tie lines."""
    data = load_dataset("rio")
    return data.data, data.target, data.line, draw(data.line)


def baja():
    """Ship tracks."""
    data = load_dataset("baja")
    jump = np.linalg.norm(np.diff(data.data, axis=0), axis=1) > 0.1
    group = np.concatenate([[0], np.cumsum(jump)])
    return data.data, data.target, group, draw(group)


def jason3():
    """Passes of a satellite, in longitude and latitude."""
    data = load_dataset("wind")
    order = np.argsort(data.data[:, 2], kind="stable")
    X, y = data.data[order], data.target[order]
    turn = np.diff(np.sign(np.gradient(X[:, 1]))) != 0
    group = np.concatenate([[0], np.cumsum(turn | (np.diff(X[:, 2]) > 60.0))])
    return X[:, :2], y, group, draw(group)


def parkinsons():
    """Subjects, told apart by the one column with 42 values, which is no feature."""
    data = load_dataset("parkinsons")
    column = next(k for k in range(data.data.shape[1]) if len(np.unique(data.data[:, k])) == 42)
    return np.delete(data.data, column, axis=1), data.target, data.data[:, column], draw(data.data[:, column], 0.2)


def draw(group, share=0.1):
    """Rows of a random share of the groups."""
    all_ = np.unique(group)
    return np.isin(group, np.random.default_rng(1).permutation(all_)[: max(1, int(share * len(all_)))])


SETS = {function.__name__: function for function in (flamelets, rio, baja, jason3, parkinsons)}


def rmse(error):
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(error))))


def run(name):
    """Print the figures of one set, and return those of pages."""
    found = {}
    X, y, group, held = SETS[name]()
    T, truth = X[held], y[held]
    print(f"{name}: {(~held).sum():,} points in {len(np.unique(group[~held]))} groups, {held.sum():,} held out")
    for words, groups in (("default", None), ("with groups", group[~held])):
        started = time.process_time()
        model = StitchedRegressor().fit(X[~held], y[~held], groups=groups)
        seconds = time.process_time() - started
        ends = model.predict_interval(T, 0.9)
        inside = np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        error = rmse(model.predict(T) - truth)
        found[words.removeprefix("with ")] = [error, float(np.max(model.loo_error_)), float(inside)]
        print(
            f"  {words:<28} {error:<10.3g} promised {model.loo_error_:<10.3g} inside of 90 % {inside:<8.3f} {seconds:.1f} CPU s",
            flush=True,
        )
    places, first = np.unique(X[~held], axis=0, return_index=True)
    values = y[~held][first]
    for kernel in ("thin_plate_spline", "linear", "cubic") if X.shape[1] <= 3 else ():
        spline = RBFInterpolator(places, values, neighbors=100, kernel=kernel, degree=1)
        error = rmse(spline(T) - truth)
        found["others"] = min(error, found.get("others", np.inf))
        print(f"  {f'scipy {kernel}, 100':<28} {error:.3g}", flush=True)
    nearest = KNeighborsRegressor(5, weights="distance").fit(places, values)
    print(f"  {'five nearest neighbours':<28} {rmse(nearest.predict(T) - truth):.3g}", flush=True)
    return found


if __name__ == "__main__":
    keep = "--record" in sys.argv
    for chosen in [name for name in sys.argv[1:] if name != "--record"] or SETS:
        figures = run(chosen)
        if keep:
            record("groups", "python -m benchmarks.groups", {chosen: figures})
