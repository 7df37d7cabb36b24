"""Best mixture of a few known plans: the small smooth problem inside the Frank-Wolfe loop."""

from __future__ import annotations

import numpy as np

from matching.objectives import Welfare
from matching.types import FloatArray

__all__ = ["best_mixture"]

STEPS = 60  # Newton steps; a handful suffice from a good start, and a mixture that is not quite best does no harm
START = 1e-2  # share of a point that joins
LEAST = 1e-9  # shares are kept above it, so that each has a logarithm


def best_mixture(welfare: Welfare, points: FloatArray, shares: FloatArray, tolerance: float) -> FloatArray:
    """Shares of the points whose mixture has about the largest welfare.

    Newton's method on the welfare plus a barrier ``mu * sum log share``, with mu falling (interior points; Nesterov
    and Nemirovskii, 1994, chapter 3). The welfare is scaled by its own slope, so that any alpha and any unit do.

    Parameters
    ----------
    welfare : Welfare
    points : ndarray of shape (n_points, n_submissions), float64
        Sums of each known plan.
    shares : ndarray of shape (n_before,), float64
        A mixture of the first points, n_before <= n_points; the others join with a small share.
    tolerance : float
        Distance to the best mixture, relative to welfare's slope times the sums, that is good enough.

    Returns
    -------
    ndarray of shape (n_points,), float64
        Not negative, sum 1. Cost: a few times n_submissions * n_points**2.
    """
    count = len(points)
    if count == 1:
        return np.ones(1)
    fresh = count - shares.size
    mix = np.concatenate([shares * (1.0 - fresh * START), np.full(fresh, START)]) if shares.size else np.ones(count)
    mix = _normal(np.maximum(mix, 1e-4 / count))
    inside = points[:, welfare.among]
    floor = welfare.floor

    def value(at: FloatArray) -> float:
        return float(welfare.parts(at @ inside).sum())

    mu = 0.0
    for _ in range(STEPS):
        sums = mix @ inside
        above = np.maximum(sums, floor)
        slope = welfare.weights(_spread(welfare, sums))[welfare.among]
        scale = float(slope @ above)
        pull = inside @ slope / scale
        bend = np.where(sums > floor, welfare.alpha * slope / above, 0.0) / scale
        if mu == 0.0:
            mu = max(tolerance / count, float(pull.max() - mix @ pull) / count)
        gradient = pull + mu / mix
        matrix = np.zeros((count + 1, count + 1))
        matrix[:count, :count] = (inside * bend) @ inside.T + np.diag(mu / mix**2)
        matrix[:count, count] = matrix[count, :count] = 1.0
        step = _solved(matrix, np.append(gradient, 0.0))[:count]
        rise = float(step @ gradient)
        falling = step < 0
        length = min(1.0, float(0.95 / np.max(-step[falling] / mix[falling], initial=1e-9)))
        now = value(mix) / scale + mu * float(np.log(mix).sum())
        while length > 1e-9:
            trial = mix + length * step
            if value(trial) / scale + mu * float(np.log(trial).sum()) >= now + 0.1 * length * rise:
                break
            length /= 2
        else:
            if mu * count <= tolerance:
                break
            mu /= 10
            continue
        mix = _normal(np.maximum(trial, LEAST))
        if rise < 0.1 * mu * count:
            if mu * count <= tolerance:
                break
            mu /= 10
    return mix


def _normal(mix: FloatArray) -> FloatArray:
    out: FloatArray = mix / mix.sum()
    return out


def _spread(welfare: Welfare, sums: FloatArray) -> FloatArray:
    out = np.ones(welfare.among.size)
    out[welfare.among] = sums
    return out


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The solution, or the shortest best one where equal points make the matrix singular in floats."""
    try:
        out = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        out = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return out.astype(np.float64)
