"""Optional packages, imported on demand. If one is missing, the error says how to install it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, kind: str, extra: str = "files") -> Any:
    """An optional module, or an error that says how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = module.split(".")[0]
        raise ModuleNotFoundError(f"{kind} needs {name}. Run: pip install 'stitchwork[{extra}]'", name=name) from error
