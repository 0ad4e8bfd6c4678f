"""
Seams: why the weights matter
=============================

Neighbouring local models disagree a little, the more so on noisy data. Where a region begins or ends, its weight decides what
becomes of that: a Wendland function goes to zero smoothly, and the prediction has no seam; a Gaussian that is cut off at the
border jumps there (paper, section 3.2).
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor

rng = np.random.default_rng(1)
x = np.sort(rng.uniform(0, 10, 300))
y = np.sin(x) + 0.3 * rng.normal(size=300)
settings = {"region_size": 40, "kernel": "gaussian", "bandwidth": 0.5, "ridge": 0.3, "degree": 1, "selection": None, "overlap": 0.0}
weights = ("truncated-gaussian", "wendland-c0", "wendland-c2", "wendland-c4")
models = {weight: StitchedRegressor(weight=weight, **settings).fit(x[:, None], y) for weight in weights}
smoothness = {weight: model.smoothness_ for weight, model in models.items()}
print("class of the prediction", smoothness)

# %%
# Two predictions at a distance of 1e-9 around every border of a region. The difference of a continuous function is about slope
# times distance.

model = models["wendland-c2"]
borders = np.concatenate([model.centers_[:, 0] - model.radii_, model.centers_[:, 0] + model.radii_])
borders = np.sort(borders[(borders > 0.1) & (borders < 9.9)])
near = 5e-10
jumps = {
    weight: np.abs(model.predict(borders[:, None] + near) - model.predict(borders[:, None] - near)).max()
    for weight, model in models.items()
}
print("largest jump", {weight: f"{jump:.0e}" for weight, jump in jumps.items()})

# %%
# What is not differentiable has no gradient, and the model says so instead of returning a number.

try:
    models["truncated-gaussian"].gradient([[1.0]])
except ValueError as error:
    refusal = str(error)
    print(refusal)

# %%

s = np.linspace(0.1, 9.9, 4000)
figure, axes = plt.subplots(2, 1, figsize=(9, 5), sharex=True, layout="constrained")
axes[0].plot(x, y, ".", color="0.8")
for weight, colour in (("truncated-gaussian", "tab:red"), ("wendland-c2", "tab:blue")):
    value = models[weight].predict(s[:, None])
    axes[0].plot(s, value, color=colour, linewidth=1, label=weight)
    axes[1].plot(s[:-1], np.diff(value) / np.diff(s), color=colour, linewidth=1)
for border in borders:
    axes[1].axvline(border, color="0.9", linewidth=0.8, zorder=0)
axes[0].legend()
axes[0].set(title="prediction")
axes[1].set(title="difference quotient; borders of regions in grey", ylim=(-6, 6), xlabel="x")
plt.show()
