"""Monomials: count, values, derivatives."""

from math import comb

import numpy as np
import pytest

from stitchwork.local.polynomial import monomials


@pytest.mark.parametrize(("d", "degree"), [(1, 5), (2, 3), (3, 2), (7, 2), (20, 1)])
def test_values_are_products_of_powers(d, degree):
    basis = monomials(d, degree)
    Z = np.random.default_rng(0).normal(size=(4, 6, d))
    assert len(basis) == comb(degree + d, d)
    assert len({tuple(e) for e in basis.exponents}) == len(basis)
    np.testing.assert_allclose(
        basis.values(np.moveaxis(Z, -1, 0)), np.prod(Z[..., None, :] ** basis.exponents, axis=-1), rtol=1e-13
    )


def test_lower_degrees_come_first():
    basis = monomials(3, 4)
    assert (np.diff(basis.exponents.sum(axis=1)) >= 0).all()
    for degree in range(5):
        np.testing.assert_array_equal(basis.exponents[: basis.count(degree)], monomials(3, degree).exponents)


def test_derivatives_map_coefficients():
    basis = monomials(3, 4)
    rng = np.random.default_rng(1)
    lam, z, step = rng.normal(size=(len(basis), 2)), rng.normal(size=3), 1e-5
    for axis in range(3):
        shift = step * np.eye(3)[axis]
        difference = (basis.values((z + shift).T) - basis.values((z - shift).T)) @ lam / (2 * step)
        np.testing.assert_allclose(
            basis.values(z.T) @ basis.differentiate(lam[None])[0, ..., axis], difference, rtol=1e-8, atol=1e-8
        )


def test_no_polynomial_is_an_empty_basis():
    assert monomials(2, -1).values(np.ones((2, 5))).shape == (5, 0)
