"""Deviations and intervals on held-out data, beside what others publish or say.

    pip install '.[bench]' && python -m benchmarks.uncertainty [NAME …] [--known FILE] [--peers]

The satellite field is scored as Heaton et al. (2019) do: CRPS in Gaussian closed form, interval score and coverage of 95 %
intervals, those of `predict_interval` and those as if errors were Gaussian, truths being observations. Fields and tables: shares of
held-out observations inside of intervals of 50 and 90 %, CRPS; tables by their published folds, ten of small ones, beside NGBoost
and, up to 1,500 rows, a Gaussian process, whose CRPS ``--known`` keeps for the next run. ``--peers`` has GPBoost beside us on the
satellite field, on rio and on ozone. Rows are printed as they come; machines are noisy, so seconds are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import spearmanr

from benchmarks.accuracy import JUDGED
from benchmarks.peers import LARGEST_PROCESS, SURE_PEERS, fit_vecchia
from benchmarks.results import record
from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset, make_2d
from stitchwork.views.errors import crps

# Heaton et al. 2019, JABES 24, table 3: CRPS, INT95, CVG95.
PUBLISHED = {
    "SPDE": (0.83, 8.85, 0.97),
    "NNGP conjugate": (0.85, 7.57, 0.95),
    "LatticeKrig": (0.87, 7.55, 0.96),
    "periodic embedding": (0.91, 7.44, 0.93),
    "MRA": (0.94, 8.00, 0.92),
    "LAGP": (1.17, 10.81, 0.83),
}
PEER_FIELDS = ("rio", "ozone")  # beside the satellite field
FIELDS = ("ozone", "rio", "wind", "forest")
TABLES = tuple(name for name in JUDGED if name != "solar")  # of whose responses 83 % are one value
SMALL, FOLDS = 5000, 10  # up to so many rows, several splits
LARGEST_BOOSTING = 10_000  # rows: beyond it NGBoost takes many minutes


def ask(model, X):
    """Values, deviations, and intervals of 50 and 90 %; microseconds a query."""
    model.predict_interval(X[:1])  # the calibration is not what is timed
    started = time.process_time()
    value, deviation = model.predict(X, return_std=True)
    seconds = time.process_time() - started
    return value, deviation, model.predict_interval(X, [0.5, 0.9]), 1e6 * seconds / len(X)


def inside(ends, y):
    """Share of observations in their intervals."""
    return np.mean((ends[..., 0] <= y) & (y <= ends[..., 1]), axis=-1)


def interval_score(ends, y, level=0.95):
    """Width, and 2 / (1 - level) times how far observations lie outside (Gneiting and Raftery 2007, equation 43)."""
    outside = np.maximum(ends[:, 0] - y, 0.0) + np.maximum(y - ends[:, 1], 0.0)
    return np.ptp(ends, axis=1) + 2.0 / (1.0 - level) * outside


def split_satellite():
    """Points and responses of the published masks."""
    data = load_dataset("heaton")
    train, test = ~data.test_mask, data.test_mask
    return data.data[train], data.target[train], data.data[test], data.target[test]


def satellite():
    """The published masks."""
    X, y, Q, z = split_satellite()
    model = StitchedRegressor().fit(X, y)
    value, deviation, _, cost = ask(model, Q)
    error, ends = np.abs(z - value), model.predict_interval(Q, 0.95)
    distance = cKDTree(X).query(Q)[0]
    pixel = np.median(cKDTree(X).query(X[:2000], k=2)[0][:, 1])
    near = distance <= 3.01 * pixel
    print(f"satellite field: MAE {error.mean():.3f}, RMSE {np.sqrt(np.mean(error**2)):.3f}, {cost:.0f} µs a query")
    print(f"{'':20}{'CRPS':>8}{'INT95':>8}{'CVG95':>8}   near data, farther")
    gaussian = value[:, None] + 1.96 * deviation[:, None] * [-1.0, 1.0]
    for name, each in (("stitchwork", ends), ("  as if Gaussian", gaussian)):
        hit = (each[:, 0] <= z) & (z <= each[:, 1])
        own = crps(value, deviation, z).mean(), interval_score(each, z).mean(), hit.mean()
        print(f"{name:20}{own[0]:8.3f}{own[1]:8.2f}{own[2]:8.3f}   {hit[near].mean():.3f}, {hit[~near].mean():.3f}")
        if name == "stitchwork":
            parts = (np.sqrt(np.mean(error**2)), *own, hit[near].mean(), hit[~near].mean())
            found = dict(zip(("rmse", "crps", "score", "inside", "near", "far"), map(float, parts), strict=True))
    for name, row in PUBLISHED.items():
        print(f"{name:20}{row[0]:8.2f}{row[1]:8.2f}{row[2]:8.2f}")
    return found


def blocks(count=80, side=8, window=150, seed=0):
    """Means over blocks of the satellite field that were held out: 90 % intervals from samples, and from variances added up."""
    data = load_dataset("heaton")
    X, y = data.data, data.target
    steps = [np.unique(X[:, k]) for k in range(2)]
    pixel = np.stack([np.searchsorted(step, X[:, k]) for k, step in enumerate(steps)], axis=1)
    low = pixel.max(axis=0) // 3
    inside_window = ((pixel >= low) & (pixel < low + window)).all(axis=1) & np.isfinite(y)
    X, y, pixel = X[inside_window], y[inside_window], pixel[inside_window] - low
    cells = pixel // side
    key = cells[:, 0] * 1000 + cells[:, 1]
    full = np.flatnonzero(np.bincount(key) > 0.8 * side**2)
    chosen = np.random.default_rng(seed).choice(full, min(count, len(full) // 2), replace=False)
    out = np.isin(key, chosen)
    model = StitchedRegressor().fit(X[~out], y[~out])
    started = time.process_time()
    samples = model.sample_y(X[out], 400)
    cost = 1e6 * (time.process_time() - started) / out.sum()
    _, function = model.predict(X[out], return_std=True, std_of="function")
    value, deviation = model.predict(X[out], return_std=True)
    held = {"samples": [], "added": []}
    for each in chosen:
        own = key[out] == each
        error, n = abs(y[out][own].mean() - value[own].mean()), own.sum()
        noise = (deviation[own] ** 2 - function[own] ** 2).sum() / n**2
        together = np.sqrt(samples[own].mean(axis=0).var() + noise)
        held["samples"].append(error < 1.645 * together)
        held["added"].append(error < 1.645 * np.sqrt((deviation[own] ** 2).sum()) / n)
    print(f"means of {len(chosen)} held-out blocks of {side} × {side} pixels, {len(X) - out.sum():,} points:")
    print(f"  inside 90 % intervals: samples {np.mean(held['samples']):.3f}, variances added {np.mean(held['added']):.3f}")
    print(f"  {cost:.0f} µs a query for 400 samples")


def noise_free():
    """The paper's 2-D test."""
    data = make_2d()
    model = StitchedRegressor().fit(data.data, data.target)
    value, deviation, _, cost = ask(model, data.test_data)
    error = np.abs(value - data.test_target)
    print(
        f"2-D without noise: median error {np.median(error):.2e}, median deviation {np.median(deviation):.2e},"
        f" Spearman {spearmanr(error, deviation)[0]:.2f}, {cost:.0f} µs a query"
    )


