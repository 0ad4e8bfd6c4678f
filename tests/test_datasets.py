"""Data sets: generated ones are what they say, real ones are found or asked for."""

import hashlib
import io
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from stitchwork.datasets import DATASETS, data_home, load_dataset, make_2d
from stitchwork.datasets._home import Entry


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


def test_a_mirror_is_downloaded_from_once_and_checked(tmp_path, monkeypatch):
    pytest.importorskip("pooch", reason="downloads need pooch: pip install 'stitchwork[paper]'")
    content = io.BytesIO()
    np.savez(content, X=np.eye(4), y=np.arange(4.0))
    mirror = tmp_path / "mirror" / "spatial"
    mirror.mkdir(parents=True)
    (mirror / "tiny.npz").write_bytes(content.getvalue())
    entry = Entry("spatial/tiny.npz", hashlib.sha256(content.getvalue()).hexdigest(), "Four points.", "this test")
    monkeypatch.setitem(DATASETS, "tiny", entry)
    monkeypatch.setitem(DATASETS, "spoiled", entry._replace(file="spatial/tiny.npz", sha256="0" * 64))
    monkeypatch.delenv("STITCHWORK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "mirror"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("STITCHWORK_DATA_URL", f"http://127.0.0.1:{server.server_port}/")
        with pytest.raises(ValueError, match="hash"):
            load_dataset("spoiled")
        assert not list((tmp_path / "cache").rglob("*.npz"))
        np.testing.assert_array_equal(load_dataset("tiny").target, np.arange(4.0))
        server.shutdown()
    assert load_dataset("tiny").feature_names == ["x1", "x2", "x3", "x4"]  # from the cache, the server is gone
    assert load_dataset("tiny").DESCR == "Four points.\n\nSource: this test."


def test_every_entry_of_the_catalogue_is_complete():
    for name, entry in DATASETS.items():
        assert len(entry.sha256) == 64, name
        assert entry.description, name
        assert entry.source, name
        assert entry.file.endswith(".npz"), name
