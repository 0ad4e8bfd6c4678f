"""Known errors and measured slopes on a cluster: the model is that of one machine."""

import numpy as np
import pytest
from conftest import wave

import stitchwork
from stitchwork import StitchedRegressor

da = pytest.importorskip("dask.array", reason="needs the `dask` extra")
distributed = pytest.importorskip("dask.distributed", reason="needs the `dask` extra")

N, BOX, ROWS = 2000, 550, 600
FIXED = {"selection": None, "region_size": 40, "kernel": "matern52", "ridge": 1e-2}


@pytest.fixture(scope="module", autouse=True)
def client():
    """Two workers, each a process with one thread."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="3GB") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def lazy(array):
    return da.from_array(array, chunks=(ROWS, *array.shape[1:]))


def fit(X, y, box_size=BOX, settings=FIXED, **given):
    """A model in parts; arrays that are given with the rows become collections."""
    from stitchwork.dask import DaskStitchedRegressor

    given = {name: lazy(each) if np.shape(each)[:1] == (len(X),) else each for name, each in given.items()}
    return DaskStitchedRegressor(box_size=box_size, **settings).fit(lazy(X), lazy(y), **given)


def agree(a, b, share):
    """Whether numbers differ by at most this share of the largest."""
    np.testing.assert_allclose(a, b, rtol=0, atol=share * np.abs(b).max())


@pytest.fixture(scope="module")
def survey():
    """Points with errors that span a factor of 100, and as much noise again that nobody knows of; queries."""
    rng = np.random.default_rng(0)
    X, s = rng.uniform(-3, 3, (N, 2)), 10 ** rng.uniform(-2, 0, N)
    return X, wave(X) + s * rng.normal(size=N) + 0.3 * rng.normal(size=N), s, rng.uniform(-2.8, 2.8, (400, 2))


ASKED = {
    "value": lambda m, Q: m.predict(Q),
    "observation": lambda m, Q: m.predict(Q, return_std=True)[1],
    "given": lambda m, Q: m.predict(Q, return_std=True, noise_std=0.5)[1],
    "function": lambda m, Q: m.predict(Q, return_std=True, std_of="function")[1],
    "interval": lambda m, Q: m.predict_interval(Q, [0.5, 0.9], noise_std=np.linspace(0.1, 1, len(Q))),
}


def test_known_errors_in_one_box_are_those_of_one_machine(survey):
    X, y, s, Q = survey
    here, there = StitchedRegressor(**FIXED).fit(X, y, noise_std=s), fit(X, y, box_size=10 * N, noise_std=s)
    assert there.n_boxes_ == 1
    assert float(there.noise_) == pytest.approx(float(here.noise_))
    assert float(here.noise_) == pytest.approx(0.3, rel=0.17)  # variances that are tried are in steps of 10^¼
    for ask in ASKED.values():
        np.testing.assert_allclose(ask(there, Q), ask(here, Q), rtol=1e-9)


def test_known_errors_in_many_boxes_agree_with_one_machine(survey, tmp_path):
    from stitchwork.dask import load

    X, y, s, Q = survey
    here, there = StitchedRegressor(**FIXED).fit(X, y, noise_std=s), fit(X, y, noise_std=s)
    assert there.n_boxes_ > 2
    assert float(there.noise_) == pytest.approx(float(here.noise_), rel=0.05)
    difference = there.predict(Q) - here.predict(Q)
    assert np.sqrt(np.mean(difference**2)) < 0.5 * np.median(ASKED["function"](here, Q))
    # Other covers have other centres, where a region knows most.
    for name in ("observation", "given", "interval"):
        assert np.median(np.abs(ASKED[name](there, Q) - ASKED[name](here, Q))) < 0.1 * np.median(ASKED["observation"](here, Q))
    assert np.median(ASKED["function"](there, Q) / ASKED["function"](here, Q)) == pytest.approx(1.0, abs=0.05)
    local = there.to_local()
    for name, ask in ASKED.items():
        agree(ask(there, Q), ask(local, Q), 1e-9 if name == "value" else 0.02)  # scales are pooled inside of a part
    some = lazy(Q), np.linspace(0.1, 1, len(Q))
    np.testing.assert_allclose(there.predict_interval(some[0], [0.5, 0.9], noise_std=lazy(some[1])), ASKED["interval"](there, Q))
    there.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), stitchwork.load(tmp_path / "model")):
        agree(ASKED["given"](again, Q), ASKED["given"](there, Q), 0.02)
        assert float(again.noise_) == pytest.approx(float(there.noise_))


def test_intervals_hold_new_observations_of_each_error(survey):
    X, y, s, Q = survey
    model, rng = fit(X, y, noise_std=s), np.random.default_rng(1)
    for error in (0.01, 1.0):
        fresh = wave(Q) + np.hypot(error, 0.3) * rng.normal(size=len(Q))
        ends = model.predict_interval(Q, 0.9, noise_std=error)
        assert 0.85 < np.mean((ends[:, 0] <= fresh) & (fresh <= ends[:, 1])) < 0.95


def test_more_rows_with_errors_agree_with_one_machine(survey):
    X, y, s, Q = survey
    old, new = np.flatnonzero(X[:, 0] < 2.0), np.flatnonzero(X[:, 0] >= 2.0)
    grown = fit(X[old], y[old], noise_std=s[old])
    errors = grown.model_.errors
    grown.partial_fit(lazy(X[new]), lazy(y[new]), noise_std=lazy(s[new]))
    here = StitchedRegressor(**FIXED).fit(X[old], y[old], noise_std=s[old]).partial_fit(X[new], y[new], noise_std=s[new])
    np.testing.assert_array_equal(np.stack(grown.model_.errors), np.stack(errors))
    difference = grown.predict(Q) - here.predict(Q)
    assert np.sqrt(np.mean(difference**2)) < 0.5 * np.median(ASKED["function"](here, Q))
    with pytest.raises(ValueError, match="with all rows or with none"):
        grown.partial_fit(X[:5], y[:5])


def test_odd_errors_name_their_partition(survey):
    X, y, s, _ = survey
    bad = np.where(np.arange(N) == 1300, -1.0, s)
    with pytest.raises(ValueError, match="Partition 2: `noise_std` must be positive"):
        fit(X, y, noise_std=bad)
    with pytest.raises(ValueError, match="Give either `sample_weight` or `noise_std`"):
        fit(X, y, noise_std=s, sample_weight=s)
    with pytest.raises(ValueError, match="no row to fit"):
        fit(X[:0], y[:0], noise_std=s[:0])


SLOPED = FIXED | {"kernel": "gaussian", "ridge": 1e-8}


def slopes_of(X):
    """Gradients of the wave, by central differences in long steps: 1e-6 of its size."""
    step = 1e-4 * np.eye(2)
    return np.stack([(wave(X + e) - wave(X - e)) / 2e-4 for e in step], axis=1)


@pytest.fixture(scope="module")
def sloped():
    """Points with slopes, of which some lack one or both, or the response; queries."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, (N, 2))
    y, G = wave(X), slopes_of(X)
    G[::3, 0], G[::5] = np.nan, np.nan
    y[1::15] = np.nan
    G[1::15, 1] = slopes_of(X[1::15])[:, 1]
    return X, y, G, rng.uniform(-2.8, 2.8, (400, 2))


