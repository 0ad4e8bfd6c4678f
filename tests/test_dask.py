"""Stitched models on a real cluster: worker processes, faults, files, data frames, bad input."""

import json
import os
import shutil
import threading
import time

import numpy as np
import pytest
from conftest import tracks, wave

import stitchwork
from stitchwork import StitchedRegressor, load
from stitchwork.model.bounds import extremes_of_members
from stitchwork.storage.checksum import sign

da = pytest.importorskip("dask.array", reason="needs the `dask` extra")
distributed = pytest.importorskip("dask.distributed", reason="needs the `dask` extra")

FIXED = {"selection": None, "region_size": 60}
N, BOX = 6000, 1000


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each a process with one thread."""
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="3GB") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    """The client of the cluster."""
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    """Scattered points, denser on one side."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (N, 2))
    X[: N // 3, 0] = -3 + 2 * rng.uniform(size=N // 3)
    return X, wave(X)


@pytest.fixture(scope="module")
def queries():
    """Inside, on the border, far away."""
    rng = np.random.default_rng(1)
    return np.vstack([rng.uniform(-3, 3, (3000, 2)), rng.uniform(-5, 5, (200, 2)), [[80.0, -70.0]]])


def collections(X, y, rows=1700):
    return da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(y, chunks=(rows, *y.shape[1:]))


def regressor(**parameters):
    from stitchwork.dask import DaskStitchedRegressor

    return DaskStitchedRegressor(**({"box_size": BOX} | FIXED | parameters))


@pytest.fixture(scope="module")
def fitted(client, data):
    """The model of these data in several boxes."""
    return regressor().fit(*collections(*data))


def test_it_agrees_with_one_machine_within_the_leave_one_out_error(fitted, data, queries):
    assert fitted.n_boxes_ >= 6
    one = StitchedRegressor(**FIXED).fit(*data)
    difference = fitted.predict(queries[:3000]) - one.predict(queries[:3000])
    assert np.sqrt(np.mean(difference**2)) < one.loo_error_
    assert fitted.loo_error_ == pytest.approx(one.loo_error_, rel=0.1)
    assert fitted.smoothness_ == one.smoothness_


def test_the_default_agrees_with_one_machine(client, data, queries):
    one = StitchedRegressor().fit(*data)
    model = regressor(selection="loo", region_size="auto", box_size=2000).fit(*collections(*data))
    error, error_of_one = (np.sqrt(np.mean((m.predict(queries[:3000]) - wave(queries[:3000])) ** 2)) for m in (model, one))
    assert error < 3 * error_of_one + one.loo_error_
    assert model.n_boxes_ > 1


def test_lazy_answers_are_those_of_the_whole_model(fitted, queries):
    local = fitted.to_local()
    Q = da.from_array(queries, chunks=(900, 2))
    assert local.n_regions_ == fitted.n_regions_
    for name in ("predict", "gradient", "hessian", "coverage"):
        lazy, whole = getattr(fitted, name)(Q), getattr(local, name)(queries)
        assert isinstance(lazy, da.Array)
        assert lazy.shape == whole.shape
        np.testing.assert_allclose(lazy.compute(), whole, atol=1e-9 * np.abs(whole).max())
    value, gradient = fitted.predict_with_gradient(Q)
    np.testing.assert_allclose(value.compute(), fitted.predict(Q).compute(), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(gradient.compute(), fitted.gradient(Q).compute())
    normals = np.tile([0.6, 0.8], (len(queries), 1))
    along = fitted.gradient(Q, normals=normals).compute()
    np.testing.assert_allclose(along @ [0.6, 0.8], 0.0, atol=1e-12)
    np.testing.assert_allclose(along, local.gradient(queries, normals=normals), atol=1e-9)
    assert local.loo_error_ == pytest.approx(fitted.loo_error_)


def test_what_needs_the_whole_model_says_so_and_is_there_after_to_local(fitted, data, queries, tmp_path):
    lazy = da.from_array(queries[:50], chunks=(20, 2))
    for Q in (queries[:5], lazy):
        asks = (lambda: fitted.sample_y(Q), lambda: fitted.predict(Q, return_cov=True), lambda: fitted.operator(Q))  # noqa: B023
        for ask in (*asks, lambda: fitted.refit(data[1])):
            with pytest.raises(ValueError, match="to_local"):
                ask()
    local = fitted.to_local()
    assert local.sample_y(queries[:5], 3).shape == (5, 3)
    assert local.predict(queries[:5], return_cov=True)[1].shape == (5, 5)
    W, bound = local.operator(queries, return_bound=True)
    np.testing.assert_allclose((W @ data[1])[~bound], local.predict(queries)[~bound], atol=1e-9)
    fitted.save(tmp_path / "m")
    assert abs(load(tmp_path / "m").operator(queries) - W).max() == 0.0
    with pytest.raises(ValueError, match="Fit the whole data"):
        local.refit(data[1])
    np.testing.assert_allclose(np.asarray(fitted.exceedance(lazy, 0.2)), local.exceedance(queries[:50], 0.2), atol=1e-6)


def test_the_operator_has_the_columns_of_the_data_where_the_background_is_made_of_a_sample(client, data, queries, monkeypatch):
    monkeypatch.setattr("stitchwork.dask._source.COARSE_POINTS", 1500)
    local = regressor().fit(*collections(*data)).to_local()
    assert local.model_.levels[-1].models.points is not local.model_.points
    W, bound = local.operator(queries, return_bound=True)
    assert W.shape == (len(queries), N)
    np.testing.assert_allclose((W @ data[1])[~bound], local.predict(queries)[~bound], atol=1e-9)


def test_an_operator_whose_rows_are_not_known_is_refused(client, data):
    X, y = data[0][:3000], data[1][:3000]
    double = regressor().fit(*collections(np.concatenate([X, X[:50]]), np.concatenate([y, y[:50]])))
    grown = regressor().fit(*collections(X[:2900], y[:2900])).partial_fit(*collections(X[2900:], y[2900:]))
    v = np.ones(len(X))
    v[100] = 0.0
    without = regressor().fit(*collections(X, y), sample_weight=da.from_array(v, chunks=collections(X, y)[0].chunks[0]))
    for model in (double, grown, without):
        with pytest.raises(ValueError, match="with all rows"):
            model.to_local().operator(X[:5])


def test_bounds_of_regions_are_those_of_the_whole_model(client, data, queries):
    X, noise = data[0][:3000], np.random.default_rng(2).normal(size=3000)
    wild = {"kernel": "gaussian", "bandwidth": 2.0, "ridge": 1e-5, "degree": 2, "region_size": 30}
    model = regressor(**wild).fit(*collections(X, noise))
    local = model.to_local()
    first = local.model_.levels[0].regions
    np.testing.assert_array_equal(first.extremes, extremes_of_members(first.models.points.y, first.models.members))
    for name in ("predict", "gradient", "hessian"):
        whole = getattr(local, name)(queries)
        np.testing.assert_allclose(getattr(model, name)(queries), whole, atol=1e-7 * np.abs(whole).max())
    assert model.loo_error_ == pytest.approx(local.loo_error_)


def test_regions_hold_the_nearest_of_all_points(fitted):
    local = fitted.to_local()
    X, members = local.model_.points.X, local.model_.levels[0].models.members
    assert len(X) == N
    for own in members[::7]:
        distance = np.linalg.norm(X - X[own[0]], axis=1)
        np.testing.assert_allclose(np.sort(distance[own]), np.sort(distance)[: len(own)])


def test_there_is_no_seam_at_the_faces_of_boxes(fitted):
    """The values and gradients on both sides of a face come from different shards."""
    rng, step = np.random.default_rng(3), 1e-9
    space, boxes = fitted.model_.space, fitted.model_.manifest.boxes
    tried = 0
    for low, high in boxes.cells:
        for axis in range(2):
            if not np.isfinite(high[axis]):
                continue
            other = 1 - axis
            on = np.empty((200, 2))
            on[:, axis] = high[axis]
            on[:, other] = rng.uniform(max(low[other], -0.99), min(high[other], 0.99), 200)
            below, above = (on + sign * step * np.eye(2)[axis] for sign in (-1, 1))
            assert (boxes.of(below) != boxes.of(above)).all()
            left, right = space.original(below), space.original(above)
            gradient = fitted.gradient(left)
            scale = np.abs(gradient).max()
            np.testing.assert_allclose(fitted.predict(left), fitted.predict(right), atol=20 * step * scale)
            np.testing.assert_allclose(gradient, fitted.gradient(right), atol=1e-5 * scale)
            tried += 1
    assert tried >= 6


def test_the_number_of_workers_changes_nothing(fitted, data, queries):
    expected = fitted.predict(queries)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        alone = regressor(client=client).fit(*collections(*data))
        assert alone.n_regions_ == fitted.n_regions_
        with client.as_current():
            np.testing.assert_array_equal(alone.predict(queries), expected)


def test_weights_and_outputs(client, data, queries):
    X, y = data
    many = np.stack([y, 2 * y + 1], axis=1)
    v = np.ones(N)
    v[::5], v[1::7] = 3.0, 0.0
    parts = *collections(X, many), da.from_array(v, chunks=1700)
    model = regressor().fit(*parts)
    used = v > 0
    repeated = np.repeat(np.arange(N), v.astype(int))
    again = regressor().fit(*collections(X[repeated], many[repeated], 2300))
    assert model.to_local().model_.n_points == used.sum() == again.to_local().model_.n_points
    assert model.predict(queries).shape == (len(queries), 2)
    error = StitchedRegressor(**FIXED).fit(X[used], many[used], v[used]).loo_error_
    assert np.sqrt(np.mean((model.predict(queries[:3000]) - again.predict(queries[:3000])) ** 2)) < error
    assert model.gradient(queries).shape == (len(queries), 2, 2)


def test_saved_folders_open_lazily_and_whole(fitted, queries, tmp_path):
    from stitchwork.dask import load

    path = tmp_path / "model"
    fitted.save(path)
    expected = fitted.predict(queries)
    lazy, whole = load(path), stitchwork.load(path)
    np.testing.assert_array_equal(lazy.predict(queries), expected)
    np.testing.assert_allclose(whole.predict(queries), expected, atol=1e-9 * np.abs(expected).max())
    assert type(whole) is StitchedRegressor
    assert lazy.n_regions_ == whole.n_regions_ == fitted.n_regions_
    whole.save(tmp_path / "whole.stitch")
    np.testing.assert_array_equal(stitchwork.load(tmp_path / "whole.stitch").predict(queries), whole.predict(queries))
    fitted.save(path)  # in the place of the old one
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(FileExistsError, match="not a model in parts"):
        fitted.save(tmp_path)


def test_it_has_all_that_the_estimator_of_one_machine_has(fitted, queries, tmp_path):
    from stitchwork.dask import load

    local = fitted.to_local()
    few = queries[:40]
    ours, theirs = (dict(model.summary().rows) for model in (fitted, local))
    del theirs["reasons"]  # of regions, which are elsewhere
    # Scales of standard deviations are pooled over the regions of a part.
    assert float(ours.pop("noise").split()[2]) == pytest.approx(float(theirs.pop("noise").split()[2]), rel=0.5)
    assert ours == theirs
    np.testing.assert_allclose(fitted(few, nu=(1, 0)), local(few, nu=(1, 0)), rtol=1e-7, atol=1e-9)
    for name in ("centers_", "radii_", "kernels_", "degrees_", "bandwidths_", "ridges_", "metric_"):
        np.testing.assert_array_equal(getattr(fitted, name), getattr(local, name))
    assert (fitted.metric_trials_, fitted.smoothness_) == (local.metric_trials_, local.smoothness_)
    ours, theirs = fitted.contributions(few[0]), local.contributions(few[0])
    np.testing.assert_allclose([one.share for one in ours], [one.share for one in theirs], rtol=1e-9)
    np.testing.assert_allclose([one.center for one in ours], [one.center for one in theirs])
    pytest.importorskip("xarray")
    a, b = (model.grid(6, gradient=True, coverage=True) for model in (fitted, local))
    for name in a.data_vars:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-6, atol=1e-9)
    left, right = fitted.leave_one_out(), local.leave_one_out()
    assert len(left.X) == len(right.X) == N
    order, other = np.lexsort(left.X.T), np.lexsort(right.X.T)
    np.testing.assert_allclose(left.residual[order], right.residual[other], rtol=1e-6, atol=1e-10)
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params()["box_size"] == fitted.box_size
    assert str(again.summary()) == str(fitted.summary())


def test_deviations_and_intervals_agree_with_one_machine(client, data, queries):
    X, y = data
    noisy = y + 0.1 * np.random.default_rng(0).normal(size=N)
    model = regressor(kernel="matern52", ridge=1e-2).fit(*collections(X, noisy))
    local, few = model.to_local(), queries[:300]
    assert model.n_boxes_ > 1
    assert model.noise_ == pytest.approx(local.noise_, rel=0.03)
    for ask in (lambda m: m.predict(few, return_std=True)[1], lambda m: np.diff(m.predict_interval(few, 0.8), axis=-1)[:, 0]):
        # Scales are pooled inside of a part, so that they differ a little near its faces.
        np.testing.assert_allclose(ask(model), ask(local), rtol=0.1)
    lazy = da.from_array(few, chunks=(100, 2))
    value, deviation = model.predict(lazy, return_std=True)
    assert isinstance(deviation, da.Array)
    np.testing.assert_allclose(deviation.compute(), model.predict(few, return_std=True)[1], rtol=1e-9)
    np.testing.assert_allclose(value.compute(), model.predict(few), rtol=1e-9)
    gradient, slopes = model.gradient(few, return_std=True)
    assert gradient.shape == slopes.shape == (300, 2)
    np.testing.assert_allclose(slopes, local.gradient(few, return_std=True)[1], rtol=0.15)
    inside, rng = queries[np.abs(queries).max(axis=1) < 2.9], np.random.default_rng(1)
    ends, fresh = model.predict_interval(inside, 0.9), wave(inside) + 0.1 * rng.normal(size=len(inside))
    assert 0.87 < np.mean((ends[:, 0] <= fresh) & (fresh <= ends[:, 1])) < 0.93


def test_groups_agree_with_one_machine(client):
    X, y, group = tracks(20, 60, noise=0.05)
    words = np.array([f"track {g}" for g in group])
    settings = {"kernel": "matern52", "degree": 1, "metric": "euclidean", "selection": "loo", "region_size": 60}
    here = StitchedRegressor(**settings).fit(X, y, groups=group)
    there = regressor(box_size=2000, **settings).fit(*collections(X, y, 500), groups=da.from_array(words, chunks=500))
    # In parts, points that the regions cannot judge are left out instead of being judged by thinner samples.
    assert there.loo_error_ == pytest.approx(here.loo_error_, rel=0.15)
    np.testing.assert_allclose(there.predict(X[::7]), here.predict(X[::7]), rtol=1e-6, atol=1e-8)
    cut = regressor(box_size=300, **settings).fit(*collections(X, y, 500), groups=da.from_array(words, chunks=500))
    assert cut.n_boxes_ > 1
    assert cut.loo_error_ == pytest.approx(here.loo_error_, rel=0.3)
    assert "whole groups left out" in cut.summary()
    assert cut.to_local().model_.grouped
    with pytest.raises(ValueError, match="missing"):
        regressor(**settings).fit(*collections(X, y, 500), groups=da.from_array(np.where(group > 3, np.nan, group), chunks=500))


def test_a_refused_fit_changes_nothing(client, data):
    X, y = data
    model = regressor().fit(*collections(X, y))
    inner = model.model_
    for bad, message in (
        (np.where(np.arange(N) == 5, np.nan, y), "`y` has 1 rows with NaN"),
        (y[:, None, None], "`y` must have one axis"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(*collections(X, bad))
    with pytest.raises(ValueError, match="`kernel` must be one of"):
        model.set_params(kernel="nope").fit(*collections(X, y))
    assert model.model_ is inner


def test_parameters_are_checked_in_fit_and_not_before(client, data):
    from sklearn.base import clone

    model = regressor(box_size="many", kernel=3)
    assert clone(model).get_params()["box_size"] == "many"
    with pytest.raises(ValueError, match="`box_size` must be an integer"):
        model.fit(*collections(*data))


def test_a_small_model_is_that_of_one_machine(client, data):
    """All points in one box and in the survey: the same steps, so the same function, inside the data and far from it."""
    X, y = data
    few = X[:2000], y[:2000]
    settings = FIXED | {"selection": "loo", "ridge": "auto"}
    ours, theirs = regressor(box_size=10_000, **settings).fit(*collections(*few, 500)), StitchedRegressor(**settings).fit(*few)
    Q = np.random.default_rng(0).uniform(-4, 4, (300, 2))
    assert ours.n_boxes_ == 1
    np.testing.assert_array_equal(ours.ridges_, theirs.ridges_)
    np.testing.assert_allclose(ours.predict(Q), theirs.predict(Q), rtol=1e-9, atol=1e-9 * np.abs(y).max())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace('"n_regions"', '"n_region"'), "checksum"),
        (lambda text: "[" * 100_000, "not a manifest"),
        (lambda text: "null", "not a manifest"),
        (lambda text: text.replace('"version": 8', '"version": 5'), "Fit the model again"),
    ],
)
def test_a_damaged_manifest_is_a_value_error(fitted, tmp_path, damage, message):
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(ValueError, match=message):
        stitchwork.load(tmp_path / "model")


