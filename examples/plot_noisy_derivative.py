"""
Derivatives of noisy measurements
=================================

A damped oscillation is measured 600 times with noise of 0.02. Differences of neighbouring measurements are useless as a velocity:
they divide the noise by the time step. The default chooses its ridge by itself, so the fitted curve is smooth, and its
derivatives are those of the curve.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor

rng = np.random.default_rng(0)
t = np.linspace(0, 10, 600)
noise = 0.02
position = np.exp(-0.2 * t) * np.sin(2 * t) + noise * rng.normal(size=len(t))
model = StitchedRegressor().fit(t[:, None], position)
print(model.summary())

# %%
# The leave-one-out error is an estimate of the noise that the model did not follow.

loo_error = model.loo_error_
print(f"leave-one-out error {loo_error:.4f}, noise {noise}")

# %%
# Velocity is the gradient, acceleration the Hessian. Their truth is known here.

s = np.linspace(0.2, 9.8, 400)
velocity, acceleration = model.gradient(s[:, None])[:, 0], model.hessian(s[:, None])[:, 0, 0]
decay, sine, cosine = np.exp(-0.2 * s), np.sin(2 * s), np.cos(2 * s)
true_velocity = decay * (2 * cosine - 0.2 * sine)
true_acceleration = decay * ((0.04 - 4) * sine - 0.8 * cosine)
velocity_error = np.sqrt(np.mean((velocity - true_velocity) ** 2))
acceleration_error = np.sqrt(np.mean((acceleration - true_acceleration) ** 2))

differences = np.gradient(position, t)
decay = np.exp(-0.2 * t)
difference_error = np.sqrt(np.mean((differences - decay * (2 * np.cos(2 * t) - 0.2 * np.sin(2 * t))) ** 2))
print(f"RMSE of the velocity {velocity_error:.3f}, of differences {difference_error:.2f}")
print(f"RMSE of the acceleration {acceleration_error:.2f}, whose size is {true_acceleration.std():.2f}")

# %%

figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
axes[0].plot(t, position, ".", color="0.7", label="measured")
axes[0].plot(s, model.predict(s[:, None]), label="fitted")
axes[1].plot(t, differences, ".", color="0.85", label="differences")
axes[1].plot(s, velocity, label="gradient")
axes[1].plot(s, true_velocity, "k--", linewidth=1, label="truth")
axes[1].set_ylim(-3, 3)
axes[2].plot(s, acceleration, label="Hessian")
axes[2].plot(s, true_acceleration, "k--", linewidth=1, label="truth")
for ax, title in zip(axes, ("position", "velocity", "acceleration"), strict=True):
    ax.set(title=title, xlabel="t")
    ax.legend()
plt.show()
