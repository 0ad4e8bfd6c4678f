"""Points that are left out together: closed forms against refits, choices, honesty, and the ways in."""

import numpy as np
import pytest
from conftest import tracks
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from stitchwork import StitchedRegressor, load
from stitchwork.cli import app
from stitchwork.cli.validate import find_folds
from stitchwork.fitting.points import merge_coincident
from stitchwork.local.fit import fit_blocks, stack_residuals
from stitchwork.local.groups import find_together, lie_between
from stitchwork.local.points import Points
from stitchwork.local.radial import kernel_named
from stitchwork.local.settings import Settings
from stitchwork.local.variance import Stack


def settings_of(kernel, degree, ridge, d):
    zero = np.zeros(1, dtype=np.intp)
    return Settings((kernel_named(kernel, d),), zero, np.ones(1), np.full(1, ridge), zero + degree, np.full(1, 1e-10), zero)


@pytest.mark.parametrize(("kernel", "degree"), [("matern52", 1), ("gaussian", 0), ("cubic", 1), ("gaussian", -1)])
@pytest.mark.parametrize("weighted", [False, True])
def test_residuals_of_groups_are_those_of_a_fit_without_them(kernel, degree, weighted):
    rng = np.random.default_rng(1)
    X, y = rng.uniform(size=(40, 2)), rng.normal(size=(40, 2))
    v = rng.uniform(0.5, 2.0, 40) if weighted else np.ones(40)
    group = rng.integers(0, 6, 40)
    points, members = Points(np.asfortranarray(X), y, v, np.arange(40), group), np.arange(40)[None]
    settings = settings_of(kernel, degree, 1e-3, 2)
    together = find_together(points, members)
    assert together is not None
    assert together.judged.mean() > 0.5
    whole, knowledge = fit_blocks(points, members, settings), Stack(points, members, settings).know()
    e = stack_residuals(points, members, settings)[0]
    for g in range(6):
        inside = group == g
        # Refit by hand with the region's own coordinates, scale and kernel: only the rows of the group are gone.
        Z = (X - whole.origin[0]) / whole.scale[0]
        s = ((Z[:, None] - Z[None]) ** 2).sum(axis=2) / whole.sigma[0] ** 2
        (K,) = settings.kernels[0](s)
        factor = Stack(points, members, settings).factor[0]
        K = factor * K
        P = np.concatenate([np.zeros((40, 0)), *[np.ones((40, 1)), Z][: degree + 1]], axis=1)
        left = ~inside
        ridge = np.diag(1e-3 / v[left])
        r = P.shape[1]
        M = np.block([[K[np.ix_(left, left)] + ridge, P[left]], [P[left].T, np.zeros((r, r))]])
        solution = np.linalg.solve(M, np.concatenate([y[left], np.zeros((r, 2))]))
        predicted = np.concatenate([K[np.ix_(inside, left)], P[inside]], axis=1) @ solution
        np.testing.assert_allclose(e[inside], y[inside] - predicted, rtol=1e-6, atol=1e-7)
        # The variance of a point without its group: k(0) + η / v - gᵀ M⁻¹ g.
        G = np.concatenate([K[np.ix_(inside, left)], P[inside]], axis=1)
        prior = np.diagonal(K)[inside] + 1e-3 / v[inside]
        expected = prior - np.einsum("ig,gi->i", G, np.linalg.solve(M, G.T))
        np.testing.assert_allclose(knowledge.variance[0][inside] / v[inside], expected, rtol=1e-6)
        unweighted = knowledge.residual[0][inside] / np.sqrt(v[inside])[:, None]
        np.testing.assert_allclose(unweighted, y[inside] - predicted, rtol=1e-6, atol=1e-7)


