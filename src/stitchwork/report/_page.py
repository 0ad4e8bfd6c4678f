"""The page: HTML, style and scripts in one file, with the compiled library as WebAssembly inside, where a model is."""

from __future__ import annotations

import html
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from .._parallel import Threads
from ..model.stitched import StitchedModel
from ..storage.whole import write_whole
from ._payload import compress, payload


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    title: str = "A stitched model",
) -> None:
    """Write one HTML file to explore a fitted model without a network.

    Parameters
    ----------
    model : StitchedRegressor
    path : where to write
    X, y : data to compare predictions with, optional
    title : of the page

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from stitchwork import StitchedRegressor
    >>> from stitchwork.report import write_report
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> model = StitchedRegressor(selection=None).fit(X, X[:, 0] * X[:, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, pathlib.Path(folder, "report.html"))
    ...     pathlib.Path(folder, "report.html").stat().st_size < 10**6
    True
    """
    check_is_fitted(model)
    if (X is None) != (y is None):
        raise ValueError("Data to compare with are both `X` and `y`.")
    test = None
    if X is not None:
        test = validate_data(model, X, reset=False, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if test[1].size != len(test[0]) * model.model_.n_outputs:
            raise ValueError(f"`y` must have a row for each of the {len(test[0])} rows of `X`, got shape {test[1].shape}.")
    write_page({title: model.model_}, Path(path), test, title, Threads(model.n_jobs))


def write_page(models: dict[str, StitchedModel], path: Path, test: tuple[Any, Any] | None, title: str, threads: Threads) -> None:
    """Write the page of one model, or of two by their names to compare, with errors on checked test data."""
    first, *others = models.values()
    for other in others:
        names = [(one.feature_names, one.target_names) for one in (first, other)]
        if names[0] != names[1]:
            raise ValueError(f"Models to compare must have the same features and targets, got {names[0]} and {names[1]}.")
    facts = [payload(model, test, name, live=False, threads=threads) for name, model in models.items()]
    write_whole(path, page(facts, title, live=False).encode(errors="replace"))


def page(facts: list[dict[str, Any]], title: str, live: bool) -> str:
    """The page of the payloads of one model, or of two to compare."""
    parts = {name: files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css", *_SCRIPTS)}
    # "<" could end the script that the data stand in.
    data = json.dumps({"live": live, "models": facts}, allow_nan=False).replace("<", "\\u003c")
    filled = {
        "TITLE": html.escape(title),
        "STYLE": parts["page.css"],
        "LIBRARY": "" if live else compress(files("stitchwork.native").joinpath("stitchwork.wasm").read_bytes()),
        "DATA": data,
        **{name.removesuffix(".js").upper(): parts[name] for name in _SCRIPTS},
    }
    text = parts["page.html"]
    for name, content in filled.items():
        text = text.replace(f"<!--{name}-->", content)
    return text


_SCRIPTS = tuple(
    f"{name}.js"
    for name in (
        "evaluator",
        "elements",
        "features",
        "sources",
        "words",
        "colors",
        "plot",
        "picture",
        "curves",
        "charts",
        "page",
    )
)
