"""Saved = loaded; anything else is a clear error, and nothing half-written is left."""

import json
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from stitchwork import StitchedRegressor, load
from stitchwork.model.description import Description, describe, restore
from stitchwork.storage import file as storage
from stitchwork.storage.checksum import check, sign
from stitchwork.storage.whole import replacing, write_whole


@pytest.mark.parametrize(
    "settings",
    [
        {"selection": "loo", "ridge": "auto"},
        {"local_model": "poly"},
        {"local_model": "krr"},
        {"metric": np.diag([1.0, 2.0])},
        {"selection": "loo", "kernel": ("matern52", "cubic"), "degree": [-1, 1], "n_jobs": 2},
        {"background": "polynomial", "weight": "wendland-c4-native"},
    ],
    ids=str,
)
def test_saved_equals_loaded(tmp_path, plane, fixed, settings):
    X, y = plane
    model = fixed(**settings).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    model.save(tmp_path / "m.stitch")
    again = load(tmp_path / "m.stitch").set_params(n_jobs=model.n_jobs)  # threads are this process's
    Q = pd.DataFrame(np.random.default_rng(0).uniform(-5, 5, (200, 2)), columns=["a", "b"])
    for method in ("predict", "gradient", "hessian"):
        np.testing.assert_array_equal(getattr(again, method)(Q), getattr(model, method)(Q))
    assert list(again.feature_names_in_) == ["a", "b"]
    assert again.loo_error_ == model.loo_error_
    assert again.smoothness_ == model.smoothness_
    kept = {name: tuple(value) if isinstance(value, list) else value for name, value in model.get_params().items()}
    assert {k: str(v) for k, v in again.get_params().items()} == {k: str(v) for k, v in kept.items()}
    np.testing.assert_array_equal(again.ridges_, model.ridges_)
    np.testing.assert_array_equal(again.kernels_, model.kernels_)
    again.save(tmp_path / "again.stitch")
    third = load(tmp_path / "again.stitch").set_params(n_jobs=model.n_jobs)
    np.testing.assert_array_equal(third.predict(Q), model.predict(Q))


