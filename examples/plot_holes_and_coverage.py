"""
Holes and coverage
==================

Data has a hole, and queries fall into it. The prediction goes on smoothly: regions speak beyond their points, then models on ever
thinner samples do. How much of an answer comes from regions that hold data there is what ``coverage`` says: 1 amid the data, and 0
where the nearest point is ten gaps of the data away.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor


def truth(X):
    """Waves and a slope."""
    return np.sin(1.5 * X[:, 0]) * np.cos(X[:, 1]) + 0.2 * X[:, 0]


rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (1500, 2))
X = X[np.linalg.norm(X - [0.5, 0.5], axis=1) > 1.2]
model = StitchedRegressor(metric="euclidean", kernel="gaussian", region_size=100).fit(X, truth(X))

# %%
# The grid reaches beyond the data, too.

axis = np.linspace(-4.5, 4.5, 91)
x1, x2 = np.meshgrid(axis, axis, indexing="ij")
Q = np.stack([x1.ravel(), x2.ravel()], axis=1)
value, coverage = model.predict(Q), model.coverage(Q)
error = np.abs(value - truth(Q))
covered_error, uncovered_error = error[coverage == 1].max(), error[coverage == 0].max()
print(f"largest error where coverage is 1: {covered_error:.1e}; where it is 0: {uncovered_error:.1e}")
print(f"coverage in the middle of the hole: {model.coverage([[0.5, 0.5]])[0]:.2f}")

# %%
# No jump anywhere: neighbouring values along a line through the hole and out of the data differ by slope times step.

line = np.linspace(-4.5, 4.5, 100_001)
along = model.predict(np.stack([line, np.full_like(line, 0.5)], axis=1))
largest_step = np.abs(np.diff(along)).max()
print(f"largest difference of neighbours at a distance of {line[1] - line[0]:.0e}: {largest_step:.1e}")

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
pictures = (("prediction and data", value, "RdBu_r"), ("coverage", coverage, "viridis"), ("error", np.log10(error + 1e-9), "magma"))
for ax, (title, shown, colours) in zip(axes, pictures, strict=True):
    figure.colorbar(ax.pcolormesh(x1, x2, shown.reshape(x1.shape), cmap=colours), ax=ax)
    ax.set(title=title if title != "error" else "log10 of the error", aspect="equal")
axes[0].plot(*X.T, "k.", markersize=1)
plt.show()
