"""The page, in a real browser: it computes what the model computes, and can be used with a mouse, a keyboard and a small screen."""

import json
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("plotly", reason="the page draws with plotly: pip install 'stitchwork[plot]'")

from stitchwork import StitchedRegressor
from stitchwork.local.radial import KERNEL_NAMES, kernel_named, weight_named
from stitchwork.report import explore, write_report
from stitchwork.report._payload import LARGEST_MODEL, _polynomials, payload


def make_model(d, n=300, t=1, **changes):
    X = np.random.default_rng(0).uniform(size=(n, d))
    y = np.sin(3 * X[:, 0]) + X.sum(axis=1) ** 2
    settings = {"selection": None, "region_size": 40, "kernel": "gaussian", "ridge": 1e-8} | changes
    return StitchedRegressor(**settings).fit(X, y if t == 1 else np.stack([y, -y], axis=1))


def settle(page, how="drawn"):
    """Until the picture shows what was asked for last, coarse or ``fine``."""
    page.wait_for_function(f"document.body.dataset.{how} === String(state.turn)")


def report_of(model, tmp_path, *data):
    path = tmp_path / "report.html"
    write_report(model, path, *data)
    return path.as_uri()


def test_radial_functions_in_javascript_agree_with_the_golden_vectors(browser):
    folder = Path(__file__).parent
    golden = json.loads((folder / "golden" / "radial.json").read_text())
    d = golden["dimension"]
    known = {name: _polynomials(kernel_named(name, d)) for name in (*KERNEL_NAMES, "none")}
    known |= {name: _polynomials(weight_named(name, d)) for name in golden["terms"] if name not in known}
    page = browser.new_page()
    page.add_script_tag(content=files("stitchwork.report").joinpath("engine.js").read_text(encoding="utf-8"))
    ask = "([known, s]) => Object.fromEntries(Object.entries(known).map(([name, terms]) => [name, s.map(radial(name, terms))]))"
    found = page.evaluate(ask, [known, golden["squared_radii"]])
    page.close()
    for name, table in golden["terms"].items():
        expected = np.array(table)[:, :3]  # the page has no use for the third
        # Near r = 1 a weight and its derivatives vanish, and the rounding of s is what is left.
        size = np.abs(expected) + (1e-3 if name not in KERNEL_NAMES else 1e-300)
        np.testing.assert_allclose((np.array(found[name]) - expected) / size, 0.0, atol=1e-11, err_msg=name)


CHANGES = [
    *(
        {"kernel": name}
        for name in ("gaussian", "matern32", "matern52", "matern72", "wendland", "multiquadric", "cubic", "quintic")
    ),
    {"weight": "wendland-c4"},
    {"weight": "wendland-c6-native"},
    {"metric": np.array([[2.0, 0.5], [0.5, 1.0]])},
    {"background": "polynomial"},
    {"local_model": "poly", "degree": 3},
    {"local_model": "krr"},
]


def test_the_page_computes_what_the_model_computes(open_page, tmp_path):
    page = open_page(report_of(make_model(2), tmp_path))
    for changes in CHANGES:
        model = make_model(2, t=2, **changes)
        X = np.concatenate([np.random.default_rng(2).uniform(-0.1, 1.1, (40, 2)), model.centers_[:3], [[3.0, -2.0]]])
        facts = payload(model.model_, None, "", live=False)
        page.evaluate("(facts) => { window.engine = new Engine(facts.model, facts.smoothness); }", facts)
        found = page.evaluate("(X) => X.map((x) => [engine.at(x, 1), engine.coverage(x)])", X.tolist())
        for part, ours in (
            ("value", model.predict(X)[:, 1]),
            ("gradient", model.gradient(X)[:, 1]),
            ("laplacian", np.trace(model.hessian(X)[:, 1], axis1=1, axis2=2)),
        ):
            theirs = np.array([answer[part] for answer, _ in found])
            # Rounding: coefficients of size |α| cancel, in another order of summation.
            np.testing.assert_allclose(theirs, ours, rtol=1e-7, atol=1e-7 * np.abs(ours).max(), err_msg=str(changes))
        np.testing.assert_allclose([coverage for _, coverage in found], model.coverage(X), atol=1e-12)


