"""Stitched models on Dask, for data beyond the memory of one machine.

`DaskStitchedRegressor` fits dask arrays and data frames with the same functions that fit NumPy arrays on one machine. Space is
split into boxes; each box borrows the points beyond its faces that its regions need, and after the fit it holds every region that
reaches into it. So the model stays in parts, each part answers alone, and no seam runs along the faces.
"""

try:
    from ._regressor import DaskStitchedRegressor, load
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"`stitchwork.dask` needs {error.name}: pip install 'stitchwork[dask]'.", name=error.name) from error

__all__ = ["DaskStitchedRegressor", "load"]
