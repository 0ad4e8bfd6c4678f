"""Saved = loaded; anything else is a clear error, and nothing half-written is left."""

import json

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

import stitchwork._io as io
from stitchwork import StitchedRegressor, load


@pytest.mark.parametrize(
    "settings",
    [{"selection": "loo", "ridge": "auto"}, {"local_model": "poly"}, {"local_model": "krr"}, {"metric": np.diag([1.0, 2.0])}],
    ids=str,
)
def test_saved_equals_loaded(tmp_path, plane, fixed, settings):
    X, y = plane
    model = fixed(**settings).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    model.save(tmp_path / "m.stitch")
    again = load(tmp_path / "m.stitch")
    Q = pd.DataFrame(np.random.default_rng(0).uniform(-5, 5, (200, 2)), columns=["a", "b"])
    for method in ("predict", "gradient", "hessian"):
        np.testing.assert_array_equal(getattr(again, method)(Q), getattr(model, method)(Q))
    assert list(again.feature_names_in_) == ["a", "b"]
    assert again.loo_error_ == model.loo_error_
    assert again.smoothness_ == model.smoothness_
    assert {k: str(v) for k, v in again.get_params().items()} == {k: str(v) for k, v in model.get_params().items()}
    np.testing.assert_array_equal(again.ridges_, model.ridges_)
    again.save(tmp_path / "again.stitch")
    np.testing.assert_array_equal(load(tmp_path / "again.stitch").predict(Q), model.predict(Q))


def test_truncated_foreign_and_newer_files_are_value_errors(tmp_path, plane, fixed, monkeypatch):
    model = fixed().fit(*plane)
    path = tmp_path / "m.stitch"
    model.save(path)
    whole = path.read_bytes()
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
    save_file({"weights": np.ones(3)}, path, metadata={"stitchwork": json.dumps({"version": 1})})
    with pytest.raises(ValueError, match="lacks a part"):
        load(path)
    monkeypatch.setattr(io, "FORMAT_VERSION", 99)
    model.save(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"format version 99.*Upgrade"):
        load(path)
    with pytest.raises(FileNotFoundError, match="no model file"):
        load(tmp_path / "absent.stitch")


def test_an_interrupted_write_keeps_the_old_file(tmp_path, plane, fixed, monkeypatch):
    path = tmp_path / "m.stitch"
    model = fixed().fit(*plane)
    model.save(path)
    before = path.read_bytes()

    def fail(arrays, filename, metadata):
        with open(filename, "wb") as file:
            file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(io, "save_file", fail)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.stitch"]


def test_the_file_holds_no_pickle(tmp_path, plane, fixed):
    fixed().fit(*plane).save(tmp_path / "m.stitch")
    with io.safe_open(tmp_path / "m.stitch", framework="numpy") as file:
        assert json.loads(file.metadata()["stitchwork"])["version"] == io.FORMAT_VERSION


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        StitchedRegressor().save(tmp_path / "m.stitch")


def test_a_model_file_is_as_readable_as_any_other(plane, fixed, tmp_path):
    (tmp_path / "plain").touch()
    fixed().fit(*plane).save(tmp_path / "m.stitch")
    assert (tmp_path / "m.stitch").stat().st_mode == (tmp_path / "plain").stat().st_mode
