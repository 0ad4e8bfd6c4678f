"""Exported models: PyTorch and JAX compute what the model computes, derivatives included, under every transformation."""

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import wave
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError

import stitchwork
from stitchwork import StitchedRegressor, export
from stitchwork.export._overlaps import _meeting_balls, most_balls_at_a_point
from stitchwork.local.fit import fit_blocks
from stitchwork.local.radial import KERNEL_NAMES, NO_KERNEL, kernel_named, weight_named
from stitchwork.local.settings import Settings

WEIGHTS = ("wendland-c0", "wendland-c2", "wendland-c4", "wendland-c6", "wendland-c4-native", "truncated-gaussian")
EVERY_RADIAL = [
    *(kernel_named(name, d) for name in (*KERNEL_NAMES, NO_KERNEL.name) for d in (2, 5)),
    *(weight_named(name, d) for name in (*WEIGHTS, "wendland-c0-native", "wendland-c2-native") for d in (1, 2, 6)),
]
# Relative to the size of each of value, gradient and Hessian: what the export promises where sums over a region's members keep
# their digits, as they do at the ridge of these tests.
PROMISED = 1e-10


class Torch:
    """Exported to PyTorch, arrays in, arrays out."""

    def __init__(self):
        self.torch = pytest.importorskip("torch", reason="exports to PyTorch: pip install torch")
        self.torch.set_num_threads(1)  # small tensors: threads would wait for each other

    def derivatives(self, model, Q, order):
        """Values, then derivatives of every order up to ``order``, query by query."""
        f, out = export.to_torch(model), []
        for _ in range(order + 1):
            out.append(self.torch.func.vmap(f)(self.torch.tensor(Q)).numpy())
            f = self.torch.func.jacrev(f) if len(out) == 1 else self.torch.func.jacfwd(f)
        return out


class Jax:
    """The same with JAX."""

    def __init__(self):
        self.jax = pytest.importorskip("jax", reason="exports to JAX: pip install jax")

    def derivatives(self, model, Q, order):
        """Values, then derivatives of every order up to ``order``, query by query, all compiled as one."""
        fs = [export.to_jax(model)]
        for k in range(order):
            fs.append(self.jax.jacrev(fs[-1]) if k == 0 else self.jax.jacfwd(fs[-1]))
        return [np.asarray(a) for a in self.compiled(self.jax.vmap(lambda x: [f(x) for f in fs]))(Q)]

    def compiled(self, f):
        """``f`` compiled in haste: these tests compile for seconds and run for milliseconds."""
        return self.jax.jit(f, compiler_options={"xla_backend_optimization_level": 0})


@pytest.fixture
def in_torch():
    """PyTorch, or a skip that says why."""
    return Torch()


@pytest.fixture
def in_jax():
    """JAX in double precision, or a skip that says why."""
    adapter = Jax()
    before = adapter.jax.config.jax_enable_x64
    adapter.jax.config.update("jax_enable_x64", True)
    yield adapter
    adapter.jax.config.update("jax_enable_x64", before)


@pytest.fixture(params=["in_torch", "in_jax"])
def framework(request):
    """One after the other."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def ring():
    """300 points in a square with a hole, y = wave."""
    X = np.random.default_rng(1).uniform(-3, 3, (400, 2))
    X = X[np.linalg.norm(X, axis=1) > 1.2][:300]
    return X, wave(X)


def queries(model, X):
    """Data points, centres, points on the borders of regions of every level, in the hole, around and far outside of the data."""
    rng = np.random.default_rng(2)
    d = X.shape[1]
    borders = []
    for level in (level.balls for level in model.model_.levels[:-1]):
        direction = rng.normal(size=(8, d))
        direction /= np.linalg.norm(direction, axis=1)[:, None]
        chosen = rng.integers(len(level.radii), size=8)
        borders.append(model.model_.space.original(level.centers[chosen] + level.radii[chosen, None] * direction))
    around, hole = rng.uniform(-5, 5, (24, d)), rng.normal(scale=0.3, size=(6, d))
    return np.concatenate([X[:20], model.centers_[:10], *borders, around, hole, np.zeros((1, d)), 1e3 * rng.normal(size=(4, d))])


def agree(exported, expected, tolerance=PROMISED):
    """Whether all is finite, of the same shape, and equal relative to the size of the expected array."""
    exported = np.asarray(exported)
    size = max(np.abs(expected).max(), np.finfo(float).tiny)
    return (
        exported.shape == expected.shape and np.isfinite(exported).all() and np.abs(exported - expected).max() <= tolerance * size
    )


def agree_to_order(framework, model, Q, order, tolerance=PROMISED):
    """Whether values and derivatives up to ``order`` agree with the model's."""
    expected = [ask(Q) for ask in (model.predict, model.gradient, model.hessian)[: order + 1]]
    return [agree(a, b, tolerance) for a, b in zip(framework.derivatives(model, Q, order), expected, strict=True)] == [True] * (
        order + 1
    )


