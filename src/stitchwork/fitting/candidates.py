"""Candidates: kernels, degrees, bandwidths and ridges that a fit may choose from, and how a search varies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._types import Array, Index
from ..local.radial import KERNEL_NAMES, NO_KERNEL, Radial, kernel_named
from ..local.settings import Settings
from ..model.space import invert_root
from .defaults import (
    AVERAGED_BANDWIDTHS,
    AVERAGED_DEGREES,
    AVERAGED_KERNELS,
    BANDWIDTHS,
    DEGREES,
    FIXED_BANDWIDTH,
    FIXED_RIDGE,
    LEFT_OUT_KERNELS,
    METRIC_BANDWIDTHS,
    METRIC_KERNEL,
    OTHER_BANDWIDTHS,
    RIDGES,
    SHEET_DEGREES,
    degrees,
)


class Shape(NamedTuple):
    """Hyperparameters that share one factorisation: index of the kernel, degree, bandwidth in units of b, index of the local
    metric, and weight of measured slopes.
    """

    kernel: int
    degree: int
    bandwidth: float
    local_metric: int = 0
    slopes: float = 1.0


@dataclass(frozen=True)
class Candidates:
    """Every shape with every ridge; see `Settings` for ``local_metrics``."""

    kernels: tuple[Radial, ...]
    shapes: tuple[Shape, ...]
    ridges: Array
    local_metrics: Array | None = None

    def __len__(self) -> int:
        return len(self.shapes) * len(self.ridges)

    def settings(self, chosen: Index, tolerance: Array | float) -> Settings:
        """Settings of regions that chose ``chosen`` (m,), an index into shapes × ridges, at this tolerance of the rank."""
        tolerance = np.broadcast_to(tolerance, chosen.shape).astype(float)
        shape, ridge = np.divmod(chosen, len(self.ridges))
        kernel, degree, bandwidth, local_metric, slopes = (np.array(column)[shape] for column in zip(*self.shapes, strict=True))
        found = Settings(
            self.kernels, kernel, bandwidth.astype(float), self.ridges[ridge], degree, tolerance, local_metric, self.local_metrics
        )
        return found if all(shape.slopes == 1.0 for shape in self.shapes) else replace(found, slopes=slopes)

    def local_metric(self, index: int) -> Array | None:
        """The matrix of a local_metric."""
        return None if self.local_metrics is None else np.asarray(self.local_metrics[index])

    def add_shapes(self, shapes: Sequence[Shape]) -> Candidates:
        """These and the shapes that are not among them yet."""
        return replace(self, shapes=tuple(dict.fromkeys((*self.shapes, *shapes))))

    def add_spline(self) -> Candidates:
        """Add the roughest polyharmonic spline among the kernels, at its least degree: it hardly oscillates between points."""
        splines = [k for k, kernel in enumerate(self.kernels) if kernel.scale_free and kernel is not NO_KERNEL]
        if not splines:
            return self
        roughest = min(splines, key=lambda k: self.kernels[k].smoothness)
        return self.add_shapes([Shape(roughest, self.kernels[roughest].least_degree, 1.0)])

    def vary_degree(self, every: Sequence[int]) -> Candidates:
        """Also every shape at each of these degrees."""
        least = [kernel.least_degree for kernel in self.kernels]
        return self.add_shapes([shape._replace(degree=max(k, least[shape.kernel])) for shape in self.shapes for k in every])

    def vary_bandwidth(self, factor: float, narrow: bool) -> Candidates:
        """Also every shape at ``factor`` times and 1 / ``factor`` of its bandwidth.

        Unless ``narrow``, bandwidths below the mean distance are tried only for kernels whose search starts there.
        """
        scaled = [shape for shape in self.shapes if not self.kernels[shape.kernel].scale_free]
        found = [shape._replace(bandwidth=shape.bandwidth * f) for shape in scaled for f in (factor, 1.0 / factor)]
        free = [narrow or self.kernels[shape.kernel].name in BANDWIDTHS or shape.bandwidth > 0.99 for shape in found]
        return self.add_shapes([shape for shape, may in zip(found, free, strict=True) if may])

    def vary_slopes(self, weights: Sequence[float]) -> Candidates:
        """Also every shape with each of these weights of measured slopes."""
        return self.add_shapes([shape._replace(slopes=weight) for shape in self.shapes for weight in weights])


Move = Callable[[Candidates], Candidates]


def make_candidates(
    kernels: Sequence[Radial], every: Sequence[int], bandwidths: Sequence[float], ridges: Sequence[float]
) -> Candidates:
    """All combinations that make sense: a scale-free kernel has one bandwidth, and no degree below its least.

    Empty ``bandwidths`` stand for those at which the search of each kernel starts.
    """
    shapes: dict[Shape, None] = {}
    for index, kernel in enumerate(kernels):
        own = bandwidths or BANDWIDTHS.get(kernel.name, OTHER_BANDWIDTHS)
        for degree in every:
            for bandwidth in (1.0,) if kernel.scale_free else own:
                shapes[Shape(index, max(degree, kernel.least_degree), float(bandwidth))] = None
    return Candidates(tuple(kernels), tuple(shapes), np.asarray(ridges, dtype=float))


def metric_candidates(candidates: Candidates, kernel: Any, d: int) -> Candidates:
    """What metrics are tried with: one kernel, unless the user named some."""
    if not (isinstance(kernel, str) and kernel == "auto") or candidates.kernels == (NO_KERNEL,):
        return candidates
    degree = candidates.shapes[0].degree
    return make_candidates([kernel_named(METRIC_KERNEL, d)], [min(degree, 1)], METRIC_BANDWIDTHS, candidates.ridges.tolist())


def make_families(
    metrics: Sequence[Mapping[str, Array]], ridges: Array, degree: Any, bandwidth: Any, h: int, d: int, smoothness: float
) -> tuple[tuple[Candidates, ...], tuple[Move, ...]]:
    """Candidates of models that are averaged: every kernel in every metric, and how the search varies them.

    ``metrics`` map kernels to roots. Regions are balls in the first metric; other roots become local metrics relative to it.
    """
    kernels = tuple(k for k in (kernel_named(name, d) for name in AVERAGED_KERNELS) if k.smoothness >= smoothness)
    roots = {id(root): root for root in (metrics[0][METRIC_KERNEL], *(roots[k.name] for roots in metrics for k in kernels))}
    inverse = invert_root(metrics[0][METRIC_KERNEL])
    local_metrics = np.stack([inverse @ root for root in roots.values()]) if len(roots) > 1 else None
    possible = tuple(k for k in AVERAGED_DEGREES if k in degrees(h, d)) or (0,)
    every = possible if isinstance(degree, str) else tuple(int(k) for k in np.atleast_1d(degree))
    widths = _values(bandwidth, AVERAGED_BANDWIDTHS)
    families = tuple(
        Candidates(kernels, tuple(Shape(k, every[-1], width, [*roots].index(id(root))) for width in widths), ridges, local_metrics)
        for by_kernel in metrics
        for k, root in enumerate(by_kernel[kernel.name] for kernel in kernels)
    )
    return families, (partial(Candidates.vary_degree, every=every),)


def read_candidates(
    p: dict[str, Any], h: int, d: int, smoothness: float, unit: float, sheet: bool = False
) -> tuple[Candidates, tuple[Move, ...]]:
    """The initial candidates that the constructor's parameters allow, and the moves by which the search varies them.

    ``unit`` is the mean weight of a point, the unit of ridges that are not given. A ``sheet`` has higher degrees.
    """
    chosen = p["selection"] is not None
    kind = p["local_model"] if isinstance(p["local_model"], str) else "krr-poly"
    kernels = read_kernels(p["kernel"] if chosen or p["kernel"] != "auto" else "gaussian", kind, h, d, smoothness)
    moves: list[Move] = []
    every: Sequence[int] = (-1,) if kind == "krr" else ()
    if not every and isinstance(p["degree"], str):
        possible = degrees(h, d, SHEET_DEGREES if sheet else DEGREES)
        every = (min(possible[-1], 0 if chosen else 2),)
        moves.append(partial(Candidates.vary_degree, every=possible))
    every = every or tuple(int(degree) for degree in np.atleast_1d(p["degree"]))
    if isinstance(p["bandwidth"], str):
        given = p["kernel"] != "auto"
        moves += [partial(Candidates.vary_bandwidth, factor=factor, narrow=given) for factor in (2.0, 2.0**0.5)]
    bandwidths = _values(p["bandwidth"], () if chosen else (FIXED_BANDWIDTH,))
    ridges = _values(p["ridge"], tuple(unit * r for r in RIDGES) if chosen and p["ridge"] == "auto" else (FIXED_RIDGE,))
    return make_candidates(kernels, every, bandwidths, ridges), tuple(moves)


def read_kernels(names: str | Sequence[str], local_model: str, h: int, d: int, smoothness: float) -> tuple[Radial, ...]:
    """Kernels of these names; ``"auto"`` means those of this ``smoothness`` whose polynomial leaves points to the kernel."""
    if local_model == "poly":
        return (NO_KERNEL,)
    if isinstance(names, str) and names != "auto":
        names = (names,)
    if not isinstance(names, str):
        return tuple(kernel_named(name, d) for name in dict.fromkeys(names))
    most = degrees(h, d)[-1] if local_model == "krr-poly" else -1
    usual = [kernel_named(name, d) for name in KERNEL_NAMES if name not in LEFT_OUT_KERNELS]
    return tuple(k for k in usual if k.smoothness >= smoothness and k.least_degree <= most)


def _values(value: Any, auto: tuple[float, ...]) -> tuple[float, ...]:
    """A parameter as candidates; a word stands for ``auto``."""
    return auto if isinstance(value, str) else tuple(np.atleast_1d(value).ravel().astype(float))