def heteroscedastic():
    """Noise that grows tenfold across a field of 4,000 points."""
    rng = np.random.default_rng(0)

    def draw(n):
        X = rng.uniform(0, 5, (n, 2))
        return X, np.sin(X).sum(axis=1) + 0.02 * 10 ** (X[:, 0] / 5) * rng.normal(size=n)

    model = StitchedRegressor().fit(*draw(4000))
    Q, z = draw(20_000)
    ends = model.predict_interval(Q, 0.9)
    shares = [inside(ends[part], z[part]) for part in (np.floor(Q[:, 0]) == k for k in range(5))]
    print("noise growing tenfold, 90 % by fifths of the field:", " ".join(f"{share:.3f}" for share in shares))


def beside_gpboost(name, X, y, Q, z):
    """RMSE, CRPS, share in intervals of 95 % and CPU seconds of the default, and of a Gaussian process as Vecchia has it."""
    print(f"{name}, {len(X):,} points, {len(Q):,} held out\n{'':24}{'RMSE':>9}{'CRPS':>9}{'CVG95':>8}{'CPU s':>8}")

    def own():
        model = StitchedRegressor().fit(X, y)
        return *model.predict(Q, return_std=True), model.predict_interval(Q, 0.95)

    def vecchia():
        value, deviation = fit_vecchia(X, y)(Q)
        return value, deviation, value[:, None] + 1.96 * deviation[:, None] * [-1.0, 1.0]

    found = {}
    for peer, run in {"stitchwork": own, "GPBoost": vecchia}.items():
        started = time.process_time()
        value, deviation, ends = run()
        seconds, error = time.process_time() - started, np.sqrt(np.mean((value - z) ** 2))
        score = crps(value, deviation, z).mean()
        found[peer] = {"rmse": float(error), "crps": float(score), "inside": float(inside(ends, z)), "cpu": seconds}
        print(f"{peer:24}{error:9.4g}{score:9.4g}{found[peer]['inside']:8.3f}{seconds:8.0f}", flush=True)
    return {"n": len(X), "scores": found}


def field(name):
    """Coverage of intervals on held-out rows: the published mask of the forest, which leaves out strips, else a random tenth."""
    X, y, train, test = split_field(name)
    row = judge(X, y, train, test[:4000])
    print(f"{name:14} {describe([row])}", flush=True)
    return {"50": float(row[0]), "90": float(row[1])}


