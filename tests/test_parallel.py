"""Threads: every item once, in order; no more items after a failure or an interruption; one bar for a fit."""

import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from stitchwork import StitchedRegressor
from stitchwork._parallel import Progress, Threads


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(n_jobs):
    assert Threads(n_jobs).map(lambda k: k * k, range(50)) == [k * k for k in range(50)]


def test_no_item_is_taken_after_a_failure():
    taken = []

    def work(item):
        taken.append(item)
        if item == 0:
            raise ValueError("wrong")
        time.sleep(0.01)

    with pytest.raises(ValueError, match="wrong"):
        Threads(2).map(work, range(1000))
    assert len(taken) < 100


def test_an_interruption_ends_two_threads_at_once():
    code = (
        "import time\nfrom stitchwork._parallel import Threads\n"
        "print('ready', flush=True)\nThreads(2).map(lambda k: time.sleep(0.05), range(10_000))"
    )
    listening = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **listening)
    running.stdout.readline()
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=30)  # all items would take 250 s
    assert running.returncode != 0
    assert "KeyboardInterrupt" in errors


def test_a_bar_never_goes_back_and_enters_its_stages():
    bar = Progress({"first": 1.0, "second": 3.0})
    seen = []
    bar.enter("first")
    for _ in bar.follow([1, 2]):
        seen.append(bar._bar.n)
    bar.enter("second")
    seen.append(bar._bar.n)
    for _ in range(3):
        seen += [bar._bar.n for _ in bar.follow([1, 2, 3])]
    bar.enter("elsewhere")
    bar.close()
    assert seen == sorted(seen)
    assert seen[2] == pytest.approx(0.25)
    assert seen[-1] < 1.0


def test_a_fit_has_one_bar(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    X = np.random.default_rng(0).uniform(size=(300, 2))
    StitchedRegressor(verbose=True).fit(X, X[:, 0])
    shown = sys.stderr.getvalue()
    assert "fit" in shown
    assert shown.count("  0%|") == 1  # that is how a bar begins
    assert "left" in shown


def test_threads_that_are_none_are_refused_when_a_model_is_asked():
    model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    for wrong in ("two", 0, 1.5):
        model.n_jobs = wrong
        with pytest.raises(ValueError, match="`n_jobs` must be None, a number of threads, or -1"):
            model.predict([[1.5]])


def test_bars_show_in_terminals_that_tell_no_size():
    """A terminal of no columns and rows, as under `script` or in a container."""
    pty = pytest.importorskip("pty", reason="terminals are those of POSIX")
    code = (
        "from stitchwork._parallel import Threads; import time; Threads(1, True).map(lambda k: time.sleep(0.05), [1] * 8, 'work')"
    )
    ours, theirs = pty.openpty()  # of size zero
    names = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs, stdout=theirs, stdin=theirs, env=names) as running:
        assert running.wait(timeout=120) == 0
    os.close(theirs)
    assert b"work:" in os.read(ours, 10_000)
    os.close(ours)
