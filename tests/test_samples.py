"""Samples and covariances of the function."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from stitchwork import StitchedRegressor, load
from stitchwork.local.polynomial import monomials
from stitchwork.local.radial import KERNEL_NAMES, kernel_named
from stitchwork.local.waves import find_band, make_waves
from stitchwork.model.samples import find_root
from stitchwork.transform import LogStitchedRegressor


def wave(X):
    return np.sin(X[:, 0]) + 0.5 * X[:, 1] * np.cos(0.7 * X[:, 1])


def field(n, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (n, 2))
    return X, wave(X) + noise * rng.normal(size=n)


FIXED = {"kernel": "matern52", "degree": 1, "bandwidth": 1.0}


@pytest.fixture(scope="module")
def noisy():
    return StitchedRegressor(region_size=60, ridge=1e-2, **FIXED).fit(*field(1500, 0.1))


@pytest.fixture(scope="module")
def clean():
    return StitchedRegressor(region_size=60, ridge=1e-10, **FIXED).fit(*field(1500))


QUERIES = np.random.default_rng(5).uniform(0.5, 9.5, (120, 2))


@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_waves_make_the_kernel(name, d):
    """Errors of sampling with F = 512 waves: of a kernel so narrow that K is the identity of order n, √(n / F) of its norm."""
    kernel, one = kernel_named(name, d), np.ones(1)
    waves = make_waves(d, find_band(kernel, d, 100, one, one))
    X = np.random.default_rng(0).uniform(-1, 1, (40, d)) / np.sqrt(d)
    features = waves.values(X) * waves.amplitudes(kernel, one)
    K = kernel(np.square(X[:, None] - X).sum(axis=2))[0]
    U = np.linalg.svd(monomials(d, max(kernel.least_degree, 0)).values(X.T))[0]
    N = U[:, len(monomials(d, max(kernel.least_degree, 0))) :]  # what polynomials cannot explain
    expected, found = N.T @ K @ N, N.T @ features @ features.T @ N
    assert np.linalg.norm(found - expected) < 1.2 * np.sqrt(40 / 512) * np.linalg.norm(expected)
    assert np.trace(found) == pytest.approx(np.trace(expected), rel=0.1)


def test_waves_are_cosines_and_sines_of_their_phases():
    waves, rng = make_waves(2, np.array([0.0, 8.0])), np.random.default_rng(0)
    X = np.concatenate([np.zeros((1, 2)), rng.uniform(-1, 1, (300, 2))])
    phase = X @ waves.frequency  # up to some thousands
    expected = np.concatenate([np.cos(phase), np.sin(phase)], axis=1)
    np.testing.assert_allclose(waves.values(X), expected, atol=4 * np.finfo(float).eps)


@pytest.mark.parametrize(("kernel", "reference"), [("matern52", Matern(2.0, nu=2.5)), ("gaussian", RBF(2.0))])
def test_one_region_is_the_gaussian_process(kernel, reference):
    """Correlations over distance are those of scikit-learn's process with the same kernel, noise and scale."""
    X, y = field(150, 0.1)
    model = StitchedRegressor(local_model="krr", kernel=kernel, bandwidth=0.5, ridge=0.02, region_size=150, metric="euclidean")
    model.fit(X, y)
    inner = model.model_.levels[0].models
    length = float(inner.sigma[0] * inner.scale[0] / model.model_.space.unit)
    # exp(−r²) is RBF with length 1 / √2
    reference = reference.clone_with_theta(np.log([length / (np.sqrt(2.0) if kernel == "gaussian" else 1.0)]))
    process = GaussianProcessRegressor(ConstantKernel(1.0, "fixed") * reference, alpha=0.02, optimizer=None).fit(X, y)
    T = np.stack([np.linspace(2, 8, 40), np.full(40, 5.0)], axis=1)
    _, expected = process.predict(T, return_cov=True)
    assert_correlated(model, T, expected)


def assert_correlated(model, T, expected):
    """Covariances and samples at ``T`` have the correlations of the ``expected`` covariance matrix."""
    _, found = model.predict(T, return_cov=True, std_of="function")
    correlation, truth = (C / np.sqrt(np.outer(np.diag(C), np.diag(C))) for C in (found, expected))
    assert np.abs(correlation - truth).max() < 0.15  # 512 waves
    assert np.sqrt(np.mean((correlation - truth) ** 2)) < 0.05
    samples = model.sample_y(T, 4000)
    assert np.abs(np.corrcoef(samples) - correlation).max() < 5.0 / np.sqrt(4000)


