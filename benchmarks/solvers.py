"""Tables of fluid properties for flow solvers, beside CoolProp's: ``python -m benchmarks.solvers [case …] [--record]``

CO₂ and water in (ρ, u), the variables of a compressible flow solver, and in (p, h). The truth is the Helmholtz equation of state
in CoolProp (``pip install 'stitchwork[bench]'``), asked by density and temperature, where it needs no iteration. Features are
(log ρ, u) or (log p, h). The saturation line is a kink, so there are two models, one outside of the two-phase region and one
inside, and a third, of one variable, of the line between them. Each of the two also knows some states beyond the line: metastable
ones, and mixtures of slightly more than 100 or less than 0 % vapour, so that the line is no border for either.

18,000 points outside and 2,000 inside. Those outside are a plain low-discrepancy set, or a quarter of it and then the points that
`suggest` picks, in three rounds. Errors are relative, at states of which the models know nothing; "far" are those not within 1 %
of the critical temperature and pressure. CPU time of one process; CoolProp is called row by row through its Python interface.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import CoolProp
import numpy as np
from CoolProp import AbstractState
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.stats import qmc

from stitchwork import StitchedRegressor

from .results import record
from .speed import ask_from_c

Array = NDArray[np.float64]

OUTSIDE, INSIDE, TESTS = 18_000, 2_000, 4_000
CRITICAL = 0.01  # "far" is farther than this from the critical temperature or pressure
GAS_CONSTANT = 8.314462618
RANGES = {"CO2": (220.0, 600.0), "Water": (300.0, 1100.0)}  # temperatures, K
PRESSURES = (1e5, 5e7)  # Pa
CASES = [(fluid, variables) for fluid in RANGES for variables in ("rho-u", "p-h")]
UNIT = 1e5  # energies in J/kg are asked in this unit, and pressures in bar


class States(NamedTuple):
    """Density, temperature, internal energy, enthalpy, pressure and speed of sound (n,), in SI units."""

    rho: Array
    T: Array
    u: Array
    h: Array
    p: Array
    c: Array

    def take(self, rows: Array) -> States:
        """Some of the states."""
        return States(*(column[rows] for column in self))


class Fluid:
    """The equation of state of a fluid, and its saturation line."""

    def __init__(self, name: str) -> None:
        self.name, (self.coldest, self.hottest) = name, RANGES[name]
        self.state = AbstractState("HEOS", name)
        self.one_phase = AbstractState("HEOS", name)
        self.one_phase.specify_phase(CoolProp.iphase_gas)  # no search for phases: metastable states, too
        self.Tc, self.pc, self.rhoc = self.state.T_critical(), self.state.p_critical(), self.state.rhomass_critical()
        self.gas = GAS_CONSTANT / self.state.molar_mass()
        # denser towards the critical point, where the line bends
        self.line_T = self.Tc - (self.Tc - 0.98 * self.coldest) * np.linspace(1.0, 1e-3, 2000) ** 2
        self.liquid, self.vapour = (self.saturated(self.line_T, quality) for quality in (0.0, 1.0))
        densities = np.concatenate([self.vapour.rho, self.liquid.rho[::-1]])
        self.boiling = PchipInterpolator(np.log(densities), np.concatenate([self.line_T, self.line_T[::-1]]), extrapolate=False)

    def saturated(self, T: Array, quality: float) -> States:
        """States on the saturation line."""
        found = []
        for t in T:
            self.state.update(CoolProp.QT_INPUTS, quality, t)
            found.append((self.state.rhomass(), t, self.state.umass(), self.state.hmass(), self.state.p(), np.nan))
        return States(*np.array(found).T)

    def single(self, rho: Array, T: Array) -> States:
        """States of one phase, wherever the equation has an answer."""
        found, state = np.full((len(rho), 4), np.nan), self.one_phase
        for row, (r, t) in enumerate(zip(rho, T, strict=True)):
            state.update(CoolProp.DmassT_INPUTS, r, t)
            c2 = state.first_partial_deriv(CoolProp.iP, CoolProp.iDmass, CoolProp.iSmass)
            found[row] = state.umass(), state.hmass(), state.p(), np.sqrt(c2) if c2 > 0.0 else np.nan
        return States(rho, T, *found.T)

    def outside(self, n: int, seed: int, margin: bool) -> States:
        """States of one phase, with those a little beyond the limits if there is a ``margin``."""
        draw = qmc.Sobol(2, rng=seed).random(1 << int(np.ceil(np.log2(5 * n))))
        wide = 1.0 if margin else 0.0
        least, most = PRESSURES[0] / (self.gas * self.hottest) * (1.0 - 0.1 * wide), 1.15 * self.liquid.rho[0]
        even, log = least + draw[:, 0] * (most - least), np.exp(np.log(least) + draw[:, 0] * np.log(most / least))
        rho = np.where(np.arange(len(draw)) % 2 == 0, even, log)
        low, high = self.coldest * (1.0 - 0.02 * wide), self.hottest * (1.0 + 0.03 * wide)
        T = low + draw[:, 1] * (high - low)
        boiling = np.nan_to_num(self.boiling(np.log(rho)), nan=0.0)
        beyond = 0.02 * self.Tc * np.minimum(1.0, 0.02 + 5.0 * (1.0 - boiling / self.Tc))  # the spinodal is near the critical point
        stays = boiling + 1e-6 * self.Tc < T if not margin else boiling - beyond < T
        found = self.single(rho[stays], T[stays])
        lowest = PRESSURES[0] * (1.0 - 0.5 * wide) - 2e6 * wide * (found.rho > self.rhoc)  # liquids bear tension
        sound = np.isfinite(found.c) & (found.c > 20.0) & (found.p > lowest) & (found.p < PRESSURES[1] * (1.0 + 0.2 * wide))
        return found.take(np.flatnonzero(sound)[:n])

    def inside(self, n: int, seed: int, margin: bool) -> States:
        """Mixtures of liquid and vapour: energy and volume are linear in the share of vapour."""
        draw = qmc.Sobol(2, rng=seed).random(1 << int(np.ceil(np.log2(n))))[:n]
        self.state.update(CoolProp.PQ_INPUTS, PRESSURES[0], 0.0)
        coldest = max(self.coldest, self.state.T()) * (0.99 if margin else 1.0)
        T = self.Tc - (self.Tc - coldest) * draw[:, 0] ** 1.5
        T = np.minimum(T, self.Tc * (1.0 - 1e-5))
        liquid, vapour = self.saturated(T, 0.0), self.saturated(T, 1.0)
        thin, share = liquid.rho / vapour.rho, draw[:, 1] * 1.06 - 0.03 if margin else draw[:, 1]
        # half of them evenly in the share of vapour, half in log ρ: near the liquid a little vapour makes all the difference
        x = np.where(np.arange(len(T)) % 2 == 0, share, (thin**share - 1.0) / (thin - 1.0))
        mix = [a + x * (b - a) for a, b in ((1 / liquid.rho, 1 / vapour.rho), (liquid.u, vapour.u), (liquid.h, vapour.h))]
        found = States(1.0 / mix[0], T, mix[1], mix[2], liquid.p, np.full(n, np.nan))
        return found.take(np.flatnonzero(mix[0] > 0.0))

    def far(self, states: States) -> Array:
        """Which states are not near the critical point."""
        return np.maximum(np.abs(states.T / self.Tc - 1.0), np.abs(states.p / self.pc - 1.0)) > CRITICAL


def features(states: States, variables: str) -> Array:
    """What a solver knows: (log ρ, u) or (log p, h)."""
    if variables == "rho-u":
        return np.column_stack([np.log(states.rho), states.u / UNIT])
    return np.column_stack([np.log(states.p), states.h / UNIT])


def answers(states: States, variables: str) -> Array:
    """What it wants: T, p and c, or T, ρ and c. Between the phases there is no speed of sound, and the volume is linear in h."""
    mixed = not np.isfinite(states.c).all()
    second = states.p / UNIT if variables == "rho-u" else 1.0 / states.rho if mixed else states.rho
    return np.column_stack([states.T, second] if mixed else [states.T, second, states.c])


NAMES = {"rho-u": ("T", "p", "c"), "p-h": ("T", "rho", "c")}


def design(fluid: Fluid, variables: str, n: int) -> States:
    """A quarter of n points spread evenly, then those that `suggest` picks among many, in three rounds."""
    pool = fluid.outside(4 * n, 1, True)
    if variables == "p-h":
        pool = pool.take(np.flatnonzero(pool.p > 0.5 * PRESSURES[0]))
    X, Y, taken = features(pool, variables), answers(pool, variables), np.zeros(len(pool.T), dtype=bool)
    taken[: n // 4] = True
    place = {tuple(x): row for row, x in enumerate(X)}
    for _ in range(3):
        model = StitchedRegressor().fit(X[taken], Y[taken])
        picked = model.suggest(n // 4, candidates=X[~taken])
        taken[[place[tuple(x)] for x in picked]] = True
    return pool.take(np.flatnonzero(taken))


def relative(found: Array, truth: Array) -> Array:
    """Relative errors, (n, t)."""
    return np.abs(found / truth - 1.0)


def errors(model: StitchedRegressor, states: States, far: Array, variables: str) -> dict[str, dict[str, float]]:
    """Median, 99 % and the worst of the relative errors of each output, and the worst far from the critical point."""
    wrong = relative(model.predict(features(states, variables)), answers(states, variables))
    return {
        name: {
            "median": float(np.median(e)),
            "99 %": float(np.quantile(e, 0.99)),
            "worst far": float(e[far].max()),
            "worst": float(e.max()),
        }
        for name, e in zip(NAMES[variables], wrong.T, strict=False)
    }


def slopes(fluid: Fluid, model: StitchedRegressor, states: States, variables: str, rows: Array) -> dict[str, float]:
    """Median relative errors of the derivatives of the first two outputs by ρ and u, or p and h."""
    keys = {"rho-u": (CoolProp.iDmass, CoolProp.iUmass), "p-h": (CoolProp.iP, CoolProp.iHmass)}[variables]
    outputs = (CoolProp.iT, CoolProp.iP if variables == "rho-u" else CoolProp.iDmass)
    scale = np.array([1.0, UNIT if variables == "rho-u" else 1.0])
    some = states.take(rows)
    G = model.gradient(features(some, variables))[:, :2] * scale[None, :, None]
    G[:, :, 0] /= (some.rho if variables == "rho-u" else some.p)[:, None]  # from log ρ to ρ
    G[:, :, 1] /= UNIT
    wrong = np.empty((len(rows), 2, 2))
    for i, (rho, T) in enumerate(zip(some.rho, some.T, strict=True)):
        fluid.one_phase.update(CoolProp.DmassT_INPUTS, rho, T)
        for o in range(2):
            for k in range(2):
                wrong[i, o, k] = G[i, o, k] / fluid.one_phase.first_partial_deriv(outputs[o], keys[k], keys[1 - k]) - 1.0
    names = NAMES[variables][:2]
    by = ("rho", "u") if variables == "rho-u" else ("p", "h")
    return {f"d{names[o]}/d{by[k]}": float(np.median(np.abs(wrong[:, o, k]))) for o in range(2) for k in range(2)}


def line_model(fluid: Fluid, variables: str) -> Callable[[States], Array]:
    """A function of states that tells which lie between the phases, from a model of one variable of the saturation line."""
    if variables == "rho-u":  # the energy of the line is one function of the density
        both = [np.concatenate([a, b[::-1]]) for a, b in ((fluid.vapour.rho, fluid.liquid.rho), (fluid.vapour.u, fluid.liquid.u))]
        model = StitchedRegressor().fit(np.log(both[0])[:, None], both[1] / UNIT)

        def between(states: States) -> Array:
            on_line = (states.rho > both[0][0]) & (states.rho < both[0][-1])
            return np.asarray(on_line & (states.u / UNIT < model.predict(np.log(states.rho)[:, None])))

        return between
    # two functions of the pressure, which meet at the critical one as cube roots do
    root = np.cbrt(1.0 - fluid.liquid.p / fluid.pc)[:, None]
    model = StitchedRegressor().fit(root, np.column_stack([fluid.liquid.h, fluid.vapour.h]) / UNIT)

    def between(states: States) -> Array:
        low, high = model.predict(np.cbrt(np.maximum(0.0, 1.0 - states.p / fluid.pc))[:, None]).T
        return np.asarray((states.p < fluid.pc) & (states.h / UNIT > low) & (states.h / UNIT < high))

    return between


def least_us(function: Callable[[], Any], rows: int) -> float:
    """µs of CPU a row, the least of three runs."""
    taken = []
    for _ in range(3):
        started = time.process_time()
        function()
        taken.append(time.process_time() - started)
    return 1e6 * min(taken) / rows


def coolprop(backend: str, fluid: Fluid, states: States, variables: str, n: int) -> dict[str, Any]:
    """Errors and µs of CoolProp at the first n states, or why it does not answer."""
    some, out = states.take(np.arange(n)), []
    pair = CoolProp.DmassUmass_INPUTS if variables == "rho-u" else CoolProp.HmassP_INPUTS
    arguments = list(zip(some.rho, some.u, strict=True) if variables == "rho-u" else zip(some.h, some.p, strict=True))
    started = time.process_time()
    state = AbstractState(backend, fluid.name)
    try:
        state.update(pair, *arguments[0])
    except ValueError as error:
        if "not supported" in str(error):
            return {"refused": str(error).strip()[:80]}
    opened, failed = time.process_time() - started, 0
    for x in arguments:
        try:
            state.update(pair, *x)
            out.append((state.T(), state.p() / UNIT if variables == "rho-u" else state.rhomass()))
        except ValueError:
            failed += 1
            out.append((np.nan, np.nan))

    def ask() -> None:
        for x in arguments:
            try:
                state.update(pair, *x)
                state.T(), state.p(), state.rhomass()
            except ValueError:
                pass

    wrong = relative(np.array(out), np.column_stack([some.T, some.p / UNIT if variables == "rho-u" else some.rho]))
    known, far = np.isfinite(wrong).all(axis=1), fluid.far(some)
    found: dict[str, Any] = {"opened s": opened, "failed": failed, "us": least_us(ask, n)}
    for name, e in zip(NAMES[variables], wrong.T, strict=False):
        found[name] = {
            "median": float(np.median(e[known])),
            "worst far": float(e[far & known].max()),
            "worst": float(e[known].max()),
        }
    return found


def times(model: StitchedRegressor, X: Array, Y: Array, Q: Array) -> dict[str, float]:
    """µs from C of a value with its gradient, one by one in random order, for all outputs and for the first alone."""
    order = np.random.default_rng(0).permutation(len(Q))
    alone = StitchedRegressor().fit(X, Y[:, 0])
    all_, one = (ask_from_c(m, Q[order]) for m in (model, alone))
    if not all_:
        return {}
    return {
        "single us": all_["c_single_us"],
        "single us, one output": one["c_single_us"],
        "ratio": all_["c_single_us"] / one["c_single_us"],
        "batch us, with gradient": all_["c_gradient_us"],
        "batch ratio": all_["c_gradient_us"] / one["c_gradient_us"],
    }


def run(fluid_name: str, variables: str, backends: list[str]) -> dict[str, Any]:
    """All figures of one case."""
    fluid = Fluid(fluid_name)
    tests, mixed = fluid.outside(TESTS, 7, False), fluid.inside(TESTS, 8, False)
    far = fluid.far(tests)
    result: dict[str, Any] = {}
    for how in ("spread", "suggested"):
        started = time.process_time()
        points = fluid.outside(OUTSIDE, 0, True) if how == "spread" else design(fluid, variables, OUTSIDE)
        if variables == "p-h":
            points = points.take(np.flatnonzero(points.p > 0.5 * PRESSURES[0]))
        X, Y = features(points, variables), answers(points, variables)
        model = StitchedRegressor().fit(X, Y)
        result[how] = {"points": len(X), "made s": time.process_time() - started, **errors(model, tests, far, variables)}
    some = np.flatnonzero(far)[:500]
    result["slopes"] = slopes(fluid, model, tests, variables, some)
    result["times"] = times(model, X, Y, features(tests, variables))
    points = fluid.inside(INSIDE, 3, True)
    two_phase = StitchedRegressor().fit(features(points, variables), answers(points, variables))
    result["inside"] = {"points": len(points.T), **errors(two_phase, mixed, fluid.far(mixed), variables)}
    result["kink"] = kink(fluid, model, two_phase, variables)
    between = line_model(fluid, variables)
    result["wrong phase"] = {"outside": float(between(tests).mean()), "inside": float((~between(mixed)).mean())}
    for backend in ("HEOS", *(f"{name}&HEOS" for name in backends)):
        n = 300 if backend == "HEOS" else TESTS // 2
        result[backend] = coolprop(backend, fluid, tests, variables, n)
        result[f"{backend}, inside"] = coolprop(backend, fluid, mixed, variables, n)
    return result


def kink(fluid: Fluid, model: StitchedRegressor, two_phase: StitchedRegressor, variables: str) -> dict[str, float]:
    """By how much the two models differ on the saturation line, relatively: medians and the worst far from the critical point."""
    T = np.linspace(max(fluid.coldest, 1.001 * fluid.line_T[0]), (1.0 - CRITICAL) * fluid.Tc, 300)
    found = {}
    for name, quality in (("liquid", 0.0), ("vapour", 1.0)):
        line = fluid.saturated(T, quality)
        line = line.take(np.flatnonzero(line.p > PRESSURES[0]))
        Q = features(line, variables)
        one, two = model.predict(Q)[:, :2], two_phase.predict(Q)
        apart = relative(one, two if variables == "rho-u" else np.column_stack([two[:, 0], 1.0 / two[:, 1]]))
        found |= {f"{name}, median": float(np.median(apart)), f"{name}, worst": float(apart.max())}
    return found


def show(case: str, result: dict[str, Any]) -> None:
    """A few lines for a case."""
    print(case)
    for name, found in result.items():
        parts = []
        for key, value in found.items():
            if isinstance(value, dict):
                parts.append(f"{key} " + " ".join(f"{k} {v:.1e}" for k, v in value.items()))
            else:
                parts.append(f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}")
        print(f"  {name:22} " + "; ".join(parts), flush=True)


def main() -> None:
    """Run the cases that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join('-'.join(case) for case in CASES)}")
    parser.add_argument("--tables", nargs="*", default=["BICUBIC"], help="CoolProp's tables; a new one takes a minute")
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results.json")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for fluid, variables in CASES:
        case = f"{fluid}-{variables}"
        if arguments.cases and case not in arguments.cases:
            continue
        result = run(fluid, variables, arguments.tables)
        show(case, result)
        if arguments.record:
            record("solvers", "python -m benchmarks.solvers --record", {case: result})


if __name__ == "__main__":
    main()
