"""Figures of README and docs: ``python -m benchmarks.results`` puts them on the pages, from `docs/results.json`.

Benchmarks write that file (``--record``). A page names what it shows between two comments, ``<!-- figures: NAME -->`` and
``<!-- end of figures -->``. What stands between them is made by the function of that name in `pages`, so no figure there is typed.
``--check`` writes nothing, and fails if a page differs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

import stitchwork

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results.json"
BLOCK = re.compile(r"(<!-- figures: ([\w ]+) -->\n).*?(\n<!-- end of figures -->)", re.DOTALL)


def read_results() -> dict[str, Any]:
    """Benchmark, name of a figure: its value, and the version, date and command that it is from."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def record(benchmark: str, command: str, figures: dict[str, Any]) -> None:
    """Merge the ``figures`` of a benchmark into the results, with the version, the date and the command that made each."""
    results = read_results()
    made = {"version": stitchwork.__version__, "date": date.today().isoformat(), "command": command}
    results.setdefault(benchmark, {}).update({name: {"value": value, **made} for name, value in figures.items()})
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def pages() -> list[Path]:
    """Pages that show figures."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if "_build" not in path.parts and BLOCK.search(path.read_text())]


def with_figures(text: str, results: dict[str, Any]) -> str:
    """The text of a page with the figures of ``results``."""
    from benchmarks.pages import BLOCKS

    return BLOCK.sub(lambda match: f"{match[1]}\n{BLOCKS[match[2]](results)}\n{match[3]}", text)


def main() -> None:
    """Update the pages, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page has other figures than the file")
    arguments = parser.parse_args()
    results, stale = read_results(), []
    for path in pages():
        text = path.read_text()
        fresh = with_figures(text, results)
        if fresh != text:
            stale.append(str(path.relative_to(ROOT)))
            if not arguments.check:
                path.write_text(fresh)
    if stale:
        print(("These pages differ from docs/results.json: " if arguments.check else "Updated: ") + ", ".join(stale))
    sys.exit(1 if stale and arguments.check else 0)


if __name__ == "__main__":
    main()
