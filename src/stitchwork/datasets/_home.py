"""Real data sets, from files in the data home.

A file is looked for in ``$STITCHWORK_DATA``, then in the user's cache. Where it is in neither, the error says which file belongs
where.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch


class Entry(NamedTuple):
    """Where a data set is; ``read(arrays)`` gives X, y, feature names and, where a split was published, a test mask."""

    file: str
    read: Callable[[Any], tuple[Any, Any, list[str], Any]]
    descr: str


def _uci(names: list[str] | None = None) -> Callable[[Any], tuple[Any, Any, list[str], Any]]:
    def read(a: Any) -> tuple[Any, Any, list[str], Any]:
        X = a["X"]
        return X, a["y"], names or [f"x{i + 1}" for i in range(X.shape[1])], a["test_mask"]

    return read


def _heaton(a: Any) -> tuple[Any, Any, list[str], Any]:
    used = a["train_mask"] | a["test_mask"]
    return a["X"][used], a["y"][used], ["longitude", "latitude"], a["test_mask"][used]


def _combustion(a: Any) -> tuple[Any, Any, list[str], Any]:
    S = a["S_all_steady"][:, 0]
    return a["delta_all_steady"], (S.max() - S) / np.ptp(S), ["delta1", "delta2", "delta3"], None


def _projected(latitude: float) -> Callable[[Any], tuple[Any, Any, list[str], Any]]:
    """Longitude times cos(latitude) and latitude: near-equal lengths in both directions."""

    def read(a: Any) -> tuple[Any, Any, list[str], Any]:
        X = a["X"][:, :2] * [np.cos(np.radians(latitude)), 1.0]
        return X, a["y"], ["easting", "northing"], None

    return read


def _plain(names: list[str]) -> Callable[[Any], tuple[Any, Any, list[str], Any]]:
    return lambda a: (a["X"][:, : len(names)], a["y"], names, None)


_AIRFOIL = ["frequency", "angle of attack", "chord", "velocity", "displacement thickness"]

DATASETS: dict[str, Entry] = {
    "combustion": Entry(
        "combustion/ch4_air_gri30_flamelets.npz",
        _combustion,
        "Steady methane-air flamelets (GRI-Mech 3.0): scaled source of the first principal component against three of them.",
    ),
    "skillcraft": Entry(
        "uci/skillcraft.npz", _uci(), "UCI SkillCraft1 (Thompson et al. 2013): log gap between perception-action cycles."
    ),
    "airfoil": Entry(
        "uci/airfoil.npz",
        _uci(_AIRFOIL),
        "UCI Airfoil Self-Noise (Brooks, Pope, Marcolini 1989): centred sound pressure level in dB.",
    ),
    "kin40k": Entry("uci/kin40k.npz", _uci(), "Forward kinematics of an 8-link robot arm (Schwaighofer and Tresp 2003)."),
    "protein": Entry("uci/protein.npz", _uci(), "UCI physicochemical properties of protein tertiary structure (CASP 5-9)."),
    "pol": Entry("uci/pol.npz", _uci(), "Pole telecommunications (L. Torgo)."),
    "wine": Entry("uci/wine.npz", _uci(), "UCI Wine Quality, red (Cortez et al. 2009)."),
    "heaton": Entry("spatial/heaton_satellite.npz", _heaton, "Land surface temperature with large holes (Heaton et al. 2019)."),
    "britain": Entry(
        "geophysics/britain_magnetic.npz",
        _projected(54.0),
        "Aeromagnetic survey of Britain (British Geological Survey, UKRI 2021), total-field anomaly in nT.",
    ),
    "rio": Entry(
        "geophysics/rio_magnetic.npz",
        _plain(["longitude", "latitude"]),
        "Airborne magnetic survey of Rio de Janeiro (CPRM 1978), total-field anomaly in nT.",
    ),
    "baja": Entry(
        "geophysics/baja_bathymetry.npz",
        _plain(["longitude", "latitude"]),
        "Ship soundings off Baja California (GMT tutorial), depth in m.",
    ),
    "ozone": Entry(
        "ozone/cmaq_ozone_20050522.npz", _plain(["latitude", "longitude"]), "CMAQ model ozone of 2005-05-22 (US EPA), in ppb."
    ),
}


def data_home() -> list[Path]:
    """Folders that are searched, in this order."""
    named = os.environ.get("STITCHWORK_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "stitchwork"
    return [Path(named), cache] if named else [cache]


def load_dataset(name: str) -> Bunch:
    """A real data set by name (see `DATASETS`), with ``test_mask`` where a split was published.

    Raises
    ------
    ValueError
        If there is no such data set.
    FileNotFoundError
        If its file is in no data home; the message says where to put it.
    """
    if name not in DATASETS:
        raise ValueError(f"`name` must be one of {', '.join(map(repr, DATASETS))}, got {name!r}.")
    entry = DATASETS[name]
    for home in data_home():
        if (home / entry.file).is_file():
            with np.load(home / entry.file, allow_pickle=False) as arrays:
                X, y, names, mask = entry.read(arrays)
            return Bunch(data=X, target=y, feature_names=names, test_mask=mask, DESCR=entry.descr)
    raise FileNotFoundError(
        f"The data set {name!r} is not on this machine. Put its file at {data_home()[-1] / entry.file}, or set the environment"
        f" variable STITCHWORK_DATA to a folder that holds {entry.file}."
    )
