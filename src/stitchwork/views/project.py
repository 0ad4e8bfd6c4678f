"""Grids in another reference system than the model: their x and y become the model's own two coordinates.

The system of a model of longitude and latitude is WGS 84; that of a GeoDataFrame or a file of points is that of its data.
"""

from __future__ import annotations

from typing import Any

from .._extras import need
from ..model.stitched import StitchedModel

_ACROSS, _UP = "x", "y"  # what readers of rasters, and the CF conventions, call the coordinates of a map
_DEGREES = "EPSG:4326"


def project_coordinates(model: StitchedModel, like: Any, mapping: str) -> dict[str, Any]:
    """The model's two coordinates at the points of ``like``, by their names; empty where it has the model's reference system.

    ``mapping`` is the variable of ``like`` that describes its reference system.
    """
    names, own = find_reference(model)
    variables = getattr(like, "variables", like.coords)
    has_map = mapping in variables and _ACROSS in like.coords and _UP in like.coords
    if own is None or not has_map or (set(names) != {_ACROSS, _UP} and set(names) <= set(variables)):
        return {}
    about = like[mapping].attrs
    theirs = about.get("crs_wkt") or about.get("spatial_ref")
    if not theirs:
        return {}
    xarray, pyproj = need("xarray", "A grid"), need("pyproj", "A projected grid", "geo")
    a, b = pyproj.CRS.from_user_input(theirs), pyproj.CRS.from_user_input(own)
    if a.equals(b, ignore_axis_order=True) or (a.is_geographic and b.is_geographic):
        return {}
    across, up = xarray.broadcast(like[_ACROSS], like[_UP])
    found = pyproj.Transformer.from_crs(a, b, always_xy=True).transform(across.values, up.values)
    return {name: xarray.DataArray(values, dims=across.dims) for name, values in zip(names, found, strict=True)}


def find_reference(model: StitchedModel) -> tuple[list[str], str | None]:
    """The names of the two features that are places, and their reference system as pyproj understands it; None if unknown."""
    known = {name: about["crs"] for name in model.feature_names if "crs" in (about := model.origin.attributes.get(name, {}))}
    if len(known) == 2:
        return list(known), next(iter(known.values()))
    if model.chart is not None and model.chart.globe is not None:
        return [model.feature_names[k] for k in model.chart.globe], _DEGREES
    return [], None
