"""Tables in files: what was written is read, block by block; layouts are understood and said; what is wrong is named."""

import io
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from stitchwork._validation.fills import repeated_far_value
from stitchwork.cli.cells import days_of, kind_of, number_of
from stitchwork.cli.console import Console
from stitchwork.cli.reading import Columns, expand, find_sources, match_names, read_columns
from stitchwork.cli.tables import STANDARD, open_table
from stitchwork.cli.text import HEAD, Reading
from stitchwork.cli.writing import check_output, make_block, table_writer


@pytest.fixture
def numbers():
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    rows[0] = [1e-300, -0.0, 12345678901234567.0]
    return rows


def write_text(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return open_table(path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".npz", ".parquet", ".nc"])
def test_what_is_written_is_read_bit_for_bit(tmp_path, numbers, suffix):
    if suffix == ".nc":
        pytest.importorskip("xarray", reason="NetCDF needs xarray: pip install 'stitchwork[files]'")
    path, names = tmp_path / f"t{suffix}", ["a", "dy/da", "y y"]
    with table_writer(path, names) as write:
        write(make_block(names, numbers[:400]))
        write(make_block(names, numbers[400:]))
    table = open_table(path)
    assert table.names == names
    np.testing.assert_array_equal(table.read(names), numbers)
    blocks = [block.numbers for block in table.blocks(["y y", "a"], rows=300)]
    np.testing.assert_array_equal(np.concatenate(blocks), numbers[:, [2, 0]])
    assert max(len(block) for block in blocks) <= 300
    assert list(tmp_path.iterdir()) == [path]
    assert table.done == pytest.approx(1.0, abs=0.01)  # text: about how many rows there are, from lengths of lines


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet", ".nc"])
def test_words_are_written_beside_numbers(tmp_path, suffix):
    if suffix == ".nc":
        pytest.importorskip("xarray", reason="NetCDF needs xarray: pip install 'stitchwork[files]'")
    words = ["plain", 'a "quote"', "a, comma", "ü"]
    with table_writer(tmp_path / f"t{suffix}", ["id", "y"]) as write:
        write(make_block(["y"], np.arange(4.0)[:, None], {"id": pa.array(words)}))
    table = open_table(tmp_path / f"t{suffix}")
    found = [cell for batch in table.batches() for cell in batch.column(0).to_pylist()]
    assert found == words
    assert table.kind("id") == "word"
    np.testing.assert_array_equal(table.read(["y"])[:, 0], np.arange(4.0))


def test_a_file_larger_than_what_is_looked_at_is_read_whole(tmp_path):
    n = 200_000
    lines = "\n".join(f"{k};{k % 7},25 " for k in range(n))
    table = write_text(tmp_path / "t.csv", "# first\na;b\n" + lines + "\n# last")
    assert (tmp_path / "t.csv").stat().st_size > HEAD
    found = table.read(["a", "b"])
    np.testing.assert_array_equal(found[:, 0], np.arange(n))
    np.testing.assert_array_equal(found[:, 1], np.arange(n) % 7 + 0.25)


