"""Draws the pictures of the pages: ``python docs/make_picture.py`` (needs the data home).

``field.png``, of the README and the home page: heights of the Big Tujunga catchment at scattered places, with a gap; the model's
heights with their slope, and its own deviation. ``strain.png``: the maps of ``tutorial.md``, by the code that stands there.
"""

import doctest
import re
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

from stitchwork import StitchedRegressor
from stitchwork.datasets import load_dataset

DOCS = Path(__file__).parent
CORNER, SIDE, GAP, POINTS = np.array([386.0, 3791.0]), 10.0, (6.7, 3.2, 1.3), 2000  # km; centre and radius of the gap


def scattered_heights():
    """Places (n, 2) in km from the corner of a square window, and heights (n,) in m."""
    mountains = load_dataset("mountains")
    X, height = mountains.data / 1e3 - CORNER, mountains.target
    seen = ((X > 0.0) & (X < SIDE)).all(axis=1) & (np.hypot(*(X - GAP[:2]).T) > GAP[2])
    rows = np.random.default_rng(0).choice(np.flatnonzero(seen), POINTS, replace=False)
    return X[rows], height[rows]


def draw_field(X, height):
    """A figure of three maps: what is known, what the model says with its slope, and its standard deviation."""
    model = StitchedRegressor().fit(X, height)
    side = np.linspace(0.0, SIDE, 260)
    Q = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    value, deviation = (answer.reshape(len(side), -1) for answer in model.predict(Q, return_std=True, std_of="function"))
    figure, axes = plt.subplots(1, 3, figsize=(13.2, 4.4), layout="constrained", sharey=True)
    levels, colors = np.arange(400, 2000, 100), "gist_earth"
    axes[0].scatter(*X.T, c=height, s=7, linewidth=0, cmap=colors, vmin=levels[0], vmax=levels[-1])
    axes[0].set_title(f"{len(X):,} heights, with a gap")
    shown = axes[1].contourf(side, side, value, levels, cmap=colors, extend="both")
    arrows = np.stack(np.meshgrid(*2 * [np.linspace(0.4, SIDE - 0.4, 19)]), axis=-1).reshape(-1, 2)
    downhill = -model.gradient(arrows)
    axes[1].quiver(*arrows.T, *downhill.T, pivot="mid", scale=8000, width=0.005, color="white", edgecolor="black", linewidth=0.5)
    axes[1].set_title("one smooth function, and its gradient")
    figure.colorbar(shown, ax=axes[:2], label="height, m; arrows point downhill", aspect=30, pad=0.01)
    unsure = axes[2].contourf(side, side, deviation, np.arange(0, 241, 20), cmap="magma_r", extend="max")
    axes[2].set_title("standard deviation")
    figure.colorbar(unsure, ax=axes[2], label="deviation of the height, m", aspect=30, pad=0.02)
    for ax in axes:
        ax.set(aspect="equal", xlim=(0, SIDE), ylim=(0, SIDE), xlabel="easting, km")
    axes[0].set_ylabel("northing, km")
    return figure


def run_tutorial():
    """The names that the code of the tutorial makes."""
    text = re.sub(r"^```.*$", "", (DOCS / "tutorial.md").read_text(), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, "tutorial", None, 0)
    code = [
        example.source for example in test.examples if "check(Stitched" not in example.source and ".save(" not in example.source
    ]
    exec("".join(code), test.globs)
    return test.globs


def draw_strain(X, V, Q, shear, above, below, **_):
    """A figure of three maps: stations, the rate of shear, and what follows from it."""
    figure, axes = plt.subplots(1, 3, figsize=(13.2, 4.6), layout="constrained", sharey=True)
    some = np.random.default_rng(0).permutation(len(X))[:400]
    axes[0].quiver(*X[some].T, *V[some].T, color="#1f5a8a", scale=400, width=0.0035)
    axes[0].set_title("velocities of GPS stations")
    dots = {"s": 13, "marker": "s", "linewidth": 0}
    shown = axes[1].scatter(*Q.T, c=shear, cmap="magma", vmin=0, vmax=0.3, **dots)
    figure.colorbar(shown, ax=axes[1], label="millionths a year", aspect=30, pad=0.02, extend="max")
    axes[1].set_title("rate of shear, from the gradient")
    for where, color, label in [(below, "#b8d4e8", "yes"), (~above & ~below, "#f2e3b3", "measure first"), (above, "#c2410c", "no")]:
        axes[2].scatter(*Q[where].T, color=color, label=label, **dots)
    axes[2].set_title("at most 0.05 millionths a year?")
    axes[2].legend(markerscale=3, loc="upper right")
    for ax in axes:
        ax.set(aspect="equal", xlabel="east, km", xlim=(X[:, 0].min(), X[:, 0].max()), ylim=(X[:, 1].min(), X[:, 1].max()))
    axes[0].set_ylabel("north, km")
    return figure


def save(figure, name):
    """Write a picture with 255 colours, a third of the bytes."""
    figure.savefig(DOCS / name, dpi=110)
    Image.open(DOCS / name).convert("RGB").quantize(255).save(DOCS / name, optimize=True)
    print(f"{name}: {(DOCS / name).stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    save(draw_field(*scattered_heights()), "field.png")
    save(draw_strain(**run_tutorial()), "strain.png")
