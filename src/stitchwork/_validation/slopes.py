"""Checks of measured slopes, before any work is done."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_consistent_length

from .._types import Array
from ..local.radial import kernel_named
from ..model.bounds import extremes_of
from ..model.stitched import StitchedModel
from . import unmasked

_LEAST_SMOOTHNESS = 2  # of a kernel: systems with slopes use its second derivatives
_SMOOTHER = "Use 'gaussian', 'matern52', 'matern72', 'multiquadric', 'quintic' or 'auto'."


class Measured(NamedTuple):
    """Slopes (n, d, t), zero where there is none, whether each component was measured (n, d), and variances of errors (n, d)."""

    slopes: Array
    measured: NDArray[np.bool_]
    variance: Array | None

    @property
    def known_variance(self) -> Array | None:
        """Variances (n, k) by those features whose slopes were measured."""
        return None if self.variance is None else self.variance[:, self.measured.any(axis=0)]


def check_responses(y: Any, X: Array, some: bool = True) -> Array:
    """Check responses (n,) or (n, t), NaN where only slopes were measured; with ``some``, at least one row must have a response."""
    found = check_array(unmasked(y, "y"), ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
    if found.ndim > 2:
        raise ValueError(f"`y` must have shape (n,) or (n, t), got shape {found.shape}.")
    check_consistent_length(X, found)
    missing = np.isnan(found.reshape(len(found), -1))
    if some and missing.all(axis=1).all():
        raise ValueError("`y` must have a response in at least one row: slopes determine a function only up to a constant.")
    if (missing.any(axis=1) != missing.all(axis=1)).any():
        row = int(np.argmax(missing.any(axis=1) != missing.all(axis=1)))
        raise ValueError(f"`y` must be NaN for all outputs of a row or for none, but row {row} has some. Fit them one by one.")
    return np.asarray(found)


def check_given(gradient: Any, gradient_std: Any, noise_std: Any) -> None:
    """Raise a `ValueError` if errors of slopes are given without slopes, or without errors of responses."""
    if gradient_std is not None and gradient is None:
        raise ValueError("`gradient_std` needs `gradient`, the slopes whose errors it tells.")
    if gradient_std is not None and noise_std is None:
        raise ValueError("`gradient_std` needs `noise_std`: slopes are weighed against responses by the errors of both.")


def check_slopes(
    gradient: Any, gradient_std: Any, X: Array, y: Array, parameters: dict[str, Any], frame: Array | None = None
) -> Measured:
    """Slopes of the responses ``y`` (n, t), which may be NaN, at rows ``X`` (n, d).

    ``frame`` (2, d) has the minimum and the maximum of each feature of the model that the rows are added to.
    """
    check_model(parameters, X.shape[1])
    found = read_slopes(gradient, gradient_std, X, y)
    check_measured(np.asarray(found.measured.any(axis=0)), extremes_of(X if frame is None else np.concatenate([X, frame])))
    return found


def read_slopes(gradient: Any, gradient_std: Any, X: Array, y: Array) -> Measured:
    """Check the slopes of rows, which may have none; parameters and constant features are not checked here."""
    (n, d), t = X.shape, y.shape[1]
    G = np.asarray(unmasked(gradient, "gradient"), dtype=float)
    shapes = [(n, d), (n, 1, d)] if t == 1 else [(n, t, d)]
    if G.shape not in shapes:
        wanted = " or ".join(str(shape) for shape in shapes)
        raise ValueError(f"`gradient` must have shape {wanted}, the slopes of each row by each feature, got shape {G.shape}.")
    G = G.reshape(n, t, d)
    if np.isinf(G).any():
        raise ValueError("`gradient` must not be infinite. Give NaN where a slope was not measured.")
    missing = np.isnan(G)
    if (missing != missing[:, :1]).any():
        row = int(np.argmax((missing != missing[:, :1]).any(axis=(1, 2))))
        raise ValueError(
            f"`gradient` must be NaN for all outputs of a row and feature or for none, but row {row} has some. Fit such outputs"
            " separately."
        )
    measured = ~missing[:, 0]
    nothing = np.isnan(y).all(axis=1) & ~measured.any(axis=1)
    if nothing.any():
        raise ValueError(f"Row {int(np.argmax(nothing))} has neither a response nor a slope. Leave such rows out.")
    return Measured(np.where(missing, 0.0, G).swapaxes(1, 2), measured, _check_variance(gradient_std, measured))


def check_measured(measured: NDArray[np.bool_], frame: Array) -> None:
    """Raise a `ValueError` if no slope was ``measured`` (d,), or one by a feature that ``frame`` (2, d) shows to be constant."""
    if not measured.any():
        raise ValueError("`gradient` must have at least one number, but all of it is NaN. Leave it out to fit the responses alone.")
    constant = (frame[0] == frame[1]) & measured
    if constant.any():
        k = int(np.argmax(constant))
        raise ValueError(
            f"`gradient` has slopes for feature {k}, which is constant in `X`: a model cannot depend on it. Give NaN in its column."
        )


def check_more_slopes(gradient: Any, gradient_std: Any, X: Array, y: Array, model: StitchedModel) -> Measured:
    """Like `check_slopes`, for rows added to a model."""
    known = model.points.slopes
    if known is not None and known.told != (gradient_std is not None):
        has = "was fitted with `gradient_std`: give it" if known.told else "was fitted without `gradient_std`: leave it out"
        raise ValueError(f"The model {has} for new slopes, too, or fit all points anew.")
    return check_slopes(gradient, gradient_std, X, y, model.origin.parameters, model.frame[:2])


def check_other_slopes(gradient: Any, y: Array, model: StitchedModel) -> tuple[Array, Array | None]:
    """New responses (n,) or (n, t) and slopes (n, k, t) for the rows of a model, zero where none was measured; or no slopes."""
    known = model.points.slopes
    if known is None:
        if gradient is not None:
            raise ValueError("`gradient` is for models that were fitted with slopes. Call `fit` with it.")
        return y, None
    if gradient is None:
        raise ValueError("`gradient` is missing: this model was fitted with slopes. Give those of the new responses.")
    n, d, t = len(y), model.n_features, y.size // len(y)
    G = np.asarray(unmasked(gradient, "gradient"), dtype=float)
    if G.shape not in ([(n, d), (n, 1, d)] if t == 1 else [(n, t, d)]):
        raise ValueError(f"`gradient` must have shape {(n, d) if y.ndim == 1 else (n, t, d)}, got shape {G.shape}.")
    used = np.arange(d) if known.feature is None else known.feature
    G = G.reshape(n, t, d)[:, :, used].swapaxes(1, 2)
    needed = measured_rows(model)
    for name, numbers, rows in (("y", y.reshape(n, 1, t), needed[:, :1]), ("gradient", G, needed[:, 1:])):
        wrong = (~np.isfinite(numbers)).any(axis=2) & rows
        if wrong.any():
            row = int(np.argmax(wrong.any(axis=1)))
            raise ValueError(f"`{name}` must have a finite number wherever `fit` had one, but row {row} has none.")
    y = np.where(needed[:, 0] if y.ndim == 1 else needed[:, :1], y, 0.0)
    return y, np.where(needed[:, 1:, None], G, 0.0)


def measured_rows(model: StitchedModel) -> NDArray[np.bool_]:
    """Whether the model uses the response and each slope of every training row, (n, 1 + k)."""
    slopes, merged = model.points.slopes, model.merged
    assert slopes is not None
    if merged is not None:
        return np.asarray(merged.share > 0.0)
    found = np.zeros((model.growth.seen, slopes.weight.shape[1]), dtype=bool)
    found[model.points.row] = slopes.weight > 0.0
    return found


def _check_variance(gradient_std: Any, measured: NDArray[np.bool_]) -> Array | None:
    if gradient_std is None:
        return None
    s, (n, d) = np.asarray(unmasked(gradient_std, "gradient_std"), dtype=float), measured.shape
    if s.shape not in ((), (d,), (n, d)):
        raise ValueError(f"`gradient_std` must be a number or have shape ({d},) or ({n}, {d}), got shape {s.shape}.")
    s = np.broadcast_to(s, (n, d))
    if not (np.isfinite(s) & (s > 0.0))[measured].all():
        raise ValueError("`gradient_std` must be positive and finite wherever a slope was measured, in the unit of the slopes.")
    return np.asarray(np.where(measured, s, 1.0) ** 2)


def check_model(parameters: dict[str, Any], d: int) -> None:
    """Raise a `ValueError` for parameters that do not go with slopes."""
    if not isinstance(parameters["local_model"], str):
        raise ValueError("`gradient` does not work with a `local_model` of your own, which is fitted to responses. Omit one.")
    kernels, asked = parameters["kernel"], parameters["smoothness"]
    named = [kernels] if isinstance(kernels, str) else list(kernels)
    for name in named if parameters["local_model"] != "poly" else []:
        if name == "auto":
            continue
        smoothness = kernel_named(name, d).smoothness
        if smoothness < _LEAST_SMOOTHNESS:
            raise ValueError(f"`kernel`={name!r} has no second derivative at zero, which slopes need. {_SMOOTHER}")
        if not isinstance(asked, str) and smoothness - 1 < asked:
            raise ValueError(f"`kernel`={name!r} with slopes is of class C{smoothness - 1:.0f}, below `smoothness`. {_SMOOTHER}")
