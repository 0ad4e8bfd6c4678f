"""Data sets: generated ones are what they say, real ones are found or asked for."""

import numpy as np
import pytest

from stitchwork.datasets import DATASETS, data_home, load_dataset, make_2d


def test_the_2d_test_is_the_papers():
    data = make_2d()
    assert data.data.shape == (20_000, 2)
    assert data.test_data.shape == (181 * 181, 2)
    np.testing.assert_allclose(np.unique(np.diff(np.unique(data.test_data[:, 0]))), 0.2)
    x1, x2 = 7.0, -2.0
    s = lambda u: 1 / (1 + np.exp(-u))  # noqa: E731
    expected = s(x1) * (1 + 9 * s(x1 - 12)) * (1 + 10 * s(x1 - 24)) * (np.sin(x2) + np.cos(x1))
    assert data.function(np.array([[x1, x2]]))[0] == pytest.approx(expected, rel=1e-14)


def test_the_gradient_is_that_of_the_function():
    data, step = make_2d(10), 1e-6
    for axis in range(2):
        shift = step * np.eye(2)[axis]
        slope = (data.function(data.test_data + shift) - data.function(data.test_data - shift)) / (2 * step)
        np.testing.assert_allclose(data.test_gradient[:, axis], slope, atol=1e-6)


def test_an_absent_file_says_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.setenv("STITCHWORK_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError, match=r"kin40k.*STITCHWORK_DATA.*uci/kin40k\.npz"):
        load_dataset("kin40k")
    with pytest.raises(ValueError, match="`name` must be one of"):
        load_dataset("iris")


@pytest.mark.parametrize("name", DATASETS)
def test_real_data_is_a_finite_table(name):
    if not any((home / DATASETS[name].file).is_file() for home in data_home()):
        pytest.skip(f"{DATASETS[name].file} is in no data home")
    data = load_dataset(name)
    assert data.data.ndim == 2
    assert len(data.data) == len(data.target)
    assert data.data.shape[1] == len(data.feature_names)
    assert np.isfinite(data.data).all()
    assert np.isfinite(data.target).all()
    assert data.DESCR