def test_the_page_holds_regions_by_their_bounds(open_page, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(120, 2)), rng.normal(size=(120, 2)) * [1.0, 1e6]
    settings = {"selection": None, "region_size": 20, "kernel": "gaussian", "bandwidth": 2.0, "ridge": 1e-5, "degree": 2}
    model = StitchedRegressor(**settings).fit(X, y)
    page = open_page(report_of(model, tmp_path))
    facts = payload(model.model_, None, "", live=False)
    page.evaluate("(facts) => { window.engine = new Engine(facts.model, facts.smoothness); }", facts)
    Q = rng.uniform(-0.2, 1.2, (60, 2))
    for output in range(2):
        found = page.evaluate("([X, k]) => X.map((x) => engine.at(x, k))", [Q.tolist(), output])
        hessian = model.hessian(Q)[:, output]
        for part, ours in (
            ("value", model.predict(Q)[:, output]),
            ("gradient", model.gradient(Q)[:, output]),
            ("laplacian", hessian.trace(axis1=1, axis2=2)),
        ):
            theirs = np.array([answer[part] for answer in found])
            np.testing.assert_allclose(theirs, ours, rtol=1e-7, atol=1e-7 * np.abs(ours).max(), err_msg=part)


def test_the_page_computes_behind_a_chart(open_page, tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-180, 180, 400), rng.uniform(0, 24, 400), rng.uniform(size=400), rng.uniform(-90, 90, 400)])
    y = (
        np.sin(np.radians(X[:, 3])) * X[:, 2]
        + np.cos(X[:, 1] * np.pi / 12)
        + np.cos(np.radians(X[:, 0])) * np.cos(np.radians(X[:, 3]))
    )
    settings = {"selection": None, "region_size": 40, "kernel": "gaussian", "ridge": 1e-8, "metric": "standardized"}
    model = StitchedRegressor(geographic=(0, 3), periodic={1: 24}, **settings).fit(X, y)
    page = open_page(report_of(model, tmp_path))
    facts = payload(model.model_, None, "", live=False)
    page.evaluate("(facts) => { window.engine = new Engine(facts.model, facts.smoothness); }", facts)
    Q = np.concatenate([X[:20] + 0.01, [[180.0, 0.0, 0.5, 0.0], [-180.0, 24.0, 2.0, 10.0], [700.0, -30.0, -9.0, -89.0]]])
    found = page.evaluate("(X) => X.map((x) => [engine.at(x, 0), engine.coverage(x)])", Q.tolist())
    hessian = model.hessian(Q)
    for part, ours in (
        ("value", model.predict(Q)),
        ("gradient", model.gradient(Q)),
        ("laplacian", hessian.trace(axis1=1, axis2=2)),
    ):
        theirs = np.array([answer[part] for answer, _ in found])
        np.testing.assert_allclose(theirs, ours, rtol=1e-7, atol=1e-7 * np.abs(ours).max(), err_msg=part)
    np.testing.assert_allclose([coverage for _, coverage in found], model.coverage(Q), atol=1e-12)
    point = page.evaluate("async (x) => (await engine.point(x, 0)).contributions[0]", Q[0].tolist())
    np.testing.assert_allclose(point["center"], model.contributions(Q[0])[0].center, atol=1e-9)


