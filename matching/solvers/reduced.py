"""The flow of an assignment problem, by costs from which good prices have been taken off.

Prices move costs about without changing which flow is best. Taken off, they leave costs near 0 wherever it is open
which pairs are best, and the solver, whose time grows with the logarithm of the largest cost, is done sooner if the
others are cut to a limit. A cut changes nothing as long as dear arcs stay empty and cheap ones are full, which is
checked; otherwise the flow is computed again without.
"""

from __future__ import annotations

import numpy as np

from matching.solvers.flow import Flow, Segments, transport
from matching.solvers.prices import Prices
from matching.types import IntArray

__all__ = ["best_flow"]


def best_flow(
    shape: tuple[int, int],
    rows: IntArray,
    cols: IntArray,
    gain: IntArray,
    supply: IntArray,
    load_min: IntArray,
    load_max: IntArray,
    penalty: int,
    capacity: IntArray | None = None,
    start: tuple[Prices, int] | None = None,
) -> Flow:
    """The flow of the largest gain; reviews up to `load_min` are paid for with `penalty`, which makes them a must.

    Parameters
    ----------
    shape : tuple of int
    rows, cols, gain : ndarray of shape (n_pairs,), int64
        Offered pairs, each once, and what a unit of each is worth.
    supply : ndarray of shape (n_submissions,), int64
    load_min, load_max : ndarray of shape (n_reviewers,), int64
    penalty : int
        Price of a missing unit.
    capacity : ndarray of shape (n_pairs,), int64, or None
        Most units of each pair; None for one.
    start : (Prices, int) or None
        Any integer prices, and the largest cost, above 0, that is told from larger ones; None for neither.

    Raises
    ------
    SolverRangeError, SolverError
        As for `transport`.
    """
    total = int(supply.sum())
    loads = np.minimum(load_min, total), np.minimum(load_max - load_min, total)
    everyone = np.arange(shape[1], dtype=np.int64)
    load_cost = np.repeat(np.array([-penalty, 0], dtype=np.int64), shape[1])
    segments = np.concatenate([everyone, everyone]), np.concatenate(loads)
    if start is not None:
        prices, most = start
        dear = prices.u[rows] + prices.w[cols] - gain
        of_loads = load_cost - np.concatenate([prices.w, prices.w])
        unfilled = penalty + prices.u
        flow = transport(
            shape, rows, cols, np.clip(dear, -most, most), supply,
            Segments(*segments, np.clip(of_loads, -most, most)), np.clip(unfilled, -most, most), capacity,
        )  # fmt: skip
        load = np.bincount(cols, weights=flow.amount, minlength=shape[1]).astype(np.int64)
        first = np.minimum(load, loads[0])
        amounts = (
            (flow.amount, 1 if capacity is None else capacity, dear),
            (np.concatenate([first, load - first]), segments[1], of_loads),
            (flow.unfilled, supply, unfilled),
        )
        if all(_unharmed(amount, room, cost, most) for amount, room, cost in amounts):
            return flow
    return transport(shape, rows, cols, -gain, supply, Segments(*segments, load_cost), penalty, capacity)


def _unharmed(amount: IntArray, room: IntArray | int, cost: IntArray, most: int) -> bool:
    """Whether arcs dearer than the limit are empty and those cheaper than its opposite full."""
    return not ((amount > 0) & (cost > most)).any() and not ((amount < room) & (cost < -most)).any()
