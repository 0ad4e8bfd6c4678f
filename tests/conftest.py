"""Data and models that many tests share."""

import os
import shutil

# Every worker is a process: threads of BLAS and OpenMP in each would wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

from stitchwork import StitchedRegressor  # noqa: E402


def wave(X):
    """A smooth function of any number of variables."""
    return np.sin(2 * X[:, 0]) * np.cos(X[:, -1]) + 0.3 * X.sum(axis=1)


@pytest.fixture(scope="session")
def plane():
    """600 scattered points in the plane, y = wave."""
    X = np.random.default_rng(0).uniform(-3, 3, (600, 2))
    return X, wave(X)


@pytest.fixture(scope="session")
def fixed():
    """Constructor with fixed hyperparameters and small regions, so that there are many borders."""

    def make(**changes):
        settings = {"region_size": 30, "kernel": "gaussian", "degree": 2, "bandwidth": 1.0, "ridge": 1e-6, "selection": None}
        return StitchedRegressor(**{**settings, "metric": "euclidean", **changes})

    return make


def tracks(n_tracks=40, length=60, seed=0, noise=0.0):
    """Points close together along tracks that are far apart: X, y, and the track of each."""
    rng = np.random.default_rng(seed)
    along = np.sort(rng.uniform(0, 4, (n_tracks, length)), axis=1)
    across = np.linspace(0, 4, n_tracks)[:, None] + 0.02 * np.sin(3 * along)
    X = np.stack([along.ravel(), across.ravel()], axis=1)
    y = np.sin(2 * X[:, 0]) * np.cos(1.5 * X[:, 1]) + noise * rng.normal(size=len(X))
    return X, y, np.repeat(np.arange(n_tracks), length)


CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
]


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="the page is opened with playwright: pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=chromium, args=CHROMIUM)
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser):
    """Opens an address and, at the end, asserts that nothing complained."""
    complaints, pages = [], []
    # What a browser says of a server that has gone.
    gone = "ERR_CONNECTION_REFUSED"

    def opened(address, width=1440):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        page.wait_for_selector("body[data-ready]", timeout=30_000)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert [text for text in complaints if gone not in text] == []


# What a plot of the page shows, as plain lists: the image as rows from below, and the marks.
SHOWN = """(id) => {
  const plain = (value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
  const { image, veil, marks, scale, title, note, x, y } = document.getElementById(id).plot.spec;
  const rows = (one) => one && { x: along(one.grid, 0), y: along(one.grid, 1),
    z: along(one.grid, 1).map((_, up) => along(one.grid, 0).map((__, across) => one.values[across * one.grid.size[1] + up])) };
  const told = (marks ?? []).map((mark) => Object.fromEntries(Object.entries(mark).map(([name, value]) => [name, plain(value)])));
  const colors = scale && { kind: scale.kind, low: scale.low, high: scale.high, ticks: scale.ticks, constant: scale.constant };
  const axis = (one) => ({ title: one.title, range: one.range });
  return { image: rows(image), veil: rows(veil), marks: told, scale: colors, title, note, x: axis(x), y: axis(y) };
}"""


@pytest.fixture
def shown():
    """What a plot of a page shows, by the name of its place."""
    return lambda page, place="map": page.evaluate(SHOWN, place)


# The compiled library over the model of a payload, in a page: what it says at points, and which regions answer.
MAKE = """async (facts) => {
  const library = await unzipped(document.getElementById("library").textContent);
  window.evaluator = new Evaluator(library, await unzipped(facts.model.file));
}"""
ASK = """([X, k]) => X.map((x) => {
  const { value, gradient, laplacian, coverage, contributions } = evaluator.point(x, k);
  return { value, gradient, laplacian, coverage, contributions };
})"""


@pytest.fixture
def ask_page():
    """Has a page evaluate another model: what it says of an output at points, by part."""

    def asked(page, facts, X, output=0):
        page.evaluate(MAKE, facts)
        found = page.evaluate(ASK, [np.asarray(X).tolist(), output])
        return {part: [one[part] for one in found] for part in found[0]}

    return asked
