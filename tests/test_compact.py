"""Files with coefficients in single precision: what rounding does, when it is refused, and that Python, C and the page agree."""

import ctypes

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import stitchwork.native
from stitchwork import StitchedRegressor, load
from stitchwork.model.description import describe
from stitchwork.storage.checksum import sign
from stitchwork.storage.compact import round_coefficients
from stitchwork.storage.file import COMPACT_VERSION, VERSION
from stitchwork.transform import LogStitchedRegressor

FIXED = {"selection": None, "region_size": 40, "ridge": 0.1, "kernel": "matern52"}
OBLIQUE = np.array([[2.0, 0.5], [0.5, 1.0]])


def noisy(n=500, d=2, t=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, (n, d))
    return X, (np.sin(X[:, :1] + np.arange(t)) + 0.2 * rng.normal(size=(n, t))).reshape((n, t) if t > 1 else n)


MODELS = {
    "plane": lambda: StitchedRegressor(**FIXED).fit(*noisy()),
    "oblique, outputs": lambda: StitchedRegressor(**FIXED, metric=OBLIQUE).fit(*noisy(t=3)),
    "chart": lambda: StitchedRegressor(**FIXED, periodic={0: 6.0}).fit(*noisy()),
    "averaged": lambda: StitchedRegressor().fit(*noisy(300, 4)),
    "log": lambda: LogStitchedRegressor(**FIXED).fit(noisy()[0], np.exp(noisy()[1])),
    "slopes": lambda: StitchedRegressor(**FIXED).fit(*noisy(200), gradient=np.ones((200, 2))),
    "far from zero": lambda: StitchedRegressor(**FIXED).fit(noisy()[0] + 1e5, noisy()[1] + 1e6),
}


def answers_of_c(path, X, t):
    """Values (q, t) by ``st_open`` and ``st_batch``."""
    library = ctypes.CDLL(stitchwork.native.library())
    library.st_batch.argtypes = [ctypes.c_void_p, ctypes.c_long, *[ctypes.c_void_p] * 4]
    handle, X, F = ctypes.c_void_p(), np.ascontiguousarray(X), np.empty((len(X), t))
    assert library.st_open(str(path).encode(), ctypes.byref(handle)) == 0
    assert library.st_batch(handle, len(X), X.ctypes.data, F.ctypes.data, None, None) == 0
    library.st_close(handle)
    return F


@pytest.mark.parametrize("name", MODELS)
def test_a_compact_file_is_the_model_with_rounded_coefficients(tmp_path, name):
    model = MODELS[name]()
    model.save(tmp_path / "plain.stitch")
    model.save(tmp_path / "m.stitch", compact=True)
    assert (tmp_path / "m.stitch").stat().st_size < 0.72 * (tmp_path / "plain.stitch").stat().st_size
    again, rounded = load(tmp_path / "m.stitch"), round_coefficients(model.model_)
    found, expected = describe(again.model_).arrays, describe(rounded).arrays
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        np.testing.assert_array_equal(found[key], array, err_msg=key)
    Q = np.random.default_rng(1).uniform(0, 6, (100, model.n_features_in_)) + (1e5 if name == "far from zero" else 0.0)
    order = int(min(rounded.smoothness, 2))
    for part, whole in zip(again.model_.jet(Q, order), rounded.jet(Q, order), strict=True):
        np.testing.assert_array_equal(part, whole)
    assert np.sqrt(np.mean((again.predict(Q) - model.predict(Q)) ** 2)) < 0.1 * model.loo_error_  # the limit of `check_rounding`
    if stitchwork.native.available():
        t = model.model_.n_outputs
        np.testing.assert_allclose(
            answers_of_c(tmp_path / "m.stitch", Q, t), again.predict(Q).reshape(-1, t), rtol=1e-10, atol=1e-10
        )


def test_rounding_that_would_cost_accuracy_is_refused_before_anything_is_written(tmp_path):
    X, _ = noisy()
    smooth = StitchedRegressor(selection=None, kernel="gaussian", ridge=1e-13, bandwidth=2.0).fit(X, np.sin(X[:, 0]))
    with pytest.raises(ValueError, match=r"single precision would change predictions by .* without `compact`"):
        smooth.save(tmp_path / "m.stitch", compact=True)
    assert not list(tmp_path.iterdir())


def test_only_compact_files_have_the_new_version(tmp_path):
    model = MODELS["plane"]()
    for compact, version in ((False, VERSION), (True, COMPACT_VERSION)):
        model.save(tmp_path / "m.stitch", compact=compact)
        with safe_open(tmp_path / "m.stitch", framework="numpy") as file:
            assert file.metadata()["version"] == str(version)


def test_a_compact_file_grows_and_tells_standard_deviations(tmp_path):
    X, y = noisy()
    model = StitchedRegressor(**FIXED).fit(X[:400], y[:400])
    model.save(tmp_path / "m.stitch", compact=True, factors=True)
    again = load(tmp_path / "m.stitch")
    np.testing.assert_allclose(again.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1], rtol=1e-6)
    grown = again.partial_fit(X[400:], y[400:]).forget(X[:10])
    np.testing.assert_allclose(grown.predict(X), model.partial_fit(X[400:], y[400:]).forget(X[:10]).predict(X), atol=1e-5)


WRONG = {
    "points/given": (np.float32, [[np.nan, 0.0]]),
    "regions0/model0/alpha": (np.float32, np.nan),
    "regions0/model0/members": (np.int32, 500),
    "regions0/model0/degree": (np.int32, -2),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_numbers_in_32_bits_are_refused_by_python_and_c(tmp_path, name):
    MODELS["plane"]().save(tmp_path / "m.stitch", compact=True)
    with safe_open(tmp_path / "m.stitch", framework="numpy") as file:
        header, arrays = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    kind, value = WRONG[name]
    arrays[name] = arrays[name].astype(kind)
    arrays[name][:1] = value
    save_file(arrays, tmp_path / "m.stitch", metadata={**header, "crc32": "00000000"})
    sign(tmp_path / "m.stitch")
    with pytest.raises(ValueError, match=r"m\.stitch"):
        load(tmp_path / "m.stitch")
    if stitchwork.native.available():
        handle = ctypes.c_void_p()
        assert ctypes.CDLL(stitchwork.native.library()).st_open(str(tmp_path / "m.stitch").encode(), ctypes.byref(handle)) == 13
