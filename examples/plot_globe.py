"""
The globe without seams
=======================

Heights of a pressure surface, measured at stations by longitude and latitude. As two plain numbers, longitudes 180 and −180 are far
apart, and a pole is a whole line of places. With ``geographic`` they are what they are, and the slope comes in metres per metre.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor

rng = np.random.default_rng(0)


def height(X):
    """A surface that falls towards the poles, with four waves around the globe."""
    lon, lat = np.radians(X).T
    return 5500 + 350 * np.cos(lat) ** 2 + 120 * np.sin(lat) * np.cos(lat) ** 4 * np.cos(4 * lon)


def measure(n):
    """Stations all over the globe, and what they measure: heights with an error of 5 metres."""
    X = np.column_stack([rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))])
    return X, height(X) + 5 * rng.normal(size=n)


X, z = measure(3000)
globe = StitchedRegressor(geographic=(0, 1)).fit(X, z)
flat = StitchedRegressor().fit(X, z)
print(globe.summary())

# %%
# Both do the same in the middle of the map. At its edges, the dateline and the poles, one of them has data on one side only.

inside = np.column_stack([rng.uniform(-150, 150, 2000), rng.uniform(-60, 60, 2000)])
dateline = np.column_stack([np.full(500, 180.0), np.linspace(-80, 80, 500)])
pole = np.column_stack([np.linspace(-180, 180, 500), np.full(500, 89.0)])
errors = {
    name: [float(np.sqrt(np.mean((model.predict(Q) - height(Q)) ** 2))) for Q in (inside, dateline, pole)]
    for name, model in (("globe", globe), ("flat", flat))
}
for name, row in errors.items():
    print(f"{name:6} RMSE inside {row[0]:.2f} m, at the dateline {row[1]:.2f} m, at the pole {row[2]:.2f} m")

# %%
# The jump at the dateline is exactly zero, for derivatives, too.

turn = np.array([360.0, 0.0])
jump = np.abs(globe.gradient(dateline) - globe.gradient(dateline - turn)).max()
seam = np.abs(flat.predict(dateline) - flat.predict(dateline - turn)).max()
print(f"jump of the gradient {jump}, of the flat model's values {seam:.1f} m")

# %%
# The slope in metres per metre, to the east and to the north, drawn around the North Pole, which is a point like any other.

lon, lat = np.meshgrid(np.linspace(-180, 180, 181), np.linspace(30, 90, 61))
Q = np.column_stack([lon.ravel(), lat.ravel()])
east, north = globe.gradient(Q, unit="metres").T
slope = np.hypot(east, north)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), subplot_kw={"projection": "polar"}, layout="constrained")
for ax, values, title in zip(axes, (globe.predict(Q), 1e6 * slope), ("height, m", "slope, mm per km"), strict=True):
    drawn = ax.pcolormesh(np.radians(lon), 90 - lat, values.reshape(lon.shape), shading="gouraud")
    ax.set(title=title, yticks=[])
    figure.colorbar(drawn, ax=ax, shrink=0.8)
plt.show()
