"""
Strain rate and divergence of GPS velocities
============================================

Velocities of stations to the east and to the north are two outputs of one model. Its gradient by the metre, with the terms that a
sphere adds, is the strain rate. A plate that only turns has none, whatever its speed: that is the test. Then the same on the GPS
stations of California, where the data home has them.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree

from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset

RADIUS = 6_371_008.8  # metres, as `unit="metres"` has it


def strain_rate(model, X):
    """East-east, north-north and east-north strain rate (q,) each; the divergence is the sum of the first two.

    ``X`` has longitude and latitude in degrees, outputs are mm a year; strain rates are in 1e-9 a year.
    """
    (u, v), G = model.predict(X).T, model.gradient(X, unit="metres")
    curved = np.tan(np.radians(X[:, 1])) / RADIUS  # meridians meet towards the poles
    east, north = G[:, 0, 0] - v * curved, G[:, 1, 1]
    shear = 0.5 * (G[:, 0, 1] + G[:, 1, 0] + u * curved)
    return 1e6 * east, 1e6 * north, 1e6 * shear  # mm a year over metres are 1e-3 a year


def turning_plate(X, pole=(-70.0, 50.0), rate=0.75):
    """Velocities (q, 2) in mm a year of a rigid plate that turns by ``rate`` degrees in a million years around ``pole``."""
    lon, lat = np.radians(X).T
    lon0, lat0 = np.radians(pole)
    speed = np.radians(rate) * 1e-6 * RADIUS * 1e3
    east = np.sin(lat0) * np.cos(lat) - np.cos(lat0) * np.sin(lat) * np.cos(lon - lon0)
    north = np.cos(lat0) * np.sin(lon - lon0)
    return speed * np.stack([east, north], axis=1)


# %%
# A plate that turns at 50 mm a year: gradients without the terms of the sphere would show strain that is not there.

rng = np.random.default_rng(0)
X = rng.uniform((-124, 32), (-114, 42), (400, 2))
plate = StitchedRegressor(geographic=(0, 1), kernel="gaussian").fit(X, turning_plate(X))
inside = rng.uniform((-122, 34), (-116, 40), (200, 2))
speed = np.hypot(*plate.predict(inside).T)
false_strain = np.abs(strain_rate(plate, inside)).max()
naive = np.abs(1e6 * plate.gradient(inside, unit="metres")[:, 0, 0]).max()
print(
    f"speed {speed.mean():.0f} mm a year, strain rate {false_strain:.1g} nano a year, without the terms of the sphere {naive:.1f}"
)

# %%
# The stations of California, each once, the mean of its rows; squares of half a degree are left out together.

try:
    gps = load_dataset("gps")
    place, velocity = gps.data - [360.0, 0.0], gps.target[:, :2]
except FileNotFoundError:  # no data home: a fault that slips by 35 mm a year and is locked down to 15 km, at 800 places
    place = rng.uniform((-124, 32), (-114, 42), (800, 2))
    across = 91.0 * (place[:, 0] + 119.0)
    velocity = np.stack([0.0 * across, -35.0 / np.pi * np.arctan(across / 15.0)], axis=1)
_, station, count = np.unique(np.round(place, 3), axis=0, return_inverse=True, return_counts=True)
mean = np.stack([np.bincount(station.ravel(), column) / count for column in np.hstack([place, velocity]).T], axis=1)
place, velocity = mean[:, :2], mean[:, 2:]
square = np.unique(np.floor(2 * place), axis=0, return_inverse=True)[1].ravel()
model = StitchedRegressor(geographic=(0, 1), kernel="matern52").fit(place, velocity, groups=square)

sides = np.linspace(-124, -114, 90), np.linspace(32, 42, 90)
Q = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
known = (model.coverage(Q) > 0.9) & (cKDTree(place).query(Q)[0] < 0.4)  # near stations
east, north, shear = (np.where(known, one, np.nan) for one in strain_rate(model, Q))
greatest = np.hypot(0.5 * (east - north), shear)
panels = {"greatest shear": (greatest, "magma_r", 0, 150), "divergence": (east + north, "RdBu_r", -100, 100)}
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
for ax, (title, (values, colours, low, high)) in zip(axes, panels.items(), strict=True):
    shown = ax.pcolormesh(*sides, values.reshape(90, 90), cmap=colours, vmin=low, vmax=high)
    ax.plot(*place.T, ".", color="0.4", markersize=1)
    ax.set(title=f"{title}, 1e-9 a year", xlabel="longitude", aspect=1.25)
    figure.colorbar(shown, ax=ax)
axes[0].set_ylabel("latitude")
plt.show()
