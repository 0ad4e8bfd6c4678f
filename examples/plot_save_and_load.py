"""
Saving and loading
==================

A model is saved as one safetensors file: arrays and a JSON header, no pickle. Loading it runs no code from the file, so a model
from a stranger is data, not a program. The loaded model gives the same numbers to the last bit.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from safetensors import safe_open

from stitchwork import StitchedRegressor, load

rng = np.random.default_rng(0)
X = rng.uniform(0, 6, (1000, 2))
model = StitchedRegressor(metric="euclidean", kernel="gaussian").fit(X, np.sin(X[:, 0]) * np.cos(X[:, 1]))

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "waves.stitch"
    model.save(path)
    size = path.stat().st_size
    loaded = load(path)
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name).nbytes for name in file.keys()}  # noqa: SIM118

# %%
# Values, gradients and what was chosen are the same.

Q = rng.uniform(0, 6, (500, 2))
same = np.array_equal(loaded.predict(Q), model.predict(Q)) and np.array_equal(loaded.hessian(Q), model.hessian(Q))
print(f"{size / 1000:.0f} kB for {len(X)} points, {model.n_regions_} regions; the same to the last bit: {same}")
print(loaded.summary() == model.summary())

# %%
# A file that was cut off is refused, with a reason.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "cut.stitch"
    model.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    try:
        load(path)
    except ValueError as error:
        refusal = str(error)
        print(refusal.replace(str(path), path.name))

# %%
# What is in the file.

largest = sorted(arrays.items(), key=lambda item: -item[1])[:8]
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.barh([name for name, _ in largest][::-1], [count / 1000 for _, count in largest][::-1])
ax.set(xlabel="kB", title="largest arrays of the file")
plt.show()