def test_rough_kernels_are_values_in_the_page(open_page, tmp_path):
    page = None
    for kernel, weight in (("linear", "wendland-c0"), ("exponential", "truncated-gaussian"), ("thin-plate", "wendland-c2")):
        model = make_model(2, kernel=kernel, weight=weight)
        page = page or open_page(report_of(model, tmp_path))
        facts = payload(model.model_, None, "", live=False)
        page.evaluate("(facts) => { window.engine = new Engine(facts.model, facts.smoothness); }", facts)
        X = np.random.default_rng(2).uniform(size=(40, 2))
        theirs = page.evaluate("(X) => X.map((x) => engine.at(x, 0, 0).value)", X.tolist())
        np.testing.assert_allclose(theirs, model.predict(X), rtol=1e-9, err_msg=kernel)
    layers = page.locator("#layer option").all_inner_texts()
    # A linear spline has no gradient.
    assert layers == ["value", "coverage", "deviation of a new observation", "leave-one-out error at the data"]


def contributions_match(page, model):
    x = [float(page.locator(f"#x{k}").input_value()) for k in range(model.n_features_in_)]
    told = page.locator("#contributions td.share").all_inner_texts()
    shares = np.array([float(text.split()[0]) / 100 for text in told])
    ours = [one.share for one in model.contributions(x)]
    np.testing.assert_allclose(shares, ours, rtol=6e-3)  # three digits are shown
    assert shares.sum() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("width", [390, 1440])
def test_a_click_shows_the_regions_that_speak(open_page, tmp_path, width):
    model = make_model(3)
    page = open_page(report_of(model, tmp_path), width)
    box = page.locator("#map .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.4 * box["height"])
    page.wait_for_selector("#map .hovertext")
    assert "y " in page.locator("#map .hovertext").text_content()
    page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.4 * box["height"])
    page.wait_for_selector("#contributions table")
    contributions_match(page, model)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.wait_for_function("document.getElementById('map').layout.shapes.length > 0")


def test_a_slider_moves_the_picture_by_keyboard(open_page, tmp_path):
    model = make_model(3)
    page = open_page(report_of(model, tmp_path))
    other = page.evaluate("[0, 1, 2].find((k) => !state.axes.includes(k))")
    page.locator(f"#slider{other}").focus()
    page.keyboard.press("End")
    settle(page)
    facts = page.evaluate("({x: state.at, axes: state.axes, data: document.getElementById('map').data[0]})")
    x = list(facts["x"])
    x[facts["axes"][0]], x[facts["axes"][1]] = facts["data"]["x"][10], facts["data"]["y"][10]
    assert x[other] == pytest.approx(model.model_.X[:, other].max())
    assert facts["data"]["z"][10][10] == pytest.approx(float(model(x)), rel=1e-7)


def test_everything_is_reached_by_keyboard(open_page, tmp_path):
    page = open_page(report_of(make_model(3, t=2), tmp_path))
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    sliders = {f"slider{k}" for k in range(3)}
    assert {
        "layer",
        "output",
        "across",
        "up",
        "beside",
        "colors",
        "dots",
        "theme",
        "x0",
        "x1",
        "x2",
        "Show its regions",
    } | sliders <= reached
    page.locator("#x0").fill("0.5")
    page.keyboard.press("Enter")
    page.wait_for_selector("#contributions table")


def test_layers_axes_and_outputs_change_the_picture(open_page, tmp_path):
    model = make_model(3, t=2)
    page = open_page(report_of(model, tmp_path))

    def corner():
        return page.evaluate("({v: document.getElementById('map').data[0].z?.[3][7], turn: document.body.dataset.drawn})")

    seen = corner()
    for control, choice in (("layer", "gradient"), ("layer", "laplacian"), ("output", "1"), ("across", "2"), ("layer", "value")):
        page.locator(f"#{control}").select_option(choice)
        page.wait_for_function(f"document.body.dataset.drawn !== '{seen['turn']}'")
        now = corner()
        assert now["v"] != seen["v"], control
        seen = now
    page.locator("#layer").select_option("error")
    page.wait_for_function("document.getElementById('map').data[0].type === 'scatter'")
    assert page.evaluate("document.getElementById('map').data[0].x.length") == 300


