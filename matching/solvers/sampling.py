"""Plans drawn so that every pair has exactly its published probability, with demands and loads kept.

Shares are whole numbers of units, 2**bits to a review. Take the pairs whose units are odd: as edges between
submissions and reviewers they form a graph, and with a dummy line on each side that takes up what a reviewer's
expected load lacks to the next whole number, every node has an even number of them. Such a graph falls apart into
closed walks, along which the edges are raised and lowered by one unit in turn, one fair coin a walk saying which
comes first. No node's sum changes, no pair's expectation changes, and now all units are even: halve and repeat,
until a review is one unit. A submission gets its demand in every draw, a reviewer the expected load rounded up or
down, and so never more than load_max or fewer than load_min. Cost: bits * (number of uncertain pairs), in numpy.

References
----------
R. Gandhi, S. Khuller, S. Parthasarathy, A. Srinivasan, 2006. Dependent rounding and its applications to
approximation algorithms. Journal of the ACM 53(3), section 2. (Bit by bit on Euler walks, as in edge colouring:
H. N. Gabow, 1976. International Journal of Computer and Information Sciences 5(4).)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.errors import InvalidParamsError, Issue
from matching.pairs import in_row_order
from matching.solvers.flow import Segments, transport
from matching.types import FloatArray, IntArray, PairArray

__all__ = [
    "BITS", "draw", "draw_plan", "entropy", "facts_of_draw", "nearest_units", "one_of", "round_units", "to_units",
    "unit_bits",
]  # fmt: skip

BITS = 40  # a unit is 2**-40 of a review: no probability is further than 1e-12 from the one asked for
WHOLE = 1e-6  # sums this close to a whole number are meant to be one; probabilities may come from a file of six digits


def draw(probabilities: sparse.sparray, rng: int | np.random.Generator) -> PairArray:
    """One plan, each pair taken with exactly its probability (to 2**-40).

    It knows demands and loads and no rules; of a lottery under rules `draw_plan` draws.

    Parameters
    ----------
    probabilities : scipy.sparse array of shape (n_submissions, n_reviewers), float64
        Range [0, 1], no unit, as in `Solution.probabilities`; pairs not stored have none.
    rng : int or numpy.random.Generator
        The same seed gives the same plan.

    Returns
    -------
    ndarray of shape (n, 2), int64
        Pairs in row order. Each row and each column sums to what it is expected to, rounded up or down where that
        is not whole.

    Raises
    ------
    InvalidParamsError
        Numbers outside [0, 1], or which cannot be brought to whole sums.
    """
    table = sparse.coo_array(sparse.csr_array(probabilities, dtype=np.float64))
    rows, cols = (line.astype(np.int64) for line in table.coords)
    _require_shares(table.data)
    bits = unit_bits(int(np.ceil(table.data.sum())) + 1)
    amount = to_units(table.shape, rows, cols, table.data, bits)
    taken = round_units(table.shape, rows, cols, amount, bits, np.random.default_rng(rng))
    return in_row_order(np.column_stack([rows[taken], cols[taken]]))


def draw_plan(mixture: Sequence[tuple[float, PairArray]], rng: int | np.random.Generator) -> PairArray:
    """One of the plans a lottery under rules is over, each with exactly its chance (to 2**-53).

    Parameters
    ----------
    mixture : sequence of (float, ndarray of shape (n, 2), int64)
        As in `Solution.mixture`, not empty.
    rng : int or numpy.random.Generator
        The same seed gives the same plan.

    Returns
    -------
    ndarray of shape (n, 2), int64
    """
    return mixture[one_of(np.array([chance for chance, _ in mixture]), np.random.default_rng(rng))][1]


def one_of(chances: FloatArray, source: np.random.Generator) -> int:
    """A place, each drawn in proportion to its chance; they are above 0 and need not sum to 1."""
    ends = np.cumsum(chances)
    at = np.searchsorted(ends, source.random() * ends[-1], side="right")
    return min(int(at), chances.size - 1)


def entropy(probabilities: sparse.sparray) -> float:
    """``-sum p ln p`` over the pairs, in nats: how little the probabilities give away; 0 for a plan without chance."""
    p = probabilities.data[probabilities.data > 0]
    return float(-(p * np.log(p)).sum()) + 0.0


def facts_of_draw(
    total: float, expected: float, realised: float, probabilities: sparse.sparray
) -> dict[str, float | None]:
    """What `Solution.meta` says of a lottery and the plan drawn from it; see `matching.solvers.randomised`.

    Parameters
    ----------
    total : float
        Of the best plan without chance; shares of it are None where it is not above 0.
    expected, realised : float
        Total of the lottery and of the plan drawn.
    """
    return {
        "total": total,
        "expected": expected,
        "realised": realised,
        "share_of_total": expected / total if total > 0 else None,
        "realised_share": realised / total if total > 0 else None,
        "max_probability": float(probabilities.data.max(initial=0.0)),
        "entropy": entropy(probabilities),
    }


def unit_bits(reviews: int) -> int:
    """Bits of a review such that `reviews` of them stay inside int64, at most BITS."""
    return min(BITS, 61 - max(1, reviews).bit_length())


def round_units(
    shape: tuple[int, int], rows: IntArray, cols: IntArray, amount: IntArray, bits: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Take each pair with probability ``amount / 2**bits``.

    Parameters
    ----------
    shape : tuple of int
        ``(n_submissions, n_reviewers)``.
    rows, cols : ndarray of shape (n,), int64
        Pairs, each once.
    amount : ndarray of shape (n,), int64
        Units, [0, 2**bits].

    Returns
    -------
    ndarray of shape (n,), bool
        The sum of every line is its expectation, rounded up or down where that is not whole.
    """
    whole = np.int64(1) << bits
    out: NDArray[np.bool_] = amount == whole
    order = rng.permutation(
        np.flatnonzero((amount > 0) & (amount < whole))
    )  # who is paired with whom is left to chance
    lack_row = -_sums(rows[order], amount[order], shape[0]) & (whole - 1)
    lack_col = -_sums(cols[order], amount[order], shape[1]) & (whole - 1)
    some_rows, some_cols = np.flatnonzero(lack_row), np.flatnonzero(lack_col)
    place = np.concatenate([order, np.full(some_rows.size + some_cols.size, -1)])  # -1: a dummy, not a pair
    row = np.concatenate([rows[order], some_rows, np.full(some_cols.size, shape[0])])
    col = np.concatenate([cols[order], np.full(some_rows.size, shape[1]), some_cols])
    units = np.concatenate([amount[order], lack_row[some_rows], lack_col[some_cols]])
    while units.size:
        even = int(np.bitwise_or.reduce(units))
        zeros = (even & -even).bit_length() - 1  # levels at which no units are odd
        units >>= zeros
        bits -= zeros
        odd = np.flatnonzero(units & 1)
        units[odd] += _signs(shape, row[odd], col[odd], rng)
        units >>= 1
        bits -= 1
        full = units == 1 << bits
        out[place[full & (place >= 0)]] = True
        left = (units > 0) & ~full
        place, row, col, units = place[left], row[left], col[left], units[left]
    return out


