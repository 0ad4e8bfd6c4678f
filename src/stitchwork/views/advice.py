"""Advice on a fitted model: each rule gives one piece of advice, or none.

Every threshold has its reason beside it. Rules see only the fitted function, so they recognise faults of a file by their traces.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .._parallel import ALONE, Threads
from .._types import Array, Index
from ..model.deletion import delete_equations
from ..model.link import IDENTITY, unlink_values
from ..model.loo import LeftOut
from ..model.stitched import StitchedModel
from .errors import on_own_scale

_NOTHING_LEARNED = 0.95  # error over deviation: at 1 the mean does as well, and chance alone takes it a little below
_FEW_FEATURES = 3  # up to here many regions are the rule; with more, one region that holds all rows is the default of small tables
_FAR_RESIDUAL = (
    10.0  # robust standard deviations of the leave-one-out residuals; those of smooth data have heavy tails, hence the next one
)
_FAR_RESPONSE = 3.0  # robust standard deviations of the responses, that a residual must exceed, too
_NORMAL_QUARTILES = 1.349  # distance of a normal variable's quartiles in deviations
_COPIES = 0.05  # share of rows that repeat another with its response: fewer may be chance in rounded data
_LEAST_EFFECT = 0.01  # change per deviation of a feature, in deviations of the response: far below any noise of use
_ASKED = 1000  # points at which effects are looked at
_SHOWN = 6  # features of a point that are named
_SAME_PLACE = 1e-9  # in the unit cube of the regions, above rounding and below any data's resolution


def advise(
    model: StitchedModel, threads: Threads = ALONE, left_out: LeftOut | None = None, where: Callable[[Index], str] | None = None
) -> list[str]:
    """What a user should know or try, most important first; empty where nothing is due.

    ``left_out`` are the leave-one-out results, if they are known already. ``where`` describes some of their points, given by index
    (k,), the farthest outlier first. Models of log y are judged on that scale.

    Examples
    --------
    >>> import numpy as np
    >>> from stitchwork import StitchedRegressor
    >>> from stitchwork.views.advice import advise
    >>> rng = np.random.default_rng(0)
    >>> model = StitchedRegressor(kernel="matern52").fit(rng.uniform(size=(500, 2)), rng.normal(size=500))
    >>> print(advise(model.model_)[0][:43])
    y: the leave-one-out error is as large as t
    """
    found = [one_region(model), copies(model), without_effect(model, threads)]
    if model.settings is not None:
        left_out = on_own_scale(model, model.left_out(threads) if left_out is None else left_out)
        found = [learned_nothing(model, left_out), outliers(model, *left_out[:3], where), wrong_slopes(model, threads), *found]
    return [text for text in found if text]


def learned_nothing(model: StitchedModel, left_out: LeftOut) -> str:
    """An output whose leave-one-out error is that of its mean."""
    spread, error = left_out.y.std(axis=0), left_out.errors()
    worst = [name for name, s, e in zip(_names(model), spread, error, strict=True) if s > 0.0 and e > _NOTHING_LEARNED * s]
    if not worst:
        return ""
    return (
        f"{', '.join(worst)}: the leave-one-out error is as large as the standard deviation, so nothing was learned."
        " Is it the right target?"
        " Do fill values such as -9999 stand among the numbers? Is a feature missing that it depends on?"
    )


def one_region(model: StitchedModel) -> str:
    """A single region in few dimensions."""
    parameters = model.origin.parameters
    ours = parameters["selection"] == "loo" and parameters["region_size"] == "auto"  # few points are one region by default
    if ours or model.n_regions > 1 or model.n_features > _FEW_FEATURES or model.n_points < 2:
        return ""
    return f"All {model.n_points:,} points make one region: there is nothing to stitch. A lower `region_size` adapts to places."


def outliers(model: StitchedModel, X: Array, y: Array, residual: Array, where: Callable[[Index], str] | None = None) -> str:
    """Responses that are far from what all others say, and from the range where most are: how many, and the farthest."""
    low, high = np.quantile(y, [0.25, 0.75], axis=0)
    scale = np.maximum(
        _FAR_RESIDUAL * np.median(np.abs(residual), axis=0) * 2.0 / _NORMAL_QUARTILES,
        _FAR_RESPONSE * (high - low) / _NORMAL_QUARTILES,
    )
    excess = np.abs(residual) / np.where(scale > 0.0, scale, np.inf)
    far = np.flatnonzero((excess > 1.0).any(axis=1))
    count = len(far)
    if not count:
        return ""
    back = (lambda z: z) if model.origin.link == IDENTITY else np.exp
    row, k = np.unravel_index(np.argmax(excess), excess.shape)
    order = far[np.argsort(-excess[far].max(axis=1), kind="stable")]
    place = _say_place(model, X[row]) if where is None else where(order)
    return (
        f"{count:,} {'response lies' if count == 1 else 'responses lie'} far from what the others say, such as"
        f" {model.target_names[k]} = {back(y[row, k]):.6g} where {back(y[row, k] - residual[row, k]):.6g} was expected ({place})."
        " Outliers pull their neighbourhood along: check them, or leave gross errors out with `robust=True` (`--robust`)."
    )


def wrong_slopes(model: StitchedModel, threads: Threads = ALONE) -> str:
    """The location whose slopes all other data contradict most, if there is one."""
    slopes = model.points.slopes
    if slopes is None:
        return ""
    found = delete_equations(model, threads)
    wrong = found.contradicted()[:, 1]
    if not wrong.any():
        return ""
    where = int(np.argmax(found.F[:, 1].max(axis=1) * wrong))
    k, o = np.unravel_index(np.argmax(np.abs(found.residual[where])), found.residual.shape[1:])
    value, feature = slopes.value[where, k, o], int(k) if slopes.feature is None else int(slopes.feature[k])
    return (
        f"The slopes at {_say_place(model, model.X[where])} contradict all other data, such as"
        f" d{_names(model)[o]}/d{model.feature_names[feature]} = {value:.6g} where {value - found.residual[where, k, o]:.6g} was"
        " expected. Check their signs and units, give NaN for them, or leave gross errors out with `robust=True` (`--robust`)."
    )


def _say_place(model: StitchedModel, x: Array) -> str:
    """The features of a point, the first few of many."""
    cells = [f"{name} = {value:.6g}" for name, value in zip(model.feature_names, x, strict=True)]
    return ", ".join(cells[:_SHOWN]) + (", …" if len(cells) > _SHOWN else "")


def _names(model: StitchedModel) -> list[str]:
    return [name if model.origin.link == IDENTITY else f"log {name}" for name in model.target_names]


def copies(model: StitchedModel) -> str:
    """Rows that are there more than once."""
    repeats = model.points.repeats
    if repeats is None:
        return ""
    same = (repeats.often > 1) & (repeats.spread == 0.0).all(axis=1)
    count = float((repeats.often[same] - 1).sum())
    if count < _COPIES * repeats.often.sum():
        return ""
    return f"{count:,.0f} of {repeats.often.sum():,.0f} rows are copies of others, response included. Each counts as one."


def without_effect(model: StitchedModel, threads: Threads = ALONE) -> str:
    """Features along which the prediction hardly changes: deviation times root mean squared slope, by the responses' deviation."""
    if model.n_features == 1 or model.smoothness < 1 or not model.spread:
        return ""
    X = model.X[:: max(1, model.n_points // _ASKED)]
    slope = np.sqrt((model.jet(X, 1, threads).gradient ** 2).mean(axis=0))  # (t, d)
    effect = (slope * model.X.std(axis=0) / np.maximum(model.responses.std(axis=0), np.finfo(float).tiny)[:, None]).max(axis=0)
    columns = [name.partition("=")[0] for name in model.feature_names]  # categories of one column, colour=red, count together
    most = {name: max(share for other, share in zip(columns, effect, strict=True) if other == name) for name in columns}
    names = [name for name, share in most.items() if share < _LEAST_EFFECT]
    if not names:
        return ""
    return (
        f"{', '.join(names)}: without effect on the prediction. Leave out what is constant or tells nothing; if its unit is much"
        " larger than those of others, `metric`='standardized' makes features equal."
    )


def count_known(model: StitchedModel, X: Array, y: Array) -> int:
    """How many rows of ``X`` (n, d) with responses ``y`` (n, t) are points that the model was fitted to."""
    return int(find_known(model, X, y).sum())


def find_known(model: StitchedModel, X: Array, y: Array) -> NDArray[np.bool_]:
    """Which rows (n,) of ``X`` (n, d) with responses ``y`` (n, t) are points that the model was fitted to."""
    distance, nearest = cKDTree(model.points.X).query(model.space.coordinates(model.embed(X)))
    z = unlink_values(model.origin.link, np.where(y > 0.0, y, np.nan)) if (model.responses is not model.points.y) else y
    close = np.isclose(model.points.y[nearest], z, rtol=1e-9, atol=0.0).all(axis=1)
    return np.asarray((distance < _SAME_PLACE) & close)
