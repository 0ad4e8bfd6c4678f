"""`stitchwork explore`: the page with a live model."""

from __future__ import annotations

from pathlib import Path

import typer

from .console import Console
from .loading import load_model


def explore_model(path: Path, port: int, console: Console) -> None:
    """Serve the page of a model; progress before it is ready goes to standard error."""
    from ..report import explore as serve

    console.warn(f"reading {path} …")
    model = load_model(path, -1)
    console.warn(f"preparing the page of {model.model_.n_points:,} points (errors and noise are computed if the file lacks them) …")

    def ready(address: str) -> None:
        console.warn(f"ready after {console.took()}")
        typer.echo(f"Open {address} in a browser. Ctrl+C stops it.")

    serve(model, port, path.name, ready)