def assert_spread(model, Q, within=0.15):
    """The median over the queries; 400 samples tell a standard deviation to 4 %."""
    samples = model.sample_y(Q, 400)
    value, std = model.predict(Q, return_std=True, std_of="function")
    ratio = samples.std(axis=-1) / std
    assert abs(np.median(ratio) - 1.0) < within
    assert np.quantile(ratio, 0.05) > 0.7
    assert np.quantile(ratio, 0.95) < 1.3
    assert np.median(np.abs(samples.mean(axis=-1) - value) / std) < 0.1
    return ratio


@pytest.mark.parametrize("which", ["noisy", "clean"])
def test_samples_spread_as_deviations_say(which, request):
    assert_spread(request.getfixturevalue(which), QUERIES)


def test_in_a_hole_and_outside():
    X, y = field(1500, 0.05)
    keep = np.linalg.norm(X - 5.0, axis=1) > 2.0
    model = StitchedRegressor(region_size=60, ridge=1e-3, **FIXED).fit(X[keep], y[keep])
    rng = np.random.default_rng(1)
    assert_spread(model, 5.0 + rng.uniform(-1, 1, (60, 2)))
    assert_spread(model, rng.uniform(10.0, 14.0, (60, 2)))


def test_tables_with_averages_and_several_outputs():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 5))
    Y = np.stack([np.sin(X[:, 0]) + X[:, 1], X[:, 3] ** 2], axis=1) + 0.1 * rng.normal(size=(700, 2))
    model = StitchedRegressor(region_size=100, kernel=("matern52", "soft-exponential"), ridge=(1e-3, 1e-1)).fit(X, Y)
    samples = model.sample_y(X[:50] + 0.1, 30)
    assert samples.shape == (50, 2, 30)
    assert_spread(model, X[:50] + 0.1)
    small = StitchedRegressor().fit(X[:150], Y[:150])  # every output has its own models
    assert_spread(small, X[200:250])
    _, covariance = small.predict(X[200:210], return_cov=True)
    assert covariance.shape == (10, 10, 2)
    assert abs(np.corrcoef(model.sample_y(X[:1], 2000)[0])[0, 1]) < 0.1  # outputs are independent


def test_samples_pass_through_data_without_noise(clean):
    X, y = field(1500)
    away = np.abs(clean.sample_y(X[:200], 20) - y[:200, None]).max(axis=1)
    _, between = clean.predict(QUERIES, return_std=True, std_of="function")
    _, there = clean.predict(X[:200], return_std=True, std_of="function")
    assert np.median(away) < 1e-2 * np.median(between)
    # Some points lie within the reach of regions that do not hold them: neither passes the prediction through these.
    passed = there < 1e-2 * np.median(between)
    assert passed.mean() > 0.75
    assert away[passed].max() < 0.05 * np.median(between)


def test_samples_are_as_smooth_as_the_prediction(clean, noisy):
    """Along a line through data points and across borders of regions, second differences shrink with the square of the step."""
    X, _ = field(1500)
    for model in (clean, noisy):
        start, end = X[10], X[10] + np.array([1.0, 0.5]) * np.sign(5.0 - X[10])

        def roughest(n, model=model, start=start, end=end):
            line = start + np.linspace(-0.5, 1, n)[:, None] * (end - start)
            return np.abs(np.diff(model.sample_y(line, 5) - model.predict(line)[:, None], 2, axis=0)).max()

        assert roughest(3201) < 0.3 * roughest(1601)  # a kink would have 0.5, a jump 1


def test_covariance_is_positive_and_has_the_variances(noisy, clean):
    for model in (noisy, clean):
        value, covariance = model.predict(QUERIES, return_cov=True)
        expected, std = model.predict(QUERIES, return_std=True)
        np.testing.assert_allclose(value, expected)
        np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-12)
        np.testing.assert_allclose(covariance, covariance.T, rtol=1e-12, atol=1e-14 * covariance.max())
        assert np.linalg.eigvalsh(covariance).min() > -1e-12 * np.linalg.eigvalsh(covariance).max()


def test_covariance_is_that_of_the_samples(noisy):
    T = QUERIES[np.argsort(np.linalg.norm(QUERIES - 5.0, axis=1))[:25]]
    _, covariance = noisy.predict(T, return_cov=True, std_of="function")
    std = np.sqrt(np.diag(covariance))
    found = np.corrcoef(noisy.sample_y(T, 4000))
    assert np.abs(found - covariance / np.outer(std, std)).max() < 5.0 / np.sqrt(4000)


def test_a_sample_is_one_function(noisy, tmp_path):
    """In chunks, in any order, from a file, on more threads: the same numbers, to rounding."""
    whole = noisy.sample_y(QUERIES, 3, random_state=7)
    np.testing.assert_allclose(noisy.sample_y(QUERIES[::-1], 3, random_state=7)[::-1], whole, rtol=1e-9)
    np.testing.assert_allclose(noisy.sample_y(QUERIES[40:50], 3, random_state=7), whole[40:50], rtol=1e-9)
    noisy.save(tmp_path / "m.stitch")
    np.testing.assert_allclose(load(tmp_path / "m.stitch").sample_y(QUERIES, 3, random_state=7), whole, rtol=1e-9)
    assert np.abs(noisy.sample_y(QUERIES, 3, random_state=8) - whole).max() > 0.01


