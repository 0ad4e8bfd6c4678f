"""Draws the pictures of the pages "I have …": ``python docs/make_user_pictures.py`` (that of the survey needs the data home)."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import xarray
from PIL import Image

from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset
from stitchwork.sensitivity import main_effects, sobol
from stitchwork.transform import LogStitchedRegressor
from stitchwork.xarray import fill

HOWTO = Path(__file__).parent / "howto"


def survey():
    """Magnetic anomalies along flight lines near Rio de Janeiro, the map between them, and its standard deviation."""
    rio = load_dataset("rio")
    lon, lat = rio.data[:, :2].T
    seen = (lon > -42.6) & (lon < -42.3) & (lat > -22.45) & (lat < -22.2)
    X, y = rio.data[seen, :2][::3], rio.target[seen][::3]
    model = StitchedRegressor(geographic=(0, 1)).fit(X, y)
    sides = np.linspace(-42.6, -42.3, 120), np.linspace(-22.45, -22.2, 100)
    Q = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    value, deviation = model.predict(Q, return_std=True, std_of="function")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
    for ax, values, colours, title in (
        (axes[0], value, "viridis", "nT"),
        (axes[1], deviation, "magma_r", "standard deviation of the field"),
    ):
        shown = ax.pcolormesh(*sides, values.reshape(100, 120), cmap=colours, vmax=np.percentile(values, 99))
        ax.plot(*X.T, "k.", markersize=0.6, alpha=0.5)
        ax.set(title=title, xlabel="lon", aspect=1.08)
        figure.colorbar(shown, ax=ax)
    axes[0].set_ylabel("lat")
    return figure


def errors():
    """The curve of the page with the band of two standard deviations of the function."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (150, 1))
    sigma = np.where(X[:, 0] < 3, 0.05, 0.4)
    y = np.sin(X[:, 0]) + sigma * rng.normal(size=150)
    q = np.linspace(0, 6, 300)
    value, std = StitchedRegressor().fit(X, y, noise_std=sigma).predict(q[:, None], return_std=True, std_of="function")
    figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    ax.errorbar(X[:, 0], y, sigma, fmt=".", color="0.6", linewidth=0.7, markersize=3, label="measurements with their errors")
    ax.fill_between(q, value - 2 * std, value + 2 * std, alpha=0.4, label="the function, ± 2 standard deviations")
    ax.plot(q, value, color="C0")
    ax.legend()
    return figure


def grid():
    """The field of the page with its gaps, and filled."""
    lat, lon = np.arange(-88.75, 90.0, 2.5), np.arange(-180.0, 180.0, 2.5)
    axes = {"lat": ("lat", lat, {"units": "degrees_north"}), "lon": ("lon", lon, {"units": "degrees_east"})}
    waves = 3 * np.sin(np.radians(3 * lon)) * np.cos(np.radians(lat))[:, None] ** 2
    field = xarray.DataArray(28 * np.cos(np.radians(lat))[:, None] ** 2 + waves, axes, ("lat", "lon"))
    gaps = field.where(((abs(field.lat) > 25) | (abs(field.lon) < 160)) & ((field.lat - 40) ** 2 + (field.lon + 40) ** 2 > 350))
    figure, panels = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained", sharey=True)
    for ax, values, title in zip(panels, (gaps, fill(gaps)), ("with gaps", "filled"), strict=True):
        shown = ax.pcolormesh(lon, lat, values, vmin=-2, vmax=30)
        ax.set(title=title, xlabel="lon")
    panels[0].set_ylabel("lat")
    figure.colorbar(shown, ax=panels)
    return figure


def simulation():
    """Main effects of the function of the page, and the shares of its inputs."""
    X = np.random.default_rng(0).uniform(-1, 1, (120, 3))
    y = (X[:, 0] - 0.3) ** 2 + 0.5 * X[:, 1] ** 2 + 0.1 * X[:, 0] * X[:, 2]
    model, names = StitchedRegressor(random_state=0).fit(X, y), ["angle", "speed", "width"]
    effects, shares = main_effects(model), sobol(model)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for name, values, effect in zip(names, effects.values, effects.effects, strict=True):
        left.plot(values, effect, label=name)
    left.set(title="main effects", xlabel="input", ylabel="mean output")
    left.legend()
    right.bar(np.arange(3) - 0.2, shares.first_order, 0.4, label="alone")
    right.bar(np.arange(3) + 0.2, shares.total_order, 0.4, label="with all that it takes part in")
    right.set(title="Sobol' indices", xticks=range(3), xticklabels=names)
    right.legend()
    return figure


def table():
    """Prices that were held out against predictions, and the relevance of the columns."""
    rng = np.random.default_rng(0)
    n = 500
    X = np.stack([rng.uniform(30, 200, n), rng.integers(1900, 2020, n), rng.integers(0, 2, n), rng.uniform(0, 40, n)], axis=1)
    y = 3e3 * X[:, 0] * (1 + 0.3 * X[:, 2]) * np.exp(0.004 * (X[:, 1] - 1960) + 0.1 * rng.normal(size=n))
    model = LogStitchedRegressor().fit(X[:350], y[:350])
    lower, upper = model.predict_interval(X[350:], 0.9).T
    value = model.predict(X[350:])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    left.errorbar(value, y[350:], fmt="none", xerr=[value - lower, upper - value], color="0.8", linewidth=0.7)
    left.loglog(value, y[350:], ".", markersize=4)
    left.plot([y.min(), y.max()], [y.min(), y.max()], "k", linewidth=0.7)
    left.set(xlabel="predicted, with intervals of 90 %", ylabel="price", title="houses that were held out")
    right.barh(["area", "year", "town", "tax"], model.feature_relevance_)
    right.set(title="share in the prediction")
    return figure


if __name__ == "__main__":
    plt.rcParams.update({"font.size": 9})
    pages = {"a_survey": survey, "errors": errors, "a_grid": grid, "a_simulation": simulation, "a_table": table}
    for name, draw in pages.items():
        path = HOWTO / f"i_have_{name}.png"
        draw().savefig(path, dpi=110)
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
        plt.close("all")
