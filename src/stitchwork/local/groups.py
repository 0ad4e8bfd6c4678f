"""Points that are left out together: those of one curve, track, profile or subject.

Neighbours on a track are easy to predict, so leave-one-out of single points would choose what is bold between tracks. With B as in
`system.loo_residuals`, the residuals of the points of group G, all left out, are (B_GG)⁻¹ α_G, as closed as those of one point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index
from .points import Points, gather
from .system import solve_symmetric

_LARGEST_SHARE = 0.5  # of a region's points in one group: beyond it, what is left does not say what the region would
_NEAREST = 8  # points of other groups that say on which side a point has its neighbours
_BEHIND = 0.5  # a point lies between others if one of them is at least so far behind it, in units of the distance of their mean

# A direction that a group alone decides has no precision in B. With this share of the mean of B added, its residual is the response
# itself. With a small ridge, the mean of a group has nearly as little precision, so the share is close to rounding.
_NO_PRECISION = 1e-13


class Together(NamedTuple):
    """Which members of a stack of regions are left out together.

    Attributes
    ----------
    mask : (B, h, h) whether two members are
    judged : (B, h) whether a member lies between what is left of the region without its group, and enough is left
    """

    mask: NDArray[np.bool_]
    judged: NDArray[np.bool_]


def find_together(points: Points, members: Index) -> Together | None:
    """Which ``members`` (B, h) of regions are left out together; None without groups.

    A region that can judge none of its points leaves them out one by one.
    """
    if points.group is None:
        return None
    label = points.group[members]
    return judge_groups(gather(points.X, members), label[:, :, None] == label[:, None, :])


def find_blind(points: Points, members: Index) -> NDArray[np.bool_]:
    """Which regions with these ``members`` (B, h) can judge none of their points by what is left without its group, (B,)."""
    together = find_together(points, members)
    return np.zeros(len(members), dtype=bool) if together is None else np.asarray(~together.judged.any(axis=1))


def judge_groups(Z: Array, mask: NDArray[np.bool_]) -> Together:
    """Groups of the members ``Z`` (d, B, h) of regions by their ``mask``, with those that can be judged."""
    h = mask.shape[1]
    judged = mask.sum(axis=2) <= _LARGEST_SHARE * h
    judged &= lie_between(Z, mask)
    mask[~judged.any(axis=1)] = np.eye(h, dtype=bool)
    return Together(mask, judged)


def lie_between(Z: Array, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each of the points ``Z`` (d, B, h) has points of other groups behind it, seen from the nearest of them, (B, h).

    The other groups cannot predict what lies beyond the last curve, so a choice should not be judged by it.
    """
    X = np.moveaxis(Z, 0, 2)  # (B, h, d)
    X = X - X.mean(axis=1, keepdims=True)
    size = np.einsum("bid,bid->bi", X, X)
    far = np.where(mask, np.inf, size[:, None, :] + size[:, :, None] - 2.0 * X @ X.swapaxes(1, 2))
    k = min(_NEAREST, far.shape[2] - 1)
    near = (far <= np.partition(far, k - 1, axis=2)[:, :, k - 1 : k]) & ~mask
    mean = near @ X / np.maximum(near.sum(axis=2), 1)[..., None] - X  # from each point to that of the nearest others
    along = mean @ X.swapaxes(1, 2) - np.einsum("bid,bid->bi", mean, X)[..., None]
    return np.asarray(np.where(mask, np.inf, along).min(axis=2) <= -_BEHIND * np.einsum("bid,bid->bi", mean, mean))


def weigh_judged(points: Points, members: Index, w: Array) -> Array:
    """Weights ``w`` (B, h) of members in the score of their region: only those that are judged count, where there are any."""
    together = find_together(points, members)
    return w if together is None else w * (together.judged | ~together.judged.any(axis=1, keepdims=True))


def free_blocks(B: Array, mask: NDArray[np.bool_]) -> tuple[Array, Array]:
    """B_GG of all groups in one matrix, (B, h, h), zero between groups, and the precision (B, 1, 1) that counts as none."""
    none = _NO_PRECISION * np.einsum("bii->b", B)[:, None, None] / B.shape[1]
    M = np.where(mask, B, 0.0)
    np.einsum("bii->bi", M)[...] += none[:, :, 0]
    return M, none


def group_residuals(B: Array, alpha: Array, y: Array, mask: NDArray[np.bool_]) -> Array:
    """Residuals (B, h, t) of all points, each without its group; ``y`` is the residual where the others determine nothing."""
    M, none = free_blocks(B, mask)
    return solve_symmetric(M, alpha + none * y)


def targets_left_out(B: Array, alpha: Array, y: Array, region: Index, members: Index, count: Index) -> Array:
    """Residuals (n, t) of the first of ``members`` (n, g) of each ``region`` (n,), left out with ``count`` (n,) of them."""
    g = members.shape[1]
    used = np.arange(g) < count[:, None]
    none = _NO_PRECISION * np.einsum("bii->b", B)[region] / B.shape[1]
    M = B[region[:, None, None], members[:, :, None], members[:, None, :]]
    M = np.where(used[:, :, None] & used[:, None, :], M, 0.0)
    np.einsum("nii->ni", M)[...] += np.where(used, none[:, None], 1.0)
    right = alpha[region[:, None], members] + none[:, None, None] * y[region[:, None], members]
    return solve_symmetric(M, np.where(used[..., None], right, 0.0))[:, 0]
