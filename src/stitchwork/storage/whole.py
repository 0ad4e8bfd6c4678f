"""Files that are written whole or not at all: under a temporary name beside the place, then renamed."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def temporary_name(path: Path) -> Path:
    """A name beside ``path`` that no other thread or process uses."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name to write to; what was written takes the place of ``path`` at the end, unless the block raised.

    A link is followed: what it points to is replaced.
    """
    path = Path(os.path.realpath(path))
    temporary = temporary_name(path)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to write to; it takes the place of ``path`` at the end, unless the block raised."""
    path = Path(os.path.realpath(path))
    temporary = temporary_name(path)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)