@pytest.fixture(scope="module")
def saved(plane, fixed, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m.stitch"
    model = fixed(region_size=12).fit(plane[0][:60], plane[1][:60])
    assert model.loo_error_ > 0.0  # so that it is in the file
    model.save(path)
    return path


def test_truncated_foreign_older_and_newer_files_are_value_errors(tmp_path, saved):
    path, whole = tmp_path / "m.stitch", saved.read_bytes()
    for size in (0, 5, 200, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="not a stitchwork model, or it is truncated"):
            load(path)
    path.write_bytes(b"x,y\n1,2\n" * 100)
    with pytest.raises(ValueError, match="not a stitchwork model"):
        load(path)
    save_file({"weights": np.ones(3)}, path)
    with pytest.raises(ValueError, match="but not a stitchwork model"):
        load(path)
    save_file({"weights": np.ones(3)}, path, metadata={"stitchwork": json.dumps({"version": 2})})
    with pytest.raises(ValueError, match=r"format version 2 or less.*Fit the model again"):
        load(path)
    for version, remedy in (("2", "Fit the model again"), ("99", "Upgrade stitchwork"), ("x", "Fit the model again")):
        save_file({"weights": np.ones(3)}, path, metadata={"format": "stitchwork", "version": version})
        with pytest.raises(ValueError, match=remedy):
            load(path)
    with pytest.raises(FileNotFoundError, match="no model file"):
        load(tmp_path / "absent.stitch")


def test_every_flipped_bit_is_found(tmp_path, saved):
    whole, path = bytearray(saved.read_bytes()), tmp_path / "m.stitch"
    for bit in np.random.default_rng(0).integers(8 * len(whole), size=400):
        damaged = whole.copy()
        damaged[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"m\.stitch"):
            load(path)


def test_the_checksum_is_that_of_zlib_with_its_own_digits_zero(saved):
    content = saved.read_bytes()
    place = content.index(b'"crc32":"') + 9
    assert int(content[place : place + 8], 16) == zlib.crc32(content[:place] + b"00000000" + content[place + 8 :])


HEADERS = {
    "weight": ["wendland-c99999998", "wendland", ""],
    "kernels": ["", "gaussian,unknown"],
    "flat": ["2", "yes", ""],
    "feature_names": ["[1, 2]", '["a"]', "{}", "[" * 100_000],
    "parameters": ["null", "[]", "[" * 100_000, "{", '{"region_size": 3}', '{"surprise": 1}'],
    "metric_trials": ["null", '{"euclidean": "low"}'],
    "loo_error": ['"small"', "[]", "1" + "0" * 400, "1" + "0" * 5000],
}
ARRAYS = {
    "levels/regions": [[0, 0, 5], [0, -1, 0], [0, 0, 0]],
    "levels/reach": [[1.0], [0.0] * 5, [np.nan] * 5],
    "points/v": [[0.0] * 60, [1.0] * 59],
    "space/A": [[[1.0]], [[np.inf, 0.0], [0.0, 1.0]]],
    "space/shift": [[], 3.0],
    "space/unit": [[-1.0], [0.0]],
    "frame": [[1.0]],
    "stitch/handover": [[0.5]],
    "levels/usual": [[-1.0] * 20],
    "stitch/background_weight": [[-1e-5]],
    "regions0/model0/members": [-1, 60, 2**40],
    "regions0/model0/degree": [3, -2, 2**40],
    "regions0/model0/kernel": [7, -1],
    "regions0/model0/alpha": [np.nan, [1.0]],
    "regions0/model0/lam": [[[[1.0]]]],
    "regions0/model0/scale": [0.0],
    "regions0/model0/sigma": [-1.0],
    "regions0/model0/bandwidth": [np.inf],
    "regions0/model0/ridge": [-1e-6, np.nan],
    "regions0/model0/tolerance": [-1.0],
    "regions0/radii": [-1.0, np.nan, np.inf],
    "regions0/centers": [np.nan],
    "regions0/extremes": [np.nan, np.inf, 1e300, [[[1.0]]]],
}


def rewritten(saved, path, header=None, arrays=None):
    """The saved model with some of it replaced, signed anew: only the checks of what is read can find it."""
    with safe_open(saved, framework="numpy") as file:
        old = Description(file.metadata(), {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    metadata, tensors = {**old.header, "crc32": "00000000", **(header or {})}, {**old.arrays, **(arrays or {})}
    save_file({name: np.ascontiguousarray(a) for name, a in tensors.items() if a is not None}, path, metadata=metadata)
    sign(path)
    return path


def test_a_file_that_is_written_and_signed_anew_is_read(saved, tmp_path):
    np.testing.assert_array_equal(load(rewritten(saved, tmp_path / "m.stitch")).predict([[0.0, 0.0]]), load(saved)([[0.0, 0.0]]))


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in HEADERS.items() for v in values], ids=lambda v: str(v)[:30])
def test_a_wrong_header_is_a_value_error(saved, tmp_path, name, value):
    with pytest.raises(ValueError, match=r"m\.stitch"):
        load(rewritten(saved, tmp_path / "m.stitch", header={name: value}))


@pytest.mark.parametrize(
    "bad",
    [{"weight": "wendland-c3"}, {"surprise": 1}, {"degree": "huge"}, {"kernel": None}, {"metric": {}}],
    ids=str,
)
def test_a_wrong_parameter_is_a_value_error(saved, tmp_path, bad):
    with safe_open(saved, framework="numpy") as file:
        parameters = json.loads(file.metadata()["parameters"])
    with pytest.raises(ValueError, match=r"m\.stitch.*" + next(iter(bad))):
        load(rewritten(saved, tmp_path / "m.stitch", header={"parameters": json.dumps(parameters | bad)}))


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in ARRAYS.items() for v in values], ids=str)
def test_a_wrong_array_is_a_value_error(saved, tmp_path, name, value):
    with safe_open(saved, framework="numpy") as file:
        array = file.get_tensor(name)
    if np.ndim(value) == 0 and array.ndim and name != "space/shift":
        array = array.copy()
        array.flat[1] = value
    else:
        array = np.array(value, dtype=array.dtype)
    with pytest.raises(ValueError, match=r"m\.stitch"):
        load(rewritten(saved, tmp_path / "m.stitch", arrays={name: array}))


def test_a_missing_array_or_one_of_another_type_is_a_value_error(saved, tmp_path):
    with safe_open(saved, framework="numpy") as file:
        names = list(file.keys())
        wrong = {name: file.get_tensor(name).astype(np.float32) for name in names}
    for name in set(names) - {"scores", "points/row"}:
        found_again = name.endswith("/extremes") or name == "points/X"  # from the points, as in files of formats 7 and 10
        for array in (wrong[name],) if found_again else (None, wrong[name]):
            with pytest.raises(ValueError, match=r"m\.stitch"):
                load(rewritten(saved, tmp_path / "m.stitch", arrays={name: array}))


