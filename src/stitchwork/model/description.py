"""A model as named arrays and a small header: the one description that files, folders, pages, exports and readers in C share.

Numbers are arrays, names are text. With k a set of regions and 0 the local model in it (there is room for more than one):

    space/shift (d,), space/A (d, d), space/unit (1,), frame (3, d)
    chart/period, chart/start (d,), chart/globe (2,), chart/limits (2, e) if features have periods or are on the globe; then frame
    is that of the d features, and every other d below is e, the number of coordinates of embedded points
    extremes (2, t) least and greatest response, errors (2, t) the fields of `KnownErrors` if errors are known
    stitch/background_weight (1,), stitch/handover (1,)
    levels/regions (L,) index of a set of regions, levels/reach (L,), levels/usual (L,) the fields of `Support`
    points/X (n, d) in the space of the regions, computed from points/given if absent, points/y (n, t), points/v (n,),
    points/group (n,) if there are groups,
    points/row (n,) the row of the data that each point comes from, 0, 1, … if absent,
    points/often (n,) and points/spread (n, t) if locations were observed more than once, points/given (n, d) as they were given
    regions{k}/centers (m, d), regions{k}/radii (m,), and regions{k}/X, y, v, row where they have points of their own
    regions{k}/extremes (2, m, t) least and greatest response of each region's points, absent in the infinite ball
    regions{k}/model0/members (m, h), origin (m, d), scale (m,), sigma (m,), alpha (m, h, t), lam (m, s, t)
    regions{k}/share (m,) or (m, t) and together (1,), the number of models per ball, if there are several
    regions{k}/model0/kernel, degree (m,), bandwidth, ridge, tolerance (m,), turn (m,) index into turns (k, d, d), the local
    metrics (the identity where turns are absent)
    with slopes points/slopes/direction (n, k, d), value (n, k, t), weight (n, 1 + k), told (1,), feature (k,) where they are
    not by all features, regions{k}/model0/beta (m, h, t d), and slopes (m,), the weights of slopes, where they are not one
    rows/first (N,), rows/share (N,) or with slopes (N, 1 + k) if rows of the data are at one location
    growth (7,) the fields of `Growth`; scores (shapes, ridges) if there are any; deviation/quantiles (levels, t),
    deviation/scale{k}, deviation/noise{k} (m, t) and deviation/slope{k} (m, t, d) if they were computed

The header: ``weight``, ``kernels`` (comma-separated names, which kernel indices refer to), ``flat`` (0 or 1), and as JSON
``feature_names``, ``target_names``, ``parameters``, ``metric_trials``, ``loo_error``, and if there are any ``attributes`` of
columns; ``link``, if it is there, is "log": the levels model log y. Every index and size is checked when a file is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._types import Array
from ..local.blocks import BlockModels
from ..local.points import Merging, Points, Repeats, Slopes
from ..local.polynomial import count_monomials
from ..local.radial import Radial, kernel_named, weight_named
from ..local.settings import Settings
from .arrays import Arrays, describe_chart, describe_function, kernel_names
from .bounds import extremes_of_members
from .chart import DEGREES, LEAST_PERIOD, Chart
from .deviation import LEVELS, Calibration
from .errors import KnownErrors
from .link import IDENTITY, LINKS
from .origin import Growth, Origin
from .reader import Reader
from .space import Space
from .stitch import HANDOVER, Level, Regions, Support
from .stitched import StitchedModel

_INTEGERS = ("members", "kernel", "degree")
_MOST_FEATURES = 10_000


class Description(NamedTuple):
    """A small header of text, and named arrays."""

    header: dict[str, str]
    arrays: Arrays


def describe(model: StitchedModel) -> Description:
    """The description of a model with built-in local models."""
    kernels = kernel_names(model.levels)
    arrays = describe_function(model.levels, model.points, model.space, model.w0)
    arrays |= {
        "points/row": model.points.row,
        "frame": model.frame,
        "extremes": model.extremes,
        "growth": np.array(model.growth, dtype=float),
    }
    arrays |= describe_chart(model.chart, model.limits)
    if model.errors is not None:
        arrays["errors"] = np.stack(model.errors)
    if model.known_calibration is not None:
        arrays["deviation/quantiles"] = model.known_calibration.quantiles
        scales, noises, _, slopes = model.known_calibration
        for k, (scale, noise, slope) in enumerate(zip(scales, noises, slopes, strict=True)):
            arrays |= {f"deviation/scale{k}": scale, f"deviation/noise{k}": noise, f"deviation/slope{k}": slope}
    if model.merged is not None:
        arrays |= {"rows/first": model.merged.first, "rows/share": model.merged.share}
    if model.origin.scores is not None:
        arrays["scores"] = model.origin.scores
    header = {
        "weight": model.weight.name,
        "kernels": ",".join(kernels),
        "flat": str(int(model.flat)),
        "feature_names": _to_json(model.origin.feature_names),
        "target_names": _to_json(model.origin.target_names),
        "parameters": _to_json({name: _plain(value) for name, value in model.origin.parameters.items()}),
        "metric_trials": _to_json(model.origin.metric_trials),
        "loo_error": _to_json(model.known_loo_error),
    }
    if model.origin.link != IDENTITY:
        header["link"] = model.origin.link
    if model.origin.attributes:
        header["attributes"] = _to_json(model.origin.attributes)
    return Description(header, arrays)


def restore(description: Description) -> StitchedModel:
    """The model of a description; a `ValueError` says what is wrong with any other."""
    header, arrays = description
    read = Reader(arrays)
    d = int(_size(arrays, "space/shift", 0, _MOST_FEATURES))
    space = Space(read.floats("space/shift", d), read.floats("space/A", d, d), float(read.positive("space/unit", 1)[0]))
    if "points/X" not in arrays:
        read = Reader({**arrays, "points/X": space.coordinates(read.floats("points/given", None, d))})
    points = restore_points(read, d)
    kernels, weight = restore_kernels(header, d), weight_named(_text(header, "weight"), d)
    chart, limits = restore_chart(read, d)
    features = d if chart is None else chart.n_features
    if float(read.positive("stitch/handover", 1)[0]) != HANDOVER:
        raise ValueError("'stitch/handover' is that of another version")
    reach, which = read.positive("levels/reach", None), read.indices("levels/regions", None, below=len(arrays))
    sets = [restore_regions(read, f"regions{k}", points, kernels) for k in range(int(which.max(initial=-1)) + 1)]
    supports = [Support(float(r), float(u)) for r, u in zip(reach, read.positive("levels/usual", len(reach)), strict=True)]
    levels = tuple(Level(sets[k], support) for k, support in zip(which, supports, strict=True))
    if not levels or not (levels[-1].regions.radii == np.inf).all() or any(np.isinf(r.radii).any() for r in sets[:-1]):
        raise ValueError("the last level, and no other, must be one infinite ball")
    origin = Origin(
        parameters={name: _restored(value) for name, value in _from_json(header, "parameters", dict).items()},
        feature_names=_names(header, "feature_names", features),
        target_names=_names(header, "target_names", points.y.shape[1]),
        metric_trials=_trials(header),
        scores=read.floats("scores", None, None) if "scores" in arrays else None,
        link=_link(header),
        attributes=_attributes(header),
    )
    error = _from_json(header, "loo_error", float | int | None)
    w0 = float(read.positive("stitch/background_weight", 1)[0])
    flat = {"0": False, "1": True}.get(_text(header, "flat"))
    if flat is None or (flat and points.y.shape[1] != 1):
        raise ValueError("'flat' must be 0 or 1, and 0 for several outputs")
    frame, extremes = read.floats("frame", 3, features), read.floats("extremes", 2, points.y.shape[1])
    calibration = restore_calibration(read, sets[:-1], points.y.shape[1])
    growth = restore_growth(read)
    model = StitchedModel(levels, points, space, weight, w0, frame, extremes, flat, origin, growth, error, calibration)
    return replace(
        model, chart=chart, limits=limits, errors=restore_errors(read, points.y.shape[1]), merged=restore_merged(read, points)
    )


def restore_merged(read: Reader, points: Points) -> Merging | None:
    """Which rows are at one location, if there are any."""
    if "rows/first" not in read.arrays:
        return None
    first = read.indices("rows/first", None, below=len(read.arrays["rows/first"]), least=-1)
    return Merging(first, read.floats("rows/share", len(first), *(() if points.slopes is None else (points.equations,))))


def restore_errors(read: Reader, t: int) -> KnownErrors | None:
    """Known errors, if there are any."""
    if "errors" not in read.arrays:
        return None
    unit, further = read.floats("errors", 2, t)
    if not (unit > 0.0).all() or not (further >= 0.0).all():
        raise ValueError("'errors' must be variances")
    return KnownErrors(unit, further)


def restore_growth(read: Reader) -> Growth:
    """What updates of a model need to know."""
    former = "growth" in read.arrays and read.arrays["growth"].shape == (6,)  # without ``basis``, which is at least ``chosen``
    overlap, chosen, seen, changed, judged, surprise, *basis = read.floats("growth", 6 if former else 7).tolist()
    counts = (chosen, seen, changed, judged, *(basis or (chosen,)))
    if min(overlap, surprise, *counts) < 0.0 or max(counts) >= 2.0**53 or any(count % 1.0 for count in counts):
        raise ValueError("growth must be an overlap, five counts and a sum")
    return Growth(overlap, int(chosen), int(seen), int(changed), int(judged), surprise, int(counts[-1]))


def restore_chart(read: Reader, e: int) -> tuple[Chart | None, Array | None]:
    """The chart of a model whose embedded points have ``e`` coordinates, and their limits, if there is one."""
    if "chart/period" not in read.arrays:
        return None, None
    periods = read.floats("chart/period", None)
    start = read.floats("chart/start", len(periods))
    longitude, latitude = read.indices("chart/globe", 2, below=len(periods), least=-1).tolist()
    globe = None if longitude == latitude == -1 else (longitude, latitude)
    if globe and (min(globe) < 0 or longitude == latitude or periods[longitude] != DEGREES or periods[latitude] != 0.0):
        raise ValueError("'chart/globe' must be a longitude and a latitude")
    chart = Chart(tuple(periods.tolist()), globe, tuple(start.tolist()))
    if not len(periods) or chart.dimension != e or not all(p == 0.0 or p >= LEAST_PERIOD for p in periods):
        raise ValueError(f"'chart/period' must be periods of features with {e} coordinates")
    return chart, read.floats("chart/limits", 2, e)


def restore_calibration(read: Reader, sets: list[Regions], t: int) -> Calibration | None:
    """The calibration of standard deviations, if it was computed."""
    if "deviation/quantiles" not in read.arrays:
        return None
    scales = tuple(read.positive(f"deviation/scale{k}", len(regions.radii), t) for k, regions in enumerate(sets))
    noises = tuple(read.floats(f"deviation/noise{k}", len(regions.radii), t) for k, regions in enumerate(sets))
    shapes = [(len(regions.radii), t, regions.centers.shape[1]) for regions in sets]
    known = "deviation/slope0" in read.arrays  # not in format 6
    slopes = tuple(read.floats(f"deviation/slope{k}", *shape) if known else np.zeros(shape) for k, shape in enumerate(shapes))
    return Calibration(scales, noises, read.positive("deviation/quantiles", len(LEVELS), t), slopes)


def restore_points(read: Reader, d: int, prefix: str = "points") -> Points:
    """The points under a prefix, in Fortran order."""
    X = read.floats(f"{prefix}/X", None, d)
    n = len(X)
    group = read.take(f"{prefix}/group", "i", (n,)) if f"{prefix}/group" in read.arrays else None
    y, v, repeats = read.floats(f"{prefix}/y", n, None), read.positive(f"{prefix}/v", n), None
    if f"{prefix}/often" in read.arrays:
        repeats = Repeats(read.positive(f"{prefix}/often", n), read.floats(f"{prefix}/spread", n, y.shape[1]))
    row = read.indices(f"{prefix}/row", n, below=1 << 62) if f"{prefix}/row" in read.arrays else np.arange(n)
    slopes = restore_slopes(read, f"{prefix}/slopes", n, d, y.shape[1])
    return Points(np.asfortranarray(X), y, v, row, group, repeats, read.floats(f"{prefix}/given", n, d), slopes)


def restore_slopes(read: Reader, name: str, n: int, d: int, t: int) -> Slopes | None:
    """Measured slopes, if there are any."""
    if f"{name}/direction" not in read.arrays:
        return None
    direction = read.floats(f"{name}/direction", n, None, d)
    k = direction.shape[1]
    weight, told = read.floats(f"{name}/weight", n, 1 + k), read.indices(f"{name}/told", 1, below=2)
    if not (weight >= 0.0).all():
        raise ValueError(f"{name}/weight must not be negative")
    feature = read.indices(f"{name}/feature", k, below=_MOST_FEATURES) if f"{name}/feature" in read.arrays else None
    return Slopes(direction, read.floats(f"{name}/value", n, k, t), weight, bool(told[0]), feature)


def restore_kernels(header: dict[str, str], d: int) -> tuple[Radial, ...]:
    """The kernels that indices mean."""
    return tuple(kernel_named(name, d) for name in _text(header, "kernels").split(","))


def restore_regions(read: Reader, prefix: str, points: Points, kernels: tuple[Radial, ...]) -> Regions:
    """A set of regions over ``points`` or its own."""
    d, t = points.X.shape[1], points.y.shape[1]
    if f"{prefix}/X" in read.arrays:
        points = restore_points(read, d, prefix)
        if points.y.shape[1] != t:
            raise ValueError(f"{prefix}/y has {points.y.shape[1]} outputs, expected {t}")
    models = restore_models(read, f"{prefix}/model0", points, kernels)
    m = len(models.members)
    radii = read.take(f"{prefix}/radii", "f", (m,))
    if not (radii >= 0.0).all():
        raise ValueError(f"{prefix}/radii must not be negative")
    centers, share, together = np.asfortranarray(read.floats(f"{prefix}/centers", m, d)), None, 1
    if f"{prefix}/share" in read.arrays:
        each = (t,) if read.arrays[f"{prefix}/share"].ndim == 2 else ()  # one for each output, or for all
        share = read.floats(f"{prefix}/share", m, *each)
        together = int(read.indices(f"{prefix}/together", 1, below=m + 1, least=1)[0])
        if m % together or not np.allclose(share.reshape(-1, together, *each).sum(axis=1), 1.0) or not (share >= 0.0).all():
            raise ValueError(f"{prefix}/share must sum to one over the models of a region")
    return Regions(centers, radii, models, share, together, restore_extremes(read, prefix, models, np.isinf(radii).any()))


def restore_extremes(read: Reader, prefix: str, models: BlockModels, infinite: bool) -> Array | None:
    """Extremes of the responses of each region's points; computed here for files of format 7 and before."""
    if infinite:
        return None
    y, m = models.points.y, len(models.members)
    if f"{prefix}/extremes" not in read.arrays:
        return extremes_of_members(y, models.members)
    extremes = read.floats(f"{prefix}/extremes", 2, m, y.shape[1])
    if not (extremes[0] <= extremes[1]).all():
        raise ValueError(f"{prefix}/extremes must be the least and then the greatest")
    return extremes


