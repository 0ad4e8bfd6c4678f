"""One safetensors file with a checksum: the description of a model, never pickle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save, save_file

from .._parallel import ALONE, Threads
from ..model.description import Description, describe, restore
from ..model.factors import describe_factors
from ..model.stitched import StitchedModel
from .checksum import BLANK, check, sign, signed
from .compact import check_rounding, narrow, round_coefficients, widen
from .whole import replacing

FORMAT = "stitchwork"
COMPACT_VERSION = 10  # of files with arrays of 32 bits
SLOPES_VERSION = 9  # of models with measured slopes; others have `VERSION`
VERSION = 8  # 8: extremes of the responses in regions; 7: slopes of scales; 6: points as given, what it takes to grow, charts

_FOR_C = ("/model0/factor", "/model0/factor_start", "deviation/factor")  # for C alone: Python computes factors when it needs them

OLDEST = 6  # oldest version that is read: what later ones added follows from the points, or did not exist then

_OLD_FORMATS = ("stitchwork", "stitchwork-shard")  # names of headers up to version 2


def write_model(
    model: StitchedModel, path: str | os.PathLike[str], factors: bool = False, compact: bool = False, threads: Threads = ALONE
) -> None:
    """Write a model to ``path``; ``factors`` adds what C needs for standard deviations, ``compact`` halves the size."""
    if model.settings is None:
        raise ValueError("Custom local models cannot be saved. Save the training data and refit.")
    further = describe_factors(model) if factors else {}
    if compact:
        rounded = round_coefficients(model)
        check_rounding(model, rounded, threads)
        model = rounded
    description = describe(model)
    arrays = description.arrays | further
    write_description(description._replace(arrays=narrow(arrays, model) if compact else arrays), Path(path), FORMAT)


def read_model(path: str | os.PathLike[str]) -> StitchedModel:
    """Read what `write_model` wrote; a `ValueError` says what is wrong with any other file."""
    with reading(path):
        return restore(read_description(Path(path), FORMAT))


def write_description(description: Description, path: Path, kind: str) -> None:
    """Write a header and arrays to a file of this kind."""
    version = SLOPES_VERSION if "points/slopes/direction" in description.arrays else VERSION
    if any(array.dtype.itemsize == 4 for array in description.arrays.values()):
        version = COMPACT_VERSION
    header = {"format": kind, "version": str(version), "crc32": BLANK, **description.header}
    arrays = {name: np.ascontiguousarray(array) for name, array in description.arrays.items()}
    with replacing(path) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode  # permissions by the umask; safetensors would make the file readable by its owner only
        try:
            save_file(arrays, temporary, metadata=header)
        except SafetensorError as error:
            raise OSError(f"{str(path)!r} could not be written: {error}") from error
        sign(temporary)
        temporary.chmod(mode)


def pack_description(description: Description) -> bytes:
    """The bytes of the file that `write_description` writes for a model."""
    header = {"format": FORMAT, "version": str(VERSION), "crc32": BLANK, **description.header}
    return signed(save({name: np.ascontiguousarray(array) for name, array in description.arrays.items()}, metadata=header))


def read_description(path: Path, kind: str) -> Description:
    """The header and the arrays of a file of this kind, to be called inside of `reading`."""
    with path.open("rb") as opened, safe_open(_name_of(opened, path), framework="numpy") as file:
        header = check_header(file.metadata(), kind)
        check(opened)
        arrays = {name: file.get_tensor(name) for name in file.keys() if not name.endswith(_FOR_C)}  # noqa: SIM118
        return Description(header, arrays if int(header["version"]) < COMPACT_VERSION else widen(arrays))


def _name_of(opened: BinaryIO, path: Path) -> str:
    """A name that reopens the open file, even if another file has replaced it at ``path`` since."""
    name = f"/dev/fd/{opened.fileno()}"
    # Systems without such names, such as Windows, do not let an open file be replaced.
    return name if os.path.exists(name) and os.path.samestat(os.stat(name), os.fstat(opened.fileno())) else str(path)


def read_facts(path: Path) -> tuple[dict[str, str], dict[str, tuple[int, ...]], dict[str, NDArray]]:
    """The header of a model file, the shapes of its arrays, and those arrays that are small; the others are not loaded."""
    with reading(path), safe_open(path, framework="numpy") as file:
        header = check_header(file.metadata(), FORMAT)
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        return header, shapes, {name: file.get_tensor(name) for name, shape in shapes.items() if np.prod(shape) <= 256}


def check_header(metadata: dict[str, str] | None, kind: str) -> dict[str, str]:
    """The header of a file of this kind and version."""
    found = metadata or {}
    if found.get("format") != kind:
        old = any(name in found for name in _OLD_FORMATS)
        raise ValueError(TOO_OLD.format("2 or less") if old else f"this is a safetensors file, but not a {kind} model")
    check_version(found.get("version", "0"))
    return found


TOO_OLD = "it has format version {}, which this stitchwork does not read. Fit the model again, or use stitchwork 0.1"


def check_version(version: object) -> None:
    """Raise a `ValueError` for a version that is not read."""
    number = int(version) if isinstance(version, int) or (isinstance(version, str) and version.isdecimal()) else 0
    if number > COMPACT_VERSION:
        raise ValueError(
            f"it has format version {number}, and this stitchwork reads versions up to {COMPACT_VERSION}. Upgrade stitchwork"
        )
    if number < OLDEST:
        raise ValueError(TOO_OLD.format(number))


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors raised while a file is read into messages that name the file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    try:
        yield
    except SafetensorError as error:
        raise ValueError(f"{str(path)!r} is not a stitchwork model, or it is truncated ({error}). Save the model again.") from error
    except ValueError as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}.") from error
