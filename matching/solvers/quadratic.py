"""Prices of the transport problem with squared shares, by Newton steps on its dual.

    maximise   sum over pairs of s x - beta x^2   with  0 <= x <= cap, row sums d, column sums within [l_min, l_max]

For given prices the best shares are ``x = clip((s - u - w) / (2 beta), 0, cap)``, so the dual is a convex piecewise
quadratic function of u and w whose gradient is what the lines lack. Where a share lies strictly between its limits it
falls with either price; those pairs make up the second derivative, a sparse graph Laplacian that conjugate gradients
handle (semismooth Newton: Lorenz, Manns and Meyer, 2021. Quadratically regularized optimal transport. Applied
Mathematics and Optimization 83). The answer is a start: whoever asks checks and repairs it with exact flows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from matching.types import FloatArray, IntArray

__all__ = ["QuadraticDual"]

STEPS = 80  # Newton steps; tens are the rule
HALVINGS = 30
LOOKS = 250  # evaluations in all; a dual with many ties between caps can stall short of the end
ENOUGH = 1e-7  # reviews a line may lack at the end
CONJUGATE_STEPS = 200
FORCED_ROUNDS = 4
LITTLE = 1e-7


@dataclass(frozen=True, slots=True)
class _Point:
    """Value of the dual, shares and sums at some prices."""

    value: float
    slack: FloatArray  # s - u - w by pair
    share: FloatArray
    lack_row: FloatArray  # demand less the row's sum
    load: FloatArray


class QuadraticDual:
    """The dual over a list of pairs.

    Parameters
    ----------
    rows, cols : ndarray of shape (n,), int64
    score, cap : ndarray of shape (n,), float64
    demand : ndarray of shape (n_submissions,), float64
    load_min, load_max : ndarray of shape (n_reviewers,), float64
    beta : float
        > 0.
    """

    def __init__(
        self,
        rows: IntArray,
        cols: IntArray,
        score: FloatArray,
        cap: FloatArray,
        demand: FloatArray,
        load_min: FloatArray,
        load_max: FloatArray,
        beta: float,
    ) -> None:
        self.rows, self.cols, self.score, self.cap = rows, cols, score, cap
        self.demand, self.load_min, self.load_max = demand, load_min, load_max
        self.beta = beta
        self.looks = 0
        self.open_rows, self.open_cols = demand > 0, load_max > 0

    def solve(
        self, u: FloatArray, w: FloatArray, stop: Callable[[], bool] | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Prices near the best ones, from a start; `stop` ends it before that.

        Returns
        -------
        u, w : ndarray, float64
            Lines without demand or room keep the prices they came with.
        share : ndarray of shape (n,), float64
            Of each pair.
        lacking : float
            The most that any line lacks of a lawful sum, in reviews.
        """
        self.looks = 0
        here = self._at(u, w)
        worst = np.inf
        for _ in range(STEPS):
            grad_u, grad_w, free = self._gradient(here, w)
            worst = float(max(np.abs(grad_u).max(initial=0.0), np.abs(grad_w).max(initial=0.0)))
            if worst <= ENOUGH or self.looks > LOOKS or (stop is not None and stop()):
                break
            found = None
            for step in (self._newton, self._downhill):
                found = self._search(u, w, here, grad_u, grad_w, *step(here, w, grad_u, grad_w, free, worst))
                if found is not None:
                    break
            if found is None:
                break
            u, w, here = found
        return u, w, here.share, worst

    def _search(
        self, u: FloatArray, w: FloatArray, here: _Point, grad_u: FloatArray, grad_w: FloatArray, step_u: FloatArray,
        step_w: FloatArray,
    ) -> tuple[FloatArray, FloatArray, _Point] | None:  # fmt: skip
        """The first of ever shorter steps that brings the dual down enough; None if none does."""
        slope = float(grad_u @ step_u + grad_w @ step_w)
        if not slope < 0.0:
            return None
        length = 1.0
        for _ in range(HALVINGS):
            new_u, new_w = u + length * step_u, w + length * step_w
            new_w[new_w * w < 0.0] = 0.0  # at 0 the other load bound takes over, so no step goes past it
            there = self._at(new_u, new_w)
            if there.value <= here.value + 1e-4 * length * slope:
                return new_u, new_w, there
            length /= 2.0
        return None

    def _at(self, u: FloatArray, w: FloatArray) -> _Point:
        self.looks += 1
        slack = self.score - u[self.rows] - w[self.cols]
        share = np.clip(slack / (2.0 * self.beta), 0.0, self.cap)
        lack = self.demand - np.bincount(self.rows, share, self.demand.size)
        load: FloatArray = np.bincount(self.cols, share, self.load_max.size).astype(np.float64)
        value = (
            np.where(self.open_rows, u, 0.0) @ self.demand
            + np.where(self.open_cols, np.maximum(w, 0.0), 0.0) @ self.load_max
            - np.maximum(-w, 0.0) @ self.load_min
            + (slack - self.beta * share) @ share
        )
        return _Point(float(value), slack, share, lack, load)

    def _gradient(self, here: _Point, w: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """The shortest subgradient, and the columns whose price may move; at price 0 any lawful load will do."""
        grad_u = np.where(self.open_rows, here.lack_row, 0.0)
        wanted = np.where(w > 0.0, self.load_max, np.where(w < 0.0, self.load_min, here.load))
        wanted = np.where(w == 0.0, np.clip(here.load, self.load_min, self.load_max), wanted)
        grad_w = np.where(self.open_cols, wanted - here.load, 0.0)
        return grad_u, grad_w, self.open_cols & ((w != 0.0) | (grad_w != 0.0))

    def _newton(
        self, here: _Point, w: FloatArray, grad_u: FloatArray, grad_w: FloatArray, free: NDArray[np.bool_], worst: float
    ) -> tuple[FloatArray, FloatArray]:
        """The Newton step; prices of reviewers that it would carry past 0 stop there, and the others are told so."""
        n_submissions, n_reviewers = self.demand.size, self.load_max.size
        inside = np.flatnonzero((here.slack > 0.0) & (here.slack < 2.0 * self.beta * self.cap))
        graph = sparse.csr_array(
            (np.ones(inside.size), (self.rows[inside], self.cols[inside])), shape=(n_submissions, n_reviewers)
        )
        back = graph.T.tocsr()
        # the Laplacian is singular along equal shifts of linked lines; a little more on its diagonal settles those
        diagonal = np.concatenate([graph.sum(axis=1), graph.sum(axis=0)]) + LITTLE + min(0.01, 0.01 * worst)
        target = -2.0 * self.beta * np.concatenate([grad_u, grad_w])
        forced = np.zeros(n_submissions + n_reviewers)
        moving = np.concatenate([self.open_rows, free])
        step = forced
        accuracy = min(0.01, max(1e-8, 0.01 * worst))
        for _ in range(FORCED_ROUNDS):
            step = forced + _conjugate(graph, back, diagonal, target, forced, moving, accuracy)
            past = moving[n_submissions:] & (w != 0.0) & ((w + step[n_submissions:]) * w < 0.0)
            if not past.any():
                break
            moving[n_submissions:] &= ~past
            forced[n_submissions:][past] = -w[past]
        return step[:n_submissions], step[n_submissions:]

    def _downhill(
        self, here: _Point, w: FloatArray, grad_u: FloatArray, grad_w: FloatArray, free: NDArray[np.bool_], worst: float
    ) -> tuple[FloatArray, FloatArray]:
        """Each line on its own, half way, since moving both ends of a pair does its work twice."""
        inside = (here.slack > 0.0) & (here.slack < 2.0 * self.beta * self.cap)
        of_row = np.bincount(self.rows[inside], minlength=self.demand.size)
        of_col = np.bincount(self.cols[inside], minlength=self.load_max.size)
        return (
            -self.beta * grad_u / np.maximum(of_row, 1),
            -self.beta * np.where(free, grad_w, 0.0) / np.maximum(of_col, 1),
        )


def _conjugate(
    graph: sparse.csr_array,
    back: sparse.csr_array,
    diagonal: FloatArray,
    target: FloatArray,
    forced: FloatArray,
    moving: NDArray[np.bool_],
    accuracy: float,
) -> FloatArray:
    """Conjugate gradients on the lines of `moving`, given what the others do; 0 for the others."""
    middle = graph.shape[0]

    def whole(vector: FloatArray) -> FloatArray:
        out: FloatArray = diagonal * vector + np.concatenate([graph @ vector[middle:], back @ vector[:middle]])
        return out

    def times(vector: FloatArray) -> FloatArray:
        return np.where(moving, whole(np.where(moving, vector, 0.0)), vector)

    size = diagonal.size
    right = np.where(moving, target - (whole(forced) if forced.any() else 0.0), 0.0)
    step, _ = cg(
        LinearOperator((size, size), matvec=times, dtype=np.float64), right, rtol=accuracy, maxiter=CONJUGATE_STEPS,
        M=LinearOperator((size, size), matvec=lambda vector: vector / diagonal, dtype=np.float64),
    )  # fmt: skip
    found: FloatArray = np.where(moving, step, 0.0)
    return found
