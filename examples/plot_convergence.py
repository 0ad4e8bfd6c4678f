"""
How fast errors fall
====================

Regions hold a fixed number of points, so their radius falls as n^(-1/d). A local polynomial of degree ℓ then errs as
n^(-(ℓ+1)/d), and its gradient as n^(-ℓ/d), one order less. The stitched function keeps both rates.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor


def truth(X):
    """A smooth function of two variables."""
    return np.sin(2 * X[:, 0]) * np.cos(X[:, 1])


def slope(X):
    """Its gradient."""
    return np.stack([2 * np.cos(2 * X[:, 0]) * np.cos(X[:, 1]), -np.sin(2 * X[:, 0]) * np.sin(X[:, 1])], axis=1)


rng = np.random.default_rng(0)
sizes, degrees = np.array([1000, 2000, 4000, 8000]), (1, 2, 3)
Q = rng.uniform(-2.5, 2.5, (2000, 2))
value_error, gradient_error = np.empty((2, len(degrees), len(sizes)))
for column, n in enumerate(sizes):
    X = rng.uniform(-3, 3, (n, 2))
    for row, degree in enumerate(degrees):
        model = StitchedRegressor(local_model="poly", degree=degree, region_size=40, selection=None, metric="euclidean")
        value, gradient = model.fit(X, truth(X)).predict_with_gradient(Q)
        value_error[row, column] = np.sqrt(np.mean((value - truth(Q)) ** 2))
        gradient_error[row, column] = np.sqrt(np.mean((gradient - slope(Q)) ** 2))

# %%
# Slopes in the log-log plot, against what theory says for d = 2.


def fitted_rate(errors):
    """Least-squares slope of log error over log n, one per degree."""
    return np.polyfit(np.log(sizes), np.log(errors.T), 1)[0]


value_rate, gradient_rate = fitted_rate(value_error), fitted_rate(gradient_error)
for row, degree in enumerate(degrees):
    expected = -(degree + 1) / 2, -degree / 2
    print(f"degree {degree}: value n^{value_rate[row]:.2f}, in theory {expected[0]}")
    print(f"       gradient n^{gradient_rate[row]:.2f}, in theory {expected[1]}")

# %%

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
for ax, errors, title in zip(axes, (value_error, gradient_error), ("value", "gradient"), strict=True):
    for row, degree in enumerate(degrees):
        (line,) = ax.loglog(sizes, errors[row], "o-", label=f"degree {degree}")
        order = (degree + 1) / 2 if title == "value" else degree / 2
        ax.loglog(sizes, errors[row, 0] * (sizes / sizes[0]) ** -order, "--", color=line.get_color(), linewidth=0.8)
    ax.set(xlabel="n", title=f"RMSE of the {title}; dashed: theory")
axes[0].legend()
plt.show()
