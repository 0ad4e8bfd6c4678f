"""
Measurements of unequal quality
===============================

Two instruments measure the same curve: a good one rarely, a bad one often. With weights 1 / variance the good one counts for what
it is worth. Weights are real: weight 2 is the same as having measured the same value twice.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor

rng = np.random.default_rng(0)
x = rng.uniform(0, 8, 500)
good = rng.random(500) < 0.3
noise = np.where(good, 0.03, 0.5)
y = np.sin(2 * x) + noise * rng.normal(size=500)

settings = {"kernel": "matern52", "degree": 2}
plain = StitchedRegressor(**settings).fit(x[:, None], y)
weighted = StitchedRegressor(**settings).fit(x[:, None], y, sample_weight=noise**-2.0)

s = np.linspace(0.2, 7.8, 400)[:, None]
plain_error = np.sqrt(np.mean((plain.predict(s) - np.sin(2 * s[:, 0])) ** 2))
weighted_error = np.sqrt(np.mean((weighted.predict(s) - np.sin(2 * s[:, 0])) ** 2))
print(f"RMSE without weights {plain_error:.3f}, with weights {weighted_error:.3f}")

# %%
# An integer weight is repetition, also for the choice of the ridge.

counts = rng.integers(1, 4, 500)
once = StitchedRegressor(**settings).fit(x[:, None], y, sample_weight=counts)
repeated = StitchedRegressor(**settings).fit(np.repeat(x, counts)[:, None], np.repeat(y, counts))
difference = np.abs(once.predict(s) - repeated.predict(s)).max()
print(f"largest difference between weights and repetition {difference:.0e}")

# %%

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(x[~good], y[~good], ".", color="0.85", label="noise 0.5")
ax.plot(x[good], y[good], ".", color="0.4", label="noise 0.03")
ax.plot(s, plain.predict(s), label=f"without weights, RMSE {plain_error:.3f}")
ax.plot(s, weighted.predict(s), label=f"with weights, RMSE {weighted_error:.3f}")
ax.set(xlabel="x", ylim=(-2, 2))
ax.legend(ncols=2)
plt.show()
