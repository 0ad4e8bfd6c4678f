"""SIREN (Sitzmann et al. 2020): a network with sine layers, trained with Adam on JAX."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._types import Array

Layers = Sequence[tuple[Any, Any]]


def initial_layers(widths: Sequence[int], omega: float, seed: int) -> list[tuple[Array, Array]]:
    """Weights (m, k) and biases (k,) of the layers between ``widths``, spread as published (section 3.2 and its supplement).

    Uniform in ±1/m for the first layer and in ±√(6/m)/ω₀ for the others, so that every sine sees ω₀ times a standard normal; the
    biases uniform in ±1/√m.
    """
    rng = np.random.default_rng(seed)
    layers = []
    for place, (m, k) in enumerate(pairwise(widths)):
        bound = 1.0 / m if place == 0 else np.sqrt(6.0 / m) / omega
        layers.append((rng.uniform(-bound, bound, (m, k)), rng.uniform(-1.0, 1.0, k) / np.sqrt(m)))
    return layers


class Siren(RegressorMixin, BaseEstimator):
    """x → W_L sin(ω₀ (W x + b)) …: ``hidden_layers`` sine layers of ``width`` units, inputs scaled to [-1, 1], responses too.

    Adam on mini-batches in single precision; the step falls to zero along a cosine.
    """

    def __init__(
        self,
        hidden_layers: int = 3,
        width: int = 128,
        omega: float = 30.0,
        learning_rate: float = 5e-4,
        epochs: int = 200,
        batch_size: int = 512,
        random_state: int = 0,
    ):
        self.hidden_layers = hidden_layers
        self.width = width
        self.omega = omega
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train from the published initialisation."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        low, high = X.min(axis=0), X.max(axis=0)
        self._middle, self._half = (low + high) / 2.0, np.where(high > low, (high - low) / 2.0, 1.0)
        self._mean, self._scale = float(y.mean()), float(y.std()) or 1.0
        widths = [X.shape[1], *[self.width] * self.hidden_layers, 1]
        layers = initial_layers(widths, self.omega, self.random_state)
        self.layers_ = _train(layers, self._inputs(X), (y - self._mean) / self._scale, self)
        return self

    def predict(self, X: Any) -> Array:
        """The network's values."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        values = _network(self.layers_, self._inputs(X), self.omega, np)
        return self._mean + self._scale * values

    def _inputs(self, X: Array) -> Array:
        return (X - self._middle) / self._half


def _network(layers: Layers, U: Any, omega: float, numpy: Any) -> Any:
    """Values (n,) of the network at ``U`` (n, d), by NumPy or by JAX's NumPy."""
    for W, b in layers[:-1]:
        U = numpy.sin(omega * (U @ W + b))
    W, b = layers[-1]
    return (U @ W + b)[:, 0]


def _train(layers: Layers, U: Any, z: Any, settings: Siren) -> list[tuple[Array, Array]]:
    """The layers after all epochs; β₁ = 0.9, β₂ = 0.999."""
    import jax
    import jax.numpy as jnp

    batch = min(settings.batch_size, len(U))
    steps = len(U) // batch
    U, z = jnp.asarray(U, jnp.float32), jnp.asarray(z, jnp.float32)

    def loss(layers: Layers, rows: Any) -> Any:
        return jnp.mean((_network(layers, U[rows], settings.omega, jnp) - z[rows]) ** 2)

    def step(state: Any, rows: Any) -> tuple[Any, None]:
        layers, m, v, t = state
        gradient = jax.grad(loss)(layers, rows)
        m = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, gradient)
        v = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, v, gradient)
        rate = settings.learning_rate * 0.5 * (1.0 + jnp.cos(jnp.pi * t / (steps * settings.epochs)))
        unbiased = rate * jnp.sqrt(1.0 - 0.999 ** (t + 1.0)) / (1.0 - 0.9 ** (t + 1.0))
        layers = jax.tree.map(lambda p, a, b: p - unbiased * a / (jnp.sqrt(b) + 1e-8), layers, m, v)
        return (layers, m, v, t + 1.0), None

    @jax.jit
    def epoch(state: Any, key: Any) -> Any:
        rows = jax.random.permutation(key, len(U))[: steps * batch].reshape(steps, batch)
        return jax.lax.scan(step, state, rows)[0]

    start = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), list(layers))
    zeros = jax.tree.map(jnp.zeros_like, start)
    state = (start, zeros, zeros, 0.0)
    for key in jax.random.split(jax.random.key(settings.random_state), settings.epochs):
        state = epoch(state, key)
    return [(np.asarray(W, np.float64), np.asarray(b, np.float64)) for W, b in state[0]]
