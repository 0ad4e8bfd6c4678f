"""The paper's test in two dimensions (section 5.1): Table 1 with every method, and the error maps of its figure."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..datasets import make_2d
from ._draw import error_maps
from ._methods import METHODS, Task, build, measure
from ._section import Figure, Section, comparison, method_table
from ._store import Arrays, Numbers, Part, Results

NAME, TITLE = "2d", "Two dimensions: a function whose size grows a thousandfold"


def size(quick: bool) -> tuple[int, int]:
    """Training points, and the step in which the test grid is thinned."""
    return (3000, 3) if quick else (20_000, 1)


def test_grid(data: Any, step: int) -> tuple[Any, Any, tuple[int, int]]:
    """Test points, their values and the shape of their grid."""
    shape = (*data.grid_shape, -1)
    T = data.test_data.reshape(shape)[::step, ::step]
    return T.reshape(-1, 2), data.test_target.reshape(shape)[::step, ::step].ravel(), T.shape[:2]


def _run(name: str, quick: bool) -> tuple[Numbers, Arrays]:
    n, step = size(quick)
    data = make_2d(n)
    Q, truth, shape = test_grid(data, step)
    numbers, prediction = measure(build(name, Task(n, 2, quick)), data.data, data.target, Q, truth)
    return numbers, {"error": (prediction - truth).reshape(shape).astype(np.float32)}


def parts(quick: bool) -> list[Part]:
    """One part a method."""
    return [Part(name, partial(_run, name, quick)) for name in METHODS]


def section(results: Results) -> Section:
    """Table 1 and the maps."""
    maps = {name: np.abs(results.arrays(name)["error"]) for name in METHODS if name in results}
    return Section(
        NAME,
        TITLE,
        [
            "The response is near zero on the left and about 200 on the right, so a method must adapt to the place. Training"
            " points are uniform on [-6, 30]², test points a grid of step 0.2. Relative errors are |y - f| / |y| and are ruled"
            " by the lines where y crosses zero.",
        ],
        [
            method_table(results.numbers, NAME, "Table 1 of the paper, printed and here."),
            Figure(
                "2d-errors",
                error_maps(maps, (-6, 30, -6, 30), ("$x_1$", "$x_2$"), (1e-7, 1e1)),
                "Absolute errors of every method on one logarithmic scale. Global KRR shows bands that run along the axes and grow"
                " towards the edges; Local SVM shows the borders of its cells; trees show their boxes.",
            ),
            "PU-POLY does not reproduce: a quadratic on the 100 nearest points cannot follow this function to 0.239; what is"
            " printed suggests another degree or region size, which the paper does not state.",
        ],
        [comparison(results.numbers, "2-D, Table 1", NAME, "training points are random, so the paper's differ")],
    )
