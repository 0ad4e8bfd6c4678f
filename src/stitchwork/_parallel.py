"""Threads over independent pieces of work, with one BLAS thread in each.

LAPACK and ufuncs release the interpreter lock, so threads scale; BLAS threads inside them would only fight for the same cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """One BLAS thread inside the block."""
    with _controller().limit(limits=1):
        yield


def parallel_map(
    function: Callable[[Item], Result], items: Sequence[Item], n_jobs: int | None = None, progress: str | None = None
) -> list[Result]:
    """``[function(item) for item in items]`` on threads that take one item after the other; ``progress`` names a progress bar."""
    with single_threaded_blas():
        threads = min(effective_n_jobs(n_jobs), len(items))
        if threads <= 1:
            return [function(item) for item in shown(items, progress)]
        queue = enumerate(shown(items, progress))
        turn = Lock()
        found: dict[int, Result] = {}

        def work() -> None:
            while True:
                with turn:
                    index, item = next(queue, (-1, None))
                if index < 0:
                    return
                found[index] = function(item)  # type: ignore[arg-type]

        with ThreadPoolExecutor(threads) as pool:
            for future in [pool.submit(work) for _ in range(threads)]:
                future.result()
        return [found[index] for index in range(len(items))]


def shown(items: Iterable[Item], progress: str | None, total: int | None = None) -> Iterable[Item]:
    """``items``, with a progress bar of that name while they are gone through."""
    if progress is None:
        return items
    from tqdm.auto import tqdm

    return tqdm(items, desc=progress, leave=False, total=total)


def slices(n: int, size: int) -> list[slice]:
    """Consecutive slices of at most ``size`` that make up ``range(n)``."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
