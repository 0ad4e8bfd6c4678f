"""Data on the sphere (section 5.2): errors against the size of the training set, and surface gradients."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from .._regressor import StitchedRegressor
from .._types import Array
from ..datasets import make_sphere, sphere_solution
from ._draw import curves, scatter_maps
from ._methods import DEFAULT, METHODS, PAPER, Task, build, fit_quietly, listed, measure, trials, with_chosen
from ._section import MEASURES, Figure, Section, Table, comparison, method_table, number
from ._store import Arrays, Numbers, Part, Results

NAME, TITLE = "sphere", "The sphere: advected bells, and surface gradients"

_SIZES = (3065, 5377, 11_504, 21_545)
_QUICK_SIZES = (600, 1200)
GRADIENTS = {
    "exact, default": "the gradient of the stitched prediction, default settings",
    "exact, paper": "the same with the paper's settings",
    "differences, paper": "forward differences of PU-KRR-POLY between neighbouring nodes",
    "differences, KNN SVM": "forward differences of KNN SVM between neighbouring nodes",
}


def _sizes(quick: bool) -> tuple[int, ...]:
    return _QUICK_SIZES if quick else _SIZES


def _data(n: int, seed: int, quick: bool, n_test: int = 20_000) -> Any:
    """One trial; a small reproduction uses a coarse grid."""
    return make_sphere(n, 500 if quick else n_test, seed, frequency=24 if quick else 96, n_jobs=2, verbose=True)


def _run(n: int, name: str, quick: bool) -> tuple[Numbers, Arrays]:
    runs, model = [], None
    for seed in range(1 if quick else trials(name, 5)):
        data = _data(n, seed, quick)
        model = build(name, Task(n, 3, quick)) if model is None else with_chosen(model)
        try:
            numbers, _ = measure(model, data.data, data.target, data.test_data, data.test_target)
        except MemoryError as error:
            return {"reason": str(error)}, {}
        runs.append(numbers)
    return listed(runs), {}


def forward_difference(predict: Any, X: Array, nodes: Array) -> Array:
    """Surface gradient (n, 3) at nodes ``X`` from predictions there and at two of their nearest nodes.

    The two are the nearest node and, of the next five, the one whose direction is nearest to perpendicular; g in the tangent plane
    solves g · (x_i - x) = f(x_i) - f(x) for both.
    """
    _, near = cKDTree(nodes).query(X, k=7)
    steps = nodes[near[:, 1:]] - X[:, None]
    steps -= np.einsum("nkd,nd->nk", steps, X)[..., None] * X[:, None]
    unit = steps / np.linalg.norm(steps, axis=2, keepdims=True)
    second = 1 + np.abs(np.einsum("nkd,nd->nk", unit[:, 1:], unit[:, 0])).argmin(axis=1)
    both = np.stack([np.zeros_like(second), second], axis=1)
    E = np.take_along_axis(steps, both[..., None], axis=1)
    neighbours = np.take_along_axis(near[:, 1:], both, axis=1)
    asked, place = np.unique(neighbours, return_inverse=True)
    difference = predict(nodes[asked])[place.reshape(both.shape)] - predict(X)[:, None]
    return np.einsum("nda,na->nd", np.linalg.pinv(E), difference)


def _gradients(n: int, kind: str, quick: bool) -> tuple[Numbers, Arrays]:
    """Mean l² distance from the RBF-FD surface gradient at test nodes."""
    data = _data(n, 0, quick, 5000)
    task = Task(n, 3, quick)
    model = build({"default": DEFAULT, "paper": PAPER, "KNN SVM": "KNN SVM"}[kind.split(", ")[1]], task)
    fit_quietly(model, data.data, data.target)
    if kind.startswith("exact"):
        gradient = model.gradient(data.test_data, normals=data.test_data)
    else:
        gradient = forward_difference(model.predict, data.test_data, data.solution.nodes)
    return {"error": float(np.linalg.norm(gradient - data.test_gradient, axis=1).mean())}, {}


def _at_start(n: int, quick: bool) -> tuple[Numbers, Arrays]:
    """The same sample with the bells at t = 0, whose surface gradient is known: the default's error and that of differences."""
    data = _data(n, 0, quick)
    model = StitchedRegressor(n_jobs=2).fit(data.data, data.start(data.data))
    exact = data.start_gradient(data.test_data)
    gradient = model.gradient(data.test_data, normals=data.test_data)
    differences = forward_difference(model.predict, data.test_data, data.solution.nodes)
    lengths = {"error": gradient - exact, "differences": differences - exact, "size": exact}
    return {key: float(np.linalg.norm(values, axis=1).mean()) for key, values in lengths.items()}, {}


def _solver(frequency: int) -> tuple[Numbers, Arrays]:
    """How well the solution returns to its start."""
    solution = sphere_solution(frequency, n_jobs=2, verbose=True)
    numbers = {"nodes": len(solution.nodes), "return_error": solution.return_error, "mass_error": solution.mass_error}
    return numbers, {"nodes": solution.nodes, "final": solution.final}


