"""
Many outputs at once: a property table
======================================

A table of a fluid gives pressure, entropy and energy over temperature and volume. All are fitted at once: one factorisation
serves every output, and so do the chosen kernel and ridge. The gradients are exact derivatives of the fitted functions, so
relations between derivatives can be checked; here Maxwell's relation ∂s/∂v = ∂p/∂T of a van der Waals fluid in reduced units.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor


def table(X):
    """Pressure, entropy and energy over (T, v), with R = 8/3 and c_v = 4."""
    T, v = X.T
    return np.stack([8 * T / (3 * v - 1) - 3 / v**2, 8 / 3 * np.log(3 * v - 1) + 4 * np.log(T), 4 * T - 3 / v], axis=1)


rng = np.random.default_rng(0)
low, high = np.array([0.9, 0.8]), np.array([2.0, 4.0])
X = rng.uniform(low, high, (1000, 2))
model = StitchedRegressor(kernel="gaussian", metric="standardized").fit(X, table(X))
print(model.summary())

# %%
# Outputs come as (q, 3), gradients as (q, 3, 2).

Q = rng.uniform(low + 0.05, high - 0.05, (1000, 2))
value, gradient = model.predict_with_gradient(Q)
relative = np.abs(value - table(Q)).max(axis=0) / np.ptp(table(X), axis=0)
print("largest error relative to the range", [f"{e:.0e}" for e in relative])

# %%
# Maxwell's relation, and the heat capacity c_v = T ∂s/∂T = ∂u/∂T = 4.

pressure, entropy, energy = gradient[:, 0], gradient[:, 1], gradient[:, 2]
maxwell = np.abs(entropy[:, 1] - pressure[:, 0]).max() / np.abs(pressure[:, 0]).max()
heat_capacity = energy[:, 0]
print(f"violation of Maxwell's relation {maxwell:.0e}; c_v between {heat_capacity.min():.5f} and {heat_capacity.max():.5f}")

# %%

v = np.linspace(0.85, 3.9, 200)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for T in (0.95, 1.0, 1.1, 1.3):
    left.plot(v, model.predict(np.stack([np.full_like(v, T), v], axis=1))[:, 0], label=f"T = {T}")
left.set(xlabel="v", ylabel="p", title="isotherms of the fitted table")
left.legend()
right.semilogy(Q[:, 1], np.abs(entropy[:, 1] - pressure[:, 0]) + 1e-16, ".", markersize=3)
right.set(xlabel="v", title="|∂s/∂v − ∂p/∂T|")
plt.show()
