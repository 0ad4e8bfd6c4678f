"""The kernel matrix of few rows with slopes, one length scale a column, and the derivatives of a likelihood by these scales.

With δ = a (x - x'), γ = a c for a slope along c, a the scales of the columns, and D as in `local.radial`:

    K = φ,      K' = -Dφ γ·δ,      K" = -(Dφ γ·γ' + D²φ (γ·δ)(γ'·δ)).

All of them are sums of products of δ² = Σ δ_e², γ_e δ_e and γ_e γ'_e, of which each grows as a_e²; so for any W the derivative of
Σ W K by log a_e is a sum over pairs of rows of these products, and no matrix is formed for each e.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._types import Array
from ..local.radial import Radial


@dataclass(frozen=True)
class ScaledSlopes:
    """Rows Z (n, e) times their scales, and their slopes along ``C`` (n, k, e), times these, too."""

    kernel: Radial
    Z: Array
    C: Array

    @cached_property
    def _offset(self) -> Array:
        return self.Z[:, None] - self.Z[None]  # (n, n, e)

    @cached_property
    def _terms(self) -> tuple[Array, ...]:
        return self.kernel(np.einsum("ije,ije->ij", self._offset, self._offset), 3)

    @cached_property
    def _along(self) -> Array:
        """Offsets (n, n, k) of row i from row j along the slopes of j."""
        return np.matmul(self._offset.swapaxes(0, 1), self.C.swapaxes(1, 2)).swapaxes(0, 1)

    def matrix(self) -> Array:
        """K (N, N), N = n (1 + k): responses first, then slopes row by row."""
        n, k, e = self.C.shape
        f, f1, f2, _ = self._terms
        along, flat = self._along, self.C.reshape(n * k, e)
        K = np.empty((n * (1 + k), n * (1 + k)))
        K[:n, :n] = f
        K[:n, n:] = (-f1[..., None] * along).reshape(n, n * k)
        K[n:, :n] = K[:n, n:].T
        back = -along.swapaxes(0, 1)
        both = f1[:, None, :, None] * (flat @ flat.T).reshape(n, k, n, k)
        both += (f2[..., None] * back).swapaxes(1, 2)[..., None] * along[:, None]
        K[n:, n:] = -both.reshape(n * k, n * k)
        return K

    def slope(self, W: Array) -> Array:
        """Derivatives (e,) of Σ W K by the logs of the scales, for a symmetric ``W`` (N, N)."""
        n, k, _ = self.C.shape
        _, f1, f2, f3 = self._terms
        offset, along, C = self._offset, self._along, self.C
        mixed, slopes = W[:n, n:].reshape(n, n, k), W[n:, n:].reshape(n, k, n, k)
        carried = np.matmul(slopes.transpose(2, 0, 1, 3).reshape(n, n * k, k), C).reshape(n, n, k, -1)  # (j, i, k, e): Σ_l W γ'
        pairs = np.einsum("jike,ike->ije", carried, C)  # Σ_kl W γ_e γ'_e
        met = np.einsum("jike,ije->ijk", carried, offset)  # Σ_l W γ'·δ
        squared = W[:n, :n] * f1 - f2 * (2.0 * np.einsum("ijk,ijk->ij", mixed, along) + pairs.sum(axis=2))
        squared += f3 * np.einsum("ijk,jik->ij", met, along)  # back = -along of the other way
        found = np.einsum("ij,ije,ije->e", squared, offset, offset)
        found -= 4.0 * np.einsum("ije,ije->e", np.einsum("ijk,jke->ije", mixed * f1[..., None], C), offset)
        found -= 2.0 * np.einsum("ij,ije->e", f1, pairs)
        found -= 4.0 * np.einsum("ije,ije->e", np.einsum("ijk,ike->ije", met * f2[..., None], C), offset)
        return np.asarray(found)
