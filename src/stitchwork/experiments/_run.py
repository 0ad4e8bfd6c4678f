"""Run experiments part by part, store what is finished, and write the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ._store import Part, Results, is_stored, read_part, store_part

EXPERIMENTS = {
    "2d": "two_dimensions",
    "ablations": "ablations",
    "sphere": "sphere",
    "ozone": "ozone",
    "combustion": "combustion",
    "uci": "uci",
    "theory": "theory",
    "runtime": "runtime",
}


def experiment(name: str) -> Any:
    """The module of an experiment: ``TITLE``, ``parts(quick)``, ``section(results)``."""
    if name not in EXPERIMENTS:
        raise ValueError(f"There is no experiment {name!r}. Choose from {', '.join(EXPERIMENTS)}.")
    return import_module(f".{EXPERIMENTS[name]}", __package__)


def reproduce(
    names: Sequence[str] = (),
    folder: Path = Path("stitchwork-reproduction"),
    quick: bool = False,
    again: bool = False,
    announce: Callable[[str], None] = lambda text: None,
) -> Path:
    """Run the experiments called ``names`` (all of them if none is named) and write the report of all that is stored.

    Parameters
    ----------
    folder : results go to ``full`` or ``quick`` in it, the report to ``report.html`` beside them
    quick : small sizes
    again : run parts that are stored, too
    announce : is told of every part that is left out, and why
    """
    import matplotlib  # noqa: F401  (the report draws; better to miss it now than after hours)

    from ._report import write_report

    chosen = [(name, experiment(name)) for name in names or EXPERIMENTS]
    home = folder / ("quick" if quick else "full")
    home.mkdir(parents=True, exist_ok=True)
    missing = {name: run_parts(module.parts(quick), home / name, again, name, announce) for name, module in chosen}
    results = {}
    for name in EXPERIMENTS:
        found = stored_results(experiment(name).parts(quick), home / name)
        found.missing.update(missing.get(name, {}))
        if found.numbers:
            results[name] = found
    return write_report({name: experiment(name).section(found) for name, found in results.items()}, results, home, quick)


def run_parts(parts: Sequence[Part], folder: Path, again: bool, name: str, announce: Callable[[str], None]) -> dict[str, str]:
    """Run what is not stored; returns why parts could not be run: an absent package or file."""
    from tqdm.auto import tqdm

    missing = {}
    with tqdm(parts, desc=name, unit="part") as bar:
        for part in bar:
            bar.set_postfix_str(part.name)
            if again or not is_stored(folder, part.name):
                try:
                    store_part(folder, part.name, *part.run())
                except ModuleNotFoundError as error:
                    missing[part.name] = f"{error.name} is not installed; run: pip install 'stitchwork[paper]'"
                except FileNotFoundError as error:
                    missing[part.name] = str(error)
    for part_name, reason in missing.items():
        announce(f"{name}, {part_name}: left out. {reason}")
    return missing


def stored_results(parts: Sequence[Part], folder: Path) -> Results:
    """The finished parts, in their order."""
    found = [part.name for part in parts if is_stored(folder, part.name)]
    return Results(folder, {name: read_part(folder, name) for name in found})
