"""Figures on pages are those of the results file that benchmarks write."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.pages import BLOCKS, figure, table  # noqa: E402
from benchmarks.results import BLOCK, pages, read_results, with_figures  # noqa: E402


def test_every_page_shows_the_figures_of_the_results_file():
    """If not, run `python -m benchmarks.results`."""
    shown = set()
    for path in pages():
        text = path.read_text(encoding="utf-8")
        assert with_figures(text, read_results()) == text, path.name
        shown |= {match[2] for match in BLOCK.finditer(text)}
    assert shown == set(BLOCKS)


def test_another_figure_in_the_file_is_another_figure_on_the_page():
    results, text = read_results(), (ROOT / "README.md").read_text(encoding="utf-8")
    results["accuracy"]["rio"]["value"] = 12345.678
    assert "| 12,346 |" in with_figures(text, results)


def test_every_figure_names_the_version_and_the_command_that_measured_it():
    for benchmark, figures in read_results().items():
        for name, entry in figures.items():
            assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev0)?", entry["version"]), (benchmark, name)
            assert entry["command"].startswith("python -m benchmarks."), (benchmark, name)


PRINTED = {
    1.17e-5: "1.17e-5",
    0.00084: "8.4e-4",
    0.4166: "0.417",
    136.04: "136",
    12345.6: "12,346",
    0.0: "0",
    9.996: "10",
    None: "",
}


@pytest.mark.parametrize("value", PRINTED)
def test_numbers_are_rounded_as_pages_print_them(value):
    assert figure(value) == PRINTED[value]
    assert figure([1.6, 2.14], 2) == "1.6 to 2.1"


def test_empty_cells_of_a_table_are_one_blank():
    assert table(["", "a"], [["", ""], ["b", ""]]) == "| | a |\n|---|---|\n| | |\n| b | |"


RHO_U = [(fluid, kind) for fluid in ("CO2-rho-u", "Water-rho-u") for kind in ("spread", "suggested", "inside")]
BICUBIC = ("BICUBIC&HEOS", "inside", "BICUBIC&HEOS, inside")
P_H = [(fluid, kind) for fluid in ("CO2-p-h", "Water-p-h") for kind in ("spread", "suggested", *BICUBIC)]


@pytest.mark.parametrize(("outputs", "order"), [(("T", "p", "c"), RHO_U), (("T", "rho", "c"), P_H)], ids=["rho-u", "p-h"])
def test_the_tables_of_fluids_have_the_figures_of_the_last_benchmark(outputs, order):
    results = json.loads((ROOT / "docs" / "results.json").read_text())["solvers"]
    lines = (ROOT / "docs" / "howto" / "solvers.md").read_text().splitlines()
    heading = f"| relative error, median / worst | {' | '.join(outputs).replace('rho', 'ρ')} |"
    start = lines.index(heading) + 2
    for line, (fluid, kind) in zip(lines[start:], order, strict=False):
        found = results[fluid]["value"][kind]
        for cell, name in zip(line.split("|")[2:-1], outputs, strict=True):
            expected = f"{found[name]['median']:.1e} / {found[name]['worst far']:.1e}" if cell.strip() else ""
            assert cell.strip() == re.sub(r"e-0", "e-", expected), line
    assert not lines[start + len(order)]