def test_one_feature_is_a_curve_over_the_data(open_page, tmp_path):
    model = make_model(1)
    page = open_page(report_of(model, tmp_path))
    curve = page.evaluate("document.getElementById('map').data.at(-1)")
    np.testing.assert_allclose(curve["y"], model(np.array(curve["x"])[:, None]), rtol=1e-7, atol=1e-7)
    page.locator("#x0").fill("0.25")
    page.keyboard.press("Enter")
    page.wait_for_selector("#contributions table")
    contributions_match(page, model)


def test_a_band_surrounds_a_curve(open_page, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 1))
    model = StitchedRegressor(kernel="matern52").fit(X, np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=300))
    page = open_page(report_of(model, tmp_path))
    lower, upper = (page.evaluate(f"document.getElementById('map').data[{k}]") for k in (1, 2))
    np.testing.assert_allclose(np.stack([lower["y"], upper["y"]], axis=1), model.predict_interval(np.array(upper["x"])[:, None]))
    assert upper["fill"] == "tonexty"
    assert "90 %" in upper["name"]


def test_deviations_are_a_picture_of_the_first_slice(open_page, tmp_path):
    model = make_model(3, t=2)
    page = open_page(report_of(model, tmp_path))
    page.locator("#across").select_option("2")
    page.locator("#layer").select_option("deviation")
    page.wait_for_function("document.getElementById('status').textContent.startsWith('Deviations')")
    page.locator("#output").select_option("1")
    settle(page)
    assert page.evaluate("document.getElementById('map').layout.title.text").startswith("deviation")
    facts, data = payload(model.model_, None, "", live=False), page.evaluate("document.getElementById('map').data[0]")
    assert page.locator("#across").input_value() == str(facts["axes"][0])  # the picture's own slice
    x = np.array(facts["at"])
    x[facts["axes"][0]], x[facts["axes"][1]] = data["x"][5], data["y"][9]
    assert data["z"][9][5] == pytest.approx(model.predict(x[None], return_std=True)[1][0, 1], rel=1e-9)


def test_the_page_tells_how_often_intervals_hold(open_page, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 2))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=900)
    model = StitchedRegressor(kernel="matern52").fit(X[:500], y[:500])
    page = open_page(report_of(model, tmp_path, X[500:], y[500:]))
    _, left_out, given = page.evaluate("document.getElementById('sure').data")
    assert (left_out["name"], given["name"]) == ("leave-one-out", "given data")
    np.testing.assert_allclose(left_out["y"], left_out["x"], atol=0.04)
    ends = model.predict_interval(X[500:], 0.9)
    assert given["y"][17] == pytest.approx(np.mean((ends[:, 0] <= y[500:]) & (y[500:] <= ends[:, 1])))
    assert "diagonal" in page.locator("#sure-section").inner_text()


def test_errors_on_given_data_are_shown(open_page, tmp_path):
    model = make_model(2)
    X = np.random.default_rng(3).uniform(size=(50, 2))
    page = open_page(report_of(model, tmp_path, X, np.zeros(50)))
    page.locator("#errors-of").select_option("given data")
    page.wait_for_function("document.getElementById('calibration').layout.title.text.startsWith('given data')")
    rmse = np.sqrt(np.mean(model.predict(X) ** 2))
    assert f"{rmse:.4g}"[:5] in page.evaluate("document.getElementById('calibration').layout.title.text")


