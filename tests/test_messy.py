"""Tables as people keep them: dates in any order, money, workbooks, gaps, and columns that only name rows."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from stitchwork import StitchedRegressor, load
from stitchwork._validation.fills import repeated_far_value
from stitchwork.cli import app
from stitchwork.cli.cells import kind_of, number_of, quantity_of
from stitchwork.cli.console import Console
from stitchwork.cli.dates import days_of, orders_in
from stitchwork.cli.imputing import Filler
from stitchwork.cli.notices import counts_rows, names_groups
from stitchwork.cli.tables import open_table
from stitchwork.cli.text import Reading

FAST = ["--set", "kernel=cubic", "--set", "selection=null"]  # what is chosen is no matter here


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(60, 2)), columns=["a", "b"])
    return frame.assign(y=frame["a"] + 2 * frame["b"])


def write(folder, frame, name="t.csv"):
    frame.to_csv(folder / name, index=False)
    return folder / name


@pytest.mark.parametrize(
    ("cell", "decimal", "number"),
    [
        ("$978.01", ".", 978.01),
        ("-$5", ".", -5.0),
        ("$-5", ".", -5.0),
        ("12,881,816", ".", 12881816.0),
        ("12,881,816.25", ".", 12881816.25),
        ("45 %", ".", 45.0),
        ("1.234.567,89 €", ",", 1234567.89),
        ("12 881", ".", 12881.0),
        ("€1'234.5", ".", 1234.5),
        ("1e3", ".", 1000.0),
    ],
)
def test_marks_around_numbers_do_not_count(cell, decimal, number):
    assert quantity_of(cell, decimal) == number


@pytest.mark.parametrize("cell", ["12,88", "1,2,3", "12,881,81", "$", "5 kg", "$5$", "--5", "1-2", "31/12/2020", "A5"])
def test_what_is_no_quantity_is_none(cell):
    assert quantity_of(cell) is None
    assert number_of(cell) is None


def test_money_and_thousands_of_a_file_are_read_and_said(tmp_path):
    (tmp_path / "t.csv").write_text('price,people,share\n$978.01,"12,881,816",45 %\n$1,"1,000",7 %\n')
    table = open_table(tmp_path / "t.csv")
    assert "without $ in price, thousands marks in people, % in share" in table.note
    np.testing.assert_array_equal(table.read(table.names), [[978.01, 12881816, 45], [1, 1000, 7]])


def test_decimal_commas_are_not_taken_for_thousands(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,234;5,678\n2,345;6,789\n")
    np.testing.assert_array_equal(open_table(tmp_path / "t.csv").read(["a", "b"]), [[1.234, 5.678], [2.345, 6.789]])


def days(iso):
    return float(np.datetime64(iso, "D").astype(int))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_day_above_twelve_tells_how_a_whole_column_is_read(tmp_path, suffix):
    """It may stand far below the rows that are looked at first."""
    cells = ["03/04/2020"] * 5000
    for last, first in (("31/12/2020", "2020-04-03"), ("12/31/2020", "2020-03-04")):
        frame = pd.DataFrame({"day": [*cells, last], "y": 1.0})
        frame.to_csv(tmp_path / "t.csv", index=False) if suffix == "csv" else frame.to_parquet(tmp_path / "t.parquet")
        found = open_table(tmp_path / f"t.{suffix}").read(["day"])[:, 0]
        assert found[0] == days(first)
        assert found[-1] == days("2020-12-31")


def test_dates_that_nothing_tells_are_refused_until_the_user_does(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("day,y\n03/04/2020,1\n05/06/20,2\n")
    with pytest.raises(ValueError, match=r"in two ways, such as 03/04/2020, and no day above 12 .* `--date-format dmy`"):
        open_table(path).read(["day"])
    assert open_table(path, Reading(date_format="dmy")).read(["day"])[:, 0].tolist() == [days("2020-04-03"), days("2020-06-05")]
    assert open_table(path, Reading(date_format="mdy")).read(["day"])[1, 0] == days("2020-05-06")
    path.write_text("day,y\n31/04/2020,1\n05/16/2020,2\n")
    with pytest.raises(ValueError, match="'31/04/2020' has the day first, '05/16/2020' has the month first"):
        open_table(path).read(["day"])


def test_dates_are_read_by_the_format_that_is_given(tmp_path):
    (tmp_path / "t.csv").write_text("day,plain,y\n3 Jan 2020,2020-01-03,1\n31 Dec 2020,2020-12-31,2\n")
    found = open_table(tmp_path / "t.csv", Reading(date_format="%d %b %Y")).read(["day", "plain"])
    assert found[:, 0].tolist() == found[:, 1].tolist() == [days("2020-01-03"), days("2020-12-31")]
    for wrong in ("%q", "noon", "%d", "ymd"):
        with pytest.raises(ValueError, match="`--date-format` must be"):
            Reading(date_format=wrong)


def test_orders_of_dates():
    assert orders_in(["3/4/2020", "13/4/2020"]) == {"dmy": "13/4/2020"}
    assert set(orders_in(["13/4/2020", "4/13/2020"])) == {"dmy", "mdy"}
    assert days_of("3/4/69", "dmy") == days("1969-04-03")
    assert kind_of(["3/4/2020"], form="dmy") == "date"


def test_workbooks_are_tables(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks need openpyxl: pip install 'stitchwork[files]'")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Runs"
    sheet.append([])
    sheet.append(["day", "soil", "depth", "y"])
    for k in range(40):
        moment = pd.Timestamp("2020-01-01") + pd.Timedelta(days=k)
        sheet.append([moment.to_pydatetime(), "clay" if k % 2 else "sand", k / 40, None if k == 3 else float(k)])
    book.create_sheet("Notes").append(["nothing", "here"])
    book.save(tmp_path / "t.xlsx")
    table = open_table(tmp_path / "t.xlsx")
    assert table.names == ["day", "soil", "depth", "y"]
    assert [table.kind(name) for name in table.names] == ["date", "word", "number", "number"]
    assert "sheet 'Runs', not 'Notes'" in table.note
    found = table.read(["day", "depth", "y"])
    assert found[1].tolist() == [days("2020-01-02"), 1 / 40, 1.0]
    assert np.flatnonzero(np.isnan(found[:, 2])).tolist() == [3]
    with pytest.raises(ValueError, match=r"has no sheet 'x'\. Its sheets: Runs, Notes"):
        open_table(tmp_path / "t.xlsx", Reading(sheet="x"))
    assert open_table(tmp_path / "t.xlsx", Reading(sheet="Notes")).names == ["nothing", "here"]
    (tmp_path / "no.xlsx").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is not a workbook"):
        open_table(tmp_path / "no.xlsx")
    run("fit", tmp_path / "t.xlsx", "-t", "y", "--drop-missing", "-o", tmp_path / "m.stitch", "--quick", *FAST)
    assert load(tmp_path / "m.stitch").model_.feature_names == ["day", "soil=sand", "soil=clay", "depth"]


def test_a_lone_stand_in_is_announced():
    values = np.random.default_rng(0).uniform(1, 5, 200)
    assert repeated_far_value(values) is None
    values[17] = 9.5  # far out, but no stand-in
    assert repeated_far_value(values) is None
    for fill in (-9999.0, 99999.0, -20.0):
        values[17] = fill
        assert repeated_far_value(values) == (fill, 1)


def test_spellings_blanks_and_stand_ins_are_told_of(tmp_path, table):
    table["land"] = np.where(np.arange(60) % 3 == 0, "africa", np.where(np.arange(60) % 3 == 1, "Africa", "Asia "))
    table.loc[7, "b"] = -9999.0
    said = run("fit", write(tmp_path, table), "-t", "y", "-o", tmp_path / "m.stitch", "--quick", *FAST).stderr
    assert "-9999 stands once in column 'b', far from all other values" in said
    assert "column 'land' spells categories in several ways, and each counts as one of its own: 'africa' and 'Africa'." in said
    assert "column 'land' has blanks around 20 of its words" in said


def test_names_of_rows_and_of_groups_are_noticed():
    counted, lines = np.arange(1.0, 101.0), np.repeat(np.arange(10.0), 10)
    assert counts_rows("k", counted)
    assert counts_rows("sample_id", np.random.default_rng(0).permutation(counted))
    assert not counts_rows("depth", np.random.default_rng(0).permutation(counted))
    assert names_groups("flight_line", lines)
    assert names_groups("StationID", lines)
    assert not names_groups("year", lines)
    assert not names_groups("line", counted)


def test_identifiers_are_suggested_for_exclude_or_groups(tmp_path, table):
    table["row_id"], table["flight_line"] = np.arange(60) + 1, np.repeat(np.arange(6), 10)
    path, model = write(tmp_path, table), tmp_path / "m.stitch"
    said = run("fit", path, "-t", "y", "-o", model, "--quick", *FAST).stderr
    assert "column 'row_id' seems to number the rows. Leave it out with `--exclude row_id`." in said
    assert "column 'flight_line' seems to name 6 groups of rows" in said
    assert run("fit", path, "-t", "y", "-f", "a,b", "-o", model, "--quick", *FAST).stderr == ""


def test_a_weight_with_the_name_of_a_standard_error_is_told_of(tmp_path, table):
    table["y_std"], table["count"] = np.linspace(0.1, 1.0, 60), np.arange(60) % 3 + 1
    path, model = write(tmp_path, table), tmp_path / "m.stitch"
    common = ("fit", path, "-t", "y", "-f", "a,b", "-o", model, "--quick", *FAST)
    assert "If it is one, say `--error y_std` instead." in run(*common, "--sample-weight", "y_std").stderr
    assert run(*common, "--sample-weight", "count").stderr == ""
    assert run(*common, "--error", "y_std").stderr == ""


def test_places_constants_and_names_with_blanks_are_told_of(tmp_path, table):
    table["Longitude"], table["lat"] = 10 * table["a"], 80 * table["b"]
    table["site code"], table["unit"] = np.repeat(np.arange(6), 10), "ppm"
    path, model = write(tmp_path, table), tmp_path / "m.stitch"
    said = run("fit", path, "-t", "y", "-o", model, "--quick", *FAST).stderr
    assert "'Longitude' and 'lat' look like places on the globe. Say `--geographic Longitude,lat` if they are." in said
    assert "'unit': the same value in every row, which tells nothing. Leave out with `--exclude unit`." in said
    assert "`--groups 'site code'`" in said
    fewer = ["--exclude", "site code,unit", "--geographic", "Longitude,lat"]
    assert run("fit", path, "-t", "y", "-o", model, "--quick", *FAST, *fewer).stderr == ""
    table["lat"] += 500.0
    assert "globe" not in run("fit", write(tmp_path, table), "-t", "y", "-o", model, "--quick", *FAST).stderr


def test_unknown_categories_are_counted_by_their_words(tmp_path, table):
    table["soil"] = np.where(np.arange(60) % 2, "clay", "sand")
    model = tmp_path / "m.stitch"
    run("fit", write(tmp_path, table), "-t", "y", "-o", model, "--quick", *FAST)
    table["soil"] = ["peat"] * 3 + ["chalk"] + ["clay"] * 56
    new = write(tmp_path, table, "new.csv")
    said = run("predict", model, new, "-o", tmp_path / "p.csv", code=2).stderr
    assert "soil ('peat' (3 rows), 'chalk' (1 row) are not known categories of soil: sand, clay. Refit the model" in said
    assert "in 4 rows (1, 2, 3, 4)" in said
    said = run("predict", model, new, "-o", tmp_path / "p.csv", "--drop-missing").stdout
    assert "60 predicted, 4 of them empty: 'peat' (3 rows), 'chalk' (1 row) are not known categories" in said
    assert "4 lack a number and are left out ('peat' (3 rows)" in run("evaluate", model, new, "--drop-missing").stdout


@pytest.mark.parametrize(
    ("cell", "said"), [("=1+1", True), ("@sum(a1)", True), ("-cmd|' /c calc'!a0", True), ("-", False), ("a=b", False)]
)
def test_cells_that_a_spreadsheet_would_calculate_are_told_of(tmp_path, table, cell, said):
    model, data = tmp_path / "m.stitch", write(tmp_path, table.assign(note=np.where(np.arange(60) % 2, cell, "plain")))
    run("fit", data, "-t", "y", "--features", "a,b", "-o", model, "--quick", *FAST)
    result = run("predict", model, data, "-o", tmp_path / "out.csv")
    assert ("'note': cells begin with =, +, - or @" in result.stderr) == said
    assert list(pd.read_csv(tmp_path / "out.csv")["note"][:2]) == ["plain", cell]
    assert "formulas" not in run("predict", model, data, "-o", tmp_path / "out.parquet").stderr


def test_outlier_advice_names_the_row_and_the_columns_of_the_file(tmp_path, table):
    table["soil"] = np.where(np.arange(60) % 2, "clay", "sand")
    table.loc[41, "y"], table.loc[11, "y"] = 500.0, -300.0
    table.loc[3, "a"] = np.nan
    path = write(tmp_path, table)
    lines = run("fit", path, "-t", "y", "--drop-missing", "-o", tmp_path / "m.stitch").stdout.splitlines()
    advice = [line for line in lines if line.startswith("advice") and "far from what the others say" in line]
    assert len(advice) == 1
    assert f"(row 42: a = {table['a'][41]:.6g}, b = {table['b'][41]:.6g}, soil = clay; also in rows 12" in advice[0]
    assert "`--robust`" in advice[0]
    said = run("fit", path, "-t", "y", "--drop-missing", "--robust", "-o", tmp_path / "m.stitch").stdout
    assert "gross errors   2 rows are left out: 12, 42" in said


def test_latitudes_and_logarithms_name_the_row_of_the_file(tmp_path):
    frame = pd.DataFrame({"lon": [0.0, np.nan, 5.0, 7.0], "lat": [10.0, 20.0, 95.0, 3.0], "y": [1.0, 2.0, 3.0, -1.0]})
    path = write(tmp_path, frame)
    arguments = ["fit", path, "-t", "y", "--drop-missing", "-o", tmp_path / "m.stitch"]
    assert "'lat' has 95 in row 3" in run(*arguments, "--geographic", "lon,lat", code=2).stderr
    assert "'y' has -1 in row 4" in run(*arguments, "--log", code=2).stderr
    write(tmp_path, frame[frame["lat"] < 90], "good.csv")
    good = ["fit", tmp_path / "good.csv", "-t", "y", "--drop-missing", "-o", tmp_path / "m.stitch", "--geographic", "lon,lat"]
    run(*good, "--quick")
    said = run("predict", tmp_path / "m.stitch", path, "--drop-missing", "-o", tmp_path / "p.csv", code=2).stderr
    assert "'lat' has 95 in row 3" in said
    assert not (tmp_path / "p.csv").exists()
    assert "'lat' has 95 in row 3" in run("evaluate", tmp_path / "m.stitch", path, "--drop-missing", code=2).stderr


@pytest.mark.parametrize("how", ["median", "model"])
def test_what_features_lack_is_filled_in_and_announced(tmp_path, table, how):
    frame = table.copy()
    frame.loc[[3, 7], "b"] = np.nan
    frame.loc[9, "y"] = np.nan
    path, model = write(tmp_path, frame), tmp_path / "m.stitch"
    assert "--impute median" not in run("fit", path, "-t", "y", "-o", model, code=2).stderr  # a target lacks a number, too
    said = run("fit", path, "-t", "y", "-o", model, "--impute", how, "--drop-missing", "--quick", *FAST).stdout
    words = {"median": "medians", "model": "models of the other features"}[how]
    assert f"59 of 60: 1 lack a number and are left out; what 2 rows lacked is filled in by {words}" in said
    assert load(model).model_.n_points == 59
    assert "must be one of median, model" in run("fit", path, "-t", "y", "-o", model, "--impute", "mean", code=2).stderr
    said = run("predict", model, path, "-o", tmp_path / "p.csv", "--impute", how).stdout
    assert f"60 predicted, 2 of them with features filled in by {words}" in said
    assert np.isfinite(open_table(tmp_path / "p.csv").read(["y"])).all()


def test_a_model_fills_in_what_depends_on_other_columns():
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(300, 3))
    rows[:, 2] = np.sin(3 * rows[:, 0]) + rows[:, 1]
    holes = rows.copy()
    holes[::10, 2] = np.nan
    by_model = Filler(holes, [False] * 3, "model")(holes)[::10, 2]
    by_median = Filler(holes, [False] * 3, "median")(holes)[::10, 2]
    np.testing.assert_array_equal(by_median, np.nanmedian(holes[:, 2]))
    assert np.abs(by_model - rows[::10, 2]).max() < 0.05 * np.abs(by_median - rows[::10, 2]).max()
    words = np.array([[0.0, 1.0], [1.0, 1.0], [np.nan, 0.0], [1.0, np.nan]])
    np.testing.assert_array_equal(Filler(words, [True, True], "model")(words), [[0, 1], [1, 1], [1, 0], [1, 1]])


def test_the_time_is_that_of_all_stages(tmp_path, table, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("stitchwork.cli.console.time.perf_counter", lambda: clock[0])
    console = Console()
    for stage, seconds in (("reading", 1.0), ("fit", 14.7), ("leave-one-out", 60.0), ("fit", 0.3)):
        clock[0] += 0.5 if stage == "reading" else 0.0
        console.enter(stage)
        clock[0] += seconds
    assert console.took() == "76.5 s (starting 0.5, reading 1.0, fit 15.0, leave-one-out 60.0)"
    assert Console().took() == "0.0 s"


def test_quick_fits_and_saves_alone(tmp_path, table, monkeypatch):
    path = write(tmp_path, table)
    monkeypatch.setattr("stitchwork.model.stitched.StitchedModel.left_out", None)  # must not be asked
    monkeypatch.setattr("stitchwork.model.stitched.StitchedModel.calibration", None)
    said = run("fit", path, "-t", "y", "-o", tmp_path / "m.stitch", "--quick", *FAST).stdout
    assert "not computed   leave-one-out, noise and advice (--quick)" in said
    monkeypatch.undo()
    loaded = load(tmp_path / "m.stitch")
    assert loaded.model_.known_loo_error is None
    ours = StitchedRegressor(kernel="cubic", selection=None).fit(table[["a", "b"]].to_numpy(), table["y"].to_numpy())
    assert loaded.loo_error_ == pytest.approx(ours.loo_error_, rel=1e-9)


def test_logarithms_are_judged_on_their_scale_as_well(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, 300)
    frame = pd.DataFrame({"x": x, "y": np.exp(2 * x + 0.1 * rng.normal(size=300))})
    frame.loc[5, "y"] = np.exp(2 * x[5]) / 1e9  # a gross error of log y that is small in y
    path, model = write(tmp_path, frame), tmp_path / "m.stitch"
    said = run("fit", path, "-t", "y", "--log", "-o", model).stdout
    assert "leave-one-out  log y: RMSE" in said
    assert "(row 6: x = " in said
    told = run("evaluate", model, path).stdout
    assert "log y: RMSE" in told
    left_out = load(model).model_.left_out()
    error = np.sqrt(np.mean((np.log(left_out.y) - np.log(left_out.y - left_out.residual)) ** 2))
    assert f"leave-one-out  log y: RMSE {error:.3g}" in said


def test_evaluation_compares_with_the_mean_and_the_nearest_point(tmp_path):
    rng = np.random.default_rng(0)
    X, Q = rng.uniform(size=(300, 2)), rng.uniform(size=(100, 2))
    y, z = np.sin(3 * X[:, 0]) * X[:, 1], np.sin(3 * Q[:, 0]) * Q[:, 1]
    z[0], Q[0] = 0.0, 0.0  # relative errors would be infinite
    for name, P, v in (("old", X, y), ("new", Q, z)):
        write(tmp_path, pd.DataFrame({"a": P[:, 0], "b": P[:, 1], "y": v}), f"{name}.csv")
    run("fit", tmp_path / "old.csv", "-t", "y", "-o", tmp_path / "m.stitch", "--set", "metric=euclidean", "--quick")
    told = run("evaluate", tmp_path / "m.stitch", tmp_path / "new.csv").stdout
    predicted = load(tmp_path / "m.stitch").model_.jet(Q, 0).value[:, 0]
    near = y[((Q[:, None] - X) ** 2).sum(axis=2).argmin(axis=1)]
    error = np.abs(predicted - z)
    square = np.mean(error**2)
    figures = f"RMSE {np.sqrt(square):.6g}, mean error {error.mean():.6g}, median error {np.median(error):.6g}, R² "
    assert figures in told
    assert f"skill {1 - square / np.mean((z - y.mean()) ** 2):.4g} against the mean" in told
    assert f"{1 - square / np.mean((z - near) ** 2):.4g} against the nearest known point" in told
    assert "relative" not in told
    assert f"y: half of the predictions are off by less than {np.median(error):.3g}" in told
    assert "times closer than the nearest known point." in told


def test_rows_that_a_model_was_fitted_to_do_not_count_in_its_evaluation(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(160, 2)), columns=["a", "b"])
    frame["y"] = np.sin(3 * frame["a"]) * frame["b"]
    old, new, both = frame[:120], frame[120:], frame
    for name, one in (("old", old), ("new", new), ("both", both)):
        write(tmp_path, one, f"{name}.csv")
    run("fit", tmp_path / "old.csv", "-t", "y", "-o", tmp_path / "m.stitch", "--quick", *FAST)
    alone = run("evaluate", tmp_path / "m.stitch", tmp_path / "new.csv").stdout.splitlines()[3:]
    mixed = run("evaluate", tmp_path / "m.stitch", tmp_path / "both.csv").stdout.splitlines()[3:]
    assert mixed == ["compared       40 rows: the other 120 are in the model", *alone]
    assert "120 of these 120 rows are in the model" in run("evaluate", tmp_path / "m.stitch", tmp_path / "old.csv").stderr


@pytest.mark.parametrize(
    ("cell", "formula"), [("=A1", True), ("-cmd(1)", True), ("@x", True), ("-3.2e-05", False), ("-inf", False), ("+1.5", False)]
)
def test_numbers_in_words_are_no_formulas(cell, formula):
    import pyarrow as pa

    from stitchwork.cli.writing import holds_formulas

    assert holds_formulas(pa.array(["plain", cell])) is formula


@pytest.mark.parametrize("how", ["median", "model"])
def test_a_word_that_the_model_does_not_know_is_never_filled_in(tmp_path, table, how):
    frame = table.assign(kind=np.where(table["a"] > table["a"].median(), "oak", "elm"))
    frame.loc[4, "b"] = np.nan
    model, path, out = tmp_path / "m.stitch", tmp_path / "new.csv", tmp_path / "p.csv"
    run("fit", write(tmp_path, frame), "-t", "y", "-o", model, "--impute", how, "--quick", *FAST)
    before = model.read_bytes()
    some = frame.head(8).copy()
    some.loc[2, "kind"] = "fir"
    some.to_csv(path, index=False)
    said = run("predict", model, path, "-o", out, "--impute", how, "--drop-missing").stdout
    assert "8 predicted, 1 of them empty" in said
    assert "'fir' (1 row) is not a known category" in said
    assert np.flatnonzero(~np.isfinite(open_table(out).read(["y"])[:, 0])).tolist() == [2]
    refused = run("update", model, path, "--impute", how, code=2).stderr
    assert "'fir' (1 row) is not a known category" in refused
    assert "b in" not in refused  # what is filled in is no reason
    assert model.read_bytes() == before
    said = run("update", model, path, "--impute", how, "--drop-missing").stdout
    assert "1 lack a number and are left out ('fir' (1 row)" in said
    assert "60, 0 of them new" in said or how == "model"  # the rows of the fit, filled in as they were there


def test_rows_outside_of_the_data_are_counted(tmp_path, table):
    model, path = tmp_path / "m.stitch", tmp_path / "far.csv"
    run("fit", write(tmp_path, table), "-t", "y", "-o", model, "--quick", *FAST)
    table.assign(a=table["a"] * 1000.0).to_csv(path, index=False)
    said = run("predict", model, path, "-o", tmp_path / "p.csv").stderr
    assert "60 rows lie outside of the data" in said
    assert f"a {table['a'].min():.6g} to {table['a'].max():.6g}" in said
    assert "outside" not in run("predict", model, write(tmp_path, table), "-o", tmp_path / "p.csv").stderr


def test_compressed_text_is_read_and_a_damaged_file_named(tmp_path, table):
    path = tmp_path / "table.csv.gz"
    table.to_csv(path, index=False)
    run("fit", path, "-t", "y", "-o", tmp_path / "m.stitch", "--quick", *FAST)
    assert load(tmp_path / "m.stitch").model_.n_points == len(table)
    path.write_bytes(path.read_bytes()[:200])
    assert "is not a whole gzip file" in run("fit", path, "-t", "y", "-o", tmp_path / "n.stitch", code=2).stderr
    assert not (tmp_path / "n.stitch").exists()
    assert (
        "Name the model first"
        in run("predict", write(tmp_path, table), tmp_path / "m.stitch", "-o", tmp_path / "p.csv", code=2).stderr
    )
    assert "`stitchwork report` draws maps" in run("grid", tmp_path / "m.stitch", "-o", tmp_path / "map.png", code=2).stderr


def test_a_truncated_netcdf_file_is_named(tmp_path):
    xarray = pytest.importorskip("xarray", reason="NetCDF is xarray's: pip install 'stitchwork[files]'")
    path = tmp_path / "field.nc"
    xarray.DataArray(np.random.default_rng(0).normal(size=(60, 60)), dims=("y", "x"), name="z").to_netcdf(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    said = run("fit", path, "-t", "z", "-o", tmp_path / "m.stitch", code=2).stderr
    assert f"'{path}' cannot be read as NetCDF" in "".join(said.splitlines())
