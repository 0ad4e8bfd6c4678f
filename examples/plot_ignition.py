"""
Ignition delays with fewer runs
===============================

A simulator takes its time, and a table of its results takes many runs. Here it is a reactor of hydrogen and air in `Cantera
<https://cantera.org>`_: how long it takes to ignite, over temperature, pressure and equivalence ratio. Below a certain temperature,
which depends on the pressure, the delay grows steeply, and that is where runs are needed. The model asks for them.
"""

import cantera
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import qmc

from stitchwork import StitchedRegressor

gas = cantera.Solution("h2o2.yaml")
box = [(0.7, 1.1), (0.0, 1.5), (0.4, 2.0)]  # 1000 K / temperature, log10 of the pressure in atm, equivalence ratio


def log_delay(inverse, pressure, ratio):
    """When a closed reactor of constant volume has become 400 K hotter, log10 of seconds."""
    gas.set_equivalence_ratio(ratio, "H2", "O2:1, N2:3.76")
    gas.TP = 1000 / inverse, 10**pressure * cantera.one_atm
    hot = gas.T + 400.0
    reactor = cantera.IdealGasReactor(gas, clone=False)
    network = cantera.ReactorNet([reactor])
    while hot > reactor.T:
        time, temperature = network.time, reactor.T
        network.step()
    return np.log10(time + (hot - temperature) / (reactor.T - temperature) * (network.time - time))


def run(X):
    """One run for each row."""
    return np.array([log_delay(*x) for x in X])


# %%
# Forty runs of a Sobol sequence to begin with, then forty at a time where the model is least sure, 400 in all. The delay changes
# across a surface that is oblique to the three axes, so the metric is learned.

sobol = qmc.scale(qmc.Sobol(3, rng=0).random(2048)[:1200], *np.transpose(box))
X = sobol[:40]
y = run(X)
model = StitchedRegressor(metric="learned", random_state=0).fit(X, y)
while len(X) < 400:
    asked = model.suggest(40, bounds=box)
    X, y = np.concatenate([X, asked]), np.concatenate([y, run(asked)])
    model.partial_fit(asked, y[-len(asked) :])

# %%
# As many runs of the Sobol sequence, and three times as many. The error is that of log10 of the delay at 1,000 random conditions:
# 0.01 are 2.3 per cent.

Q = np.random.default_rng(1).uniform(*np.transpose(box), (1000, 3))
truth, values = run(Q), run(sobol)


def error_of(fitted):
    """Root mean squared error of log10 of the delay."""
    return np.sqrt(np.mean((fitted.predict(Q) - truth) ** 2))


errors = {n: error_of(StitchedRegressor(metric="learned").fit(sobol[:n], values[:n])) for n in (400, 1200)}
error = error_of(model)
print(f"400 runs that were asked for {error:.4f}; Sobol sequence: 400 runs {errors[400]:.4f}, 1,200 runs {errors[1200]:.4f}")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
inverse, pressure = np.meshgrid(np.linspace(*box[0], 120), np.linspace(*box[1], 120))
delay = model.predict(np.stack([inverse.ravel(), pressure.ravel(), np.ones(inverse.size)], axis=1)).reshape(inverse.shape)
lines = left.contourf(inverse, pressure, delay, levels=20)
figure.colorbar(lines, ax=left, label="log10 of the delay in s")
left.set(xlabel="1000 K / T", ylabel="log10 p / atm", title="stoichiometric mixture")
dots = right.scatter(X[:, 0], X[:, 1], c=np.arange(len(X)), s=8)
figure.colorbar(dots, ax=right, label="run")
right.set(xlabel="1000 K / T", title="where the runs were")
plt.show()