def test_unit_of_the_responses(noisy):
    X, y = field(1500, 0.1)
    other = StitchedRegressor(region_size=60, ridge=1e-2, **FIXED).fit(X, 1000.0 * y + 5.0)
    np.testing.assert_allclose(other.sample_y(QUERIES, 3), 1000.0 * noisy.sample_y(QUERIES, 3) + 5.0, rtol=1e-6)


def test_models_that_grow(noisy):
    X, y = field(1500, 0.1)
    model = StitchedRegressor(region_size=60, ridge=1e-2, **FIXED).fit(X[:1400], y[:1400]).partial_fit(X[1400:], y[1400:])
    assert_spread(model, QUERIES)


@pytest.mark.parametrize("chart", [{"periodic": {0: 2 * np.pi}}, {"geographic": (0, 1)}])
def test_charts(chart):
    X, y = field(500, 0.1)
    model = StitchedRegressor(region_size=60, ridge=1e-2, **FIXED, **chart).fit(X, y)
    assert_spread(model, QUERIES)
    turn = 2 * np.pi if "periodic" in chart else 360.0
    np.testing.assert_allclose(model.sample_y(QUERIES + np.array([turn, 0.0]), 3), model.sample_y(QUERIES, 3), rtol=1e-7)


def test_log_models():
    X, y = field(800, 0.1)
    model = LogStitchedRegressor(region_size=60, ridge=1e-2, **FIXED).fit(X, np.exp(y))
    samples = model.sample_y(QUERIES, 300)
    assert (samples > 0.0).all()
    value, std = model.predict(QUERIES, return_std=True)
    _, covariance = model.predict(QUERIES, return_cov=True)
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.linalg.eigvalsh(covariance).max()
    assert abs(np.median(np.median(samples, axis=1) / value) - 1.0) < 0.05
    assert model.exceedance(QUERIES, -1.0).min() == 1.0


def test_exceedance_is_the_share_of_samples(noisy):
    threshold = float(np.median(noisy.predict(QUERIES)))
    share = (noisy.sample_y(QUERIES, 1000) > threshold).mean(axis=1)
    assert np.abs(share - noisy.exceedance(QUERIES, threshold)).max() < 0.08  # 5 deviations of a share of 1,000


