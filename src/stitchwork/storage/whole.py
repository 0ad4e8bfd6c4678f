"""Atomic writes: files and folders are written under a temporary name beside the target, then renamed."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


def temporary_name(path: Path) -> Path:
    """A name beside ``path`` that no other thread or process uses."""
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")


def is_stream(path: Path) -> bool:
    """Whether ``path`` is a pipe or a device; an error if it is a folder or cannot be written to."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{str(path)!r} is a folder. Name a file.")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        raise ValueError(f"{str(path)!r} is neither a file nor a pipe. Name another file.")
    return not stat.S_ISREG(mode)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name to write to; what was written takes the place of ``path`` at the end, unless the block raised.

    A link is followed: its target is replaced. A pipe or a device is not replaced: the content is sent to it.
    """
    if is_stream(path):
        with _sending(path) as temporary:
            yield temporary
        return
    path = Path(os.path.realpath(path))
    temporary = temporary_name(path)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _sending(path: Path) -> Iterator[Path]:
    """A temporary name to write to; what was written is sent to the pipe or device ``path`` at the end."""
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / path.name
        yield temporary
        with temporary.open("rb") as source, open(os.open(path, os.O_WRONLY), "wb") as target:
            shutil.copyfileobj(source, target)


@contextmanager
def replacing_folder(path: Path, ours: Callable[[Path], Collection[str]]) -> Iterator[Path]:
    """A temporary folder to write to; it takes the place of ``path`` at the end, unless the block raised.

    After any interruption, ``path`` is either the complete old folder or the complete new one. ``ours`` names the files of the old
    folder that are replaced, or raises if the folder must stay; all other files in it are kept.
    """
    path = Path(os.path.realpath(path))
    temporary = temporary_name(path)
    aside = temporary.with_suffix(".old")
    temporary.mkdir(parents=True)
    new, former = temporary.stat(), None
    try:
        yield temporary
        former = _find_former(path, temporary, ours)
        if former is None:
            temporary.rename(path)
        else:
            exchange(temporary, path, aside)
    finally:
        if former is not None and _is_same(path, new):
            for old in (temporary, aside):
                _put_away(old, path, former)
        else:
            if aside.is_dir() and not path.exists():
                aside.rename(path)
            if _is_same(temporary, new):
                shutil.rmtree(temporary, ignore_errors=True)


def exchange(one: Path, other: Path, aside: Path) -> None:
    """Exchange two folders in one step (Linux); elsewhere ``other`` is moved to ``aside``, and ``one`` takes its place."""
    if sys.platform == "linux":
        rename = getattr(ctypes.CDLL(None), "renameat2", None)
        if rename is not None and rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
            return
    other.rename(aside)
    one.rename(other)


def _find_former(path: Path, new: Path, ours: Callable[[Path], Collection[str]]) -> set[str] | None:
    """The files that a new folder replaces, None if there is no old folder; an error if other files have the same names."""
    if not path.exists():
        return None
    former = {name for name in ours(path) if (path / name).is_file()}
    foreign = {entry.name for entry in path.iterdir()} - former
    taken = sorted(foreign & {entry.name for entry in new.iterdir()})
    if taken:
        raise FileExistsError(f"{str(path / taken[0])!r} is in the way: it is not part of the model there. Choose another name.")
    return former


def _put_away(old: Path, path: Path, former: set[str], again: bool = True) -> None:
    """Delete the files ``former`` of a folder ``old`` and move all others to ``path``."""
    try:
        if old.is_dir():
            for entry in list(old.iterdir()):
                if entry.name not in former:
                    entry.rename(path / entry.name)
            for name in former:
                (old / name).unlink(missing_ok=True)
            old.rmdir()
    except BaseException:
        if again:
            _put_away(old, path, former, again=False)
        raise


def _is_same(path: Path, known: os.stat_result) -> bool:
    return path.exists() and os.path.samestat(path.stat(), known)


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)