def test_groups_of_one_point_are_plain_leave_one_out():
    X, y, _ = tracks(6, 15, noise=0.1)  # one region
    fixed = StitchedRegressor(kernel="matern52", degree=1, bandwidth=1.0, ridge=1e-2, metric="euclidean")
    plain, grouped = fixed.fit(X, y).leave_one_out(), fixed.fit(X, y, groups=np.arange(len(X))).leave_one_out()
    at = {tuple(x): e for x, e in zip(plain.X, plain.residual, strict=True)}
    assert len(grouped.X) > 0.7 * len(X)  # those at the border do not lie between others
    np.testing.assert_allclose(grouped.residual, [at[tuple(x)] for x in grouped.X], rtol=1e-6, atol=1e-8)


def test_only_what_lies_between_others_is_judged():
    x = np.arange(9.0)
    Z = np.stack([x, np.zeros(9)])[:, None, :]
    group = np.repeat([0, 1, 2], 3)
    between = lie_between(Z, (group[:, None] == group[None, :])[None])[0]
    np.testing.assert_array_equal(between, group == 1)


def test_a_group_that_is_most_of_a_region_is_left_to_the_next_level():
    X, y, group = tracks(10, 200)
    held = group == 5
    model = StitchedRegressor(region_size=100).fit(X[~held], y[~held], groups=group[~held])
    together = find_together(model.model_.points, model.model_.levels[0].models.members)
    assert together is not None
    lonely = ~together.judged.any(axis=1)  # regions of 100 points on tracks of 200, far apart
    assert lonely.any()
    said = model.predict(X[held])
    assert np.abs(said - y[held]).max() < 0.5
    assert len(model.leave_one_out().X) < (~held).sum()
    error = np.sqrt(np.mean((said - y[held]) ** 2))
    assert 0.3 * error < model.loo_error_ < 5 * error  # the outer tracks, which are harder, count, too
    assert model.fit(X[~held], y[~held]).loo_error_ < 1e-3 * error


def test_the_error_between_groups_is_told_and_intervals_hold_it():
    X, y, group = tracks(40, 60, noise=0.02)
    held = group % 5 == 2
    honest = StitchedRegressor().fit(X[~held], y[~held], groups=group[~held])
    error = np.sqrt(np.mean((honest.predict(X[held]) - y[held]) ** 2))
    assert 0.7 * error < honest.loo_error_ < 1.5 * error
    ends = honest.predict_interval(X[held], 0.9)
    assert 0.84 < np.mean((ends[:, 0] <= y[held]) & (y[held] <= ends[:, 1])) < 0.96


def test_names_of_groups_do_not_matter_and_the_file_keeps_them(tmp_path):
    X, y, group = tracks(12, 40, noise=0.1)
    fixed = StitchedRegressor(kernel=("matern52", "gaussian"), degree=1, metric="euclidean")
    a = fixed.fit(X, y, groups=group).loo_error_
    words = np.array([f"track {11 - g}" for g in group], dtype=object)
    model = StitchedRegressor(**fixed.get_params()).fit(X, y, groups=words)
    model.save(tmp_path / "m.stitch")
    assert load(tmp_path / "m.stitch").loo_error_ == model.loo_error_ == a
    np.testing.assert_array_equal(model.predict(X), fixed.predict(X))
    assert "whole groups left out" in model.summary()


def test_a_merged_point_takes_the_group_of_its_first_row():
    X = np.array([[0.0], [1.0], [0.0], [2.0]])
    rows = Points(X, np.zeros((4, 1)), np.array([0.0, 1.0, 1.0, 1.0]), np.arange(4), np.array([5, 6, 7, 8]))
    points = merge_coincident(rows)
    np.testing.assert_array_equal(points.group, [6, 7, 8])
    points = merge_coincident(rows._replace(v=np.ones(4)))
    np.testing.assert_array_equal(points.group, [5, 6, 8])


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (np.zeros(29), "shape"),
        (np.zeros(30), "two groups"),
        (np.full(30, np.nan), "missing"),
        (np.array([1, "a", None] * 10, dtype=object), "all numbers or all words"),
    ],
)
def test_bad_groups_are_refused_and_nothing_is_lost(groups, says):
    X = np.linspace(0, 1, 30)[:, None]
    model = StitchedRegressor(kernel="cubic", metric="euclidean").fit(X, X[:, 0])
    before = model.model_
    with pytest.raises(ValueError, match=says):
        model.fit(X, X[:, 0], groups=groups)
    assert model.model_ is before


