"""The columns of a table that features came from: numbers, dates, and words, which are a feature each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Array
from ..model.stitched import StitchedModel
from .slices import label_of

CATEGORY = "category"  # attribute of a feature: the column of which it is one category
_DAYS = "days since 1970-01-01"  # the unit of dates


class Column(NamedTuple):
    """A column: its name, "number", "date" or "category", its features, and the words of these where it has some."""

    name: str
    kind: str
    features: list[int]
    words: list[str]


def find_columns(model: StitchedModel) -> list[Column]:
    """The columns that the features of a model came from, in the order of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from stitchwork import StitchedRegressor
    >>> from stitchwork.views.columns import find_columns
    >>> model = StitchedRegressor().fit(np.arange(12.0).reshape(6, 2), np.arange(6.0)).model_
    >>> find_columns(model)[0]
    Column(name='x0', kind='number', features=[0], words=[])
    """
    found: dict[str, Column] = {}
    for k, name in enumerate(model.feature_names):
        about = model.origin.attributes.get(name, {})
        column = about.get(CATEGORY)
        if column is not None and name.startswith(f"{column}="):
            one = found.setdefault(f"={column}", Column(column, "category", [], []))
            one.features.append(k)
            one.words.append(name[len(column) + 1 :])
        else:
            found[f"{k}"] = Column(name, "date" if about.get("units") == _DAYS else "number", [k], [])
    return list(found.values())


def label_feature(model: StitchedModel, k: int) -> str:
    """The label of a feature in pictures, with its unit except for dates, which are written as dates."""
    name = model.feature_names[k]
    return name if model.origin.attributes.get(name, {}).get("units") == _DAYS else label_of(model, name)


def write_value(column: Column, value: float) -> str:
    """A number of a column as text: dates as dates."""
    if column.kind == "date":
        return str(np.datetime64(round(value), "D"))
    return f"{value:.4g}"


def sum_by_column(columns: list[Column], shares: Array) -> Array:
    """Shares (t, d) of features, added up over those of each column: (t, columns)."""
    return np.stack([shares[:, column.features].sum(axis=1) for column in columns], axis=1)
