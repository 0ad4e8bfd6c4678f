"""Tables in files: what was written is read, block by block; what is wrong is named."""

import numpy as np
import pytest

from stitchwork.cli.tables import check_output, open_table, table_writer


@pytest.fixture
def numbers():
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    rows[0] = [1e-300, -0.0, 12345678901234567.0]
    return rows


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".npz", ".parquet"])
def test_what_is_written_is_read_bit_for_bit(tmp_path, numbers, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install 'stitchwork[files]'")
    path = tmp_path / f"t{suffix}"
    with table_writer(path, ["a", "dy/da", "y y"]) as write:
        write(numbers[:400])
        write(numbers[400:])
    table = open_table(path)
    assert table.names == ["a", "dy/da", "y y"]
    np.testing.assert_array_equal(table.read(table.names), numbers)
    blocks = list(table.blocks(["y y", "a"], rows=300))
    np.testing.assert_array_equal(np.concatenate(blocks), numbers[:, [2, 0]])
    assert max(len(block) for block in blocks) <= 300
    assert list(tmp_path.iterdir()) == [path]


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
        ("\n\na,b\n1,2\n\n3,4\n", ["a", "b"]),
        ('"a, m";b\n1;2\n3;4\n', ["a, m", "b"]),
    ],
)
def test_csv_of_many_kinds_is_read(tmp_path, text, names):
    (tmp_path / "t.csv").write_bytes(text.encode())
    table = open_table(tmp_path / "t.csv")
    assert table.names == names
    np.testing.assert_array_equal(table.read(names), [[1, 2], [3, 4]])


def test_missing_numbers_are_nan(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n,\n1,n/a\n2,3\n")
    np.testing.assert_array_equal(open_table(tmp_path / "t.csv").read(["a", "b"]), [[np.nan, np.nan], [1, np.nan], [2, 3]])


def test_tabs_and_one_column(tmp_path):
    (tmp_path / "t.tsv").write_text("wind, m/s\ty\n1\t2\n")
    assert open_table(tmp_path / "t.tsv").names == ["wind, m/s", "y"]
    (tmp_path / "t.csv").write_text("wind speed\n1\n2\n")
    assert open_table(tmp_path / "t.csv").names == ["wind speed"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3,red\n", "'red' in column 'b', row 2 of .* is not a number"),
        ("a,b\n1,2\n3\n", "Row 2 of .* has 1 cells, and there are 2 columns"),
        ("a,a\n1,2\n", "two columns named 'a'"),
        ("", "is empty"),
    ],
)
def test_wrong_csv_is_named_by_column_and_row(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        open_table(tmp_path / "t.csv").read(["a", "b"])


def test_wrong_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is none of"):
        open_table(tmp_path / "t.xlsx")
    (tmp_path / "t.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"t\.npz"):
        open_table(tmp_path / "t.npz")
    (tmp_path / "t.csv").write_bytes(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(ValueError, match="UTF-8"):
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
        write(numbers)
        raise KeyboardInterrupt


def test_a_table_that_breaks_off_leaves_nothing(tmp_path, numbers):
    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        interrupted_writing(path, numbers)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written_are_known_before(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        check_output(tmp_path / "none" / "t.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(ValueError, match="must end in one of"):
        check_output(tmp_path / "t.doc", (".csv",))
