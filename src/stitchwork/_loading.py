"""`load`: read a saved model and rebuild the estimator that it was fitted with."""

from __future__ import annotations

import os
from pathlib import Path

from ._regressor import StitchedRegressor, check_kept, estimator_of
from .model.link import IDENTITY
from .storage.file import read_model, reading
from .storage.folder import MANIFEST, read_whole
from .transform import LogStitchedRegressor


def load(path: str | os.PathLike[str]) -> StitchedRegressor:
    """Read a model that `save` wrote, or a folder of the parts of a `DaskStitchedRegressor`.

    Raises
    ------
    ValueError
        If the file is truncated, is something else, or was written by a newer version.

    Examples
    --------
    >>> from stitchwork import StitchedRegressor
    >>> StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).save("line.stitch")
    >>> load("line.stitch").predict([[1.5]])
    array([4.])
    """
    folder = Path(path).is_dir()
    model = read_whole(path) if folder else read_model(path)
    with reading(Path(path) / MANIFEST if folder else path):
        check_kept(model.origin.parameters, model.dimension)
        return estimator_of(model, StitchedRegressor if model.origin.link == IDENTITY else LogStitchedRegressor)
