"""Bounds where no linear program fits: weights of the submissions, moved step by step by what each has too much.

Every wish is a concave function f of the submissions' sums, and weights y with the flow's bound B bound it by
``f*(y) + B(y)`` (`matching.objectives`). That bound is convex in the weights, and the sums of the best flow under them
say where it falls: a submission whose sum lies above its mark gets less weight, one below it more. Steps are as long
as the distance to a value known to be reached asks for (Polyak, 1969), along directions that remember those before
(Barahona and Anbil, 2000). Flows on the active pairs guide the way; only the best weights met are then priced over all
pairs, so what is handed back is a proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from matching.objectives import Floors, Level, Measure, Shortfall, Total
from matching.solvers.flowbench import CLOSE, FlowBench
from matching.solvers.stages import Bound, Constraints, priced
from matching.types import FloatArray

__all__ = ["Priced", "certified", "descend", "first_weights", "offer"]

FRESH = 0.5  # share of the newest direction in the one taken
SOFT = 0.25  # of the mean distance of sums from their marks: nearer ones begin with a weight between none and all
PATIENCE = 8  # steps with less than LITTLE of the gap gained after which no more are taken
LITTLE = 0.02
ROUNDS = 4  # flows and sweeps of a proof
SLIGHT = 1e-4  # relative gain of a round after which no other follows
TRACE = 1e-3  # weights below this share of the largest are taken for none
SPARE = 2  # people offered to each submission beside those it has room for
NOISE = 0.02  # of the mean score: people this much alike are offered at random
ENTRIES = 1 << 21  # pairs looked at together


@dataclass(frozen=True, eq=False)
class Priced:
    """Weights for a wish and the wishes before it.

    Attributes
    ----------
    weights : ndarray of shape (n_submissions,), float64
        Of the wish itself.
    pulls : tuple of ndarray of shape (n_submissions,), float64
        k z of each constraint.
    scales : tuple of float
        k of each.
    guess : float
        The bound as far as the active pairs tell.
    """

    weights: FloatArray
    pulls: tuple[FloatArray, ...]
    scales: tuple[float, ...]
    guess: float = np.inf

    @property
    def multipliers(self) -> tuple[tuple[float, FloatArray], ...]:
        """As a proof states them."""
        return tuple(
            (k, pull / k) if k > 0.0 else (0.0, np.zeros(pull.size))
            for k, pull in zip(self.scales, self.pulls, strict=True)
        )

    @property
    def total(self) -> FloatArray:
        """Weight of each submission's sum in the flow."""
        return np.asarray(self.weights + sum(self.pulls, np.zeros(self.weights.size)))


def first_weights(measure: Measure, constraints: Constraints, scales: Sequence[float], sums: FloatArray) -> Priced:
    """Weights that fit a plan of these sums: full ones well below a mark, none well above it.

    Parameters
    ----------
    scales : sequence of float
        k of each constraint; 0 leaves it out. Of floors only whether it is 0 counts.
    sums : ndarray of shape (n_submissions,), float64
    """
    pulls = tuple(
        k * _start(other, sums) if k > 0.0 else np.zeros(sums.size)
        for k, (other, _) in zip(scales, constraints, strict=True)
    )
    return Priced(_start(measure, sums), pulls, tuple(scales))


