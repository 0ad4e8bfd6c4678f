"""A cluster as an executor: steps of a fit are tasks of Dask, and handles are futures."""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Event, Thread
from typing import Any

from dask.distributed import Client, as_completed
from dask.tokenize import tokenize

from .._parallel import ALONE, Threads, single_threaded_blas

_PATIENCE = 60.0  # seconds until the states of the workers are checked
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


@dataclass(frozen=True)
class Cluster:
    """A client, and whether to show progress; each task uses one thread, since Dask runs them in parallel."""

    client: Client
    verbose: bool
    threads: Threads = ALONE
    keeps: bool = False

    def submit(self, step: Callable[..., Any], *arguments: Any, name: str, priority: int = 0) -> Any:
        """Run one step; it appears under its name on the dashboard."""
        key = f"stitchwork-{name}-{tokenize(step, *arguments)}"
        return self.client.submit(_run_quietly, step, *arguments, key=key, priority=priority)

    def map(self, step: Callable[..., Any], *columns: Sequence[Any], name: str, shared: tuple[Any, ...] = ()) -> list[Any]:
        """One task for every row of ``columns``, followed by what all of them share."""
        return [self.submit(step, *row, *shared, name=name) for row in zip(*columns, strict=True)]

    def gather(self, handles: Sequence[Any], name: str) -> list[Any]:
        """Results of tasks, with a progress bar."""
        with _watching(self.client):
            for _ in Threads(verbose=self.verbose).show(as_completed(list(handles)), name, len(handles)) if self.verbose else ():
                pass
            return list(self.client.gather(list(handles)))


@contextmanager
def _watching(client: Client) -> Iterator[None]:
    """Warn once, after a minute or more, if no worker of the cluster takes tasks: a fit would wait silently for ever."""
    done = Event()

    def watch() -> None:
        while not done.wait(_PATIENCE):
            message = _say_idle(client)
            if message and not done.is_set():
                warnings.warn(message, UserWarning, stacklevel=2)
                return

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()


def _say_idle(client: Client) -> str:
    """Why no worker takes a task; nothing if one does."""
    try:
        states = client.run_on_scheduler(_states)
    except (OSError, RuntimeError, ValueError):  # it is being closed
        return ""
    if not states:
        return "The cluster has no worker, so the fit waits. Start one, or interrupt."
    if all(state == "paused" for state in states):
        return (
            "All workers of the cluster are paused, since their memory is nearly used up, and the fit waits. Give them more memory"
            " (`memory_limit`), have fewer of them, or choose a smaller `box_size`."
        )
    return ""


def _states(dask_scheduler: Any) -> list[str]:
    """The states of all workers, asked of the scheduler."""
    return [worker.status.name for worker in dask_scheduler.workers.values()]


def _run_quietly(step: Callable[..., Any], *arguments: Any) -> Any:
    allocator = _allocator()
    try:
        with single_threaded_blas():
            return step(*arguments)
    finally:
        if allocator is not None:
            allocator.malloc_trim(0)


@cache
def _allocator() -> Any:
    """The C library where it is glibc, told to keep up to 64 MB of what is freed in pieces of less than 4 MB while a task runs.

    Dask makes workers return freed memory at once. The stacks of a fit would be requested again, page by page, ten thousand times:
    half of the measured time of a fit. Between tasks memory is returned, since holes in the heap count against a worker's limit.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "malloc_trim"):
        return None
    library.mallopt(_M_TRIM_THRESHOLD, 1 << 26)
    library.mallopt(_M_MMAP_THRESHOLD, 1 << 22)
    return library
