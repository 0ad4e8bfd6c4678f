"""What a release needs of the repository: ``python -m tools.release check | notes | requirements EXTRA | pages BUILT SITE``

check: the tag, if there is one, the package and the citation name the same version; the changelog and the history have it.
notes: what the changelog says of this version.
requirements: what the package and one of its extras need, for an installation that is there already.
pages: copy a built documentation into a folder of its version on the site, and list the versions.

The standard library does, so that it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def version() -> str:
    """The version in the package."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src" / "stitchwork" / "__init__.py").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError("`__version__` is not in src/stitchwork/__init__.py.")
    return found[1]


def notes(of: str) -> str:
    """The section of the changelog for a version; a development version has that of the version it will be."""
    release = re.sub(r"\.dev\d+$", "", of)
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    for section in sections:
        heading, _, body = section.partition("\n")
        if f"[{release}]" in heading or heading.strip() == f"[Unreleased] - {release}":
            return body.strip() + "\n"
    raise ValueError(f"CHANGELOG.md has no section for {release}.")


def check(tag: str | None) -> None:
    """Raise a `ValueError` where versions differ."""
    here = version()
    if tag is not None and tag != f"v{here}":
        raise ValueError(f"The tag is {tag}, and the package has version {here}: set `__version__`, or name the tag v{here}.")
    if f"version: {here}\n" not in (ROOT / "CITATION.cff").read_text():
        raise ValueError(f"CITATION.cff names another version than {here}.")
    if here not in [entry["version"] for entry in json.loads((ROOT / "docs" / "history.json").read_text())]:
        raise ValueError(f"docs/history.json has no figures of {here}: run python -m benchmarks.history --record, and --plot.")
    notes(here)


def requirements(extra: str) -> list[str]:
    """Requirements of the package with an extra, those of other extras in it included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found, waiting = list(project["dependencies"]), [extra]
    while waiting:
        for line in project["optional-dependencies"][waiting.pop()]:
            own = re.fullmatch(r"stitchwork\[(.+)\]", line)
            if own:
                waiting += own[1].split(",")
            else:
                found.append(line)
    return list(dict.fromkeys(found))


def add_pages(built: Path, site: Path, of: str) -> None:
    """Copy ``built`` to a folder of its version in ``site``; "stable" is the newest release, the list of versions is renewed."""
    names = [of]
    if "dev" not in of and all(_key(of) >= _key(path.name) for path in site.iterdir() if _is_version(path)):
        names.append("stable")
    for name in names:
        shutil.rmtree(site / name, ignore_errors=True)
        shutil.copytree(built, site / name)
    versions = sorted((path.name for path in site.iterdir() if _is_version(path)), key=_key, reverse=True)
    (site / "versions.json").write_text(json.dumps([{"version": name, "url": f"../{name}/"} for name in versions], indent=1) + "\n")
    home = "stable" if (site / "stable").is_dir() else of
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={home}/"><title>stitchwork</title>\n'
    (site / "index.html").write_text(page)
    (site / ".nojekyll").touch()


def _is_version(path: Path) -> bool:
    return path.is_dir() and path.name[:1].isdigit()


def _key(of: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", of.partition(".dev")[0]))


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "notes", "requirements", "pages"])
    parser.add_argument("arguments", nargs="*")
    asked = parser.parse_args()
    reference = os.environ.get("GITHUB_REF", "")
    tag = reference.removeprefix("refs/tags/") if reference.startswith("refs/tags/") else None
    try:
        if asked.what == "check":
            check(tag)
        elif asked.what == "notes":
            sys.stdout.write(notes(version()))
        elif asked.what == "requirements":
            print("\n".join(requirements(asked.arguments[0])))
        else:
            add_pages(Path(asked.arguments[0]), Path(asked.arguments[1]), version())
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
