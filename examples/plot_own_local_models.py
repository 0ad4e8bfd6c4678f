"""
Local models of your own
========================

A smoothing spline from scipy and a neural network from scikit-learn, stitched. A local model needs a smoothness and `fit`, which
returns something with `predict`, `gradient` and, for Hessians, `hessian`.
"""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import BSpline, make_smoothing_spline
from sklearn.neural_network import MLPRegressor

from stitchwork import StitchedRegressor


@dataclass
class FittedSpline:
    """A cubic spline in one variable with its derivatives."""

    spline: BSpline

    def predict(self, X):
        return self.spline(X[:, 0])

    def gradient(self, X):
        return self.spline(X[:, 0], 1)[:, None]

    def hessian(self, X):
        return self.spline(X[:, 0], 2)[:, None, None]


class Spline:
    """scipy's smoothing spline, which chooses its smoothing itself."""

    smoothness = 2

    def fit(self, X, y, sample_weight):
        order = np.argsort(X[:, 0])
        return FittedSpline(make_smoothing_spline(X[order, 0], y[order], w=sample_weight[order]))


@dataclass
class FittedNetwork:
    """A network with one layer of tanh: f = a·tanh(Wᵀx + b) + c, ∇f = W (a (1 - tanh²))."""

    W: np.ndarray
    b: np.ndarray
    a: np.ndarray
    c: float

    def predict(self, X):
        return np.tanh(X @ self.W + self.b) @ self.a + self.c

    def gradient(self, X):
        return ((1 - np.tanh(X @ self.W + self.b) ** 2) * self.a) @ self.W.T

    def hessian(self, X):
        z = np.tanh(X @ self.W + self.b)
        return np.einsum("qk,ik,jk->qij", -2 * z * (1 - z**2) * self.a, self.W, self.W)


class Network:
    """scikit-learn's MLPRegressor, trained anew in every region."""

    smoothness = np.inf

    def fit(self, X, y, sample_weight):
        network = MLPRegressor(
            hidden_layer_sizes=(16,), activation="tanh", solver="lbfgs", alpha=1e-4, max_iter=400, random_state=0
        ).fit(X, y)
        (W, a), (b, c) = network.coefs_, network.intercepts_
        return FittedNetwork(W, b, a[:, 0], c[0])


# %%
# A region's points come to `fit` in the unit ball around 0, so that lengths mean the same in every region. A noisy line by splines:

rng = np.random.default_rng(0)
x = rng.uniform(0, 10, (800, 1))
line = StitchedRegressor(local_model=Spline(), region_size=60).fit(x, np.sin(x[:, 0]) + 0.02 * rng.normal(size=800))
q = np.linspace(1, 9, 500)[:, None]

# %%
# A plane by networks.

X = rng.uniform(-2, 2, (600, 2))
plane = StitchedRegressor(local_model=Network(), region_size=100).fit(X, np.sin(X[:, 0]) * X[:, 1])
Q = rng.uniform(-1.8, 1.8, (500, 2))
errors = {
    "spline": float(np.abs(line.predict(q) - np.sin(q[:, 0])).max()),
    "slope of the spline": float(np.abs(line.gradient(q)[:, 0] - np.cos(q[:, 0])).max()),
    "network": float(np.abs(plane.predict(Q) - np.sin(Q[:, 0]) * Q[:, 1]).max()),
    "slope of the network": float(np.abs(plane.gradient(Q)[:, 1] - np.sin(Q[:, 0])).max()),
}
for name, error in errors.items():
    print(f"{name}: largest error {error:.2g}")

# %%
# Both predictions are C², whatever the local models: the weights take care of the borders.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.plot(q, line.predict(q), label="stitched splines")
left.plot(q, line.gradient(q), label="their slope")
left.legend()
axis = np.linspace(-2, 2, 60)
x1, x2 = np.meshgrid(axis, axis, indexing="ij")
surface = plane.predict(np.stack([x1.ravel(), x2.ravel()], axis=1)).reshape(x1.shape)
figure.colorbar(right.pcolormesh(x1, x2, surface, cmap="RdBu_r"), ax=right)
right.set(title="stitched networks", aspect="equal")
plt.show()