def test_slopes_in_one_box_are_those_of_one_machine(sloped):
    X, y, G, Q = sloped
    here, there = StitchedRegressor(**SLOPED).fit(X, y, gradient=G), fit(X, y, 10 * N, SLOPED, gradient=G)
    assert there.n_boxes_ == 1
    np.testing.assert_allclose(there.predict(Q), here.predict(Q), rtol=0, atol=1e-9)
    np.testing.assert_allclose(there.gradient(Q), here.gradient(Q), rtol=0, atol=1e-8)
    np.testing.assert_allclose(there.predict(Q, return_std=True)[1], here.predict(Q, return_std=True)[1], rtol=1e-6)
    assert there.loo_error_ == pytest.approx(here.loo_error_, rel=1e-6)


def test_slopes_in_many_boxes_agree_with_one_machine(sloped, tmp_path):
    from stitchwork.dask import load

    X, y, G, Q = sloped
    here, there = StitchedRegressor(**SLOPED).fit(X, y, gradient=G), fit(X, y, settings=SLOPED, gradient=G)
    assert there.n_boxes_ > 2

    def apart(model, other):
        return np.sqrt(np.mean((model.predict(Q) - other.predict(Q)) ** 2))

    assert apart(there, here) < here.loo_error_
    agree(there.predict(Q), there.to_local().predict(Q), 1e-9)
    agree(there.gradient(lazy(Q)).compute(), there.to_local().gradient(Q), 1e-8)
    assert there.loo_error_ == pytest.approx(here.loo_error_, rel=0.2)
    there.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), stitchwork.load(tmp_path / "model")):
        agree(again.predict(Q), there.predict(Q), 1e-9)
    more = np.random.default_rng(3).uniform(-3, 3, (200, 2))
    known = load(tmp_path / "model").partial_fit(more, wave(more), gradient=slopes_of(more))
    assert known.model_.n_points == N + 200
    here.partial_fit(more, wave(more), gradient=slopes_of(more))
    # In a gap between points a single region of another cover may differ by more; the data are met as well, and most places.
    middle = [np.median(np.abs(m.predict(Q) - wave(Q))) for m in (known, here)]
    assert middle[0] < 1.2 * middle[1]
    for model in (known, here):  # a ridge of 1e-8 does not go through the data to rounding: a ten thousandth of the amplitude
        np.testing.assert_allclose(model.predict(more), wave(more), rtol=0, atol=1e-4)
        np.testing.assert_allclose(model.gradient(more), slopes_of(more), rtol=0, atol=1e-3)


