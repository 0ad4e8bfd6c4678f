"""
Surface gradients on the sphere
===============================

Points on a sphere are points of space: no map, no poles, no seam at the date line. With the normals of the surface at the
queries, ``gradient`` gives surface gradients, the part of the gradient that lies in the tangent plane.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor


def field(X):
    """A bell around a point, and a wave."""
    return np.exp(-4 * ((X - [0.0, 0.6, 0.8]) ** 2).sum(axis=1)) + 0.3 * X[:, 0] * X[:, 2]


def surface_gradient(X):
    """(I - n nᵀ) ∇f, where the normal n of the unit sphere is x."""
    offset = X - [0.0, 0.6, 0.8]
    G = -8 * offset * np.exp(-4 * (offset**2).sum(axis=1))[:, None]
    G = G + 0.3 * np.stack([X[:, 2], 0 * X[:, 0], X[:, 0]], axis=1)
    return G - (G * X).sum(axis=1, keepdims=True) * X


def on_sphere(n, seed):
    """Uniform random points."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


X, Q = on_sphere(2000, 0), on_sphere(2000, 1)
model = StitchedRegressor(metric="euclidean", kernel="gaussian").fit(X, field(X))
print(model.summary())

# %%
# On the unit sphere the normal at a point is the point itself. The model knows nothing of the sphere: the data determines no
# derivative across the surface, and the part of the gradient along the normal is thrown away.

value, gradient = model.predict_with_gradient(Q, normals=Q)
error = np.sqrt(np.mean((value - field(Q)) ** 2))
gradient_error = np.sqrt(np.mean(((gradient - surface_gradient(Q)) ** 2).sum(axis=1)))
along_normal = np.abs((gradient * Q).sum(axis=1)).max()
print(f"RMSE of the value {error:.1e}, of the surface gradient {gradient_error:.1e}, along the normal {along_normal:.0e}")

# %%

longitude, latitude = np.meshgrid(np.linspace(-np.pi, np.pi, 121), np.linspace(-1.5, 1.5, 61))
G = np.stack([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)], axis=-1)
P = G.reshape(-1, 3)
speed = np.linalg.norm(model.gradient(P, normals=P), axis=1).reshape(longitude.shape)
figure, axes = plt.subplots(1, 2, figsize=(11, 3.2), layout="constrained", subplot_kw={"projection": "mollweide"})
for ax, shown, title in zip(
    axes, (model.predict(P).reshape(longitude.shape), speed), ("field", "length of its surface gradient"), strict=True
):
    figure.colorbar(ax.pcolormesh(longitude, latitude, shown, cmap="viridis"), ax=ax, shrink=0.8)
    ax.set(title=title, xticklabels=[], yticklabels=[])
plt.show()
