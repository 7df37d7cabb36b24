"""From pooled similarities to an affinity in [0, 1]: one formula, and the constants in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.types import FloatArray
from matching.vectors.base import Group

__all__ = ["GRID", "Constants", "Moments", "combined", "on_grid", "to_affinity"]

LIKELY = 1.0  # standardised score that becomes an affinity of one half
SPREAD = 1.25  # standardised score from one half to three quarters; expert pairs lie at 3 to 12
CONSTANT = 1e-6  # spread relative to the largest value below which a comparison says nothing
GRID = 2.0**20  # affinities are multiples of 1 / GRID: exact in single precision, and rounding errors do not show


@dataclass(frozen=True)
class Constants:
    """What standardises the pooled similarities of a venue. Fixed when fitted, whoever is added later.

    Attributes
    ----------
    means, deviations : tuple of float, one for each comparison of all groups
        Over the pairs its group knows, after the share of the submission's mean is subtracted. A deviation of 0
        stands for a comparison that tells nothing apart: it adds nothing.
    group_deviations : tuple of float, one for each group
        Of the sum of its standardised comparisons, over the pairs the group knows; 0 likewise.
    deviation : float
        Of the weighted sum of the groups' standardised scores, 0 where a group does not know a pair, over the pairs
        that some group knows; 0 likewise. The means of these two sums are 0.
    """

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    group_deviations: tuple[float, ...]
    deviation: float

    def factors(self, groups: Sequence[Group]) -> FloatArray:
        """What each comparison's pooled similarity, less its mean, is multiplied by in the standardised total."""
        out = []
        deviations = iter(self.deviations)
        for group, of_group in zip(groups, self.group_deviations):
            for _, own in zip(group.comparisons, deviations):
                whole = own * of_group * self.deviation
                out.append(group.weight / whole if whole > 0 else 0.0)
        return np.asarray(out)


class Moments:
    """Sums of products of pooled similarities, from which all constants follow; filled block by block.

    Parameters
    ----------
    groups : sequence of Group
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._owners = np.repeat(np.arange(len(groups)), [len(group.comparisons) for group in groups])
        size = self._owners.size + len(groups)
        self._sums = np.zeros((size, size))
        self._pairs = 0
        self._reach = np.zeros(self._owners.size)

    def add(self, pooled: Sequence[NDArray[np.floating]], known: Sequence[NDArray[np.bool_]]) -> None:
        """Take in some pairs.

        Parameters
        ----------
        pooled : sequence of ndarray of shape (n_pairs,), one for each comparison
            Centred; anything finite where the group does not know the pair.
        known : sequence of ndarray of bool, shape (n_pairs,), one for each group
        """
        some = np.logical_or.reduce(known) if len(known) > 1 else known[0]
        self._pairs += int(np.count_nonzero(some))
        # indicators beside the values: their products count the pairs that two groups both know
        table = np.empty((self._sums.shape[0], some.size))
        for at, (values, owner) in enumerate(zip(pooled, self._owners.tolist())):
            np.multiply(values, known[owner], out=table[at])
            self._reach[at] = max(self._reach[at], float(np.abs(table[at]).max(initial=0.0)))
        for at, flags in enumerate(known, start=self._owners.size):
            table[at] = flags
        self._sums += table @ table.T

    def constants(self) -> Constants:
        """Means and deviations over all pairs taken in."""
        n = self._owners.size
        counts = np.diagonal(self._sums)[n:][self._owners]
        ones = self._sums[np.arange(n), n + self._owners]
        means = np.divide(ones, counts, out=np.zeros(n), where=counts > 0)
        spreads = self._sums[np.arange(n), np.arange(n)] - means**2 * counts
        deviations = np.sqrt(np.divide(np.maximum(spreads, 0.0), counts, out=np.zeros(n), where=counts > 0))
        deviations[deviations <= CONSTANT * self._reach] = 0.0
        scales = np.divide(1.0, deviations, out=np.zeros(n), where=deviations > 0)
        # sums of products of (x - mean) / deviation over the pairs that both groups know
        shift = np.zeros((n, n + len(self._groups)))
        shift[np.arange(n), np.arange(n)] = scales
        shift[np.arange(n), n + self._owners] = -means * scales
        products = shift @ self._sums @ shift.T
        member = self._owners[None, :] == np.arange(len(self._groups))[:, None]
        of_groups = member @ products @ member.T
        totals = np.diagonal(self._sums)[n:]
        inner = np.diagonal(of_groups)
        squares = np.divide(np.maximum(inner, 0.0), totals, out=np.zeros(totals.size), where=totals > 0)
        group_deviations = np.sqrt(squares)
        used = member @ (deviations > 0).astype(np.float64)
        group_deviations[group_deviations <= CONSTANT * used] = 0.0
        weights = np.divide(
            [group.weight for group in self._groups], group_deviations,
            out=np.zeros(totals.size), where=group_deviations > 0,
        )  # fmt: skip
        whole = float(weights @ of_groups @ weights)
        deviation = float(np.sqrt(max(whole, 0.0) / self._pairs)) if self._pairs else 0.0
        if deviation <= CONSTANT * float(weights @ group_deviations):
            deviation = 0.0
        return Constants(tuple(means.tolist()), tuple(deviations.tolist()), tuple(group_deviations.tolist()), deviation)


def to_affinity(standardised: NDArray[np.floating], flat: bool = False) -> None:
    """Standardised scores -> [0, 1], in place; all one half if nothing tells pairs apart.

    ``1/2 + arctan((z - 1) / 1.25) / pi``: an average pair gets 0.29, one that stands out by two, four, eight or
    sixteen standard deviations 0.71, 0.87, 0.94 or 0.97. Experts lie far out, and a logistic curve would make them
    equal.
    """
    if flat:
        standardised[...] = 0.5
        return
    standardised -= standardised.dtype.type(LIKELY)
    standardised /= standardised.dtype.type(SPREAD)
    np.arctan(standardised, out=standardised)
    standardised /= standardised.dtype.type(np.pi)
    standardised += standardised.dtype.type(0.5)


def on_grid(affinity: NDArray[np.floating]) -> None:
    """Round to multiples of 1 / GRID, in place."""
    affinity *= affinity.dtype.type(GRID)
    np.rint(affinity, out=affinity)
    affinity *= affinity.dtype.type(1.0 / GRID)


def combined(constants: Constants, factors: FloatArray, pooled: FloatArray, shifts: FloatArray) -> FloatArray:
    """Pooled similarities of pairs -> affinity: the one formula.

    Parameters
    ----------
    constants : Constants
    factors : ndarray of shape (n_comparisons,), float64
        See `Constants.factors`.
    pooled : ndarray of shape (n_comparisons, n_pairs), float64
        NaN where a comparison's group does not know the pair; it gets the group's mean.
    shifts : ndarray of shape (n_comparisons, n_pairs), float64, or of shape (n_comparisons, 1)
        The share of the submission's mean that is subtracted.

    Returns
    -------
    ndarray of shape (n_pairs,), float64
        Multiples of 1 / GRID in [0, 1]; NaN where no group knows the pair.
    """
    total = np.zeros(pooled.shape[1])
    known = np.zeros(pooled.shape[1], dtype=np.bool_)
    for values, shift, mean, factor in zip(pooled, shifts, constants.means, factors):
        measured = ~np.isnan(values)
        known |= measured
        total += np.where(measured, factor * (values - (shift + mean)), 0.0)
    to_affinity(total, flat=not factors.any())
    on_grid(total)
    total[~known] = np.nan
    return total
