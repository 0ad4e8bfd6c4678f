"""Many queries: cut into chunks of neighbours that are bounded by memory, and shared among threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree
from sklearn import get_config

from .._parallel import Threads, slices
from .._types import Array, Index

SMALL_QUERY = 64  # up to here, sorting, chunking and threads cost more than they bring
_LARGEST_CHUNK = 1 << 16


def in_chunks(Q: Array, per_query: int, fill: Callable[[Index], None], threads: Threads) -> None:
    """Call ``fill`` with chunks of neighbouring queries, so that each touches few regions, of ``per_query`` bytes a query.

    All chunks together stay within a share of scikit-learn's working memory.
    """
    if 0 < len(Q) <= SMALL_QUERY:
        fill(np.arange(len(Q)))
        return
    budget = get_config()["working_memory"] * 2**20 / (8 * threads.count)
    size = min(int(np.clip(budget / per_query, SMALL_QUERY, _LARGEST_CHUNK)), max(1, -(-len(Q) // threads.count)))
    order = cKDTree(Q, leafsize=size, balanced_tree=True).indices if len(Q) > size else np.arange(len(Q))
    threads.map(lambda part: fill(order[part]), slices(len(Q), size))
