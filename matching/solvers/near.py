"""The oracle on a few pairs alone: where to look, not what is true."""

from __future__ import annotations

import numpy as np

from matching.solvers.oracle import Oracle
from matching.solvers.state import Over
from matching.types import FloatArray

__all__ = ["NearOracle"]


class NearOracle(Oracle):
    """Best flows and prices on the active pairs; no pair is looked for outside them.

    Its bounds hold for plans on these pairs, so they prove nothing of the problem. Reviewer prices do once other people
    are weighed by them (`matching.solvers.descent`). It spares the sweeps, and the pairs they bring in: where some
    weights are near 0 nearly everybody lies near the prices.
    """

    def pricing_in(self, u: FloatArray, w: FloatArray, near: float) -> tuple[int, Over]:
        """Nothing, as if the active pairs were all there are."""
        return 0, (np.empty((0, 2), dtype=np.int64), np.empty(0))
