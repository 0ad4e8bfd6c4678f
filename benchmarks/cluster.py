"""What the cluster costs, and what it holds: ``python -m benchmarks.cluster [overhead] [outofcore] [--n N] [--json FILE]``

overhead: CPU seconds of a fit on one worker against `StitchedRegressor`, same points, same run, and wall seconds on two workers.
outofcore: 2·10⁷ points from Parquet, workers limited to 1.5 GB, fixed hyperparameters, peak memory of each. Workers are processes
with one thread. CPU is that of the workers and of this process, which holds client and scheduler.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

from stitchwork import StitchedRegressor
from stitchwork.dask import DaskStitchedRegressor
from stitchwork.datasets import make_2d
from stitchwork.datasets._generated import function_2d

PARTS = ("overhead", "outofcore")


@contextmanager
def workers(count, memory="auto"):
    """A client of so many worker processes."""
    with (
        dask.config.set({"distributed.admin.low-level-log-length": 100}),
        LocalCluster(n_workers=count, threads_per_worker=1, memory_limit=memory, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(_warm)
        yield client, cluster


def _warm():
    import stitchwork.dask

    return stitchwork.dask.__name__


def cpu(client):
    """CPU seconds of the workers and of this process."""
    return sum(client.run(time.process_time).values()) + time.process_time()


def points(n):
    """The 2-D test, 100,000 points a chunk."""
    data = make_2d(n)
    return data, da.from_array(data.data, chunks=(100_000, 2)), da.from_array(data.target, chunks=100_000)


def rmse(model):
    data = make_2d(100)
    Q = np.random.default_rng(7).uniform(data.data.min(axis=0), data.data.max(axis=0), (100_000, 2))
    return float(np.sqrt(np.mean((model.predict(Q) - function_2d(Q)) ** 2)))


def fitted(count, X, y, **parameters):
    """Wall and CPU seconds of a fit on so many workers, and its error."""
    with workers(count) as (client, _):
        before, started = cpu(client), time.perf_counter()
        model = DaskStitchedRegressor(**parameters).fit(X, y)
        wall, used = time.perf_counter() - started, cpu(client) - before
        result = {"wall": wall, "cpu": used, "boxes": model.n_boxes_, "regions": model.n_regions_, "rmse": rmse(model)}
        started = time.perf_counter()
        model.predict(X).compute()
        return result | {"predict_wall": time.perf_counter() - started}


def overhead(n):
    """One worker against one machine, and two against one."""
    data, X, y = points(n)
    StitchedRegressor().fit(data.data[:2000], data.target[:2000])
    results = {}
    for name, parameters in (("default", {}), ("fixed", {"selection": None})):
        started = np.array([time.perf_counter(), time.process_time()])
        model = StitchedRegressor(**parameters).fit(data.data, data.target)
        wall, used = np.array([time.perf_counter(), time.process_time()]) - started
        results[f"{name}, one machine"] = {"wall": wall, "cpu": used, "regions": model.n_regions_, "rmse": rmse(model)}
        print(f"{name}, one machine", results[f"{name}, one machine"], flush=True)
        for count in (1, 2):
            results[f"{name}, {count} workers"] = fitted(count, X, y, **parameters)
            print(f"{name}, {count} workers", results[f"{name}, {count} workers"], flush=True)
        one, two = (results[f"{name}, {count} workers"] for count in (1, 2))
        print(
            f"{name}: CPU {one['cpu'] / used:.2f} times that of one machine; two workers {one['wall'] / two['wall']:.2f} times one"
        )
    return results


def outofcore(n, folder, limit="1.5GB"):
    """Fit Parquet that does not fit, and watch the workers' memory."""
    import dask.dataframe as dd
    import pandas as pd
    import psutil

    data, rows = Path(folder) / "data", 250_000

    def part(number):
        rng = np.random.default_rng(number)
        X = rng.uniform(-1, 1, (rows, 2)) * np.abs(make_2d(100).data).max(axis=0)
        return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": function_2d(X)})

    dd.from_map(part, range(n // rows)).to_parquet(data)
    size = sum(file.stat().st_size for file in data.rglob("*.parquet"))
    with workers(2, limit) as (client, cluster):
        peaks, done = {}, threading.Event()

        def watch():
            while not done.wait(0.2):
                for name, nanny in cluster.workers.items():
                    if nanny.pid:
                        memory = psutil.Process(nanny.pid).memory_info().rss / 2**30
                        peaks[str(name)] = max(memory, peaks.get(str(name), 0.0))

        threading.Thread(target=watch, daemon=True).start()
        frame = dd.read_parquet(data)
        before, started = cpu(client), time.perf_counter()
        model = DaskStitchedRegressor(selection=None, box_size=50_000).fit(frame[["a", "b"]], frame["y"])
        wall, used = time.perf_counter() - started, cpu(client) - before
        started = time.perf_counter()
        model.save(Path(folder) / "model")
        saved, total = time.perf_counter() - started, sum(f.stat().st_size for f in (Path(folder) / "model").iterdir())
        done.set()
        result = {
            "n": n,
            "data_gb": size / 2**30,
            "model_gb": total / 2**30,
            "wall": wall,
            "cpu": used,
            "save_wall": saved,
            "boxes": model.n_boxes_,
            "regions": model.n_regions_,
            "peak_gb": peaks,
            "limit": limit,
            "rmse": rmse(model),
        }
    print("out of core", result, flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="overhead, outofcore")
    parser.add_argument("--n", type=float, default=1e6, help="points for overhead")
    parser.add_argument("--big", type=float, default=2e7, help="points for outofcore")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    parts = arguments.parts or PARTS
    results = {}
    if "overhead" in parts:
        results |= overhead(int(arguments.n))
    if "outofcore" in parts:
        with tempfile.TemporaryDirectory() as folder:
            results["out of core"] = outofcore(int(arguments.big), folder)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