def _signs(shape: tuple[int, int], rows: IntArray, cols: IntArray, rng: np.random.Generator) -> IntArray:
    """+1 or -1 for each edge, adding up to 0 at every node, each with probability one half.

    Every node has an even number of edges, but for the two dummies, which may both have an odd one. Edges are paired
    at each of their ends; going from edge to edge over a pairing at a submission, then one at a reviewer, leads
    round through every second edge of a closed walk: those share a sign, their partners have the other.
    """
    count = rows.size
    if int((rows == shape[0]).sum()) & 1:
        rows, cols = np.append(rows, shape[0]), np.append(cols, shape[1])
    over_row, over_col = _partners(rows), _partners(cols)
    half = _orbits(over_col[over_row])
    other = half[over_row]
    first = np.minimum(half, other)
    coin = 2 * rng.integers(0, 2, size=rows.size, dtype=np.int64) - 1
    return np.where(half == first, coin[first], -coin[first])[:count]


def _orbits(step: IntArray) -> IntArray:
    """For each position the smallest one that following `step`, a permutation, leads to; by doubling the stride."""
    least = np.arange(step.size, dtype=np.int64)
    while True:
        further = np.minimum(least, least[step])
        if np.array_equal(further, least):
            return least
        least, step = further, step[step]


def _partners(nodes: IntArray) -> IntArray:
    """For each edge another one at the same node, each edge the partner of its partner."""
    order = np.argsort(nodes, kind="stable")
    out = np.empty_like(order)
    out[order[0::2]], out[order[1::2]] = order[1::2], order[0::2]
    return out


