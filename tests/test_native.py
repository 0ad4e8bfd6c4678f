"""The compiled library says what NumPy says, kernel by kernel; and refuses what it cannot answer."""

import copy
import ctypes
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

import stitchwork.native
from stitchwork import StitchedRegressor, load
from stitchwork.local.radial import KERNEL_NAMES

compiled = pytest.mark.skipif(not stitchwork.native.available(), reason="the package was built without a C compiler")


def field(d, n=500, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + (X**2).sum(axis=1)


def rounding(fitted, order):
    """ε Σ|α| |∂K| of the region where it is largest: what rounding makes of values and derivatives.

    Kernels are one at the centre or largest at the farthest query, a radius of points beyond the reach of the widest level.
    """
    found = 0.0
    for level in fitted.levels[:-1]:
        blocks, kernels = level.models, level.models.settings.kernels
        length = blocks.scale * blocks.sigma
        for j, (total, radius) in enumerate(zip(np.abs(blocks.alpha).sum(axis=(1, 2)), level.regions.radii, strict=True)):
            far = (1.0 + level.reach) * radius / length[j]
            f = kernels[blocks.settings.kernel[j]](np.array([far**2]), 2)
            sizes = (abs(f[0][0]), abs(f[1][0]) * far, abs(f[1][0]) + abs(f[2][0]) * far**2)
            found = max(found, total * max(1.0, sizes[order]) / length[j] ** order)
    return np.finfo(float).eps * found * np.abs(fitted.space.A).max() ** order


def assert_same(model, Q, values=1e-8, derivatives=1e-6, most=2):
    """Values to 1e-8 of their range, derivatives to 1e-6 of the largest, and what rounding does beyond that.

    Derivatives that are zero but for rounding count as 1e-6 of the range.
    """
    fitted = model.model_
    order = int(max(0, min(most, fitted.smoothness)))
    found, expected = fitted.jet(Q, order), fitted.reference_jet(Q, order)
    spread = np.ptp(fitted.points.y, axis=0).max()
    np.testing.assert_allclose(found.value, expected.value, atol=values * spread + rounding(fitted, 0), rtol=0)
    for k, (got, want) in enumerate(zip(found[1 : order + 1], expected[1 : order + 1], strict=True), 1):
        allowed = derivatives * max(np.abs(want).max(), 1e-6 * spread) + rounding(fitted, k)
        np.testing.assert_allclose(got, want, atol=allowed, rtol=0)
    np.testing.assert_allclose(fitted.coverage(Q), fitted.reference_coverage(Q), atol=1e-12)


@compiled
@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_every_kernel_agrees_with_numpy(kernel, d):
    X, y = field(d)
    Q = np.random.default_rng(1).uniform(-2, 2, (300, d))  # half of them beyond the data
    for ridge, tolerance in ((1e-6, 1e-10), (1e-14, 1e-8)):
        model = StitchedRegressor(kernel=kernel, selection=None, ridge=ridge, region_size=40, weight="wendland-c4").fit(X, y)
        assert_same(model, Q, tolerance)
        # Where kernels have their kinks; second derivatives of those that are just C² lose digits there, NumPy's above all.
        assert_same(model, X[:50], tolerance, most=1 if model.model_.smoothness <= 2 else 2)


@compiled
@pytest.mark.parametrize(
    "weight", ["wendland-c0", "wendland-c2", "wendland-c6", "wendland-c4-native", "wendland-c100", "truncated-gaussian"]
)
def test_every_weight_agrees_with_numpy(weight):
    X, y = field(3)
    model = StitchedRegressor(weight=weight, kernel="gaussian", selection=None, region_size=40).fit(X, y)
    assert_same(model, np.random.default_rng(1).uniform(-2, 2, (300, 3)))


@compiled
@pytest.mark.parametrize("settings", [{"local_model": "poly"}, {"local_model": "krr"}, {"degree": 0}, {"degree": 5}])
def test_every_polynomial_agrees_with_numpy(settings):
    X, y = field(2)
    model = StitchedRegressor(kernel="gaussian", selection=None, region_size=150, **settings).fit(X, y)
    assert_same(model, np.random.default_rng(1).uniform(-1.5, 1.5, (300, 2)))


@compiled
def test_metrics_averages_outputs_and_backgrounds_agree_with_numpy():
    rng = np.random.default_rng(2)
    X, Q = rng.normal(size=(120, 6)), rng.normal(size=(200, 6))
    Y = np.c_[X[:, 0] * X[:, 1], np.sin(X[:, 2]), np.ones(120)]
    assert_same(StitchedRegressor().fit(X, Y), Q)  # one region, four models with shares and local_metrics
    assert_same(StitchedRegressor(metric="learned", kernel="matern52").fit(X, Y), Q)
    assert_same(StitchedRegressor(background="polynomial", selection=None, region_size=30).fit(X, Y[:, 0]), Q)
    X, Q = rng.normal(size=(2000, 20)), rng.normal(size=(50, 20))
    assert_same(StitchedRegressor(selection=None, degree=1).fit(X, X[:, 0]), Q)
    assert_same(StitchedRegressor().fit([[1.0, 2.0]], [3.0]), np.zeros((3, 2)))
    assert_same(StitchedRegressor(selection=None).fit(*field(2, 3000)), 1e300 * np.ones((2, 2)))


@compiled
@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("t", [2, 3, 4, 7])
def test_outputs_that_share_a_kernel_agree_with_numpy(d, t):
    X, y = field(d, 600)
    Y = np.stack([y * k + np.cos(k * X[:, 0]) for k in range(t)], axis=1)
    model = StitchedRegressor(selection=None, kernel="gaussian", degree=3, region_size=70, ridge=1e-8).fit(X, Y)
    Q = np.random.default_rng(1).uniform(-1.2, 1.2, (200, d))
    assert_same(model, Q)
    assert_same(model, Q, most=1)  # sums of a few outputs at once, where there are no second derivatives


@compiled
@pytest.mark.parametrize("d", [2, 5])
def test_rows_one_by_one_batches_and_threads_agree_bit_for_bit(d):
    X, y = field(d, 3000)
    Q = np.random.default_rng(1).uniform(-1.2, 1.2, (9000, d))
    model = StitchedRegressor(selection=None, kernel="gaussian").fit(X, y)
    values, slopes = model.predict_with_gradient(Q)
    for row in range(0, len(Q), 450):
        value, slope = model.predict_with_gradient(Q[row : row + 1])
        np.testing.assert_array_equal(value, values[row : row + 1])
        np.testing.assert_array_equal(slope, slopes[row : row + 1])
    model.n_jobs = 2
    np.testing.assert_array_equal(model.gradient(Q), slopes)
    np.testing.assert_array_equal(model.gradient(np.asfortranarray(Q)), slopes)
    np.testing.assert_array_equal(model.gradient(Q[::-1]), slopes[::-1])


@compiled
def test_a_model_that_was_asked_can_be_copied_and_pickled():
    X, y = field(2)
    model = StitchedRegressor(selection=None).fit(X, y)
    value = model.predict(X[:5])
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    del model
    for other in others:
        np.testing.assert_array_equal(other.predict(X[:5]), value)


def test_numpy_answers_where_the_library_is_switched_off(tmp_path):
    X, y = field(2)
    model = StitchedRegressor(selection=None).fit(X, y)
    model.save(tmp_path / "m.stitch")
    code = (
        "import sys, numpy as np, stitchwork.native as native; from stitchwork import load; assert not native.available()\n"
        "np.save(sys.argv[2], load(sys.argv[1]).gradient(np.load(sys.argv[3])))"
    )
    np.save(tmp_path / "X.npy", X)
    command = [sys.executable, "-c", code, tmp_path / "m.stitch", tmp_path / "G.npy", tmp_path / "X.npy"]
    subprocess.run(command, check=True, env=os.environ | {"STITCHWORK_NATIVE": "0"})
    np.testing.assert_allclose(np.load(tmp_path / "G.npy"), model.gradient(X), rtol=1e-8, atol=1e-8)


@compiled
def test_the_library_knows_nothing_of_python():
    if shutil.which("nm") is None:
        pytest.skip("there is no nm")
    symbols = subprocess.run(["nm", "-D", stitchwork.native.library()], capture_output=True, text=True, check=True).stdout
    assert " T st_open" in symbols
    assert "Py" not in symbols
    exported = {line.split()[-1] for line in symbols.splitlines() if " T " in line}
    assert all(name.startswith(("st_", "fmi2")) for name in exported - {"_init", "_fini"})


@compiled
def test_bad_questions_get_a_status_and_change_nothing(tmp_path):
    library = ctypes.CDLL(stitchwork.native.library())
    library.st_message.restype = ctypes.c_char_p
    StitchedRegressor(selection=None).fit(*field(2)).save(tmp_path / "m.stitch")
    StitchedRegressor(selection=None, kernel="linear").fit(*field(2)).save(tmp_path / "rough.stitch")
    handle, f, g = ctypes.c_void_p(), (ctypes.c_double * 1)(7.0), (ctypes.c_double * 2)(7.0, 7.0)
    assert library.st_open(str(tmp_path / "m.stitch").encode(), ctypes.byref(handle)) == 0
    assert (library.st_features(handle), library.st_outputs(handle)) == (2, 1)
    assert library.st_message(library.st_expect(handle, 3, 1)).startswith(b"the model has another number of features")
    for wrong in (np.nan, np.inf):
        status = library.st_gradient(handle, (ctypes.c_double * 2)(0.0, wrong), f, g)
        assert library.st_message(status) == b"a query is NaN or infinite"
    assert b"NULL" in library.st_message(library.st_value(handle, None, f))
    assert library.st_batch(handle, ctypes.c_long(-1), g, f, None, None) != 0
    assert (f[0], *g) == (7.0, 7.0, 7.0)
    library.st_close(handle)
    assert library.st_open(str(tmp_path / "rough.stitch").encode(), ctypes.byref(handle)) == 0
    assert b"smoother" in library.st_message(library.st_gradient(handle, g, f, g))
    library.st_close(handle)
    assert library.st_open(str(tmp_path / "absent").encode(), ctypes.byref(handle)) != 0
    assert handle.value is None


@compiled
def test_files_of_other_formats_are_refused_with_a_message(tmp_path, monkeypatch):
    library = ctypes.CDLL(stitchwork.native.library())
    library.st_message.restype = ctypes.c_char_p
    path, handle = tmp_path / "m.stitch", ctypes.c_void_p()
    StitchedRegressor(selection=None).fit(*field(2)).save(path)
    whole = path.read_bytes()
    for old, new, message in (
        (b'"version":"8"', b'"version":"5"', b"older format"),
        (b'"format":"stitchwork"', b'"format":"stitchworm"', b"not a stitchwork model"),
        (b'"weight":"wendland-c2"', b'"weight":"wendland-c3"', b"checksum differs"),
    ):
        assert old in whole
        path.write_bytes(whole.replace(old, new))
        assert message in library.st_message(library.st_open(str(path).encode(), ctypes.byref(handle)))
    path.write_bytes(whole[:-8])
    assert b"truncated" in library.st_message(library.st_open(str(path).encode(), ctypes.byref(handle)))
    monkeypatch.setattr("stitchwork.storage.file.VERSION", 11)
    StitchedRegressor(selection=None).fit(*field(2)).save(path)
    assert b"newer format" in library.st_message(library.st_open(str(path).encode(), ctypes.byref(handle)))


@compiled
def test_many_threads_may_ask_one_handle(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    model = StitchedRegressor(selection=None, kernel="gaussian").fit(*field(2, 2000))
    model.save(tmp_path / "m.stitch")
    other, Q = load(tmp_path / "m.stitch"), np.random.default_rng(5).uniform(-1, 1, (400, 2))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda q: other.predict_with_gradient(q[None])[1][0], Q))
    np.testing.assert_array_equal(found, model.gradient(Q))
