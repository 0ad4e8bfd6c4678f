"""Saving and loading: one safetensors file with the arrays and a JSON header, never pickle.

The header holds the format version, the constructor's parameters and what is not an array. The file is written under a temporary
name and renamed, so an interrupted write leaves nothing behind.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ._assembly import Assembly
from ._blocks import BlockModels, Settings
from ._cover import Cover
from ._files import replacing
from ._local import Points
from ._metric import Space
from ._radial import kernel_named
from ._stitch import Level

FORMAT = "stitchwork"
FORMAT_VERSION = 1

_POINTS = ("X", "y", "v")
_COVER = ("center", "radii", "members")
_SETTINGS = ("kernel", "bandwidth", "ridge", "degree", "tolerance")
_MODELS = ("members", "origin", "scale", "sigma", "alpha", "lam")


@dataclass(frozen=True)
class ModelState:
    """All there is to a fitted model."""

    parameters: dict[str, Any]
    feature_names: list[str] | None
    flat: bool
    loo_error: float | None
    metric_trials: dict[str, float]
    space: Space
    points: Points
    assembly: Assembly


def write_model(state: ModelState, path: str | os.PathLike[str]) -> None:
    """Write a model to ``path``."""
    assembly = state.assembly
    if assembly.settings is None:
        raise ValueError("A `local_model` of your own cannot be saved without pickle. Save the training data and fit again.")
    arrays: dict[str, Any] = {"space/shift": state.space.shift, "space/A": state.space.A}
    arrays |= _fields("points", state.points, _POINTS) | _fields("cover", assembly.cover, _COVER)
    if assembly.scores is not None:
        arrays["scores"] = assembly.scores
    # Levels that share their models (the regions and the wider regions) share them on file, too.
    distinct: list[Any] = list({id(level.models): level.models for level in assembly.levels}.values())
    for i, level in enumerate(assembly.levels):
        arrays |= _fields(f"level{i}", level, ("centers", "radii"))
    for i, models in enumerate(distinct):
        arrays |= _fields(f"models{i}", models, _MODELS) | _fields(f"models{i}/settings", models.settings, _SETTINGS)
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "parameters": {name: _plain(value) for name, value in state.parameters.items()},
        "feature_names": state.feature_names,
        "flat": state.flat,
        "loo_error": state.loo_error,
        "metric_trials": state.metric_trials,
        "unit": state.space.unit,
        "models_of_level": [next(k for k, m in enumerate(distinct) if m is level.models) for level in assembly.levels],
        "kernels": [[kernel.name for kernel in models.settings.kernels] for models in distinct],
    }
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with replacing(Path(path)) as temporary:
        save_file(contiguous, temporary, metadata={FORMAT: json.dumps(header)})


def read_model(path: str | os.PathLike[str]) -> ModelState:
    """Read what `write_model` wrote; a `ValueError` says what is wrong with any other file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = read_header(file.metadata(), path)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return _restored_state(header, arrays)
    except SafetensorError as error:
        raise ValueError(f"{str(path)!r} is not a stitchwork model, or it is truncated ({error}). Save the model again.") from error
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{str(path)!r} lacks a part of a stitchwork model ({error!r}). Save the model again.") from error


def read_header(metadata: dict[str, str] | None, path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON header of a model file, checked."""
    if not metadata or FORMAT not in metadata:
        raise ValueError(f"{str(path)!r} is a safetensors file, but not a stitchwork model.")
    header: dict[str, Any] = json.loads(metadata[FORMAT])
    if header["version"] > FORMAT_VERSION:
        raise ValueError(
            f"{str(path)!r} has format version {header['version']}, and this stitchwork reads up to {FORMAT_VERSION}."
            " Upgrade stitchwork."
        )
    return header


def _restored_state(header: dict[str, Any], arrays: dict[str, Any]) -> ModelState:
    def rows(prefix: str, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: arrays[f"{prefix}/{name}"] for name in names}

    X, y, v = (arrays[f"points/{name}"] for name in _POINTS)
    points = Points(np.asfortranarray(X), y, v, np.arange(len(X)))
    d = points.X.shape[1]
    fitted = []
    for i, names in enumerate(header["kernels"]):
        settings = Settings(tuple(kernel_named(name, d) for name in names), **rows(f"models{i}/settings", _SETTINGS))
        fitted.append(BlockModels(X=points.X, settings=settings, **rows(f"models{i}", _MODELS)))
    levels = [
        Level(np.asfortranarray(arrays[f"level{i}/centers"]), arrays[f"level{i}/radii"], fitted[k])
        for i, k in enumerate(header["models_of_level"])
    ]
    return ModelState(
        parameters={name: _restored(value) for name, value in header["parameters"].items()},
        feature_names=header["feature_names"],
        flat=header["flat"],
        loo_error=header["loo_error"],
        metric_trials=header["metric_trials"],
        space=Space(arrays["space/shift"], arrays["space/A"], header["unit"]),
        points=points,
        assembly=Assembly(levels, Cover(**rows("cover", _COVER)), fitted[0].settings, arrays.get("scores")),
    )


def _fields(prefix: str, owner: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {f"{prefix}/{name}": getattr(owner, name) for name in names}


def _plain(value: Any) -> Any:
    """A constructor parameter as JSON; a matrix or grid keeps its shape, a random state is spent."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    return None if isinstance(value, np.random.RandomState) else list(value) if isinstance(value, tuple) else value


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        return np.array(value["array"])
    return tuple(value) if isinstance(value, list) else value