def with_many_kernels(model, names, degrees):
    """The fitted ``model`` again, with kernels and degrees that alternate from region to region, at every level but the last."""
    fitted = model.model_
    kernels = tuple(kernel_named(name, fitted.n_features) for name in names)
    refitted = {}
    for level in fitted.levels[:-1]:
        old = level.models.settings
        kernel = np.arange(len(old.kernel)) % len(kernels)
        settings = Settings(kernels, kernel, old.bandwidth, old.ridge, np.array(degrees)[kernel], old.tolerance, old.local_metric)
        if id(level.regions) not in refitted:
            models = fit_blocks(fitted.points, level.models.members, settings)
            refitted[id(level.regions)] = replace(level.regions, models=models)
    levels = tuple(replace(level, regions=refitted.get(id(level.regions), level.regions)) for level in fitted.levels)
    model.model_ = replace(fitted, levels=levels)
    return model


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": "gaussian", "metric": np.array([[2.0, 0.7], [0.7, 0.5]])},
        {"kernel": "matern52", "metric": "euclidean", "periodic": {0: 2.0 * np.pi}},
    ],
)
def test_measured_slopes_are_exported(framework, changes):
    X = np.random.default_rng(1).uniform(-3, 3, (120, 2))
    a, b = X.T
    y = np.stack([np.sin(a) * np.cos(b), b * np.cos(a)], axis=1)
    G = np.stack([np.cos(a) * np.cos(b), -np.sin(a) * np.sin(b), -b * np.sin(a), np.cos(a)], axis=1).reshape(-1, 2, 2)
    G[::5, :, 0], y[::7] = np.nan, np.nan
    fixed = {"selection": None, "degree": 1, "bandwidth": 1.0, "ridge": 1e-4, "region_size": 60}
    model = StitchedRegressor(**fixed, **changes).fit(X, y, gradient=G)
    Q = np.concatenate([X[:20], np.random.default_rng(2).uniform(-5, 5, (40, 2))])
    assert agree_to_order(framework, model, Q, 2)


@pytest.mark.parametrize("radial", EVERY_RADIAL, ids=lambda radial: radial.name)
def test_powers_of_D_of_every_order_are_derivatives(radial):
    # Central differences of sixth order, step 1e-2: 1e-14 × a ninth derivative at s ≥ 0.2, and rounding.
    s, step = np.linspace(0.2, 0.8, 13), 1e-2
    around = {k: radial(s + k * step, 6) for k in (-3, -2, -1, 1, 2, 3)}
    for j, derived in enumerate(radial(s, 6)[1:]):
        slope = sum(c * (around[k][j] - around[-k][j]) for k, c in ((1, 45), (2, -9), (3, 1)))
        np.testing.assert_allclose(2.0 * slope / (60 * step), derived, rtol=1e-3, atol=1e-9 * (1.0 + np.abs(derived).max()))


