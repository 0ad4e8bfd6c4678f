"""The demo and the command line, run for real."""

import subprocess
import sys
import time

import numpy as np
import pytest

from stitchwork.cli.demo import HEADINGS, format_table, run_demo

pytest.importorskip("matplotlib", reason="the demo draws with matplotlib: pip install 'stitchwork[plot]'")


def command(*arguments, **options):
    code = "from stitchwork.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "out"
    return folder, run_demo(folder, n=3000)


def test_the_demo_writes_pictures_and_one_page(small):
    folder, _ = small
    assert sorted(p.name for p in folder.iterdir()) == [
        "demo.html",
        "errors.png",
        "field.csv",
        "gradient.png",
        "regions.png",
        "truth.png",
    ]
    page = (folder / "demo.html").read_text()
    assert page.count("data:image/png;base64,") == 4
    assert "http://" not in page
    assert "https://" not in page
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in folder.glob("*.png"))


def test_the_table_shows_the_papers_numbers_beside_ours(small):
    _, rows = small
    assert rows[0][1:4] == (0.041, 50.392, 0.021)
    paper, default = rows[1], rows[2]
    assert default.rmse < paper.rmse
    assert default.gradient_rmse < paper.gradient_rmse
    assert all(np.isfinite(value) for row in rows[1:] for value in row[1:])
    assert all(heading in format_table(rows) for heading in HEADINGS)


def test_help_answers_at_once_without_heavy_imports():
    started = time.perf_counter()
    result = command("--help")
    assert result.returncode == 0
    assert "demo" in result.stdout
    code = "import sys, stitchwork.cli; print([m for m in ('sklearn', 'scipy', 'numpy') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert loaded == "[]"
    assert time.perf_counter() - started < 20


def test_a_file_in_the_place_of_the_folder_is_one_clear_line(tmp_path):
    (tmp_path / "taken").write_text("mine")
    result = command("demo", "--output", str(tmp_path / "taken"))
    assert result.returncode == 2
    assert result.stderr.strip().startswith("stitchwork: `--output` must be a folder")
    assert (tmp_path / "taken").read_text() == "mine"
