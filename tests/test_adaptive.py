"""`StitchedLearner` in the runners of the package `adaptive`."""

import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

adaptive = pytest.importorskip("adaptive", reason="the learner is one of `adaptive`: pip install 'stitchwork[adaptive]'")

from stitchwork import StitchedRegressor  # noqa: E402
from stitchwork.adaptive import StitchedLearner  # noqa: E402

SQUARE = [(-1.0, 1.0), (-1.0, 1.0)]
QUICK = StitchedRegressor(kernel="matern52", bandwidth=2.0, ridge=1e-10, degree=1, metric="euclidean", random_state=0)


def step(x):
    """A steep step across a slope."""
    return np.tanh(8 * (x[0] + 0.3 * x[1])) + 0.2 * x[1]


def relative_error(learner):
    """RMSE on the box in deviations of the function."""
    Q = np.random.default_rng(9).uniform(-1, 1, (2000, 2))
    truth = step(Q.T)
    return np.sqrt(np.mean((learner.model.predict(Q) - truth) ** 2)) / truth.std()


def test_a_simple_runner_reaches_its_goal():
    learner = StitchedLearner(step, SQUARE)
    assert learner.loss() == np.inf
    adaptive.runner.simple(learner, loss_goal=0.02)
    assert learner.loss() <= 0.02
    assert learner.npoints < 300
    # What is left out is farther from all others than what lies between them, so the loss is rather too large than too small.
    assert relative_error(learner) < 0.02


def test_a_pool_of_threads_reaches_its_goal():
    learner = StitchedLearner(step, SQUARE, QUICK)
    with ThreadPoolExecutor(3) as pool:
        adaptive.BlockingRunner(learner, loss_goal=0.05, executor=pool)
    assert learner.loss() <= 0.05
    assert not learner.pending_points
    assert learner.model.model_.n_points == learner.npoints


def test_the_loss_falls():
    learner, losses = StitchedLearner(step, SQUARE, QUICK), []
    for n in (20, 60, 120, 240):
        adaptive.runner.simple(learner, npoints_goal=n)
        _ = learner.model
        losses.append(learner.loss())
    assert losses[-1] < 0.2 * losses[0]
    assert losses[-1] == min(losses)


def test_points_crowd_where_the_function_is_steep():
    learner = StitchedLearner(step, SQUARE, QUICK)
    adaptive.runner.simple(learner, npoints_goal=150)
    X = np.array(list(learner.data))
    # |x0 + 0.3 x1| < 0.3 is three tenths of the square.
    assert np.mean(np.abs(X[:, 0] + 0.3 * X[:, 1]) < 0.3) > 0.45
    assert (np.abs(X) <= 1.0).all()


def test_pending_points_are_not_asked_again():
    learner = StitchedLearner(step, SQUARE, QUICK)
    asked = [learner.ask(1)[0][0] for _ in range(15)]
    for x in asked[:12]:
        learner.tell(x, step(x))
    assert learner.pending_points == set(asked[12:])
    for n in (1, 25, 7):
        asked += learner.ask(n)[0]
    assert len(set(asked)) == len(asked) == 48
    assert learner.pending_points == set(asked[12:])
    spacing = np.linalg.norm(np.array(asked)[:, None] - np.array(asked), axis=2) + np.eye(48)
    assert spacing.min() > 0.01
    learner.remove_unfinished()
    assert not learner.pending_points


def test_asking_without_telling_changes_nothing():
    learner = StitchedLearner(step, SQUARE, QUICK)
    adaptive.runner.simple(learner, npoints_goal=40)
    first, improvements = learner.ask(30, tell_pending=False)
    assert len(first) == len(improvements) == 30
    assert not learner.pending_points
    assert learner.ask(30)[0] == first
    assert learner.pending_points == set(first)


def test_the_model_is_fitted_once_a_batch(monkeypatch):
    calls = []
    fit = StitchedRegressor.partial_fit
    monkeypatch.setattr(StitchedRegressor, "partial_fit", lambda self, X, y: (calls.append(len(X)), fit(self, X, y))[1])
    learner = StitchedLearner(step, SQUARE, QUICK, batch=30, start=15)
    adaptive.runner.simple(learner, npoints_goal=105)
    assert calls == [15, 30, 30]


