"""The combustion table (section 5.4): the paper's eight methods and the others, two ways to hold rows out, two ridge grids."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._regressor import StitchedRegressor
from ..datasets import load_dataset, make_combustion
from ._draw import scatter_maps
from ._methods import DEFAULT, METHODS, PAPER, Task, build, measure
from ._section import Figure, Section, comparison, method_table
from ._store import Arrays, Numbers, Part, Results

NAME, TITLE = "combustion", "Combustion: source terms of a reduced chemistry"

SPLITS = {"random": "a random fifth held out", "profiles": "every fifth flamelet held out as a whole"}
_SMALL_RIDGES = tuple(10.0**-k for k in range(1, 13))
OUR_GRID = {f"{PAPER}, ridge to 1e-12": "krr-poly", "PU-KRR, ridge to 1e-12": "krr"}
GROUPED = f"{DEFAULT}, flamelets as groups"
GENERATED = "generated against stored"


def _table() -> Any:
    """The stored table where its file is present, else our own computation of it."""
    try:
        return load_dataset(NAME)
    except FileNotFoundError:
        return make_combustion(verbose=True)


def _held_out(data: Any, split: str) -> np.ndarray:
    if split == "profiles":
        return data.flamelet % 5 == 2
    return np.random.default_rng(0).permutation(len(data.data)) >= int(0.8 * len(data.data))


def _run(split: str, name: str, quick: bool) -> tuple[Numbers, Arrays]:
    data = _table()
    test = _held_out(data, split)
    train, test = np.flatnonzero(~test), np.flatnonzero(test)
    if quick:
        rng = np.random.default_rng(0)
        train, test = rng.choice(train, 1500, replace=False), rng.choice(test, 300, replace=False)
    options = {"groups": data.flamelet[train]} if name == GROUPED else {}
    if name in OUR_GRID:
        model = StitchedRegressor.paper(local_model=OUR_GRID[name], ridge=_SMALL_RIDGES, n_jobs=2)
    else:
        model = build(DEFAULT if name == GROUPED else name, Task(len(train), 3, quick))
    numbers, _ = measure(model, data.data[train], data.target[train], data.data[test], data.target[test], **options)
    return numbers, {}


def _compare_generated() -> tuple[Numbers, Arrays]:
    """Our own computation against the stored table; largest differences relative to the largest value."""
    ours = make_combustion(verbose=True)
    arrays: Arrays = {"data": ours.data, "target": ours.target, "chi_st": ours.chi_st}
    numbers: Numbers = {"rows": len(ours.data), "flamelets": len(np.unique(ours.flamelet)), "last_chi_st": float(ours.chi_st.max())}
    try:
        stored = load_dataset(NAME)
    except FileNotFoundError:
        return numbers, arrays
    if stored.data.shape == ours.data.shape:
        numbers["coordinates"] = float(np.abs(ours.data - stored.data).max() / np.abs(stored.data).max())
        numbers["response"] = float(np.abs(ours.target - stored.target).max())
    return numbers, arrays


def parts(quick: bool) -> list[Part]:
    """One part a split and method, and the check of the generator."""
    runs = [Part(f"{split}, {name}", partial(_run, split, name, quick)) for split in SPLITS for name in _names(split)]
    return [*runs, Part(GENERATED, _compare_generated)]


def _names(split: str) -> tuple[str, ...]:
    """What is compared: where whole flamelets are held out, the default is also told which rows are one."""
    return (*METHODS, *OUR_GRID) if split == "random" else (*METHODS, *OUR_GRID, GROUPED)


def section(results: Results) -> Section:
    """Both tables and a picture of the sheet."""
    shown = Section(
        NAME,
        TITLE,
        [
            "A reduced combustion model carries a few principal components δ of the chemical state instead of 53 species, and"
            " needs their source terms S(δ) and derivatives of them. The states are steady methane-air flamelets with GRI-Mech"
            " 3.0, computed with Cantera from the streams up; three components of temperature and 51 species; the response is"
            " (max S₁ - S₁) / range. The paper's own table is not public, so printed numbers can be compared in their order of"
            " magnitude only. On noise-free data like this the ridge decides: the paper's grid ends at 1e-5, and rows that say"
            " “ridge to 1e-12” differ in nothing else.",
        ],
    )
    for split, text in SPLITS.items():
        rows = {name: results[f"{split}, {name}"] for name in _names(split) if f"{split}, {name}" in results}
        if rows:
            shown.blocks.append(method_table(rows, NAME if split == "random" else None, f"Errors of the scaled response: {text}."))
            comment = "other flamelets than the paper's" if split == "random" else "not in the paper"
            shown.comparisons.append(comparison(rows, f"combustion, {split}", NAME if split == "random" else None, comment))
    if GENERATED in results:
        shown.blocks += _generated(results)
    shown.blocks.append(
        "Whole flamelets held out are the harder test: a point's neighbours lie on its own curve, so that a choice by"
        " leave-one-out alone is made for interpolation along curves, not between them. The default is also judged where its"
        " regions will be asked, between curves, too; with groups, it is judged by whole curves."
    )
    return shown


def _generated(results: Results) -> list[Any]:
    """How the generator compares with the stored table, and a picture of what it makes."""
    check, arrays = results[GENERATED], results.arrays(GENERATED)
    text = f"The generator gives {check['flamelets']} steady flamelets, the last at χ_st = {check['last_chi_st']:.2f} /s."
    if "response" in check:
        text += (
            f" Against the stored table its coordinates differ by at most {check['coordinates']:.1g} of the largest and the"
            f" response by at most {check['response']:.1g}."
        )
    plane = arrays["data"][:, :2]
    panels: list[Any] = [
        ("scaled source over the first two components", plane, arrays["target"], {"cmap": "cividis"}),
        ("dissipation rate, log10", plane, np.log10(arrays["chi_st"]), {"cmap": "viridis"}),
    ]
    caption = "The flamelets in the plane of the first two components: a sheet, seen from above."
    return [text, Figure("combustion-sheet", scatter_maps(panels, ("$\\delta_1$", "$\\delta_2$")), caption)]
