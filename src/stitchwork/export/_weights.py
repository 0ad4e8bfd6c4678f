"""Weights of a model in the layout that regridding tools read."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._extras import need


def weights_dataset(W: Any) -> Any:
    """A sparse matrix as an `xarray.Dataset` of ``row``, ``col``, counted from one, and ``S``."""
    xarray = need("xarray", "A file of weights")
    entries = W.tocoo()
    return xarray.Dataset(
        {
            "S": ("n_s", entries.data, {"long_name": "weight"}),
            "row": ("n_s", entries.coords[0].astype(np.int32) + 1, {"long_name": "query, counted from one"}),
            "col": ("n_s", entries.coords[1].astype(np.int32) + 1, {"long_name": "row of the data, counted from one"}),
        },
        attrs={"title": "weights of a stitched model", "n_a": W.shape[1], "n_b": W.shape[0]},
    )
