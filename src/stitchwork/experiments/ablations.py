"""The paper's ablations on the test in two dimensions: local model, order of the cover, region size, stitching weight."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._regressor import StitchedRegressor
from ..datasets import make_2d
from ._methods import measure
from ._section import MEASURES, Comparison, Section, Table, number, printed
from ._store import Arrays, Numbers, Part, Results
from .two_dimensions import size, test_grid

NAME, TITLE = "ablations", "Ablations: what the choices of the method change"

_SIZES = (50, 75, 100, 125, 150)
_ORDERS = tuple(f"random order {seed}" for seed in range(3))
_WEIGHTS = {
    "wendland-c2-native": "Wendland φ_{2,1}, C² (the paper's)",
    "wendland-c0-native": "Wendland φ_{2,0}, C⁰",
    "truncated-gaussian": "Gaussian, cut off",
    "wendland-c4-native": "Wendland φ_{2,2}, C⁴ (beyond the paper)",
    "wendland-c6-native": "Wendland φ_{2,3}, C⁶ (beyond the paper)",
}

_SETTINGS: dict[str, dict[str, Any]] = {
    "PU-POLY": {"local_model": "poly"},
    **{f"h = {h}": {"region_size": h} for h in _SIZES},
    **{name: {"order": "random", "random_state": seed} for seed, name in enumerate(_ORDERS)},
    **{weight: {"weight": weight} for weight in _WEIGHTS},
}


def _run(name: str, quick: bool) -> tuple[Numbers, Arrays]:
    n, step = size(quick)
    data = make_2d(n)
    Q, truth, _ = test_grid(data, step)
    numbers, _ = measure(StitchedRegressor.paper(n_jobs=2, **_SETTINGS[name]), data.data, data.target, Q, truth)
    return numbers, {}


def parts(quick: bool) -> list[Part]:
    """One part a setting."""
    return [Part(name, partial(_run, name, quick)) for name in _SETTINGS]


def _row(label: str, here: Numbers, paper: Any) -> list[str]:
    cells = [label]
    for key in MEASURES:
        cells += [number(getattr(paper, key)) if paper else "", number(here[key])]
    return cells


def section(results: Results) -> Section:
    """Tables 2 and 3, and the spread over random orders."""
    paper = printed(NAME)
    headings = [heading for title in MEASURES.values() for heading in (f"{title}, printed", f"{title}, here")]
    orders = [results[name] for name in _ORDERS if name in results]
    spread: list[list[str]] = []
    if orders:
        for label, reduce in (("mean of three", np.mean), ("deviation", partial(np.std, ddof=1))):
            here = {key: float(reduce([numbers[key] for numbers in orders])) for key in MEASURES}
            spread.append(_row(label, here, paper["random order" if label == "mean of three" else "random order, deviation"]))
    sizes = [f"h = {h}" for h in _SIZES if f"h = {h}" in results]
    return Section(
        NAME,
        TITLE,
        ["All rows are the paper's settings on the test above with one choice changed."],
        [
            Table("Order in which the cover scans the points.", ["order", *headings], spread),
            Table("Points in a region, h.", ["h", *headings], [_row(s, results[s], paper[s]) for s in sizes]),
            "The paper's error grows with h; here it falls: with a good background a larger region is simply a better model. See"
            " ARCHITECTURE.md on the background, which the paper leaves open.",
            Table(
                "Weight that stitches the regions.",
                ["weight", *headings],
                [_row(label, results[w], paper.get(w)) for w, label in _WEIGHTS.items() if w in results],
            ),
        ],
        [Comparison(f"2-D, {s}", paper[s].rmse, results[s]["rmse"], None, None) for s in sizes]
        + [Comparison(f"2-D, {w}", paper[w].rmse, results[w]["rmse"], None, None) for w in _WEIGHTS if w in results and w in paper],
    )
