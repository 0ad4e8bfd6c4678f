"""A stitched model in parts on disk: a folder with a manifest, the coarse model, and one file per shard.

The manifest is written last, and the whole folder under a temporary name, so a folder that has its name is complete.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ._boxes import Boxes
from ._cover import Cover
from ._files import write_whole
from ._io import ModelState, kernel_names, model_arrays, read_arrays, read_model, reading, restored_models, write_arrays
from ._local import Points
from ._shards import Shard, merged

SHARD_FORMAT = "stitchwork-shard"
SHARDS_FORMAT = "stitchwork-shards"
SHARDS_VERSION = 1
MANIFEST, COARSE = "manifest.json", "coarse.stitch"


@dataclass(frozen=True)
class Manifest:
    """What a sharded model is made of besides its shards and its coarse model.

    ``reach`` is the share of its radius within which a region speaks; ``hierarchy`` whether it also speaks, softly, beyond.
    """

    boxes: Boxes
    reach: float
    hierarchy: bool
    n_regions: int
    smoothness: float
    loo_error: float | None


def shard_name(number: int) -> str:
    """File name of a shard."""
    return f"shard-{number:05d}.safetensors"


def write_shard(shard: Shard, path: str | os.PathLike[str]) -> None:
    """Write one shard."""
    X, y, v, _ = shard.points
    arrays = {"X": X, "y": y, "v": v, "ids": shard.ids, "radii": shard.cover.radii, **model_arrays("models", shard.models)}
    header = {
        "version": SHARDS_VERSION,
        "own_points": shard.own_points,
        "own_regions": shard.own_regions,
        "kernels": kernel_names(shard.models),
    }
    write_arrays(path, arrays, SHARD_FORMAT, header)


def read_shard(path: str | os.PathLike[str]) -> Shard:
    """Read what `write_shard` wrote."""
    with reading(path):
        header, arrays = read_arrays(path, SHARD_FORMAT, SHARDS_VERSION)
        X = np.asfortranarray(arrays["X"])
        models = restored_models("models", arrays, X, header["kernels"])
        points = Points(X, arrays["y"], arrays["v"], np.arange(len(X)))
        cover = Cover(models.members[:, 0], arrays["radii"], models.members)
        return Shard(points, arrays["ids"], header["own_points"], cover, header["own_regions"], models)


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write the manifest of a folder, whose other files are there."""
    content = {
        "format": SHARDS_FORMAT,
        "version": SHARDS_VERSION,
        "boxes": manifest.boxes.tree,
        "dimension": manifest.boxes.d,
        **{name: getattr(manifest, name) for name in ("reach", "hierarchy", "n_regions", "smoothness", "loo_error")},
    }
    write_whole(folder / MANIFEST, json.dumps(content, indent=1).encode())


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of a folder; a `ValueError` says what is wrong with any other."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"There is no sharded model in {str(folder)!r}: {MANIFEST} is missing.")
    with reading(path):
        try:
            content: dict[str, Any] = json.loads(path.read_text())
        except json.JSONDecodeError as error:
            raise ValueError(f"{str(path)!r} is not a manifest, or it is truncated ({error}). Save the model again.") from error
        if content["version"] > SHARDS_VERSION:
            raise ValueError(
                f"{str(path)!r} has format version {content['version']}, and this stitchwork reads up to {SHARDS_VERSION}."
                " Upgrade stitchwork."
            )
        names = ("reach", "hierarchy", "n_regions", "smoothness", "loo_error")
        return Manifest(Boxes(content["boxes"], content["dimension"]), **{name: content[name] for name in names})


def read_whole(folder: str | os.PathLike[str]) -> ModelState:
    """All shards of a folder as one model."""
    manifest, state = read_manifest(folder), read_model(Path(folder) / COARSE)
    shards = [read_shard(Path(folder) / shard_name(number)) for number in range(len(manifest.boxes))]
    points, assembly = merged(shards, state.assembly, manifest.reach, manifest.hierarchy)
    return replace(state, points=points, assembly=assembly, loo_error=manifest.loo_error)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to write to; it takes the name ``path`` at the end, unless the block raised."""
    if path.exists() and not (path / MANIFEST).is_file():
        raise FileExistsError(f"{str(path)!r} exists and is not a sharded model. Choose another name.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