def test_netcdf_is_a_table_of_its_grid(tmp_path):
    xarray = pytest.importorskip("xarray", reason="NetCDF needs xarray: pip install 'stitchwork[files]'")
    field = xarray.DataArray(np.arange(6.0).reshape(2, 3), coords={"a": [0.0, 1.0], "b": [0.0, 5.0, 7.0]}, name="y")
    pytest.importorskip("h5netcdf", reason="NetCDF-4 needs h5netcdf: pip install 'stitchwork[files]'")
    for engine in ("scipy", "h5netcdf"):
        field.to_netcdf(tmp_path / f"{engine}.nc", engine=engine)
        np.testing.assert_array_equal(open_table(tmp_path / f"{engine}.nc").read(["a", "b", "y"])[4], [1.0, 5.0, 4.0])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n3,4\n", ["a", "b"]),
        ("a;b\r\n1;2\r\n3;4\r\n", ["a", "b"]),
        ("a\tb\n1\t2\n3\t4", ["a", "b"]),
        ('"a" , b\n1, 2\n\n3 ,4\n', ["a", "b"]),
        ("  a  b \n 1   2 \n 3  4\n", ["a", "b"]),
        ("\ufeffa,b\n1,2\n3,4\n", ["a", "b"]),
        ("1,2\n3,4\n", ["column1", "column2"]),
        ("0,1\n1,2\n3,4\n", ["0", "1"]),
        ("\n\na,b\n1,2\n   \n3,4\n", ["a", "b"]),
        ('"a, m";b\n1;2\n3;4\n', ["a, m", "b"]),
        ("a;b\n1,0;2,0\n3,0;4,0\n", ["a", "b"]),
        ("a b\n1,0 2,0\n3,0 4,0\n", ["a", "b"]),
        ("a\tb\n1,0\t2,0\n3,0\t4,0\n", ["a", "b"]),
        ("# made by hand\n# a b\n1 2\n# and more\n3 4\n", ["a", "b"]),
        ("% made by hand\na b\n1 2\n3 4\n", ["a", "b"]),
        ("a,b\nm,kg/s\n1,2\n3,4\n", ["a", "b"]),
        ("a;b\n[m];-\n1,0;2\n3;4\n", ["a", "b"]),
        ("a b\n1.0D+00 +2\n.3D+1 4e0\n", ["a", "b"]),
    ],
)
def test_text_of_many_kinds_is_read(tmp_path, text, names):
    table = write_text(tmp_path / "t.csv", text)
    assert table.names == names
    np.testing.assert_array_equal(table.read(names), [[1, 2], [3, 4]])


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "cp1252"])
def test_encodings_are_told_apart_and_said(tmp_path, encoding):
    table = write_text(tmp_path / "t.csv", "Höhe,Maß\n1,2\n3,4\n", encoding)
    assert table.names == ["Höhe", "Maß"]
    np.testing.assert_array_equal(table.read(table.names), [[1, 2], [3, 4]])
    assert {"utf-8": "UTF-8", "utf-16": "utf-16"}.get(encoding, "Latin-1") in table.note


def test_a_layout_is_said_in_words(tmp_path):
    assert write_text(tmp_path / "t.csv", "a;b\n1,5;2\n").note == "semicolons, decimal commas, UTF-8"
    note = write_text(tmp_path / "t.dat", "# run 7\n# a b\n1 2\n").note
    assert note == "spaces, decimal points, UTF-8, names from the comment above the data, comments after #"
    assert "units below the names (m, s)" in write_text(tmp_path / "t.csv", "a,b\nm,s\n1,2\n").note
    assert "no names: column1" in write_text(tmp_path / "t.csv", "1,2\n3,4\n").note


def test_what_the_user_says_of_a_file_is_taken(tmp_path):
    (tmp_path / "t.txt").write_bytes("ä;b\n1,5;2\n".encode("latin-1"))
    told = Reading(separator="semicolon", decimal=",", encoding="latin-1")
    table = open_table(tmp_path / "t.txt", told)
    assert table.names == ["ä", "b"]
    np.testing.assert_array_equal(table.read(table.names), [[1.5, 2]])
    for wrong in ({"separator": "x"}, {"decimal": "x"}, {"encoding": "x"}):
        with pytest.raises(ValueError, match=f"`--{next(iter(wrong))}` must be"):
            Reading(**wrong)