def descend(
    bench: FlowBench, measure: Measure, constraints: Constraints, start: Priced, target: float, steps: int
) -> Priced:
    """The best weights met on the way down from `start`.

    Parameters
    ----------
    measure : Measure
        Total, Shortfall or Level; constraints on these or on Floors.
    target : float
        A value of the measure that is reached, in the unit of the measure.
    steps : int
        Flows on the active pairs, at most.
    """
    sides: list[tuple[float, Measure, float]] = [(1.0, measure, 0.0)] + [
        (k, other, least) for k, (other, least) in zip(start.scales, constraints, strict=True)
    ]
    at: list[FloatArray] = [start.weights, *start.pulls]
    best, before, idle = start, np.inf, 0
    direction: list[FloatArray] = []
    last = at
    for _ in range(steps):
        bench.tell("fairness", None, None)
        if bench.clock.over:
            break
        total = np.asarray(sum(at))
        top = float(total.max())
        if top <= 0.0:  # a step too far: without weights no flow says where to go
            at, direction = [0.5 * (own + old) for own, old in zip(at, last, strict=True)], []
            if not sum(float(own.sum()) for own in at) > 0.0:
                break
            continue
        _, sums = bench.near.corner(total / top)
        bench.solves["flows"] += 1
        guess = float(total @ sums) + sum(_level(side, own) for side, own in zip(sides, at, strict=True))
        if guess < best.guess:
            best = Priced(at[0], tuple(at[1:]), start.scales, guess)
        if best.guess - target <= CLOSE * abs(best.guess):
            break
        nearer = not np.isfinite(before) or best.guess < before - LITTLE * (before - target)
        idle = 0 if nearer else idle + 1
        if idle >= PATIENCE:
            break
        before = best.guess if idle == 0 else before
        slopes = [_slope(side, own, sums) for side, own in zip(sides, at, strict=True)]
        direction = slopes if not direction else [
            FRESH * new + (1.0 - FRESH) * old for new, old in zip(slopes, direction, strict=True)
        ]  # fmt: skip
        size = sum(float(part @ part) for part in direction)
        if size <= 0.0:
            break
        step = (guess - target) / size
        last = at
        at = [_inside(side, own - step * part) for side, own, part in zip(sides, at, direction, strict=True)]
    return best


def certified(
    bench: FlowBench, measure: Measure, constraints: Constraints, found: Priced, rounds: int = ROUNDS
) -> Bound | None:
    """The best bound that weights prove over all pairs within some flows; None where they prove nothing.

    Only the prices of reviewers are taken from a flow. Given these, the best people of each submission say the best
    price of its reviews, and they are the pairs the next flow needs: a few a submission, where weights near 0 would
    have the oracle bring in nearly everybody.
    """
    found = _without_traces(measure, constraints, found)
    total, best = found.total, None
    top = float(total.max())
    if top <= 0.0:
        return None
    for _ in range(rounds):
        bench.tell("fairness", None, None)
        extreme = None if bench.clock.over else bench.near.best(total / top)
        if extreme is None or extreme.missing:
            break
        bench.solves["flows"] += 1
        w = np.where(bench.oracle.state.load_max > 0, top * extreme.w, 0.0)
        u = offer(bench, total, w)
        with bench.clock.stage("sweeps"):
            bound = priced(
                bench.oracle.state, measure, constraints, found.weights, found.multipliers, u, w
            )  # fmt: skip
        gained = np.inf if best is None else best.bound - bound.bound
        best = bound if best is None or gained > 0.0 else best
        if gained <= SLIGHT * abs(best.bound):
            break
    return best if best is not None and np.isfinite(best.bound) else None


def _without_traces(measure: Measure, constraints: Constraints, found: Priced) -> Priced:
    """Weights so small that everybody lies within rounding of the prices are none, which sweeps pass over."""
    least = TRACE * float(found.total.max())
    kept = [
        np.where(own < least, 0.0, own) if isinstance(one, Shortfall | Floors) else own
        for one, own in zip((measure, *(other for other, _ in constraints)), (found.weights, *found.pulls), strict=True)
    ]
    return replace(found, weights=kept[0], pulls=tuple(kept[1:]))


