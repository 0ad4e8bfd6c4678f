"""The stitched function of a query in terms that PyTorch and JAX share (paper, section 3.2).

Shapes are fixed: at each group of levels a query takes the K regions that are nearest in units of their radii, K a bound on how
many can contain it, and those that do not get weight zero. Outside its support a region is evaluated at its own origin
instead, so that nothing overflows there and no derivative is zero times infinity. No branch depends on data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..local.radial import Profile
from ..model.bounds import FAR
from ..model.chart import DEGREES, TWO_PI, Chart
from ..model.link import IDENTITY
from ._tables import Design, Group

Tensor = Any


class Framework(NamedTuple):
    """What PyTorch and JAX do each in their own way.

    Attributes
    ----------
    xp : the namespace
    radial : ``radial(profile, s, k)``, values of Dᵏf, of f if k is left out, whose derivative in s is ½ Dᵏ⁺¹f, and so on
    smallest : ``smallest(a, k)``, indices (..., k) of the smallest of ``a`` (..., m), in any order; nothing to differentiate
    """

    xp: Any
    radial: Callable[..., Tensor]
    smallest: Callable[[Tensor, int], Tensor]


def evaluate(
    framework: Framework, design: Design, space: Mapping[str, Tensor], groups: Sequence[Mapping[str, Tensor]], x: Tensor
) -> Tensor:
    """The stitched function at ``x`` (..., d), as (...,) or (..., t).

    f̂ = (w_b f_0 + Σ w_j f_j) / (w_b + Σ w_j) with w_b = w_0 u φ(W / τu) and f_0 the stitched function of the levels that follow.
    """
    d = space["A"].shape[0] if design.chart is None else design.chart.n_features
    if x.ndim < 1 or x.shape[-1] != d:
        raise ValueError(f"`x` must have shape ({d},) or (..., {d}), as the model was fitted, got {tuple(x.shape)}.")
    xp = framework.xp
    x = x if design.chart is None else embed(xp, design.chart, x)
    x = saturate(xp, x, space["lower"], space["upper"], space["margin"])
    u = (x - space["shift"]) @ space["A"]
    sums = [
        level
        for group, arrays in zip(design.groups, groups, strict=True)
        for level in level_sums(framework, group, arrays, design.weight, u)
    ]
    N, W = sums.pop()
    f = N / W
    for (N, W), mean_weight in zip(reversed(sums), reversed(design.mean_weight[: len(sums)]), strict=True):
        w_b = design.background_weight * mean_weight * framework.radial(design.weight, (W / (design.handover * mean_weight)) ** 2)
        f = (N + w_b * f) / (W + w_b)
    f = saturate(xp, f, space["least"], space["most"], space["leeway"])
    f = f if design.link == IDENTITY else xp.exp(f)
    return f[..., 0] if design.flat else f


def embed(xp: Any, chart: Chart, x: Tensor) -> Tensor:
    """Points ``x`` (..., d) embedded, (..., e), see `stitchwork.model.chart`."""
    longitude, latitude = chart.globe or (-1, -1)
    columns = []
    for k, period in enumerate(chart.periods):
        if k == longitude:
            radius, phi, theta = DEGREES / TWO_PI, x[..., latitude] * (TWO_PI / DEGREES), angles(xp, x[..., k], DEGREES)
            columns += [radius * xp.cos(phi) * xp.cos(theta), radius * xp.cos(phi) * xp.sin(theta), radius * xp.sin(phi)]
        elif period:
            radius, theta = period / TWO_PI, angles(xp, x[..., k], period)
            columns += [radius * xp.cos(theta), radius * xp.sin(theta)]
        elif k != latitude:
            columns.append(x[..., k])
    return xp.stack(columns, -1)


def angles(xp: Any, x: Tensor, period: float) -> Tensor:
    """2π x / p, from -π to π; equal where values differ by whole periods."""
    rest = xp.fmod(x, period)
    rest = xp.where(rest > 0.5 * period, rest - period, xp.where(rest <= -0.5 * period, rest + period, rest))
    return rest * (TWO_PI / period)


def saturate(xp: Any, x: Tensor, lower: Tensor, upper: Tensor, margin: Tensor) -> Tensor:
    """Numbers ``x`` that are free between bounds and saturate at a margin beyond, see `stitchwork.model.bounds`."""
    unit = xp.where(margin > 0.0, margin, xp.ones_like(margin))

    def beyond(distance: Tensor) -> Tensor:
        t = xp.clip(distance / unit, 0.0, FAR)
        return margin * t / (1.0 + t**8) ** 0.125

    inside = xp.where(margin > 0.0, x, lower)  # without a margin it is constant
    return xp.where(x > upper, upper + beyond(x - upper), xp.where(x < lower, lower - beyond(lower - x), inside))


def level_sums(
    framework: Framework, group: Group, arrays: Mapping[str, Tensor], weight: Profile, u: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """N = Σ w_j f_j (..., t) and W = Σ w_j of each level of a group at ``u`` (..., d).

    W is (..., 1), or (..., t) where every output has shares of its own, and the same for all of them.
    """
    xp = framework.xp
    region = framework.smallest(squared_ratios(u, arrays["centers"], arrays["reach"]), group.regions_per_query)  # (..., K)
    offset = u[..., None, :] - arrays["centers"][region]
    inside = ((offset / arrays["reach"][region][..., None]) ** 2).sum(-1) < 1.0
    offset = xp.where(inside[..., None], offset, xp.zeros_like(offset))
    local = u[..., None, :] - arrays["origin"][region]
    f = local_values(framework, group, arrays, region, xp.where(inside[..., None], local, xp.zeros_like(local)))
    if "least" in arrays:  # in all groups but the infinite ball
        f = saturate(xp, f, *(arrays[name][region] for name in ("least", "most", "leeway")))
    sums = []
    for radii in arrays["radii"]:
        w = framework.radial(weight, ((offset / radii[region][..., None]) ** 2).sum(-1))
        w = xp.where(inside, w, xp.zeros_like(w))[..., None] * arrays["share"][region]
        sums.append(((w * f).sum(-2), w.sum(-2)))
    return sums


def squared_ratios(u: Tensor, centers: Tensor, radii: Tensor) -> Tensor:
    """(|u - c_j| / r_j)² for ``u`` (..., d) and all m regions, (..., m)."""
    total = ((u[..., :1] - centers[:, 0]) / radii) ** 2
    for i in range(1, centers.shape[1]):
        total = total + ((u[..., i : i + 1] - centers[:, i]) / radii) ** 2
    return total


def local_values(framework: Framework, group: Group, arrays: Mapping[str, Tensor], region: Tensor, local: Tensor) -> Tensor:
    """f_j = Σ α_i K(x_i, q) + Σ b_i·∇_x K(x_i, q) + Σ λ_k p_k(q) (..., K, t) of ``region`` (..., K).

    ``local`` (..., K, d) is from their origins; in units of σ, b·∇_x K = -DK b·(q - x), see `local.hermite`.
    """
    xp = framework.xp
    if "turns" in arrays:
        local = xp.einsum("...kd,...kde->...ke", local, arrays["turns"][region])
    z = local / arrays["scale"][region][..., None]
    f = 0.0
    if group.blocks:
        P = monomial_values(xp, group.blocks, arrays["parent"], arrays["variable"], z)
        f = xp.einsum("...ks,...kst->...kt", P, arrays["lam"][region])
    if not group.kernels:
        return f
    z, members = z / arrays["sigma"][region][..., None], arrays["members"][region]  # (..., K, d), (..., K, d, h)
    s = (z[..., 0, None] - members[..., 0, :]) ** 2
    for i in range(1, z.shape[-1]):
        s = s + (z[..., i, None] - members[..., i, :]) ** 2
    f = f + xp.einsum("...kh,...kht->...kt", kernel_values(framework, group, arrays, region, s, 0), arrays["alpha"][region])
    if "beta" not in arrays:
        return f
    b = arrays["beta"][region]  # (..., K, d, h, t)
    along = sum((z[..., i, None] - members[..., i, :])[..., None] * b[..., i, :, :] for i in range(z.shape[-1]))
    return f - xp.einsum("...kh,...kht->...kt", kernel_values(framework, group, arrays, region, s, 1), along)


def kernel_values(
    framework: Framework, group: Group, arrays: Mapping[str, Tensor], region: Tensor, s: Tensor, order: int
) -> Tensor:
    """D of that ``order`` of the kernel of each ``region`` (..., K) at squared distances ``s`` (..., K, h)."""
    K = framework.radial(group.kernels[0], s, order)
    for k, kernel in enumerate(group.kernels[1:], 1):
        # All kernels and their derivatives are finite inside of a region, so that what is not picked adds zeros.
        K = framework.xp.where((arrays["kernel"][region] == k)[..., None], framework.radial(kernel, s, order), K)
    return K


def monomial_values(xp: Any, blocks: Sequence[int], parent: Tensor, variable: Tensor, z: Tensor) -> Tensor:
    """Values (..., s) of the monomials at ``z`` (..., d): each is one of a degree less times a variable, degree by degree."""
    block = xp.ones_like(z[..., :1])
    values, start = [block], 1
    for size in blocks[1:]:
        part = slice(start, start + size)
        block = block[..., parent[part]] * z[..., variable[part]]
        values.append(block)
        start += size
    return xp.concatenate(values, -1)
