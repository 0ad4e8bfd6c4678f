"""
First steps in the plane
========================

Scattered values of a smooth function go in; a function with exact derivatives comes out. `fit`, `predict` and `gradient` are all
it takes. The metric is fixed here because both coordinates are lengths, which saves time.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor

rng = np.random.default_rng(0)
X = rng.uniform(0, 6, (800, 2))
y = np.sin(X[:, 0]) * np.cos(X[:, 1])
model = StitchedRegressor(metric="euclidean").fit(X, y)
print(model.summary())

# %%
# Values and gradients come from one call. The grid stays a little inside of the data: at its rim, models see points on one side
# only.

axis = np.linspace(0.2, 5.8, 57)
x1, x2 = np.meshgrid(axis, axis, indexing="ij")
Q = np.stack([x1.ravel(), x2.ravel()], axis=1)
value, gradient = model.predict_with_gradient(Q)

truth = np.sin(Q[:, 0]) * np.cos(Q[:, 1])
slopes = np.stack([np.cos(Q[:, 0]) * np.cos(Q[:, 1]), -np.sin(Q[:, 0]) * np.sin(Q[:, 1])], axis=1)
error = np.abs(value - truth).max()
gradient_error = np.abs(gradient - slopes).max()
print(f"largest error of the value {error:.1e}, of the gradient {gradient_error:.1e}")

# %%
# The prediction with the data, the error, and the gradient as arrows.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
image = left.pcolormesh(x1, x2, value.reshape(x1.shape), cmap="RdBu_r")
left.plot(*X.T, "k.", markersize=1.5)
left.set_title("prediction and data")
figure.colorbar(image, ax=left)
image = middle.pcolormesh(x1, x2, np.log10(np.abs(value - truth) + 1e-16).reshape(x1.shape), cmap="viridis")
middle.set_title("log10 of the error")
figure.colorbar(image, ax=middle)
few = (slice(None, None, 4), slice(None, None, 4))
arrows = gradient.reshape(*x1.shape, 2)[few]
right.quiver(x1[few], x2[few], arrows[..., 0], arrows[..., 1])
right.set_title("gradient")
for ax in (left, middle, right):
    ax.set(aspect="equal", xlabel="x1", ylabel="x2")
plt.show()