@pytest.mark.parametrize("routing", [False, True])
def test_cross_validate_hands_groups_to_the_splitter_and_to_the_fit(routing):
    X, y, group = tracks(10, 30, noise=0.1)
    seen = []

    class Spy(StitchedRegressor):
        def fit(self, X, y, sample_weight=None, groups=None):
            seen.append(groups)
            return super().fit(X, y, sample_weight, groups)

    spy = Spy(kernel="matern52", degree=1, metric="euclidean")
    model = make_pipeline(StandardScaler(), spy) if routing else spy
    with config_context(enable_metadata_routing=routing):
        given = {"params": {"groups": group}} if routing else {"params": {"groups": group}, "groups": group}
        result = cross_validate(model, X, y, cv=GroupKFold(5), error_score="raise", **given)
    assert len(result["test_score"]) == len(seen) == 5
    assert all(g is not None and len(np.unique(g)) == 8 for g in seen)


def test_held_out_search_holds_out_whole_groups():
    X, y, group = tracks(12, 40)
    bold = StitchedRegressor.paper(kernel=("gaussian",), bandwidth=(0.05, 1.0), ridge=(1e-8, 1e-4))
    assert bold.fit(X, y, groups=group).scores_.min() > bold.fit(X, y).scores_.min()


def test_tables_in_groups():
    rng = np.random.default_rng(3)
    subject = np.repeat(np.arange(20), 15)
    X = np.column_stack([rng.normal(size=300), rng.normal(size=(20, 4))[subject]])  # four features that tell subjects apart
    y = X[:, 0] + rng.normal(size=20)[subject] + 0.05 * rng.normal(size=300)
    plain, grouped = StitchedRegressor().fit(X, y), StitchedRegressor().fit(X, y, groups=subject)
    assert plain.loo_error_ < 0.2  # of rows of known subjects
    assert grouped.loo_error_ > 2.5 * plain.loo_error_  # of a new subject


def test_command_line(tmp_path):
    X, y, group = tracks(10, 30, noise=0.05)
    rows = "\n".join(f"{a!r},{b!r},{z!r},line {g}" for (a, b), z, g in zip(X.tolist(), y.tolist(), group, strict=True))
    (tmp_path / "data.csv").write_text(f"a,b,z,line\n{rows}\n")
    to = ["-t", "z", "-o", str(tmp_path / "m.stitch"), "--set", "kernel=matern52", "--set", "degree=1"]
    base = ["fit", str(tmp_path / "data.csv"), *to]
    runner = CliRunner()
    found = runner.invoke(app, [*base, "--groups", "line", "--validate", "groups"])
    assert found.exit_code == 0, found.output
    assert "in fifths of groups" in found.output
    assert "whole groups left out" in found.output
    assert load(tmp_path / "m.stitch").n_features_in_ == 2
    blocks = runner.invoke(app, [*base, "-f", "a,b", "--validate", "blocks"])
    assert "in fifths of blocks of space" in blocks.output
    for wrong, says in ((["--validate", "groups", "-f", "a,b"], "--groups"), (["--validate", "lines", "-f", "a,b"], "one of")):
        failed = runner.invoke(app, [*base, *wrong])
        assert failed.exit_code == 2
        assert says in failed.output
    np.savez(tmp_path / "data.npz", a=X[:, 0], b=X[:, 1], z=y, line=np.array([f"line {g}" for g in group]))
    same = runner.invoke(app, ["fit", str(tmp_path / "data.npz"), *to, "--groups", "line"])
    assert same.exit_code == 0, same.output


def test_folds_are_whole_and_cover_everything():
    X, _, group = tracks(10, 30)
    for how in ("random", "groups", "blocks"):
        fold = find_folds(X, group, how)
        assert set(fold) == set(range(5))
    of_group = find_folds(X, group, "groups")
    assert all(len(set(of_group[group == g])) == 1 for g in range(10))