def test_standard_input_is_text_that_is_read_once(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n" + b"1,2\n" * 500_000)))
    table = open_table(STANDARD)
    assert table.read(["b"]).sum() == 1_000_000
    with pytest.raises(ValueError, match="only once"):
        table.read(["b"])


def test_missing_numbers_are_nan(tmp_path):
    table = write_text(tmp_path / "t.csv", "a,b\n,\n1,n/a\n2,3\n-9999,4\n")
    np.testing.assert_array_equal(table.read(["a", "b"]), [[np.nan, np.nan], [1, np.nan], [2, 3], [-9999, 4]])
    told = open_table(tmp_path / "t.csv", Reading(missing=("-9999.0", "3")))
    np.testing.assert_array_equal(told.read(["a", "b"]), [[np.nan, np.nan], [1, np.nan], [2, np.nan], [np.nan, 4]])


def test_a_value_that_repeats_far_from_all_others_is_found():
    values = np.random.default_rng(0).normal(size=500)
    assert repeated_far_value(values) is None
    values[::50] = -9999.0
    assert repeated_far_value(values) == (-9999.0, 10)
    assert repeated_far_value(np.repeat([0.0, 1.0], 50)) is None  # a flag
    assert repeated_far_value(np.round(values[np.abs(values) < 3], 1)) is None


@pytest.mark.parametrize(
    ("cell", "iso"),
    [
        ("2020-12-31", "2020-12-31"),
        ("2020-12-31T18:30:15.5Z", "2020-12-31T18:30:15.500"),
        ("2020/1/2 03:04", "2020-01-02T03:04"),
        ("31.12.2020", "2020-12-31"),
        ("2020-12-31 18:30+02:00", "2020-12-31T16:30"),
        ("1969-12-31 12:00", "1969-12-31T12:00"),
    ],
)
def test_dates_are_days_since_1970(cell, iso):
    expected = np.datetime64(iso, "ms").astype(np.int64) / 86_400_000
    assert days_of(cell) == pytest.approx(expected, abs=1e-9)
    moment = datetime.fromisoformat(iso).replace(tzinfo=UTC)
    assert days_of(cell) == pytest.approx(moment.timestamp() / 86_400, abs=1e-9)


def test_what_is_no_date_or_number_is_none():
    assert [days_of(cell) for cell in ("2020-13-01", "12/31/2020", "noon", "1.5")] == [None] * 4
    assert [number_of(cell) for cell in ("1,5", "1_000", "x", "")] == [None] * 4
    assert kind_of(["03/04/2020"]) == "ambiguous"
    assert kind_of(["", "NA"]) == "number"
    assert kind_of(["red", "1", "2", "3"]) == "number"  # so that the odd cell is named, instead of making categories of numbers


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_dates_and_words_of_a_table_become_features(tmp_path, suffix, capsys):
    days = [datetime(2020, 1, 1 + k % 20, tzinfo=UTC) for k in range(60)]
    if suffix == ".csv":
        lines = [f"{day:%Y-%m-%d},{'red' if k % 3 else 'blue'},{k}" for k, day in enumerate(days)]
        (tmp_path / "t.csv").write_text("time,colour,y\n" + "\n".join(lines))
    else:
        columns = {"time": days, "colour": ["red" if k % 3 else "blue" for k in range(60)], "y": list(range(60))}
        parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    data = read_columns(open_table(tmp_path / f"t{suffix}"), Columns([], ["y"]), Reading(), Console())
    assert data.features == ["time", "colour=blue", "colour=red"]
    np.testing.assert_allclose(data.X[:, 0], [day.timestamp() / 86_400 for day in days])
    np.testing.assert_array_equal(data.X[:, 1:].sum(axis=1), 1.0)
    np.testing.assert_array_equal(data.X[:, 1], [k % 3 == 0 for k in range(60)])
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 3
    assert said.err == ""
    assert "time (days since 1970-01-01), colour (categories: blue, red)" in said.out.splitlines()[1]
    # The names of a model's features tell how to make them again, whatever the order of the words.
    (tmp_path / "new.csv").write_text("colour,time\nred,2020-01-01\n blue ,2020-01-02\ngreen,2020-01-03\n")
    table = open_table(tmp_path / "new.csv")
    sources = find_sources(data.features, table)
    X = expand(table.read([source.column for source in sources]), sources)
    np.testing.assert_array_equal(X[:2, 1:], [[0, 1], [1, 0]])
    assert np.isnan(X[2, 1:]).all()
    assert table.unknown == {"colour": {"green": 1}}


def test_columns_are_named_by_patterns(tmp_path):
    table = write_text(tmp_path / "t.csv", "temp_1,temp_2,y,x[1]\n1,2,3,4\n")
    assert match_names(["temp_*", "x[1]"], table, "feature") == ["temp_1", "temp_2", "x[1]"]
    with pytest.raises(ValueError, match="has no column 'z_"):
        match_names(["z_*"], table, "feature")


def test_tabs_and_one_column(tmp_path):
    (tmp_path / "t.tsv").write_text("wind, m/s\ty\n1\t2\n")
    assert open_table(tmp_path / "t.tsv").names == ["wind, m/s", "y"]
    assert write_text(tmp_path / "t.csv", "wind speed\n1\n2\n").names == ["wind speed"]
    np.testing.assert_array_equal(write_text(tmp_path / "t.csv", "y\n1,5\n2,5\n").read(["y"])[:, 0], [1.5, 2.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,red\n5,6\n", "'red' in column 'b', row 2 of .* is not a number"),
        ("a,b\n1,2020-01-01\n3,2020-01-02\n5,x\n", "'x' in column 'b', row 3 of .* is not a date"),
        ("a,b\n1,2\n3\n", "Row 2 of .* has 1 cells, and there are 2 columns"),
        ("a,b\n1,red\n3,blue\n", "holds words, not numbers, such as red"),
        ("a,b\n1,03/04/2020\n", "dates that can be read in two ways"),
        ("a,a\n1,2\n", "two columns named 'a'"),
        ("", "is empty"),
    ],
)
def test_wrong_text_is_named_by_column_and_row(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        open_table(tmp_path / "t.csv").read(["a", "b"])


def test_wrong_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is none of"):
        open_table(tmp_path / "t.xls")
    for suffix in ("npz", "parquet"):
        (tmp_path / f"t.{suffix}").write_bytes(b"nothing")
        with pytest.raises(ValueError, match=rf"t\.{suffix}"):
            open_table(tmp_path / f"t.{suffix}")
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,2\n" * HEAD + b"\xff,1\n")
    with pytest.raises(ValueError, match="is not text in utf-8"):
        open_table(tmp_path / "t.csv").read(["a"])
    np.savez_compressed(tmp_path / "v.npz", a=np.arange(1000.0))
    whole = bytearray((tmp_path / "v.npz").read_bytes())
    whole[100:300] = bytes(200)
    (tmp_path / "v.npz").write_bytes(whole)
    with pytest.raises(ValueError, match="damaged"):
        open_table(tmp_path / "v.npz")
    np.savez(tmp_path / "u.npz", a=np.zeros(3), b=np.zeros(4))
    with pytest.raises(ValueError, match="different lengths"):
        open_table(tmp_path / "u.npz")


def interrupted_writing(path, numbers):
    with table_writer(path, ["a", "b", "c"]) as write:
        write(make_block(["a", "b", "c"], numbers))
        raise KeyboardInterrupt


def test_a_table_that_breaks_off_leaves_nothing(tmp_path, numbers):
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        path.write_text("old")
        with pytest.raises(KeyboardInterrupt):
            interrupted_writing(path, numbers)
        assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_places_that_cannot_be_written_are_known_before(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        check_output(tmp_path / "none" / "t.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(ValueError, match="must end in one of"):
        check_output(tmp_path / "t.doc", (".csv",))


@pytest.mark.parametrize("name", ["b\u2028c", "b\x0bc", "b\x0cc", "b\x85c", "b\x1cc"])
def test_marks_inside_of_names_do_not_end_a_line(tmp_path, name):
    (tmp_path / "t.csv").write_text(f"a,{name},y\n1,2,3\n4,5,6\n", encoding="utf-8", newline="")
    table = open_table(tmp_path / "t.csv")
    assert table.names == ["a", name, "y"]
    np.testing.assert_array_equal(table.read(["a", name, "y"]), [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_quoted_names_may_have_several_lines(tmp_path, separator):
    lines = ['a,"speed\n(m/s)","with ""quotes"", too"', "1,2,3", "4,5,6", ""]
    (tmp_path / "t.csv").write_text("\n".join(lines).replace(",", separator).replace(f"{separator} too", ", too"))
    table = open_table(tmp_path / "t.csv")
    assert table.names == ["a", "speed\n(m/s)", 'with "quotes", too']
    np.testing.assert_array_equal(table.read(table.names), [[1, 2, 3], [4, 5, 6]])


def test_a_quote_inside_of_a_name_opens_nothing(tmp_path):
    (tmp_path / "t.csv").write_text('a,5" pipe,y\n1,2,3\n4,5,6\n')
    assert open_table(tmp_path / "t.csv").names == ["a", '5" pipe', "y"]


def test_a_first_line_that_is_too_long_is_a_value_error(tmp_path):
    (tmp_path / "t.csv").write_text("x" * 200_000 + ",y\n1,2\n")
    with pytest.raises(ValueError, match=r"begins with 'xxx.*a quote that is never closed"):
        open_table(tmp_path / "t.csv")
