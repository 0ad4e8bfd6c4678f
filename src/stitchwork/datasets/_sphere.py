"""The paper's data on the sphere (section 5.2): a pair of cosine bells, carried around by a deforming flow and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._parallel import Threads
from .._types import Array
from ._advection import advect, areas, icosahedral_nodes, make_stencils
from ._home import cached_arrays

BELLS = np.array([[np.sqrt(3.0) / 2.0, 0.5, 0.0], [np.sqrt(3.0) / 2.0, -0.5, 0.0]])

_DESCR_SPHERE = """Data on the unit sphere after "Locally Adaptive and Differentiable Regression", section 5.2 and appendix B.

A pair of C¹ cosine bells at (√3/2, ±1/2, 0) is carried by the deformational flow of Nair and Lauritzen (2010) until t = 5, when it
has come back, by a semi-Lagrangian local RBF scheme on icosahedral nodes. The response is max(q) - q: zero at the bells. Training
nodes are drawn more densely near the bells (each node by two Bernoulli trials of probabilities 1 - |x - c_j| / r_j), of these ``n``
at random; test nodes at random from the others, but for the one of response zero, where a relative error has no meaning.
"""


def cosine_bells(X: Array) -> Array:
    """q(x, 0) = 0.1 + 0.9 (q_1 + q_2), q_j = ½ (1 + cos 2πa) within the angle a < ½ of a bell."""
    q = np.full(len(X), 0.1)
    for bell in BELLS:
        a = np.arccos(np.clip(X @ bell, -1.0, 1.0))
        q += 0.9 * np.where(a < 0.5, 0.5 * (1.0 + np.cos(2.0 * np.pi * a)), 0.0)
    return q


def cosine_bells_gradient(X: Array) -> Array:
    """Surface gradient of `cosine_bells`, (n, 3): with ∇a = -(c - (x · c) x) / sin a, dq/da = -0.9 π sin 2πa."""
    gradient = np.zeros_like(X)
    for bell in BELLS:
        cosine = X @ bell
        a = np.arccos(np.clip(cosine, -1.0, 1.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = np.where(a > 0.0, np.sin(2.0 * np.pi * a) / np.sin(a), 2.0 * np.pi)
        gradient += np.where(a < 0.5, 0.9 * np.pi * slope, 0.0)[:, None] * (bell - cosine[:, None] * X)
    return gradient


def sphere_solution(frequency: int = 96, n_jobs: int | None = None, verbose: bool = False) -> Bunch:
    """The solution at t = 5 on 10 f² + 2 nodes, computed once and kept in the user's cache (some minutes for f = 96).

    Returns
    -------
    Bunch
        ``nodes`` (n, 3), ``initial`` and ``final`` (n,), ``gradient`` (n, 3): fourth-order RBF-FD surface gradient of ``final``;
        ``return_error``: l² difference between both relative to the first, since the exact solution comes back; ``mass_error``.

    Examples
    --------
    >>> from stitchwork.datasets import sphere_solution
    >>> sphere_solution(frequency=8).nodes.shape
    (642, 3)
    """

    def compute() -> dict[str, Array]:
        nodes = icosahedral_nodes(frequency)
        threads = Threads(n_jobs, verbose)
        stencils = make_stencils(nodes, threads=threads)
        initial = cosine_bells(nodes)
        final = advect(stencils, initial, frequency, threads)
        area, difference = areas(nodes), final - initial
        return {
            "nodes": nodes,
            "initial": initial,
            "final": final,
            "gradient": stencils.surface_gradient(final),
            "return_error": np.sqrt(area @ difference**2 / (area @ initial**2)),
            "mass_error": area @ difference / (area @ initial),
        }

    return Bunch(**cached_arrays(f"sphere-{frequency}.npz", compute))


def make_sphere(
    n: int = 21_545, n_test: int = 20_000, seed: int = 0, frequency: int = 96, n_jobs: int | None = None, verbose: bool = False
) -> Bunch:
    """Scattered data on the sphere: ``n`` training and ``n_test`` test nodes of the advected bells.

    Returns
    -------
    Bunch
        ``data`` (n, 3), ``target`` = max(q) - q; ``test_data``, ``test_target``; ``test_gradient``, the RBF-FD surface gradient of
        the target there; ``test_index``, their places among the nodes; ``solution``, see `sphere_solution`;
        ``start`` and ``start_gradient``: the bells at t = 0 and their surface gradient, as functions.

    Examples
    --------
    >>> from stitchwork.datasets import make_sphere
    >>> data = make_sphere(n=300, n_test=100, frequency=8)
    >>> data.data.shape, data.test_gradient.shape
    ((300, 3), (100, 3))
    """
    solution = sphere_solution(frequency, n_jobs, verbose)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(np.flatnonzero(_bernoulli(solution.nodes, rng)))
    if n > len(chosen):
        raise ValueError(f"`n` must be at most {len(chosen):,} for `frequency`={frequency}, got {n:,}. Raise `frequency`.")
    train = np.sort(chosen[:n])
    target = solution.final.max() - solution.final
    rest = np.setdiff1d(np.flatnonzero(target > 0.0), train)
    test = np.sort(rng.choice(rest, min(n_test, len(rest)), replace=False))
    return Bunch(
        data=solution.nodes[train],
        target=target[train],
        test_data=solution.nodes[test],
        test_target=target[test],
        test_gradient=-solution.gradient[test],
        test_index=test,
        feature_names=["x", "y", "z"],
        solution=solution,
        start=cosine_bells,
        start_gradient=cosine_bells_gradient,
        DESCR=_DESCR_SPHERE,
    )


def _bernoulli(X: Array, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Appendix B: a node is taken if either of two trials takes it, each with probability 1 - |x - c_j| / r_j."""
    taken = np.zeros(len(X), dtype=bool)
    for bell in BELLS:
        distance = np.linalg.norm(X - bell, axis=1)
        taken |= rng.random(len(X)) < 1.0 - distance / distance.max()
    return taken