def restore_models(read: Reader, name: str, points: Points, kernels: tuple[Radial, ...]) -> BlockModels:
    """The local models of a set of regions."""
    (n, d), t = points.X.shape, points.y.shape[1]
    members = read.indices(f"{name}/members", None, None, below=n)
    m, h = members.shape
    if not m or not h:
        raise ValueError(f"{name}/members is empty")
    lam = read.floats(f"{name}/lam", m, None, t)
    degree = read.indices(f"{name}/degree", m, below=lam.shape[1], least=-1)
    if count_monomials(d, int(degree.max())) != lam.shape[1]:
        raise ValueError(f"{name}/lam has {lam.shape[1]} coefficients, but the degree is {degree.max()}")
    kernel, bandwidth = read.indices(f"{name}/kernel", m, below=len(kernels)), read.positive(f"{name}/bandwidth", m)
    local_metrics = read.floats(f"{name}/turns", None, d, d) if f"{name}/turns" in read.arrays else None
    local_metric = read.indices(f"{name}/turn", m, below=1 if local_metrics is None else len(local_metrics))
    ridge, tolerance = read.floats(f"{name}/ridge", m), read.floats(f"{name}/tolerance", m)
    if not (ridge >= 0.0).all() or not (tolerance >= 0.0).all():
        raise ValueError(f"{name}/ridge and tolerance must not be negative")
    slopes = read.floats(f"{name}/slopes", m) if f"{name}/slopes" in read.arrays else None
    settings = Settings(kernels, kernel, bandwidth, ridge, degree, tolerance, local_metric, local_metrics, slopes)
    beta = read.floats(f"{name}/beta", m, h, t * d).reshape(m, h, t, d) if f"{name}/beta" in read.arrays else None
    origin, scale, sigma = read.floats(f"{name}/origin", m, d), read.positive(f"{name}/scale", m), read.positive(f"{name}/sigma", m)
    return BlockModels(points, members, origin, scale, settings, sigma, read.floats(f"{name}/alpha", m, h, t), lam, beta)


