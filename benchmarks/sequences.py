"""Random sequences of updates beside fresh fits: ``python -m benchmarks.sequences [--count 200] [--first 0] [--threads 1]``

Each sequence begins with a fit, of a field or a table, smooth or rough, with noise or without. Then points come: everywhere, in
one place, beyond the others, with other responses at known places, or where `suggest` says; and points go: some, the oldest, or
those of one place. In the end the error to the truth, between the points that are there, is compared with that of a fresh fit of
the same points. Printed are the share of sequences within twice the fresh fit's error, and the others with their seeds, with what
`stale_` says, and with the errors of fresh fits of the same points in three other orders: what chance alone makes of the error.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy.spatial import cKDTree

from benchmarks.results import record
from stitchwork import StitchedRegressor

BEARABLE = 2.0  # times the error of a fresh fit
STEPS = ("everywhere", "place", "beyond", "known", "suggested", "forget some", "forget oldest", "forget place")
FUNCTIONS = {
    "wave": lambda X: np.sin(3.0 * X[:, 0]) * np.cos(2.0 * X[:, -1]) + 0.3 * X.sum(axis=1),
    "ripple": lambda X: np.sin(8.0 * np.linalg.norm(X, axis=1)),
    "front": lambda X: np.tanh(8.0 * (X.mean(axis=1) - 0.1)),
    "peak": lambda X: np.exp(-20.0 * np.square(X - 0.2).mean(axis=1)) + 0.1 * X[:, 0],
    "kink": lambda X: np.abs(X[:, 0] - 0.1) + 0.2 * X[:, -1],
    "plane": lambda X: 1.0 + X @ np.arange(1.0, X.shape[1] + 1.0),
}


class Sequence:
    """A function, its points and what happens to them, all of it from one seed."""

    def __init__(self, seed: int):
        self.rng = rng = np.random.default_rng([33, seed])
        self.seed, self.d = seed, int(rng.choice([1, 2, 2, 2, 3, 3, 5]))
        self.function = str(rng.choice(list(FUNCTIONS)))
        self.noise = float(rng.choice([0.0, 0.0, 0.01, 0.1, 0.5]))
        self.settings = {"region_size": int(rng.integers(15, 40))} if rng.random() < 0.9 else {}
        self.settings["random_state"] = seed  # of suggestions
        self.n = int(rng.integers(200, 500) if "region_size" in self.settings else rng.integers(1001, 1400))
        self.steps = [str(step) for step in rng.choice(STEPS, size=rng.integers(2, 9))]
        self.scale = float(FUNCTIONS[self.function](self.points(1000)).std())
        self.X = np.empty((0, self.d))

    def points(self, count: int) -> np.ndarray:
        return self.rng.uniform(-1.0, 1.0, (count, self.d))

    def respond(self, X: np.ndarray) -> np.ndarray:
        """Responses with noise."""
        return FUNCTIONS[self.function](X) + self.noise * self.scale * self.rng.normal(size=len(X))

    def nearest(self, count: int) -> np.ndarray:
        """The points nearest to one of them."""
        return np.argsort(np.linalg.norm(self.X - self.X[self.rng.integers(len(self.X))], axis=1))[:count]

    def take(self, model: StitchedRegressor, step: str) -> None:
        """One step: points come or go."""
        n, rng = len(self.X), self.rng
        count = int(rng.integers(1, max(n // 5, 2)))
        if step.startswith("forget"):
            order = {"some": rng.permutation(n), "oldest": np.arange(n), "place": self.nearest(n)}[step.split()[1]]
            gone = order[: min(count, n // 2)]
            model.forget(self.X[gone])
            self.X = np.delete(self.X, gone, axis=0)
            return
        if step == "known":
            new = self.X[rng.permutation(n)[:count]]
        elif step == "suggested":
            new = model.suggest(min(count, 40))
        else:
            new = self.points(count)
            new = 0.2 * new + 0.7 * self.points(1) if step == "place" else new + 1.0 * (step == "beyond") * np.eye(self.d)[0]
        model.partial_fit(new, self.respond(new))
        self.X = self.X if step == "known" else np.concatenate([self.X, new])

    def grow(self) -> StitchedRegressor:
        """The model after all steps."""
        self.X = self.points(self.n)
        model = StitchedRegressor(**self.settings).fit(self.X, self.respond(self.X))
        for step in self.steps:
            self.take(model, step)
        return model

    def fit_again(self, model: StitchedRegressor, order: np.ndarray) -> StitchedRegressor:
        """A fresh fit of the points of a model, in some order."""
        points = model.model_.points.at(order)
        return StitchedRegressor(**self.settings).fit(model.model_.X[order], points.y[:, 0], points.v)

    def error(self, model: StitchedRegressor, Q: np.ndarray) -> float:
        """Root mean squared error to the truth, in deviations of the function; a share of 1e-9 is rounding."""
        return max(float(np.sqrt(np.mean((model.predict(Q) - FUNCTIONS[self.function](Q)) ** 2))) / self.scale, 1e-9)

    def between(self, X: np.ndarray) -> np.ndarray:
        """Places between points and their neighbours."""
        some = self.rng.integers(len(X), size=4000)
        near = cKDTree(X).query(X[some], k=2 * self.d + 2)[1]
        other = near[np.arange(len(some)), self.rng.integers(1, near.shape[1], size=len(some))]
        return X[some] + self.rng.random((len(some), 1)) * (X[other] - X[some])

    def __str__(self) -> str:
        settings = f" h={self.settings['region_size']}" if "region_size" in self.settings else ""
        return f"seed {self.seed}: {self.function} d={self.d} n={self.n}{settings} noise {self.noise:g}: {', '.join(self.steps)}"


def main() -> None:
    """Print the share of sequences that are bearable, and the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first sequence")
    parser.add_argument("--record", action="store_true", help="keep the figures in docs/results.json")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    ratios, staleness, started = [], [], time.process_time()
    for seed in range(chosen.first, chosen.first + chosen.count):
        sequence = Sequence(seed)
        model = sequence.grow()
        stored = np.arange(model.model_.n_points)
        Q = sequence.between(model.model_.X)
        fresh = sequence.error(sequence.fit_again(model, stored), Q)
        ratios.append(sequence.error(model, Q) / fresh)
        staleness.append(model.stale_)
        if ratios[-1] > BEARABLE:
            others = [sequence.error(sequence.fit_again(model, sequence.rng.permutation(stored)), Q) for _ in range(3)]
            told = ", ".join(f"{other:.2g}" for other in others)
            print(
                f"{ratios[-1]:6.2f} times {fresh:.2g} (in other orders {told}), stale_ {model.stale_:.2f}  {sequence}", flush=True
            )
    ratio, far = np.array(ratios), np.array(ratios) > BEARABLE
    told = np.array(staleness)[far] > BEARABLE
    figures = {
        "share within twice the error of a fresh fit": float(1.0 - far.mean()),
        "of the others stale_ tells": float(told.mean()) if far.any() else 1.0,
        "geometric mean of the ratio": float(np.exp(np.log(ratio).mean())),
        "largest ratio": float(ratio.max()),
        "share of the others of which stale_ alarms": float((np.array(staleness)[~far] > BEARABLE).mean()),
    }
    for name, value in figures.items():
        print(f"{name}: {value:.3g}")
    print(f"{len(ratio)} sequences, {time.process_time() - started:.0f} CPU s")
    if chosen.record:
        record("sequences", "python -m benchmarks.sequences --record", figures)


if __name__ == "__main__":
    main()
