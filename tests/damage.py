"""Opens damaged model files in C under sanitizers: ``python tests/damage.py [--count 100000] [--seed 0]``

Nothing may crash, hang or leak; the statuses that were seen are printed with how often.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from compiled import PROGRAMS, SANITIZERS, linked_program

from stitchwork import StitchedRegressor


def small_models():
    """Models whose files are small, and different, with what is asked of `save`: two levels in the plane, a table with averaged
    models, two outputs on a line, a chart, and noise, which a compact file suits.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 2))
    yield StitchedRegressor(region_size=12, selection=None).fit(X, np.sin(4 * X[:, 0]) + X[:, 1]), {"factors": True}
    X = rng.normal(size=(40, 4))
    yield StitchedRegressor().fit(X, X[:, 0] * X[:, 1]), {}
    X = rng.uniform(size=(60, 1))
    yield StitchedRegressor(region_size=10, kernel="cubic", selection=None).fit(X, np.c_[X, X**2]), {"factors": True}
    X = rng.uniform((-180, 0, -90), (180, 24, 90), size=(80, 3))
    yield StitchedRegressor(geographic=(0, 2), periodic={1: 24}, region_size=12, selection=None).fit(X, X[:, 1]), {}
    X = rng.uniform(size=(80, 2))
    noisy = StitchedRegressor(region_size=20, selection=None, ridge=0.1, metric=np.array([[2.0, 0.5], [0.5, 1.0]]))
    yield noisy.fit(X, rng.normal(size=(80, 2))), {"compact": True, "factors": True}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = linked_program(PROGRAMS / "damage.c", SANITIZERS)
        for number, (model, asked) in enumerate(small_models()):
            path = Path(folder) / f"{number}.stitch"
            model.save(path, **asked)
            each = str(arguments.count // 5 + 1)
            done = subprocess.run([program, path, Path(folder) / "copy", each, str(arguments.seed)], check=False)
            if done.returncode:
                sys.exit(f"model {number}: the program ended with {done.returncode}")


if __name__ == "__main__":
    main()
