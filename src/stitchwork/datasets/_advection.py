"""Advection on the unit sphere: ∂q/∂t + u · ∇q = 0, solved by a semi-Lagrangian scheme with local RBF interpolation.

The value at a node is the value at the point from which the flow came, a time step ago (Shankar and Wright 2018); there it is
interpolated from the nearest node's stencil. A stencil is seen in the tangent plane of its node: ξ = E (x - x_i) / scale, with E
(2, 3) an orthonormal frame of the plane, where -r⁵ and bivariate polynomials of degree ℓ interpolate with order ℓ + 1. The frame's
origin is where the chart's gradient is the surface gradient, so the same stencils give it with order ℓ (RBF-FD).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import SphericalVoronoi, cKDTree

from .._parallel import ALONE, Threads, slices
from .._types import Array, Index
from ..local.polynomial import monomials
from ..local.radial import kernel_named

PERIOD = 5.0
_BATCH = 1024


def icosahedral_nodes(frequency: int) -> Array:
    """10 f² + 2 nodes: the faces of the icosahedron cut into f² triangles each, pushed out to the sphere."""
    golden = (1.0 + np.sqrt(5.0)) / 2.0
    corners = np.array([(0.0, a, b * golden) for a in (-1, 1) for b in (-1, 1)])
    corners = np.concatenate([np.roll(corners, shift, axis=1) for shift in range(3)]) / np.hypot(1.0, golden)
    edge = np.linalg.norm(corners[:, None] - corners[None], axis=2) < 1.1  # the edge is 1.05, the next distance 1.7
    faces = [(i, j, k) for i in range(12) for j in range(i) for k in range(j) if edge[i, j] and edge[j, k] and edge[i, k]]
    steps = np.array([(a, b, frequency - a - b) for a in range(frequency + 1) for b in range(frequency + 1 - a)]) / frequency
    points = np.concatenate([steps @ corners[list(face)] for face in faces])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    _, first = np.unique(points.round(9) + 0.0, axis=0, return_index=True)  # borders of faces come twice; + 0.0 makes -0.0 zero
    return points[np.sort(first)]


def deforming_flow(X: Array, t: float) -> Array:
    """Velocity (n, 3) at points ``X`` of the sphere: deforming until T/2, then reversing (Nair and Lauritzen 2010)."""
    longitude, latitude = np.arctan2(X[:, 1], X[:, 0]), np.arcsin(np.clip(X[:, 2], -1.0, 1.0))
    moving = longitude - 2.0 * np.pi * t / PERIOD
    size = 10.0 / PERIOD * np.cos(np.pi * t / PERIOD)
    u = size * np.sin(moving) ** 2 * np.sin(2.0 * latitude) + 2.0 * np.pi / PERIOD * np.cos(latitude)
    v = size * np.sin(2.0 * moving) * np.cos(latitude)
    east = np.stack([-np.sin(longitude), np.cos(longitude), np.zeros(len(X))], axis=1)
    north = np.cross(X, east)
    return u[:, None] * east + v[:, None] * north


def departures(X: Array, t: float, dt: float) -> Array:
    """Where the flow that is at ``X`` at time t + dt was at time t: one Runge-Kutta step of fourth order, backwards."""
    k1 = deforming_flow(X, t + dt)
    k2 = deforming_flow(_on_sphere(X - 0.5 * dt * k1), t + 0.5 * dt)
    k3 = deforming_flow(_on_sphere(X - 0.5 * dt * k2), t + 0.5 * dt)
    k4 = deforming_flow(_on_sphere(X - dt * k3), t)
    return _on_sphere(X - dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))


def _on_sphere(X: Array) -> Array:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@dataclass(frozen=True)
class Stencils:
    """Local interpolants of the nodes.

    Attributes
    ----------
    nodes : (n, 3)
    near : (n, k) the nodes of each stencil
    frame : (n, 2, 3) orthonormal basis of the tangent plane
    scale : (n,) reach of the stencil
    places : (n, k, 2) the stencil in the chart
    basis : (n, k + s, k) values at the stencil → coefficients of -r⁵ and of the monomials
    degree : ℓ
    """

    nodes: Array
    near: Index
    frame: Array
    scale: Array
    places: Array
    basis: Array
    degree: int

    def interpolate(self, q: Array, X: Array, tree: cKDTree, threads: Threads = ALONE) -> Array:
        """Values at points ``X`` of the sphere of the function whose values at the nodes are ``q``."""
        node = tree.query(X, workers=threads.count)[1]

        def answer(part: slice) -> Array:
            i = node[part]
            at = np.einsum("nad,nd->na", self.frame[i], X[part] - self.nodes[i]) / self.scale[i, None]
            rows = np.concatenate(
                [
                    kernel_named("quintic", 2)(np.square(at[:, None] - self.places[i]).sum(axis=2))[0],
                    monomials(2, self.degree).values(np.moveaxis(at, -1, 0)),
                ],
                axis=1,
            )
            weights = np.matmul(rows[:, None], self.basis[i])[:, 0]
            return np.einsum("nk,nk->n", weights, q[self.near[i]])

        return np.concatenate(threads.map(answer, slices(len(X), _BATCH)))

    def surface_gradient(self, q: Array) -> Array:
        """Surface gradient (n, 3) at the nodes: that of the chart at its origin."""
        slope = np.einsum("nba,nb->na", _slopes_at_origin(self.places, self.degree), _coefficients(self, q))
        return np.einsum("na,nad->nd", slope / self.scale[:, None], self.frame)


def _coefficients(stencils: Stencils, q: Array) -> Array:
    return np.einsum("nbk,nk->nb", stencils.basis, q[stencils.near])


def _slopes_at_origin(places: Array, degree: int) -> Array:
    """∂/∂ξ of every basis function at ξ = 0, (n, k + s, 2): Df · (0 - ξ_i) of the kernel, 1 of the linear monomials."""
    n, k, _ = places.shape
    s = len(monomials(2, degree))
    _, slope = kernel_named("quintic", 2)(np.square(places).sum(axis=2), 1)
    gradient = np.zeros((n, k + s, 2))
    gradient[:, :k] = -slope[..., None] * places
    gradient[:, k + 1, 0] = gradient[:, k + 2, 1] = 1.0
    return gradient


def make_stencils(nodes: Array, degree: int = 4, threads: Threads = ALONE) -> Stencils:
    """Stencils of twice as many nodes as monomials, and one: order ℓ + 1 a step, order ℓ with steps as short as the spacing."""
    s = len(monomials(2, degree))
    k = 2 * s + 1
    distance, near = cKDTree(nodes).query(nodes, k=k, workers=threads.count)
    helper = np.eye(3)[np.argmin(np.abs(nodes), axis=1)]
    first = _on_sphere(np.cross(nodes, helper))
    frame = np.stack([first, np.cross(nodes, first)], axis=1)
    scale = distance[:, -1]
    places = np.einsum("nad,nkd->nka", frame, nodes[near] - nodes[:, None]) / scale[:, None, None]

    basis = np.empty((len(nodes), k + s, k))

    def invert(part: slice) -> None:
        at = places[part]
        A = np.zeros((len(at), k + s, k + s))
        A[:, :k, :k] = kernel_named("quintic", 2)(np.square(at[:, :, None] - at[:, None]).sum(axis=3))[0]
        A[:, :k, k:] = monomials(2, degree).values(np.moveaxis(at, -1, 0))
        A[:, k:, :k] = A[:, :k, k:].swapaxes(1, 2)
        basis[part] = np.linalg.solve(A, np.broadcast_to(np.eye(k + s, k), (len(at), k + s, k)))

    threads.map(invert, slices(len(nodes), _BATCH))
    return Stencils(nodes, near, frame, scale, places, basis, degree)


def advect(stencils: Stencils, q: Array, steps: int, threads: Threads = ALONE) -> Array:
    """Values at the nodes at time T of what starts as ``q`` at time 0; ``progress`` names a progress bar."""
    dt, tree = PERIOD / steps, cKDTree(stencils.nodes)
    for step in threads.show(range(steps), "advect"):
        q = stencils.interpolate(q, departures(stencils.nodes, step * dt, dt), tree, threads)
    return q


def areas(nodes: Array) -> Array:
    """Areas of the Voronoi cells of the nodes, which sum to 4π."""
    return np.asarray(SphericalVoronoi(nodes).calculate_areas())
