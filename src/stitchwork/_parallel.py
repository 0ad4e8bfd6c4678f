"""Threads over independent pieces of work, with one BLAS thread in each, and a progress bar where one is wanted.

LAPACK and ufuncs release the interpreter lock, so threads scale; BLAS threads inside them would only fight for the same cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Threads:
    """How many threads work, as scikit-learn counts ``n_jobs``, and whether they show progress."""

    n_jobs: int | None = None
    verbose: bool = False

    @property
    def count(self) -> int:
        """Number of threads."""
        return max(1, effective_n_jobs(self.n_jobs))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], name: str = "") -> list[Result]:
        """``[function(item) for item in items]`` on threads that take one item after the other; ``name`` is that of the bar."""
        with single_threaded_blas():
            threads = min(self.count, len(items))
            if threads <= 1:
                return [function(item) for item in self.show(items, name)]
            queue = enumerate(self.show(items, name))
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

    def show(self, items: Iterable[Item], name: str, total: int | None = None) -> Iterable[Item]:
        """``items``, with a progress bar of that name while they are gone through, if one is wanted."""
        if not (self.verbose and name):
            return items
        from tqdm.auto import tqdm

        return tqdm(items, desc=name, leave=False, total=total)


ALONE = Threads()  # the caller's thread, and no bar


def slices(n: int, size: int) -> list[slice]:
    """Consecutive slices of at most ``size`` that make up ``range(n)``."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
