"""Fields over a map (section 5.3): the paper's ozone data is not public, so two public fields stand in, with the same protocol."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..datasets import load_dataset
from ._draw import scatter_maps
from ._methods import DEFAULT, METHODS, Task, build, measure
from ._section import Figure, Section, comparison, method_table
from ._store import Arrays, Numbers, Part, Results

NAME, TITLE = "ozone", "Ozone and elevation: fields over a map"

_FIELDS = {
    "cmaq": ("ozone", "CMAQ ozone, 22 May 2005", "ppb"),
    "prism": ("elevation", "PRISM elevation on the paper's box", "m"),
}


def _run(field: str, name: str, quick: bool) -> tuple[Numbers, Arrays]:
    data = load_dataset(_FIELDS[field][0])
    rng = np.random.default_rng(0)
    test = rng.random(len(data.data)) < 0.1
    train = np.flatnonzero(~test)
    if quick:
        train, test = rng.choice(train, 1500, replace=False), rng.choice(np.flatnonzero(test), 300, replace=False)
    X, y, Q, truth = data.data[train], data.target[train], data.data[test], data.target[test]
    try:
        numbers, prediction = measure(build(name, Task(len(X), 2, quick)), X, y, Q, truth)
    except MemoryError as error:
        return {"reason": str(error)}, {}
    keep = {"where": Q.astype(np.float32), "error": (prediction - truth).astype(np.float32)} if name == DEFAULT else {}
    return numbers, keep


def parts(quick: bool) -> list[Part]:
    """One part a field and method."""
    return [Part(f"{field}, {name}", partial(_run, field, name, quick)) for field in _FIELDS for name in METHODS]


def section(results: Results) -> Section:
    """A table and a map of each field."""
    shown = Section(
        NAME,
        TITLE,
        [
            "The paper's ozone values (a 1 km grid over latitude 36.3 to 42.6, longitude -114.6 to -108.4) have no public copy. In"
            " their place: ozone of the CMAQ model on its 12 km grid over the United States, and the PRISM elevation on exactly the"
            " paper's box. A random tenth is held out. The printed numbers are shown for orientation, not for comparison.",
        ],
    )
    for field, (dataset, title, unit) in _FIELDS.items():
        rows = {name: results[f"{field}, {name}"] for name in METHODS if f"{field}, {name}" in results}
        if not rows:
            continue
        printed_table = NAME if field == "cmaq" else None
        shown.blocks.append(method_table(rows, printed_table, f"{title}: errors in {unit}."))
        arrays = results.arrays(f"{field}, {DEFAULT}")
        if arrays:
            data = load_dataset(dataset)
            bound = float(np.quantile(np.abs(arrays["error"]), 0.98))
            lonlat = [1, 0]
            maps = scatter_maps(
                [
                    (f"{title}, {unit}", data.data[:, lonlat], data.target, {"cmap": "cividis"}),
                    (
                        "error of the default at held-out cells",
                        arrays["where"][:, lonlat],
                        arrays["error"],
                        {"cmap": "RdBu_r", "vmin": -bound, "vmax": bound},
                    ),
                ],
                ("longitude", "latitude"),
            )
            shown.blocks.append(Figure(f"{field}-map", maps, f"{title}: the field, and the default's error where it was held out."))
        shown.comparisons.append(comparison(rows, title, comment="a public field in place of the paper's data"))
    return shown