def test_a_grid_has_samples_along_a_dimension(noisy):
    grid = noisy.grid((6, 7), samples=3, std=True)
    assert dict(grid["y_sample"].sizes) == {"sample": 3, "x0": 6, "x1": 7}
    X = np.stack(np.meshgrid(grid["x0"], grid["x1"], indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(grid["y_sample"].values.reshape(3, -1).T, noisy.sample_y(X, 3), rtol=1e-9)
    with pytest.raises(ValueError, match="samples"):
        noisy.grid(3, samples=-1)


def test_known_errors():
    X, y = field(800)
    s = np.random.default_rng(1).uniform(0.01, 0.5, 800)
    y = y + s * np.random.default_rng(2).normal(size=800)
    model = StitchedRegressor(region_size=60, ridge=1e-2, **FIXED).fit(X, y, noise_std=s)
    assert_spread(model, QUERIES)
    _, covariance = model.predict(QUERIES, return_cov=True, noise_std=np.full(120, 0.2))
    _, std = model.predict(QUERIES, return_std=True, noise_std=np.full(120, 0.2))
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-12)
    _, bare = model.predict(QUERIES, return_cov=True, std_of="function")
    off = ~np.eye(120, dtype=bool)
    np.testing.assert_allclose(bare[off], covariance[off], rtol=1e-9, atol=1e-15)


def test_means_of_areas_know_that_errors_go_together(noisy):
    """The standard deviation of a mean by samples and by the covariance agree; independent errors would have far less."""
    T = 5.0 + np.random.default_rng(0).uniform(-0.2, 0.2, (60, 2))
    _, covariance = noisy.predict(T, return_cov=True, std_of="function")
    together, apart = np.sqrt(covariance.mean()), np.sqrt(np.diag(covariance).sum()) / 60
    assert noisy.sample_y(T, 2000).mean(axis=0).std() == pytest.approx(together, rel=0.1)
    assert together > 3.0 * apart


class Plane:
    """A model of one's own."""

    smoothness = np.inf

    def fit(self, X, y, sample_weight):
        plane = Plane()
        plane.a, plane.b = np.zeros(X.shape[1]), y.mean(axis=0)
        return plane

    def predict(self, X):
        return X @ self.a + self.b

    def gradient(self, X):
        return np.tile(self.a, (len(X), 1))


def test_models_of_ones_own_name_the_remedy():
    model = StitchedRegressor(local_model=Plane(), region_size=30).fit(*field(100))
    with pytest.raises(ValueError, match=r"built-in local models.*return_std"):
        model.sample_y(QUERIES)
    with pytest.raises(ValueError, match="built-in local models"):
        model.predict(QUERIES, return_cov=True)


def test_what_is_refused(noisy):
    with pytest.raises(ValueError, match="n_samples"):
        noisy.sample_y(QUERIES, 0)
    with pytest.raises(ValueError, match="one of `return_std` and `return_cov`"):
        noisy.predict(QUERIES, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="threshold"):
        noisy.exceedance(QUERIES, np.nan)


@settings(max_examples=12, deadline=None)
@given(
    n=st.integers(3, 80),
    d=st.integers(1, 4),
    kernel=st.sampled_from(["gaussian", "matern32", "exponential", "linear", "cubic", "thin-plate", "multiquadric", "wendland"]),
    ridge=st.sampled_from([1e-12, 1e-4, 1.0]),
    seed=st.integers(0, 99),
)
def test_whatever_is_fitted_has_samples(n, d, kernel, ridge, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    model = StitchedRegressor(kernel=kernel, ridge=ridge, region_size=20).fit(X, rng.normal(size=n))
    Q = rng.normal(size=(15, d)) * 2.0
    assert np.isfinite(model.sample_y(Q, 3)).all()
    _, covariance = model.predict(Q, return_cov=True)
    assert np.isfinite(covariance).all()
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.linalg.eigvalsh(covariance).max()
    root = find_root(model.model_, Q)
    assert root.variance().shape == (15, 1)


def sloped(n, noise=0.0, seed=0):
    X, y = field(n, noise, seed)
    slope = 0.5 * np.cos(0.7 * X[:, 1]) - 0.35 * X[:, 1] * np.sin(0.7 * X[:, 1])
    return X, y, np.stack([np.cos(X[:, 0]), slope], axis=1)


def test_one_region_with_slopes_is_the_gaussian_process_of_both():
    """Covariances of values and slopes are derivatives of the kernel's, here by central differences of its plain formula."""
    X, y, G = sloped(30, 0.05)
    G[::4, 0] = np.nan
    model = StitchedRegressor(local_model="krr", kernel="gaussian", bandwidth=0.6, ridge=0.02, region_size=90, metric="euclidean")
    model.fit(X, y, gradient=G)
    inner, unit = model.model_.levels[0].models, model.model_.space.unit
    length, radius = (float(inner.scale[0] * by / unit) for by in (inner.sigma[0], 1.0))
    step = 1e-4 * length
    at = [[(x, 1.0)] for x in X] + [
        [(x + step * e, 0.5 * radius / step), (x - step * e, -0.5 * radius / step)]
        for x, g in zip(X, G, strict=True) for e, s in zip(np.eye(2), g, strict=True) if np.isfinite(s)
    ]  # fmt: skip
    T = np.stack([np.linspace(2, 8, 30), np.full(30, 5.0)], axis=1)
    every = at + [[(x, 1.0)] for x in T]
    ends, weights = np.array([x for one in every for x, _ in one]), [[w for _, w in one] for one in every]
    S = np.zeros((len(every), len(ends)))
    S[np.repeat(np.arange(len(every)), [len(w) for w in weights]), np.arange(len(ends))] = np.concatenate(weights)
    K = S @ np.exp(-np.square(ends[:, None] - ends).sum(axis=2) / length**2) @ S.T
    n = len(at)
    expected = K[n:, n:] - K[n:, :n] @ np.linalg.solve(K[:n, :n] + 0.02 * np.eye(n), K[:n, n:])
    assert_correlated(model, T, expected)


@pytest.mark.parametrize("changes", [{}, {"region_size": 60, "ridge": 1e-8, **FIXED}])
def test_samples_have_the_values_and_the_slopes_that_were_measured(changes):
    X, y, G = sloped(400 if changes else 12)  # so few that the function is not known to rounding between them
    model = StitchedRegressor(**changes).fit(X, y, gradient=G)
    Q = QUERIES[:40]
    assert_spread(model, Q)
    value, step = model.predict(Q, return_std=True, std_of="function")[1], 1e-3
    slope = model.gradient(Q, return_std=True)[1]
    assert np.median(np.abs(model.sample_y(X, 20) - y[:, None])) < 0.05 * np.median(value)
    for k, e in enumerate(step * np.eye(2)):
        found = (model.sample_y(X + e, 20) - model.sample_y(X - e, 20)) / (2 * step)
        assert np.median(np.abs(found - G[:, k, None])) < 0.1 * np.median(slope[:, k])
