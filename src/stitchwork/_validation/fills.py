"""Values that stand for missing ones, as -9999 does."""

from __future__ import annotations

import re

import numpy as np

from .._types import Array

_NINES = re.compile(r"9{2,}(\.9+)?")  # -999, 9999, 99.9


def repeated_far_value(values: Array, least: int = 3) -> tuple[float, int] | None:
    """A value farther from all others than these are from each other, such as -9999, and how often it occurs.

    It must repeat, or look like a fill value: nines only, or the only negative number.
    """
    known = values[np.isfinite(values)]
    for end in (known.min(initial=np.inf), known.max(initial=-np.inf)):
        others, count = known[known != end], int((known == end).sum())
        if len(np.unique(others[:1000])) < 10:  # flags and categories are no measurements
            continue
        gap = max(others.min() - end, end - others.max())
        alone = _NINES.fullmatch(f"{abs(end):g}") is not None or (end < 0.0 <= others.min())
        if gap > np.ptp(others) and (count >= least or alone):
            return float(end), count
    return None
