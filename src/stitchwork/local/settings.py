"""The hyperparameters of each region: kernel, degree, bandwidth, ridge, and the rank tolerance of its polynomial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._parallel import slices
from .._types import Array, Index
from .radial import Radial

SETTINGS = ("kernel", "bandwidth", "ridge", "degree", "tolerance", "local_metric")  # the fields that hold a value for each region


@dataclass(frozen=True)
class Settings:
    """Hyperparameters of each region, (m,): index into ``kernels``, σ in units of b, η, degree ℓ (-1: none), rank tolerance and
    index into ``local_metrics``.

    The latter, (k, d, d), are matrices by which a region multiplies its points before it measures distances; None stands for the
    identity. ``slopes`` (m,) are weights of measured slopes, in units of those of responses; None stands for one.
    """

    kernels: tuple[Radial, ...]
    kernel: Index
    bandwidth: Array
    ridge: Array
    degree: Index
    tolerance: Array
    local_metric: Index
    local_metrics: Array | None = None
    slopes: Array | None = None

    def at(self, regions: Index) -> Settings:
        """Those of some regions."""
        slopes = None if self.slopes is None else self.slopes[regions]
        return replace(self, slopes=slopes, **{name: getattr(self, name)[regions] for name in SETTINGS})

    @property
    def slope_weights(self) -> Array | float:
        """Weights of measured slopes, (m,), or one."""
        return 1.0 if self.slopes is None else self.slopes

    def local_metric_of(self, region: int) -> Array | None:
        """The matrix of one region."""
        return None if self.local_metrics is None else np.asarray(self.local_metrics[self.local_metric[region]])

    def named(self, region: int) -> dict[str, str | int | float]:
        """Those of one region by the names of the constructor's parameters."""
        return {
            "kernel": self.kernels[self.kernel[region]].name,
            "degree": int(self.degree[region]),
            "bandwidth": float(self.bandwidth[region]),
            "ridge": float(self.ridge[region]),
        }

    @property
    def kernel_names(self) -> NDArray[np.str_]:
        """The name of each region's kernel, (m,)."""
        return np.array([kernel.name for kernel in self.kernels])[self.kernel]

    @property
    def used(self) -> list[Radial]:
        """The kernels that some region uses."""
        return [self.kernels[k] for k in np.unique(self.kernel)]

    @property
    def highest_degree(self) -> int:
        """Of all regions; -1 where there are none, as of models without a polynomial."""
        return int(self.degree.max(initial=-1))

    @property
    def kind(self) -> Index:
        """One number for each combination of local metric, kernel and degree, (m,)."""
        return (self.local_metric * len(self.kernels) + self.kernel) * (self.highest_degree + 2) + self.degree + 1

    def stacks(self, size: int) -> list[Index]:
        """Regions of the same local metric, kernel and degree, in stacks of at most ``size``."""
        kind = self.kind
        alike = [np.flatnonzero(kind == value) for value in np.unique(kind)]
        return [group[part] for group in alike for part in slices(len(group), size)]


def join_settings(parts: Sequence[Settings]) -> Settings:
    """Those of all parts, one after the other; kernels and local metrics are the same in all."""
    whole: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in SETTINGS}
    slopes = [np.broadcast_to(part.slope_weights, part.kernel.shape) for part in parts]
    return replace(parts[0], slopes=None if all(part.slopes is None for part in parts) else np.concatenate(slopes), **whole)