def test_what_is_chosen_with_slopes_agrees_with_one_machine(sloped):
    X, y, G, Q = sloped
    settings = {"kernel": "gaussian", "degree": 1, "ridge": 1e-8, "metric": "euclidean", "region_size": 40}
    here, there = StitchedRegressor(**settings).fit(X, y, gradient=G), fit(X, y, settings=settings, gradient=G)
    errors = [np.sqrt(np.mean((m.predict(Q) - wave(Q)) ** 2)) for m in (there, here)]
    assert errors[0] < 2.0 * errors[1] + here.loo_error_


def test_slopes_with_a_period_and_by_one_feature_agree_with_one_machine():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.uniform(0, 360, N), rng.uniform(0, 1, N)])
    angle = np.radians(X[:, 0])
    y = np.stack([np.sin(angle) * X[:, 1], np.cos(angle)], axis=1)
    G = np.full((N, 2, 2), np.nan)
    G[:, 0, 0], G[:, 1, 0] = np.cos(angle) * X[:, 1] * np.pi / 180, -np.sin(angle) * np.pi / 180
    settings = SLOPED | {"periodic": {0: 360.0}, "metric": "standardized"}
    Q = np.column_stack([rng.uniform(0, 360, 300), rng.uniform(0, 1, 300)])
    here = StitchedRegressor(**settings).fit(X, y, gradient=G)
    there = fit(X, y, 10 * N, settings, gradient=G)
    np.testing.assert_allclose(there.predict(Q), here.predict(Q), rtol=0, atol=1e-8)
    cut = fit(X, y, settings=settings, gradient=G)
    assert cut.n_boxes_ > 2
    truth = np.stack([np.sin(np.radians(Q[:, 0])) * Q[:, 1], np.cos(np.radians(Q[:, 0]))], axis=1)
    assert np.abs(cut.predict(Q) - truth).max() < 2.0 * np.abs(here.predict(Q) - truth).max()


def test_slopes_on_the_globe_are_those_of_one_machine():
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.uniform(-180, 180, N), np.degrees(np.arcsin(rng.uniform(-1, 1, N)))])
    X[:2] = [[10.0, 90.0], [-180.0, 20.0]]  # at a pole longitude leads nowhere
    lon, lat = np.radians(X.T)
    y = np.cos(lat) * np.cos(lon) + np.sin(2 * lat)
    G = np.column_stack([-np.cos(lat) * np.sin(lon), -np.sin(lat) * np.cos(lon) + 2 * np.cos(2 * lat)]) * np.pi / 180
    settings = SLOPED | {"geographic": (0, 1)}
    here, there = StitchedRegressor(**settings).fit(X, y, gradient=G), fit(X, y, 10 * N, settings, gradient=G)
    Q = X + np.array([0.5, 0.0])
    np.testing.assert_allclose(there.predict(Q), here.predict(Q), rtol=0, atol=1e-8)
    cut = fit(X, y, settings=settings, gradient=G)
    assert cut.n_boxes_ > 2
    agree(cut.gradient(X[::20]), G[::20], 1e-3)


def test_errors_and_slopes_may_be_columns_of_a_frame(sloped):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    from stitchwork.dask import DaskStitchedRegressor

    X, y, G, Q = sloped
    s = 10 ** np.linspace(-2, 0, N)
    columns = dict(zip(["a", "b", "y", "ya", "yb", "s"], [*X.T, y, *G.T, s], strict=True))
    frame = dd.from_pandas(pd.DataFrame(columns), npartitions=3)
    model = DaskStitchedRegressor(box_size=10 * N, **SLOPED)
    model.fit(frame[["a", "b"]], frame["y"], noise_std=frame["s"], gradient=frame[["ya", "yb"]], gradient_std=0.1)
    here = StitchedRegressor(**SLOPED).fit(X, y, noise_std=s, gradient=G, gradient_std=0.1)
    agree(model.predict(Q), here.predict(Q), 1e-9)
    asked = dd.from_pandas(pd.DataFrame({"a": Q[:, 0], "b": Q[:, 1], "s": 0.2}), npartitions=2)
    std = model.predict(asked[["a", "b"]], return_std=True, noise_std=asked["s"])[1]
    np.testing.assert_allclose(std.compute(), here.predict(Q, return_std=True, noise_std=0.2)[1], rtol=1e-6)


