"""What an experiment shows in the report: text, tables and figures, and the one-line comparison of its main row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ..views.errors import Errors
from ._methods import ABOUT, DEFAULT, OURS, PAPER

MEASURES = {"rmse": "RMSE", "max_relative": "max rel. error", "mean_relative": "mean rel. error"}


@dataclass(frozen=True)
class Table:
    """Rows of text under headings."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A picture as PNG with the text that says what it shows."""

    name: str
    png: bytes
    caption: str


@dataclass(frozen=True)
class Comparison:
    """One line of the report's first table; errors are RMSE unless ``row`` says otherwise, None where there is none."""

    row: str
    printed: float | None
    paper: float | None
    default: float | None
    other: tuple[str, float] | None
    comment: str = ""


@dataclass
class Section:
    """One experiment in the report."""

    name: str
    title: str
    text: list[str]
    blocks: list[Table | Figure | str] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)


@cache
def _all_printed() -> dict[str, dict[str, list[float]]]:
    return json.loads(files(__package__).joinpath("printed.json").read_text())


def printed(table: str) -> dict[str, Errors]:
    """The paper's table: errors by row."""
    return {row: Errors(*values) for row, values in _all_printed()[table].items()}


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table, empty for None."""
    if value is None or not np.isfinite(value):
        return "" if value is None else str(value)
    return f"{value:.{digits}g}"


def with_deviation(values: Sequence[float]) -> str:
    """Mean ± deviation over trials."""
    return number(float(np.mean(values))) + (f" ± {np.std(values, ddof=1):.1g}" if len(values) > 1 else "")


def method_table(results: Mapping[str, Mapping[str, Any]], table: str | None, caption: str) -> Table:
    """All methods with the three errors: printed and measured side by side, and CPU seconds. Values may be lists over trials."""
    paper = printed(table) if table else {}
    headings = ["method"]
    for title in MEASURES.values():
        headings += [f"{title}, printed", f"{title}, here"] if paper else [title]
    rows = []
    for name in results:
        row = [name]
        if "reason" in results[name]:
            rows.append([name, *[""] * len(headings), str(results[name]["reason"])])
            continue
        for key in MEASURES:
            here = with_deviation(np.atleast_1d(results[name][key]).tolist())
            row += [number(getattr(paper[name], key)) if name in paper else "", here] if paper else [here]
        seconds = [with_deviation([float(np.mean(results[name][f"{stage}_cpu_seconds"]))]) for stage in ("fit", "predict")]
        rows.append([*row, " / ".join(seconds), ABOUT.get(name, "")])
    return Table(caption, [*headings, "CPU s, fit / predict", "what it is"], rows)


def comparison(
    results: Mapping[str, Mapping[str, Any]], row: str, table: str | None = None, comment: str = "", settings: str = PAPER
) -> Comparison:
    """The line *paper · paper's settings · default · best other* of RMSE from the results by method; ``settings`` is the second."""
    means = {name: float(np.mean(numbers["rmse"])) for name, numbers in results.items() if "rmse" in numbers}
    others = {name: value for name, value in means.items() if not name.startswith(OURS)}
    best = min(others, key=others.__getitem__) if others else None
    paper = printed(table)[PAPER].rmse if table else None
    return Comparison(row, paper, means.get(settings), means.get(DEFAULT), (best, others[best]) if best else None, comment)
