"""The reproduction: parts are run once and kept, what cannot be run says why, the report shows everything in a real browser."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_demo import command

from stitchwork import StitchedRegressor
from stitchwork.experiments import EXPERIMENTS, experiment
from stitchwork.experiments._methods import ABOUT, DEFAULT, METHODS, Task, build, chosen, grid_search, measure, trials, with_chosen
from stitchwork.experiments._report import write_report
from stitchwork.experiments._run import reproduce, run_parts, stored_results
from stitchwork.experiments._section import Comparison, comparison, method_table, number, printed
from stitchwork.experiments._store import Part, is_stored, read_part, store_part
from stitchwork.experiments.theory import predicted_rate, slope
from stitchwork.views.errors import errors

pytest.importorskip("matplotlib", reason="the report draws with matplotlib: pip install 'stitchwork[plot]'")

CHEAP = (DEFAULT, "PU-KRR-POLY", "Local KRR", "Nadaraya-Watson")


def test_errors_are_the_papers():
    truth, prediction = np.array([1.0, -2.0, 0.0, 4.0]), np.array([1.5, -2.0, 0.0, 3.0])
    assert errors(prediction, truth) == pytest.approx((np.sqrt(1.25 / 4), 0.5, 0.75 / 4))
    assert errors(np.array([0.1]), np.array([0.0])).max_relative == np.inf


def test_every_row_of_the_papers_tables_has_its_method():
    for table in ("2d", "ozone", "combustion", "skillcraft", "airfoil", "kin40k"):
        assert set(printed(table)) <= set(METHODS)
    assert set(ABOUT) == set(METHODS)
    assert printed("2d")["PU-KRR-POLY"] == (0.041, 50.392, 0.021)
    assert printed("combustion")["SIREN"].rmse == 6.470e-2


def test_a_search_is_judged_on_held_out_rows_and_refitted_on_all():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 1))
    y = np.sin(5 * X[:, 0])
    search = grid_search(KernelRidge(kernel="rbf"), {"gamma": [1e-6, 10.0, 1e6]}, Task(300, 1)).fit(X, y)
    assert search.best_params_ == {"gamma": 10.0}
    assert len(search.best_estimator_.dual_coef_) == 300
    assert chosen(search) == {"gamma": 10.0}


def test_what_a_search_chose_serves_further_trials():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 1))
    search = grid_search(KernelRidge(kernel="rbf"), {"gamma": [10.0, 1e6]}, Task(200, 1))
    model = make_pipeline(StandardScaler(), search).fit(X, np.sin(5 * X[:, 0]))
    again = with_chosen(model)
    assert again[-1].get_params()["gamma"] == 10.0
    assert not hasattr(again[-1], "dual_coef_")
    assert with_chosen(StitchedRegressor(region_size=40)).region_size == 40
    assert (trials("KNN SVM", 5), trials(DEFAULT, 5), trials("KNN SVM", 1), trials("SIREN", 3)) == (2, 5, 1, 1)


def test_only_the_default_gets_raw_features():
    assert isinstance(build(DEFAULT, Task(100, 3), standardize=True), StitchedRegressor)
    assert isinstance(build("PU-KRR", Task(100, 3), standardize=True)[0], StandardScaler)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_fits_and_predicts(name):
    for package, wanted in {"xgboost": "XGBoost", "jax": "SIREN"}.items():
        if name == wanted:
            pytest.importorskip(package, reason=f"{name} needs {package}: pip install 'stitchwork[paper]'")
    rng = np.random.default_rng(0)
    X, Q = rng.uniform(-1, 1, (400, 2)), rng.uniform(-0.9, 0.9, (60, 2))
    model = build(name, Task(400, 2, quick=True))
    numbers, prediction = measure(model, X, X[:, 0] + X[:, 1] ** 2, Q, Q[:, 0] + Q[:, 1] ** 2)
    assert prediction.shape == (60,)
    assert numbers["rmse"] < 0.4  # the deviation of the response is 0.65
    assert json.loads(json.dumps(numbers)) is not None


def test_a_finished_part_is_not_run_again_unless_asked(tmp_path):
    runs = []
    part = Part("one, n = 3", lambda: (runs.append(1) or {"value": np.float64(2.5), "list": np.arange(2)}, {"a": np.eye(2)}))
    for again in (False, False, True):
        assert run_parts([part], tmp_path, again, "test", print) == {}
    assert len(runs) == 2
    found = stored_results([part, Part("never", lambda: ({}, {}))], tmp_path)
    assert found.numbers == {"one, n = 3": {"value": 2.5, "list": [0, 1]}}
    np.testing.assert_array_equal(found.arrays("one, n = 3")["a"], np.eye(2))
    assert found.arrays("never") == {}


def test_an_interrupted_part_leaves_nothing_and_the_next_run_goes_on(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    parts = [Part("first", lambda: ({"x": 1}, {})), Part("second", interrupted)]
    with pytest.raises(KeyboardInterrupt):
        run_parts(parts, tmp_path, False, "test", print)
    assert [path.name for path in tmp_path.iterdir()] == ["first.json"]
    assert read_part(tmp_path, "first") == {"x": 1}
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        store_part(tmp_path, "third", {"x": object()}, {})
    assert not is_stored(tmp_path, "third")
    assert [path.name for path in tmp_path.iterdir()] == ["first.json"]


def test_an_absent_package_or_file_is_named_and_the_rest_is_run(tmp_path):
    def absent_package():
        import no_such_package  # noqa: F401

    def absent_file():
        raise FileNotFoundError("The data set 'x' is not on this machine.")

    told = []
    parts = [Part("a", absent_package), Part("b", absent_file), Part("c", lambda: ({}, {}))]
    missing = run_parts(parts, tmp_path, False, "test", told.append)
    assert missing["a"] == "no_such_package is not installed; run: pip install 'stitchwork[paper]'"
    assert missing["b"] == "The data set 'x' is not on this machine."
    assert len(told) == 2
    assert is_stored(tmp_path, "c")


def test_tables_put_the_paper_beside_the_measured():
    numbers = {"rmse": 0.02, "max_relative": 1.0, "mean_relative": 0.1, "fit_cpu_seconds": 1.0, "predict_cpu_seconds": 2.0}
    reason = {"reason": "does not fit"}
    table = method_table(
        {"PU-KRR-POLY": numbers, "XGBoost": {**numbers, "rmse": [1.0, 3.0]}, "Global KRR": reason}, "2d", "caption"
    )
    assert table.rows[0][:3] == ["PU-KRR-POLY", "0.041", "0.02"]
    assert table.rows[1][2] == "2 ± 1"
    assert table.rows[2][-1] == "does not fit"
    assert {len(row) for row in table.rows} == {len(table.headings)}
    line = comparison(
        {"PU-KRR-POLY": numbers, "XGBoost": {**numbers, "rmse": 0.5}, DEFAULT: {**numbers, "rmse": 0.01}}, "row", "2d"
    )
    assert line == Comparison("row", 0.041, 0.02, 0.01, ("XGBoost", 0.5))
    assert number(None) == ""


def test_exponents_are_those_of_power_laws_and_of_the_theorem():
    n = np.array([10.0, 100.0, 1000.0])
    assert slope(n, 3 * n**-1.7) == pytest.approx(-1.7)
    assert predicted_rate("KRR", 2) == -0.5
    assert predicted_rate("KRR-POLY, degree 2", 3) == pytest.approx(-1.5)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A small but real reproduction: the cheap methods of every experiment whose data is here, and the page."""
    folder = tmp_path_factory.mktemp("reproduction")
    wanted = {
        "2d": (*CHEAP, "close-up, Local KRR", "close-up, PU-KRR-POLY"),
        "ablations": ("h = 50", "h = 100", "random order 0", "random order 1", "wendland-c2-native", "truncated-gaussian"),
        "sphere": (
            "solver 12",
            "solver 24",
            *(f"n = {n}, {m}" for n in (600, 1200) for m in CHEAP[1:]),
            "gradient, n = 600, exact, paper",
        ),
        "ozone": [f"{field}, {method}" for field in ("cmaq", "prism") for method in CHEAP],
        "combustion": [f"{split}, {method}" for split in ("random", "profiles") for method in CHEAP[1:]],
        "uci": [f"airfoil, {method}" for method in CHEAP[1:]],
        "theory": [f"d = {d}, one model, no noise" for d in (1, 2)],
        "runtime": [f"{method}, n = {n}" for method in CHEAP[1:] for n in (500, 1000)],
    }
    results = {}
    for name, names in wanted.items():
        parts = [part for part in experiment(name).parts(quick=True) if part.name in names]
        assert len(parts) == len(names), name
        missing = run_parts(parts, folder / name, False, name, print)
        found = stored_results(parts, folder / name)
        found.missing.update(missing)
        if found.numbers:
            results[name] = found
    sections = {name: experiment(name).section(found) for name, found in results.items()}
    return write_report(sections, results, folder, quick=True), sections