def test_slopes_with_known_errors_are_those_of_one_machine(sloped):
    X, y, G, Q = sloped
    rng, s, u = np.random.default_rng(5), 10 ** np.linspace(-2, 0, N), 10 ** np.linspace(0, -1, N)[:, None] * np.ones(2)
    y, G = y + s * rng.normal(size=N), G + u * rng.normal(size=(N, 2))
    settings = SLOPED | {"ridge": 1e-3}
    given = {"gradient": G, "noise_std": s}
    for std in (u, 0.3, [0.3, 0.4]):
        here = StitchedRegressor(**settings).fit(X, y, gradient_std=std, **given)
        there = fit(X, y, 10 * N, settings, gradient_std=std, **given)
        agree(there.predict(Q), here.predict(Q), 1e-9)
        assert float(there.noise_) == pytest.approx(float(here.noise_))


def test_a_box_without_responses_joins_its_neighbours(sloped):
    X, _, _, Q = sloped
    y, G = np.where((X > -0.5).all(axis=1), np.nan, wave(X)), slopes_of(X)
    model = fit(X, y, settings=SLOPED, gradient=G)
    assert 1 < model.n_boxes_ < fit(X, wave(X), settings=SLOPED, gradient=G).n_boxes_
    here = StitchedRegressor(**SLOPED).fit(X, y, gradient=G)
    assert np.abs(model.predict(Q) - wave(Q)).max() < 2.0 * np.abs(here.predict(Q) - wave(Q)).max() + 1e-6


ODD = {
    "Partition 1: `gradient` must not be infinite": lambda X, y, G: (y, np.where(np.arange(N)[:, None] == 700, np.inf, G)),
    "all of it is NaN": lambda X, y, G: (wave(X), np.full_like(G, np.nan)),
    "a response in at least one row": lambda X, y, G: (np.full_like(y, np.nan), slopes_of(X)),
    "Partition 0: Row 0 has neither": lambda X, y, G: (
        np.where(np.arange(N) == 0, np.nan, y),
        np.where(np.arange(N)[:, None] == 0, np.nan, G),
    ),
}


@pytest.mark.parametrize("message", ODD)
def test_odd_slopes_are_told_before_work_is_done(sloped, message):
    X, y, G, _ = sloped
    y, G = ODD[message](X, y, G)
    with pytest.raises(ValueError, match=message):
        fit(X, y, settings=SLOPED, gradient=G)


def test_slopes_need_kernels_and_errors_that_suit_them(sloped):
    X, y, G, _ = sloped
    with pytest.raises(ValueError, match="has no second derivative"):
        fit(X, y, settings=SLOPED | {"kernel": "linear"}, gradient=G)
    with pytest.raises(ValueError, match="needs `noise_std`"):
        fit(X, y, settings=SLOPED, gradient=G, gradient_std=0.1)
    with pytest.raises(ValueError, match="needs `gradient`"):
        fit(X, wave(X), settings=SLOPED, gradient_std=0.1)
    one = np.where([True, False], G, np.nan)
    model = fit(X, wave(X), settings=SLOPED, gradient=one)
    with pytest.raises(ValueError, match="slopes by feature 1"):
        model.partial_fit(X[:5] + 0.01, wave(X[:5] + 0.01), gradient=slopes_of(X[:5] + 0.01))


def test_the_median_error_of_many_rows_is_that_of_a_sample_and_of_few_rows_exact():
    from stitchwork.dask._inputs import Block, Blocks
    from stitchwork.dask._rows import choose_evenly, find_facts, join_facts

    rng = np.random.default_rng(7)
    for n, exact in ((500, True), (40_000, False)):
        s2 = [np.exp(k + rng.normal(size=(n // (k + 1), 1))) for k in range(3)]  # blocks of different sizes and errors
        blocks = [Block(np.zeros((len(one), 2)), np.zeros((len(one), 1)), np.ones(len(one)), s2=one) for one in s2]
        facts = [find_facts(block, 4096) for block in blocks]
        reading = join_facts(facts, 4096, Blocks([], 2, None, True, False, errors=True, sloped=False, told=False))
        true = np.median(np.concatenate(s2))
        # A rank among 4,096 is known to 1/128; log errors have a density of 0.2 there.
        assert reading.errors.unit[0] == pytest.approx(true, rel=1e-12 if exact else 4 / 128 / 0.2)
    kept, counts = [100, 50, 0, 100], [1000, 50, 0, 400]
    chosen = choose_evenly(kept, counts, 100)
    assert [len(some) for some in chosen] == [69, 4, 0, 28]
    assert [len(some) for some in choose_evenly(counts, counts, 2000)] == counts