def test_a_choice_that_is_stale_is_made_anew():
    """A smooth function turns noisy: without a warning the learner chooses again."""
    learner = StitchedLearner(step, SQUARE, StitchedRegressor(kernel="gaussian", region_size=50, random_state=0))
    X, noise = np.random.default_rng(0).uniform(-1, 1, (600, 2)), np.random.default_rng(1).normal(size=600)
    for x in X[:400]:
        learner.tell(x, np.sin(3 * x[0]) * x[1])
    ridge = np.median(learner.model.ridges_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(400, 600):
            learner.tell(X[i], np.sin(3 * X[i, 0]) * X[i, 1] + 0.3 * noise[i])
            learner.loss()
    assert learner.model.model_.growth.chosen > 400
    assert np.median(learner.model.ridges_) > 1e3 * ridge


def test_what_is_saved_pickled_or_tabled_goes_on(tmp_path):
    pytest.importorskip("pandas", reason="tables need pandas")
    learner = StitchedLearner(step, SQUARE, QUICK)
    adaptive.runner.simple(learner, npoints_goal=30)
    learner.save(tmp_path / "data.pickle")
    copies = [learner.new(), learner.new(), learner.new(), pickle.loads(pickle.dumps(learner))]
    copies[0].load(tmp_path / "data.pickle")
    copies[1].load_dataframe(learner.to_dataframe())
    copies[2].copy_from(learner)
    for copy in copies:
        assert copy.data == learner.data
        np.testing.assert_array_equal(copy.model.predict([[0.1, 0.2]]), learner.model.predict([[0.1, 0.2]]))


def test_functions_of_one_feature_and_of_several_outputs_are_learned():
    learner = StitchedLearner(lambda x: np.array([np.sin(6 * x[0]), x[0] ** 2]), [(0.0, 1.0)])
    adaptive.runner.simple(learner, loss_goal=1e-3)
    error = learner.model.predict([[0.33]]) - [[np.sin(6 * 0.33), 0.33**2]]
    assert np.abs(error).max() < 0.01
    assert learner.to_dataframe().shape == (learner.npoints, 2)


def test_learners_are_balanced_by_adaptive():
    learners = [StitchedLearner(step, SQUARE, QUICK), StitchedLearner(lambda x: x[0], SQUARE, QUICK)]
    adaptive.runner.simple(adaptive.BalancingLearner(learners), goal=lambda both: both.npoints >= 120)
    assert learners[0].npoints > learners[1].npoints >= 10  # the plane is known at once


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda learner: learner.tell((0.0, 0.0), np.nan), "`y` must be finite"),
        (lambda learner: learner.tell((0.0, 0.0), [1.0, 2.0]), "`y` must be finite and of shape"),
        (lambda learner: learner.tell((0.0,), 1.0), "2 finite numbers"),
        (lambda learner: learner.tell_pending((0.0, np.inf)), "2 finite numbers"),
        (lambda learner: learner.to_dataframe(point_names=["a"]), "2 names"),
        (lambda learner: StitchedLearner(step, [(1.0, 1.0)]), "low below high"),
        (lambda learner: StitchedLearner(step, SQUARE, batch=0), "`batch`"),
        (lambda learner: StitchedLearner(step, SQUARE, start=1), "`start`"),
        (lambda learner: StitchedLearner(step, SQUARE, StitchedRegressor(local_model=object())), "leave-one-out"),
        (lambda learner: StitchedLearner(sum, [(0, 1)] * 3).plot(), "one or two features"),
    ],
)
def test_what_makes_no_sense_is_refused(action, message):
    learner = StitchedLearner(step, SQUARE)
    learner.tell((0.5, 0.5), 1.0)
    with pytest.raises(ValueError, match=message):
        action(learner)
    assert learner.data == {(0.5, 0.5): 1.0}
    assert not learner.pending_points


def test_a_value_that_is_known_stays():
    learner = StitchedLearner(step, SQUARE)
    learner.tell((0.5, 0.5), 1.0)
    learner.tell((0.5, 0.5), 2.0)
    learner.tell((0.1, 0.5), None)
    assert learner.data == {(0.5, 0.5): 1.0}
    assert learner.pending_points == {(0.1, 0.5)}


def test_pictures_show_the_points_or_name_what_is_missing():
    learner = StitchedLearner(step, SQUARE, QUICK)
    adaptive.runner.simple(learner, npoints_goal=20)
    try:
        import holoviews
    except ModuleNotFoundError:
        with pytest.raises(RuntimeError, match="holoviews"):
            learner.plot()
        return
    image, points = learner.plot(50).values()
    assert len(points) == 20
    assert isinstance(image, holoviews.Image)
    assert image[0.3, -0.2] == pytest.approx(learner.model.predict([[0.3, -0.2]])[0], abs=0.2)  # of a pixel of width 0.04


def test_without_adaptive_the_remedy_is_named():
    code = "import sys; sys.modules['adaptive'] = None; import stitchwork.adaptive"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode != 0
    assert "`StitchedLearner` needs adaptive. Run: pip install 'stitchwork[adaptive]'" in found.stderr
