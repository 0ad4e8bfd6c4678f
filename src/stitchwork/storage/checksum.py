"""A checksum over every byte of a file, kept inside the file.

CRC-32 of the whole file, as in zlib and PNG (thirty lines of C, over 1 GB/s with eight tables). The eight hexadecimal digits of
the checksum itself count as zeros. They stand in the JSON text at the start of the file, after ``"crc32":"``.
"""

from __future__ import annotations

import io
import re
import zlib
from pathlib import Path
from typing import BinaryIO

BLANK = "00000000"

_PATTERN = re.compile(rb'"crc32": ?"([0-9a-f]{8})"')
_HEAD = 1 << 22  # the checksum stands within so many bytes from the start
_BLOCK = 1 << 22


def sign(path: Path) -> None:
    """Replace the blank checksum in a file by the right one."""
    with path.open("r+b") as file:
        place, checksum = _measure(file)
        file.seek(place)
        file.write(f"{checksum:08x}".encode())


def signed(data: bytes) -> bytes:
    """The bytes of a file with the blank checksum replaced by the right one."""
    place, checksum = _measure(io.BytesIO(data))
    return data[:place] + f"{checksum:08x}".encode() + data[place + len(BLANK) :]


def check(file: BinaryIO) -> None:
    """Raise a `ValueError` if an open file has changed since it was signed."""
    place, checksum = _measure(file)
    file.seek(place)
    if file.read(8) != f"{checksum:08x}".encode():
        raise ValueError("the checksum differs, so the file was damaged or changed")


def _measure(file: BinaryIO) -> tuple[int, int]:
    """Where the digits of the checksum stand, and what they should be."""
    file.seek(0)
    found = _PATTERN.search(file.read(_HEAD))
    if found is None:
        raise ValueError("there is no checksum")
    place = found.start(1)
    file.seek(0)
    checksum = zlib.crc32(BLANK.encode(), zlib.crc32(file.read(place)))
    file.seek(place + len(BLANK))
    while block := file.read(_BLOCK):
        checksum = zlib.crc32(block, checksum)
    return place, checksum
