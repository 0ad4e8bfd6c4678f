"""Steady laminar flamelets of methane and air with GRI-Mech 3.0, on Cantera: S_i(Y) + χ(Z)/2 ∂²Y_i/∂Z² = 0.

Unit Lewis numbers, adiabatic, one atmosphere: enthalpy is linear in the mixture fraction Z, so the temperature follows from the
mass fractions Y and is no unknown. S_i is the molar production rate times the molecular weight over the density. The profiles are a
family in the dissipation rate χ_st at the stoichiometric mixture, followed up to extinction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfinv

from .._parallel import single_threaded_blas
from .._types import Array

_PRESSURE = 101_325.0
_NODES = 162
_LARGEST_UPDATE = 0.05  # of a mass fraction in one step of the iteration
_CONVERGED = 1e-11  # largest imbalance, relative to the largest source; updates of slow trace species fall more slowly
_SHORTEST_STEP = 1e-8  # s; below it the flame is taken to be out
_MOST_ITERATIONS = 80
_BURNING = 1200.0  # K, peak temperature
_DIFFERENCE = 1e-5, 1e-11  # step of the forward differences: a share of the mass fraction, and a least one for traces


@dataclass(frozen=True)
class Flame:
    """What stays the same along the family: the mechanism, the streams and the grid."""

    gas: Any
    Z: Array
    z_st: float
    ends: Array
    enthalpy: Array

    @property
    def weights(self) -> Array:
        """Molecular weights."""
        return self.gas.molecular_weights


def make_flame() -> Flame:
    """Air (0.21 O2, 0.79 N2 by volume) against methane, both at 300 K; 162 nodes, densest at the stoichiometric mixture."""
    import cantera

    gas = cantera.Solution("gri30.yaml")
    streams, enthalpies = [], []
    for mixture in ("O2:0.21, N2:0.79", "CH4:1"):
        gas.TPX = 300.0, _PRESSURE, mixture
        streams.append(gas.Y.copy())
        enthalpies.append(gas.enthalpy_mass)
    # CH4 + 2 O2: the oxygen that a unit of fuel takes.
    need = 2.0 * gas.molecular_weights[gas.species_index("O2")] / gas.molecular_weights[gas.species_index("CH4")]
    oxygen = streams[0][gas.species_index("O2")]
    z_st = float(oxygen / (need + oxygen))
    # Z = Z_st + a sinh(6 (s - s_0)), with a and s_0 such that s = 0 and s = 1 are the streams.
    s_0 = brentq(lambda s: np.sinh(6.0 * (1.0 - s)) * z_st - np.sinh(6.0 * s) * (1.0 - z_st), 0.01, 0.99, xtol=1e-15)
    Z = z_st + z_st / np.sinh(6.0 * s_0) * np.sinh(6.0 * (np.linspace(0.0, 1.0, _NODES) - s_0))
    Z[[0, -1]] = 0.0, 1.0
    return Flame(gas, Z, z_st, np.array(streams), enthalpies[0] + Z * (enthalpies[1] - enthalpies[0]))


def dissipation_shape(flame: Flame) -> Array:
    """χ(Z) / χ_st at the inner nodes: f(Z) / f(Z_st), f = exp(-2 erfinv(2Z - 1)²)."""
    f = np.exp(-2.0 * erfinv(2.0 * flame.Z[1:-1] - 1.0) ** 2)
    return f / np.exp(-2.0 * erfinv(2.0 * flame.z_st - 1.0) ** 2)


def second_difference(Z: Array) -> Array:
    """Weights (n, 3) of the three-point second derivative at the inner nodes of a grid of any spacing."""
    left, right = np.diff(Z)[:-1], np.diff(Z)[1:]
    outer = 2.0 / (left + right)
    return np.stack([outer / left, -outer * (1.0 / left + 1.0 / right), outer / right], axis=1)


def rates(flame: Flame, Y: Array) -> tuple[Array, Array]:
    """Temperatures (n,) and mass sources (n, species) at the inner nodes."""
    gas, T, S = flame.gas, np.empty(len(Y)), np.empty_like(Y)
    for i, y in enumerate(Y):
        gas.set_unnormalized_mass_fractions(y)
        gas.HP = flame.enthalpy[i + 1], _PRESSURE
        T[i], S[i] = gas.T, gas.net_production_rates * flame.weights / gas.density
    return T, S


def jacobian(flame: Flame, Y: Array) -> Array:
    """∂S/∂Y (n, species, species): forward differences at fixed temperature, and ∂S/∂T (-h_j / c_p)."""
    gas, J = flame.gas, np.empty((len(Y), Y.shape[1], Y.shape[1]))

    def sources(y: Array, T: float) -> Array:
        gas.set_unnormalized_mass_fractions(y)
        gas.TP = T, _PRESSURE
        return gas.net_production_rates * flame.weights / gas.density

    for i, y in enumerate(Y):
        gas.set_unnormalized_mass_fractions(y)
        gas.HP = flame.enthalpy[i + 1], _PRESSURE
        T, slope = gas.T, -gas.partial_molar_enthalpies / flame.weights / gas.cp_mass  # ∂T/∂Y_j at fixed enthalpy
        here = sources(y, T)
        step = _DIFFERENCE[0] * np.abs(y) + _DIFFERENCE[1]
        for j in range(len(y)):
            moved = y.copy()
            moved[j] += step[j]
            J[i, :, j] = (sources(moved, T) - here) / step[j]
        J[i] += np.outer((sources(y, T + 1e-3) - here) / 1e-3, slope)
    return J


def solve_tridiagonal(D: Array, below: Array, above: Array, F: Array) -> Array:
    """Block tridiagonal system with diagonal blocks ``D`` (n, s, s) and multiples of the identity beside them, (n,)."""
    n, x, inverse = len(D), F.copy(), np.empty_like(D)
    inverse[0] = np.linalg.inv(D[0])
    for i in range(1, n):
        factor = below[i] * inverse[i - 1]
        inverse[i] = np.linalg.inv(D[i] - above[i - 1] * factor)
        x[i] -= factor @ x[i - 1]
    x[-1] = inverse[-1] @ x[-1]
    for i in range(n - 2, -1, -1):
        x[i] = inverse[i] @ (x[i] - above[i] * x[i + 1])
    return x


def steady_profile(flame: Flame, Y: Array, chi_st: float, step: float) -> Array | None:
    """The steady mass fractions (n, species) at ``chi_st``, iterated from ``Y``; None where the flame goes out.

    Implicit pseudo-time steps, starting at ``step`` seconds and growing threefold, which turn into Newton's method; a step is cut
    when an update is too large. The chemistry's Jacobian is kept as long as it serves.
    """
    L = 0.5 * (chi_st * dissipation_shape(flame))[:, None] * second_difference(flame.Z)
    J, last = jacobian(flame, Y), np.inf
    for _ in range(_MOST_ITERATIONS):
        T, S = rates(flame, Y)
        if T.max() < _BURNING:
            return None
        around = np.concatenate([flame.ends[:1], Y, flame.ends[1:]])
        F = S + L[:, :1] * around[:-2] + L[:, 1:2] * Y + L[:, 2:] * around[2:]
        D = -J
        D[:, range(Y.shape[1]), range(Y.shape[1])] += 1.0 / step - L[:, 1:2]
        update = solve_tridiagonal(D, -L[:, 0], -L[:, 2], F)
        size = float(np.abs(update).max())
        if size > _LARGEST_UPDATE:
            step /= 10.0
            if step < _SHORTEST_STEP:
                return None
            continue
        Y = Y + update
        if np.abs(F).max() < _CONVERGED * np.abs(S).max():
            return Y
        if size > 0.1 * last:
            J = jacobian(flame, Y)
        last, step = size, 3.0 * step
    return None


def equilibrium(flame: Flame) -> Array:
    """Mass fractions in chemical equilibrium at the inner nodes."""
    Y = np.empty((len(flame.Z) - 2, flame.gas.n_species))
    for i, z in enumerate(flame.Z[1:-1]):
        flame.gas.TPY = 300.0, _PRESSURE, (1.0 - z) * flame.ends[0] + z * flame.ends[1]
        flame.gas.HP = flame.enthalpy[i + 1], _PRESSURE
        flame.gas.equilibrate("HP")
        Y[i] = flame.gas.Y
    return Y


def steady_family(
    flame: Flame, lowest: float = 0.01, highest: float = np.inf, steps: int = 49, bar: Any = None
) -> dict[str, Array]:
    """Profiles from χ_st = ``lowest`` up to extinction or ``highest``, by continuation from χ_st = 1 in both directions.

    Down in ``steps`` equal ratios, up with the same ratio until the flame goes out, then with its excess over one cut to a third,
    each time that it does, until it is below 0.4 %.
    """
    with single_threaded_blas():
        ratio = lowest ** (-1.0 / steps)
        first = steady_profile(flame, equilibrium(flame), 1.0, 1e-5)
        if first is None:
            raise RuntimeError("The flamelet solver did not converge from equilibrium at a dissipation rate of 1/s.")
        family = {1.0: first}
        for direction in (1.0 / ratio, ratio):
            chi, Y, factor, previous = 1.0, first, direction, None
            while abs(factor - 1.0) > 0.004 and lowest * 1.0001 < chi * factor * 1.001 and chi * factor <= highest:
                guess = Y if previous is None else Y + (Y - previous)
                found = steady_profile(flame, guess, chi * factor, 10.0)
                if bar is not None:
                    bar.update()
                if found is None:
                    factor, previous = 1.0 + (factor - 1.0) / 3.0, None
                    continue
                chi, previous, Y = chi * factor, Y, found
                family[chi] = found
        chis = np.array(sorted(family))
        return _describe(flame, chis, [family[chi] for chi in chis])


def _describe(flame: Flame, chis: Array, profiles: list[Array]) -> dict[str, Array]:
    """States and sources, temperature first, one row a node."""
    states, sources = [], []
    for Y in profiles:
        for i, y in enumerate(Y):
            gas = flame.gas
            gas.set_unnormalized_mass_fractions(y)
            gas.HP = flame.enthalpy[i + 1], _PRESSURE
            molar = gas.net_production_rates
            heat = -float(gas.partial_molar_enthalpies @ molar) / (gas.density * gas.cp_mass)
            states.append([gas.T, *y])
            sources.append([heat, *(molar * flame.weights / gas.density)])
    n = len(flame.Z) - 2
    return {
        "names": np.array(["T", *flame.gas.species_names]),
        "state": np.array(states),
        "sources": np.array(sources),
        "Z": np.tile(flame.Z[1:-1], len(profiles)),
        "chi_st": np.repeat(chis, n),
        "flamelet": np.repeat(np.arange(len(profiles)), n),
    }
