"""
How sure is it
==============

A profile is measured at 500 places, with noise that grows along it, and a gap in the middle. The band shows where 90 of 100 new
measurements will lie: wider where measurements are noisier, and much wider in the gap, where the prediction is a guess.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor
from stitchwork.plotting import CalibrationDisplay, FieldDisplay

rng = np.random.default_rng(0)


def measure(n):
    """Places and measurements."""
    x = rng.uniform(0, 10, 2 * n)
    x = x[(x < 4.5) | (x > 6.5)][:n]
    return x[:, None], np.sin(2 * x) + 0.05 * (1 + x) * rng.normal(size=n)


X, y = measure(500)
model = StitchedRegressor(kernel="matern52", degree=0).fit(X, y)

# %%
# The deviation of a new measurement is little more than the noise, where there are measurements, and grows into the gap.

places = np.array([[1.0], [9.0], [5.5]])
value, deviation = model.predict(places, return_std=True)
print(f"deviation at 1: {deviation[0]:.2f} (noise 0.10), at 9: {deviation[1]:.2f} (noise 0.50), in the gap: {deviation[2]:.2f}")

# %%
# New measurements, outside of the gap: intervals of 90 % should hold nine of ten.

Q, z = measure(5000)
lower, upper = model.predict_interval(Q, confidence_level=0.9).T
coverage = np.mean((lower <= z) & (z <= upper))
print(f"{coverage:.1%} of 5,000 new measurements lie inside of intervals of 90 %")

# %%

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", width_ratios=(2, 1))
FieldDisplay.from_estimator(model, features=(0,), interval=0.9, ax=axes[0])
CalibrationDisplay.from_estimator(model, Q, z, ax=axes[1])
axes[0].set_title("prediction, and 90 % of new measurements")
plt.show()