def test_a_description_is_the_whole_model(plane, fixed):
    model = fixed(weight="wendland-c4").fit(*plane).model_
    again, Q = restore(describe(model)), np.random.default_rng(0).uniform(-9, 9, (100, 2))
    for a, b in zip(model.jet(Q, 2), again.jet(Q, 2), strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.origin.parameters == model.origin.parameters


def test_an_interrupted_write_keeps_the_old_file(tmp_path, plane, fixed, monkeypatch):
    path = tmp_path / "m.stitch"
    model = fixed().fit(*plane)
    model.save(path)
    before = path.read_bytes()

    def fail(arrays, filename, metadata):
        with open(filename, "wb") as file:
            file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(storage, "save_file", fail)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.stitch"]


def test_a_full_disk_is_an_os_error_and_keeps_the_old_file(tmp_path, saved):
    """Here a limit on the size of files stands for it: it fails at the same call."""
    path = tmp_path / "m.stitch"
    path.write_bytes(b"old")
    code = f"""
import resource, signal
from stitchwork import load
model = load({str(saved)!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({saved.stat().st_size // 2}, resource.RLIM_INFINITY))
try:
    model.save({str(path)!r})
except OSError as error:
    print("OSError", error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("OSError"), result.stderr
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.stitch"]


def test_a_link_is_followed(tmp_path, saved):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "real.stitch", tmp_path / "link.stitch"
    target.write_bytes(b"old")
    link.symlink_to(target)
    load(saved).save(link)
    assert link.is_symlink()
    assert load(target).n_regions_ == load(saved).n_regions_
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.stitch", "there"]


def test_threads_that_write_to_one_place_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "file"
    contents = [bytes([k]) * 100_000 for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: [write_whole(path, content) for _ in range(20)], contents))
    assert path.read_bytes() in contents
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open is not replaced there")
def test_a_file_that_is_replaced_while_it_is_read_is_one_model(tmp_path, plane, fixed, saved, monkeypatch):
    path, other = tmp_path / "m.stitch", fixed(region_size=15).fit(plane[0][:80], plane[1][:80])
    load(saved).save(path)

    def replace_and_open(name, framework):
        other.save(path)
        return safe_open(name, framework=framework)

    monkeypatch.setattr(storage, "safe_open", replace_and_open)
    Q = np.random.default_rng(0).uniform(-2, 2, (50, 2))
    np.testing.assert_array_equal(load(path).predict(Q), load(saved).predict(Q))
    np.testing.assert_array_equal(load(path).predict(Q), other.predict(Q))


def test_what_raises_leaves_nothing(tmp_path):
    def write_half():
        with replacing(tmp_path / "file") as temporary:
            temporary.write_text("half")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert not list(tmp_path.iterdir())


def check_path(path):
    with path.open("rb") as file:
        check(file)


def test_a_signed_file_is_right_until_it_is_changed(tmp_path):
    path = tmp_path / "signed"
    path.write_text('{"crc32": "00000000", "rest": 1}')
    sign(path)
    check_path(path)
    path.write_text(path.read_text().replace("1}", "2}"))
    with pytest.raises(ValueError, match="checksum differs"):
        check_path(path)
    path.write_text("{}")
    with pytest.raises(ValueError, match="no checksum"):
        check_path(path)


def test_the_file_holds_no_pickle(saved):
    with safe_open(saved, framework="numpy") as file:
        assert file.metadata()["version"] == str(storage.VERSION)


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        StitchedRegressor().save(tmp_path / "m.stitch")


def test_a_model_file_is_as_readable_as_any_other(saved, tmp_path):
    (tmp_path / "plain").touch()
    load(saved).save(tmp_path / "m.stitch")
    assert (tmp_path / "m.stitch").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("version", [6, 8, 10])
def test_files_of_every_format_since_6_predict_what_they_did(version):
    """`golden/formats.json` has what the version that wrote each file predicted; see also `test_region_bounds` for format 7."""
    golden = Path(__file__).parent / "golden"
    recorded = json.loads((golden / "formats.json").read_text())[str(version)]
    model = load(golden / f"format{version}.stitch")
    np.testing.assert_allclose(model.predict(recorded["X"]), recorded["prediction"], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(model.gradient(recorded["X"]), recorded["gradient"], rtol=1e-6, atol=1e-7)
