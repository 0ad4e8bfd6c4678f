"""A fit succeeds whole or changes nothing, and a fitted model changes by nothing but a fit."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import wave
from sklearn.base import clone

from stitchwork import StitchedRegressor


@pytest.fixture
def before(plane, fixed):
    model = fixed().fit(*plane)
    return model, model.model_, model.predict(plane[0][:50])


def unchanged(before, X):
    """The model is the one of before and answers as it did."""
    model, inner, values = before
    assert model.model_ is inner
    np.testing.assert_array_equal(model.predict(X[:50]), values)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sample_weight": "negative"}, "`sample_weight` must be finite and not negative"),
        ({"kernel": "nope"}, "`kernel` must be one of"),
        ({"y": "nan"}, "contains NaN"),
        ({"X": "three features, NaN in y"}, "contains NaN"),
        ({"X": "names", "kernel": "nope"}, "`kernel` must be one of"),
    ],
    ids=str,
)
def test_a_refused_fit_changes_nothing(plane, before, changes, message):
    import pandas as pd

    model, (X, y) = before[0], plane
    kernel = model.kernel
    Z, z, v = X, y, None
    if changes.get("sample_weight"):
        v = -np.ones(len(X))
    if "kernel" in changes:
        model.set_params(kernel=changes["kernel"])
    if changes.get("y") or "NaN" in changes.get("X", ""):
        z = np.where(np.arange(len(y)) == 3, np.nan, y)
    if "three" in changes.get("X", ""):
        Z = np.hstack([X, X[:, :1]])
    if changes.get("X") == "names":
        Z = pd.DataFrame(X, columns=["a", "b"])
    with pytest.raises(ValueError, match=message):
        model.fit(Z, z, v)
    model.set_params(kernel=kernel)
    unchanged(before, X)


class Failing:
    """A local model that raises in the third region."""

    smoothness = np.inf

    def __init__(self, error):
        self.error, self.calls = error, 0

    def fit(self, X, y, sample_weight):
        """Fail at the third call."""
        self.calls += 1
        if self.calls == 3:
            raise self.error
        return self

    def predict(self, X):
        """Zeros."""
        return np.zeros(len(X))

    def gradient(self, X):
        """Zeros."""
        return np.zeros(X.shape)

    def hessian(self, X):
        """Zeros."""
        return np.zeros((len(X), X.shape[1], X.shape[1]))


@pytest.mark.parametrize("error", [RuntimeError("of the user's own"), KeyboardInterrupt()], ids=repr)
def test_a_fit_that_raises_changes_nothing(plane, before, error):
    model, local_model = before[0], before[0].local_model
    model.set_params(local_model=Failing(error))
    with pytest.raises(type(error)):
        model.fit(*plane)
    model.set_params(local_model=local_model)
    unchanged(before, plane[0])


def test_an_interrupted_fit_changes_nothing():
    """Ctrl-C at any moment, also where this test run itself ignores SIGINT, as a shell's background jobs do."""
    code = """
import sys
import numpy as np
from stitchwork import StitchedRegressor
X = np.random.default_rng(0).uniform(-3, 3, (20000, 2))
y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1])
model = StitchedRegressor(selection=None).fit(X[:500], y[:500])
inner, values = model.model_, model.predict(X[:100])
print("ready", flush=True)
try:
    model.set_params(selection="loo").fit(X, -y)
    sys.exit("fitted whole before it was interrupted")
except KeyboardInterrupt:
    pass
assert model.model_ is inner
assert np.array_equal(model.predict(X[:100]), values)
print("unchanged", flush=True)
"""
    for delay in (0.05, 0.4, 1.2):
        running = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert running.stdout.readline() == "ready\n"
        time.sleep(delay)
        os.kill(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=120)
        assert running.returncode == 0, err
        assert out == "unchanged\n"


