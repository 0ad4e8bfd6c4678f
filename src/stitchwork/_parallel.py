"""Threads over independent pieces of work, with one BLAS thread in each, and a progress bar where one is wanted.

LAPACK and ufuncs release the interpreter lock, so threads scale; BLAS threads inside them would only fight for the same cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from shutil import get_terminal_size
from threading import Event, Lock
from typing import Any, TypeVar

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
    """Number of threads, with ``n_jobs`` as in scikit-learn, and progress: a bar for each call (``verbose``), or one bar for the
    whole fit (``progress``).
    """

    n_jobs: int | None = None
    verbose: bool = False
    progress: Progress | None = None

    @property
    def count(self) -> int:
        """Number of threads."""
        return max(1, effective_n_jobs(self.n_jobs))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], name: str = "") -> list[Result]:
        """``[function(item) for item in items]`` on threads, one item at a time; ``name`` labels the progress bar.

        After an error or an interrupt, no thread starts another item.
        """
        with single_threaded_blas():
            threads = min(self.count, len(items))
            if threads <= 1:
                return [function(item) for item in self.show(items, name)]
            queue = enumerate(self.show(items, name))
            turn, stop = Lock(), Event()
            found: dict[int, Result] = {}

            def work() -> None:
                while True:
                    with turn:
                        index, item = next(queue, (-1, None))
                    if index < 0 or stop.is_set():
                        return
                    found[index] = function(item)  # type: ignore[arg-type]

            with ThreadPoolExecutor(threads) as pool:
                try:
                    for future in [pool.submit(work) for _ in range(threads)]:
                        future.result()
                finally:
                    stop.set()
            return [found[index] for index in range(len(items))]

    def show(self, items: Iterable[Item], name: str, total: int | None = None) -> Iterable[Item]:
        """Iterate over ``items``, with a progress bar called ``name`` if one is wanted."""
        if self.progress is not None:
            return self.progress.follow(items, total) if name else items
        if not (self.verbose and name):
            return items
        from tqdm.auto import tqdm

        return tqdm(items, desc=name, leave=False, total=total, **bar_size())


def bar_size() -> dict[str, int]:
    """Size of a bar: that of the terminal, or 80 by 24 if the terminal reports none, since no bar would show then."""
    size = get_terminal_size()
    return {"ncols": size.columns, "nrows": size.lines}


class Progress:
    """One bar for a fit in stages with an expected time each; it shows the stage, the percentage done and the time left."""

    def __init__(self, expected: dict[str, float]):
        from tqdm.auto import tqdm

        ends, whole = list(accumulate(expected.values())), sum(expected.values())
        self._ends = {name: end / whole for name, end in zip(expected, ends, strict=True)}
        self._starts = {name: end - expected[name] / whole for name, end in self._ends.items()}
        self._end = 0.0
        form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}, {remaining} left"
        self._bar: Any = tqdm(total=1.0, desc="fit", leave=False, bar_format=form, smoothing=0.0, **bar_size())

    def enter(self, stage: str) -> None:
        """Begin an expected stage; any other counts as part of the current one."""
        if stage in self._ends:
            self._end = self._ends[stage]
            self._bar.set_description_str(f"fit: {stage}", refresh=False)
            self._reach(self._starts[stage])

    def follow(self, items: Iterable[Item], total: int | None = None) -> Iterator[Item]:
        """Iterate over ``items``, advancing by half of what is left of the stage: how often a stage iterates is not known."""
        count = total if total is not None else len(items)  # type: ignore[arg-type]
        step = 0.5 * (self._end - self._bar.n) / max(count, 1)
        for item in items:
            yield item
            self._reach(self._bar.n + step)

    def _reach(self, share: float) -> None:
        self._bar.update(max(min(share, 1.0) - self._bar.n, 0.0))

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()


ALONE = Threads()  # the caller's thread, and no bar


def slices(n: int, size: int) -> list[slice]:
    """Consecutive slices of at most ``size`` that make up ``range(n)``."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
