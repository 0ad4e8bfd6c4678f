"""Curves that points lie on, as tracks, flight lines and flamelets do, found without being told.

A point lies on a curve if its nearest points are in one direction from it, forth or back. Points that are next to each other, on
curves of one direction, are on the same, so that crossing lines stay apart. Leaving out whole curves tells what is said between
them, which neighbours on the same curve hide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .._types import Array, Index

NEXT = 4  # nearest points that tell: of random points in the plane, 9 % seem to lie on a curve by so many
_CONE = np.cos(np.pi / 6)  # they lie within 30 degrees of one direction


def lie_on_curves(offset: Array) -> tuple[NDArray[np.bool_], Array]:
    """Whether points lie on curves, (…), and their directions (…, d), from the offsets (…, k, d) of their nearest points."""
    length = np.sqrt(np.einsum("...kd,...kd->...k", offset, offset))[..., None]
    unit = np.divide(offset, length, out=np.zeros_like(offset), where=length > 0.0)
    direction = np.linalg.eigh(unit.swapaxes(-1, -2) @ unit)[1][..., -1]  # of the largest spread
    return (np.abs(unit @ direction[..., None]) > _CONE).all(axis=(-1, -2)), direction


def find_curves(Z: Array, distances2: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether two members of a region are on one curve, (B, h, h), and which members are on any, (B, h).

    From members ``Z`` (d, B, h), coordinates first, and their squared ``distances2`` (B, h, h).
    """
    B, h = distances2.shape[:2]
    apart = distances2.copy()
    np.einsum("bhh->bh", apart)[...] = np.inf
    near: Index = np.argpartition(apart, NEXT - 1, axis=2)[:, :, :NEXT]
    X = np.moveaxis(Z, 0, 2)
    rows = np.arange(B)[:, None, None]
    on, direction = lie_on_curves(X[rows, near] - X[:, :, None])
    alike = np.abs(np.einsum("bhkd,bhd->bhk", direction[rows, near], direction)) > _CONE
    joined = on[..., None] & on[rows, near] & alike
    first = np.broadcast_to((np.arange(B * h).reshape(B, h))[..., None], near.shape)
    edges = first[joined], (rows * h + near)[joined]
    _, curve = connected_components(coo_array((np.ones(len(edges[0])), edges), shape=(B * h, B * h)), directed=False)
    curve = curve.reshape(B, h)
    return curve[:, :, None] == curve[:, None, :], on
