"""What is asked of a model at some points besides values, as named columns: for tables, grids and fields alike."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

import numpy as np

from .._parallel import Threads
from .._types import Array
from ..model.samples import sample_paths
from ..model.stitched import StitchedModel
from .slices import derivative_name

METRES = "metres"
_COMPASS = ("east", "north")


class Asked(NamedTuple):
    """What is wanted besides values; with ``unit="metres"``, derivatives by longitude and latitude are those to east and north."""

    gradient: bool = False
    coverage: bool = False
    std: bool = False
    function_std: bool = False
    unit: str | None = None
    hessian: bool = False
    interval: float | None = None
    samples: int = 0
    seed: int = 0

    def check(self, model: StitchedModel) -> None:
        """Raise a `ValueError` for what this model cannot be asked."""
        if self.interval is not None and not 0.0 < self.interval < 1.0:
            raise ValueError(f"`--interval` must be a confidence between 0 and 1, such as 0.9, got {self.interval}.")
        per_unit(model, np.empty((0, model.n_features)), self.unit)
        if self.unit is not None and self.hessian:
            raise ValueError("`unit`='metres' is for first derivatives: ask for them without second ones.")

    def names(self, model: StitchedModel) -> list[str]:
        """Names of the columns of `rows`."""
        targets, slopes = model.target_names, self._slopes(model)
        names = list(targets)
        if self.gradient:
            names += [derivative_name(y, a) for y in targets for a in slopes]
        if self.hessian:
            names += [derivative_name(y, *pair) for y in targets for pair in combinations_with_replacement(slopes, 2)]
        names += [f"{y}_std" for y in targets] if self.std else []
        names += [f"{y}_function_std" for y in targets] if self.function_std else []
        names += [f"{derivative_name(y, a)}_std" for y in targets for a in slopes] if self.gradient and self.function_std else []
        names += [f"{y}_{end}" for y in targets for end in ("lower", "upper")] if self.interval is not None else []
        names += [f"{y}_sample{k}" for y in targets for k in range(self.samples)]
        return [*names, "coverage"] if self.coverage else names

    def paths(self, model: StitchedModel, X: Array, threads: Threads) -> Array:
        """The samples at points ``X``, (q, t, samples)."""
        return sample_paths(model, X, self.samples, np.random.RandomState(self.seed), threads)

    def rows(self, model: StitchedModel, X: Array, threads: Threads) -> Array:
        """The columns at points ``X``, (q, len(names))."""
        q, scale = len(X), per_unit(model, X, self.unit)
        jet = model.jet(X, 2 if self.hessian else int(self.gradient), threads)
        found = [jet.value]
        if self.gradient:
            found.append((jet.gradient if self.unit is None else jet.gradient * scale).reshape(q, -1))
        if self.hessian:
            found.append(jet.hessian[..., *np.triu_indices(model.n_features)].reshape(q, -1))
        if self.std or self.function_std or self.interval is not None:
            found += self._deviations(model, X, scale, threads)
        if self.samples:
            found.append(self.paths(model, X, threads).reshape(q, -1))
        if self.coverage:
            found.append(model.coverage(X, threads)[:, None])
        return np.concatenate(found, axis=1)

    def _deviations(self, model: StitchedModel, X: Array, scale: Any, threads: Threads) -> list[Array]:
        moments = model.moments(X, threads)
        found = [moments.deviation()] if self.std else []
        if self.function_std:
            found.append(moments.deviation(True))
            found += [(model.slopes(X, threads)[1] * scale).reshape(len(X), -1)] if self.gradient else []
        if self.interval is not None:
            found.append(model.calibration(threads).intervals(moments, self.interval).reshape(len(X), -1))
        return found

    def _slopes(self, model: StitchedModel) -> list[str]:
        """Names of the variables of differentiation."""
        names = list(model.feature_names)
        if self.unit == METRES and model.chart is not None and model.chart.globe is not None:
            for k, direction in zip(model.chart.globe, _COMPASS, strict=True):
                names[k] = direction
        return names

    def describe(self, model: StitchedModel) -> dict[str, dict[str, str]]:
        """``long_name`` and ``units`` of each column by the name that it has in NetCDF.

        A slash separates groups there: dy/da is called dy_da, and dy/da is its long name.
        """
        known, targets, names = model.origin.attributes, model.target_names, self.names(model)
        about: dict[str, dict[str, str]] = {name: {"long_name": name} for name in names}
        about |= {y: {"long_name": y} | known.get(y, {}) for y in targets}
        for y, (feature, by) in product(targets, zip(model.feature_names, self._slopes(model), strict=True)):
            unit = "m" if by != feature else known.get(feature, {}).get("units")
            for name in (derivative_name(y, by), f"{derivative_name(y, by)}_std"):
                if name in about:
                    about[name] |= _quotient(known.get(y, {}).get("units"), unit)
        ends = {
            "_std": "standard deviation of a new observation of ",
            "_function_std": "standard deviation of the function ",
            "_lower": "",
            "_upper": "",
        }
        for y, (end, text) in product(targets, ends.items()):
            if f"{y}{end}" in about:
                about[f"{y}{end}"] = known.get(y, {}) | {"long_name": f"{text}{y}" if text else f"{y}{end}"}
        return {name.replace("/", "_"): about[name] for name in names}


def per_unit(model: Any, X: Array, unit: str | None) -> Any:
    """Factors that convert gradients (q, t, d) at ``X`` to derivatives by ``unit``: 1, or an array (q, 1, d)."""
    if unit is None:
        return 1.0
    if unit != METRES:
        raise ValueError(f"`unit` must be None, for the units of the features, or 'metres', got {unit!r}.")
    if model.chart is None or model.chart.globe is None:
        raise ValueError("`unit`='metres' is for models of the globe. Fit with `geographic`=(longitude, latitude).")
    return model.per_metre(X)[:, None, :]


def _quotient(over: str | None, under: str | None) -> dict[str, str]:
    """The unit of a derivative, where both units are known."""
    if over is None or under is None:
        return {}
    return {"units": f"{over}/{under}" if under.isalnum() else f"{over}/({under})"}
