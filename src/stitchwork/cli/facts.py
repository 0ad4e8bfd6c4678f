"""What a saved model is, from its header alone, and the versions in use."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .. import native
from .._regressor import StitchedRegressor
from ..model.link import IDENTITY
from ..storage.file import read_facts
from ..storage.folder import COARSE, read_manifest


def model_facts(path: Path) -> list[tuple[str, str]]:
    """What the header of a saved model says."""
    header, shapes, arrays = read_facts(path / COARSE if path.is_dir() else path)
    d = shapes["frame"][1]
    features = ", ".join(json.loads(header["feature_names"]) or [f"x{k}" for k in range(d)])
    if path.is_dir():
        return [*_folder_facts(path), ("features", features), ("parameters", _parameters(header))]
    first = f"regions{int(arrays['levels/regions'][0])}"
    m, h = shapes[f"{first}/model0/members"]
    m //= int(arrays[f"{first}/together"][0]) if f"{first}/together" in arrays else 1
    targets = json.loads(header["target_names"]) or [f"{shapes['points/y'][1]} without a name"]
    factors = sum(8 * shape[0] for name, shape in shapes.items() if name.endswith("/factor"))
    return [
        ("file", f"{path}, {path.stat().st_size / 2**20:.1f} MB, format version {header['version']}"),
        ("points", f"{shapes['points/y'][0]:,}"),
        ("features", features),
        ("targets", ", ".join(targets) + ("" if header.get("link", IDENTITY) == IDENTITY else ", by logarithm")),
        ("regions", f"{m:,} of {h} points"),
        ("leave-one-out", _loo_text(json.loads(header["loo_error"]))),
        *([("factors", f"{factors / 2**20:.1f} MB, for standard deviations from C")] if factors else []),
        ("parameters", _parameters(header)),
    ]


def version_facts() -> list[tuple[str, str]]:
    """Versions of what predictions depend on, and whether they are compiled."""
    packages = ("stitchwork", "numpy", "scipy", "scikit-learn", "safetensors", "pyarrow")
    compiled = native.library() if native.available() else "no: built without a C compiler, or STITCHWORK_NATIVE=0; NumPy answers"
    python = (f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}", sys.platform)
    return [("python", " on ".join(python)), *((name, version(name)) for name in packages), ("compiled", compiled)]


def _folder_facts(folder: Path) -> list[tuple[str, str]]:
    manifest = read_manifest(folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    return [
        ("folder", f"{folder}, {size / 2**20:.1f} MB, {len(manifest.boxes)} parts"),
        ("points", f"{manifest.n_points:,}"),
        ("regions", f"{manifest.n_regions:,}"),
        ("leave-one-out", _loo_text(manifest.loo_error)),
    ]


def _loo_text(error: float | None) -> str:
    return "not computed" if error is None else f"RMSE {error:.3g}"


def _parameters(header: dict[str, str]) -> str:
    """The parameters that are not the default; a matrix by its shape."""

    def shown(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return dict(value["pairs"]) if "pairs" in value else f"array of shape {np.shape(value['array'])}"

    return repr(StitchedRegressor(**{name: shown(value) for name, value in json.loads(header["parameters"]).items()}))
