"""
Functions that the data allow
=============================

A field was measured at 250 places. Where is it above a limit, and what is its mean? These are questions to the whole field, not to
single places, so single standard deviations do not answer them. Samples do: functions that agree with the data as well as the
prediction does, and differ from each other where data are few.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor

rng = np.random.default_rng(0)
frequency, phase = rng.normal(scale=1.2, size=(2, 40)), rng.uniform(0, 2 * np.pi, 40)


def field(X):
    """Forty waves."""
    return np.cos(X @ frequency + phase).sum(axis=1) * np.sqrt(2 / 40)


X = rng.uniform(0, 10, (250, 2))
y = field(X) + 0.2 * rng.normal(size=250)
model = StitchedRegressor(kernel="matern52", degree=0).fit(X, y)

# %%
# A sample is one function: asked at a grid, it is a map. The probability of exceeding the limit follows from single standard
# deviations.

axis = np.linspace(0, 10, 60)
grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
limit = 1.0
samples = model.sample_y(grid, n_samples=200)
probability = model.exceedance(grid, limit)

# %%
# The area above the limit, and the mean over the field, have the distributions that they have among the samples. If errors at
# different places were independent, the mean would seem to be known far better than it is.

area, true_area = 100 * (samples > limit).mean(axis=0), 100 * (field(grid) > limit).mean()
low, high = np.quantile(area, [0.05, 0.95])
mean, true_mean = samples.mean(axis=0), field(grid).mean()
_, deviation = model.predict(grid, return_std=True, std_of="function")
together, apart = mean.std(), np.sqrt(np.square(deviation).sum()) / len(grid)
print(f"area above the limit: between {low:.1f} and {high:.1f} of 100 with 90 % confidence; the truth is {true_area:.1f}")
print(f"mean over the field: {mean.mean():.3f} ± {together:.4f}; the truth is {true_mean:.3f}")
print(f"with independent errors it would be ± {apart:.4f}")

# %%

figure, axes = plt.subplots(1, 5, figsize=(16, 3.2), layout="constrained", sharey=True)
pictures = [("prediction", model.predict(grid)), *((f"sample {k + 1}", samples[:, k]) for k in range(3))]
for ax, (title, values) in zip(axes[:4], pictures, strict=True):
    drawn = ax.imshow(values.reshape(60, 60).T, origin="lower", extent=(0, 10, 0, 10), vmin=-2.5, vmax=2.5)
    ax.contour(axis, axis, values.reshape(60, 60).T, [limit], colors="white", linewidths=1)
    ax.set_title(title)
axes[0].plot(*X.T, "k.", markersize=2)
figure.colorbar(drawn, ax=axes[3])
drawn = axes[4].imshow(probability.reshape(60, 60).T, origin="lower", extent=(0, 10, 0, 10), cmap="magma", vmin=0, vmax=1)
axes[4].set_title(f"probability above {limit:g}")
figure.colorbar(drawn, ax=axes[4])
plt.show()
