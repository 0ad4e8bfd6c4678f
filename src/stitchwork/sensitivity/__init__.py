"""Which features matter: Sobol' indices and main effects of a fitted model.

Features are drawn independently of each other, uniformly within bounds or from given distributions, and the model is asked at these
points, so that what comes out is as good as the model. Features that depend on each other in the data need care: where the model
has seen nothing, it guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import qmc, sobol_indices, uniform

from .._function import StitchedFunction
from .._types import Array
from .._validation import read_bounds

__all__ = ["MainEffects", "SobolIndices", "main_effects", "sobol"]

Bounds = Sequence[tuple[float, float]] | Mapping[str, tuple[float, float]]


class SobolIndices(NamedTuple):
    """Shares of the variance of each output: by a feature alone, and by a feature with all that it takes part in.

    Attributes
    ----------
    first_order : (d,), or (t, d) for several outputs
        Var(E[f | x_j]) / Var(f). They sum to one if no features act together.
    total_order : of the same shape
        1 - Var(E[f | all but x_j]) / Var(f): zero for a feature that can be fixed anywhere.
    features : d names

    Examples
    --------
    >>> from stitchwork.sensitivity import sobol
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> model = StitchedRegressor(local_model="poly", degree=2).fit(X, X.prod(axis=1))
    >>> shares = sobol(model, bounds=[(0, 1)] * 2)  # each alone 3/7, both together 1/7
    >>> shares.first_order.round(1), shares.total_order.round(1)
    (array([0.4, 0.4]), array([0.6, 0.6]))
    """

    first_order: Array
    total_order: Array
    features: list[str]


class MainEffects(NamedTuple):
    """The mean of the function where one feature is held: how it goes along that feature, whatever the others are.

    Attributes
    ----------
    values : (d, size) of each feature
    effects : (d, size), or (t, d, size) for several outputs
    mean : the mean of the function, a float or (t,)
    features : d names

    Examples
    --------
    >>> from stitchwork.sensitivity import main_effects
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> model = StitchedRegressor(local_model="poly", degree=2).fit(X, X.prod(axis=1))
    >>> found = main_effects(model, size=3, bounds=[(0, 1)] * 2)
    >>> found.effects[0].round(2), round(found.mean, 2)
    (array([0.  , 0.25, 0.5 ]), 0.25)
    """

    values: Array
    effects: Array
    mean: Any
    features: list[str]


def sobol(
    model: StitchedFunction,
    n: int = 4096,
    bounds: Bounds | None = None,
    distributions: Sequence[Any] | None = None,
    random_state: int = 0,
) -> SobolIndices:
    """Sobol' indices of a fitted model by `scipy.stats.sobol_indices`, each output by itself.

    Parameters
    ----------
    model : StitchedRegressor, fitted
    n : int
        A power of two: the model is asked at n (d + 2) points.
    bounds : d pairs (low, high), or a mapping of features' names to such pairs, optional
        Features are uniform within them; the data's own unless given.
    distributions : d distributions of `scipy.stats`, optional
        In the place of bounds; objects with a method ``ppf``.
    random_state : int

    Examples
    --------
    >>> from stitchwork.sensitivity import sobol
    >>> X = np.random.default_rng(0).uniform(size=(300, 3))
    >>> model = StitchedRegressor(kernel="gaussian").fit(X, X[:, 0] + 2 * X[:, 1])
    >>> sobol(model, bounds=[(0, 1)] * 3).first_order.round(2) + 0.0
    array([0.2, 0.8, 0. ])
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2 or n & (n - 1):
        raise ValueError(f"`n` must be a power of two of at least 2, such as 4096, got {n!r}.")
    fitted = model.model_
    drawn = _distributions(fitted, bounds, distributions)
    value = _values(model)
    t = fitted.n_outputs
    middle = value(np.array([[one.ppf(0.5) for one in drawn]]))[0]

    # Responses far from zero would cost digits: indices are those of f - f(medians).
    found = sobol_indices(func=lambda x: (value(x.T) - middle).T, n=int(n), dists=drawn, rng=np.random.default_rng(random_state))
    first, total = (np.reshape(one, (t, fitted.n_features)) for one in (found.first_order, found.total_order))
    flat = fitted.flat
    return SobolIndices(first[0] if flat else first, total[0] if flat else total, list(fitted.feature_names))


def main_effects(
    model: StitchedFunction,
    size: int = 50,
    n: int = 1024,
    bounds: Bounds | None = None,
    distributions: Sequence[Any] | None = None,
    random_state: int = 0,
) -> MainEffects:
    """Means of the function along each feature: E[f | x_j = v] for ``size`` values v of every feature.

    Parameters
    ----------
    model : StitchedRegressor, fitted
    size : int
        Number of values of each feature, evenly spaced over its bounds, or from the 0.5 to the 99.5 % quantile of its distribution.
    n : int
        A power of two: the others take so many values in each mean. The model is asked at d n size points.
    bounds, distributions, random_state
        As in `sobol`.

    Examples
    --------
    >>> from stitchwork.sensitivity import main_effects
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> model = StitchedRegressor(kernel="gaussian").fit(X, X[:, 0] + 2 * X[:, 1])
    >>> found = main_effects(model, size=3, bounds=[(0, 1)] * 2)
    >>> found.effects.round(2)
    array([[1. , 1.5, 2. ],
           [0.5, 1.5, 2.5]])
    """
    if n < 1 or n & (n - 1) or size < 1:
        raise ValueError(f"`n` must be a power of two and `size` at least 1, got {n!r} and {size!r}.")
    fitted = model.model_
    drawn, value, d = _distributions(fitted, bounds, distributions), _values(model), fitted.n_features
    points = qmc.Sobol(d, rng=np.random.default_rng(random_state)).random(n)
    X = np.stack([one.ppf(column) for one, column in zip(drawn, points.T, strict=True)], axis=1)
    mean = value(X).mean(axis=0)
    ends = (0.0, 1.0) if distributions is None else (0.005, 0.995)
    values = np.stack([np.linspace(one.ppf(ends[0]), one.ppf(ends[1]), size) for one in drawn])
    effects = np.empty((fitted.n_outputs, d, size))
    for j in range(d):
        Q = np.repeat(X[None], size, axis=0)
        Q[:, :, j] = values[j][:, None]
        effects[:, j] = value(Q.reshape(-1, d)).reshape(size, n, -1).mean(axis=1).T
    names, flat = list(fitted.feature_names), fitted.flat
    return MainEffects(values, effects[0] if flat else effects, float(mean[0]) if flat else mean, names)


def _values(model: StitchedFunction) -> Callable[[Array], Array]:
    """Values (q, t) of a model at points (q, d)."""
    return lambda X: np.reshape(model.predict(np.ascontiguousarray(X)), (len(X), -1))


def _distributions(fitted: Any, bounds: Bounds | None, distributions: Sequence[Any] | None) -> list[Any]:
    """What every feature is drawn from."""
    if distributions is None:
        box = read_bounds(bounds, fitted)
        flat = [name for name, (low, high) in zip(fitted.feature_names, box, strict=True) if low == high]
        if flat:
            raise ValueError(f"`bounds` of {flat[0]!r} must be two different numbers: a feature that is fixed has no share.")
        return [uniform(low, high - low) for low, high in box]
    if bounds is not None:
        raise ValueError("Give `bounds` or `distributions`, not both.")
    if len(distributions) != fitted.n_features or not all(hasattr(one, "ppf") for one in distributions):
        raise ValueError(
            f"`distributions` must be {fitted.n_features} distributions of `scipy.stats`, one for each feature,"
            f" got {distributions!r}."
        )
    return list(distributions)
