"""Slices and grids: where to look at a function of many features, for pictures, pages and gridded files.

A slice is a line or a plane along one or two features through a point that fixes the others. A ball of the metric meets it in an
interval or an ellipse, exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parallel import ALONE, Threads
from .._types import Array
from ..model.stitched import StitchedModel

_FLATTEST = 1e-12  # least eigenvalue relative to the largest: if the metric nearly ignores a feature, ellipses are long but finite
_LEAST_COSINE = 0.1  # of the latitude in the middle of a map
_GRID = {1: 400, 2: 160}  # points along a side of a picture
_UP = {"y", "lat", "latitude", "northing", "north"}  # names of coordinates that point up on a map


class Ellipses(NamedTuple):
    """Balls that meet a slice: index of the region, centre (k, s), and axes (k, s, s): columns are half axes."""

    region: NDArray[np.intp]
    center: Array
    axes: Array


@dataclass(frozen=True)
class Slice:
    """A line or a plane along ``features`` (s,) through ``at`` (d,), within ``bounds`` (2, s); values of the ``others``."""

    features: tuple[int, ...]
    at: Array
    bounds: Array
    labels: tuple[str, ...]
    others: tuple[tuple[str, float], ...] = ()

    def axes(self, size: int | None = None) -> list[Array]:
        """Coordinates along each feature."""
        return [np.linspace(low, high, size or _GRID[len(self.features)]) for low, high in self.bounds.T]

    def points(self, axes: Sequence[Array]) -> Array:
        """All points of a grid on the slice, (product of lengths, d), the last feature fastest."""
        grid = np.meshgrid(*axes, indexing="ij")
        points = np.tile(self.at, (grid[0].size, 1))
        for feature, values in zip(self.features, grid, strict=True):
            points[:, feature] = values.ravel()
        return points

    def cut(self, centers: Array, radii: Array, metric: Array) -> Ellipses:
        """Where balls (x - c)ᵀ M (x - c) < r² meet the slice.

        With u the features of the slice and o the offset of the others from the centre, the left side is least at
        u = c_u - M_uu⁻¹ M_uo o, where oᵀ (M_oo - M_ou M_uu⁻¹ M_uo) o is left of r².
        """
        u = np.array(self.features)
        others = np.setdiff1d(np.arange(len(self.at)), u)
        offset = self.at[others] - centers[:, others]
        M_uu, M_uo = metric[np.ix_(u, u)], metric[np.ix_(u, others)]
        towards = np.linalg.pinv(M_uu) @ M_uo
        schur = metric[np.ix_(others, others)] - M_uo.T @ towards
        left = radii**2 - np.einsum("mo,op,mp->m", offset, schur, offset)
        region = np.flatnonzero(left > 0.0)
        values, vectors = np.linalg.eigh(M_uu)
        half = vectors / np.sqrt(np.maximum(values, _FLATTEST * (values.max() or 1.0)))
        return Ellipses(
            region,
            centers[np.ix_(region, u)] - offset[region] @ towards.T,
            np.sqrt(left[region])[:, None, None] * half,
        )


def make_slice(model: StitchedModel, features: Sequence[int | str] | None = None, at: ArrayLike | None = None) -> Slice:
    """A slice through a fitted model: along its two most relevant features, through the median of its data, unless told."""
    names, d = model.feature_names, model.n_features
    if features is None:
        most = np.sort(np.argsort(-model.relevance.mean(axis=0), kind="stable")[:2])
        chosen = tuple(sorted((int(k) for k in most), key=lambda k: points_up(names[k])))
    else:
        chosen = tuple(_feature_index(feature, names) for feature in features)
    if not 1 <= len(chosen) <= 2 or len(set(chosen)) < len(chosen):
        raise ValueError(f"`features` must be one or two different features, got {features!r}.")
    middle = model.frame[2] if at is None else np.asarray(at, dtype=np.float64)
    if middle.shape != (d,):
        raise ValueError(f"`at` must have {d} values, one for each feature, got shape {middle.shape}.")
    others = tuple((names[k], float(middle[k])) for k in range(d) if k not in chosen)
    return Slice(chosen, middle, model.frame[:2, list(chosen)], tuple(label_of(model, names[k]) for k in chosen), others)


def points_up(name: str) -> bool:
    """Whether a coordinate of this name points up on a map."""
    return name.lower() in _UP


def _feature_index(feature: int | str, names: list[str]) -> int:
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"There is no feature {feature!r}. The features: {', '.join(names)}.")
        return names.index(feature)
    if not -len(names) <= feature < len(names):
        raise ValueError(f"`features` must be below {len(names)}, got {feature}.")
    return int(feature) % len(names)


LAYERS = {
    "value": "{y}",
    "gradient": "length of the gradient of {y}",
    "laplacian": "trace of the Hessian of {y}",
    "coverage": "coverage",
    "deviation": "standard deviation of a new observation of {y}",
}


def layer_label(model: StitchedModel, name: str, output: int) -> str:
    """What one of `LAYERS` is called: with the unit of the output where the values have it, too."""
    target = model.target_names[output]
    return LAYERS[name].format(y=label_of(model, target) if name in ("value", "deviation") else target)


def layer_values(model: StitchedModel, X: Array, name: str, output: int, threads: Threads = ALONE) -> Array:
    """One of `LAYERS` at points ``X`` (q, d), (q,)."""
    if name == "coverage":
        return model.coverage(X, threads)
    if name == "deviation":
        return np.asarray(model.moments(X, threads).deviation()[:, output])
    if name == "gradient":
        return np.asarray(np.linalg.norm(model.jet(X, 1, threads).gradient[:, output], axis=-1))
    if name == "laplacian":
        return np.asarray(np.trace(model.jet(X, 2, threads).hessian[:, output], axis1=-2, axis2=-1))
    return model.jet(X, 0, threads).value[:, output]


def label_of(model: StitchedModel, column: str) -> str:
    """A column as pictures call it: "height above the sea (m)", or just its name where the data said no more."""
    about = model.origin.attributes.get(column, {})
    name = about.get("long_name", column)
    return f"{name} ({about['units']})" if "units" in about else name


_LONGITUDE, _LATITUDE = (re.compile(rf"{names}([^a-z].*)?", re.I) for names in ("(lon|lng|long|longitude)", "(lat|latitude)"))


def find_map(names: Sequence[str], bounds: Array) -> dict[str, int] | None:
    """Which features are ``longitude`` and ``latitude``, by their ``names`` and ``bounds`` (2, d) in degrees; None without a pair.

    Examples
    --------
    >>> find_map(["depth", "lon", "Latitude"], np.array([[0.0, 5.0, 44.0], [9.0, 15.0, 55.0]]))
    {'longitude': 1, 'latitude': 2}
    """
    across, up = ([k for k, name in enumerate(names) if kind.fullmatch(name)] for kind in (_LONGITUDE, _LATITUDE))
    if len(across) != 1 or len(up) != 1 or np.abs(bounds[:, across]).max() > 360.0 or np.abs(bounds[:, up]).max() > 90.0:
        return None
    return {"longitude": across[0], "latitude": up[0]}


def map_aspect(view: Slice) -> float | None:
    """How much longer a unit up is than a unit across: 1 / cos(latitude) in the middle of a map, None for other slices."""
    found = find_map(view.labels, view.bounds)
    if found is None:
        return None
    ratio = 1.0 / max(float(np.cos(np.radians(view.bounds[:, found["latitude"]].mean()))), _LEAST_COSINE)
    return ratio if found["latitude"] == 1 else 1.0 / ratio


def derivative_name(target: str, *features: str) -> str:
    """dy/da, d2y/dadb."""
    order = "" if len(features) == 1 else str(len(features))
    return f"d{order}{target}/" + "".join(f"d{feature}" for feature in features)