def _size(arrays: Arrays, name: str, axis: int, most: int) -> int:
    if name not in arrays or arrays[name].ndim <= axis or not 0 < arrays[name].shape[axis] <= most:
        raise ValueError(f"{name} is missing, or its size makes no sense")
    return int(arrays[name].shape[axis])


def _text(header: dict[str, str], name: str) -> str:
    if not isinstance(header.get(name), str):
        raise ValueError(f"the header lacks {name!r}")
    return header[name]


def _from_json(header: dict[str, str], name: str, kind: Any) -> Any:
    try:
        value = json.loads(_text(header, name), parse_constant=lambda word: None, parse_int=_whole)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{name!r} in the header cannot be read ({type(error).__name__})") from error
    if not isinstance(value, kind):
        raise ValueError(f"{name!r} in the header is {type(value).__name__}")
    return value


def _whole(digits: str) -> int:
    """A whole number that eight bytes hold."""
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
        raise ValueError(f"the number {digits[:20]}… in the header is too large")
    return int(digits)


def _names(header: dict[str, str], name: str, count: int) -> tuple[str, ...] | None:
    names = _from_json(header, name, list | None)
    if names is not None and (len(names) != count or not all(isinstance(text, str) for text in names)):
        raise ValueError(f"{name!r} must be {count} names")
    return None if names is None else tuple(names)


