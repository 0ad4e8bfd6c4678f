"""Standard deviations from C, of files with factors, are those of Python."""

import ctypes

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import stitchwork.native
from stitchwork import StitchedRegressor, load
from stitchwork.storage.checksum import BLANK, sign
from stitchwork.transform import LogStitchedRegressor

pytestmark = pytest.mark.skipif(not stitchwork.native.available(), reason="the compiled library was not built")

OK, CONTENT, NO_FACTORS = 0, 13, 17


def opened(path):
    """The library, the status of opening a file, and the handle."""
    library, handle = ctypes.CDLL(stitchwork.native.library()), ctypes.c_void_p()
    library.st_close.argtypes = [ctypes.c_void_p]
    return library, library.st_open(str(path).encode(), ctypes.byref(handle)), handle


def deviations(path, X, t, of_function=False):
    """The status and the standard deviations (q, t) that C says."""
    library, status, handle = opened(path)
    assert status == OK
    X, S = np.ascontiguousarray(X, dtype=float), np.full((len(X), t), np.nan)
    status = library.st_deviations(
        handle, ctypes.c_long(len(X)), ctypes.c_void_p(X.ctypes.data), int(of_function), ctypes.c_void_p(S.ctypes.data)
    )
    library.st_close(handle)
    return status, S


def noisy(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (n, d))
    return X, 2.0 + np.sin(5.0 * X[:, 0]) * X[:, -1] + 0.1 * rng.normal(size=n)


def cases():
    X, y = noisy(300, 2)
    yield "field", StitchedRegressor(), X, y, {}
    yield "several outputs", StitchedRegressor(), X, np.column_stack([y, np.cos(3.0 * X[:, 0]), 100.0 * y**2]), {}
    yield "weights", StitchedRegressor(), X, y, {"sample_weight": np.linspace(0.5, 2.0, len(X))}
    yield "known errors", StitchedRegressor(), X, y, {"noise_std": np.linspace(0.05, 0.2, len(X))}
    yield "log", LogStitchedRegressor(), X, np.exp(y), {}
    yield "period", StitchedRegressor(periodic={0: 1.0}), X, y, {}
    yield "repeated rows", StitchedRegressor(), np.repeat(X[:200], 3, axis=0), np.tile(y[:200], 3), {}
    yield "polynomials", StitchedRegressor(local_model="poly", selection=None), X, y, {}
    X, y = noisy(200, 3, 1)
    yield "table", StitchedRegressor(region_size=60, selection="loo", metric="standardized"), X, y, {}
    yield (
        "table of two outputs",
        StitchedRegressor(region_size=60, selection="loo", metric="standardized"),
        X,
        np.column_stack([y, X[:, 1] > 0.5]),
        {},
    )


@pytest.mark.parametrize(("name", "model", "X", "y", "given"), [pytest.param(*case, id=case[0]) for case in cases()])
def test_c_tells_the_standard_deviations_of_python(tmp_path, name, model, X, y, given):
    model.fit(X, y, **given)
    model.save(tmp_path / "m.stitch", factors=True)
    rng = np.random.default_rng(2)
    Q = np.concatenate([X[:40], rng.uniform(-0.3, 1.3, (100, X.shape[1])), rng.uniform(-5.0, 6.0, (20, X.shape[1]))])
    for of_function in (False, True):
        kind = "function" if of_function else "observation"
        _, expected = model.predict(Q, return_std=True, std_of=kind)
        status, found = deviations(tmp_path / "m.stitch", Q, y.reshape(len(y), -1).shape[1], of_function)
        assert status == OK
        # Variances are differences from that of the prior, so rounding is of its size.
        np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-6, atol=1e-7 * np.std(y))


def test_a_file_with_factors_is_the_same_model_in_python(tmp_path):
    X, y = noisy(300, 2)
    model = StitchedRegressor().fit(X, y)
    model.save(tmp_path / "plain.stitch")
    model.save(tmp_path / "m.stitch", factors=True)
    np.testing.assert_array_equal(load(tmp_path / "m.stitch").predict(X), model.predict(X))
    load(tmp_path / "m.stitch").save(tmp_path / "again.stitch")
    with safe_open(tmp_path / "again.stitch", "numpy") as again, safe_open(tmp_path / "m.stitch", "numpy") as first:
        assert not [name for name in again.keys() if "factor" in name]  # noqa: SIM118
        assert first.metadata()["version"] == again.metadata()["version"]


def test_c_refuses_standard_deviations_without_factors(tmp_path):
    X, y = noisy(100, 2)
    StitchedRegressor().fit(X, y).save(tmp_path / "m.stitch")
    assert deviations(tmp_path / "m.stitch", X, 1)[0] == NO_FACTORS


def test_factors_of_measured_slopes_are_refused_before_anything_is_written(tmp_path):
    X, y = noisy(40, 2)
    model = StitchedRegressor().fit(X, y, gradient=np.ones_like(X))
    with pytest.raises(ValueError, match="measured slopes"):
        model.save(tmp_path / "m.stitch", factors=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", ["shorter", "beyond", "negative", "missing scale", "missing factor", "nan", "no rows"])
def test_c_refuses_factors_that_make_no_sense(tmp_path, wrong):
    X, y = noisy(300, 2)
    path = tmp_path / "m.stitch"
    StitchedRegressor().fit(X, y).save(path, factors=True)
    arrays = load_file(path)
    with safe_open(path, "numpy") as file:
        header = file.metadata()
    factor, start = "regions0/model0/factor", "regions0/model0/factor_start"
    match wrong:
        case "shorter":
            arrays[factor] = arrays[factor][:-1]
        case "beyond":
            arrays[start][1] += 1
        case "negative":
            arrays[start][1] *= -1
        case "missing scale":
            del arrays["deviation/scale0"]
        case "missing factor":
            del arrays[factor], arrays[start]
        case "nan":
            arrays[factor][3] = np.nan
        case "no rows":
            arrays[start] = arrays[start][:-1]
    save_file(arrays, path, metadata=header | {"crc32": BLANK})
    sign(path)
    assert opened(path)[1] == CONTENT
