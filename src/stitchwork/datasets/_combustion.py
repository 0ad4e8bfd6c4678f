"""A combustion table (section 5.4): source terms of principal components of flamelet states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from .._types import Array
from ._flamelets import make_flame, steady_family
from ._home import cached_arrays

_DESCR_COMBUSTION = """\
Steady methane-air flamelets (GRI-Mech 3.0), after section 5.4 of "Locally Adaptive and Differentiable Regression".

The states (temperature and all species but N2 and AR) of the family of steady flamelets up to extinction are reduced to three
principal components δ; the response is the source term of the first of them, scaled to y = (max S - S) / range. The paper's own
table is not public; this one is computed with Cantera. Rows lie on curves, one per flamelet: a random split is close to
interpolation along them, and whole curves held out (``flamelet`` % 5 == 2) is the harder test.
"""


class Components(NamedTuple):
    """Principal components of scaled variables: δ = ((x - mean) / scale) @ loadings, S = (sources / scale) @ loadings."""

    mean: Array
    scale: Array
    loadings: Array

    def coordinates(self, state: Array) -> Array:
        """δ of states (n, variables)."""
        return (state - self.mean) / self.scale @ self.loadings

    def sources(self, sources: Array) -> Array:
        """Sources of the components, not centred."""
        return sources / self.scale @ self.loadings


def principal_components(state: Array, n_components: int = 3) -> Components:
    """Centred and divided by the deviation; the largest loading of each component is positive."""
    mean, scale = state.mean(axis=0), state.std(axis=0)
    U = (state - mean) / scale
    _, vectors = np.linalg.eigh(U.T @ U / len(U))
    loadings = vectors[:, ::-1][:, :n_components]
    largest = np.abs(loadings).argmax(axis=0)
    return Components(mean, scale, loadings * np.sign(loadings[largest, np.arange(n_components)]))


def flamelet_family(verbose: bool = False) -> dict[str, Array]:
    """The steady family up to extinction, computed once with Cantera (some minutes) and kept in the user's cache."""

    def compute() -> dict[str, Array]:
        from tqdm.auto import tqdm

        with tqdm(desc="flamelets", disable=not verbose, unit="flamelet") as bar:
            return steady_family(make_flame(), bar=bar)

    return cached_arrays("flamelets.npz", compute)


def make_combustion(verbose: bool = False) -> Bunch:
    """The combustion table, computed from the chemistry up.

    Returns
    -------
    Bunch
        ``data`` (n, 3), ``target`` (n,), ``flamelet``, ``Z`` and ``chi_st`` of every row, and ``sources`` (n, 3) of the components.

    Examples
    --------
    Needs Cantera and some minutes; kept in the user's cache afterwards.

    >>> from stitchwork.datasets import make_combustion
    >>> data = make_combustion()  # doctest: +SKIP
    """
    family: dict[str, Any] = flamelet_family(verbose)
    used = ~np.isin(family["names"], ["N2", "AR"])
    components = principal_components(family["state"][:, used])
    S = components.sources(family["sources"][:, used])
    return Bunch(
        data=components.coordinates(family["state"][:, used]),
        target=(S[:, 0].max() - S[:, 0]) / np.ptp(S[:, 0]),
        sources=S,
        **{key: family[key] for key in ("flamelet", "Z", "chi_st")},
        components=components,
        feature_names=["delta1", "delta2", "delta3"],
        DESCR=_DESCR_COMBUSTION,
    )