@pytest.mark.parametrize(
    "radial", [*map(kernel_named, KERNEL_NAMES, [2] * 11), weight_named("wendland-c4", 2)], ids=lambda r: r.name
)
def test_jax_differentiates_by_the_formulas(in_jax, radial):
    from stitchwork.export._jax import _radial

    s = np.array([0.0, 1e-18, 0.3, 1.0, 1.7])
    grad = in_jax.jax.grad
    slope = grad(lambda s: _radial(radial.profile, 0, s))
    first, second = in_jax.compiled(in_jax.jax.vmap(lambda s: (slope(s), grad(slope)(s))))(s)
    _, Df, D2f = radial(s, 2)
    np.testing.assert_allclose(first, 0.5 * Df, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(second, 0.25 * D2f, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_every_kernel_agrees(in_torch, fixed, ring, kernel):
    model = fixed(kernel=kernel).fit(*ring)
    Q = queries(model, ring[0])
    order = int(min(model.smoothness_, 2))
    exported = in_torch.derivatives(model, Q, order)
    expected = [ask(Q) for ask in (model.predict, model.gradient, model.hessian)[: order + 1]]
    assert all(agree(a, b) for a, b in zip(exported[:2], expected[:2], strict=True))
    # At data points D²f of a kernel that is just C² goes as 1/r, up to 1e8, and multiplies the rounding of (q - x)(q - x)ᵀ that
    # the model finds by expanding the product: 2e-16 · 1e8. Elsewhere 1e-10.
    just = kernel_named(kernel, 2).smoothness == 2
    assert order < 2 or agree(exported[2], expected[2], 2e-8 if just else PROMISED)
    assert order < 2 or agree(exported[2][30:], expected[2][30:])


@pytest.mark.parametrize("weight", WEIGHTS)
def test_every_weight_agrees(in_torch, fixed, ring, weight):
    model = fixed(weight=weight).fit(*ring)
    # Away from borders, where a weight that jumps is on either side by rounding.
    Q = queries(model, ring[0]) if model.smoothness_ >= 0 else np.random.default_rng(0).uniform(-4, 4, (60, 2))
    assert agree_to_order(in_torch, model, Q, int(np.clip(model.smoothness_, 0, 2)))


@pytest.mark.parametrize(
    "changes",
    [
        {"degree": 0},
        {"degree": 3, "region_size": 40},
        {"local_model": "krr"},
        {"local_model": "poly"},
        {"background": "polynomial"},
        {"metric": "standardized"},
        {"metric": np.array([[2.0, 0.7], [0.7, 0.5]])},
        {"metric": np.diag([1.0, 0.0]), "degree": 1, "ridge": 1e-2},  # points that nearly coincide
    ],
    ids=str,
)
def test_every_kind_of_model_agrees(in_torch, fixed, ring, changes):
    model = fixed(**changes).fit(*ring)
    assert agree_to_order(in_torch, model, queries(model, ring[0]), 2)


@pytest.mark.parametrize("d", [1, 3])
def test_other_dimensions_agree(in_torch, fixed, d):
    X = np.random.default_rng(0).uniform(-3, 3, (150, d))
    model = fixed(degree=1).fit(X, wave(X))
    assert agree_to_order(in_torch, model, queries(model, X), 2)


def test_hierarchy_metric_and_outputs_agree(framework, fixed, ring):
    X, y = ring[0][:110], ring[1][:110]
    model = fixed(metric=np.array([[2.0, 0.7], [0.7, 0.5]])).fit(X, np.column_stack([y, y**2]))
    assert agree_to_order(framework, model, queries(model, X), 2)


def test_regions_that_are_held_by_their_bounds_agree(framework, fixed, ring):
    X, noise = ring[0][:110], np.random.default_rng(3).normal(size=(110, 2))
    model = fixed(bandwidth=2.0, region_size=20, ridge=1e-4).fit(X, noise * [1.0, 1e6])
    Q = queries(model, X)
    freed = tuple(replace(level, regions=replace(level.regions, extremes=None)) for level in model.model_.levels)
    assert (model.predict(Q) != replace(model.model_, levels=freed).reference_jet(Q, 0).value).mean() > 0.2
    for found, ask in zip(framework.derivatives(model, Q, 2), (model.predict, model.gradient, model.hessian), strict=True):
        expected = ask(Q)
        for output in range(2):
            assert agree(found[:, output], expected[:, output], 1e-8)


def test_features_with_a_period_and_the_globe_agree(framework, fixed):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-180, 180, 400), rng.uniform(0, 24, 400), rng.uniform(-1, 1, 400), rng.uniform(-90, 90, 400)])
    model = fixed(geographic=(0, 3), periodic={1: 24}, metric="standardized").fit(
        X, wave(X[:, [2, 1]] / 4) + np.cos(np.radians(X[:, 3]))
    )
    Q = np.concatenate(
        [X[:10] + 0.01, [[180.0, 0.0, 0.5, 0.0], [-180.0, 24.0, 2.0, 10.0], [700.0, -30.0, -9.0, -89.0], [0.0, 12.0, 0.0, 90.0]]]
    )
    Q[:, 3] = np.clip(Q[:, 3], -90, 90)
    assert agree_to_order(framework, model, Q, 2)


def test_many_kernels_and_degrees_in_one_level_agree(framework, fixed, ring):
    model = fixed(region_size=20, background="polynomial").fit(*ring)
    model = with_many_kernels(model, ("gaussian", "matern72", "multiquadric", "none"), (2, -1, 0, 3))
    assert set(model.degrees_) == {2, -1, 0, 3}
    assert agree_to_order(framework, model, queries(model, ring[0]), 2)


def test_the_model_of_all_defaults_agrees_as_far_as_its_sums_keep_digits(in_torch, ring):
    model = StitchedRegressor().fit(*ring)
    # Noise-free data make for a tiny ridge: coefficients up to 1e9 that cancel. A sum of h products loses eps Σ |α_i|.
    largest = max(np.abs(level.models.alpha).sum(axis=1).max() for level in model.model_.levels)
    tolerance = max(PROMISED, np.finfo(float).eps * largest)
    assert tolerance < 1e-5
    assert agree_to_order(in_torch, model, queries(model, ring[0]), 0, tolerance)


