"""Figures of README and docs, in `docs/results.json`: benchmarks write them, `tests/test_results.py` compares the pages."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import stitchwork

RESULTS = Path(__file__).parents[1] / "docs" / "results.json"


def record(benchmark: str, command: str, figures: dict[str, Any]) -> None:
    """Merge the ``figures`` of a benchmark into the results, with the version, the date and the command that made each."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    made = {"version": stitchwork.__version__, "date": date.today().isoformat(), "command": command}
    results.setdefault(benchmark, {}).update({name: {"value": value, **made} for name, value in figures.items()})
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