def to_units(shape: tuple[int, int], rows: IntArray, cols: IntArray, share: FloatArray, bits: int = BITS) -> IntArray:
    """Shares as whole units, lines that are meant to have whole sums having exactly those.

    Parameters
    ----------
    shape : tuple of int
    rows, cols : ndarray of shape (n,), int64
        Pairs, each once.
    share : ndarray of shape (n,), float64
        [0, 1].
    bits : int
        2**bits units are a review.

    Returns
    -------
    ndarray of shape (n,), int64
        Units, the nearest to the shares where those add up; else as few as needed are moved, by one flow.

    Raises
    ------
    InvalidParamsError
        Numbers outside [0, 1], or no amounts within 1e-6 of a review have the whole sums.
    """
    _require_shares(share)
    unit = 2.0**bits
    near = np.rint(share * unit).astype(np.int64)
    row_sum, col_sum = _sums(rows, near, shape[0]), _sums(cols, near, shape[1])
    row_low, row_high = _whole_sums(row_sum, rows, bits)
    col_low, col_high = _whole_sums(col_sum, cols, bits)
    if _inside(row_sum, row_low, row_high) and _inside(col_sum, col_low, col_high):
        return near
    some = (near > 0) & (near < 1 << bits)
    room = np.int64(max(1.0, np.ceil(WHOLE * unit)))
    base = np.where(some, np.maximum(near - room, 0), near)
    more = np.where(some, np.minimum(near + room, 1 << bits) - near, 0)
    held = _sums(cols, base, shape[1])
    moved = nearest_units(
        shape, rows, cols, near - base, more, np.clip(row_sum, row_low, row_high) - _sums(rows, base, shape[0]),
        col_low - held, col_high - held,
    )  # fmt: skip
    if moved is None:
        raise InvalidParamsError(
            issues=[
                Issue("probabilities of a submission or a reviewer do not add up", "contradiction", "probabilities")
            ]
        )
    out: IntArray = base + moved
    return out


def _require_shares(share: FloatArray) -> None:
    if not (np.isfinite(share).all() and (share >= 0).all() and (share <= 1).all()):
        raise InvalidParamsError(
            issues=[Issue("probabilities must lie between 0 and 1", "out-of-range", "probabilities")]
        )


def nearest_units(
    shape: tuple[int, int],
    rows: IntArray,
    cols: IntArray,
    near: IntArray,
    more: IntArray,
    supply: IntArray,
    load_min: IntArray,
    load_max: IntArray,
) -> IntArray | None:
    """Amounts with the given sums, as few units as possible away from those asked for, by one flow.

    Parameters
    ----------
    near, more : ndarray of shape (n,), int64
        Units asked for, and how many more a pair may carry; not negative.
    supply : ndarray of shape (n_submissions,), int64
        What each row must sum to.
    load_min, load_max : ndarray of shape (n_reviewers,), int64
        Between which each column must lie.

    Returns
    -------
    ndarray of shape (n,), int64, or None
        None where there are none.
    """
    if (supply < 0).any() or (load_max < np.maximum(load_min, 0)).any():
        return None
    everyone = np.arange(shape[1], dtype=np.int64)
    penalty = 8 * (sum(shape) + 2)  # above any path of ones
    least = np.maximum(load_min, 0)
    answer = transport(
        shape,
        np.tile(rows, 2),
        np.tile(cols, 2),
        np.repeat(np.array([0, 1], dtype=np.int64), rows.size),
        supply,
        Segments(
            np.tile(everyone, 2),
            np.minimum(np.concatenate([least, load_max - least]), int(supply.sum())),
            np.repeat(np.array([-penalty, 0], dtype=np.int64), shape[1]),
        ),
        penalty,
        np.concatenate([near, more]),
    )
    out: IntArray = answer.amount[: rows.size] + answer.amount[rows.size :]
    return None if answer.unfilled.any() or (_sums(cols, out, shape[1]) < least).any() else out


def _whole_sums(sums: IntArray, lines: IntArray, bits: int) -> tuple[IntArray, IntArray]:
    """Least and largest sum each line may have: a whole number of reviews where it is meant to be one."""
    unit = 1 << bits
    slack = WHOLE * unit * np.maximum(1, np.bincount(lines, minlength=sums.size))
    nearest = (sums + unit // 2) >> bits << bits
    whole = np.abs(sums - nearest) <= np.minimum(slack, unit / 4)
    return np.where(whole, nearest, sums >> bits << bits), np.where(whole, nearest, -(-sums >> bits) << bits)


def _inside(sums: IntArray, low: IntArray, high: IntArray) -> bool:
    return bool(((sums >= low) & (sums <= high)).all())


def _sums(lines: IntArray, amount: IntArray, length: int) -> IntArray:
    """Units summed by line, in integers: as float64 they would lose the last bits."""
    out = np.zeros(length, dtype=np.int64)
    np.add.at(out, lines, amount)
    return out
