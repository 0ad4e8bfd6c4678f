"""Few points: one region holds them all, and its models are Gaussian processes.

For each kernel and degree of the polynomial, restricted likelihood gives one length scale per feature and a ridge, from several
starts on some of the rows, then on all. If length scales along the principal directions of its gradients clearly improve the best
model, one with these is added. Where the likelihood finds no noise, the ridge is lowered while leave-one-out errors fall, down to
rounding. The models are averaged with the shares of least squared leave-one-out error.

Outputs may depend on different features: each has models and shares of its own, unless models that serve all of them, whose
likelihood is averaged, are about as good for every one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from .._types import Array, Index
from ..local.batch import make_batch
from ..local.fit import fit_blocks
from ..local.groups import find_together, group_residuals
from ..local.hermite import location_residuals, mask_equations
from ..local.points import Points
from ..local.radial import Radial, kernel_named
from ..local.system import loo_residuals, spectrum
from .candidates import Candidates, Shape
from .choice import Choice, Family
from .defaults import (
    FEW_POINTS,
    LEAST_SHARE,
    LEFT_NOISE,
    LIKELY_MODELS,
    LIKELY_MORE_ROWS,
    LIKELY_ROWS,
    LIKELY_START,
    LIKELY_STEPS,
    LIKELY_WORK,
    METRIC_FLOOR,
    METRIC_GAIN,
    METRIC_ROUNDS,
    MOST_SEPARATE,
    NEGLIGIBLE,
    NOISY_RIDGE,
    RIDGES,
    SHARE_DEVIATION,
    SHARED_TOLERANCE,
    SLOPE_WEIGHTS,
    TIED_SCALES,
    WHOLE_KERNELS,
    whole_degrees,
)
from .likelihood import Rows, least_ridge, maximise_likelihood, polynomial_basis, start_likelihood
from .plan import Plan
from .points import deviation_of, random_sample
from .scores import jitter_penalty, judge_locations

__all__ = ["choose_whole", "share_out"]

_COPIED = 1e-13  # columns whose correlation differs from one by less are the same, but for rounding


class Likely(NamedTuple):
    """A model: log scales and log ridge ``theta``, the scales ``tied`` or not, and its leave-one-out residuals (n, t).

    Residuals include a penalty for rounding. ``slopes`` is the weight of measured ones. Scales are those of columns,
    or along ``axes`` (e, e), an orthonormal basis.
    """

    kernel: Radial
    degree: int
    tied: bool
    theta: Array
    residuals: Array
    slopes: float = 1.0
    axes: Array | None = None

    @property
    def kind(self) -> tuple[str, bool, bool]:
        """What models of different degrees have in common."""
        return self.kernel.name, self.tied, self.axes is not None

    @property
    def error(self) -> float:
        """Mean squared residual."""
        return float(np.square(self.residuals).mean())


class Averaged(NamedTuple):
    """Models, their shares (k,), and the root mean squared leave-one-out error of their average for each output, (t,)."""

    models: list[Likely]
    shares: Array
    errors: Array


def average_likely(models: Sequence[Likely]) -> Averaged:
    """The best average of models, without those that have no share in it."""
    E = np.stack([model.residuals for model in models])
    shares = share_out(np.einsum("knt,lnt->kl", E, E) / E[0].size, E.shape[1])
    kept = np.flatnonzero(shares > 0.0)
    errors = np.sqrt(np.square(np.einsum("k,knt->nt", shares, E)).mean(axis=0))
    return Averaged([models[int(k)] for k in kept], shares[kept], errors)


def choose_whole(points: Points, plan: Plan) -> Choice:
    """The models of the one region of all ``points``, in the space of the regions, with their shares."""
    rows, columns = make_rows(points, plan, plan.noise)
    t = rows.y.shape[1]
    if t == 1 or t > MOST_SEPARATE:
        *_, common = find_models(rows, points, plan)
        return make_choice(points, columns, *average_likely(common)[:2])
    serving = find_models(rows, points, plan)
    together: Averaged | None = None
    noises = [None] * t if plan.noise is None else plan.noise[:, None]
    searches = [find_models(make_rows(points.output(k), plan, noise)[0], points, plan) for k, noise in enumerate(noises)]
    for step, found in enumerate(zip(*searches, strict=True)):
        alone = [average_likely(models) for models in found]
        if step == 0 or together is not None:  # else shared models were worse for some output
            together = average_likely(next(serving))
            least = np.maximum([own.errors[0] for own in alone], NEGLIGIBLE)
            together = together if (together.errors <= SHARED_TOLERANCE * least).all() else None
    if together is not None:
        return make_choice(points, columns, *together[:2])
    models = [model for own in alone for model in own.models]
    shares = [share * np.eye(t)[k] for k, own in enumerate(alone) for share in own.shares]
    return make_choice(points, columns, models, np.array(shares))


def make_choice(points: Points, columns: Columns, models: list[Likely], shares: Array) -> Choice:
    """Models, each a family with its share, of ``shares`` (k,) or (k, t), for regions in the space of the ``points``."""
    unit = columns.unit * np.sqrt(columns.copies)
    local_metrics = np.stack([local_metric(model, columns) for model in models])
    members = np.arange(len(points.X))[None]
    shapes = []
    for k, model in enumerate(models):
        batch = make_batch(points, members, True, local_metrics[k])
        bandwidth = float(1.0 / (batch.scale[0] * batch.b[0]))
        shapes.append(Shape(k, model.degree, bandwidth, k, slope_weight(points, unit, model.slopes)))
    ridges = np.array([np.exp(model.theta[-1]) for model in models]) * points.v.mean()
    candidates = Candidates(tuple(model.kernel for model in models), tuple(shapes), ridges, local_metrics)
    parts = shares.tolist() if shares.ndim == 1 else shares
    families = tuple(Family(candidates, k * len(models) + k, share) for k, share in enumerate(parts))
    return Choice(families, np.sqrt([[model.error for model in models]]), local=False)


class Columns(NamedTuple):
    """For each of e columns: the index of its length scale, its unit, the number of its copies, and its sign relative to the first
    copy, zero for a constant column. ``kept`` are the columns that differ.
    """

    block: Index
    unit: Array
    copies: Array
    kept: Index
    sign: Array


def local_metric(model: Likely, columns: Columns) -> Array:
    """The matrix (e, e) that makes distances of the columns those of the model; copies have equal parts of what one would have."""
    scale, unit = np.exp(model.theta[:-1]), columns.unit * np.sqrt(columns.copies)
    if model.axes is None:
        return np.diag(scale[columns.block] / unit)
    along = np.zeros((len(unit), len(unit)))
    along[:, : len(scale)] = (columns.sign / (unit * np.sqrt(columns.copies)))[:, None] * model.axes[columns.block] * scale
    return along


def find_columns(X: Array, plan: Plan, sloped: bool) -> Columns:
    """The columns of ``X`` (n, e), without their means, that differ: constant and repeated columns carry no information.

    Copies of a column share its length scale, and distances between points stay those of one of them. Where slopes were measured
    (``sloped``), every column is kept: each has slopes of its own.
    """
    e = X.shape[1]
    if plan.chart is not None:
        deviation = np.sqrt(plan.chart.pool_columns(X.var(axis=0)))
        block = np.unique(plan.chart.blocks, return_inverse=True)[1]
        return Columns(block, np.where(deviation > 0.0, deviation, 1.0), np.ones(e), np.arange(e), np.ones(e))
    deviation = X.std(axis=0)
    unit = np.where(deviation > 0.0, deviation, 1.0)
    Z = X / unit
    if sloped:
        return Columns(np.arange(e), unit, np.ones(e), np.arange(e), np.ones(e))
    products = Z.T @ Z
    alike = np.abs(products) >= (1.0 - _COPIED) * len(X)
    varies = deviation > 0.0
    first = np.where(varies, alike.argmax(axis=1), np.argmax(varies))  # the first of its copies; any for what is constant
    kept, block = np.unique(first, return_inverse=True)
    copies = np.maximum(np.bincount(block[varies], minlength=len(kept)), 1)[block]
    return Columns(block, unit, copies, kept, np.where(varies, np.sign(products[np.arange(e), first]), 0.0))


def make_rows(points: Points, plan: Plan, noise: Array | None) -> tuple[Rows, Columns]:
    """The points with columns and responses of unit deviation, without constant and repeated columns; and the `Columns`.

    ``noise`` (t,) is the variance of the error of an observation of weight one, where it is known.
    """
    X = points.X - points.X.mean(axis=0)
    columns = find_columns(X, plan, points.slopes is not None)
    scale, mean = deviation_of(points.y), points.v.mean()
    y, v, repeats = points.y / scale, points.v / mean, points.repeats
    y = y - np.average(y, axis=0, weights=v)
    if repeats is not None:
        repeats = repeats._replace(spread=repeats.spread / mean / scale**2)
    Z = X[:, columns.kept] / columns.unit[columns.kept]
    noise = None if noise is None else noise / mean / scale**2
    rows = Rows(Z, y, np.sqrt(v), columns.block[columns.kept], repeats, noise=noise)
    return rows if points.slopes is None else add_slopes(rows, points.in_units(scale), columns.unit), columns


def add_slopes(rows: Rows, points: Points, unit: Array) -> Rows:
    """Rows with the slopes of ``points``, per deviation of a column unless their errors are told."""
    slopes = points.slopes
    assert slopes is not None
    C, (n, k, t) = slopes.direction / unit, slopes.value.shape
    length = np.ones((n, k)) if slopes.told else np.sqrt(np.einsum("nke,nke->nk", C, C))
    usable = length > 0.0
    length = np.where(usable, length, 1.0)[..., None]
    weight = np.concatenate([slopes.weight[:, 0], (slopes.weight[:, 1:] * usable).ravel()])
    root_v = np.concatenate([rows.root_v, np.repeat(rows.root_v, k)]) * np.sqrt(weight)
    return rows._replace(y=np.concatenate([rows.y, (slopes.value / length).reshape(n * k, t)]), root_v=root_v, slopes=C / length)


def slope_weight(points: Points, unit: Array, weight: float) -> float:
    """The weight of slopes per radius of the one region, from that of slopes per deviation of a column."""
    if points.slopes is None or points.slopes.told:
        return 1.0
    X = points.X - points.X.mean(axis=0)
    return float(weight * np.square(unit).mean() / np.einsum("nd,nd->n", X, X).max())


def find_models(rows: Rows, points: Points, plan: Plan) -> Iterator[list[Likely]]:
    """Models of every kernel and degree, with one length scale a feature or one for all: on some rows, then the best of them on
    more rows, and at last on all.
    """
    n, d, each = len(rows.X), int(rows.block.max()) + 1, points.equations
    sizes = sorted({*(min(max(most // each, FEW_POINTS), n) for most in (LIKELY_ROWS, LIKELY_MORE_ROWS)), n})
    some = random_sample(n, sizes[0])
    names = [kernel_named(name, len(rows.block)) for name in WHOLE_KERNELS]
    found = []
    for kernel in (kernel for kernel in names if kernel.smoothness >= plan.least):
        for tied in (False, True) if d > 1 else (False,):
            starts = start_likelihood(rows, [(size, 1.0) for size in TIED_SCALES] if tied else LIKELY_START)
            for degree in whole_degrees(len(some) * each, len(rows.block), plan.degrees)[: 1 if tied else None]:
                model = Likely(kernel, degree, tied, starts[0], rows.y[:n])
                found.append(
                    weigh_slopes(improve(model, rows, points, some, starts, LIKELY_STEPS, plan.tolerance), rows, points, some, plan)
                )
                starts = [found[-1].theta, *starts[-1:]]  # the next degree goes on from there
    if len(sizes) == 1:
        found += find_axes(found, rows, points, some, plan)
    yield found
    for size in sizes[1:]:
        some = random_sample(n, size)
        best = {k.kind: k for k in sorted(found, key=lambda k: -k.error)}.values()  # the last one stays: the best degree
        ranked = sorted(best, key=lambda k: k.error)
        kept = ranked if size < n else ranked[:LIKELY_MODELS] + [k for k in ranked[LIKELY_MODELS:] if k.tied][:1]
        steps = int(np.clip(LIKELY_WORK / (size * each) ** 3, 1, LIKELY_STEPS))
        found = [improve(k, rows, points, some, [k.theta], steps, plan.tolerance) for k in kept]
        if size == sizes[1]:
            found += find_axes(found, rows, points, some, plan)
        yield found


def find_axes(found: Sequence[Likely], rows: Rows, points: Points, some: Index, plan: Plan) -> list[Likely]:
    """The best model with length scales along the principal directions of its gradients, if that clearly lowers its error.

    A function of few combinations of its features varies along these alone; a better model has gradients that show them better.
    As in Akaike's criterion, the k = e (e - 1) / 2 numbers of a basis must lower the log error of n rows by at least 2 k / n.
    """
    own, e = [k for k in found if not k.tied and k.error > NEGLIGIBLE**2], rows.X.shape[1]
    if not own or plan.chart is not None or rows.slopes is not None or e < 2:
        return []
    best, turned = min(own, key=lambda k: k.error), []
    gain = max(METRIC_GAIN, e * (e - 1) / len(some))
    for _ in range(METRIC_ROUNDS):
        g = find_gradients(best, rows, points, some, plan.tolerance)
        share, axes = np.linalg.eigh(g.T @ g)
        widest = np.maximum(share / max(share[-1], np.finfo(float).tiny), METRIC_FLOOR)
        start = np.append(best.theta[:-1].max() + 0.5 * np.log(widest), best.theta[-1])
        model = improve(best._replace(axes=axes), rows, points, some, [start], LIKELY_STEPS, plan.tolerance)
        if model.error > np.exp(-gain) * best.error:
            break
        best, turned, gain = model, [model], METRIC_GAIN
    return turned


def find_gradients(model: Likely, rows: Rows, points: Points, some: Index, tolerance: float) -> Array:
    """Gradients (n t, e) of a model of ``some`` rows at these, by columns of unit deviation."""
    n, e = rows.X.shape
    here = points.at(some)._replace(X=np.asfortranarray(rows.X[some]), y=rows.y[:n][some])
    region, one = np.zeros(len(some), dtype=np.intp), np.ones(e)
    columns = Columns(np.arange(e), one, one, np.arange(e), one)
    candidates = make_choice(here, columns, [model], np.ones(1)).families[0].candidates
    fitted = fit_blocks(here, np.arange(len(some))[None], candidates.settings(np.zeros(1, dtype=np.intp), tolerance))
    return np.asarray(fitted.evaluate(region, here.X, 1).gradient.reshape(-1, e))


def weigh_slopes(model: Likely, rows: Rows, points: Points, some: Index, plan: Plan) -> Likely:
    """The model with the weight of slopes of the least leave-one-out error, if there is noise and errors of slopes are unknown."""
    if points.slopes is None or points.slopes.told or model.theta[-1] < np.log(NOISY_RIDGE):
        return model
    others = (model._replace(slopes=weight) for weight in SLOPE_WEIGHTS)
    steps, starts = LIKELY_STEPS // 2, [model.theta]
    return min((model, *(improve(k, rows, points, some, starts, steps, plan.tolerance) for k in others)), key=lambda k: k.error)


def improve(model: Likely, rows: Rows, points: Points, some: Index, starts: list[Array], steps: int, tolerance: float) -> Likely:
    """The model with the scales and the ridge of the greatest likelihood of ``some`` rows that is found from the ``starts``.

    With one scale for all features, scale and ridge are found by leave-one-out instead: on rough data it is the better criterion.
    """
    part, here = rows.at(some).weigh_slopes(model.slopes).along(model.axes), points.at(some)
    if model.tied:
        return min(
            (leave_out(model._replace(theta=start), part, here, tolerance, RIDGES) for start in starts), key=lambda k: k.error
        )
    theta, _ = maximise_likelihood(part, model.kernel, model.degree, starts, steps, tolerance)
    lower = tuple(np.exp(theta[-1]) * 0.1**k for k in range(4)) if theta[-1] < np.log(10.0 * least_ridge(len(part.y))) else ()
    return leave_out(model._replace(theta=theta), part, here, tolerance, lower or (np.exp(theta[-1]),))


def leave_out(model: Likely, rows: Rows, points: Points, tolerance: float, ridges: Sequence[float]) -> Likely:
    """The model with its residuals, each point without itself or its group, at the ridge of the least error.

    Where the noise is known, ridges that leave much less of it are no candidates.
    """
    U, etas = polynomial_basis(rows, model.degree, tolerance), np.array(ridges)
    K = rows.kernel_matrix(model.kernel, np.exp(model.theta[:-1])) * (rows.root_v[:, None] * rows.root_v)
    if rows.slopes is not None:
        return leave_out_locations(model, rows, points, K, U, etas)
    S = spectrum(K[None], U[None])
    y = (rows.y * rows.root_v[:, None])[None]
    residuals, alpha = loo_residuals(S, y, etas)
    together = find_together(points, np.arange(len(rows.X))[None])
    if together is not None:
        for k, inverse in enumerate(np.moveaxis(S.inverse(etas), 2, 0)):
            residuals[..., k] = group_residuals((S.V * inverse[:, None]) @ S.V.swapaxes(1, 2), alpha[..., k], y, together.mask)
        residuals *= together.judged[..., None, None] | ~together.judged.any()
    residuals = (
        residuals[0] * np.sqrt(jitter_penalty(alpha * rows.root_v[:, None, None], rows.y[None])) / rows.root_v[:, None, None]
    )
    error = np.square(residuals).sum(axis=(0, 1))
    if rows.noise is not None and len(etas) > 1:
        left = np.einsum("nt,nte->te", y[0], alpha[0]) / (len(y[0]) - U.shape[1]) * etas  # s² η
        error[((left < LEFT_NOISE * rows.noise[:, None]) & (etas < etas.max())).any(axis=0)] = np.inf
    best = int(error.argmin())
    return model._replace(theta=np.append(model.theta[:-1], np.log(etas[best])), residuals=residuals[..., best])


def leave_out_locations(model: Likely, rows: Rows, points: Points, K: Array, U: Array, etas: Array) -> Likely:
    """The same for locations with slopes, which are left out together."""
    n, root_v = len(rows.X), rows.root_v
    np.einsum("ii->i", K)[root_v == 0.0] = 1.0  # decouples equations that were not measured
    S = spectrum(K[None], U[None])
    y = (rows.y * root_v[:, None])[None]
    _, alpha = loo_residuals(S, y, etas)
    together = find_together(points, np.arange(n)[None])
    if together is None:
        found = location_residuals(S, etas, alpha, y, n)
    else:
        mask, found = mask_equations(together.mask, len(rows.y) // n - 1), np.empty_like(alpha)
        for k, inverse in enumerate(np.moveaxis(S.inverse(etas), 2, 0)):
            found[..., k] = group_residuals((S.V * inverse[:, None]) @ S.V.swapaxes(1, 2), alpha[..., k], y, mask)
    jitter = jitter_penalty(alpha * root_v[:, None, None], rows.y[None, :n])
    residuals = judge_locations(found, root_v[None], n)[0] * np.sqrt(jitter)
    if together is not None:
        residuals *= (together.judged[0] | ~together.judged.any())[:, None, None]
    best = int(np.square(residuals).sum(axis=(0, 1)).argmin())
    return model._replace(theta=np.append(model.theta[:-1], np.log(etas[best])), residuals=residuals[..., best])


def share_out(C: Array, n: int) -> Array:
    """Shares (k,) ≥ 0 that sum to one, from the mean products C (k, k) of the models' residuals at n rows: stacking.

    Shares are a priori equal, with the standard deviation τ, and residuals of their average have the variance s² of the best model:
    the most probable shares have the least wᵀ C w + s² / (n τ²) |w - 1/k|². Those too small to be worth a model are left out.
    """
    k = len(C)
    M = C + (np.diagonal(C).min() / (n * SHARE_DEVIATION**2) + np.finfo(float).tiny) * np.eye(k)
    used = np.arange(k)
    while True:
        L = np.linalg.cholesky(M[np.ix_(used, used)] / np.diagonal(M)[used].min())
        w, _ = nnls(L.T, np.linalg.solve(L, np.ones(len(used))))
        w /= w.sum()
        if (w >= LEAST_SHARE).all():
            break
        used = used[w >= LEAST_SHARE]
    shares = np.zeros(k)
    shares[used] = w
    return shares
