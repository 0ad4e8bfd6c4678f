"""The command line: from a table to a model, predictions, figures, a grid and a page; every mistake is one line and exit code 2."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import stitchwork.native
from stitchwork import StitchedRegressor, load
from stitchwork._parallel import Threads
from stitchwork.cli import app
from stitchwork.cli.tables import open_table
from stitchwork.cli.writing import make_block, table_writer


def command(*arguments, cwd=None):
    """Run a command in this process, in the folder ``cwd``: what it printed, and its exit code."""
    before = os.getcwd()
    os.chdir(cwd or before)
    try:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def started(*arguments, cwd=None, **options):
    """The same as a process of its own, where streams, signals or its surroundings are the point."""
    code = "from stitchwork.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, **options)


def write_table(path, names, rows):
    with table_writer(path, names) as write:
        write(make_block(names, rows))


def response(X):
    return np.sin(3 * X[:, 0]) * X[:, 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """data.csv, and m.stitch fitted to it by the command line."""
    folder = tmp_path_factory.mktemp("cli")
    X = np.random.default_rng(0).uniform(size=(400, 2))
    write_table(folder / "data.csv", ["a", "b", "y", "noise"], np.column_stack([X, response(X), X[:, 0]]))
    result = command("fit", "data.csv", "--target", "y", "--features", "a,b", "-o", "m.stitch", cwd=folder)
    assert result.returncode == 0, result.stderr
    (folder / "said.txt").write_text(result.stdout)
    return folder


def test_samples_at_rows_and_on_a_grid(folder, tmp_path):
    model = load(folder / "m.stitch")
    result = command("sample", "m.stitch", "data.csv", "-n", "3", "-o", tmp_path / "s.csv", cwd=folder)
    assert result.returncode == 0, result.stderr
    table = np.genfromtxt(tmp_path / "s.csv", delimiter=",", names=True)
    X = np.column_stack([table["a"], table["b"]])
    expected = model.sample_y(pd.DataFrame(X, columns=["a", "b"]), 3)
    found = np.column_stack([table[f"y_sample{k}"] for k in range(3)])
    np.testing.assert_allclose(found, expected, atol=1e-6)  # without noise, at data: rounding of systems of condition 1e14
    result = command("sample", "m.stitch", "-n", "2", "--shape", "4,5", "--seed", "1", "-o", tmp_path / "s.nc", cwd=folder)
    assert result.returncode == 0, result.stderr
    field = pytest.importorskip("xarray").load_dataset(tmp_path / "s.nc")
    assert dict(field["y_sample"].sizes) == {"sample": 2, "a": 4, "b": 5}
    both = command("sample", "m.stitch", "data.csv", "--shape", "4", "-o", tmp_path / "t.csv", cwd=folder)
    assert both.returncode == 2
    assert "--shape" in both.stderr


def test_fit_says_what_it_did_and_saves_a_model_with_names(folder):
    said = (folder / "said.txt").read_text()
    assert "leave-one-out" in said
    assert "fitted in" in said
    model = load(folder / "m.stitch")
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.target_names_ == ["y"]
    assert model.n_jobs is None


def test_periods_and_the_globe_are_options(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 24, 300), rng.uniform(-180, 180, 300), rng.uniform(-90, 90, 300)])
    y = np.cos(X[:, 0] * np.pi / 12) + np.cos(np.radians(X[:, 2])) * np.sin(np.radians(X[:, 1]))
    with table_writer(tmp_path / "data.csv", ["hour", "lon", "lat", "y"]) as write:
        write(make_block(["hour", "lon", "lat", "y"], np.column_stack([X, y])))
    options = ["--periodic", "hour=24", "--geographic", "lon,lat", "--set", "kernel=gaussian", "--set", "selection=null"]
    result = command("fit", "data.csv", "-t", "y", *options, "-o", "m.stitch", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "hour has period 24, lon and lat are on the globe" in result.stdout
    model = load(tmp_path / "m.stitch")
    ours = StitchedRegressor(periodic={0: 24}, geographic=(1, 2), kernel="gaussian", selection=None).fit(X, y)
    np.testing.assert_array_equal(model.model_.jet(X, 0).value, ours.model_.jet(X, 0).value)
    told = command("info", "m.stitch", cwd=tmp_path).stdout
    assert "hour, lon, lat" in told
    evaluated = command("evaluate", "m.stitch", "data.csv", cwd=tmp_path)
    assert "300 of these 300 rows are in the model" in evaluated.stderr
    assert "periodic={0: 24.0}" in told


@pytest.mark.parametrize("suffix", ["csv", "npz", "parquet", "nc"])
def test_predictions_and_derivatives_are_columns_by_name(folder, tmp_path, suffix):
    if suffix == "nc":
        pytest.importorskip("xarray", reason="NetCDF needs xarray: pip install 'stitchwork[files]'")
    output = tmp_path / f"out.{suffix}"
    result = command("predict", "m.stitch", "data.csv", "-o", output, "--only", "--gradient", "--hessian", "--coverage", cwd=folder)
    assert result.returncode == 0, result.stderr
    table, model = open_table(output), load(folder / "m.stitch")
    assert table.names == ["y", "dy/da", "dy/db", "d2y/dada", "d2y/dadb", "d2y/dbdb", "coverage"]
    rows, X = table.read(table.names), open_table(folder / "data.csv").read(["a", "b"])
    model.n_jobs = -1  # the same chunks: every bit is the same
    value, gradient, hessian = model.model_.jet(X, 2, Threads(-1))
    np.testing.assert_array_equal(rows[:, 0], value[:, 0])
    np.testing.assert_array_equal(rows[:, 1:3], gradient[:, 0])
    np.testing.assert_array_equal(rows[:, 3:6], hessian[:, 0].reshape(-1, 4)[:, [0, 1, 3]])
    np.testing.assert_array_equal(rows[:, 6], model.coverage(pd.DataFrame(X, columns=["a", "b"])))


def test_deviations_and_intervals_are_columns(folder, tmp_path):
    output = tmp_path / "out.csv"
    result = command("predict", "m.stitch", "data.csv", "-o", output, "--std", "--interval", "0.8", cwd=folder)
    assert result.returncode == 0, result.stderr
    table = open_table(output)
    assert table.names == ["a", "b", "y_given", "noise", "y", "y_std", "y_lower", "y_upper"]
    y, std, lower, upper = table.read(table.names[4:]).T
    assert (std > 0).all()
    np.testing.assert_allclose(y, 0.5 * (lower + upper), rtol=1e-9, atol=1e-12)
    frame = pd.DataFrame(open_table(folder / "data.csv").read(["a", "b"]), columns=["a", "b"])
    model = load(folder / "m.stitch").set_params(n_jobs=-1)  # the same chunks: every bit is the same
    np.testing.assert_array_equal(std, model.predict(frame, return_std=True)[1])
    assert "noise" in (folder / "said.txt").read_text()
    result = command("evaluate", "m.stitch", "data.csv", cwd=folder)
    assert "inside of intervals of 90%" in result.stdout
    assert "CRPS" in result.stdout
    result = command("predict", "m.stitch", "data.csv", "-o", output, "--interval", "90", cwd=folder)
    assert result.returncode == 2
    assert "`--interval` must be a confidence between 0 and 1" in result.stderr


def test_a_file_of_many_blocks_is_predicted_like_one(folder, tmp_path):
    X = np.random.default_rng(1).uniform(size=(150_000, 2))  # three blocks
    write_table(tmp_path / "many.csv", ["b", "a"], X[:, ::-1])
    result = command("predict", folder / "m.stitch", tmp_path / "many.csv", "-o", tmp_path / "out.npz")
    assert "150,000 predicted" in result.stdout
    found = open_table(tmp_path / "out.npz").read(["y"])[:, 0]
    model = load(folder / "m.stitch")
    # In other chunks sums are rounded otherwise, by less than the error of the model.
    np.testing.assert_allclose(found, model(X), atol=model.loo_error_)


def test_evaluate_prints_the_errors(folder):
    result = command("evaluate", "m.stitch", "data.csv", cwd=folder)
    assert result.returncode == 0, result.stderr
    X = open_table(folder / "data.csv").read(["a", "b"])
    model = load(folder / "m.stitch")
    model.n_jobs = -1  # the same chunks: every bit is the same
    rmse = np.sqrt(np.mean((model(X) - response(X)) ** 2))
    assert f"y: RMSE {rmse:.6g}, mean error" in result.stdout
    assert "R² 1" in result.stdout


def test_info_tells_versions_and_whether_predictions_are_compiled(folder):
    result = command("info", "--versions", cwd=folder)
    assert f"stitchwork    {stitchwork.__version__}" in result.stdout
    compiled = stitchwork.native.library() if stitchwork.native.available() else "NumPy answers"
    assert compiled in result.stdout
    assert "Name a saved model" in command("info", cwd=folder).stderr


def test_info_tells_without_loading(folder):
    result = command("info", "m.stitch", cwd=folder)
    assert result.returncode == 0, result.stderr
    facts = {line.split()[0]: line.split(maxsplit=1)[1] for line in result.stdout.splitlines()}
    assert facts["points"] == "400"
    assert facts["features"] == "a, b"
    assert facts["targets"] == "y"


def test_a_grid_is_netcdf_that_xarray_opens(folder, tmp_path):
    xarray = pytest.importorskip("xarray", reason="grids are xarray's: pip install 'stitchwork[files]'")
    result = command("grid", "m.stitch", "--shape", "4,5", "--bounds", "a=0:2", "--gradient", "-o", tmp_path / "f.nc", cwd=folder)
    assert result.returncode == 0, result.stderr
    with xarray.open_dataset(tmp_path / "f.nc") as field:
        assert dict(field.sizes) == {"a": 4, "b": 5}
        assert field["dy_da"].attrs["long_name"] == "dy/da"
        assert float(field["a"][-1]) == 2.0
        point, model = [float(field["a"][1]), float(field["b"][2])], load(folder / "m.stitch")
        assert float(field["y"][1, 2]) == pytest.approx(float(model(point)), abs=model.loo_error_)


def test_the_report_compares_with_a_table_without_a_word(folder, tmp_path):
    result = command("report", "m.stitch", "data.csv", "-o", tmp_path / "r.html", cwd=folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert "data it was fitted to" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_report_shows_two_models_with_or_without_a_table(folder, tmp_path):
    shutil.copy(folder / "m.stitch", tmp_path / "other.model")  # a model by what it is, not by its name
    for data in ([], ["data.csv"]):
        result = command("report", "m.stitch", tmp_path / "other.model", *data, "-o", tmp_path / "r.html", cwd=folder)
        assert (result.returncode, result.stderr) == (0, "")
        text = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert "<title>m.stitch and other.model</title>" in text
        assert ('"data it was fitted to"' in text) == bool(data)
    for wrong, reason in ((["m.stitch"], "m.stitch twice"), (["m.stitch", "m.stitch"], "got 3"), (["none.stitch"], "No such file")):
        result = command("report", "m.stitch", *wrong, "-o", tmp_path / "no.html", cwd=folder)
        assert result.returncode == 2
        assert reason in result.stderr
    assert not (tmp_path / "no.html").exists()


def test_missing_values_are_named_and_dropped_only_if_asked(tmp_path):
    rows = np.random.default_rng(0).uniform(size=(60, 2))
    lines = [f"{a},{b}" if i not in (3, 7, 50) else f",{b}" for i, (a, b) in enumerate(rows)]
    (tmp_path / "t.csv").write_text("a,y\n" + "\n".join(lines))
    result = command("fit", "t.csv", "-t", "y", cwd=tmp_path)
    assert result.returncode == 2
    assert "a in 3 rows (4, 8, 51)" in result.stderr
    assert "--drop-missing" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    result = command("fit", "t.csv", "-t", "y", "--drop-missing", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "57 of 60: 3 lack a number and are left out" in result.stdout
    assert load(tmp_path / "m.stitch").model_.X.shape == (57, 1)
    result = command("predict", "m.stitch", "t.csv", "--drop-missing", "-o", "out.csv", cwd=tmp_path)
    assert "60 predicted, 3 of them empty" in result.stdout
    found = open_table(tmp_path / "out.csv").read(["y"])[:, 0]
    assert np.flatnonzero(np.isnan(found)).tolist() == [3, 7, 50]  # every row keeps its place


def test_weights_and_several_targets_reach_the_model(tmp_path):
    rows = np.random.default_rng(0).uniform(size=(80, 4))
    rows[:, 3] = rows[:, 3] > 0.5  # rows of weight zero do not count
    write_table(tmp_path / "t.csv", ["a", "u", "v", "w"], rows)
    settings = ["--set", "kernel=cubic", "--set", "selection=null", "--set", "ridge=0.1"]
    several = ["--set", "bandwidth=[0.5, 1]"]
    result = command("fit", "t.csv", "-t", "u,v", "--sample-weight", "w", *settings, *several, cwd=tmp_path)
    assert result.returncode == 2
    assert "bandwidth" in result.stderr  # one value each where nothing is chosen
    result = command("fit", "t.csv", "-t", "u,v", "--sample-weight", "w", *settings, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    model = load(tmp_path / "m.stitch")
    assert set(model.kernels_) == {"cubic"}
    assert set(model.ridges_) == {0.1}
    assert model.target_names_ == ["u", "v"]
    assert list(model.feature_names_in_) == ["a"]
    assert model.model_.n_points == rows[:, 3].sum()


WRONG = {
    "no such file": (["fit", "none.csv", "-t", "y"], "There is no file 'none.csv'"),
    "no such column": (["fit", "data.csv", "-t", "z"], "has no column 'z' (target)"),
    "no such feature": (["fit", "data.csv", "-t", "y", "-f", "q"], "has no column 'q' (feature)"),
    "target is feature": (["fit", "data.csv", "-t", "y", "-f", "a,y"], "'y' is named twice"),
    "overwrites its input": (["predict", "m.stitch", "data.csv", "-o", "data.csv"], "would overwrite"),
    "overwrites its data": (["fit", "data.csv", "-t", "y", "-o", "data.csv"], "would overwrite"),
    "threads by another name": (["fit", "data.csv", "-t", "y", "--set", "n_jobs=2"], "Unknown parameter 'n_jobs' in `--set`"),
    "open quote": (["fit", "quote.csv", "-t", "y"], "is not a table of text"),
    "no such folder": (["fit", "data.csv", "-t", "y", "-o", "none/m.stitch"], "There is no folder 'none'"),
    "not a model": (["predict", "data.csv", "data.csv", "-o", "o.csv"], "is a table. Name the model first"),
    "no such model": (["info", "none.stitch"], "There is no model file"),
    "wrong suffix": (["predict", "m.stitch", "data.csv", "-o", "o.doc"], "must end in one of"),
    "lacks a feature": (["predict", "m.stitch", "other.csv", "-o", "o.csv"], "has no column 'a' (feature of the model)"),
    "wrong shape": (["grid", "m.stitch", "--shape", "4,x", "-o", "f.nc"], "`--shape` must be whole numbers"),
    "wrong bounds": (["grid", "m.stitch", "--shape", "4", "--bounds", "a=1", "-o", "f.nc"], "`--bounds` must look like"),
    "reversed bounds": (["grid", "m.stitch", "--shape", "4", "--bounds", "a=1:0", "-o", "f.nc"], "the smaller first, got 1 and 0"),
    "no bounds": (["grid", "m.stitch", "--shape", "4", "--bounds", "a=nan:0", "-o", "f.csv"], "must be two finite numbers"),
    "bounds without a shape": (["grid", "m.stitch", "--shape", "a=4", "--bounds", "b=0:1", "-o", "f.csv"], "`shape` does not"),
    "absurd shape": (["grid", "m.stitch", "--shape", "100000", "-o", "f.csv"], "too large"),
    "no such axis": (["grid", "m.stitch", "--shape", "c=4", "-o", "f.csv"], "'c' is asked for, which is no feature"),
    "no threads": (["predict", "m.stitch", "data.csv", "-o", "o.csv", "-j", "0"], "`--jobs` must be a number of threads"),
    "not positive": (["fit", "negative.csv", "-t", "y", "--log"], "`--log` needs positive targets, and 'y' has -1 in row 2"),
    "names of rows": (["fit", "names.csv", "-t", "y"], "as if it named them. Leave it out with `--exclude id`"),
    "wrong separator": (["fit", "data.csv", "-t", "y", "--separator", "x"], "`--separator` must be one of"),
    "no such parameter": (["fit", "data.csv", "-t", "y", "--set", "colour=red"], "Unknown parameter 'colour' in `--set`"),
    "wrong parameter": (["fit", "data.csv", "-t", "y", "--set", "kernel=red"], "`kernel` must be"),
    "no value": (["fit", "data.csv", "-t", "y", "--set", "kernel"], "`--set` must look like"),
    "no such period": (["fit", "data.csv", "-t", "y", "--periodic", "a"], "`--periodic` must look like phase=360"),
    "period of nothing": (["fit", "data.csv", "-t", "y", "--periodic", "c=360"], "'c', which is no feature of `X`"),
    "half a globe": (["fit", "data.csv", "-t", "y", "--geographic", "a"], "`geographic` must be a pair of features"),
    "newer version": (["info", "newer.stitch"], "Upgrade stitchwork"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_line_and_exit_code_two(folder, case, monkeypatch):
    arguments, message = WRONG[case]
    (folder / "other.csv").write_text("q\n1\n")
    (folder / "negative.csv").write_text("a,y\n1,2\n2,-1\n3,1\n")
    (folder / "names.csv").write_text("id,y\n" + "\n".join(f"s{k},{k}" for k in range(40)))
    (folder / "quote.csv").write_text('a,y\n1,"' + "2\n" * 100_000)
    raw = (folder / "m.stitch").read_bytes()
    size = 8 + int.from_bytes(raw[:8], "little")
    header = raw[8:size].rstrip().replace(b'"version":"8"', b'"version":"99"')
    assert b'"99"' in header
    header = header.ljust(-(-len(header) // 8) * 8)
    newer = len(header).to_bytes(8, "little") + header + raw[size:]
    (folder / "newer.stitch").write_bytes(newer)
    before = sorted(path.name for path in folder.iterdir())
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stderr.startswith("stitchwork: ")
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_prediction_leaves_nothing(folder, tmp_path, how):
    code_of = {signal.SIGINT: 130, signal.SIGTERM: 143}
    X = np.random.default_rng(1).uniform(size=(400_000, 2))
    write_table(tmp_path / "many.csv", ["a", "b"], X)
    code = "from stitchwork.cli import main; main()"
    arguments = ["predict", folder / "m.stitch", tmp_path / "many.csv", "-o", tmp_path / "out.csv", "--hessian"]
    # A shell's background job ignores SIGINT, and so would what it starts.
    listening = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, **listening)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)  # until it writes
    os.kill(running.pid, how)
    running.communicate(timeout=60)
    assert running.returncode == code_of[how]
    assert [path.name for path in tmp_path.iterdir()] == ["many.csv"]


def test_names_with_commas_stand_in_quotes_and_nameless_columns_are_no_features(tmp_path):
    rows = np.random.default_rng(0).uniform(size=(50, 2))
    lines = [f"{i},{a},{b}" for i, (a, b) in enumerate(rows)]
    (tmp_path / "t.csv").write_text(',"wind, m/s",y\n' + "\n".join(lines))
    result = command("fit", "t.csv", "-t", "y", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "has no name and is left out" in result.stderr
    assert list(load(tmp_path / "m.stitch").feature_names_in_) == ["wind, m/s"]
    result = command("fit", "t.csv", "-t", "y", "-f", '"wind, m/s"', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    pytest.importorskip("xarray", reason="grids are xarray's: pip install 'stitchwork[files]'")
    result = command("grid", "m.stitch", "--shape", "5", "-o", "f.nc", "--gradient", cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_no_colour_where_there_is_no_terminal(folder):
    result = started("fit", "--help", cwd=folder)
    assert result.returncode == 0
    assert "\x1b[" not in result.stdout
    assert "--drop-missing" in result.stdout


def test_input_columns_are_kept_as_they_stand(tmp_path):
    rows = np.random.default_rng(0).uniform(size=(60, 2)).round(4)
    lines = [f"Köln {k};00{k};{a:.4f};{b:.4f}".replace(".", ",") for k, (a, b) in enumerate(rows)]
    (tmp_path / "t.csv").write_bytes(("Ort;id;a;y\r\n" + "\r\n".join(lines)).encode("latin-1"))
    result = command("fit", "t.csv", "-t", "y", "-f", "a", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    understood = result.stdout.splitlines()[:3]
    assert understood[0] == "read           t.csv: semicolons, decimal commas, Latin-1 (Windows)"
    assert understood[1] == "columns        y from a; not used: Ort, id"
    assert understood[2] == "rows           60"
    result = command("predict", "m.stitch", "t.csv", "-o", "out.csv", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    first = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[:2]
    assert first[0] == "Ort,id,a,y_given,y"
    assert first[1].startswith(f"Köln 0,000,{rows[0, 0]:.4f},{rows[0, 1]:.4f},")
    result = command("predict", "m.stitch", "t.csv", "-o", "out.parquet", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    frame = pd.read_parquet(tmp_path / "out.parquet")
    assert frame["id"][7] == "007"
    np.testing.assert_array_equal(frame["y_given"], rows[:, 1])


def test_standard_input_and_output_are_tables(folder):
    data = (folder / "data.csv").read_text()
    result = started("predict", "m.stitch", "-", "-o", "-", "--only", cwd=folder, input=data)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert (lines[0], len(lines)) == ("y", 401)
    assert "standard input: commas" in result.stderr
    result = started("evaluate", "m.stitch", "-", cwd=folder, input=data)
    assert "R² 1" in result.stdout
    code = "from stitchwork.cli import main; main()"
    fitted = subprocess.run(
        [sys.executable, "-c", code, "fit", "-", "-t", "y", "-f", "a,b", "-o", "-"],
        input=data.encode(),
        capture_output=True,
        cwd=folder,
        check=True,
    )
    (folder / "piped.stitch").write_bytes(fitted.stdout)
    np.testing.assert_array_equal(load(folder / "piped.stitch")([0.5, 0.5]), load(folder / "m.stitch")([0.5, 0.5]))


def test_categories_are_remembered_by_the_model(tmp_path):
    rng = np.random.default_rng(0)
    a, colour = rng.uniform(size=200), rng.integers(3, size=200)
    words = np.array(["red", "green", "blue"])[colour]
    lines = [f"{x},{word},{x + k}" for x, word, k in zip(a, words, colour, strict=True)]
    (tmp_path / "t.csv").write_text("a,colour,y\n" + "\n".join(lines))
    result = command("fit", "t.csv", "-t", "y", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert sorted(load(tmp_path / "m.stitch").feature_names_in_) == ["a", "colour=blue", "colour=green", "colour=red"]
    (tmp_path / "new.csv").write_text("colour,a\nblue,0.5\nred,0.5\n")
    result = command("predict", "m.stitch", "new.csv", "-o", "out.csv", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    np.testing.assert_allclose(open_table(tmp_path / "out.csv").read(["y"])[:, 0], [2.5, 0.5], atol=0.01)  # a linear function
    (tmp_path / "new.csv").write_text("colour,a\nblue,0.5\npink,0.5\n")
    result = command("predict", "m.stitch", "new.csv", "-o", "no.csv", cwd=tmp_path)
    assert result.returncode == 2
    assert "'pink' (1 row) is not a known category of colour: blue, red, green" in result.stderr


def test_columns_of_numbers_with_an_equals_sign_are_no_categories(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(200, 3))
    write_table(tmp_path / "t.csv", ["lag=1", "T=300K", "y"], rows)
    assert command("fit", "t.csv", "-t", "y", "--set", "kernel=gaussian", cwd=tmp_path).returncode == 0
    result = command("suggest", "m.stitch", "-n", "5", "-o", "next.csv", "--seed", "0", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    result = command("grid", "m.stitch", "--shape", "3,4", "-o", "grid.csv", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert open_table(tmp_path / "next.csv").names == ["lag=1", "T=300K"]
    suggested = open_table(tmp_path / "next.csv").read(["lag=1", "T=300K"])
    assert len(np.unique(suggested)) == 10
    grid = open_table(tmp_path / "grid.csv")
    assert grid.names == ["lag=1", "T=300K", "y"]
    np.testing.assert_allclose(np.unique(grid.read(["lag=1"])), np.linspace(rows[:, 0].min(), rows[:, 0].max(), 3))


def test_fill_values_are_announced_and_left_out_when_told(tmp_path):
    rows = np.random.default_rng(0).uniform(size=(200, 2))
    rows[::20, 1] = -9999
    write_table(tmp_path / "t.csv", ["a", "y"], rows)
    result = command("fit", "t.csv", "-t", "y", cwd=tmp_path)
    assert "-9999 stands 10 times in column 'y'" in result.stderr
    assert "say `--missing -9999`" in result.stderr
    result = command("fit", "t.csv", "-t", "y", "--missing", "-9999", "--drop-missing", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "190 of 200" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_grid_is_a_table_with_other_features_at_medians(folder, tmp_path, suffix):
    result = command("grid", "m.stitch", "--shape", "a=5", "--gradient", "-o", tmp_path / f"g.{suffix}", cwd=folder)
    assert result.returncode == 0, result.stderr
    table, model = open_table(tmp_path / f"g.{suffix}"), load(folder / "m.stitch")
    assert table.names == ["a", "b", "y", "dy/da", "dy/db"]
    rows = table.read(table.names)
    assert (rows[:, 1] == model.model_.frame[2, 1]).all()
    np.testing.assert_array_equal(rows[:, 0], np.linspace(*model.model_.frame[:2, 0], 5))
    np.testing.assert_array_equal(rows[:, 2], model.predict_with_gradient(rows[:, :2])[0])  # alone, values may round differently


def test_the_logarithm_of_a_target_is_modelled_and_comes_back(tmp_path):
    rows = np.random.default_rng(0).uniform(0, 3, size=(300, 2))
    rows[:, 1] = np.exp(2 * rows[:, 0])
    write_table(tmp_path / "t.csv", ["a", "y"], rows)
    result = command("fit", "t.csv", "-t", "y", "--positive", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (tmp_path / "new.csv").write_text("a\n1.5\n-40\n")
    result = command("predict", "m.stitch", "new.csv", "-o", "-", "--only", "--gradient", "--interval", "0.9", cwd=tmp_path)
    inside, outside = (np.array(line.split(","), dtype=float) for line in result.stdout.splitlines()[1:])
    np.testing.assert_allclose(inside[:2], [np.exp(3), 2 * np.exp(3)], rtol=1e-6)
    assert inside[2] < inside[0] < inside[3]
    assert outside[0] > 0
    assert "by logarithm" in command("info", "m.stitch", cwd=tmp_path).stdout


def test_evaluate_says_when_it_sees_the_training_data(folder, tmp_path):
    assert "400 of these 400 rows are in the model" in command("evaluate", "m.stitch", "data.csv", cwd=folder).stderr
    X = np.random.default_rng(5).uniform(size=(50, 2))
    write_table(tmp_path / "new.csv", ["a", "b", "y"], np.column_stack([X, response(X)]))
    assert command("evaluate", "m.stitch", tmp_path / "new.csv", cwd=folder).stderr == ""


def test_fit_ends_with_advice_and_an_error_for_each_output(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 3))
    rows[:, 2] = rows[:, 0]
    write_table(tmp_path / "t.csv", ["a", "noise", "y"], rows)
    result = command("fit", "t.csv", "-t", "noise,y", "-f", "a", cwd=tmp_path)
    assert "leave-one-out  noise: RMSE" in result.stdout
    assert "leave-one-out  y: RMSE" in result.stdout
    assert "advice         noise: the leave-one-out error is as large as the standard deviation" in result.stdout


def test_version_help_and_completion():
    assert command("--version").stdout == f"stitchwork {stitchwork.__version__}\n"
    assert command("-h").stdout == command("--help").stdout
    assert "--install-completion" in command("-h").stdout


def test_models_grow_and_say_where_to_measure_next(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (900, 2))
    y = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1])
    track = np.array([f"line {k}" for k in np.arange(900) % 30])
    for name, rows in (("old", slice(0, 800)), ("new", slice(800, 900))):
        lines = [f"{a!r},{b!r},{z!r},{t}" for (a, b), z, t in zip(X[rows].tolist(), y[rows].tolist(), track[rows], strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,y,track", *lines]))
    result = command("fit", "old.csv", "-t", "y", "--groups", "track", "--set", "kernel=gaussian", "-o", "m.stitch", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    before = (tmp_path / "m.stitch").read_bytes()
    refused = command("update", "m.stitch", "new.csv", cwd=tmp_path)
    assert refused.returncode == 2
    assert "was fitted with groups" in refused.stderr
    assert (tmp_path / "m.stitch").read_bytes() == before
    result = command("update", "m.stitch", "new.csv", "--groups", "track", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "900, 100 of them new, 0 rows at known places" in result.stdout
    grown = load(tmp_path / "m.stitch")
    ours = StitchedRegressor(kernel="gaussian").fit(X[:800], y[:800], groups=track[:800])
    ours.partial_fit(X[800:], y[800:], groups=track[800:])
    np.testing.assert_allclose(grown.model_.jet(X, 0).value[:, 0], ours.predict(X), rtol=0, atol=1e-9)
    result = command("suggest", "m.stitch", "-n", "5", "--bounds", "a=0:1", "--seed", "1", "-o", "-", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = [line.split(",") for line in result.stdout.strip().splitlines()]
    assert [cell.strip('"') for cell in rows[0]] == ["a", "b"]
    assert len(rows) == 6
    assert all(0.0 <= float(a) <= 1.0 for a, _ in rows[1:])
    assert command("suggest", "m.stitch", "-n", "5", "--bounds", "a=1:0", "-o", "-", cwd=tmp_path).returncode == 2


def test_words_and_dates_come_back_as_such(tmp_path):
    rng = np.random.default_rng(0)
    days, soil, depth = (
        np.sort(rng.integers(18000, 18700, 200)),
        rng.choice(["clay", "loam", "sand"], 200, p=[0.5, 0.3, 0.2]),
        rng.uniform(size=200),
    )
    level = {"clay": 1.0, "loam": 2.0, "sand": 4.0}
    lines = [
        f"{np.datetime64(int(day), 'D')},{word},{z!r},{float(level[word] + z + np.sin(day / 100))!r}"
        for day, word, z in zip(days, soil, depth.tolist(), strict=True)
    ]
    (tmp_path / "data.csv").write_text("\n".join(["date,soil,depth,y", *lines]))
    assert command("fit", "data.csv", "-t", "y", "-o", "m.stitch", cwd=tmp_path).returncode == 0
    assert "regions       1 of 200 points" in command("info", "m.stitch", cwd=tmp_path).stdout
    told = command("suggest", "m.stitch", "-n", "3", "--seed", "0", "-o", "-", cwd=tmp_path).stdout.splitlines()
    assert told[0].replace('"', "") == "date,soil,depth"
    for line in told[1:]:
        date, word, _ = line.replace('"', "").split(",")
        assert word in level
        assert np.datetime64(18000, "D") <= np.datetime64(date) <= np.datetime64(18701, "D")
    row = command(
        "grid", "m.stitch", "--shape", "depth=1", "--bounds", "depth=0.5:0.5", "-o", "-", cwd=tmp_path
    ).stdout.splitlines()
    assert dict(zip(row[0].replace('"', "").split(","), row[1].replace('"', "").split(","), strict=True))["soil"] == "clay"


def test_what_looks_like_a_fill_value_is_told_of_wherever_tables_are_read(folder, tmp_path):
    X = np.random.default_rng(3).uniform(size=(20, 2))
    y = np.where(np.arange(20) < 4, -9999.0, 1.0 + X[:, 0])
    (tmp_path / "new.csv").write_text(
        "\n".join(["a,b,y", *(f"{a!r},{b!r},{z!r}" for (a, b), z in zip(X.tolist(), y.tolist(), strict=True))])
    )
    for words in (["update", folder / "m.stitch", "new.csv", "-o", "m2.stitch"], ["evaluate", folder / "m.stitch", "new.csv"]):
        result = command(*words, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert "-9999 stands 4 times in column 'y'" in result.stderr
    log = command("fit", "new.csv", "-t", "y", "--log", "-o", "m3.stitch", cwd=tmp_path)
    assert log.returncode == 2
    assert "`--log` needs positive targets, and 'y' has -9999 in row 1" in log.stderr


def test_netcdf_on_a_full_disk_is_one_line(folder, tmp_path):
    """A limit on the size of files stands for it: it fails at the same call."""
    code = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
sys.argv = ["stitchwork", "grid", {str(folder / "m.stitch")!r}, "--shape", "100", "-o", "x.nc"]
from stitchwork.cli import main
main()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 2, result.stderr
    assert result.stderr == "stitchwork: File too large.\n"
    assert not list(tmp_path.iterdir())


def test_file_names_that_are_not_utf8_are_reported_on(folder, tmp_path):
    name = os.fsdecode(b"m\xff.stitch")
    shutil.copy(folder / "m.stitch", tmp_path / name)
    result = subprocess.run(
        [sys.executable, "-c", "from stitchwork.cli import main; main()", "report", name, "-o", "r.html"],
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert b"<title>m?.stitch" in (tmp_path / "r.html").read_bytes()


def test_many_features_are_said_in_one_line(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 52))
    write_table(tmp_path / "t.csv", [*(f"x{k}" for k in range(51)), "y"], rows)
    result = command("fit", "t.csv", "-t", "y", "--set", "selection=null", "--set", "degree=1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("stitchwork: There are 51 features.")
    assert result.stderr.count("\n") == 1