def split_field(name):
    """Points, responses, and which of them are for training and for testing."""
    data = load_dataset(name)
    X, y, order = data.data, data.target, np.random.default_rng(0).permutation(len(data.data))
    train, test = order[len(X) // 10 :], order[: len(X) // 10]
    if name == "forest":
        train, test = np.flatnonzero(~data.test_mask), np.random.default_rng(0).permutation(np.flatnonzero(data.test_mask))
    return X, y, train, test


def peers(names):
    """GPBoost beside us, by field."""
    found = {"satellite field": beside_gpboost("satellite field", *split_satellite())}
    for name in names:
        X, y, train, test = split_field(name)
        found[name] = beside_gpboost(name, X[train], y[train], X[test], y[test])
    return found


def judge(X, y, train, test):
    """Shares in intervals of 50 and 90 %, CRPS, RMSE and microseconds a query."""
    model = StitchedRegressor().fit(X[train], y[train])
    value, deviation, ends, cost = ask(model, X[test])
    return [*inside(ends, y[test]), crps(value, deviation, y[test]).mean(), np.sqrt(np.mean((value - y[test]) ** 2)), cost]


def describe(rows):
    """Means over splits."""
    fifty, ninety, score, rmse, cost = np.mean(rows, axis=0)
    shares = f"50 %: {fifty:.3f}   90 %: {ninety:.3f}"
    return f"{shares}   CRPS {score:.4g}   RMSE {rmse:.4g}   {cost:.0f} µs   ({len(rows)} splits)"


def table(name, known):
    """The same over the folds of a table, and the CRPS of peers; returns the ratio to the better of them."""
    data = load_dataset(name)
    X, y, rows, others = data.data, data.target, [], {}
    for fold in range(FOLDS if len(X) < SMALL else 1):
        test = data.test_mask[:, fold]
        rows.append(judge(X, y, ~test, np.flatnonzero(test)[:4000]))
        for peer, fit in SURE_PEERS.items():
            if len(X) - test.sum() > (LARGEST_PROCESS if peer == "gaussian process" else LARGEST_BOOSTING):
                continue
            key = f"{name}/{fold}/{peer}"
            if key not in known:
                value, deviation = fit(X[~test], y[~test])(X[test], return_std=True)
                known[key] = float(crps(value, deviation, y[test]).mean())
            others.setdefault(peer, []).append(known[key])
    means = {peer: float(np.mean(scores)) for peer, scores in others.items()}
    ratio = np.mean(rows, axis=0)[2] / min(means.values()) if means else np.nan
    beside = "".join(f"   {peer} {score:.4g}" for peer, score in means.items())
    print(f"{name:14} {describe(rows)}   CRPS of others:{beside}   ratio {ratio:.3f}", flush=True)
    fifty, ninety = (float(share) for share in np.mean(rows, axis=0)[:2])
    return {"50": fifty, "90": ninety, **({"ratio": float(ratio)} if means else {})}


def large():
    """Cost of deviations in batches: 10⁵ points in the plane, 10⁵ queries."""
    data = make_2d(100_000)
    settings = {"selection": None, "kernel": "gaussian", "degree": 4, "bandwidth": 2.0, "ridge": 1e-10, "metric": "euclidean"}
    model = StitchedRegressor(**settings).fit(data.data, data.target)
    Q = np.random.default_rng(1).uniform(data.data.min(axis=0), data.data.max(axis=0), (100_000, 2))
    started = time.process_time()
    model.predict_interval(Q[:1])
    middle = time.process_time()
    *_, cost = ask(model, Q)
    print(f"10⁵ points, 10⁵ queries: calibration {middle - started:.1f} CPU s, {cost:.0f} µs a query with its deviation")


def main():
    """Everything, or what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--known", help="a file that keeps the CRPS of peers for the next run")
    parser.add_argument("--peers", action="store_true", help="GPBoost beside us on three fields, and nothing else")
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results.json as they come")
    arguments = parser.parse_args()

    def keep(benchmark, figures):
        if arguments.record:
            record(benchmark, f"python -m benchmarks.uncertainty{' --peers' if arguments.peers else ''}", figures)

    if arguments.peers:
        keep("uncertainty, GPBoost", peers(arguments.names or PEER_FIELDS))
        return
    parts = {"heaton": satellite, "blocks": blocks, "2d": noise_free, "noise": heteroscedastic, "cost": large}
    kept = Path(arguments.known) if arguments.known else None
    known, ratios = json.loads(kept.read_text()) if kept and kept.exists() else {}, []
    for name in arguments.names or (*parts, *FIELDS, *TABLES):
        if name in parts:
            found = parts[name]()
            if name == "heaton":
                keep("uncertainty", {"satellite": found})
        elif name in FIELDS:
            keep("uncertainty, fields", {name: field(name)})
        else:
            found = table(name, known)
            keep("uncertainty, tables", {name: found})
            ratios.append(found.get("ratio", np.nan))
            if kept:
                kept.write_text(json.dumps(known, indent=1))
    found = [ratio for ratio in ratios if np.isfinite(ratio)]
    if found:
        mean = np.exp(np.mean(np.log(found)))
        print(f"CRPS relative to the better of NGBoost and a Gaussian process, geometric mean of {len(found)} tables: {mean:.3f}")


if __name__ == "__main__":
    main()