def offer(bench: FlowBench, weights: FloatArray, w: FloatArray) -> FloatArray:
    """Make the best people of each submission at these prices active, and return the price u that goes with w.

    Parameters
    ----------
    weights : ndarray of shape (n_submissions,), float64
    w : ndarray of shape (n_reviewers,), float64
        In units of the weighted score.

    Returns
    -------
    ndarray of shape (n_submissions,), float64
        What the last of a submission's best people is worth above their price, by which ``weights . U`` is bounded most
        closely. Cost: one sweep.
    """
    problem, state = bench.problem, bench.oracle.state
    n_submissions, n_reviewers = problem.shape
    rng = np.random.default_rng(bench.rng)
    # where weights are small many people are about as good; a fixed order would send all to the same few
    noise = NOISE * float(np.abs(state.plain).mean() if state.plain.size else 0.0)
    u, found = np.zeros(n_submissions), []
    price = np.where(state.load_max > 0, w, np.inf)
    everyone, step = slice(0, n_reviewers), max(1, ENTRIES // max(1, n_reviewers))
    with bench.clock.stage("sweeps"):
        for first in range(0, n_submissions, step):
            rows = slice(first, min(first + step, n_submissions))
            most = int(min(state.supply[rows].max(initial=0), n_reviewers - 1))
            if most <= 0:
                continue
            worth = weights[rows, None] * problem.scores.block(rows, everyone) - price
            worth[np.isnan(worth)] = -np.inf
            worth[state.closed.within(rows, everyone)] = -np.inf
            nth = -np.partition(-worth, most - 1, axis=1)[:, :most]
            nth.sort(axis=1)
            supply = np.clip(state.supply[rows], 1, most)
            last = nth[np.arange(nth.shape[0]), most - supply]
            u[rows] = np.where((state.supply[rows] > 0) & np.isfinite(last), last, 0.0)
            worth += noise * rng.random(worth.shape, dtype=np.float32)
            wanted = min(most + SPARE, n_reviewers - 1)
            best = np.argpartition(-worth, wanted - 1, axis=1)[:, :wanted]
            found.append(np.column_stack([np.repeat(np.arange(rows.start, rows.stop), wanted), best.ravel()]))
        if found:
            pairs = np.concatenate(found)
            bench.near.state.add(pairs)
            state.add(pairs)
    return u


def _start(measure: Measure, sums: FloatArray) -> FloatArray:
    if isinstance(measure, Shortfall):
        above = sums - measure.t
        soft = SOFT * float(np.abs(above[measure.among]).mean()) if measure.among.any() else 0.0
        return np.where(measure.among, np.clip(0.5 - above / max(2.0 * soft, 1e-300), 0.0, 1.0), 0.0)
    return np.zeros(sums.size) if isinstance(measure, Floors) else measure.weights(sums)


def _level(side: tuple[float, Measure, float], own: FloatArray) -> float:
    """What a side adds to the bound besides the flow."""
    k, measure, least = side
    return k * (measure.conjugate(own / k) - least) if k > 0.0 else 0.0


def _slope(side: tuple[float, Measure, float], own: FloatArray, sums: FloatArray) -> FloatArray:
    """How the bound changes with the weights of a side."""
    k, measure, least = side
    if k == 0.0 or isinstance(measure, Total):
        return np.zeros(sums.size)  # all alike, and fixed by k
    if isinstance(measure, Shortfall):
        return np.where(measure.among, sums - measure.t, 0.0)
    if isinstance(measure, Floors):
        some = np.isfinite(measure.floor)
        return np.where(some, sums - np.where(some, measure.floor, 0.0) - least, 0.0)
    assert isinstance(measure, Level)
    above = sums - float(own @ sums) / k  # what all share moves no share
    return np.where(measure.among & ((own > 0.0) | (above < 0.0)), above, 0.0)


def _inside(side: tuple[float, Measure, float], own: FloatArray) -> FloatArray:
    """The nearest weights that prove something."""
    k, measure, _ = side
    if isinstance(measure, Shortfall):
        return np.clip(own, 0.0, k)
    if isinstance(measure, Floors):
        return np.maximum(own, 0.0)
    if isinstance(measure, Level) and k > 0.0:
        out = np.zeros(own.size)
        out[measure.among] = _on_simplex(own[measure.among], k)
        return out
    return own


def _on_simplex(point: FloatArray, size: float) -> FloatArray:
    """The nearest point whose parts are not negative and add up to `size` (Held, Wolfe and Crowder, 1974)."""
    falling = np.sort(point)[::-1]
    over = np.cumsum(falling) - size
    last = int(np.flatnonzero(falling * np.arange(1, point.size + 1) > over)[-1])
    out: NDArray[np.float64] = np.maximum(point - over[last] / (last + 1), 0.0)
    return out * (size / float(out.sum()))
