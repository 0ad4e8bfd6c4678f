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
