"""Saving and loading: one safetensors file with the arrays and a JSON header, never pickle.

The header holds the format version, the constructor's parameters and what is not an array. The file is written under a temporary
name and renamed, so an interrupted write leaves nothing behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
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
FORMAT_VERSION = 2  # 2: models may have points of their own

_POINTS = ("X", "y", "v")
_COVER = ("center", "radii", "members")
_SETTINGS = ("kernel", "bandwidth", "ridge", "degree", "tolerance")
_MODELS = ("members", "origin", "scale", "sigma", "alpha", "lam")


@dataclass(frozen=True)
class ModelState:
    """All there is to a fitted model."""

    parameters: dict[str, Any]
    feature_names: list[str] | None
    target_names: list[str] | None
    flat: bool
    loo_error: float | None
    metric_trials: dict[str, float]
    frame: Any
    space: Space
    points: Points
    assembly: Assembly


def write_model(state: ModelState, path: str | os.PathLike[str]) -> None:
    """Write a model to ``path``."""
    assembly = state.assembly
    if assembly.settings is None:
        raise ValueError("A `local_model` of your own cannot be saved without pickle. Save the training data and fit again.")
    arrays: dict[str, Any] = {"space/shift": state.space.shift, "space/A": state.space.A, "frame": state.frame}
    arrays |= _fields("points", state.points, _POINTS) | _fields("cover", assembly.cover, _COVER)
    if assembly.scores is not None:
        arrays["scores"] = assembly.scores
    # Levels that share their models (the regions and the wider regions) share them on file, too.
    distinct: list[Any] = list({id(level.models): level.models for level in assembly.levels}.values())
    for i, level in enumerate(assembly.levels):
        arrays |= _fields(f"level{i}", level, ("centers", "radii"))
    for i, models in enumerate(distinct):
        arrays |= model_arrays(f"models{i}", models)
        if models.X is not state.points.X:
            arrays[f"models{i}/X"] = models.X
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "parameters": {name: _plain(value) for name, value in state.parameters.items()},
        "feature_names": state.feature_names,
        "target_names": state.target_names,
        "flat": state.flat,
        "loo_error": state.loo_error,
        "metric_trials": state.metric_trials,
        "unit": state.space.unit,
        "models_of_level": [next(k for k, m in enumerate(distinct) if m is level.models) for level in assembly.levels],
        "kernels": [kernel_names(models) for models in distinct],
    }
    write_arrays(path, arrays, FORMAT, header)


def write_arrays(path: str | os.PathLike[str], arrays: dict[str, Any], name: str, header: dict[str, Any]) -> None:
    """Write a safetensors file with a JSON header under ``name``."""
    contiguous = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    with replacing(Path(path)) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode  # what the user's mask says; the library would keep the file to its owner
        save_file(contiguous, temporary, metadata={name: json.dumps(header)})
        temporary.chmod(mode)


def model_arrays(prefix: str, models: BlockModels) -> dict[str, Any]:
    """The arrays of fitted regions, less their points."""
    return _fields(prefix, models, _MODELS) | _fields(f"{prefix}/settings", models.settings, _SETTINGS)


def kernel_names(models: BlockModels) -> list[str]:
    """Names of the kernels that `restored_models` needs."""
    return [kernel.name for kernel in models.settings.kernels]


def restored_models(prefix: str, arrays: dict[str, Any], X: Any, names: list[str]) -> BlockModels:
    """Fitted regions over points ``X`` from their arrays and the names of their kernels."""
    kernels = tuple(kernel_named(name, X.shape[1]) for name in names)
    settings = Settings(kernels, **{name: arrays[f"{prefix}/settings/{name}"] for name in _SETTINGS})
    return BlockModels(X=X, settings=settings, **{name: arrays[f"{prefix}/{name}"] for name in _MODELS})


def read_model(path: str | os.PathLike[str]) -> ModelState:
    """Read what `write_model` wrote; a `ValueError` says what is wrong with any other file."""
    with reading(path):
        return _restored_state(*read_arrays(path, FORMAT, FORMAT_VERSION))


def read_facts(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    """The header of a model file and the shapes of its arrays, which are not loaded."""
    with reading(path), safe_open(path, framework="numpy") as file:
        header = read_header(file.metadata(), path)
        return header, {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say in terms of models what is wrong with a file that is read inside."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    try:
        yield
    except SafetensorError as error:
        raise ValueError(f"{str(path)!r} is not a stitchwork model, or it is truncated ({error}). Save the model again.") from error
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{str(path)!r} lacks a part of a stitchwork model ({error!r}). Save the model again.") from error


def read_arrays(path: str | os.PathLike[str], name: str, version: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a file that `write_arrays` wrote."""
    with safe_open(path, framework="numpy") as file:
        header = read_header(file.metadata(), path, name, version)
        return header, {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def read_header(
    metadata: dict[str, str] | None, path: str | os.PathLike[str], name: str = FORMAT, version: int = FORMAT_VERSION
) -> dict[str, Any]:
    """The JSON header of a model file, checked."""
    if not metadata or name not in metadata:
        raise ValueError(f"{str(path)!r} is a safetensors file, but not a {name} model.")
    header: dict[str, Any] = json.loads(metadata[name])
    if header["version"] > version:
        raise ValueError(
            f"{str(path)!r} has format version {header['version']}, and this stitchwork reads up to {version}. Upgrade stitchwork."
        )
    return header


def _restored_state(header: dict[str, Any], arrays: dict[str, Any]) -> ModelState:
    def rows(prefix: str, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: arrays[f"{prefix}/{name}"] for name in names}

    X, y, v = (arrays[f"points/{name}"] for name in _POINTS)
    points = Points(np.asfortranarray(X), y, v, np.arange(len(X)))
    space = Space(arrays["space/shift"], arrays["space/A"], header["unit"])
    fitted = [
        restored_models(f"models{i}", arrays, np.asfortranarray(arrays.get(f"models{i}/X", points.X)), names)
        for i, names in enumerate(header["kernels"])
    ]
    levels = [
        Level(np.asfortranarray(arrays[f"level{i}/centers"]), arrays[f"level{i}/radii"], fitted[k])
        for i, k in enumerate(header["models_of_level"])
    ]
    return ModelState(
        parameters={name: _restored(value) for name, value in header["parameters"].items()},
        feature_names=header["feature_names"],
        target_names=header.get("target_names"),
        flat=header["flat"],
        loo_error=header["loo_error"],
        metric_trials=header["metric_trials"],
        frame=arrays["frame"] if "frame" in arrays else frame_of(space.original(points.X)),
        space=space,
        points=points,
        assembly=Assembly(levels, Cover(**rows("cover", _COVER)), fitted[0].settings, arrays.get("scores")),
    )


def frame_of(X: Any) -> Any:
    """Least, greatest and median value of every feature, (3, d)."""
    return np.stack([X.min(axis=0), X.max(axis=0), np.median(X, axis=0)])


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
