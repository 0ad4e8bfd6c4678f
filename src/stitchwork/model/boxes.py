"""Space split into boxes by a binary tree of cuts, so that each box holds about as many points as the next.

The outer boxes are infinite: every point of space lies in exactly one box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array, Index

_HUGE = 1e300  # beyond any cut
_DEEPEST = 500  # largest depth of a tree, which is walked recursively

# A box, by its number, or [axis, cut, below, above].
Node = Any


@dataclass(frozen=True)
class Boxes:
    """Boxes of d-dimensional space; ``tree`` is made of plain lists and numbers."""

    tree: Node
    d: int

    def __len__(self) -> int:
        return count_boxes(self.tree)

    def of(self, X: Array) -> Index:
        """The box of each point of ``X`` (n, d)."""
        box = np.empty(len(X), dtype=np.intp)

        def descend(node: Node, rows: Index) -> None:
            if isinstance(node, int):
                box[rows] = node
                return
            axis, cut, below, above = node
            is_below = X[rows, axis] < cut
            descend(below, rows[is_below])
            descend(above, rows[~is_below])

        descend(self.tree, np.arange(len(X)))
        return box

    @property
    def cells(self) -> list[tuple[Array, Array]]:
        """Lower and upper corner of every box."""
        found: dict[int, tuple[Array, Array]] = {}

        def descend(node: Node, low: Array, high: Array) -> None:
            if isinstance(node, int):
                found[node] = low, high
                return
            axis, cut, below, above = node
            unit = np.arange(self.d) == axis
            descend(below, low, np.where(unit, cut, high))
            descend(above, np.where(unit, cut, low), high)

        descend(self.tree, np.full(self.d, -np.inf), np.full(self.d, np.inf))
        return [found[box] for box in range(len(found))]

    def merged(self, counts: Sequence[int], least: int) -> tuple[Boxes, list[list[int]]]:
        """Merge boxes with ``counts`` points until each has at least ``least``; also which boxes make up each new one."""
        groups: list[list[int]] = []

        def leaves(node: Node) -> list[int]:
            return [node] if isinstance(node, int) else leaves(node[2]) + leaves(node[3])

        def rebuilt(node: Node) -> Node:
            poor = not isinstance(node, int) and any(sum(counts[i] for i in leaves(side)) < least for side in node[2:])
            if isinstance(node, int) or poor:
                groups.append(leaves(node))
                return len(groups) - 1
            axis, cut, below, above = node
            return [axis, cut, rebuilt(below), rebuilt(above)]

        return Boxes(rebuilt(self.tree), self.d), groups


def check_tree(tree: Node, d: int) -> None:
    """Raise a `ValueError` unless ``tree`` cuts d-dimensional space into boxes that are numbered from 0 on."""
    boxes: list[int] = []
    nodes = [(tree, 0)]
    while nodes:
        node, depth = nodes.pop()
        if type(node) is int:
            boxes.append(node)
            continue
        if not (isinstance(node, list) and len(node) == 4 and type(node[0]) is int and 0 <= node[0] < d):
            raise ValueError("the boxes are no tree of cuts")
        if type(node[1]) not in (int, float) or not -_HUGE < node[1] < _HUGE:
            raise ValueError("a cut of the boxes is no finite number")
        if depth > _DEEPEST:
            raise ValueError("the tree of boxes is too deep")
        nodes += [(side, depth + 1) for side in node[2:]]
    if sorted(boxes) != list(range(len(boxes))):
        raise ValueError("the boxes are not numbered from 0 on")


def count_boxes(tree: Node) -> int:
    """Number of boxes of a tree, which need not be a valid one."""
    count, nodes = 0, [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += node[2:]
        else:
            count += 1
    return count


def cut_boxes(sample: Array, n: int, most: int) -> Boxes:
    """Cut space until no box holds more than about ``most`` of n points, judged by a ``sample`` (s, d) of them."""
    number = 0

    def cut(rows: Index) -> Node:
        nonlocal number
        if len(rows) * n > most * len(sample):
            X = sample[rows]
            for axis in np.argsort(-np.ptp(X, axis=0), kind="stable"):
                values = np.unique(X[:, axis])
                if len(values) > 1:
                    # Midway between two values, where rounding cannot move a point across.
                    upper = int(np.clip(np.searchsorted(values, np.median(X[:, axis]), side="right"), 1, len(values) - 1))
                    middle = float(0.5 * (values[upper - 1] + values[upper]))
                    if values[upper - 1] < middle <= values[upper]:
                        below = X[:, axis] < middle
                        return [int(axis), middle, cut(rows[below]), cut(rows[~below])]
        number += 1
        return number - 1

    return Boxes(cut(np.arange(len(sample))), sample.shape[1])
