"""Every public name and method has an example that runs, and so does every prompt in the pages of the documentation."""

import doctest
import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import stitchwork
import stitchwork.datasets
import stitchwork.fmi
import stitchwork.native
import stitchwork.sensitivity
import stitchwork.transform

DOCS = Path(__file__).parents[1] / "docs"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[-+]?\d+)?")
HAS_DASK = all(importlib.util.find_spec(name) for name in ("dask", "distributed", "pyarrow"))
PUBLIC_MODULES = [stitchwork, stitchwork.datasets, stitchwork.fmi, stitchwork.native, stitchwork.sensitivity, stitchwork.transform]
if importlib.util.find_spec("xarray"):
    import stitchwork.xarray

    PUBLIC_MODULES.append(stitchwork.xarray)
if importlib.util.find_spec("matplotlib"):
    import stitchwork.plotting
    import stitchwork.report

    PUBLIC_MODULES += [stitchwork.plotting, stitchwork.report]
if importlib.util.find_spec("torch") and importlib.util.find_spec("jax"):
    import stitchwork.export

    PUBLIC_MODULES.append(stitchwork.export)
if HAS_DASK:
    import stitchwork.dask

    PUBLIC_MODULES.append(stitchwork.dask)
if importlib.util.find_spec("openmdao"):
    import stitchwork.openmdao

    PUBLIC_MODULES.append(stitchwork.openmdao)
if importlib.util.find_spec("adaptive"):
    import stitchwork.adaptive

    PUBLIC_MODULES.append(stitchwork.adaptive)


class Checker(doctest.OutputChecker):
    """Numbers with a decimal point agree to the digits that are written, the third digit and later ones within one unit."""

    def check_output(self, want, got, optionflags):
        """True if the rest is the same and the numbers are near."""
        wanted, found = NUMBER.findall(want), NUMBER.findall(got)
        if len(wanted) == len(found):
            near = (abs(float(w) - float(g)) <= tolerance(w) for w, g in zip(wanted, found, strict=True))
            if all(near):
                replacements = iter(wanted)
                got = NUMBER.sub(lambda match: next(replacements), got)
        return super().check_output(want, got, optionflags)


def tolerance(number):
    """Half a unit of the last digit of a written number, a unit if it has three digits or more: 0.01 for 1.25, 5e-7 for 3e-6."""
    mantissa, _, exponent = number.partition("e")
    digits = mantissa.strip("-+").replace(".", "").lstrip("0")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return (1.0 if len(digits) > 2 else 0.5) * (1 + 1e-9) * unit


def public(module):
    """Public names of a module, with what they are; data is not code."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {name: thing for name, thing in found.items() if inspect.isclass(thing) or inspect.isroutine(thing)}


def documented(thing):
    """A function; or a class, and its own public methods and properties.

    Those of a Protocol are shown by the class, and the ``plot`` of a display by its ``from_estimator``.
    """
    if not hasattr(thing, "from_estimator"):
        yield thing.__name__, thing
    if inspect.isclass(thing) and not getattr(thing, "_is_protocol", False):
        inherited = next((cls for cls in thing.__mro__[1:] if cls.__name__ in stitchwork.__all__), object)  # shown there
        own = [cls for cls in thing.__mro__ if cls.__module__.startswith("stitchwork") and cls not in inherited.__mro__]
        for name, member in {name: member for cls in reversed(own) for name, member in vars(cls).items()}.items():
            shown_elsewhere = name.startswith("_") or (name == "plot" and hasattr(thing, "from_estimator"))
            if not shown_elsewhere and (callable(member) or isinstance(member, classmethod | property)):
                yield f"{thing.__name__}.{name}", member


def examples(thing):
    """The examples of a docstring."""
    return doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")


def run(name, text, names):
    """Run the examples in ``text``, which see and change ``names``; fail with doctest's own report."""
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    test.globs = names
    report = []
    result = doctest.DocTestRunner(Checker(), optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert result.failed == 0, "".join(report)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Examples write files: into a folder of their own, with a cache of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_checker_tells_numbers_apart():
    same = Checker().check_output
    assert same("array([1.25, 3e-06])", "array([1.26, 3.4e-06])", FLAGS)
    assert not same("1.25", "1.27", FLAGS)
    assert not same("7.", "5.7", FLAGS)
    assert not same("3e-06", "4e-06", FLAGS)
    assert not same("0.36", "0.37", FLAGS)
    assert not same("RMSE 1.25", "MAE 1.25", FLAGS)


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=lambda module: module.__name__)
def test_every_public_name_has_an_example(module):
    for thing in public(module).values():
        for name, member in documented(thing):
            assert examples(member), f"{module.__name__}: {name} has no example"


@pytest.mark.parametrize("module", PUBLIC_MODULES, ids=lambda module: module.__name__)
def test_examples_of_docstrings_run(module, elsewhere):
    names = {"np": np, **public(stitchwork)}
    for thing in public(module).values():
        for name, member in documented(thing):
            run(f"{module.__name__}.{name}", inspect.getdoc(member), names)


def test_the_citation_names_this_version():
    assert f"version: {stitchwork.__version__}\n" in (DOCS.parent / "CITATION.cff").read_text()
    assert f"Version {stitchwork.__version__}," in (DOCS / "citing.md").read_text()


def pages():
    """Pages with prompts."""
    return [path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts and ">>>" in path.read_text()]


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_prompts_of_pages_run(path, elsewhere):
    text = re.sub(r"^```.*$", "", path.read_text(), flags=re.MULTILINE)  # a fence is not output
    data = re.findall(r'load_dataset\("(\w+)"\)', text)
    for name in data:
        try:
            stitchwork.datasets.load_dataset(name)
        except FileNotFoundError:
            pytest.skip(f"the data set {name!r} is not on this machine")
    run(path.name, text, {})
