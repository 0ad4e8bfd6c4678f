"""Checks of what comes with the rows of data: weights, errors and groups."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Array, Index
from . import number_groups, unmasked

_LARGE = 4.0  # variances of errors, in variances of the responses, that are hardly right


def check_weights(sample_weight: Any, n: int) -> Array:
    """Weights (n,) of the points, one each by default."""
    if sample_weight is None:
        return np.ones(n)
    v = np.asarray(unmasked(sample_weight, "sample_weight"), dtype=float)
    v = np.full(n, float(v)) if v.ndim == 0 else v
    if v.shape != (n,):
        raise ValueError(f"`sample_weight` must have shape ({n},), one weight per row of X, got shape {v.shape}.")
    if not np.isfinite(v).all() or (v < 0.0).any():
        raise ValueError("`sample_weight` must be finite and not negative. Give 0 to leave a point out.")
    if not v.any():
        raise ValueError("`sample_weight` must be positive for some point, but all weights are zero.")
    return v


def check_errors(noise_std: Any, sample_weight: Any, n: int, t: int) -> Array | None:
    """Error variances (n, t) of n observations of t outputs, None if `noise_std` is not given."""
    if noise_std is None:
        return None
    check_either(noise_std, sample_weight)
    s = np.asarray(unmasked(noise_std, "noise_std"), dtype=float)
    s = np.full(n, float(s)) if s.ndim == 0 else s
    if s.shape not in ((n,), (n, t)):
        raise ValueError(f"`noise_std` must have shape ({n},) or ({n}, {t}), a standard deviation per row, got shape {s.shape}.")
    if not np.isfinite(s).all() or (s <= 0.0).any():
        raise ValueError("`noise_std` must be positive and finite, in the unit of y. Leave rows without a known error out.")
    with np.errstate(over="ignore", under="ignore"):
        s2 = np.square(np.broadcast_to(s.reshape(n, -1), (n, t)))
    if not (np.isfinite(s2) & (s2 > 0.0)).all():
        raise ValueError("`noise_std` has values whose squares cannot be represented. Rescale y.")
    return s2


def warn_of_errors(s2: Array | None, y: Array) -> None:
    """Warn of errors with variances ``s2`` (n, t) of which most are larger than the responses (n, t) vary."""
    if s2 is not None and len(y) > 2 and (np.median(s2, axis=0) > _LARGE * np.nanvar(y, axis=0)).any():
        warnings.warn(
            "Most errors are larger than twice the standard deviation of the responses, so the model is little more than a mean. Is"
            " `noise_std` in the unit of y?",
            UserWarning,
            stacklevel=4,
        )


def check_either(noise_std: Any, sample_weight: Any) -> None:
    """Raise a `ValueError` where rows have both errors and weights."""
    if noise_std is not None and sample_weight is not None:
        raise ValueError("Give either `sample_weight` or `noise_std`: the errors of observations determine their weights.")


def check_more_errors(noise_std: Any, sample_weight: Any, known: Any, n: int, t: int) -> Array | None:
    """Like `check_errors`, for rows added to a model that was fitted with ``known`` errors or without."""
    if (noise_std is None) != (known is None):
        raise ValueError("Give `noise_std` with all rows or with none: a model that was fitted with errors needs them.")
    return check_errors(noise_std, sample_weight, n, t)


def check_groups(groups: Any, n: int, known: bool = False) -> Index | None:
    """Numbers (n,) of the groups of the points, or None; where groups are ``known`` already, all points may be in one."""
    if groups is None:
        return None
    labels = np.asarray(unmasked(groups, "groups"))
    if labels.shape != (n,):
        raise ValueError(f"`groups` must have shape ({n},), one entry per row of X, got shape {labels.shape}.")
    if labels.dtype.kind in "fc" and not np.isfinite(labels).all():
        raise ValueError("`groups` must not have missing entries. Give each row without a group a label of its own.")
    try:
        entries, group = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError("`groups` must be all numbers or all words. Turn them into text first.") from error
    if n > 1 and len(entries) == 1 and not known:
        raise ValueError(
            "`groups` must name at least two groups, but all points are in one. Leave it out to judge points one by one."
        )
    return number_groups(entries)[group]


def check_more_groups(groups: Any, n: int, grouped: bool) -> Index | None:
    """Like `check_groups`, for points added to a model that was fitted with groups (``grouped``) or without."""
    if (groups is not None) != grouped:
        has = "was fitted with groups: give `groups` for new points, too" if grouped else "has no groups: leave `groups` out"
        raise ValueError(f"The model {has}, or fit all points anew.")
    return check_groups(groups, n, known=True)


def as_frame(names: Sequence[str] | None, X: Array) -> Any:
    """Points (n, d) as a data frame with these names, where there are any and pandas is there; else as they are."""
    if not names:
        return X
    try:
        from pandas import DataFrame
    except ModuleNotFoundError:
        return X
    return DataFrame(X, columns=list(names))
