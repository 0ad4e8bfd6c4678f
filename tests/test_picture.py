"""The pictures of the page, in a real browser: as fine as the screen, in colours that suit, with the data, and of two models."""

from pathlib import Path

import numpy as np
import pytest

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


@pytest.fixture
def image(shown):
    """The image of a panel, coarse or fine."""

    def seen(page, panel="map", how="drawn"):
        settle(page, how)
        return shown(page, panel)["image"]

    return seen


def drag(page, window, panel="map"):
    """Zoom to a window (low, high, low, high) with the mouse."""
    page.evaluate(f"document.getElementById('{panel}').scrollIntoView({{block: 'center'}})")
    box = page.locator(f"#{panel} canvas").bounding_box()
    across, up = (
        [page.evaluate(f"(v) => document.getElementById('{panel}').plot.place('{axis}', v)", v) for v in ends]
        for axis, ends in (("x", window[:2]), ("y", window[2:]))
    )
    page.mouse.move(box["x"] + across[0], box["y"] + up[1])
    page.mouse.down()
    page.mouse.move(box["x"] + across[1], box["y"] + up[0], steps=3)
    page.mouse.up()
    return np.array([0.5 * np.abs(np.diff(window[:2]))[0], 0.5 * np.abs(np.diff(window[2:]))[0]]) / 50  # to some pixels


def values_at(model, page, data):
    """What the model says where the picture has points, (up, across)."""
    state = page.evaluate("({at: state.at, axes: state.axes})")
    X = np.tile(state["at"], (len(data["y"]), len(data["x"]), 1))
    X[..., state["axes"][0]], X[..., state["axes"][1]] = np.meshgrid(data["x"], data["y"])
    return model(X.reshape(-1, X.shape[-1])).reshape(X.shape[:2])


def test_the_picture_is_as_fine_as_the_screen_wherever_it_is_zoomed_to(show, image):
    model = wavy(2)
    page = show(model, 500)
    page.evaluate("LIMITS.seconds = 1000")  # on a busy machine, too
    for window in (None, [0.3, 0.5, 0.6, 0.8]):
        if window:
            settle(page, "fine")
            drag(page, window)
        data = image(page, how="fine")
        width, height = page.evaluate("plotArea(document.getElementById('map'))")
        assert len(data["x"]) == pytest.approx(width, rel=0.2)  # the margins settle after the first pass
        assert len(data["y"]) == pytest.approx(height, rel=0.2)
        if window:
            assert (data["x"][0], data["x"][-1], data["y"][0], data["y"][-1]) == pytest.approx(window, abs=0.01)  # some pixels
        np.testing.assert_allclose(np.array(data["z"]), values_at(model, page, data), rtol=1e-7, atol=1e-9)
    assert page.locator("#status").inner_text() == ""
    page.locator("#whole").click()
    assert image(page)["x"][0] == pytest.approx(model.model_.frame[0, 0])


