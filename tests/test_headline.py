"""What the page says first: the size of errors in words, held-out data before others, and where predictions are good and bad."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor
from stitchwork._parallel import ALONE
from stitchwork.report import write_report
from stitchwork.report._headline import headlines
from stitchwork.report._payload import payload
from stitchwork.report._ranges import find_range
from stitchwork.views.columns import find_columns

FIXED = {"selection": None, "region_size": 60, "kernel": "gaussian", "ridge": 1e-2}


@pytest.fixture(scope="module")
def noisy():
    """Noise that grows to the right: ten times as large there."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 2))
    y = np.sin(6 * X[:, 1]) + np.where(X[:, 0] > 0.6, 0.5, 0.05) * rng.normal(size=900)
    return StitchedRegressor(**FIXED).fit(X, y), X, y


def test_the_first_sentence_is_the_error_in_words_and_as_a_share_of_the_spread(noisy):
    model, _, y = noisy
    first, where, intervals = payload(model.model_, None, "", live=False)["headline"][0]
    residual = model.leave_one_out().residual
    error = np.sqrt(np.mean(residual**2))
    assert f"typically {error:.3g}, which is {100 * error / y.std():.2g} % of its spread" in first
    assert "large" in first
    assert "each point predicted from all others" in first
    assert where.startswith("Predictions are best where x0 is 0")
    assert "worst where x0 is 0." in where
    assert "90 % intervals hold" in intervals


def test_rows_that_were_held_out_come_before_leave_one_out(noisy):
    model, X, y = noisy
    other = np.random.default_rng(1).uniform(size=(300, 2))
    test = other, np.full(300, 7.0)
    first = payload(model.model_, test, "", live=False)["headline"][0][0]
    assert "on 300 rows that it was not fitted to" in first
    assert "all others" in payload(model.model_, (X, y), "", live=False)["headline"][0][0]  # those it was fitted to say little


@pytest.mark.parametrize(
    ("share", "word"), [(0.005, "very small"), (0.03, "small"), (0.1, "moderate"), (0.4, "large"), (0.8, "very large")]
)
def test_words_for_sizes(noisy, share, word):
    model, X, y = noisy
    given = [("leave-one-out", X, y[:, None], np.full((len(y), 1), share * y.std()))]
    assert f"Errors of y are {word}: " in headlines(model.model_, given, None)[0][0]


def test_a_model_that_learned_nothing_says_so(noisy):
    model, X, y = noisy
    given = [("leave-one-out", X, y[:, None], (y - y.mean())[:, None])]
    told = headlines(model.model_, given, np.array([0.6]))[0]
    assert "no better than by its mean" in told[0]
    assert told[-1].endswith("they are too narrow.")


def test_columns_of_words_and_dates_are_told_apart(noisy):
    from dataclasses import replace

    rng = np.random.default_rng(0)
    words = np.eye(3)[rng.integers(3, size=300)]
    X = np.column_stack([rng.uniform(17_000, 18_000, 300), words, rng.uniform(size=300)])
    model = StitchedRegressor(**FIXED).fit(X, X[:, 4] + words[:, 0]).model_
    names = ["day", "soil=clay", "soil=sand", "soil=peat", "lag=1"]
    about = {name: {"category": "soil"} for name in names[1:4]} | {"day": {"units": "days since 1970-01-01"}}
    model = replace(model, origin=replace(model.origin, feature_names=names, attributes=about))
    found = [(column.name, column.kind, column.features, column.words) for column in find_columns(model)]
    assert found == [
        ("day", "date", [0], []),
        ("soil", "category", [1, 2, 3], ["clay", "sand", "peat"]),
        ("lag=1", "number", [4], []),
    ]
    facts = payload(model, None, "", live=False)
    assert facts["axes"] == [0, 4]  # words make poor axes
    assert np.array(facts["relevance"]).shape == (1, 3)
    assert np.sum(facts["relevance"]) == pytest.approx(1.0)


def test_words_dates_and_many_columns_have_controls_that_fit(open_page, tmp_path):
    from dataclasses import replace

    from stitchwork.report._page import write_page

    rng = np.random.default_rng(0)
    words, n = np.eye(150)[rng.integers(150, size=600)], 600
    X = np.column_stack([rng.uniform(17_000, 18_000, n), words, rng.uniform(size=(n, 14))])
    model = StitchedRegressor(**FIXED).fit(X, np.sin(X[:, 0] / 100) + words[:, 3] + X[:, -1]).model_
    names = ["day", *(f"place=p{k}" for k in range(150)), *(f"x{k}" for k in range(14))]
    about = {name: {"category": "place"} for name in names[1:151]} | {"day": {"units": "days since 1970-01-01"}}
    frame = model.frame.copy()
    frame[2, 1:151] = np.eye(150)[0]
    model = replace(model, frame=frame, origin=replace(model.origin, feature_names=names, attributes=about))
    write_page({"m": model}, tmp_path / "r.html", None, "m", ALONE)
    page = open_page((tmp_path / "r.html").as_uri(), 400)
    assert page.evaluate("document.documentElement.scrollHeight") < 5000
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.locator("#ask select").count() == 1
    assert page.locator("#ask select option").count() == 150
    assert page.locator("#ask details summary").inner_text() == "6 more columns"
    assert page.locator("#x0").get_attribute("type") == "date"
    page.locator("#ask select").select_option(label="p3")
    page.get_by_role("button", name="Show its regions").click()
    page.wait_for_selector("#contributions table")
    at = np.array(page.evaluate("state.at"))
    assert at[1:151].sum() == at[4] == 1.0
    assert "place p3" in page.locator("#contributions").inner_text()
    page.locator("#x0").fill("2017-03-01")
    page.wait_for_function("Math.abs(state.at[0] - 17226) < 1e-9")


def test_the_range_of_colours_ignores_few_that_stand_out():
    values = np.concatenate([np.linspace(0.0, 1.0, 5000), [1000.0]])
    assert find_range(values, 0.0005)["high"] < 1.1
    assert find_range(values[:-1], 0.0005)["high"] == 1.0


def test_the_page_of_the_readme_s_table_is_small(tmp_path):
    from stitchwork.datasets import make_2d

    data = make_2d(3000)
    write_report(StitchedRegressor(selection=None).fit(data.data, data.target), tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 2_000_000


def test_errors_of_two_models_fit_a_phone(open_page, tmp_path, noisy):
    from stitchwork.report._page import write_page

    model, X, y = noisy
    models = dict.fromkeys(("first.stitch", "second.stitch"), model.model_)
    write_page(models, tmp_path / "r.html", (X, y.reshape(-1, 1)), "data it was fitted to", ALONE)
    page = open_page((tmp_path / "r.html").as_uri(), 400)
    page.wait_for_selector("#error-table td")
    assert page.locator("#error-table th").all_inner_texts()[-1] == "data it was fitted to"
    table = "document.getElementById('error-table').parentElement"
    assert page.evaluate(f"{table}.scrollWidth - {table}.clientWidth") <= 0
