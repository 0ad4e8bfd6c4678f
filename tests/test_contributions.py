"""What makes up an answer, in C: the same regions, shares and values as NumPy says, from a file and from its bytes."""

import ctypes

import numpy as np
import pytest

import stitchwork.native
from stitchwork import StitchedRegressor

pytestmark = pytest.mark.skipif(not stitchwork.native.available(), reason="the package was built without a C compiler")


class Part(ctypes.Structure):
    """`st_part` of the header."""

    _fields_ = (("level", ctypes.c_int32), ("region", ctypes.c_int32), ("model", ctypes.c_int32))


@pytest.fixture(scope="module")
def library():
    loaded = ctypes.CDLL(stitchwork.native.library())
    loaded.st_message.restype = ctypes.c_char_p
    loaded.st_close.argtypes = [ctypes.c_void_p]
    loaded.st_open_memory.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    return loaded


def opened(library, model, folder):
    model.save(folder / "m.stitch")
    handle = ctypes.c_void_p()
    assert library.st_open(str(folder / "m.stitch").encode(), ctypes.byref(handle)) == 0
    return handle


def ask(library, handle, x, t, most=300):
    """Parts, shares (k, t) and values (k, t), and how many there are."""
    part, share, value, count = (Part * most)(), np.full((most, t), 7.0), np.full((most, t), 7.0), ctypes.c_long(-1)
    point = np.asarray(x, dtype=float)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (share, value)]
    status = library.st_contributions(
        handle, ctypes.c_void_p(point.ctypes.data), ctypes.c_long(most), part, *pointers, ctypes.byref(count)
    )
    assert status == 0, library.st_message(status)
    k = min(count.value, most)
    return [(one.level, one.region) for one in part[:k]], share[:k], value[:k], count.value


def models():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 2))
    settings = {"selection": None, "region_size": 30, "kernel": "gaussian", "ridge": 1e-8}
    yield StitchedRegressor(**settings).fit(X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2), rng.uniform(-2, 2, (20, 2))
    yield StitchedRegressor(**settings, weight="truncated-gaussian").fit(X, np.c_[X[:, 0], X[:, 1] ** 3]), X[:10]
    # One region that averages models, with shares and local metrics, and shares for each output.
    T = rng.normal(size=(300, 5))
    yield StitchedRegressor().fit(T, np.c_[T[:, 0] * T[:, 1], np.sin(T[:, 2])]), rng.normal(size=(10, 5))
    E = rng.uniform((-180, -90), (180, 90), (400, 2))
    yield StitchedRegressor(geographic=(0, 1), **settings).fit(E, np.sin(np.radians(E[:, 1]))), E[:10]


def test_contributions_are_those_of_numpy(library, tmp_path):
    for model, Q in models():
        compare(library, model, Q, tmp_path)


def compare(library, model, Q, tmp_path):
    handle, t = opened(library, model, tmp_path), model.model_.n_outputs
    for x in Q:
        said = model.contributions(x)
        parts, share, value, count = ask(library, handle, x, t)
        assert count == len(said)
        wanted = sorted((one.level, one.region, *np.atleast_1d(one.share), *np.atleast_1d(one.value)) for one in said)
        found = sorted((*part, *s, *v) for part, s, v in zip(parts, share, value, strict=True))
        wanted, found = np.array(wanted), np.array(found)
        np.testing.assert_array_equal(found[:, :2], wanted[:, :2])
        np.testing.assert_allclose(found[:, 2 : 2 + t], wanted[:, 2 : 2 + t], atol=1e-11)
        counts = wanted[:, 2 : 2 + t] > 0.0  # a model without a share in an output is not asked for it
        np.testing.assert_allclose(found[:, 2 + t :][counts], wanted[:, 2 + t :][counts], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(share.sum(axis=0), 1.0, rtol=1e-12)
        assert (np.diff(share.mean(axis=1)) <= 0.0).all()
        np.testing.assert_allclose((share * value).sum(axis=0), np.atleast_1d(model.predict(x[None])[0]), rtol=1e-9, atol=1e-9)
    library.st_close(handle)


def test_a_model_of_logarithms_says_y(library, tmp_path):
    from stitchwork.transform import LogStitchedRegressor

    X = np.random.default_rng(0).uniform(size=(300, 2))
    model = LogStitchedRegressor(selection=None, region_size=40).fit(X, np.exp(3 * X[:, 0] - 4))
    handle = opened(library, model, tmp_path)
    _, share, value, _ = ask(library, handle, X[0], 1)
    assert np.exp((share * np.log(value)).sum()) == pytest.approx(model.predict(X[:1])[0], rel=1e-9)
    library.st_close(handle)


def test_the_largest_come_first_where_there_is_little_room(library, tmp_path):
    model, Q = next(models())
    handle = opened(library, model, tmp_path)
    parts, share, value, count = ask(library, handle, Q[0], 1)
    few, some, says, same = ask(library, handle, Q[0], 1, most=2)
    assert count == same > 2
    assert few == parts[:2]
    np.testing.assert_array_equal(np.c_[some, says], np.c_[share, value][:2])
    assert ask(library, handle, Q[0], 1, most=0)[3] == count
    library.st_close(handle)


def test_bad_questions_write_nothing(library, tmp_path):
    model, _ = next(models())
    handle, count, number = opened(library, model, tmp_path), ctypes.c_long(-5), (ctypes.c_double * 2)(0.0, np.nan)
    room, x = (ctypes.c_double * 8)(7.0), (ctypes.c_double * 2)(0.0, 0.0)
    for point, most, part, status in ((number, 1, room, 3), (x, -1, room, 5), (x, 1, None, 1), (None, 1, room, 1)):
        assert library.st_contributions(handle, point, ctypes.c_long(most), part, room, room, ctypes.byref(count)) == status
    assert (count.value, room[0]) == (-5, 7.0)
    library.st_close(handle)


def test_the_bytes_of_a_file_are_a_model(library, tmp_path):
    model, Q = next(models())
    library.st_close(opened(library, model, tmp_path))
    data = (tmp_path / "m.stitch").read_bytes()
    words = np.zeros(len(data) // 8 + 2)  # begins at a multiple of eight
    place, handle, f = words.ctypes.data, ctypes.c_void_p(), (ctypes.c_double * 1)()
    ctypes.memmove(place + 4, data, len(data))
    assert b"multiple of eight" in library.st_message(library.st_open_memory(place + 4, len(data), ctypes.byref(handle)))
    ctypes.memmove(place, data, len(data))
    assert b"truncated" in library.st_message(library.st_open_memory(place, len(data) - 8, ctypes.byref(handle)))
    assert library.st_open_memory(place, len(data), ctypes.byref(handle)) == 0
    assert library.st_value(handle, (ctypes.c_double * 2)(*Q[0]), f) == 0
    assert f[0] == model.predict(Q[:1])[0]
    library.st_close(handle)
