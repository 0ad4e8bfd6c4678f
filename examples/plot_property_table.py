"""
A table of properties with exact derivatives
============================================

An equation of state gives derivatives with each state: those of the density are the isothermal compressibility and the thermal
expansion. A table that takes them is closer to the truth, and so are its derivatives, which solvers of flows ask for. Here it is
the density of carbon dioxide above its critical temperature, by Cantera, over temperature and pressure.
"""

import cantera as ct
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import qmc

from stitchwork import StitchedRegressor

low, high = np.array([350.0, 50.0]), np.array([550.0, 300.0])  # K, bar
fluid = ct.CarbonDioxide()


def density(states):
    """Densities (n,) in kg/m³ at temperatures and pressures (n, 2), and their slopes (n, 2): -ρ β by T and ρ κ by p."""
    rho, slopes = np.empty(len(states)), np.empty((len(states), 2))
    for i, (T, p) in enumerate(states):
        fluid.TP = T, 1e5 * p
        rho[i] = fluid.density
        slopes[i] = -rho[i] * fluid.thermal_expansion_coeff, 1e5 * rho[i] * fluid.isothermal_compressibility
    return rho, slopes


# %%
# 32 states with slopes are 96 numbers. They do better than 32 values, but not as well as 96 values elsewhere, since slopes tell of
# the same 32 places: take them where they come with the values.

Q = low + np.random.default_rng(1).uniform(size=(1000, 2)) * (high - low)
truth, true_slopes = density(Q)
models, errors = {}, {}
for name, n, with_slopes in (("32 values", 32, False), ("32 values with slopes", 32, True), ("96 values", 96, False)):
    X = low + qmc.Sobol(2, rng=0).random(128)[:n] * (high - low)
    y, G = density(X)
    models[name] = StitchedRegressor().fit(X, y, gradient=G if with_slopes else None)
    value, gradient = models[name].predict_with_gradient(Q)
    off = np.sqrt(np.mean((gradient - true_slopes) ** 2, axis=0) / np.mean(true_slopes**2, axis=0))
    errors[name] = np.sqrt(np.mean((value - truth) ** 2)), off.max()
    print(f"{name:<22} density {errors[name][0]:.2f} kg/m³, slopes {100 * errors[name][1]:.1f} %")

# %%
# The table, and where each error is.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
drawn = axes[0].tricontourf(*Q.T, truth, 30)
figure.colorbar(drawn, ax=axes[0], label="density (kg/m³)")
for axis, name in zip(axes[1:], ("32 values", "32 values with slopes"), strict=True):
    off = np.log10(np.abs(models[name].predict(Q) - truth) + 1e-6)
    drawn = axis.tricontourf(*Q.T, off, np.linspace(-4, 2, 25), cmap="magma", extend="both")
    axis.set_title(name)
figure.colorbar(drawn, ax=axes[2], label="log₁₀ error (kg/m³)")
axes[0].set_ylabel("pressure (bar)")
for axis in axes:
    axis.set_xlabel("temperature (K)")
plt.show()
