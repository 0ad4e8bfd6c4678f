"""
Critical points from gradient and Hessian
=========================================

Where is the fitted surface flat, and is it a peak, a pit or a pass? Zeros of the gradient are found by Newton's method, which
takes the Hessian as its Jacobian; the signs of the Hessian's eigenvalues classify them.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import root

from stitchwork import StitchedRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-0.7, 7.0, (1500, 2))
model = StitchedRegressor(metric="euclidean", kernel="gaussian").fit(X, np.sin(X[:, 0]) * np.cos(X[:, 1]))

# %%
# Newton from a coarse grid; what left the data is dropped, and what was found twice is kept once.

starts = np.stack(np.meshgrid(np.linspace(-0.5, 6.8, 9), np.linspace(-0.5, 6.8, 9)), axis=-1).reshape(-1, 2)
found = []
for start in starts:
    result = root(lambda x: model.gradient(x[None])[0], start, jac=lambda x: model.hessian(x[None])[0])
    inside = ((result.x > -0.5) & (result.x < 6.8)).all()
    if result.success and inside and all(np.linalg.norm(result.x - other) > 1e-4 for other in found):
        found.append(result.x)
points = np.array(found)

# %%
# Peaks have two negative eigenvalues, pits two positive ones, passes one of each.

negative = (np.linalg.eigvalsh(model.hessian(points)) < 0).sum(axis=1)
names = {2: "peak", 0: "pit", 1: "pass"}
kinds = {name: points[negative == count] for count, name in names.items()}
counts = {name: len(where) for name, where in kinds.items()}

# On this box sin x cos y has its critical points at multiples of π/2.
multiples = points / (np.pi / 2)
error = np.abs(multiples - multiples.round()).max() * np.pi / 2
print(counts, f"largest error of a position {error:.0e}")

# %%

axis = np.linspace(-0.7, 7.0, 90)
x1, x2 = np.meshgrid(axis, axis, indexing="ij")
surface = model.predict(np.stack([x1.ravel(), x2.ravel()], axis=1)).reshape(x1.shape)
figure, ax = plt.subplots(figsize=(5.6, 4.8), layout="constrained")
figure.colorbar(ax.contourf(x1, x2, surface, 21, cmap="RdBu_r"), ax=ax)
for (name, where), marker in zip(kinds.items(), "^vx", strict=True):
    ax.plot(*where.T, "k" + marker, markersize=8, linestyle="none", label=name)
ax.legend(loc="upper right")
ax.set(aspect="equal", title="critical points of the fitted surface")
plt.show()
