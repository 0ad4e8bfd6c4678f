"""Charts: periodic features, and longitude with latitude, embedded in coordinates in which distance is Euclidean.

A model of such features is a model g of embedded coordinates E (n, e), e ≥ d, behind a chart: f(x) = g(E(x)). A feature of period p
becomes a point of the circle of circumference p, and longitude and latitude in degrees one of the sphere of circumference 360, so
that small distances are those of the features themselves, on the globe in degrees of arc:

    (p / 2π) (cos θ, sin θ), θ = 2π x / p,        (180 / π) (cos φ cos λ, cos φ sin λ, sin φ).

Columns of E come in the order of the features: one for a plain feature, two for a periodic one, three at the place of the longitude
and none for the latitude. Derivatives come back by the chain rule, ∇f = Jᵀ ∇g and ∇²f = Jᵀ ∇²g J + Σ_k ∂_k g ∇²E_k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index
from ..local.points import Jet

TWO_PI = 2.0 * np.pi
DEGREES = 360.0  # of a turn
LEAST_PERIOD, GREATEST_PERIOD = 1e-150, 1e150  # squares of distances neither vanish nor overflow
EARTH_RADIUS = 6_371_008.8  # metres: the mean radius of the International Union of Geodesy and Geophysics
_SEAM = 1e-12  # values below the start of their range by less than this share of a period equal the start, up to rounding
_EMPTY_PART = 0.25  # least gap in the data, as a share of the period, in which a range may start


@dataclass(frozen=True)
class Chart:
    """Which of d features have a period, and which are the longitude and latitude of the globe.

    Attributes
    ----------
    periods : d numbers, zero for a plain feature and for the latitude
    globe : the indices of longitude and latitude, or None
    start : for each feature with a period, the start of the range in which `original` returns it; see `choose_range`
    """

    periods: tuple[float, ...]
    globe: tuple[int, int] | None
    start: tuple[float, ...]

    @property
    def n_features(self) -> int:
        """d."""
        return len(self.periods)

    @property
    def dimension(self) -> int:
        """e."""
        return sum(self._widths)

    @property
    def _widths(self) -> list[int]:
        """How many columns each feature takes."""
        longitude, latitude = self.globe or (-1, -1)
        return [0 if k == latitude else 3 if k == longitude else 2 if p else 1 for k, p in enumerate(self.periods)]

    @cached_property
    def columns(self) -> list[int]:
        """The first column of each feature."""
        return [0, *np.cumsum(self._widths)[:-1].tolist()]

    @cached_property
    def blocks(self) -> Index:
        """The feature that each of the e columns comes from; a shift of the feature rotates its columns into each other."""
        return np.repeat(np.arange(self.n_features), self._widths)

    @property
    def curved(self) -> NDArray[np.bool_]:
        """Which of the e columns lie on a circle or on the sphere, (e,)."""
        flat = [self.columns[k] for k in self._plain]
        return ~np.isin(np.arange(self.dimension), flat)

    @cached_property
    def _circles(self) -> list[int]:
        longitude = None if self.globe is None else self.globe[0]
        return [k for k, p in enumerate(self.periods) if p and k != longitude]

    @cached_property
    def _plain(self) -> list[int]:
        return [k for k, p in enumerate(self.periods) if not p and k not in (self.globe or ())]

    def choose_range(self, X: Array) -> Chart:
        """The chart that returns features ``X`` (n, d) in the range in which they came, from 0 or from -p/2 on.

        Where the data wrap around the end of that range and leave a large part of the period empty, the range starts in the middle
        of the empty part: points on both sides of the dateline have longitudes from 160 to 200.
        """
        natural = self.choose_sign(X.min(axis=0, initial=np.inf))
        start = list(natural.start)
        for k, p in enumerate(self.periods):
            if not p or not len(X):
                continue
            x = np.sort(natural._in_range(k, angles(X[:, k], p)))
            gaps = np.diff(x, append=x[0] + p)
            widest = int(gaps.argmax())
            if gaps[widest] > _EMPTY_PART * p and widest < len(x) - 1:
                start[k] = float(x[widest] + 0.5 * gaps[widest])
        return replace(self, start=tuple(start))

    def choose_sign(self, least: Array) -> Chart:
        """The chart with ranges from 0 on where the ``least`` (d,) value of a feature is not negative, else from -p/2 on."""
        return replace(self, start=tuple(-0.5 * p if low < 0.0 else 0.0 for p, low in zip(self.periods, least, strict=True)))

    def check(self, X: Array) -> None:
        """Raise a `ValueError` for latitudes beyond the poles."""
        if self.globe is None:
            return
        latitude = X[:, self.globe[1]]
        beyond = np.abs(latitude) > 90.0
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ValueError(
                f"Latitudes must be from -90 to 90 degrees, but row {row} of `X` has {latitude[row]:g} in column {self.globe[1]}."
                " Are longitude and latitude in the order of `geographic`, and in degrees?"
            )

    def embed(self, X: Array) -> Array:
        """Embed points ``X`` (n, d): E (n, e)."""
        self.check(X)
        E = np.empty((len(X), self.dimension))
        E[:, [self.columns[k] for k in self._plain]] = X[:, self._plain]
        for k in self._circles:
            a, radius = self.columns[k], self.periods[k] / TWO_PI
            theta = angles(X[:, k], self.periods[k])
            E[:, a], E[:, a + 1] = radius * np.cos(theta), radius * np.sin(theta)
        if self.globe is not None:
            E[:, self._sphere] = DEGREES / TWO_PI * self._directions(X)[0]
        return E

    def embed_data(self, X: Array) -> Array:
        """Like `embed`, but longitudes at the poles become 0, so that equal points have equal numbers."""
        if self.globe is None:
            return self.embed(X)
        longitude, latitude = self.globe
        X = X.copy()
        X[np.abs(X[:, latitude]) == 90.0, longitude] = 0.0
        return self.embed(X)

    @property
    def _sphere(self) -> slice:
        assert self.globe is not None
        start = self.columns[self.globe[0]]
        return slice(start, start + 3)

    def _directions(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """Unit vectors up, east and north (n, 3), and the cosine of the latitude (n, 1), which rounding keeps above zero."""
        assert self.globe is not None
        longitude, latitude = angles(X[:, self.globe[0]], DEGREES), X[:, self.globe[1]] * (TWO_PI / DEGREES)
        (c, s), (C, S) = (np.cos(longitude), np.sin(longitude)), (np.cos(latitude), np.sin(latitude))
        up, east = np.stack([C * c, C * s, S], axis=1), np.stack([-s, c, np.zeros_like(s)], axis=1)
        return up, east, np.stack([-S * c, -S * s, C], axis=1), C[:, None]

    def jacobian(self, X: Array) -> Array:
        """J (n, e, d), first derivatives of the embedding."""
        J = np.zeros((len(X), self.dimension, self.n_features))
        for k in self._plain:
            J[:, self.columns[k], k] = 1.0
        for k in self._circles:
            theta, a = angles(X[:, k], self.periods[k]), self.columns[k]
            J[:, a, k], J[:, a + 1, k] = -np.sin(theta), np.cos(theta)
        if self.globe is not None:
            _, east, north, C = self._directions(X)
            J[:, self._sphere, self.globe[0]], J[:, self._sphere, self.globe[1]] = C * east, north
        return J

    def bend(self, gradient: Array, X: Array) -> Array:
        """Σ_k g_k ∇²E_k, (n, t, d, d), for gradients (n, t, e) with respect to the embedded coordinates."""
        B = np.zeros((*gradient.shape[:2], self.n_features, self.n_features))
        for k in self._circles:
            theta, a = angles(X[:, k], self.periods[k])[:, None], self.columns[k]
            inward = -np.cos(theta) * gradient[:, :, a] - np.sin(theta) * gradient[:, :, a + 1]
            B[:, :, k, k] = TWO_PI / self.periods[k] * inward
        if self.globe is not None:
            (longitude, latitude), (up, east, _, _) = self.globe, self._directions(X)
            from_axis = up * [1.0, 1.0, 0.0]
            second = {(longitude, longitude): -from_axis, (longitude, latitude): -up[:, 2:] * east, (latitude, latitude): -up}
            for (a, b), S in second.items():
                B[:, :, a, b] = TWO_PI / DEGREES * np.einsum("qtk,qk->qt", gradient[:, :, self._sphere], S)
            B[:, :, latitude, longitude] = B[:, :, longitude, latitude]
        return B

    def pull_back(self, jet: Jet, X: Array) -> Jet:
        """Derivatives with respect to X (q, d) from those with respect to the embedded coordinates."""
        value, gradient, hessian = jet
        if gradient is None:
            return jet
        J = self.jacobian(X)
        if hessian is not None:
            hessian = J.transpose(0, 2, 1)[:, None] @ hessian @ J[:, None] + self.bend(gradient, X)
        return Jet(value, gradient @ J, hessian)

    def original(self, E: Array) -> Array:
        """The points (n, d) that are embedded at ``E`` (n, e), each feature in its range."""
        X = np.empty((len(E), self.n_features))
        X[:, self._plain] = E[:, [self.columns[k] for k in self._plain]]
        for k in self._circles:
            a = self.columns[k]
            X[:, k] = self._in_range(k, np.arctan2(E[:, a + 1], E[:, a]))
        if self.globe is not None:
            x, y, z = E[:, self._sphere].T
            X[:, self.globe[0]] = self._in_range(self.globe[0], np.arctan2(y, x))
            X[:, self.globe[1]] = DEGREES / TWO_PI * np.arctan2(z, np.hypot(x, y))
        return self.clip(X)

    def features_at(self, E: Array, X: Array) -> Array:
        """Points ``X`` (n, d) recomputed from their embedding ``E``, so that all who know only ``E`` get the same numbers.

        Longitudes at the poles, which ``E`` does not determine, stay as they are.
        """
        told = self.original(E)
        if self.globe is not None:
            longitude, latitude = self.globe
            told[:, longitude] = np.where(np.abs(X[:, latitude]) == 90.0, X[:, longitude], told[:, longitude])
        return told

    def clip(self, X: Array) -> Array:
        """``X`` without latitudes that are a little beyond a pole."""
        if self.globe is None:
            return X
        X = X.copy()
        X[:, self.globe[1]] = np.clip(X[:, self.globe[1]], -90.0, 90.0)
        return X

    def _in_range(self, k: int, theta: Array) -> Array:
        p = self.periods[k]
        x = p / TWO_PI * theta
        if self.start[k] == -0.5 * p:
            return x
        beyond = x - self.start[k]
        return np.asarray(self.start[k] + np.maximum(beyond - p * np.floor(beyond / p + _SEAM), 0.0))

    def per_metre(self, X: Array) -> Array:
        """Factors (q, d) that turn derivatives by degrees of longitude and latitude into those by metres to the east and north."""
        assert self.globe is not None
        factors = np.ones(X.shape)
        factors[:, list(self.globe)] = DEGREES / (TWO_PI * EARTH_RADIUS)
        factors[:, self.globe[0]] /= self._directions(X)[3][:, 0]
        return factors

    def pool_columns(self, values: Array) -> Array:
        """``values`` (e,) of the columns, the same for those of one feature: their mean."""
        return np.asarray((np.bincount(self.blocks, values) / np.maximum(np.bincount(self.blocks), 1))[self.blocks])

    def tangent_metric(self, metric: Array, at: Array) -> Array:
        """The metric (d, d) of small steps of the features from ``at`` (d,), from one (e, e) of the embedded coordinates."""
        (J,) = self.jacobian(at[None])
        return np.asarray(J.T @ metric @ J)


def angles(x: Array, period: float) -> Array:
    """2π x / p, from -π to π; equal where values differ by whole periods."""
    rest = np.fmod(x, period)
    rest = np.where(rest > 0.5 * period, rest - period, np.where(rest <= -0.5 * period, rest + period, rest))
    return np.asarray(rest * (TWO_PI / period))
