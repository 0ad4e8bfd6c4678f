"""The theorem of section 4, measured: mean squared error of KRR and of KRR-POLY against n, in one to three dimensions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._regressor import StitchedRegressor
from .._types import Array
from ._draw import curves
from ._section import Figure, Section, Table, number
from ._store import Arrays, Numbers, Part, Results

NAME, TITLE = "theory", "Theory: how fast does the error fall?"

_DEGREES = (0, 1, 2, 3)
MODELS = ("KRR", *(f"KRR-POLY, degree {degree}" for degree in _DEGREES))
_NOISE = 0.1
SETTINGS = {
    "one model": "one model on all points of the cube, ridge n^½ (the theorem's η = n^-½, which is the ridge over n)",
    "stitched": "regions of a fixed number of points, whose size shrinks as n^(-1/d), ridge 1e-10 without noise and 1e-2 with it",
}


def truth(X: Array) -> Array:
    """A smooth function on the unit cube: the mean over axes of sin 3x, and a bump in the middle."""
    return np.sin(3.0 * X).mean(axis=1) + np.exp(-4.0 * np.square(X - 0.5).sum(axis=1))


def predicted_rate(model: str, d: int) -> float:
    """Exponent of n in the theorem's bound with η = n^-½ and r(η) ≤ 1/η: -½ for KRR, -½ - (ℓ + 1)/d for KRR-POLY."""
    return -0.5 if model == "KRR" else -0.5 - (int(model[-1]) + 1) / d


def slope(n: Any, errors: Any) -> float:
    """Exponent of a power law, by least squares in logarithms."""
    return float(np.polyfit(np.log(n), np.log(errors), 1)[0])


def _model(model: str, setting: str, n: int, d: int, noise: float) -> StitchedRegressor:
    degree = -1 if model == "KRR" else int(model[-1])
    alone = setting == "one model"
    return StitchedRegressor(
        local_model="krr" if degree < 0 else "krr-poly",
        degree=max(degree, 0),
        kernel="gaussian",
        bandwidth=1.0,
        ridge=np.sqrt(n) if alone else (1e-2 if noise else 1e-10),
        region_size=n if alone else 60,
        overlap=0.0,
        metric="euclidean",
        selection=None,
        n_jobs=2,
    )


def _run(d: int, setting: str, noise: float, quick: bool) -> tuple[Numbers, Arrays]:
    sizes: tuple[int, ...] = (200, 400, 800) if quick else (125, 250, 500, 1000, 2000)
    if setting == "stitched":
        sizes = (500, 1000, 2000) if quick else (1000, 2000, 4000, 8000, 16_000, 32_000)
    trials = 1 if quick else 3
    table = np.zeros((len(MODELS), len(sizes), trials))
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        # Inside, where the distance to the border does not matter.
        Q = rng.uniform(0.1, 0.9, (2000, d))
        for j, n in enumerate(sizes):
            X = rng.uniform(0.0, 1.0, (n, d))
            y = truth(X) + noise * rng.normal(size=n)
            for i, name in enumerate(MODELS):
                table[i, j, trial] = np.mean((_model(name, setting, n, d, noise).fit(X, y).predict(Q) - truth(Q)) ** 2)
    return {"sizes": list(sizes), "mse": {name: table[i].mean(axis=1).tolist() for i, name in enumerate(MODELS)}}, {}


def _name(d: int, setting: str, noise: float) -> str:
    return f"d = {d}, {setting}, {'noise' if noise else 'no noise'}"


def parts(quick: bool) -> list[Part]:
    """One part a dimension, setting and noise."""
    cases = [(d, setting, noise) for setting in SETTINGS for noise in (0.0, _NOISE) for d in (1, 2, 3)]
    return [Part(_name(*case), partial(_run, *case, quick)) for case in cases]


def section(results: Results) -> Section:
    """Slopes beside the rate of the theorem."""
    shown = Section(
        NAME,
        TITLE,
        [
            "The theorem bounds the mean squared error of KRR-POLY with polynomials of degree ℓ by (η + r(η)/n) n^(-(ℓ+1)/d),"
            " and that of KRR by the first factor alone. With η = n^-½ and r(η) ≤ 1/η the exponents of n are -½ - (ℓ+1)/d and"
            " -½. A bound is not a rate: a measured exponent below it (steeper) agrees with it, one above it does not. The gain"
            " n^(-(ℓ+1)/d) rests on the remainder of a Taylor polynomial over a region whose size shrinks as n^(-1/d): so both"
            f" settings are shown, one model on a fixed cube, and stitched regions. Noise has deviation {_NOISE}, the function"
            " about 0.5; mean of three samples.",
        ],
    )
    for setting in SETTINGS:
        for noise in (0.0, _NOISE):
            shown.blocks += _case(results, setting, noise)
    shown.blocks.append(
        "What is seen at full size: in shrinking regions without noise the error falls faster with every degree, and for degrees"
        " of one and more at least as fast as the bound says. On a fixed cube the extra factor is not borne out: there the"
        " polynomial takes a fixed share out of the function, so the error is lower than that of KRR and falls no faster. With"
        " noise and a fixed number of points in a region the error stops falling, since every region averages the same number of"
        " noisy values."
    )
    return shown


def _case(results: Results, setting: str, noise: float) -> list[Any]:
    """Table of exponents and curves of one setting, in all dimensions."""
    rows: list[list[str]] = []
    panels: dict[str, Any] = {}
    for d in (1, 2, 3):
        part = _name(d, setting, noise)
        if part not in results:
            continue
        sizes, mse = results[part]["sizes"], results[part]["mse"]
        panels[f"d = {d}"] = {name: (sizes, mse[name]) for name in MODELS}
        rows += [
            [str(d), name, f"{slope(sizes, mse[name]):.2f}", f"{predicted_rate(name, d):.2f}", number(mse[name][-1])]
            for name in MODELS
        ]
    if not rows:
        return []
    how = "with noise" if noise else "without noise"
    headings = ["d", "model", "measured exponent", "exponent of the bound", "MSE at the largest n"]
    return [
        Table(f"{setting.capitalize()}, {how}: {SETTINGS[setting]}.", headings, rows),
        Figure(f"theory-{setting}-{how}", curves(panels, "n", styled=False), f"Mean squared error against n: {setting}, {how}."),
    ]
