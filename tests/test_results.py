"""Figures on pages are those of the results file that benchmarks write."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = {
    "the paper's 2-D test": "2d",
    "the same with noise, error to the truth": "2d, noisy",
    "combustion source term": "combustion",
    "satellite field with holes (Heaton et al. 2019)": "heaton",
    "magnetic survey, Rio": "rio",
    "bathymetry, Baja California": "baja",
    "ozone model field": "ozone",
    "magnetic survey, Britain": "britain",
}


@pytest.mark.parametrize("page", ["README.md", "docs/accuracy.md"])
def test_the_table_of_fields_has_the_figures_of_the_last_benchmark(page):
    results = json.loads((ROOT / "docs" / "results.json").read_text())["accuracy"]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in (ROOT / page).read_text().splitlines() if "|" in line]
    said = {row[0]: row[2].strip("*") for row in rows if row[0] in ROWS}
    assert set(said) == set(ROWS)
    for title, name in ROWS.items():
        digits = len(re.sub(r"e.*|\D", "", said[title]).lstrip("0"))
        assert float(said[title]) == float(f"{results[name]['value']:.{digits}g}"), title
        assert digits >= 2, title


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


def test_the_speeds_of_the_readme_are_those_of_the_page_and_name_their_version():
    def figures(page):
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in (ROOT / page).read_text().splitlines() if "|" in line]
        return {tuple(cell.partition(" ")[0] for cell in row[-3:]) for row in rows if len(row) == 5 and re.match(r"[\d.]+", row[2])}

    readme = (ROOT / "README.md").read_text()
    shown = figures("README.md")
    assert len(shown) == 9
    assert shown <= figures("docs/speed.md")
    version = re.search(r"## How fast\s+Measured with (\d+\.\d+\.\d+)", readme)[1]
    assert f"measured with {version}" in (ROOT / "docs" / "speed.md").read_text()
