#!/usr/bin/env python3
"""Mixed work in one process for a long time: ``python tests/soak.py --minutes 30 [--threads 8] [--seed 0]``

Threads fit, predict, update, save, load and report, each with models of its own and all of them with one that is replaced now and
then. Every answer is compared with what the same model said before, in one thread. Memory is measured at intervals, after the first
fifth of the time, and must not grow. Exit status 1 if an answer was wrong, something raised, or memory grew.
"""

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from stitchwork import StitchedRegressor, load
from stitchwork.report import write_report

MOST_GROWTH = 0.1  # of the memory after a fifth of the time, and so many bytes, which the allocator may keep
SLACK = 64 << 20


def memory_in_use():
    """Resident bytes of this process, after a collection."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Shared:
    """A model that all threads ask, with queries and what it says of them; it is replaced whole."""

    def __init__(self, rng):
        self.rng, self.lock = rng, threading.Lock()
        self.replace()

    def replace(self):
        with self.lock:
            X, y = draw_data(self.rng, 400)
            model = StitchedRegressor(kernel="matern52", metric="euclidean", region_size=50).fit(X, y)
            Q = self.rng.uniform(-1, 1, (50, 2))
            self.now = model, Q, model.predict(Q), model.gradient(Q), model.predict(Q, return_std=True)[1]


def draw_data(rng, n):
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) * X[:, 1] + 0.05 * rng.normal(size=n)


def same(a, b, what):
    if not np.array_equal(a, b):
        raise AssertionError(f"{what}: differs by {np.abs(np.asarray(a) - b).max():.3g}")


def ask_shared(shared, rng, folder):
    model, Q, value, gradient, deviation = shared.now
    same(model.predict(Q), value, "predict")
    same(model.gradient(Q), gradient, "gradient")
    same(model.predict(Q, return_std=True)[1], deviation, "standard deviation")
    some = rng.permutation(len(Q))[:7]
    same(model.predict(Q[some]), value[some], "some queries")


def fit_and_ask(shared, rng, folder):
    X, y = draw_data(rng, int(rng.integers(5, 200)))
    a, b = (StitchedRegressor().fit(X, y) for _ in range(2))
    same(a.predict(X), b.predict(X), "two fits")


def save_and_load(shared, rng, folder):
    model, Q, value, *_ = shared.now
    path = folder / f"{threading.get_ident()}.stitch"
    model.save(path)
    same(load(path).predict(Q), value, "loaded")


def update(shared, rng, folder):
    X, y = draw_data(rng, 300)
    model = StitchedRegressor(kernel="matern52", metric="euclidean", region_size=50).fit(X, y)
    before = model.predict(X[:20])
    held = model.model_
    model.partial_fit(*draw_data(rng, 20))
    model.forget(X[:10])
    same(held.jet(X[:20], 0).value.ravel(), before, "the model before an update")
    if not np.isfinite(model.predict(X)).all():
        raise AssertionError("an updated model says NaN")


def report(shared, rng, folder):
    path = folder / f"{threading.get_ident()}.html"
    write_report(shared.now[0], path)
    if path.stat().st_size < 10_000:
        raise AssertionError("a report is too short")


def replace_shared(shared, rng, folder):
    shared.replace()


WORK = (*[ask_shared] * 8, fit_and_ask, *[save_and_load] * 2, update, report, replace_shared)


def run_thread(number, seed, end, shared, folder, counts, failures):
    rng = np.random.default_rng([seed, number])
    while time.monotonic() < end:
        task = WORK[rng.integers(len(WORK))]
        try:
            task(shared, rng, folder)
        except Exception:  # whatever it is, it is what this program looks for
            failures.append(f"{task.__name__} in thread {number}:\n{traceback.format_exc()}")
        counts[number][task.__name__] += 1


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--minutes", type=float, default=30.0)
    a.add_argument("--threads", type=int, default=8)
    a.add_argument("--seed", type=int, default=0)
    a = a.parse_args()
    begin = time.monotonic()
    end, counts, failures, sizes = begin + 60.0 * a.minutes, [Counter() for _ in range(a.threads)], [], []
    with tempfile.TemporaryDirectory() as name:
        shared = Shared(np.random.default_rng(a.seed))
        arguments = [(k, a.seed, end, shared, Path(name), counts, failures) for k in range(a.threads)]
        threads = [threading.Thread(target=run_thread, args=one) for one in arguments]
        for thread in threads:
            thread.start()
        while time.monotonic() < end:
            time.sleep(max(0.1, 60.0 * a.minutes / 30))
            sizes.append(memory_in_use())
        for thread in threads:
            thread.join()
    settled = sizes[len(sizes) // 5 :]
    third = max(1, len(settled) // 3)
    first, last = np.median(settled[:third]), np.median(settled[-third:])
    print(f"{a.minutes:g} minutes, {a.threads} threads:", dict(sum(counts, Counter())), f"{len(failures)} failures")
    print(
        f"memory: {first / 2**20:.0f} MB after a fifth of the time, {last / 2**20:.0f} at the end, {max(sizes) / 2**20:.0f} at most"
    )
    for failure in failures[:10]:
        print(failure)
    sys.exit(int(bool(failures) or bool(last > (1.0 + MOST_GROWTH) * first + SLACK)))


if __name__ == "__main__":
    main()
