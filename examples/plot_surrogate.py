"""
A surrogate of a simulation
===========================

A run of a simulation takes an hour, and 25 runs are affordable. Their inputs are a Latin hypercube; the model is fitted to them,
checked by leave-one-out, and then asked instead of the simulation: for values with intervals, for gradients, and for the optimum.
The simulation here is Branin's function, so that everything can be compared with the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from stitchwork import StitchedRegressor

bounds = np.array([(-5.0, 10.0), (0.0, 15.0)])


def simulate(X):
    """Branin's function of two inputs; it has three minima of 0.397887."""
    x1, x2 = X.T
    a = x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6
    return a**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10


# %%
# The design fills the box evenly: every input takes 25 different values.

X = qmc.scale(qmc.LatinHypercube(2, seed=0).random(25), *bounds.T)
y = simulate(X)
model = StitchedRegressor().fit(X, y)
print(model.summary())

# %%
# Is it good enough? Every run is predicted by the other 24. ``loo_error_`` sums this up, and ``leave_one_out`` has the residuals,
# run by run. Errors at new inputs are mostly smaller, since a run that is left out leaves a gap.

left_out = model.leave_one_out()
worst = np.abs(left_out.residual).argmax()
Q = np.random.default_rng(1).uniform(*bounds.T, (2000, 2))
truth = simulate(Q)
error = np.sqrt(np.mean((model.predict(Q) - truth) ** 2))
lower, upper = model.predict_interval(Q, 0.9).T
inside = np.mean((lower <= truth) & (truth <= upper))
print(f"leave-one-out {model.loo_error_:.2f}, new inputs {error:.2f}, values range over {np.ptp(y):.0f}")
print(f"the worst run, {left_out.X[worst].round(1)}, is missed by {abs(left_out.residual[worst]):.2f}")
print(f"{inside:.0%} of new values lie inside of intervals of 90 %")

# %%
# Gradients are exact derivatives of the model. Here they are compared with those of the simulation, by differences.

step = 1e-5
true_gradient = np.stack([(simulate(Q + shift) - simulate(Q - shift)) / (2 * step) for shift in step * np.eye(2)], axis=1)
gradient_error = np.sqrt(np.mean((model.gradient(Q) - true_gradient) ** 2) / np.mean(true_gradient**2))
print(f"relative error of the gradient {gradient_error:.1%}")

# %%
# The optimum: from the five best runs, with the gradient. Then the simulation runs once more, there, and the model learns from it.


def value_and_gradient(x):
    """As scipy wants it: a number and a vector."""
    value, gradient = model.predict_with_gradient(x[None])
    return value[0], gradient[0]


def find_minimum():
    """The least of what L-BFGS-B finds from the five best runs."""
    starts = X[np.argsort(y)[:5]]
    found = [minimize(value_and_gradient, start, jac=True, bounds=bounds, method="L-BFGS-B") for start in starts]
    return min(found, key=lambda result: result.fun)


best = find_minimum()
promised, got = best.fun, simulate(best.x[None])[0]
print(f"minimum at {best.x.round(2)}: the model says {promised:.2f}, the simulation {got:.2f}; the least is 0.40")
X, y = np.vstack([X, best.x]), np.append(y, got)
model = StitchedRegressor().fit(X, y)
refined = simulate(find_minimum().x[None])[0]
print(f"with that run, too: {refined:.4f}; the best of the first 25 runs had {y[:25].min():.2f}")

# %%

x1, x2 = np.meshgrid(np.linspace(*bounds[0], 80), np.linspace(*bounds[1], 80), indexing="ij")
grid = np.stack([x1.ravel(), x2.ravel()], axis=1)
value, deviation = (column.reshape(x1.shape) for column in model.predict(grid, return_std=True))
minima = np.array([(-np.pi, 12.275), (np.pi, 2.275), (9.42478, 2.475)])
figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
levels = np.geomspace(0.5, 300, 20)
axes[0].contourf(x1, x2, np.clip(value, 0.5, 300), levels, cmap="Blues_r", norm="log")
axes[0].plot(*minima.T, "k*", markersize=12, label="minima")
shown = axes[1].pcolormesh(x1, x2, deviation, cmap="viridis", shading="gouraud")
figure.colorbar(shown, ax=axes[1])
for ax, title in zip(axes, ("the surrogate", "its standard deviation"), strict=True):
    ax.plot(*X.T, "o", color="tab:orange", markersize=4, label="runs")
    ax.set(xlabel="x1", ylabel="x2", title=title)
axes[0].legend(loc="upper right")
plt.show()
