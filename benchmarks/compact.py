"""What coefficients in single precision cost: files of `save(path, compact=True)` beside plain ones.

    python -m benchmarks.compact [--record]

For fields with and without noise: the size of the file, the change of values and gradients at held-out places, in units of their
root mean squares, and of the leave-one-out error, by which `save` decides. Errors do not depend on the machine's load.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.results import record
from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset, make_2d
from stitchwork.storage.compact import round_coefficients

PLACES = 5000


def plane(noise):
    """The paper's 2-D test, with noise in standard deviations."""
    data = make_2d(20_000)
    y = data.target + noise * data.target.std() * np.random.default_rng(0).normal(size=len(data.target))
    return data.data, y, data.test_data[:PLACES]


def survey(name):
    """A real field, some of it held out."""
    data = load_dataset(name)
    order = np.random.default_rng(0).permutation(len(data.data))
    return data.data[order[PLACES:]], data.target[order[PLACES:]], data.data[order[:PLACES]]


FIELDS = {
    "2d": lambda: plane(0.0),
    "2d, noisy": lambda: plane(0.1),
    "rio": lambda: survey("rio"),
    "ozone": lambda: survey("ozone"),
}


def size_of(model, **asked):
    """Bytes of its file, or None where that is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.stitch"
        try:
            model.save(path, **asked)
        except ValueError:
            return None
        return path.stat().st_size


def mean_square(x):
    """Root mean square of the lengths of vectors."""
    return float(np.sqrt(np.square(x).sum(axis=-1).mean()))


def measure(name):
    """Figures of one field."""
    X, y, Q = FIELDS[name]()
    model = StitchedRegressor().fit(X, y)
    jet, rounded = model.model_.jet(Q, 1), round_coefficients(model.model_).jet(Q, 1)
    change, slope = mean_square(rounded.value - jet.value), mean_square((rounded.gradient - jet.gradient)[:, 0])
    plain, compact = size_of(model), size_of(model, compact=True)
    return {
        "points": len(X),
        "share": None if compact is None else compact / plain,
        "value": change / float(np.std(y)),
        "gradient": slope / mean_square(jet.gradient[:, 0]),
        "of_loo": change / model.loo_error_,
    }


def main():
    """Print all of it, and record it if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the figures to docs/results.json")
    chosen = parser.parse_args()
    for name in FIELDS:
        found = measure(name)
        told = "refused" if found["share"] is None else f"{found['share']:.2f} of the size"
        print(f"{name:10} {told}; values change by {found['value']:.2g}, gradients by {found['gradient']:.2g},", end=" ")
        print(f"{found['of_loo']:.2g} of the leave-one-out error", flush=True)
        if chosen.record:
            record("compact", "python -m benchmarks.compact", {name: found})


if __name__ == "__main__":
    main()
