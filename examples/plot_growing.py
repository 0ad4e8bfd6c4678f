"""
A model that grows
==================

A function with a steep ring, and a budget of 400 values. The model begins with 40, says where it would like to have the next 60,
gets them, and so on: ``suggest`` and ``partial_fit``.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import qmc

from stitchwork import StitchedRegressor


def ring(X):
    """A step of width 0.05 around a circle of radius 0.6."""
    return np.tanh((np.linalg.norm(X, axis=1) - 0.6) / 0.05)


box = [(-1.0, 1.0), (-1.0, 1.0)]
batches = [2 * qmc.Sobol(2, rng=0).random(64)[:40] - 1]
model = StitchedRegressor(random_state=0).fit(batches[0], ring(batches[0]))

# %%
# How sure is it? ``predict`` with ``return_std`` tells the deviation of the function, here on a grid, before and after.

axis = np.linspace(-1, 1, 61)
Q = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
deviations = [model.predict(Q, return_std=True, std_of="function")[1]]
while sum(map(len, batches)) < 400:
    batches.append(model.suggest(60, bounds=box))
    model.partial_fit(batches[-1], ring(batches[-1]))
deviations.append(model.predict(Q, return_std=True, std_of="function")[1])

# %%
# The same number of random points, and more of them, fitted in the same way.


def error_of(fitted):
    """Root mean squared error on the grid."""
    return np.sqrt(np.mean((fitted.predict(Q) - ring(Q)) ** 2))


X = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
errors = {f"{n} random": error_of(StitchedRegressor().fit(X[:n], ring(X[:n]))) for n in (400, 1000)}
errors["400 suggested"] = error_of(model)
near = np.abs(np.linalg.norm(np.concatenate(batches), axis=1) - 0.6) < 0.15
print({name: f"{error:.4f}" for name, error in errors.items()}, f"{near.mean():.0%} of the points near the ring")

# %%

figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
colours = plt.get_cmap("viridis")(np.linspace(0, 1, len(batches)))
for batch, colour in zip(batches, colours, strict=True):
    axes[0].plot(*batch.T, ".", color=colour, markersize=5)
axes[0].set(title="points by batch, the first dark", aspect="equal")
for axes_, deviation, title in zip(axes[1:], deviations, ("deviation with 40 points", "with 400"), strict=True):
    image = axes_.pcolormesh(axis, axis, np.log10(deviation.reshape(61, 61)), vmin=-2, vmax=0)
    axes_.set(title=title, aspect="equal")
figure.colorbar(image, ax=axes[1:], label="log10 deviation")
plt.show()
