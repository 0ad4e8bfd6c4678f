"""Factors of all regions as arrays: with them the compiled library computes standard deviations from a file."""

from __future__ import annotations

import numpy as np

from .._types import Array
from ..local.batch import batch_size
from ..local.blocks import BlockModels
from ..local.factors import Factor
from .arrays import Arrays
from .deviation import blocks_of
from .stitch import distinct_levels
from .stitched import StitchedModel


def describe_factors(model: StitchedModel) -> Arrays:
    """The arrays of `local.factors` of every region but the last level's, one after the other, and where each begins, (m + 1,).

    About h² / 2 numbers a region of h points.
    """
    if model.points.slopes is not None:
        raise ValueError("Factors of models with measured slopes cannot be saved. Save without `factors`.")
    arrays: Arrays = {"deviation/factor": np.asarray(model.calibration().factor)}
    for k, level in enumerate(distinct_levels(model.levels)):
        rows = _factor_rows(blocks_of(level.regions))
        start = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        arrays |= {f"regions{k}/model0/factor": np.concatenate(rows), f"regions{k}/model0/factor_start": start}
    return arrays


def _factor_rows(models: BlockModels) -> list[Array]:
    """The numbers of the factor of every region."""
    found: list[Factor | None] = [None] * len(models.members)
    for regions in models.settings.stacks(batch_size(models.members.shape[1])):
        for j, factor in zip(regions, models.factors(regions, keep=False), strict=True):
            found[j] = factor
    factors = [factor for factor in found if factor is not None]
    failed = sum(factor.whole is not None for factor in factors)
    if failed:
        raise ValueError(
            f"Rounding leaves {failed} of {len(factors)} regions without a Cholesky factor, so factors cannot be saved."
            " Fit with a larger `ridge`, or save without `factors`."
        )
    return [factor.numbers for factor in factors]
