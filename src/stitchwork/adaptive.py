"""A learner for the package `adaptive`, whose runners call a slow function on many processes or machines.

`StitchedLearner` keeps the points that are suggested, pending and measured; `StitchedRegressor` does the rest:
`suggest` says where to measure, `partial_fit` adds the results. A model of a few hundred points takes up to a second to fit, so
points are suggested in batches, and the model is updated once for each batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.stats import qmc
from sklearn.base import clone

from ._extras import need
from ._regressor import StitchedRegressor
from ._types import Array
from .fitting.growth import is_stale
from .fitting.points import deviation_of

BaseLearner: Any = need("adaptive.learner", "`StitchedLearner`", "adaptive").BaseLearner

__all__ = ["StitchedLearner"]

Point = tuple[float, ...]
JUDGED_PLACES = 4096  # locations over which the loss is averaged: with 400 points, the volume of a cell is known to a third


class StitchedLearner(BaseLearner):
    """Learns a function on a box, with points where a stitched model is least certain.

    Parameters
    ----------
    function : callable
        Takes a point, a tuple of d floats, and returns a float or t of them.
    bounds : d pairs (low, high)
    model : StitchedRegressor, optional
        What to fit, ``StitchedRegressor(random_state=0)`` by default; it is copied.
    batch : int, default=20
        Points that are suggested at once; the model is updated once for each batch.
    start : int, optional
        Points of a Sobol sequence to begin with; ``max(10, 4 * d)`` by default.

    Attributes
    ----------
    data : dict of points to values
    pending_points : set of points that are under way
    model : StitchedRegressor, fitted to all values
    npoints : int

    Examples
    --------
    >>> import adaptive
    >>> from stitchwork.adaptive import StitchedLearner
    >>> learner = StitchedLearner(lambda x: np.tanh(5 * x[0]) + x[1] ** 2, bounds=[(-1, 1), (-1, 1)])
    >>> adaptive.runner.simple(learner, loss_goal=0.01)
    >>> learner.loss() < 0.01, learner.npoints < 200
    (True, True)
    >>> np.round(learner.model.predict([[0.5, 0.5]]) - np.tanh(2.5) - 0.25, 1) + 0.0
    array([0.])
    """

    def __init__(
        self,
        function: Callable[[Point], Any],
        bounds: Sequence[tuple[float, float]],
        model: StitchedRegressor | None = None,
        *,
        batch: int = 20,
        start: int | None = None,
    ):
        self.function, self.bounds = function, _check_bounds(bounds)
        d = len(self.bounds)
        self.batch = _check_count("batch", batch, 1)
        self.start = max(10, 4 * d) if start is None else _check_count("start", start, 2)
        self._model = StitchedRegressor(random_state=0) if model is None else clone(model)
        if not isinstance(self._model.local_model, str):
            raise ValueError("`model` must have a built-in `local_model`: custom ones have no leave-one-out error, and so no loss.")
        self.data: dict[Point, Any] = {}
        self.pending_points: set[Point] = set()
        self._waiting: list[Point] = []  # suggested, not yet asked for
        self._drawn = 0  # points taken from the Sobol sequence
        self._fitted = 0  # points in the fitted model, the first of `data`
        self._loss = np.inf

    @property
    def npoints(self) -> int:
        """Number of points with values.

        Examples
        --------
        >>> StitchedLearner(np.sum, [(0, 1), (0, 1)]).npoints
        0
        """
        return len(self.data)

    @property
    def model(self) -> StitchedRegressor:
        """The model, fitted to all values.

        Examples
        --------
        >>> learner = StitchedLearner(np.sum, [(0, 1), (0, 1)])
        >>> adaptive.runner.simple(learner, npoints_goal=10)
        >>> np.round(learner.model.predict([[0.25, 0.5]]), 6)
        array([0.75])
        """
        self._update()
        return self._model

    def ask(self, n: int, tell_pending: bool = True) -> tuple[list[Point], list[float]]:
        """The next n points, and how much each may lower the loss: an equal share for each point.

        The first points come from a Sobol sequence. With ``tell_pending=False``, the next call returns the same points.

        Examples
        --------
        >>> points, _ = StitchedLearner(np.sum, [(0, 1), (0, 1)]).ask(4)
        >>> len(points), len(points[0])
        (4, 2)
        """
        if len(self._waiting) < n:
            self._update()
            self._waiting += self._next(n - len(self._waiting))
        points = self._waiting[:n]
        if tell_pending:
            for point in points:
                self.tell_pending(point)
        return points, [self._loss / max(self.npoints, 1)] * n

    def tell(self, x: Iterable[float], y: Any) -> None:
        """Add the value at a point; a known value is not replaced.

        Examples
        --------
        >>> learner = StitchedLearner(np.sum, [(0, 1), (0, 1)])
        >>> learner.tell((0.5, 0.25), 0.75)
        >>> learner.data
        {(0.5, 0.25): 0.75}
        """
        point = self._check_point(x)
        if y is None:
            self.tell_pending(point)
        elif point not in self.data:
            known = next(iter(self.data.values()), y)
            if np.shape(y) != np.shape(known) or np.ndim(y) > 1 or not np.isfinite(np.asarray(y, dtype=float)).all():
                raise ValueError(f"`y` must be finite and of shape {np.shape(known)}, got {y!r} at {point}.")
            self._take(point)
            self.pending_points.discard(point)
            self.data[point] = y

    def tell_pending(self, x: Iterable[float]) -> None:
        """Note that the value at a point is pending, so that neither it nor its neighbours are suggested.

        Examples
        --------
        >>> learner = StitchedLearner(np.sum, [(0, 1), (0, 1)])
        >>> learner.tell_pending((0.5, 0.25))
        >>> learner.pending_points
        {(0.5, 0.25)}
        """
        point = self._check_point(x)
        self._take(point)
        if point not in self.data:
            self.pending_points.add(point)

    def remove_unfinished(self) -> None:
        """Forget which points are under way.

        Examples
        --------
        >>> learner = StitchedLearner(np.sum, [(0, 1), (0, 1)])
        >>> _ = learner.ask(3)
        >>> learner.remove_unfinished()
        >>> learner.pending_points
        set()
        """
        self.pending_points.clear()

    def loss(self, real: bool = True) -> float:
        """Leave-one-out error relative to the standard deviation of the responses, both averaged over the box; infinite at first.

        Every location in the box has the error of the point nearest to it, so that clusters of points count by the volume that they
        occupy. It is updated once per batch, also with ``real=False``.

        Examples
        --------
        >>> StitchedLearner(np.sum, [(0, 1), (0, 1)]).loss()
        inf
        """
        if self.npoints >= self._fitted + self.batch or self._fitted == 0:
            self._update()
        return self._loss

    def new(self) -> StitchedLearner:
        """A learner of the same function without data.

        Examples
        --------
        >>> StitchedLearner(np.sum, [(0, 1), (0, 1)], batch=5).new().batch
        5
        """
        return StitchedLearner(self.function, self.bounds.tolist(), self._model, batch=self.batch, start=self.start)

    def to_dataframe(
        self,
        with_default_function_args: bool = True,
        function_prefix: str = "function.",
        point_names: Sequence[str] | None = None,
        value_name: str = "value",
    ) -> Any:
        """The data as a `pandas.DataFrame`, a row for each point; values of t outputs are tuples.

        Examples
        --------
        >>> learner = StitchedLearner(np.sum, [(0, 1), (0, 1)])
        >>> learner.tell((0.5, 0.25), 0.75)
        >>> learner.to_dataframe(with_default_function_args=False).to_dict("records")
        [{'x0': 0.5, 'x1': 0.25, 'value': 0.75}]
        """
        rows = [(*x, y if np.ndim(y) == 0 else tuple(y)) for x, y in self.data.items()]
        frame = need("pandas", "A data frame").DataFrame(rows, columns=[*self._names(point_names), value_name])
        if with_default_function_args:
            need("adaptive.utils", "`StitchedLearner`", "adaptive").assign_defaults(self.function, frame, function_prefix)
        return frame

    def load_dataframe(
        self,
        df: Any,
        with_default_function_args: bool = True,
        function_prefix: str = "function.",
        point_names: Sequence[str] | None = None,
        value_name: str = "value",
    ) -> None:
        """Add the data that `to_dataframe` wrote; columns of the function's arguments become arguments again.

        Examples
        --------
        >>> learner = StitchedLearner(lambda x: x[0] + x[1], [(0, 1), (0, 1)])
        >>> learner.tell((0.5, 0.25), 0.75)
        >>> other = learner.new()
        >>> other.load_dataframe(learner.to_dataframe())
        >>> other.data
        {(0.5, 0.25): 0.75}
        """
        self.tell_many(df[list(self._names(point_names))].to_numpy(), df[value_name].tolist())
        if with_default_function_args:
            utils = need("adaptive.utils", "`StitchedLearner`", "adaptive")
            self.function = utils.partial_function_from_dataframe(self.function, df, function_prefix)

    def plot(self, n: int = 100) -> Any:
        """A curve or an image of the first output of the model, n points along an axis, with the data: needs holoviews.

        Examples
        --------
        >>> adaptive.Runner(learner, loss_goal=0.01).live_plot()  # doctest: +SKIP
        """
        d = len(self.bounds)
        if d > 2:
            raise ValueError(f"`plot` shows functions of one or two features, this has {d}: see `stitchwork.plotting`.")
        hv = need("adaptive.notebook_integration", "`StitchedLearner`", "adaptive").ensure_holoviews()
        axes = [np.linspace(low, high, n) for low, high in self.bounds]
        X = np.array(list(self.data)).reshape(-1, d)
        values = np.zeros((n,) * d)
        if self.npoints >= self.start:
            Q = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
            values = self.model.predict(Q).reshape(*values.shape, -1)[..., 0]
        if d == 1:
            responses = [np.ravel(y)[0] for y in self.data.values()]
            return hv.Curve((axes[0], values)) * hv.Scatter((X[:, 0], responses))
        return hv.Image((*axes, values.T)) * hv.Points(X)

    def _next(self, n: int) -> list[Point]:
        """More points: of the Sobol sequence, or a batch that the model suggests."""
        if self._fitted == 0:
            self._drawn += n
            return _as_points(self._sobol(self._drawn)[-n:])
        pending = np.array([*self.pending_points, *self._waiting]).reshape(-1, len(self.bounds))
        found: Array = self._model.suggest(max(n, self.batch), bounds=self.bounds.tolist(), pending=pending)
        return _as_points(found)

    def _update(self) -> None:
        """Update the model, and choose hyperparameters again where they no longer suit the data."""
        if self.npoints in (0, self._fitted) or self.npoints < self.start:
            return
        X, y = np.array(list(self.data)), np.array(list(self.data.values()), dtype=float)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Errors at new points")
            self._model.partial_fit(X[self._fitted :], y[self._fitted :])
        if is_stale(self._model.model_.growth):
            self._model.fit(X, y)
        self._fitted, self._loss = len(X), self._relative_error()

    def _relative_error(self) -> float:
        X, y, residual = self._model.leave_one_out()
        low, extent = self.bounds[:, 0], np.ptp(self.bounds, axis=1)
        nearest = cKDTree((X - low) / extent).query((self._sobol(JUDGED_PLACES) - low) / extent)[1]
        scale = deviation_of(y[nearest].reshape(JUDGED_PLACES, -1))
        return float(np.sqrt(np.mean(np.square(residual[nearest].reshape(JUDGED_PLACES, -1) / scale))))

    def _sobol(self, n: int) -> Array:
        """The first n points of the sequence in the box, always the same."""
        seed = self._model.random_state if isinstance(self._model.random_state, int) else 0
        unit = qmc.Sobol(len(self.bounds), rng=seed).random_base2(int(np.ceil(np.log2(n))))[:n]
        return np.asarray(self.bounds[:, 0] + unit * np.ptp(self.bounds, axis=1))

    def _take(self, point: Point) -> None:
        """Remove a point from the waiting list if it is there."""
        if point in self._waiting:
            self._waiting.remove(point)

    def _check_point(self, x: Iterable[float]) -> Point:
        point = tuple(float(value) for value in np.ravel(np.asarray(x, dtype=float)))
        if len(point) != len(self.bounds) or not np.isfinite(point).all():
            raise ValueError(f"A point must be {len(self.bounds)} finite numbers, got {x!r}.")
        return point

    def _names(self, names: Sequence[str] | None) -> Sequence[str]:
        found = [f"x{i}" for i in range(len(self.bounds))] if names is None else names
        if len(found) != len(self.bounds):
            raise ValueError(f"`point_names` must be {len(self.bounds)} names, got {names!r}.")
        return found

    def _get_data(self) -> dict[Point, Any]:
        return dict(self.data)

    def _set_data(self, data: dict[Point, Any]) -> None:
        self.tell_many(data.keys(), data.values())


def _as_points(X: Array) -> list[Point]:
    return [tuple(row) for row in X.tolist()]


def _check_count(name: str, count: Any, least: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < least:
        raise ValueError(f"`{name}` must be a whole number of at least {least}, got {count!r}.")
    return int(count)


def _check_bounds(bounds: ArrayLike) -> Array:
    box = np.asarray(bounds, dtype=float)
    if box.ndim != 2 or box.shape[1] != 2 or not len(box) or not np.isfinite(box).all() or (box[:, 0] >= box[:, 1]).any():
        raise ValueError(f"`bounds` must be a pair (low, high) for each feature, finite and low below high, got {bounds!r}.")
    return box
