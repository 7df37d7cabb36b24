"""Names for the array shapes that signatures use again and again.

Every pair matrix has shape ``(n_submissions, n_reviewers)``: a row is a submission, a column a reviewer.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["FloatArray", "IntArray", "PairArray", "Role", "Rows"]

FloatArray: TypeAlias = NDArray[np.float64]
"""float64, any shape; NaN where unknown if the docstring says so."""

IntArray: TypeAlias = NDArray[np.int64]
"""int64, any shape."""

PairArray: TypeAlias = NDArray[np.int64]
"""int64 of shape (n, 2): column 0 a submission row, column 1 a reviewer column."""

Rows: TypeAlias = slice | NDArray[Any]
"""Rows or columns of a pair matrix: a slice with step 1, or an integer array."""

Role: TypeAlias = Literal["reviewer", "area_chair", "emergency"]