def test_several_workers_say_what_one_says(browser, tmp_path):
    model, answers = wavy(2), []
    write_report(model, tmp_path / "report.html")
    for count in (1, 8):
        page = browser.new_page(viewport={"width": 600, "height": 700})
        page.add_init_script(f"Object.defineProperty(navigator, 'hardwareConcurrency', {{ get: () => {count} }})")
        page.goto((tmp_path / "report.html").as_uri())
        page.wait_for_selector("body[data-fine]", timeout=120_000)
        assert page.evaluate("sources[0].answerers.length") == min(count, 4)
        grid = {"at": [0.5, 0.5], "axes": [0, 1], "low": [0, 0], "high": [1, 1], "size": [151, 97]}
        ask = "async (grid) => Array.from(await sources[0].layer(grid, 'gradient', 0, () => true))"
        answers.append(page.evaluate(ask, grid))
        page.close()
    assert answers[0] == answers[1]
    X = np.stack(np.meshgrid(np.linspace(0, 1, 151), np.linspace(0, 1, 97), indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(answers[0], np.linalg.norm(model.gradient(X), axis=1), rtol=1e-6, atol=1e-7)


def test_a_field_over_decades_has_logarithmic_colours(show, shown):
    X = np.random.default_rng(0).uniform(size=(800, 2))
    page = show(fit(X, 10.0 ** (4 * X[:, 0])))
    settle(page)
    scale = shown(page)["scale"]
    assert scale["kind"] == "log"
    assert scale["high"] / scale["low"] > 100
    span = np.log10(scale["high"] / scale["low"])
    for tick in scale["ticks"]:
        assert np.log10(float(tick["text"]) / scale["low"]) / span == pytest.approx(tick["at"], abs=0.01)
    page.locator("#colors").select_option("linear")
    settle(page)
    assert shown(page)["scale"]["kind"] == "linear"


def test_colours_are_linear_where_a_logarithm_does_not_help(show, shown):
    X = np.random.default_rng(0).uniform(size=(800, 2))
    page = show(fit(X, 0.001 + 100.0 * X[:, 0]))  # five decades, but evenly spread
    settle(page)
    assert shown(page)["scale"]["kind"] == "linear"


def test_colours_mean_the_same_on_every_screen_and_slice(show, shown):
    model, ranges = wavy(3), []
    for width in (400, 1200):
        page = show(model, width)
        settle(page)
        ranges.append((shown(page)["scale"]["low"], shown(page)["scale"]["high"]))
    other = page.evaluate("[0, 1, 2].find((k) => !state.axes.includes(k))")
    page.locator(f"#slider{other}").press("End")
    settle(page)
    ranges.append((shown(page)["scale"]["low"], shown(page)["scale"]["high"]))
    assert ranges[0] == ranges[1] == ranges[2]
    y = model.predict(model.model_.X)
    assert ranges[0][0] <= y.min() < y.max() <= ranges[0][1]
    page.locator("#colors").select_option("slice")
    settle(page)
    assert shown(page)["scale"]["low"] > ranges[0][0]


def test_what_is_being_computed_says_so_and_what_stays_coarse_does_too(show, image):
    page = show(wavy(2))
    settle(page, "fine")
    fine = len(image(page)["x"])
    note = "new MutationObserver(() => told.push($('status').textContent)).observe($('status'), { childList: true })"
    page.evaluate(f"window.told = []; {note}; draw()")
    settle(page, "fine")
    assert any(text.startswith("computing…") for text in page.evaluate("told"))
    page.evaluate("LIMITS.seconds = 0; draw()")
    settle(page, "fine")
    assert page.locator("#status").inner_text().startswith("Coarse: one value for 16 × 16 pixels")
    assert len(image(page)["x"]) < fine / 10
    page.get_by_role("button", name="Compute it finer").click()
    page.wait_for_function("$('status').textContent === ''")
    assert len(image(page)["x"]) == fine


def test_what_is_constant_is_drawn_as_one_colour(show, shown):
    X = np.random.default_rng(0).uniform(size=(300, 2))
    page = show(fit(X, 3.0 + X[:, 0]))  # value varies, its slope does not, and it does not bend
    assert "constant" not in shown(page)["title"]
    for layer, value in (("gradient", 1.0), ("laplacian", 0.0)):
        page.locator("#layer").select_option(layer)
        settle(page)
        assert shown(page)["scale"]["constant"] == pytest.approx(value, abs=1e-6)
        assert "constant" in shown(page)["title"]


def test_data_are_dots_so_that_holes_are_seen(show, shown):
    X = np.random.default_rng(0).uniform(-1, 1, size=(9000, 2))
    X = X[np.hypot(*X.T) > 0.5]
    page = show(fit(X, X[:, 0]))
    page.wait_for_function("document.getElementById('map').plot.spec.veil")
    dots = data_dots(shown(page))
    places = np.stack([dots["x"], dots["y"]], axis=1)
    assert 1000 < len(places) <= 3000
    assert np.hypot(*places.T).min() > 0.5
    assert set(map(tuple, places.round(9))) <= set(map(tuple, X.round(9)))
    veil = shown(page)["veil"]
    across, up = np.searchsorted(veil["x"], 0.0), np.searchsorted(veil["y"], 0.0)
    assert veil["z"][up][across] < 0.1 < veil["z"][0][0]
    assert page.locator("#veil-key").is_visible()
    page.locator("#dots").uncheck()
    settle(page)
    assert data_dots(shown(page)) is None


def data_dots(plot):
    return next((mark for mark in plot["marks"] if mark.get("about") == "data"), None)


def test_dots_are_those_near_the_slice(show, shown):
    page = show(wavy(3, n=2000))
    assert 100 < len(data_dots(shown(page))["x"]) < 1500


def test_deviations_stand_beside_values(show, image):
    model = wavy(3)
    page = show(model)
    beside = image(page, "map1")
    state = page.evaluate("({at: state.at, axes: state.axes})")
    x = np.array(state["at"])
    x[state["axes"]] = beside["x"][7], beside["y"][3]
    expected = model.predict(x[None], return_std=True)[1][0]
    assert beside["z"][3][7] == pytest.approx(expected, rel=1e-9)
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
    assert lightness(page, "body") < 0.2
    page.locator("#theme").click()
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


def test_degrees_have_the_aspect_of_the_ground(show, shown):
    X = np.random.default_rng(0).uniform(size=(300, 2)) * [10, 20] + [5, 50]
    page = show(fit(X, X[:, 0], ["lon", "lat"]))
    settle(page)
    middle = np.radians(0.5 * (X[:, 1].min() + X[:, 1].max()))
    for window in (None, [7, 11, 60, 64]):
        if window:
            settle(page, "fine")
            drag(page, window)
            settle(page)
        for panel in ("map", "map1"):
            plot = f"document.getElementById('{panel}').plot"
            sizes = [page.evaluate(f"Math.abs({plot}.place('{axis}', 1) - {plot}.place('{axis}', 0))") for axis in "xy"]
            assert sizes[1] / sizes[0] == pytest.approx(1 / np.cos(middle), rel=0.01)  # whole pixels
        if window:
            ranges = [shown(page, panel)[axis]["range"] for panel in ("map", "map1") for axis in "xy"]
            np.testing.assert_allclose(ranges, [[7, 11], [60, 64]] * 2, atol=0.2)  # some pixels


def test_two_models_share_slices_and_colours_and_show_their_difference(show, shown):
    first, second = wavy(2), wavy(2, seed=1, kernel="cubic")
    page = show({"a": first, "b": second})
    page.evaluate("PASSES.length = 1, draw()")  # finer ones come panel by panel
    settle(page, "fine")
    assert shown(page, "map")["scale"] == shown(page, "map1")["scale"]
    a, b, difference = (shown(page, panel)["image"] for panel in ("map", "map1", "map2"))
    assert (a["x"][0], a["x"][-1], a["y"][0], a["y"][-1]) == (b["x"][0], b["x"][-1], b["y"][0], b["y"][-1])
    for model, data in ((first, a), (second, b)):
        np.testing.assert_allclose(np.array(data["z"]), values_at(model, page, data), rtol=1e-7, atol=1e-9)
    expected = values_at(second, page, difference) - values_at(first, page, difference)
    np.testing.assert_allclose(difference["z"], expected, rtol=1e-7, atol=1e-9)
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


def test_points_that_came_later_are_told_apart(show, shown):
    model = StitchedRegressor(**SETTINGS).fit(*wavy(2).leave_one_out()[:2])
    X = np.random.default_rng(3).uniform(0.4, 0.6, (30, 2))
    page = show(model.partial_fit(X, np.sin(5 * X[:, 0]) + X.sum(axis=1) ** 2))
    settle(page)
    assert "30 added since it was fitted" in page.inner_text("#added")
    dots = data_dots(shown(page))
    later = np.array(["224, 76, 12" in color for color in dots["colors"]])
    assert later.sum() == 30
    assert {tuple(x) for x in np.stack([dots["x"], dots["y"]], axis=1)[later]} == {tuple(x) for x in X}