def test_the_page_has_one_leave_one_out_error_where_rows_repeat(open_page, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    often = rng.integers(1, 9, size=200) * (X[:, 0] > 0.7) + 1  # and where they repeat, the noise is small
    y = np.sin(6 * X[:, 0]) + np.where(often > 1, 0.01, 0.5) * rng.normal(size=200)
    model = StitchedRegressor(kernel="matern52").fit(np.repeat(X, often, axis=0), np.repeat(y, often))
    page = open_page(report_of(model, tmp_path))
    title = page.evaluate("document.getElementById('calibration').layout.title.text")
    assert float(title.split("RMSE ")[1]) == pytest.approx(model.loo_error_, rel=1e-5)  # six digits are shown
    told = page.locator("#summary tr", has_text="RMSE").inner_text()
    assert f"RMSE {model.loo_error_:.3g}" in told
    unweighted = np.sqrt(np.mean(model.leave_one_out().residual ** 2))
    assert unweighted > 1.1 * model.loo_error_  # another number


def test_the_page_asks_no_network(browser, tmp_path):
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report_of(make_model(2), tmp_path))
    page.wait_for_selector("body[data-ready]")
    page.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_a_model_too_large_for_a_page_is_shown_on_one_slice(open_page, tmp_path, monkeypatch):
    monkeypatch.setattr("stitchwork.report._payload.LARGEST_MODEL", 1000)
    assert LARGEST_MODEL > 10**7
    model = make_model(3)
    page = open_page(report_of(model, tmp_path))
    assert "stitchwork explore" in page.locator("#status").inner_text()
    data = page.evaluate("document.getElementById('map').data[0]")
    facts = payload(model.model_, None, "", live=False)
    x = list(facts["at"])
    x[facts["axes"][0]], x[facts["axes"][1]] = data["x"][5], data["y"][9]
    assert data["z"][9][5] == pytest.approx(float(model(x)), rel=1e-9)


def test_names_cannot_break_out_of_the_page(open_page, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).uniform(size=(100, 2))
    frame = pandas.DataFrame(X, columns=["</script><script>broken()</script>", "<img src=x onerror=broken()>"])
    model = StitchedRegressor(selection=None, region_size=40).fit(frame, X[:, 0])
    write_report(model, tmp_path / "report.html", title="</title><script>broken()</script>")
    open_page((tmp_path / "report.html").as_uri())


def test_explore_answers_live_and_only_this_machine(open_page, tmp_path):
    pytest.importorskip("uvicorn", reason="`explore` needs uvicorn: pip install 'stitchwork[explore]'")
    testing = pytest.importorskip("starlette.testclient", reason="`explore` needs starlette: pip install 'stitchwork[explore]'")
    from stitchwork.report._server import application

    model = make_model(3)
    model.save(tmp_path / "m.stitch")
    port = "8653"
    code = "from stitchwork.cli import main; main()"
    served = subprocess.Popen(
        [sys.executable, "-u", "-c", code, "explore", str(tmp_path / "m.stitch"), "--port", port],
        stdout=subprocess.PIPE,
        text=True,
        # A shell's background job ignores SIGINT, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert f"http://127.0.0.1:{port}" in served.stdout.readline()
        with pytest.raises(OSError, match=f"Port {port} of this machine cannot be had"):
            explore(model, int(port))
        page = open_page(f"http://127.0.0.1:{port}")
        box = page.locator("#map .nsewdrag").first.bounding_box()
        page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.4 * box["height"])
        page.wait_for_selector("#contributions table")
        contributions_match(page, model)
        z = page.evaluate("({at: state.at, axes: state.axes, data: document.getElementById('map').data[0]})")
        x = list(z["at"])
        x[z["axes"][0]], x[z["axes"][1]] = z["data"]["x"][4], z["data"]["y"][8]
        assert z["data"]["z"][8][4] == pytest.approx(float(model(x)), rel=1e-12)
    finally:
        served.send_signal(signal.SIGINT)
        assert served.wait(timeout=20) == 0  # Ctrl+C is the way to stop it
    page.locator("#layer").select_option("gradient")
    page.wait_for_function("document.getElementById('status').textContent.startsWith('No answer')")
    assert testing.TestClient(application(model.model_, "m"), base_url="http://elsewhere.org").get("/").status_code == 400
