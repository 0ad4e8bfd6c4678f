"""What each region uses: kernel, degree, bandwidth, ridge, and how far to trust its polynomial."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._parallel import slices
from .._types import Array, Index
from .radial import Radial

SETTINGS = ("kernel", "bandwidth", "ridge", "degree", "tolerance", "turn")  # the fields that hold a value for each region


@dataclass(frozen=True)
class Settings:
    """Hyperparameters of each region, (m,): index into ``kernels``, σ in units of b, η, degree ℓ (-1: none), rank tolerance, turn.

    A turn is an index into ``turns`` (k, d, d), matrices by which points are multiplied before distances are measured: a metric of
    the region's own. Without turns there is nothing to multiply by.
    """

    kernels: tuple[Radial, ...]
    kernel: Index
    bandwidth: Array
    ridge: Array
    degree: Index
    tolerance: Array
    turn: Index
    turns: Array | None = None

    def at(self, regions: Index) -> Settings:
        """Those of some regions."""
        return replace(self, **{name: getattr(self, name)[regions] for name in SETTINGS})

    def turn_of(self, region: int) -> Array | None:
        """The matrix of one region."""
        return None if self.turns is None else np.asarray(self.turns[self.turn[region]])

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
    def kind(self) -> Index:
        """One number for each combination of turn, kernel and degree, (m,)."""
        return (self.turn * len(self.kernels) + self.kernel) * (self.degree.max() + 2) + self.degree + 1

    def stacks(self, size: int) -> list[Index]:
        """Regions of the same turn, kernel and degree, in stacks of at most ``size``."""
        kind = self.kind
        alike = [np.flatnonzero(kind == value) for value in np.unique(kind)]
        return [group[part] for group in alike for part in slices(len(group), size)]