def parts(quick: bool) -> list[Part]:
    """The solver on three grids; each method at each size with its trials; surface gradients at each size."""
    solver = [Part(f"solver {f}", partial(_solver, f)) for f in ((12, 24) if quick else (24, 48, 96))]
    errors = [Part(f"n = {n}, {name}", partial(_run, n, name, quick)) for n in _sizes(quick) for name in METHODS]
    slopes = [Part(f"gradient, n = {n}, {kind}", partial(_gradients, n, kind, quick)) for n in _sizes(quick) for kind in GRADIENTS]
    start = [Part(f"gradient at the start, n = {n}", partial(_at_start, n, quick)) for n in _sizes(quick)]
    return [*solver, *errors, *slopes, *start]


def section(results: Results) -> Section:
    """The solver's own check, errors against n, gradients against n."""
    sizes = _sizes(quick="solver 12" in results)
    by_size = {n: {m: results[f"n = {n}, {m}"] for m in METHODS if f"n = {n}, {m}" in results} for n in sizes}
    shown = Section(
        NAME,
        TITLE,
        [
            "A pair of bells is carried around the sphere by a flow that deforms it until t = 2.5 and brings it back at t = 5;"
            " the solution there, on icosahedral nodes, is the data. The response max(q) - q is near zero at the bells, where"
            " relative errors live; training nodes are drawn more densely near them. Mean over five samples (one or two for methods"
            " that take minutes); hyperparameters are searched on the first. The paper prints no numbers here, only curves.",
        ],
        [_solver_table(results), *_solution_map(results)],
    )
    shown.blocks.append(Figure("sphere-errors", _error_curves(by_size), "Errors against the number of training points."))
    shown.blocks.append(method_table(by_size[sizes[-1]], None, f"{sizes[-1]:,} training points; CPU seconds of one trial."))
    shown.blocks += _gradient_blocks(results, sizes)
    for n, rows in by_size.items():
        if rows:
            shown.comparisons.append(comparison(rows, f"sphere, n = {n:,}", comment="curves only in the paper"))
    return shown


def _solver_table(results: Results) -> Table:
    rows = [results[part] for part in results if part.startswith("solver")]
    return Table(
        "The solver's own check: the exact solution at t = 5 is the initial state.",
        ["nodes", "relative l² difference from the start", "relative change of mass"],
        [[f"{r['nodes']:,}", number(r["return_error"]), number(r["mass_error"], 2)] for r in rows],
    )


def _solution_map(results: Results) -> list[Figure]:
    """The finest solution, if it is there."""
    solved = [part for part in results if part.startswith("solver") and results.arrays(part)]
    if not solved:
        return []
    arrays = results.arrays(solved[-1])
    nodes, final = arrays["nodes"], arrays["final"]
    seen = nodes[:, 0] > 0.0
    panel = ("max(q) - q, seen from the side of the bells", nodes[seen][:, 1:], final.max() - final[seen], {"cmap": "cividis"})
    caption = "The response on the half of the sphere that holds the bells."
    return [Figure("sphere-solution", scatter_maps([panel], ("y", "z")), caption)]


def _error_curves(by_size: dict[int, dict[str, Numbers]]) -> bytes:
    panels: dict[str, Any] = {}
    for key, title in MEASURES.items():
        panels[title] = {}
        for name in METHODS:
            known = [n for n, rows in by_size.items() if name in rows and key in rows[name]]
            if known:
                panels[title][name] = (known, [float(np.mean(by_size[n][name][key])) for n in known])
    return curves(panels, "training points")


def _gradient_blocks(results: Results, sizes: tuple[int, ...]) -> list[Any]:
    def error(part: str, key: str = "error") -> float | None:
        return results[part][key] if part in results else None

    errors = {kind: [error(f"gradient, n = {n}, {kind}") for n in sizes] for kind in GRADIENTS}
    start = {n: f"gradient at the start, n = {n}" for n in sizes}
    rows = [[kind, *map(number, values), GRADIENTS[kind]] for kind, values in errors.items()]
    at_start = {"exact, default, t = 0": "error", "differences, default, t = 0": "differences"}
    about = "against the analytic gradient of the initial bells"
    rows += [[label, *(number(error(part, key)) for part in start.values()), about] for label, key in at_start.items()]
    sizes_of = {part: results[part]["size"] for part in start.values() if part in results}
    lines = {}
    for kind, values in errors.items():
        known = [(n, e) for n, e in zip(sizes, values, strict=True) if e is not None]
        if known:
            lines[kind] = [n for n, _ in known], [e for _, e in known]
    return [
        Table(
            "Surface gradients: mean length of the difference from a fourth-order RBF-FD gradient on all nodes"
            + (f"; the mean length of the gradient is {number(max(sizes_of.values()))}." if sizes_of else "."),
            ["gradient", *(f"n = {n:,}" for n in sizes), "what it is"],
            rows,
        ),
        Figure(
            "sphere-gradients",
            curves({"mean error of the surface gradient": lines}, "training points", styled=False),
            "Exact gradients of the stitched prediction against differences of predictions.",
        ),
    ]
