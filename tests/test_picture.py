"""The pictures of the page, in a real browser: as fine as the screen, in colours that suit, with the data, and of two models."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("plotly", reason="the page draws with plotly: pip install 'stitchwork[plot]'")

from stitchwork import StitchedRegressor
from stitchwork._parallel import ALONE
from stitchwork.report import write_report
from stitchwork.report._page import write_page

SETTINGS = {"selection": None, "region_size": 40, "kernel": "gaussian", "ridge": 1e-8}


def fit(X, y, names=None, **changes):
    model = StitchedRegressor(**SETTINGS | changes).fit(X, y)
    model.model_ = model.model_.rename(names or [f"x{k}" for k in range(X.shape[1])], ["y"])
    return model


def wavy(d, n=400, seed=0, **changes):
    X = np.random.default_rng(seed).uniform(size=(n, d))
    return fit(X, np.sin(5 * X[:, 0]) + X.sum(axis=1) ** 2, **changes)


@pytest.fixture
def show(open_page, tmp_path):
    """Opens the page of one model, or of two by name."""

    def opened(models, width=1000):
        path = tmp_path / "report.html"
        if isinstance(models, dict):
            write_page({name: model.model_ for name, model in models.items()}, path, None, "both", ALONE)
        else:
            write_report(models, path)
        return open_page(path.as_uri(), width)

    return opened


def settle(page, how="drawn"):
    """Until the picture shows what was asked for last, coarse or ``fine``."""
    page.wait_for_function(f"document.body.dataset.{how} === String(state.turn)", timeout=120_000)


def image(page, panel="map", how="drawn"):
    settle(page, how)
    return page.evaluate(f"document.getElementById('{panel}').data[0]")


def values_at(model, page, data):
    """What the model says where the picture has points, (up, across)."""
    state = page.evaluate("({at: state.at, axes: state.axes})")
    X = np.tile(state["at"], (len(data["y"]), len(data["x"]), 1))
    X[..., state["axes"][0]], X[..., state["axes"][1]] = np.meshgrid(data["x"], data["y"])
    return model(X.reshape(-1, X.shape[-1])).reshape(X.shape[:2])


def test_the_picture_is_as_fine_as_the_screen_wherever_it_is_zoomed_to(show):
    model = wavy(2)
    page = show(model, 500)
    page.evaluate("LIMITS.seconds = 1000")  # on a busy machine, too
    for window in (None, [0.3, 0.35, 0.6, 0.65]):
        if window:
            ends = ("xaxis.range[0]", "xaxis.range[1]", "yaxis.range[0]", "yaxis.range[1]")
            axes = dict(zip(ends, window, strict=True))
            page.evaluate("(axes) => Plotly.relayout('map', axes)", axes)
        data = image(page, how="fine")
        width, height = page.evaluate("plotArea(document.getElementById('map'))")
        assert len(data["x"]) == pytest.approx(width, rel=0.2)  # the margins settle after the first pass
        assert len(data["y"]) == pytest.approx(height, rel=0.2)
        if window:
            assert (data["x"][0], data["x"][-1], data["y"][0], data["y"][-1]) == pytest.approx(window)
        np.testing.assert_allclose(np.array(data["z"]), values_at(model, page, data), rtol=1e-7, atol=1e-9)
    page.locator("#whole").click()
    assert image(page)["x"][0] == pytest.approx(model.model_.frame[0, 0])


def test_a_field_over_decades_has_logarithmic_colours(show):
    X = np.random.default_rng(0).uniform(size=(800, 2))
    page = show(fit(X, 10.0 ** (4 * X[:, 0])))
    data = image(page)
    z, raw = np.array(data["z"]), np.array(data["customdata"])
    np.testing.assert_allclose(z[raw > 1.5], np.log10(raw[raw > 1.5]), atol=1e-12)
    assert data["zmax"] - data["zmin"] > 2
    bar = data["colorbar"]
    np.testing.assert_allclose([float(text) for text in bar["ticktext"]], 10.0 ** np.array(bar["tickvals"]), rtol=1e-2)
    page.locator("#colors").select_option("linear")
    data = image(page)
    assert "customdata" not in data
    np.testing.assert_allclose((data["z"][0][0], data["z"][-1][-1]), (raw[0, 0], raw[-1, -1]), rtol=1e-12)


def test_what_is_constant_is_drawn_as_one_colour(show):
    X = np.random.default_rng(0).uniform(size=(300, 2))
    page = show(fit(X, 3.0 + X[:, 0]))  # value varies, its slope does not, and it does not bend
    assert "constant" not in page.evaluate("document.getElementById('map').layout.title.text")
    for layer, value in (("gradient", 1.0), ("laplacian", 0.0)):
        page.locator("#layer").select_option(layer)
        data = image(page)
        assert len(np.unique(data["z"])) == 1
        assert data["z"][0][0] == pytest.approx(value, abs=1e-6)
        assert "constant" in page.evaluate("document.getElementById('map').layout.title.text")


def test_data_are_dots_so_that_holes_are_seen(show):
    X = np.random.default_rng(0).uniform(-1, 1, size=(9000, 2))
    X = X[np.hypot(*X.T) > 0.5]
    page = show(fit(X, X[:, 0]))
    veiled = "document.getElementById('map').data.find((trace) => trace.type === 'heatmap' && trace.showscale === false)"
    page.wait_for_function(veiled)
    dots = page.evaluate("document.getElementById('map').data.find((trace) => trace.name === 'data')")
    places = np.stack([dots["x"], dots["y"]], axis=1)
    assert 1000 < len(places) <= 3000
    assert np.hypot(*places.T).min() > 0.5
    assert set(map(tuple, places.round(9))) <= set(map(tuple, X.round(9)))
    veil = page.evaluate(veiled)
    across, up = np.searchsorted(veil["x"], 0.0), np.searchsorted(veil["y"], 0.0)
    assert veil["z"][up][across] < 0.1 < veil["z"][0][0]
    assert page.locator("#veil-key").is_visible()
    page.locator("#dots").uncheck()
    settle(page)
    assert not page.evaluate("document.getElementById('map').data.some((trace) => trace.name === 'data')")


def test_dots_are_those_near_the_slice(show):
    page = show(wavy(3, n=2000))
    dots = page.evaluate("document.getElementById('map').data.find((trace) => trace.name === 'data').x.length")
    assert 100 < dots < 1500


def test_deviations_stand_beside_values(show):
    model = wavy(3)
    page = show(model)
    beside = image(page, "map1")
    state = page.evaluate("({at: state.at, axes: state.axes})")
    x = np.array(state["at"])
    x[state["axes"]] = beside["x"][7], beside["y"][3]
    expected = model.predict(x[None], return_std=True)[1][0]
    shown = beside.get("customdata", beside["z"])[3][7]
    assert shown == pytest.approx(expected, rel=1e-9)
    other = page.evaluate("[0, 1, 2].find((k) => !state.axes.includes(k))")
    page.locator(f"#slider{other}").press("End")
    settle(page)
    assert "picture of one slice" in page.locator("#map1").inner_text()
    page.get_by_role("button", name="Back to that slice").click()
    assert len(image(page, "map1")["x"]) == len(beside["x"])


def test_sliders_and_numbers_follow_each_other(show):
    model = wavy(3)
    page = show(model)
    other = page.evaluate("[0, 1, 2].find((k) => !state.axes.includes(k))")
    low, high = model.model_.frame[:2, other]
    page.locator(f"#slider{other}").press("End")
    assert float(page.locator(f"#x{other}").input_value()) == pytest.approx(high, rel=1e-6)
    page.locator(f"#x{other}").fill(str(0.5 * (low + high)))
    assert page.locator(f"#slider{other}").input_value() == "100"
    assert page.evaluate("state.at")[other] == pytest.approx(0.5 * (low + high))
    page.get_by_role("button", name="Show its regions").click()
    page.wait_for_selector("#contributions table")
    before = page.locator("#contributions p").first.inner_text()
    page.locator(f"#slider{other}").press("Home")
    page.wait_for_function("(before) => document.querySelector('#contributions p').innerText !== before", arg=before)
    x = [float(page.locator(f"#x{k}").input_value()) for k in range(3)]
    told = page.locator("#contributions p").first.inner_text()
    assert float(told.split("y = ")[1].split(" ")[0]) == pytest.approx(float(model(x)), rel=1e-4)  # six digits are shown


def test_where_there_are_no_data_the_page_says_so(show):
    page = show(wavy(2))
    for x, kind, text in (("0.5", "good", "amid the data"), ("9", "bad", "no data here: the background answers")):
        page.locator("#x0").fill(x)
        page.locator("#x1").fill(x)
        page.locator("#x1").press("Enter")
        page.wait_for_selector(f"#contributions .nearness.{kind}")
        assert text in page.locator(".nearness").inner_text()


def test_every_strange_word_is_explained_by_mouse_keyboard_and_touch(show):
    page = show(wavy(2))
    page.get_by_role("button", name="Show its regions").click()
    page.wait_for_selector("#contributions table")
    explained = "document.getElementById(one.getAttribute('aria-describedby')).textContent"
    words = page.evaluate(f"[...document.querySelectorAll('.word')].map((one) => [one.dataset.word, one.tabIndex, {explained}])")
    wanted = {"ridge", "level", "degree", "coverage", "region", "leave-one-out", "bandwidth", "kernel", "share"}
    assert wanted <= {name for name, _, _ in words}
    assert all(stop == 0 and text.endswith(".") and text.count(". ") == 0 for _, stop, text in words)
    ridge, tip = page.locator("#contributions .word", has_text="ridge"), page.locator("#tip")
    for reach, leave in (
        (ridge.hover, lambda: page.mouse.move(0, 0)),
        (ridge.focus, lambda: page.keyboard.press("Escape")),
        (ridge.click, page.locator("h1").click),
    ):
        reach()
        assert "smooths" in tip.inner_text()
        leave()
        assert tip.is_hidden()


def lightness(page, selector):
    color = page.evaluate("(selector) => getComputedStyle(document.querySelector(selector)).backgroundColor", selector)
    return sum(int(part) for part in color.strip("rgb()").split(",")[:3]) / 765


def test_dark_where_the_system_is_or_the_switch_says_so(show):
    page = show(wavy(1))
    assert lightness(page, "body") > 0.9
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.getElementById('map').layout.paper_bgcolor !== '#ffffff'")
    assert lightness(page, "body") < 0.2
    page.locator("#theme").click()
    page.wait_for_function("document.getElementById('map').layout.paper_bgcolor === '#ffffff'")
    assert lightness(page, "body") > 0.9


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_nothing_overflows_and_sliders_are_next_to_the_picture(show, width):
    page = show(wavy(5, n=300), width)
    page.get_by_role("button", name="Show its regions").click()
    page.wait_for_selector("#contributions table")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    picture, ask, beside = (page.locator(name).bounding_box() for name in ("#map", "#ask", "#map1"))
    if width < 960:
        assert picture["y"] + picture["height"] <= ask["y"] < picture["y"] + picture["height"] + 150
        assert ask["y"] + ask["height"] <= beside["y"]
    else:
        assert ask["x"] + ask["width"] <= picture["x"]


def test_degrees_have_the_aspect_of_the_ground(show):
    X = np.random.default_rng(0).uniform(size=(300, 2)) * [10, 20] + [5, 50]
    page = show(fit(X, X[:, 0], ["lon", "lat"]))
    settle(page)
    axis = page.evaluate("document.getElementById('map').layout.yaxis")
    middle = np.radians(0.5 * (X[:, 1].min() + X[:, 1].max()))
    assert axis["scaleanchor"] == "x"
    assert axis["scaleratio"] == pytest.approx(1 / np.cos(middle))
    scale = "(({ _length, range }) => _length / (range[1] - range[0]))"
    sizes = [page.evaluate(f"{scale}(document.getElementById('map')._fullLayout.{axis})") for axis in ("xaxis", "yaxis")]
    assert sizes[1] / sizes[0] == pytest.approx(1 / np.cos(middle), rel=0.01)  # whole pixels
    page.evaluate("Plotly.relayout('map', {'xaxis.range': [7, 11], 'yaxis.range': [60, 64]})")
    for panel in ("map", "map1"):
        page.wait_for_function(f"Math.abs(document.getElementById('{panel}')._fullLayout.xaxis.range[0] - 7) < 1e-9")
        settle(page)
        ranges = [page.evaluate(f"document.getElementById('{panel}')._fullLayout.{axis}.range") for axis in ("xaxis", "yaxis")]
        np.testing.assert_allclose(ranges, [[7, 11], [60, 64]])


def test_two_models_share_slices_and_colours_and_show_their_difference(show):
    first, second = wavy(2), wavy(2, seed=1, kernel="cubic")
    page = show({"a": first, "b": second})
    page.evaluate("PASSES.length = 1, draw()")  # finer ones come panel by panel
    settle(page, "fine")
    a, b, difference = page.evaluate("['map', 'map1', 'map2'].map((panel) => document.getElementById(panel).data[0])")
    assert (a["zmin"], a["zmax"], a["x"], a["y"]) == (b["zmin"], b["zmax"], b["x"], b["y"])
    for model, data in ((first, a), (second, b)):
        np.testing.assert_allclose(np.array(data["z"]), values_at(model, page, data), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(difference.get("customdata", difference["z"]), np.array(b["z"]) - np.array(a["z"]), atol=1e-12)
    cells = page.locator("#error-table td").all_inner_texts()
    np.testing.assert_allclose(
        [float(cell) for cell in cells], [first.loo_error_, second.loo_error_], rtol=1e-4
    )  # five digits are shown
    page.get_by_role("button", name="Show its regions").click()
    page.wait_for_selector("#contributions table")
    assert page.locator("#contributions h3").all_inner_texts() == ["a", "b"]
    page.set_viewport_size({"width": 400, "height": 900})
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_models_of_other_features_are_not_compared(tmp_path):
    models = {"a": wavy(2).model_, "b": wavy(3).model_}
    with pytest.raises(ValueError, match="same features and targets"):
        write_page(models, Path(tmp_path, "r.html"), None, "both", ALONE)
    assert not list(tmp_path.iterdir())


def test_points_that_came_later_are_told_apart(show):
    model = StitchedRegressor(**SETTINGS).fit(*wavy(2).leave_one_out()[:2])
    X = np.random.default_rng(3).uniform(0.4, 0.6, (30, 2))
    page = show(model.partial_fit(X, np.sin(5 * X[:, 0]) + X.sum(axis=1) ** 2))
    settle(page)
    assert "30 added since it was fitted" in page.inner_text("#added")
    dots = page.evaluate("document.getElementById('map').data.find((trace) => trace.name === 'data')")
    later = np.array(["224, 76, 12" in color for color in dots["marker"]["color"]])
    assert later.sum() == 30
    assert {tuple(x) for x in np.stack([dots["x"], dots["y"]], axis=1)[later]} == {tuple(x) for x in X}