def test_third_derivatives_are_those_of_the_hessian(in_torch, fixed, ring):
    model = fixed(weight="wendland-c4", background="polynomial").fit(*ring)
    Q = ring[0][:5]
    third, step = in_torch.derivatives(model, Q, 3)[3], 1e-4
    slopes = [(model.hessian(Q + step * e) - model.hessian(Q - step * e)) / (2 * step) for e in np.eye(2)]
    # Central differences: step² times fifth derivatives, a few thousand times larger at this region size.
    assert agree(third, np.stack(slopes, axis=-1), 1e-4)


def test_nothing_overflows_far_away(framework, fixed, ring):
    model = fixed(kernel="cubic", degree=1, background="polynomial").fit(*ring)
    Q = 1e150 * np.array([[1.0, 2.0], [-3.0, 1.0]])
    assert agree_to_order(framework, model, Q, 1)


def test_batches_of_any_shape_are_their_queries(framework, fixed, ring):
    model = fixed(background="polynomial").fit(ring[0], ring[1][:, None])
    Q = queries(model, ring[0])[:24]
    f = export.to_torch(model) if isinstance(framework, Torch) else framework.compiled(export.to_jax(model))
    tensor = framework.torch.tensor if isinstance(framework, Torch) else np.asarray
    whole = np.asarray(f(tensor(Q)))
    assert whole.shape == (24, 1)
    # The order of a sum may depend on the shape: a few roundings.
    np.testing.assert_allclose(np.asarray(f(tensor(Q.reshape(2, 3, 4, 2)))), whole.reshape(2, 3, 4, 1), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(np.stack([np.asarray(f(tensor(q))) for q in Q[:9]]), whole[:9], rtol=1e-11, atol=1e-11)
    with pytest.raises(ValueError, match=r"`x` must have shape \(2,\) or \(\.\.\., 2\)"):
        f(tensor(Q[:, :1]))


def test_compiled_is_not_compiled(in_torch, fixed, ring):
    torch = in_torch.torch
    model = fixed(background="polynomial").fit(*ring)
    module, x = export.to_torch(model), torch.tensor(ring[0][:20], requires_grad=True)
    # No graph break is allowed; what a backend makes of the graph is the backend's.
    compiled = torch.compile(module, backend="eager", fullgraph=True)(x)
    (gradient,) = torch.autograd.grad(compiled.sum(), x)
    assert agree(compiled.detach(), model.predict(ring[0][:20]))
    assert agree(gradient, model.gradient(ring[0][:20]))


def test_jitted_is_not_jitted(in_jax, fixed, ring):
    # Few operations: outside of jit, JAX compiles each of them.
    model = fixed(local_model="poly", degree=1, background="polynomial").fit(*ring)
    f, x = export.to_jax(model), ring[0][0]
    assert agree(in_jax.compiled(f)(x), np.asarray(f(x)))
    assert agree(in_jax.compiled(lambda g, x: g(x))(f, x), np.asarray(f(x)))


def test_every_mode_of_torch_has_the_same_second_derivatives(in_torch, fixed, ring):
    torch = in_torch.torch
    model = fixed().fit(*ring)
    module, x, expected = export.to_torch(model), torch.tensor(ring[0][0]), model.hessian(ring[0][:1])[0]
    reverse, forward = torch.func.jacrev, torch.func.jacfwd
    for outer, inner in ((reverse, reverse), (reverse, forward), (forward, reverse), (forward, forward)):
        assert agree(outer(inner(module))(x), expected)
    assert agree(torch.autograd.functional.hessian(module, x), expected)


def test_inference_mode_changes_no_value(in_torch, fixed, ring):
    module, x = export.to_torch(fixed().fit(*ring)), in_torch.torch.tensor(ring[0])
    with in_torch.torch.inference_mode():
        values = module(x)
    assert agree(values, module(x).numpy(), 0.0)


def test_state_dict_is_the_model(in_torch, fixed, ring):
    torch = in_torch.torch
    model = fixed().fit(*ring)
    module, x = export.to_torch(model), torch.tensor(ring[0])
    expected, file = module(x), io.BytesIO()
    torch.save(module.state_dict(), file)
    other = export.to_torch(model)
    for buffer in other.buffers():
        buffer.zero_()
    file.seek(0)
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(x), expected)
    assert not list(module.parameters())


