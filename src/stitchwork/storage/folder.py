"""A model in parts on disk: a folder with a manifest, the coarse model, and one file per part.

The manifest is written last, and the folder is renamed after that, so a folder with its final name is complete.
"""

from __future__ import annotations

import io
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..local.blocks import BlockModels
from ..model.arrays import describe_points, describe_regions
from ..model.boxes import Boxes, check_tree, count_boxes
from ..model.description import Description, restore_kernels, restore_points, restore_regions
from ..model.parts import Part, assemble, number_rows
from ..model.reader import Reader
from ..model.stitch import Support
from ..model.stitched import StitchedModel
from .checksum import BLANK, check, sign
from .file import VERSION, check_version, read_description, read_model, reading, write_description
from .whole import replacing, replacing_folder

PART_FORMAT = "stitchwork-part"
FOLDER_FORMAT = "stitchwork-parts"
MANIFEST, COARSE = "manifest.json", "coarse.stitch"

_SUPPORTS = "voices"  # the key of the supports in a manifest
_FACTS = ("n_points", "n_regions", "smoothness", "box_size", "loo_error")
_HUGE = 1e300  # stands for infinity, which JSON lacks
_MOST_FEATURES = 10_000  # the limit of single files, too
_MOST = 1 << 53  # counts are below it


@dataclass(frozen=True)
class Manifest:
    """What describes a model in parts, besides its parts and its coarse model.

    ``supports`` are those of the levels that the regions form; ``box_size`` is the intended number of points in a box.
    """

    boxes: Boxes
    supports: tuple[Support, ...]
    n_points: int
    n_regions: int
    smoothness: float
    box_size: int
    loo_error: float | None


def part_name(number: int) -> str:
    """File name of a part."""
    return f"part-{number:05d}.safetensors"


def write_part(part: Part, path: Path) -> None:
    """Write one part."""
    models = part.regions.models
    assert isinstance(models, BlockModels)
    kernels = [kernel.name for kernel in models.settings.kernels]
    arrays = {"ids": part.ids, "own": np.array([part.own_points, part.own_regions])}
    arrays |= describe_points("points", part.points) | {"points/row": part.points.row}
    arrays |= describe_regions("regions0", part.regions, kernels, part.points.X)
    write_description(Description({"kernels": ",".join(kernels)}, arrays), path, PART_FORMAT)


def read_part(path: Path, d: int, t: int) -> Part:
    """Read what `write_part` wrote of a model with ``d`` coordinates and ``t`` outputs."""
    with reading(path):
        header, arrays = read_description(path, PART_FORMAT)
        read = Reader(arrays)
        read.take("points/X", "f", (None, d))
        read.take("points/y", "f", (None, t))
        points = restore_points(read, d)
        regions = restore_regions(read, "regions0", points, restore_kernels(header, d))
        n, m = len(points.X), len(regions.radii)
        ids = read.indices("ids", n, below=1 << 62)
        own_points, own_regions = read.indices("own", 2, below=max(n, m) + 1)
        if own_points > n or own_regions > m:
            raise ValueError("'own' must not exceed the number of points or regions")
        return Part(points, ids, int(own_points), regions, int(own_regions))


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write the manifest of a folder, whose other files are there."""
    content = {"format": FOLDER_FORMAT, "version": VERSION, "crc32": BLANK, "boxes": manifest.boxes.tree, "d": manifest.boxes.d}
    content |= {name: getattr(manifest, name) for name in _FACTS} | {_SUPPORTS: manifest.supports, "written": secrets.token_hex(8)}
    with replacing(folder / MANIFEST) as temporary:
        temporary.write_text(json.dumps(content | {"smoothness": min(manifest.smoothness, _HUGE)}, indent=1))
        sign(temporary)


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of a folder; a `ValueError` says what is wrong with any other."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"There is no model in parts in {str(folder)!r}: {MANIFEST} is missing.")
    with reading(path):
        text = path.read_bytes()
        try:
            content: Any = json.loads(text.decode())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"this is not a manifest, or it is truncated ({type(error).__name__})") from error
        if not isinstance(content, dict):
            raise ValueError("this is not a manifest")
        check_version(content.get("version"))
        if content.get("format") != FOLDER_FORMAT:
            raise ValueError("this is a manifest, but not that of a stitchwork model")
        check(io.BytesIO(text))
        missing = [name for name in ("boxes", "d", _SUPPORTS, *_FACTS) if name not in content]
        if missing:
            raise ValueError(f"{missing[0]!r} is missing")
        return _restore_manifest(content)


def _restore_manifest(content: dict[str, Any]) -> Manifest:
    """Check every field of a file's content, then make the manifest of it."""
    d, supports, error, smoothness = (content[name] for name in ("d", _SUPPORTS, "loo_error", "smoothness"))
    if type(d) is not int or not 1 <= d <= _MOST_FEATURES:
        raise ValueError(f"'d' must be a number of features from 1 to {_MOST_FEATURES:,}")
    check_tree(content["boxes"], d)
    if not isinstance(supports, list) or not supports or not all(_is_support(support) for support in supports):
        raise ValueError(f"{_SUPPORTS!r} must be pairs of positive numbers")
    if error is not None and not (_is_number(error) and error < _HUGE):
        raise ValueError("'loo_error' must be null or a number that is not negative")
    if not _is_number(smoothness):
        raise ValueError("'smoothness' must be a number that is not negative")
    for name, least in (("n_points", 1), ("n_regions", 1), ("box_size", 2)):
        if type(content[name]) is not int or not least <= content[name] < _MOST:
            raise ValueError(f"{name!r} must be a whole number of at least {least}")
    facts = {name: content[name] for name in _FACTS} | {
        "supports": tuple(Support(*support) for support in supports),
        "smoothness": np.inf if smoothness >= _HUGE else float(smoothness),
    }
    return Manifest(Boxes(content["boxes"], d), **facts)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0.0 <= value <= _HUGE


