"""
A fitted right-hand side in an ODE
==================================

The right-hand side of an ODE is known only from samples: 1,500 states of a van der Pol oscillator with their rates of change.
Both rates are fitted at once. A stiff solver takes the exact Jacobian from the model; since the model is C², the solver's error
control works as it does for a formula.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

from stitchwork import StitchedRegressor


def van_der_pol(t, state):
    """x' = v, v' = 2 (1 - x²) v - x."""
    x, v = state
    return np.array([v, 2 * (1 - x**2) * v - x])


rng = np.random.default_rng(0)
X = rng.uniform([-2.5, -4.5], [2.5, 4.5], (1500, 2))
model = StitchedRegressor(metric="euclidean", kernel="gaussian").fit(X, van_der_pol(0, X.T).T)

# %%
# The solver asks for one state at a time. ``gradient`` of two outputs is the Jacobian, (1, 2, 2).

start, times = [2.0, 0.0], np.linspace(0, 10, 500)
options = {"t_span": (0, 10), "y0": start, "t_eval": times, "method": "Radau", "rtol": 1e-6, "atol": 1e-8}
fitted = solve_ivp(lambda t, s: model.predict(s[None])[0], jac=lambda t, s: model.gradient(s[None])[0], **options)
exact = solve_ivp(van_der_pol, **options)
deviation = np.abs(fitted.y - exact.y).max()
print(f"largest deviation {deviation:.1e}; calls {fitted.nfev}, with the formula {exact.nfev}; Jacobians {fitted.njev}")

# %%
# The model answers outside of its data too, without a warning. So look whether the path stayed inside.

least_coverage = model.coverage(fitted.y.T).min()
print(f"least coverage on the path {least_coverage:.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(*X.T, ".", color="0.85", markersize=2)
left.plot(*fitted.y, label="fitted right-hand side")
left.plot(*exact.y, "k--", linewidth=1, label="formula")
left.set(xlabel="x", ylabel="v", title="states")
left.legend(loc="upper right")
right.semilogy(times, np.abs(fitted.y - exact.y).max(axis=0) + 1e-16)
right.set(xlabel="t", title="deviation")
plt.show()
