"""Exchanges of reviewers between submissions that leave nobody more envious than before.

What a move changes is looked at exactly: the sets of the submissions it touches, as seen by every submission, and all
sets as seen by those it touches. That costs the number of submissions times their demand, no matrix over pairs of
submissions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.constraints.envy import envy_by_submission
from matching.constraints.problem import AssignmentProblem
from matching.pairs import in_row_order
from matching.solvers.clock import Clock, slack_of
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Desk", "Move"]

NOBODY = -1
TRIED = 400  # moves of one submission that are looked at exactly, the best totals first
THIRDS = 64  # holders of a wanted reviewer for whom a free stand-in is looked up
EASED = 4_000  # moves looked at exactly to lower the sum of all excesses
SEEN = 1e-12  # differences of scores up to it are rounding


@dataclass(frozen=True, slots=True)
class Move:
    """Submissions with what each gives up and takes.

    Attributes
    ----------
    delta : float
        What the total gains.
    steps : tuple of (submission, place of the reviewer given up, reviewer taken)
    """

    delta: float
    steps: tuple[tuple[int, int, int], ...]


class Desk:
    """A full plan on which reviewers change places.

    Parameters
    ----------
    problem : AssignmentProblem
        Its rules are not looked at.
    score : ndarray of shape (n_submissions, n_reviewers + 1), float64
        Scores of lawful pairs, -inf for all others and for the last column.
    pairs : ndarray of shape (n, 2), int64
        A full plan.
    """

    def __init__(self, problem: AssignmentProblem, score: FloatArray, pairs: PairArray) -> None:
        self.problem, self.score = problem, score
        n_submissions, n_reviewers = problem.shape
        pairs = in_row_order(pairs)
        size = np.bincount(pairs[:, 0], minlength=n_submissions)
        place = np.arange(len(pairs)) - np.repeat(np.cumsum(size) - size, size)
        self.held = np.full((n_submissions, max(1, int(size.max(initial=0)))), NOBODY, dtype=np.int64)
        self.held[pairs[:, 0], place] = pairs[:, 1]
        fixed = np.zeros(problem.shape, dtype=bool)
        fixed[problem.locked[:, 0], problem.locked[:, 1]] = True
        self.movable = np.zeros(self.held.shape, dtype=bool)
        self.movable[pairs[:, 0], place] = ~fixed[pairs[:, 0], pairs[:, 1]]
        self.load = np.bincount(pairs[:, 1], minlength=n_reviewers)
        self.demand = np.maximum(problem.demand, 1).astype(np.float64)
        self.wanting = problem.demand > 0
        self.own = self._seen(np.arange(n_submissions)[:, None], self.held).sum(axis=1) / self.demand
        self.excess = envy_by_submission(problem, self.pairs)

    @property
    def pairs(self) -> PairArray:
        """The plan, int64 of shape (n, 2), in row order."""
        rows, place = np.nonzero(self.held != NOBODY)
        return in_row_order(np.column_stack([rows, self.held[rows, place]]))

    @property
    def worst(self) -> float:
        """The largest excess of envy; differences below the rounding of sums are none."""
        return float(self.excess.max(initial=0.0))

    def _seen(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """What reviewers are worth to submissions: 0 where they may not be had."""
        return np.maximum(self.score[rows, cols], 0.0)

    def calm(self, clock: Clock) -> None:
        """Take envy away, the most envious submission first, each time at the least loss.

        While somebody can be helped at nobody's expense, that is done; then moves that lower the sum of all excesses.
        """
        stuck = np.zeros(self.excess.size, dtype=bool)
        while not clock.over:
            ill = np.where(stuck, 0.0, self.excess)
            one = int(ill.argmax())
            if ill[one] <= slack_of(self.own[one]):
                return
            whom = self._envied(one)
            helped = self._help(one, one) or self._help(whom, one)
            stuck[one] = not helped
            if helped or (not np.where(stuck, 0.0, self.excess).any() and self._ease(clock)):
                stuck[:] = False

    def _ease(self, clock: Clock) -> bool:
        """A move after which the excesses sum to less, whoever moves; whether there was one."""
        total, tried = float(self.excess.sum()), 0
        envied = [self._envied(one) for one in np.flatnonzero(self.excess > 0).tolist()]
        order = np.argsort(-self.excess, kind="stable").tolist()
        for mover in dict.fromkeys([*order[: len(envied)], *envied, *order]):
            for move in self._moves(mover, -np.inf):
                tried += 1
                if tried > EASED or clock.over:
                    return False
                if float(self._after(move).sum()) < total - slack_of(total):
                    self._do(move)
                    return True
        return False

    def _envied(self, one: int) -> int:
        """Whom it envies most."""
        seen = self._seen(np.array([one]), self.held)
        envy = (seen.sum(axis=1) - seen.max(axis=1)) / self.demand
        envy[~self.wanting] = -1.0
        envy[one] = -1.0
        return int(envy.argmax())

    def _help(self, mover: int, ill: int) -> bool:
        """A move of `mover` after which `ill` envies less, preferably nobody; whether there was one."""
        part: Move | None = None
        for move in self._moves(mover, -np.inf):
            after = self._after(move)
            if not self._gentle(after) or after[ill] >= self.excess[ill] - slack_of(self.own[ill]):
                continue
            if after[ill] <= slack_of(self.own[ill]):
                self._do(move)
                return True
            part = part or move
        if part is not None:
            self._do(part)
        return part is not None

    def raise_total(self, clock: Clock, rounds: int) -> None:
        """Moves that gain and make nobody more envious, until there are none or `rounds` passes are over."""
        for _ in range(rounds):
            found = False
            best = np.where(np.isfinite(self.score), self.score, 0.0).max(axis=1)
            order = np.argsort(self.own - best, kind="stable")  # who is furthest from its best first
            for one in order[np.isin(order, np.flatnonzero(self.movable.any(axis=1)))].tolist():
                if clock.over:
                    return
                for move in self._moves(one, SEEN):
                    if self._gentle(self._after(move)):
                        self._do(move)
                        found = True
                        break
            if not found:
                return

    # ---- moves -------------------------------------------------------------------------------------------------

    def _moves(self, one: int, least: float) -> Iterator[Move]:
        """Moves that start at a submission and gain more than `least`, the best first, at most TRIED."""
        found: list[Move] = []
        free = np.flatnonzero(self.load < self.problem.load_max)
        free = free[~np.isin(free, self.held[one])]
        holders, places = np.nonzero(self.movable & (np.arange(len(self.held)) != one)[:, None])
        lines, slots, every = holders, places, self.held[holders, places]
        wanted = every
        useful = np.isfinite(self.score[one, wanted]) & ~np.isin(wanted, self.held[one])
        holders, places, wanted = holders[useful], places[useful], wanted[useful]
        rise = self.score[one, wanted] - self.score[holders, wanted]
        for mine in np.flatnonzero(self.movable[one]).tolist():
            gone = int(self.held[one, mine])
            loss = float(self.score[one, gone])
            swap = rise - loss + np.where((self.held[holders] == gone).any(axis=1), -np.inf, self.score[holders, gone])
            for at in _best(swap, least):
                found.append(
                    Move(float(swap[at]), ((one, mine, int(wanted[at])), (int(holders[at]), int(places[at]), gone)))
                )
            if not free.size:
                continue
            # somebody else takes the one given up and lets go of a reviewer with more than the least load
            take = int(free[self.score[one, free].argmax()])
            spare = self.load[every] > self.problem.load_min[every]
            back = self.score[lines, gone] - self.score[lines, every] + self.score[one, take] - loss
            back[~spare | (self.held[lines] == gone).any(axis=1) | (every == take)] = -np.inf
            for at in _best(back, least):
                found.append(Move(float(back[at]), ((one, mine, take), (int(lines[at]), int(slots[at]), gone))))
            if self.load[gone] <= self.problem.load_min[gone]:
                continue
            alone = self.score[one, free] - loss
            found += [Move(float(alone[at]), ((one, mine, int(free[at])),)) for at in _best(alone, least)]
            near = np.argsort(-rise, kind="stable")[:THIRDS]
            table = self.score[np.ix_(holders[near], free)]
            table[(self.held[holders[near]][:, :, None] == free[None, None, :]).any(axis=1)] = -np.inf
            instead = table.argmax(axis=1)
            chain = rise[near] - loss + table[np.arange(near.size), instead]
            for at in _best(chain, least):
                step = int(holders[near[at]]), int(places[near[at]]), int(free[instead[at]])
                found.append(Move(float(chain[at]), ((one, mine, int(wanted[near[at]])), step)))
        found.sort(key=lambda move: -move.delta)
        yield from found[:TRIED]

    def _gentle(self, after: FloatArray) -> bool:
        """Whether nobody envies more than at present."""
        return bool((after <= self.excess + SEEN).all())

    def _after(self, move: Move) -> FloatArray:
        """The excesses after a move, exact: who did not envy before can only come to envy those the move touches."""
        touched = [step[0] for step in move.steps]
        before = self.held[touched]
        self._place(move)
        own = self.own.copy()
        own[touched] = self._seen(np.array(touched)[:, None], self.held[touched]).sum(axis=1) / self.demand[touched]
        after = self.excess.copy()
        for one in {*touched, *np.flatnonzero(self.excess > 0).tolist()}:
            seen = self._seen(np.array([one]), self.held)
            envy = (seen.sum(axis=1) - seen.max(axis=1)) / self.demand
            after[one] = max(0.0, float(envy[self.wanting].max()) - own[one])
        for one in touched:
            seen = np.maximum(self.score[:, self.held[one]], 0.0)
            envy = (seen.sum(axis=1) - seen.max(axis=1)) / self.demand[one] - own
            after = np.where(self.wanting, np.maximum(after, envy), after)
        self.held[touched] = before
        return after

    def _place(self, move: Move) -> None:
        for one, place, taken in move.steps:
            self.held[one, place] = taken

    def _do(self, move: Move) -> None:
        after = self._after(move)
        for one, place, taken in move.steps:
            self.load[self.held[one, place]] -= 1
            self.load[taken] += 1
        self._place(move)
        for one in (step[0] for step in move.steps):
            self.own[one] = self._seen(np.array([one]), self.held[one]).sum() / self.demand[one]
        self.excess = after


def _best(gain: FloatArray, least: float) -> list[int]:
    """Places of the largest gains above `least`, at most TRIED."""
    at: NDArray[np.intp] = np.flatnonzero(gain > least)
    if at.size > TRIED:
        at = at[np.argpartition(-gain[at], TRIED)[:TRIED]]
    return [int(one) for one in at]