def _is_support(support: Any) -> bool:
    return isinstance(support, list) and len(support) == 2 and all(isinstance(x, float) and 0.0 < x < _HUGE for x in support)


def read_whole(folder: str | os.PathLike[str]) -> StitchedModel:
    """Read all parts of a folder as one model; start again if the folder was replaced meanwhile."""
    while True:
        before = _manifest_text(folder)
        try:
            model = _read_parts(Path(folder))
        except (OSError, ValueError):
            if _manifest_text(folder) == before:
                raise
        else:
            if _manifest_text(folder) == before:
                return model


def _manifest_text(folder: str | os.PathLike[str]) -> bytes | None:
    path = Path(folder) / MANIFEST
    return path.read_bytes() if path.is_file() else None


def open_folder(folder: Path) -> tuple[Manifest, StitchedModel]:
    """Read the manifest and the coarse model of a folder, and check that they agree."""
    manifest, coarse = read_manifest(folder), read_model(folder / COARSE)
    with reading(folder / MANIFEST):
        if coarse.dimension != manifest.boxes.d:
            raise ValueError(f"'d' is {manifest.boxes.d}, but the coarse model has {coarse.dimension} coordinates")
    return manifest, coarse


def _read_parts(folder: Path) -> StitchedModel:
    manifest, coarse = open_folder(folder)
    files = [folder / part_name(number) for number in range(len(manifest.boxes))]
    parts = [read_part(file, coarse.dimension, coarse.n_outputs) for file in files]
    with reading(folder / MANIFEST):
        if manifest.n_points != sum(part.own_points for part in parts):
            raise ValueError("'n_points' is not the number of points in its parts")
        if manifest.n_regions != sum(part.own_regions // part.regions.models_per_ball for part in parts):
            raise ValueError("'n_regions' is not the number of regions in its parts")
        if len({(part.regions.models_per_ball, part.regions.share is not None and part.regions.share.ndim) for part in parts}) > 1:
            raise ValueError("its parts have different numbers of models in a region")
    return replace(number_rows(assemble(coarse, parts, manifest.supports)), known_loo_error=manifest.loo_error)


@contextmanager
def replacing_model(path: Path) -> Iterator[Path]:
    """A temporary folder to write a model to; it then replaces ``path``, which must be a model or not exist.

    Only the files of the old model are deleted; other files in its folder stay.
    """
    if path.exists():
        model_files(path)  # before any work is done
    with replacing_folder(path, model_files) as temporary:
        yield temporary


def model_files(folder: Path) -> list[str]:
    """The names of the files of the model in a folder; a `FileExistsError` if the folder is not a model."""
    try:
        content: Any = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != FOLDER_FORMAT:
        raise FileExistsError(f"{str(folder)!r} exists and is not a model in parts. Choose another name.")
    return [MANIFEST, COARSE, *map(part_name, range(count_boxes(content.get("boxes"))))]
