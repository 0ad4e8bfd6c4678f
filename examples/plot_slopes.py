"""
An optimiser that learns slopes
===============================

An adjoint solver gives the gradient of a simulation for about the price of its value. Here a surrogate learns from both: fitted
to the runs so far, its minimum within a trusted box around the best run is the next run, and the box grows where the surrogate
foretold well and shrinks where it did not. The simulation is the Rosenbrock function of eight inputs, a curved valley.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize, rosen, rosen_der

from stitchwork import StitchedRegressor

d, budget, goal = 8, 150, 1e-3
start = np.full(d, -0.5)


# %%
# The hyperparameters are fixed, so that a fit takes milliseconds: a smooth kernel, and no search.


def minimise_by_surrogate(slopes):
    """The best value after each run, with slopes or without."""
    rng = np.random.default_rng(0)
    X, width = [start, *(start + 0.1 * rng.uniform(-1, 1, (d, d)))], 0.3
    best = [min(rosen(x) for x in X[: k + 1]) for k in range(len(X))]
    while len(X) < budget and best[-1] > goal:
        runs = np.array(X)
        y = rosen(runs.T)
        center = runs[y.argmin()]
        near = np.argsort(np.abs(runs - center).max(axis=1))[: 40 if slopes else 90]
        model = StitchedRegressor(
            selection=None, kernel="gaussian", degree=1, bandwidth=2.0, ridge=1e-10, metric="euclidean", region_size=1000
        ).fit(runs[near], y[near], gradient=rosen_der(runs[near].T).T if slopes else None)

        def ask(x, model=model):
            value, gradient = model.predict_with_gradient(x[None])
            return value[0], gradient[0]

        found = minimize(ask, center, jac=True, method="L-BFGS-B", bounds=[(c - width, c + width) for c in center])
        X.append(found.x if np.abs(found.x - center).max() > 1e-9 else center + width * rng.uniform(-0.5, 0.5, d))
        value, promised = rosen(X[-1]), y.min() - found.fun
        trusted = (y.min() - value) / promised if promised > 0.0 else 0.0
        width = min(2.0 * width, 1.0) if trusted > 0.7 else width if trusted > 0.2 else max(0.5 * width, 1e-3)
        best.append(min(best[-1], value))
    return best


with_slopes, without = minimise_by_surrogate(True), minimise_by_surrogate(False)
for name, best in (("with slopes", with_slopes), ("without", without)):
    print(f"{name:<12} {len(best)} runs, least value {best[-1]:.2g}")

# %%
# L-BFGS, which takes the same gradients but keeps no model of the function, is the other way to use them.

path = []
minimize(lambda x: (path.append(rosen(x)), rosen(x))[1], start, jac=rosen_der, method="L-BFGS-B", options={"gtol": 1e-8})
directly = np.minimum.accumulate(path)

# %%
# A run with slopes tells as much as nine numbers.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.semilogy(with_slopes, label="surrogate, values and slopes")
ax.semilogy(without, label="surrogate, values")
ax.semilogy(directly, ":", color="0.5", label="L-BFGS, values and slopes")
ax.axhline(goal, color="0.8", linewidth=1)
ax.set(xlabel="runs of the simulation", ylabel="least value so far", xlim=(0, budget), ylim=(1e-5, None))
ax.legend()
plt.show()
