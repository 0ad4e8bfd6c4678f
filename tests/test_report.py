"""The page, in a real browser: it computes what the model computes, and can be used with a mouse, a keyboard and a small screen."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from stitchwork import StitchedRegressor
from stitchwork.report import explore, write_report
from stitchwork.report._payload import LARGEST_MODEL, contribution_rows, payload
from stitchwork.transform import LogStitchedRegressor


def make_model(d, n=300, t=1, **changes):
    X = np.random.default_rng(0).uniform(size=(n, d))
    y = np.sin(3 * X[:, 0]) + X.sum(axis=1) ** 2
    settings = {"selection": None, "region_size": 40, "kernel": "gaussian", "ridge": 1e-8} | changes
    return StitchedRegressor(**settings).fit(X, y if t == 1 else np.stack([y, -y], axis=1))


def settle(page, how="drawn"):
    """Until the picture shows what was asked for last, coarse or ``fine``."""
    page.wait_for_function(f"document.body.dataset.{how} === String(state.turn)", timeout=120_000)


def report_of(model, tmp_path, *data):
    path = tmp_path / "report.html"
    write_report(model, path, *data)
    return path.as_uri()


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


def assert_page_says(found, model, X, output=0):
    """What a page says is what the model says."""
    pick = (lambda array: array) if model.model_.flat else (lambda array: array[:, output])
    for part, ours in (
        ("value", pick(model.predict(X))),
        ("gradient", pick(model.gradient(X))),
        ("laplacian", np.trace(pick(model.hessian(X)), axis1=1, axis2=2)),
    ):
        # Rounding: coefficients of size |α| cancel, in another order of summation.
        np.testing.assert_allclose(found[part], ours, rtol=1e-7, atol=1e-7 * np.abs(ours).max(), err_msg=part)
    np.testing.assert_allclose(found["coverage"], model.coverage(X), atol=1e-12)
    for x, listed in zip(X[:5], found["contributions"], strict=False):
        ours = contribution_rows(model.model_, x, output)
        np.testing.assert_allclose([one["share"] for one in listed], [one["share"] for one in ours], rtol=1e-7, atol=1e-12)
        assert [one["ridge"] for one in listed] == [one["ridge"] for one in ours]


def test_the_page_computes_what_the_model_computes(open_page, ask_page, tmp_path):
    page = open_page(report_of(make_model(2), tmp_path))
    for changes in CHANGES:
        model = make_model(2, t=2, **changes)
        X = np.concatenate([np.random.default_rng(2).uniform(-0.1, 1.1, (40, 2)), model.centers_[:3], [[3.0, -2.0]]])
        facts = payload(model.model_, None, "", live=False)
        assert_page_says(ask_page(page, facts, X, 1), model, X, 1)


def test_the_page_holds_regions_by_their_bounds(open_page, ask_page, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(120, 2)), rng.normal(size=(120, 2)) * [1.0, 1e6]
    settings = {"selection": None, "region_size": 20, "kernel": "gaussian", "bandwidth": 2.0, "ridge": 1e-5, "degree": 2}
    model = StitchedRegressor(**settings).fit(X, y)
    page, facts = open_page(report_of(model, tmp_path)), payload(model.model_, None, "", live=False)
    Q = rng.uniform(-0.2, 1.2, (60, 2))
    for output in range(2):
        assert_page_says(ask_page(page, facts, Q, output), model, Q, output)


def test_the_page_of_a_model_of_logarithms_says_y(open_page, ask_page, shown, tmp_path):
    X = np.random.default_rng(0).uniform(size=(300, 2))
    model = LogStitchedRegressor(selection=None, region_size=40, kernel="gaussian", ridge=1e-8).fit(X, np.exp(4 * X[:, 0] - 2))
    page = open_page(report_of(model, tmp_path))
    assert_page_says(ask_page(page, payload(model.model_, None, "", live=False), X[:20]), model, X[:20])
    settle(page)
    z = np.array(shown(page)["image"]["z"])
    assert z.min() == pytest.approx(np.exp(-2.0), rel=0.1)
    assert "Half of the predictions are within" in page.locator("#headline").inner_text()


def test_the_page_computes_behind_a_chart(open_page, ask_page, tmp_path):
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
    Q = np.concatenate([X[:20] + 0.01, [[180.0, 0.0, 0.5, 0.0], [-180.0, 24.0, 2.0, 10.0], [700.0, -30.0, -9.0, -89.0]]])
    assert_page_says(ask_page(page, payload(model.model_, None, "", live=False), Q), model, Q)
    point = page.evaluate("async (x) => (await sources[0].point(x, 0)).contributions[0]", Q[0].tolist())
    np.testing.assert_allclose(point["center"], model.contributions(Q[0])[0].center, atol=1e-9)


def test_rough_kernels_are_values_in_the_page(open_page, ask_page, tmp_path):
    page = None
    for kernel, weight in (("linear", "wendland-c0"), ("exponential", "truncated-gaussian"), ("thin-plate", "wendland-c2")):
        model = make_model(2, kernel=kernel, weight=weight)
        page = page or open_page(report_of(model, tmp_path))
        X = np.random.default_rng(2).uniform(size=(40, 2))
        theirs = ask_page(page, payload(model.model_, None, "", live=False), X)["value"]
        np.testing.assert_allclose(theirs, model.predict(X), rtol=1e-9, err_msg=kernel)
    layers = page.locator("#layer option").all_inner_texts()
    # A linear spline has no gradient.
    assert layers == ["value", "coverage", "standard deviation of a new observation", "leave-one-out error at the data"]


def contributions_match(page, model):
    x = [float(page.locator(f"#x{k}").input_value()) for k in range(model.n_features_in_)]
    told = page.locator("#contributions td.share").all_inner_texts()
    shares = np.array([float(text.split()[0]) / 100 for text in told])
    ours = [one.share for one in model.contributions(x)]
    np.testing.assert_allclose(shares, ours, rtol=6e-3)  # three digits are shown
    assert shares.sum() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("width", [390, 1440])
def test_a_click_shows_the_regions_that_answer(open_page, shown, tmp_path, width):
    model = make_model(3)
    page = open_page(report_of(model, tmp_path), width)
    box = page.locator("#map canvas").bounding_box()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.4 * box["height"])
    page.wait_for_selector("#map .hovertext:not([hidden])")
    assert "y " in page.locator("#map .hovertext").text_content()
    page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.4 * box["height"])
    page.wait_for_selector("#contributions table")
    contributions_match(page, model)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    settle(page)
    assert any(mark.get("about") == "region" for mark in shown(page)["marks"])


def test_a_slider_moves_the_picture_by_keyboard(open_page, shown, tmp_path):
    model = make_model(3)
    page = open_page(report_of(model, tmp_path))
    other = page.evaluate("[0, 1, 2].find((k) => !state.axes.includes(k))")
    page.locator(f"#slider{other}").focus()
    page.keyboard.press("End")
    settle(page)
    facts = page.evaluate("({x: state.at, axes: state.axes})") | {"data": shown(page)["image"]}
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


def test_layers_axes_and_outputs_change_the_picture(open_page, shown, tmp_path):
    model = make_model(3, t=2)
    page = open_page(report_of(model, tmp_path))

    def corner():
        return {"v": shown(page)["image"]["z"][3][7], "turn": page.evaluate("document.body.dataset.drawn")}

    seen = corner()
    for control, choice in (("layer", "gradient"), ("layer", "laplacian"), ("output", "1"), ("across", "2"), ("layer", "value")):
        page.locator(f"#{control}").select_option(choice)
        page.wait_for_function(f"document.body.dataset.drawn !== '{seen['turn']}'")
        now = corner()
        assert now["v"] != seen["v"], control
        seen = now
    page.locator("#layer").select_option("error")
    page.wait_for_function("document.getElementById('map').plot.spec.layer === 'error'")
    assert len(shown(page)["marks"][0]["x"]) == 300


def test_one_feature_is_a_curve_over_the_data(open_page, shown, tmp_path):
    model = make_model(1)
    page = open_page(report_of(model, tmp_path))
    curve = shown(page)["marks"][-1]
    np.testing.assert_allclose(curve["y"], model(np.array(curve["x"])[:, None]), rtol=1e-7, atol=1e-7)
    page.locator("#x0").fill("0.25")
    page.keyboard.press("Enter")
    page.wait_for_selector("#contributions table")
    contributions_match(page, model)


def test_points_of_known_errors_have_error_bars(open_page, shown, tmp_path):
    rng = np.random.default_rng(0)
    X, s = rng.uniform(size=(200, 1)), 10 ** rng.uniform(-2, -0.5, 200)
    y = np.sin(6 * X[:, 0]) + s * rng.normal(size=200)
    model = StitchedRegressor(kernel="matern52").fit(X, y, noise_std=s)
    page = open_page(report_of(model, tmp_path))
    dots = next(mark for mark in shown(page)["marks"] if mark.get("about") == "data")
    order, own = np.argsort(dots["x"]), np.argsort(X[:, 0])
    np.testing.assert_allclose(np.array(dots["bars"])[order], np.hypot(s, float(model.noise_))[own])
    page = open_page(report_of(StitchedRegressor(kernel="matern52").fit(X, y), tmp_path))
    assert next(mark for mark in shown(page)["marks"] if mark.get("about") == "data")["bars"] is None


def test_a_band_surrounds_a_curve(open_page, shown, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 1))
    model = StitchedRegressor(kernel="matern52").fit(X, np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=300))
    page = open_page(report_of(model, tmp_path))
    band = next(mark for mark in shown(page)["marks"] if mark["kind"] == "area")
    ends = np.stack([band["lower"], band["upper"]], axis=1)
    np.testing.assert_allclose(ends, model.predict_interval(np.array(band["x"])[:, None]))
    assert "90 %" in band["name"]


def test_deviations_are_a_picture_of_the_first_slice(open_page, shown, tmp_path):
    model = make_model(3, t=2)
    page = open_page(report_of(model, tmp_path))
    page.locator("#across").select_option("2")
    page.locator("#layer").select_option("deviation")
    page.wait_for_function("document.getElementById('status').textContent.startsWith('Deviations')")
    page.locator("#output").select_option("1")
    settle(page)
    assert shown(page)["title"].startswith("standard deviation")
    assert shown(page)["note"] == "coarse: 61 × 61 points"
    facts, data = payload(model.model_, None, "", live=False), shown(page)["image"]
    assert page.locator("#across").input_value() == str(facts["axes"][0])  # the picture's own slice
    x = np.array(facts["at"])
    x[facts["axes"][0]], x[facts["axes"][1]] = data["x"][5], data["y"][9]
    assert data["z"][9][5] == pytest.approx(model.predict(x[None], return_std=True)[1][0, 1], rel=1e-9)


def test_the_page_tells_how_often_intervals_hold(open_page, shown, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 2))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=900)
    model = StitchedRegressor(kernel="matern52").fit(X[:500], y[:500])
    page = open_page(report_of(model, tmp_path, X[500:], y[500:]))
    _, left_out, given = shown(page, "sure")["marks"]
    assert (left_out["name"], given["name"]) == ("leave-one-out", "given data")
    np.testing.assert_allclose(left_out["y"], left_out["x"], atol=0.04)
    ends = model.predict_interval(X[500:], 0.9)
    assert given["y"][17] == pytest.approx(np.mean((ends[:, 0] <= y[500:]) & (y[500:] <= ends[:, 1])))
    assert "diagonal" in page.locator("#sure-section").inner_text()


def test_errors_on_given_data_are_shown(open_page, shown, tmp_path):
    model = make_model(2)
    X = np.random.default_rng(3).uniform(size=(50, 2))
    page = open_page(report_of(model, tmp_path, X, np.zeros(50)))
    assert page.locator("#errors-of").input_value() == "given data"  # held-out data before leave-one-out
    page.locator("#errors-of").select_option("leave-one-out")
    page.locator("#errors-of").select_option("given data")
    page.wait_for_function("document.getElementById('calibration').plot.spec.title.startsWith('given data')")
    rmse = np.sqrt(np.mean(model.predict(X) ** 2))
    assert f"{rmse:.4g}"[:5] in shown(page, "calibration")["title"]


def test_the_page_has_one_leave_one_out_error_where_rows_repeat(open_page, shown, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    often = rng.integers(1, 9, size=200) * (X[:, 0] > 0.7) + 1  # and where they repeat, the noise is small
    y = np.sin(6 * X[:, 0]) + np.where(often > 1, 0.01, 0.5) * rng.normal(size=200)
    model = StitchedRegressor(kernel="matern52").fit(np.repeat(X, often, axis=0), np.repeat(y, often))
    page = open_page(report_of(model, tmp_path))
    title = shown(page, "calibration")["title"]
    assert float(title.split("RMSE ")[1]) == pytest.approx(model.loo_error_, rel=1e-5)  # six digits are shown
    page.get_by_text("The model and its settings").click()
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


def test_a_model_too_large_for_a_page_is_shown_on_one_slice(open_page, shown, tmp_path, monkeypatch):
    monkeypatch.setattr("stitchwork.report._payload.LARGEST_MODEL", 1000)
    assert LARGEST_MODEL > 10**7
    model = make_model(3)
    page = open_page(report_of(model, tmp_path))
    assert "stitchwork explore" in page.locator("#status").inner_text()
    data = shown(page)["image"]
    assert len(data["x"]) == len(data["y"]) == 401
    facts = payload(model.model_, None, "", live=False)
    x = list(facts["at"])
    x[facts["axes"][0]], x[facts["axes"][1]] = data["x"][5], data["y"][9]
    assert data["z"][9][5] == pytest.approx(float(model(x)), rel=1e-6)  # single precision


def test_names_cannot_break_out_of_the_page(open_page, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).uniform(size=(100, 2))
    frame = pandas.DataFrame(X, columns=["</script><script>broken()</script>", "<img src=x onerror=broken()>"])
    model = StitchedRegressor(selection=None, region_size=40).fit(frame, X[:, 0])
    write_report(model, tmp_path / "report.html", title="</title><script>broken()</script>")
    open_page((tmp_path / "report.html").as_uri())


def test_explore_answers_live_and_only_this_machine(open_page, shown, tmp_path):
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
        box = page.locator("#map canvas").bounding_box()
        page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.4 * box["height"])
        page.wait_for_selector("#contributions table")
        contributions_match(page, model)
        z = page.evaluate("({at: state.at, axes: state.axes})") | {"data": shown(page)["image"]}
        x = list(z["at"])
        x[z["axes"][0]], x[z["axes"][1]] = z["data"]["x"][4], z["data"]["y"][8]
        assert z["data"]["z"][8][4] == pytest.approx(float(model(x)), rel=1e-12)
        settle(page, "fine")  # nothing is being asked when the server ends
    finally:
        served.send_signal(signal.SIGINT)
        assert served.wait(timeout=20) == 0  # Ctrl+C is the way to stop it
    page.locator("#layer").select_option("gradient")
    page.wait_for_function("document.getElementById('status').textContent.startsWith('No answer')")
    assert testing.TestClient(application(model.model_, "m"), base_url="http://elsewhere.org").get("/").status_code == 400
