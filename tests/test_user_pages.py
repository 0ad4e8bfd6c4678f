"""The commands of the pages "I have …" run as they are printed, one after the other, on small files of their kind."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from stitchwork.cli import app

HOWTO = Path(__file__).parents[1] / "docs" / "howto"


def survey(folder):
    rng = np.random.default_rng(0)
    line = np.repeat(np.arange(8), 12)
    frame = pd.DataFrame(
        {"row_id": np.arange(96), "line": line, "lon": 10 + 0.02 * line, "lat": 50 + 0.02 * np.tile(np.arange(12), 8)}
    )
    frame["nT"] = 50 * np.sin(20 * frame["lon"]) + 30 * np.cos(15 * frame["lat"]) + 0.1 * rng.normal(size=96)
    frame.to_csv(folder / "survey.csv", index=False)
    tie = pd.DataFrame({"lon": np.linspace(10, 10.14, 15), "lat": 50.11})
    tie.assign(nT=50 * np.sin(20 * tie["lon"]) + 30 * np.cos(15 * tie["lat"])).to_csv(folder / "tie_lines.csv", index=False)
    tie.to_csv(folder / "places.csv", index=False)


def stations(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"lon": rng.uniform(5, 15, 80), "lat": rng.uniform(45, 52, 80), "sigma": rng.choice([0.1, 1.0], 80)})
    frame["velocity"] = frame["lon"] + frame["sigma"] * rng.normal(size=80)
    frame.to_csv(folder / "stations.csv", index=False)
    frame[["lon", "lat"]].to_csv(folder / "new.csv", index=False)


def grids(folder):
    xarray = pytest.importorskip("xarray", reason="NetCDF needs xarray: pip install 'stitchwork[files]'")
    for name, step in (("sst", 20.0), ("other_grid", 30.0)):
        lat, lon = np.arange(-80.0, 81.0, step), np.arange(-180.0, 180.0, step)
        values = 28 * np.cos(np.radians(lat))[:, None] ** 2 + np.sin(np.radians(lon))
        field = xarray.Dataset({"sst": (("lat", "lon"), values)}, coords={"lat": lat, "lon": lon})
        field = field.where(abs(field.lon) < 170) if name == "sst" else field.rename(sst="ice")
        field.to_netcdf(folder / f"{name}.nc")


def houses(folder):
    pytest.importorskip("openpyxl", reason="workbooks need openpyxl: pip install 'stitchwork[files]'")
    rng = np.random.default_rng(0)
    n = 90
    area, town = rng.uniform(30, 200, n), rng.choice(["Lund", "Malmö", "Ystad"], n)
    price = 3e4 * area * np.where(town == "Malmö", 1.3, 1.0) * np.exp(0.05 * rng.normal(size=n))
    frame = pd.DataFrame(
        {
            "house_id": np.arange(n) + 1,
            "sold": pd.to_datetime(18000 + 7 * np.arange(n), unit="D").strftime("%d/%m/%Y"),
            "town": town,
            "area": np.where(np.arange(n) % 20 == 7, -9999.0, area),
            "rooms": [None if k % 15 == 3 else int(a // 25) for k, a in enumerate(area)],
            "tax": [f"{k % 40} %" for k in range(n)],
            "price": [f"${one:,.2f}" for one in price],
        }
    )
    frame.to_csv(folder / "houses.csv", index=False)
    frame.to_excel(folder / "houses.xlsx", index=False)
    frame.tail(30).to_csv(folder / "sold_later.csv", index=False)
    frame.drop(columns="price").replace({"area": {-9999.0: np.nan}}).to_csv(folder / "offers.csv", index=False)


PAGES = {"i_have_a_survey": survey, "i_have_errors": stations, "i_have_a_grid": grids, "i_have_a_table": houses}


def commands(page):
    blocks = re.findall(r"^```console\n(.*?)^```", (HOWTO / f"{page}.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    return [line.removeprefix("$ stitchwork ") for block in blocks for line in block.splitlines()]


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_run_as_they_are_printed(page, tmp_path, monkeypatch):
    PAGES[page](tmp_path)
    monkeypatch.chdir(tmp_path)
    assert len(commands(page)) >= 4
    for line in commands(page):
        if ".tif" in line:
            pytest.importorskip("rioxarray", reason="GeoTIFF needs rioxarray: pip install 'stitchwork[geo]'")
        result = CliRunner().invoke(app, shlex.split(line))
        assert result.exit_code == 0, (line, result.output)
        output = shlex.split(line)[-1]
        assert "-o" not in line or (tmp_path / output).stat().st_size > 0, line


def test_every_page_has_its_picture():
    pages = sorted(path.stem for path in HOWTO.glob("i_have_*.md"))
    assert len(pages) == 5
    assert all((HOWTO / f"{page}.png").is_file() for page in pages)