def test_every_experiment_has_its_section_with_tables_and_figures(report):
    path, sections = report
    page = path.read_text()
    for name, section in sections.items():
        assert f'id="{name}"' in page
        assert section.blocks
    assert {"2d", "ablations", "sphere", "theory", "runtime"} <= set(sections)
    assert page.count("data:image/png;base64,") >= 6
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_the_paper_reproduces_better_than_printed_even_when_small(report):
    _, sections = report
    line = sections["2d"].comparisons[0]
    assert line.default < line.paper
    assert line.printed == 0.041


@pytest.mark.parametrize("width", [390, 1440])
def test_the_report_opens_in_a_browser(report, width, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api", reason="the page is opened with playwright: pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    path, _ = report
    complaints = []
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update"]
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        pictures = page.evaluate("[...document.images].map(i => [i.complete, i.naturalWidth, i.getBoundingClientRect().width])")
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        sizes = page.evaluate(
            "[...document.querySelectorAll('p, td, figcaption')].map(e => parseFloat(getComputedStyle(e).fontSize))"
        )
        reachable = page.evaluate("[...document.querySelectorAll('nav a')].every(a => document.getElementById(a.hash.slice(1)))")
        browser.close()
    assert complaints == []
    assert pictures
    assert all(complete and natural > 200 and shown <= width for complete, natural, shown in pictures)
    assert overflow <= 0  # wide tables scroll in their own frames
    assert min(sizes) >= 13
    assert reachable


def test_the_list_names_all_experiments():
    result = command("reproduce", "--list")
    assert result.returncode == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(EXPERIMENTS)


def test_reproduce_writes_results_and_report_and_goes_on_where_it_stopped(tmp_path):
    arguments = ("reproduce", "ablations", "--quick", "--output", str(tmp_path / "out"))
    first = command(*arguments)
    assert first.returncode == 0, first.stderr
    page = tmp_path / "out" / "quick" / "report.html"
    assert str(page) in first.stdout
    stored = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.json")}
    assert len(stored) == 14
    page.unlink()
    assert command(*arguments).returncode == 0
    assert page.exists()
    assert {path: path.stat().st_mtime_ns for path in stored} == stored


def test_wrong_names_and_places_are_one_clear_line(tmp_path):
    result = command("reproduce", "3d")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "There is no experiment '3d'. Choose from 2d, ablations" in result.stderr
    (tmp_path / "taken").write_text("mine")
    result = command("reproduce", "--output", str(tmp_path / "taken"))
    assert result.returncode == 2
    assert "must be a folder" in result.stderr
    with pytest.raises(ValueError, match="There is no experiment"):
        reproduce(["3d"], Path(tmp_path))


def test_what_the_report_needs_is_looked_for_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match="matplotlib"):
        reproduce(["theory"], tmp_path / "out", quick=True)
    assert not (tmp_path / "out").exists()
