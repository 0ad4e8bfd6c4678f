"""Real data sets, from files in the data home.

A file is looked for in ``$STITCHWORK_DATA``, then in the user's cache; if it is in neither and ``$STITCHWORK_DATA_URL`` names a
mirror of the data home, it is downloaded into the cache with pooch, its hash checked. Where all fails, the error says which file
belongs where. What the sets are, and where they come from, is in ``catalogue.json``.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from ..storage.whole import write_whole


class Entry(NamedTuple):
    """A data set: its file in the data home with its hash, what it is, where it is from, and the names of its features."""

    file: str
    sha256: str
    description: str
    source: str
    features: tuple[str, ...] = ()


DATASETS: dict[str, Entry] = {
    name: Entry(**entry) for name, entry in json.loads(files(__package__).joinpath("catalogue.json").read_text()).items()
}


def _table(a: Any, features: tuple[str, ...]) -> dict[str, Any]:
    """X and y, of X the columns that have a name (all of them if none has); the published test mask where there is one."""
    X = a["X"][:, : len(features) or None]
    return {"data": X, "target": a["y"], "test_mask": a.get("test_mask")}


def _heaton(a: Any, features: tuple[str, ...]) -> dict[str, Any]:
    used = a["train_mask"] | a["test_mask"]
    return {"data": a["X"][used], "target": a["y"][used], "test_mask": a["test_mask"][used]}


def _forest(a: Any, features: tuple[str, ...]) -> dict[str, Any]:
    return {"data": a["X"], "target": a["y"], "test_mask": a["holdout"]}


def _rio(a: Any, features: tuple[str, ...]) -> dict[str, Any]:
    """Also the number of the flight line of every row, those that tie others together apart."""
    return _table(a, features) | {"line": 2 * a["line_number"] + a["tie_line"]}


def _britain(a: Any, features: tuple[str, ...]) -> dict[str, Any]:
    """Longitude times cos(latitude) and latitude: near-equal lengths in both directions."""
    return {"data": a["X"][:, :2] * [np.cos(np.radians(54.0)), 1.0], "target": a["y"]}


def _gps(a: Any, features: tuple[str, ...]) -> dict[str, Any]:
    return {"data": a["X"], "target": 1e3 * a["velocity"], "target_std": 1e3 * a["std"]}


def _mountains(a: Any, features: tuple[str, ...]) -> dict[str, Any]:
    x, y = np.meshgrid(a["x"], a["y"])
    return {"data": np.stack([x.ravel(), y.ravel()], axis=1), "target": a["z"].ravel().astype(float)}


def _combustion(a: Any, features: tuple[str, ...]) -> dict[str, Any]:
    S, steady = a["S_all_steady"], a["regime"] == 0
    y = (S[:, 0].max() - S[:, 0]) / np.ptp(S[:, 0])
    return {"data": a["delta_all_steady"], "target": y, "sources": S, **{k: a[k][steady] for k in ("flamelet", "Z", "chi_st")}}


def _hydrogen(a: Any, features: tuple[str, ...]) -> dict[str, Any]:
    inside = (a["Z"] > 0.0) & (a["Z"] < 1.0)
    heat = a["sources"][inside, 0]
    return {"data": a["state"][inside], "target": heat / np.ptp(heat), "feature_names": a["names"].tolist()}


_READERS: dict[str, Callable[[Any, tuple[str, ...]], dict[str, Any]]] = {
    "heaton": _heaton,
    "forest": _forest,
    "rio": _rio,
    "britain": _britain,
    "gps": _gps,
    "mountains": _mountains,
    "combustion": _combustion,
    "hydrogen": _hydrogen,
}


def cache_folder() -> Path:
    """The user's cache: computed and downloaded data."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "stitchwork"


def data_home() -> list[Path]:
    """Folders that are searched, in this order.

    Examples
    --------
    >>> from stitchwork.datasets import data_home
    >>> data_home()[-1].name
    'stitchwork'
    """
    named = os.environ.get("STITCHWORK_DATA")
    return [Path(named), cache_folder()] if named else [cache_folder()]


def cached_arrays(name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``compute`` returns, from a file of that name in the user's cache if it was computed before."""
    path = cache_folder() / name
    if not path.exists():
        buffer = io.BytesIO()
        np.savez(buffer, **compute())
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, buffer.getvalue())
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def load_dataset(name: str) -> Bunch:
    """A real data set by name (see `DATASETS`), with ``test_mask`` where a split was published.

    Raises
    ------
    ValueError
        If there is no such data set, or what was downloaded is not the file that it should be.
    FileNotFoundError
        If its file is in no data home; the message says where to put it.

    Examples
    --------
    >>> from stitchwork.datasets import DATASETS, load_dataset
    >>> DATASETS["airfoil"].file
    'uci/airfoil.npz'
    >>> load_dataset("airfoil").data.shape  # doctest: +SKIP
    (1503, 5)
    """
    if name not in DATASETS:
        raise ValueError(f"`name` must be one of {', '.join(map(repr, DATASETS))}, got {name!r}.")
    entry = DATASETS[name]
    with np.load(_find(name, entry), allow_pickle=False) as arrays:
        found = _READERS.get(name, _table)(arrays, entry.features)
    names = list(entry.features) or [f"x{i + 1}" for i in range(found["data"].shape[1])]
    return Bunch(**{"feature_names": names, "test_mask": None, **found, "DESCR": f"{entry.description}\n\nSource: {entry.source}."})


def _find(name: str, entry: Entry) -> Path:
    """The file of a data set, downloaded if need be."""
    for home in data_home():
        if (home / entry.file).is_file():
            return home / entry.file
    mirror = os.environ.get("STITCHWORK_DATA_URL")
    if mirror:
        return _download(f"{mirror.rstrip('/')}/{entry.file}", entry)
    raise FileNotFoundError(
        f"The data set {name!r} is not on this machine. Put its file at {data_home()[-1] / entry.file}, or set the environment"
        f" variable STITCHWORK_DATA to a folder that holds {entry.file}, or STITCHWORK_DATA_URL to a mirror of such a folder."
    )


def _download(url: str, entry: Entry) -> Path:
    """Into the user's cache; pooch writes under a temporary name and raises a `ValueError` where the hash differs."""
    import pooch

    path = cache_folder() / entry.file
    return Path(pooch.retrieve(url, f"sha256:{entry.sha256}", fname=path.name, path=path.parent))