def _link(header: dict[str, str]) -> str:
    link = header.get("link", IDENTITY)
    if link not in LINKS:
        raise ValueError(f"the link {link!r} is that of another version")
    return link


def _trials(header: dict[str, str]) -> dict[str, float]:
    trials: dict[str, float] = _from_json(header, "metric_trials", dict)
    if not all(isinstance(score, float) for score in trials.values()):
        raise ValueError("'metric_trials' must be numbers")
    return trials


def _attributes(header: dict[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = _from_json(header, "attributes", dict) if "attributes" in header else {}
    if not all(isinstance(about, dict) and all(isinstance(text, str) for text in about.values()) for about in found.values()):
        raise ValueError("'attributes' must be texts by column")
    return found


def _to_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _plain(value: Any) -> Any:
    """A constructor parameter as JSON: a matrix or grid keeps its shape, a mapping its keys; a random state becomes None."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return None if isinstance(value, np.random.RandomState) else value


def _restored(value: Any) -> Any:
    if isinstance(value, dict) and "pairs" in value:
        pairs = value["pairs"]
        usable = isinstance(pairs, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
        if not usable or not all(isinstance(key, int | str) for key, _ in pairs):
            raise ValueError("a mapping in 'parameters' must be pairs")
        return {key: _restored(item) for key, item in pairs}
    if isinstance(value, dict):
        return np.array(value.get("array"))
    return tuple(_restored(item) for item in value) if isinstance(value, list) else value