def test_predictions_during_another_threads_fit_are_one_models_or_the_others(fixed):
    X = np.random.default_rng(0).uniform(-3, 3, (3000, 2))
    Q = X[:200] + 0.01
    model, ends = fixed().fit(X, wave(X)), []
    other = fixed().fit(X, -wave(X))
    expected = model.predict(Q), other.predict(Q)
    done = threading.Event()

    def ask():
        while not done.is_set():
            ends.append(model.predict(Q))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for k in range(6):
            model.fit(X, wave(X) * (-1) ** (k + 1))
    finally:
        done.set()
        asking.join()
    assert len(ends) > 5
    seen = [next((k for k in (0, 1) if np.array_equal(end, expected[k])), None) for end in ends]
    assert set(seen) == {0, 1}


def test_set_params_changes_nothing_until_the_next_fit(plane, fixed):
    X, y = plane
    model = fixed().fit(X, y)
    Q = np.vstack([X[:50], 10 * X[:50]])
    answers = [model.predict(Q), model.coverage(Q), model.hessian(Q)]
    summary, smoothness = str(model.summary()), model.smoothness_
    model.set_params(weight="wendland-c0", background_weight=0.5, kernel="linear", metric="standardized", selection="loo")
    for a, b in zip(answers, [model.predict(Q), model.coverage(Q), model.hessian(Q)], strict=True):
        np.testing.assert_array_equal(a, b)
    assert (str(model.summary()), model.smoothness_) == (summary, smoothness)
    model.fit(X, y)
    assert model.smoothness_ == 0


def test_a_second_fit_leaves_nothing_of_the_first(plane, fixed):
    import pandas as pd

    X, y = plane
    model = fixed().fit(pd.DataFrame(X, columns=["a", "b"]), pd.Series(y, name="height"))
    assert (list(model.feature_names_in_), model.target_names_) == (["a", "b"], ["height"])
    assert len(model.kernels_) == model.n_regions_
    local_model = Failing(None)
    local_model.calls = 3
    model.set_params(local_model=local_model).fit(X[:, :1], y)
    assert model.n_features_in_ == 1
    assert model.target_names_ is None
    for name in ("feature_names_in_", "kernels_", "degrees_", "bandwidths_", "ridges_"):
        assert not hasattr(model, name)
    assert not hasattr(clone(model), "model_")


def test_the_model_is_frozen(plane, fixed):
    model = fixed().fit(*plane).model_
    with pytest.raises(AttributeError):
        model.w0 = 1.0
    with pytest.raises(AttributeError):
        model.levels[0].reach = 2.0


def test_an_unfitted_estimator_says_so():
    model = StitchedRegressor()
    for ask in (model.predict, model.gradient, model.coverage, model.contributions, model):
        with pytest.raises(ValueError, match="not fitted yet"):
            ask([[0.0, 1.0]])
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(AttributeError, match="no attribute 'centres_'"):
        model.centres_  # noqa: B018


def test_a_function_of_one_combination_of_features_is_found():
    """Length scales of the features alone leave an error of 0.38."""
    rng = np.random.default_rng(0)
    X, Q = (rng.uniform(-1, 1, (n, 5)) for n in (250, 1000))
    model = StitchedRegressor().fit(X, np.cos(2 * X.sum(axis=1)))
    error = np.sqrt(np.mean((model.predict(Q) - np.cos(2 * Q.sum(axis=1))) ** 2))
    assert error < 0.02
    h = 1e-5
    slopes = [(model.predict(Q[:20] + h * unit) - model.predict(Q[:20] - h * unit)) / (2 * h) for unit in np.eye(5)]
    np.testing.assert_allclose(model.gradient(Q[:20]), np.stack(slopes, axis=1), atol=1e-4)


def test_axes_are_not_looked_for_without_evidence():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 4))
    metrics = StitchedRegressor().fit(X, X[:, 0] + 0.5 * rng.normal(size=60)).model_.settings.local_metrics
    assert np.count_nonzero(metrics) <= 4 * len(metrics)
