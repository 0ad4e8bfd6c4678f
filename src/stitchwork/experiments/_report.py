"""The report: one self-contained HTML page with the comparison with the paper first, then every experiment."""

from __future__ import annotations

import base64
import html
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..storage.whole import write_whole
from ._section import Comparison, Figure, Section, Table, number
from ._store import Results

_PACKAGES = ("stitchwork", "numpy", "scipy", "scikit-learn", "xgboost-cpu", "jax", "cantera")

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 76rem; margin: 0 auto; padding: 1rem; color: #1b1b1b; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 2px solid #0072B2; padding-top: .8rem; }
p { max-width: 50rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
.caption { font-weight: 600; margin: 1.2rem 0 .3rem; }
.scroll { overflow-x: auto; margin: 0 0 1.6rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th { vertical-align: bottom; white-space: normal; min-width: 4.5rem; }
th:first-child, td:first-child, td.words, th.words { text-align: left; }
td:first-child { position: sticky; left: 0; background: #fff; white-space: normal; min-width: 6rem; max-width: 14rem; }
td.words { white-space: normal; min-width: 14rem; color: #555; }
tr.ours td { background: #eef5fb; }
figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; } figcaption { color: #555; max-width: 50rem; }
"""


def write_report(sections: Mapping[str, Section], results: Mapping[str, Results], folder: Path, quick: bool) -> Path:
    """Write ``report.html`` into ``folder``; returns its path."""
    path = folder / "report.html"
    write_whole(path, page(sections, results, quick).encode())
    return path


def page(sections: Mapping[str, Section], results: Mapping[str, Results], quick: bool) -> str:
    """The whole page."""
    links = "".join(f'<a href="#{name}">{html.escape(section.title.split(":")[0])}</a>' for name, section in sections.items())
    lines = [line for section in sections.values() for line in section.comparisons]
    missing = {f"{name}, {part}": why for name, found in results.items() for part, why in found.missing.items()}
    size = "This is the quick run at small sizes: good for seeing that everything works, not for its numbers." if quick else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><title>stitchwork: the paper, reproduced</title><style>{_STYLE}</style></head><body>
<h1>The paper, reproduced</h1>
<p>“Locally Adaptive and Differentiable Regression” (Han, Shankar, Ye and Phillips) covers scattered data with balls of 100 points,
fits a small kernel model with a quadratic in each, and averages them with smooth weights, so that the result has exact derivatives:
its method is PU-KRR-POLY. This page runs its evaluation again: what the paper printed, what our implementation of its settings
gives, what our default gives, and what every competitor gives on the same data. {size}</p>
<p>Errors are measured as in the paper: RMSE, and relative errors |y - f| / |y|, largest and mean, on held-out points. All methods
are tuned on held-out parts of the training data, with the paper's grids; the default needs no tuning, but was itself developed with
some of these data sets in sight (2-D, combustion, UCI, ozone).</p>
<nav aria-label="experiments">{links}</nav>
{_comparisons(lines)}
{_missing(missing)}
{"".join(_section(name, section) for name, section in sections.items())}
<h2>This run</h2><p>{html.escape(_versions())}. CPU seconds are those of all threads.</p>
</body></html>
"""


def _comparisons(lines: Sequence[Comparison]) -> str:
    """The first table: one line a row of the paper."""
    rows = []
    for line in lines:
        gain = line.printed / line.default if line.printed and line.default else None
        lead = line.other[1] / line.default if line.other and line.default else None
        other = f"{number(line.other[1])} ({line.other[0]})" if line.other else ""
        rows.append(
            [
                line.row,
                number(line.printed),
                number(line.paper),
                number(line.default),
                other,
                number(gain, 2),
                number(lead, 2),
                line.comment,
            ]
        )
    headings = ["row", "paper", "paper's settings", "default", "best other", "paper / default", "best other / default", "comment"]
    return _table(Table("RMSE, side by side. A ratio above one is in favour of the default.", headings, rows))


def _section(name: str, section: Section) -> str:
    text = "".join(f"<p>{html.escape(paragraph)}</p>" for paragraph in section.text)
    return f'<section id="{name}"><h2>{html.escape(section.title)}</h2>{text}{"".join(map(_block, section.blocks))}</section>'


def _block(block: Table | Figure | str) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Figure):
        source = base64.b64encode(block.png).decode()
        caption = html.escape(block.caption)
        return f'<figure><img alt="{caption}" src="data:image/png;base64,{source}"><figcaption>{caption}</figcaption></figure>'
    return f"<p>{html.escape(block)}</p>" if block else ""


def _table(table: Table) -> str:
    words = {"comment", "what it is"}
    wordy = [heading in words for heading in table.headings]

    def cell(tag: str, text: str, is_words: bool) -> str:
        return f"<{tag}{' class=words' if is_words else ''}>{html.escape(text)}</{tag}>"

    head = "".join(cell("th", heading, is_words) for heading, is_words in zip(table.headings, wordy, strict=True))
    body = "".join(
        f"<tr{' class=ours' if row[0].startswith(('stitchwork', 'PU-', 'exact')) else ''}>"
        + "".join(cell("td", text, is_words) for text, is_words in zip(row, wordy, strict=True))
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<p class="caption">{html.escape(table.caption)}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{html.escape(table.caption)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _missing(missing: Mapping[str, str]) -> str:
    if not missing:
        return ""
    items = "".join(f"<li>{html.escape(part)}: {html.escape(why)}</li>" for part, why in missing.items())
    return f"<p>Left out of this run:</p><ul>{items}</ul>"


def _versions() -> str:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return f"Python {platform.python_version()}, " + ", ".join(found)