def test_dtype_is_that_of_the_module(in_torch, fixed, ring):
    torch = in_torch.torch
    model = fixed(ridge=1e-2, bandwidth=0.3).fit(*ring)
    single = export.to_torch(model, dtype=torch.float32)
    values = single(torch.tensor(ring[0]))
    assert values.dtype == torch.float32
    # A large ridge keeps coefficients near one: a thousand roundings of single precision.
    assert agree(values.double(), model.predict(ring[0]), 1e3 * np.finfo(np.float32).eps)
    assert single.double()(torch.tensor(ring[0])).dtype == torch.float64


def test_saved_and_loaded_models_export_the_same(in_torch, fixed, ring, tmp_path):
    model, x = fixed().fit(*ring), in_torch.torch.tensor(ring[0])
    model.save(tmp_path / "model")
    loaded = export.to_torch(stitchwork.load(tmp_path / "model"))
    assert in_torch.torch.equal(loaded(x), export.to_torch(model)(x))


def bowl(fixed):
    """A model of a bowl with its lowest point at (1, -½)."""
    X = np.random.default_rng(0).uniform(-3, 3, (200, 2))
    return fixed(background="polynomial").fit(X, np.cosh(X[:, 0] - 1.0) + 2.0 * (X[:, 1] + 0.5) ** 2)


def test_lbfgs_finds_a_minimum(in_torch, fixed):
    torch = in_torch.torch
    model = bowl(fixed)
    module, x = export.to_torch(model), torch.tensor([-2.0, 2.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], max_iter=60, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = module(x)
        value.backward()
        return value

    optimizer.step(closure)
    lowest = x.detach().numpy()
    assert np.abs(model.gradient(lowest[None])).max() < 1e-6
    assert np.abs(lowest - [1.0, -0.5]).max() < 0.05


def test_bfgs_finds_a_minimum(in_jax, fixed):
    model = bowl(fixed)
    f = in_jax.compiled(in_jax.jax.value_and_grad(export.to_jax(model)))
    found = minimize(f, [-2.0, 2.0], jac=True, method="BFGS", options={"gtol": 1e-9})
    assert np.abs(model.gradient(found.x[None])).max() < 1e-6
    assert np.abs(found.x - [1.0, -0.5]).max() < 0.05


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_no_point_lies_in_more_balls_than_the_bound(d):
    rng = np.random.default_rng(d)
    centers, radii = rng.uniform(size=(200, d)), 0.4 * rng.uniform(0.2, 1.0, 200) ** 2 * d
    bound = most_balls_at_a_point(centers, radii)
    points = np.concatenate([centers, rng.uniform(size=(5000, d)), 0.5 * (centers[:, None] + centers[None, :50]).reshape(-1, d)])
    seen = (np.linalg.norm(points[:, None] - centers, axis=2) < radii).sum(axis=1).max()
    assert seen <= bound <= _meeting_balls(centers, radii)[2] <= 200
    # Found to one part in eight of what some point shows, wherever boxes can be halved often enough.
    assert d > 3 or bound <= 1.3 * seen


def test_models_of_the_users_own_are_refused(ring):
    class Mean:
        smoothness = 2.0

        def fit(self, X, y, sample_weight):
            return self

    model = StitchedRegressor(local_model=Mean(), region_size=30, metric="euclidean").fit(*ring)
    pytest.importorskip("torch", reason="exports to PyTorch: pip install torch")
    with pytest.raises(ValueError, match=r"`local_model` of your own cannot be exported.*'krr-poly'"):
        export.to_torch(model)


def test_what_is_no_fitted_model_is_refused(in_torch):
    with pytest.raises(TypeError, match=r"`model` must be a fitted `StitchedRegressor`, got int.*stitchwork\.load"):
        export.to_torch(3)
    with pytest.raises(NotFittedError):
        export.to_torch(StitchedRegressor())


def test_single_precision_jax_is_refused_with_the_remedy(in_jax, fixed, ring):
    in_jax.jax.config.update("jax_enable_x64", False)
    with pytest.raises(RuntimeError, match=r'jax\.config\.update\("jax_enable_x64", True\)'):
        export.to_jax(fixed().fit(*ring))


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_absent_frameworks_are_named_with_the_remedy(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"stitchwork.export._{package}", raising=False)
    with pytest.raises(ModuleNotFoundError, match=f"`to_{package}` needs {package}: pip install {package}"):
        getattr(export, f"to_{package}")(StitchedRegressor())


def test_importing_the_package_imports_no_framework():
    code = "import sys, stitchwork.export; print([m for m in ('torch', 'jax') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
