"""Does the paper's method reproduce, and how near is it to LAPACK's own time? ``python -m benchmarks.figures``

One thread. The floor of a fit is LAPACK's work on all of its regions, timed alone: the singular values of P with the h × h system
that we solve, and the paper's block system of h + s unknowns.
"""

from __future__ import annotations

import time

import numpy as np

from stitchwork import StitchedRegressor
from stitchwork._parallel import single_threaded_blas, slices
from stitchwork.datasets import make_2d
from stitchwork.local.batch import batch_size, make_batch
from stitchwork.local.polynomial import monomials

PRINTED = {50: (0.038, 0.037), 75: (0.043, 0.029), 100: (0.041, 0.021), 125: (0.067, 0.055), 150: (0.110, 0.064)}


def errors(model, data):
    error = model.predict(data.test_data) - data.test_target
    relative = np.abs(error) / np.abs(data.test_target)
    return np.sqrt(np.mean(error**2)), relative.max(), relative.mean()


def accuracy(data):
    print("paper's settings, 2-D test                RMSE      max rel.  mean rel.   printed RMSE, mean rel.")
    for h, printed in PRINTED.items():
        model = StitchedRegressor.paper(region_size=h).fit(data.data, data.target)
        print(f"PU-KRR-POLY, h = {h:<22} {'{:9.4f} {:9.2f} {:9.4f}'.format(*errors(model, data))}    {printed}")
    for name, printed in (("krr", (0.249, 0.026)), ("poly", (0.239, 0.037))):
        model = StitchedRegressor.paper(local_model=name).fit(data.data, data.target)
        print(f"PU-{name.upper():<36} {'{:9.4f} {:9.2f} {:9.4f}'.format(*errors(model, data))}    {printed}")
    model = StitchedRegressor().fit(data.data, data.target)
    print(f"the default                              {'{:9.2g} {:9.2g} {:9.2g}'.format(*errors(model, data))}")


def floor(model):
    """CPU seconds of bare LAPACK on all regions of a fitted model: our factorisations, and the block system's."""
    points, ours, block = model.model_.points, 0.0, 0.0
    with single_threaded_blas():
        for models in {id(level.models): level.models for level in model.model_.levels[:-1]}.values():
            h = models.members.shape[1]
            for part in slices(len(models.members), batch_size(h)):
                batch = make_batch(points, models.members[part], False)
                K, _, _ = batch.system(models.settings.kernels[0], np.ones(len(batch.Z)), 2, 1e-10)
                K[:, np.arange(h), np.arange(h)] += 1e-5
                P = np.ascontiguousarray(monomials(2, 2).values(batch.Z))
                s = P.shape[2]
                whole = np.zeros((len(K), h + s, h + s))
                whole[:, :h, :h], whole[:, :h, h:], whole[:, h:, :h] = K, P, P.swapaxes(1, 2)
                rhs = np.concatenate([batch.y, np.zeros((len(K), s, 1))], axis=1)
                started = time.process_time()
                np.linalg.svd(P, full_matrices=False)
                np.linalg.solve(K, batch.y)
                middle = time.process_time()
                np.linalg.solve(whole, rhs)
                ours += middle - started
                block += time.process_time() - middle
    return ours, block


def cpu(function, runs=7):
    """Median CPU seconds."""
    seconds = []
    for _ in range(runs):
        started = time.process_time()
        function()
        seconds.append(time.process_time() - started)
    return float(np.median(seconds))


def speed(data):
    model = StitchedRegressor.paper(selection=None, ridge=1e-5)
    fit = cpu(lambda: model.fit(data.data, data.target))
    ours, block = np.median([floor(model) for _ in range(7)], axis=0)
    ratios = f"{fit / ours:.2f} × our bare LAPACK, {fit / block:.2f} × that of the block system"
    print(f"\nfit of 20,000 points at one (σ, η): {fit:.3f} CPU s, {ratios}")
    Q = np.random.default_rng(5).uniform(-6, 30, (100_000, 2))
    default = StitchedRegressor().fit(data.data, data.target)
    for name, fitted in (("paper's settings", model), ("default", default)):
        value, gradient, hessian = (cpu(lambda f=f: f(Q), 5) for f in (fitted.predict, fitted.gradient, fitted.hessian))
        print(
            f"100,000 queries, {name}: {value * 10:.2f} µs each; gradient {gradient / value:.2f} ×, Hessian {hessian / value:.2f} ×"
        )


if __name__ == "__main__":
    data = make_2d()
    accuracy(data)
    speed(data)
