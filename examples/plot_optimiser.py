"""
A surrogate in an optimiser
===========================

An expensive function was evaluated 600 times. The minimum of the fitted model is looked for with scipy, which takes value and
gradient from one call (``jac=True``) and the Hessian from another. Without them scipy would ask for differences.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize, rosen

from stitchwork import StitchedRegressor

rng = np.random.default_rng(0)
X = rng.uniform([-1.5, -0.5], [1.5, 2.0], (600, 2))
model = StitchedRegressor(metric="euclidean").fit(X, rosen(X.T))


# %%
# One row goes in, so (1, d) arrays go in and the first row of each answer comes out.


def value_and_gradient(x):
    """As scipy wants it: a number and a vector."""
    value, gradient = model.predict_with_gradient(x[None])
    return value[0], gradient[0]


def value(x):
    """The value alone."""
    return model.predict(x[None])[0]


start, bounds = np.array([-1.0, 1.5]), [(-1.5, 1.5), (-0.5, 2.0)]
path = [start]
with_gradient = minimize(
    value_and_gradient, start, jac=True, bounds=bounds, method="L-BFGS-B", callback=lambda x: path.append(x.copy())
)
with_differences = minimize(value, start, bounds=bounds, method="L-BFGS-B")
with_hessian = minimize(value_and_gradient, start, jac=True, hess=lambda x: model.hessian(x[None])[0], method="trust-exact")
for name, result in (("gradient", with_gradient), ("differences", with_differences), ("Hessian", with_hessian)):
    print(f"{name:<12} x = {result.x.round(4)}, {result.nfev} calls, {result.nit} steps")

# %%
# All end at the minimum of the Rosenbrock function, (1, 1). The optimiser sees no noise and no jumps, so its line searches behave.

distance = np.abs(with_gradient.x - 1).max()
axes = np.linspace(-1.5, 1.5, 80), np.linspace(-0.5, 2, 80)
x1, x2 = np.meshgrid(*axes, indexing="ij")
surface = model.predict(np.stack([x1.ravel(), x2.ravel()], axis=1)).reshape(x1.shape)
figure, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
ax.contourf(x1, x2, np.log10(np.maximum(surface, 1e-3)), 20, cmap="Blues_r")
ax.plot(*X.T, ".", color="0.6", markersize=2)
ax.plot(*np.transpose(path), "o-", color="tab:orange", markersize=3, label="steps with the gradient")
ax.plot(1, 1, "k*", markersize=12, label="minimum")
ax.set(xlabel="x1", ylabel="x2", title="log10 of the fitted function")
ax.legend()
plt.show()
