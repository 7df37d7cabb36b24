"""Plans that give every submission its floor, by exchanges under penalties that grow where floors stay out of reach.

One exchange lets go of one review of every submission and places all of them again by one flow
(`matching.solvers.exchange`). What is missing to a floor costs a penalty, which grows on the submissions that stay
below theirs (breakout local search; Morris, 1993). Once all floors are met, exchanges that keep them raise the total;
then the penalties are relaxed and the search goes on from there, for as many flows as it is given.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from matching.solvers.exchange import Arcs, Gain, reassign
from matching.types import FloatArray

__all__ = ["climb", "meet"]

FIRST_PENALTY = 5.0  # of each unit below a floor, in units of score
GROWTH = 2.0
PATIENCE = 2  # exchanges without gain before penalties grow
RELAXED = 0.4  # share of the penalties that stays after a plan was found
SHAKES = 3  # exchanges with noise after that
NOISE = 0.02  # of those, in units of the mean score of a pair
HOPELESS = 60  # exchanges without coming nearer to the floors after which none is expected to meet them
IDLE = 12  # exchanges without gain after which a plan counts as the best of its surroundings


def climb(
    arcs: Arcs,
    taken: NDArray[np.bool_],
    base: FloatArray,
    gain: Gain,
    rng: np.random.Generator,
    flows: int,
    over: Callable[[], bool],
) -> tuple[NDArray[np.bool_], int]:
    """Exchanges until `IDLE` in a row gain nothing; the plan and the flows it took.

    Parameters
    ----------
    base : ndarray of shape (n_submissions,), float64
        Sums of the locked pairs.
    over : callable
        Whether to stop.
    """
    idle, used, sums = 0, 0, _sums(arcs, taken, base)
    while idle < IDLE and used < flows and not over():
        used += 1
        found = reassign(arcs, taken, sums, gain, rng)
        idle = idle + 1 if found is None or found[1] <= 1e-9 else 0
        if found is not None and idle == 0:
            taken = found[0]
            sums = _sums(arcs, taken, base)
    return taken, used


def meet(
    arcs: Arcs,
    taken: NDArray[np.bool_],
    base: FloatArray,
    floors: FloatArray,
    rng: np.random.Generator,
    flows: int,
    over: Callable[[], bool],
    enough: float = np.inf,
) -> NDArray[np.bool_] | None:
    """The plan of the largest total found with every sum at its floor; None where none was found.

    Parameters
    ----------
    arcs : Arcs
    taken : ndarray of shape (n,), bool
        Any full plan.
    base : ndarray of shape (n_submissions,), float64
        Sums of the locked pairs.
    floors : ndarray of shape (n_submissions,), float64
        -inf where there is none.
    flows : int
        Most exchanges.
    over : callable
        Whether to stop.
    enough : float
        A total that is good enough.
    """
    slack = 1e-9 * np.maximum(1.0, np.abs(np.where(np.isfinite(floors), floors, 0.0)))
    least = floors - slack
    noise = NOISE * float(np.abs(arcs.score).mean()) if arcs.score.size else 0.0
    penalty = np.full(arcs.shape[0], FIRST_PENALTY)
    sums, best, best_total, idle, used = _sums(arcs, taken, base), None, -np.inf, 0, 0

    def kept(rows: NDArray[np.int64], before: FloatArray, after: FloatArray) -> FloatArray:
        return np.where(after >= least[rows], after - before, -np.inf)

    def paid(rows: NDArray[np.int64], before: FloatArray, after: FloatArray) -> FloatArray:
        low_before = np.maximum(0.0, floors[rows] - before)
        return np.asarray(after - before - penalty[rows] * (np.maximum(0.0, floors[rows] - after) - low_before))

    def shaken(rows: NDArray[np.int64], before: FloatArray, after: FloatArray) -> FloatArray:
        return paid(rows, before, after) + noise * rng.standard_normal(rows.size)

    nearest, last_nearer = (np.inf, np.inf), 0
    while used < flows and not over():
        low = sums < least
        missed = (float(low.sum()), float((floors - sums)[low].sum()))
        if missed < nearest:
            nearest, last_nearer = missed, used
        elif best is None and used - last_nearer > HOPELESS:
            break
        if not low.any():
            taken, spent = climb(arcs, taken, base, kept, rng, flows - used, over)
            used += spent
            sums = _sums(arcs, taken, base)
            if sums.sum() > best_total:
                best, best_total = taken, float(sums.sum())
            if best_total >= enough:
                break
            penalty = np.maximum(RELAXED * penalty, 1.0)
            for _ in range(SHAKES):
                used += 1
                moved = reassign(arcs, taken, sums, shaken, rng)
                if moved is not None:
                    taken = moved[0]
                    sums = _sums(arcs, taken, base)
            idle = 0
            continue
        used += 1
        found = reassign(arcs, taken, sums, paid, rng)
        if found is not None and found[1] > 1e-9:
            taken, idle = found[0], 0
            sums = _sums(arcs, taken, base)
        else:
            idle += 1
        if idle >= PATIENCE:
            penalty[low] *= GROWTH
            idle = 0
    return best


def _sums(arcs: Arcs, taken: NDArray[np.bool_], base: FloatArray) -> FloatArray:
    own = np.bincount(arcs.rows[taken], weights=arcs.score[taken], minlength=arcs.shape[0])
    return np.asarray(own + base)