WRONG = {
    "format": ["other", "", None, 3, [], {}],
    "version": [0, -1, 99, "x", None, [7]],
    "boxes": [None, -5, 0, [0, 10**308, 0, 1], [0, 0.5, 0, 0], [7, 0.5, 0, 1], [True, 0.5, 0, 1], [0, float("nan"), 0, 1], 2.5],
    "d": [0, -1, 3, 30_000_000, 10**9, 10**400, 2.0, True, "2", None],
    "voices": [[], None, [[1.0]], [[-1.0, 1.0]], [[float("nan"), 1.0]], [[1.0, 1e308]], [["a", "b"]], 5],
    "n_points": [-5, 0, 1.5, "many", None, True, 10**400, 17],
    "n_regions": [-5, 0, 1.5, "many", None, True, 10**400, 17],
    "smoothness": [float("nan"), -1.0, "smooth", None, True, 10**400, []],
    "box_size": [0, -5, 1, 1.5, "large", None, True, 10**400],
    "loo_error": [float("nan"), -1.0, "small", [], True, 10**400, 1e308],
}


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    """A folder with the model, to be copied."""
    path = tmp_path_factory.mktemp("saved") / "model"
    fitted.save(path)
    return path


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in WRONG.items() for v in values], ids=lambda v: str(v)[:30])
def test_a_wrong_field_of_a_manifest_is_a_value_error(saved, tmp_path, name, value):
    """Signed anew, so that only the checks of what is read can find it."""
    shutil.copytree(saved, tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    content = json.loads(path.read_text()) | {"crc32": "00000000", name: value}
    path.write_text(json.dumps(content))
    sign(path)
    with pytest.raises(ValueError, match=r"manifest\.json"):
        stitchwork.load(tmp_path / "model")


def test_a_manifest_without_one_of_its_fields_is_a_value_error(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    content = json.loads(path.read_text()) | {"crc32": "00000000"}
    for name in WRONG:
        path.write_text(json.dumps({key: value for key, value in content.items() if key != name}))
        sign(path)
        with pytest.raises(ValueError, match=r"manifest\.json"):
            stitchwork.load(tmp_path / "model")


def test_a_folder_that_is_replaced_while_it_is_read_is_one_model(client, fitted, data, queries, tmp_path, monkeypatch):
    from stitchwork.storage import folder as storage

    path, read = tmp_path / "model", storage.read_part
    other = regressor(box_size=2 * BOX).fit(*collections(data[0], data[1] + 100.0))
    fitted.save(path)
    (path / "thesis.tex").write_text("three years")

    def replace_meanwhile(*arguments):
        monkeypatch.setattr(storage, "read_part", read)
        other.save(path)
        return read(*arguments)

    monkeypatch.setattr(storage, "read_part", replace_meanwhile)
    np.testing.assert_allclose(stitchwork.load(path).predict(queries), other.predict(queries), rtol=1e-6, atol=1e-6)
    assert (path / "thesis.tex").read_text() == "three years"


def test_a_damaged_part_is_a_value_error(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "part-00001.safetensors"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"part-00001.*checksum"):
        stitchwork.load(tmp_path / "model")


def test_an_interrupted_save_leaves_nothing(fitted, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("stitchwork.dask._regressor.write_manifest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_data_frames_and_parquet(client, data, queries, tmp_path):
    import dask.dataframe as dd
    import pandas as pd

    X, y = data
    dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}), npartitions=4).to_parquet(tmp_path / "data")
    frame = dd.read_parquet(tmp_path / "data")
    model = regressor().fit(frame[["a", "b"]], frame["y"])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    asked = dd.from_pandas(pd.DataFrame(queries, columns=["a", "b"]), npartitions=3)
    np.testing.assert_allclose(model.predict(asked).compute(), model.predict(queries), rtol=1e-9)
    with pytest.raises(ValueError, match=r"columns \['b', 'a'\]"):
        model.predict(asked[["b", "a"]]).compute()


def kill_when(cluster, prefix):
    """Kill a worker process as soon as a task of that name is under way; returns a list that then holds its pid."""
    killed = []

    def watch():
        deadline = time.time() + 60
        while time.time() < deadline:
            tasks = list(cluster.scheduler.tasks.items())
            if any(str(key).strip("('").startswith(prefix) and task.state == "processing" for key, task in tasks):
                nanny = next(iter(cluster.workers.values()))
                killed.append(nanny.pid)
                os.kill(nanny.pid, 9)
                return
            time.sleep(0.001)

    threading.Thread(target=watch, daemon=True).start()
    return killed


@pytest.mark.parametrize("stage", ["shuffle", "stitchwork-cover", "stitchwork-fit", "stitchwork-offer"])
def test_a_worker_killed_during_fit_changes_nothing(client, cluster, fitted, data, queries, stage):
    expected = fitted.predict(queries)
    killed = kill_when(cluster, stage)
    # Another tolerance than any before it: it changes nothing but the names of the tasks, so that no result is at hand already.
    model = regressor(rank_tolerance=1e-10 * (1 + 1e-7 * len(stage))).fit(*collections(*data))
    assert killed
    np.testing.assert_array_equal(model.predict(queries), expected)


def test_a_worker_killed_during_predict_changes_nothing(client, cluster, fitted, queries):
    expected = fitted.predict(queries)
    many = da.from_array(np.tile(queries, (20, 1)), chunks=(8000, 2))
    killed = kill_when(cluster, "answer_part")
    found = fitted.predict(many).compute()
    assert killed
    np.testing.assert_allclose(found, np.tile(expected, 20), rtol=1e-9)  # in other chunks, so rounded otherwise


def test_bad_input_is_named_before_work_is_done(client, data):
    X, y = data
    bad = X.copy()
    bad[4000, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinite values in partition 2, the first at row 600, column 1"):
        regressor().fit(*collections(bad, y))
    with pytest.raises(ValueError, match="Partitions must belong together"):
        regressor().fit(da.from_array(X, chunks=(1700, 2)).to_dask_dataframe(), da.from_array(y, chunks=900))
    with pytest.raises(ValueError, match="`degree` must be an integer"):
        regressor(degree=-3).fit(*collections(X, y))
    with pytest.raises(ValueError, match="`box_size`"):
        regressor(box_size=0).fit(*collections(X, y))
    with pytest.raises(TypeError, match="unexpected keyword argument 'regionsize'"):
        regressor(regionsize=3)
    with pytest.raises(ValueError, match="no row"):
        regressor().fit(*collections(X, y), da.zeros(N, chunks=1700))
    with pytest.raises(ValueError, match="two axes"):
        regressor().fit(da.from_array(y, chunks=1700), da.from_array(y, chunks=1700))


@pytest.mark.parametrize("kind", ["complex", "masked"])
def test_complex_and_masked_numbers_are_refused(client, data, fitted, kind):
    X, y = collections(*data)

    def spoil(block):
        return block + 1j if kind == "complex" else np.ma.masked_greater(block, 2.0)

    bad = X.map_blocks(spoil, dtype=complex if kind == "complex" else float)
    with pytest.raises(ValueError, match=kind):
        regressor().fit(bad, y)
    with pytest.raises(ValueError, match=kind):
        regressor().fit(X, y.map_blocks(spoil, dtype=complex if kind == "complex" else float))
    with pytest.raises(ValueError, match=kind):
        fitted.predict(bad).compute()


def test_unequal_columns_are_refused(client, data):
    import dask
    import dask.dataframe as dd
    import pandas as pd

    X, y = data
    first, second = pd.DataFrame(X[:3000], columns=["a", "b"]), pd.DataFrame(X[3000:], columns=["a", "c"])
    parts = [dask.delayed(part) for part in (first, second)]
    frame = dd.from_delayed(parts, meta=first.iloc[:0], verify_meta=False)
    with pytest.raises(ValueError, match=r"Partition 1 has the columns \['a', 'c'\]"):
        regressor().fit(frame, da.from_array(y, chunks=3000))


def test_empty_partitions_change_nothing(client, fitted, data, queries):
    X, y = data
    gaps = (1700, 0, 1700, 1700, 900, 0)
    model = regressor().fit(da.from_array(X, chunks=(gaps, 2)), da.from_array(y, chunks=(gaps,)))
    assert np.sqrt(np.mean((model.predict(queries) - fitted.predict(queries)) ** 2)) < fitted.loo_error_


def test_all_points_in_one_place(client):
    X, y = np.ones((500, 2)), np.arange(500.0)
    model = regressor().fit(*collections(X, y, 100))
    assert model.n_boxes_ == 1
    np.testing.assert_allclose(model.predict(np.array([[1.0, 1.0], [5.0, 5.0]])), y.mean())


def test_rows_that_repeat_a_few_places(client):
    """Boxes that were even in rows would be poorer in places than a region."""
    rng = np.random.default_rng(0)
    X = np.concatenate([np.repeat(rng.uniform(-3, -2, (10, 2)), 300, axis=0), rng.uniform(0, 3, (3000, 2))])
    y = wave(X)
    model = regressor(box_size=600).fit(*collections(X, y))
    local = model.to_local()
    assert model.n_boxes_ > 1
    assert local.model_.n_points == 3010
    assert local.model_.region_size == 60
    Q = rng.uniform(0.2, 2.8, (500, 2))
    assert np.abs(model.predict(Q) - wave(Q)).max() < 1e-2


def test_without_a_client_it_says_what_to_do(data):
    code = (
        "import numpy as np, pytest; from stitchwork.dask import DaskStitchedRegressor\n"
        "with pytest.raises(ValueError, match='Start a cluster first'): DaskStitchedRegressor().fit(np.ones((9, 1)), np.ones(9))"
    )
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", code], check=True)


def test_boxes_that_new_points_concern_are_fitted_anew_and_others_stay(client, data, queries, tmp_path):
    from stitchwork.dask import load

    X, y = data
    new = np.random.default_rng(7).uniform(0.9, 1.1, (60, 2))
    model = regressor(kernel="gaussian", overlap=0.5).fit(*collections(X, y))
    model.save(tmp_path / "parts")
    before = {file.name: file.read_bytes() for file in (tmp_path / "parts").glob("part-*")}
    grown = load(tmp_path / "parts").partial_fit(*collections(new, wave(new)))
    assert grown.n_samples_seen_ == N + 60
    grown.save(tmp_path / "parts")
    same = [file.name for file in (tmp_path / "parts").glob("part-*") if file.read_bytes() == before[file.name]]
    assert 0 < len(same) < len(before)
    assert (np.abs(grown.predict(new) - wave(new)) <= np.abs(model.predict(new) - wave(new)).max()).all()
    box = model.model_.manifest.boxes.of(model.model_.space.coordinates(queries[:-1]))
    far = queries[:-1][np.isin(box, [int(name[5:10]) for name in same])]
    np.testing.assert_array_equal(grown.predict(far), model.predict(far))
    whole = stitchwork.load(tmp_path / "parts")  # as one model: every region holds the nearest points, every point is covered
    np.testing.assert_allclose(whole.predict(queries), grown.predict(queries), rtol=0, atol=1e-9)
    assert whole.model_.n_points == N + 60
    models, regions = whole.model_.levels[0].models, whole.model_.levels[0].regions
    P = whole.model_.points.X
    away = np.linalg.norm(P[models.members] - regions.centers[:, None], axis=2).max(axis=1)
    nearest = np.sort(np.linalg.norm(P[None] - regions.centers[:, None], axis=2), axis=1)[:, models.members.shape[1] - 1]
    np.testing.assert_allclose(away, nearest, rtol=0, atol=1e-12)
    covered = np.linalg.norm(P[None] - regions.centers[:, None], axis=2) <= regions.radii[:, None] / 1.5 * (1 + 1e-9)
    assert covered.any(axis=0).all()


def test_a_model_in_parts_does_not_forget(client, data):
    model = regressor().fit(*collections(*data))
    with pytest.raises(ValueError, match="to_local"):
        model.forget(data[0][:1])


def test_a_chart_on_a_cluster_is_the_model_of_the_places(client, tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 360, 6000), np.degrees(np.arcsin(rng.uniform(-1, 1, 6000)))])
    X[:2] = [[360.0, 20.0], [0.0, 20.0]]  # one place, in one partition or two

    def places(X):
        lon, lat = np.radians(X[:, 0] % 360.0), np.radians(X[:, 1])
        return 180 / np.pi * np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)

    E = places(X)
    y = E[:, 0] * E[:, 2] / 1000
    Q = X[rng.permutation(6000)[:500]] + np.array([0.5, 0.0])
    globe = regressor(geographic=(0, 1)).fit(*collections(X, y))
    plain = regressor().fit(*collections(E, y))
    assert globe.n_boxes_ == plain.n_boxes_ > 2
    assert globe.n_regions_ == plain.n_regions_
    assert globe.model_.n_points == plain.model_.n_points == 5999
    # Rounding of the places, 1e-14, and of the sums, as ever.
    np.testing.assert_allclose(globe.predict(Q), plain.predict(places(Q)), rtol=0, atol=1e-8)
    lazy = da.from_array(Q, chunks=(300, 2))
    local = globe.to_local()
    for unit in (None, "metres"):
        whole = local.gradient(Q, unit=unit)
        np.testing.assert_allclose(globe.gradient(lazy, unit=unit).compute(), whole, rtol=0, atol=1e-7 * np.abs(whole).max())
    assert globe.centers_[:, 0].min() >= 0.0
    np.testing.assert_allclose(np.sort(globe.centers_, axis=0), np.sort(local.centers_, axis=0))
    globe.save(tmp_path / "globe")
    np.testing.assert_allclose(stitchwork.load(tmp_path / "globe").predict(Q), local.predict(Q), rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="Latitudes must be from -90 to 90"):
        globe.predict([[0.0, 91.0]])
    with pytest.raises(ValueError, match="for models of the globe"):
        plain.gradient(da.from_array(places(Q), chunks=(300, 3)), unit="metres")
    with pytest.raises(ValueError, match="row 5 of `X` has 99"):
        regressor(geographic=(0, 1)).fit(*collections(np.where(np.arange(6000)[:, None] == 5, 99.0, X), y))


def test_a_cluster_whose_workers_are_paused_is_said_to_be(monkeypatch):
    from distributed.core import Status

    from stitchwork.dask import _cluster

    def set_status(dask_worker, status):
        dask_worker.status = status

    monkeypatch.setattr(_cluster, "_PATIENCE", 0.3)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None, "memory_limit": 0}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        client.run(set_status, status=Status.paused)
        work = _cluster.Cluster(client, False)
        timer = threading.Timer(2.0, lambda: client.run(set_status, status=Status.running))
        timer.start()
        with pytest.warns(UserWarning, match=r"paused.*memory_limit"):
            found = work.gather([work.submit(abs, -3, name="test")], "test")
        assert found == [3]
        timer.join()
