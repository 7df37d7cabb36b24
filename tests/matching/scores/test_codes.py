"""Affinities as 16-bit codes: half a step at most, NaN kept, the file gone with its last user."""

import gc

import numpy as np
import pytest

from matching.scores.codes import STEP, CodeFile, decoded, encoded


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_are_within_half_a_step(dtype):
    affinity = np.linspace(0.0, 1.0, 200_001).astype(dtype)
    error = np.abs(decoded(encoded(affinity)).astype(float) - affinity.astype(float))
    assert error.max() <= STEP / 2 + 2.0**-23
    assert decoded(encoded(np.array([0.0, 1.0], dtype=dtype))).tolist() == [0.0, 1.0]


def test_unknown_stays_unknown():
    found = decoded(encoded(np.array([[0.25, np.nan], [np.nan, 1.0]])))
    np.testing.assert_array_equal(np.isnan(found), [[False, True], [True, False]])


def test_codes_keep_the_order():
    affinity = np.sort(np.random.default_rng(1).random(10_000))
    assert (np.diff(encoded(affinity).astype(int)) >= 0).all()


def test_rows_come_back_from_the_file(tmp_path):
    file = CodeFile((3, 5), tmp_path)
    rows = np.random.default_rng(2).integers(65536, size=(3, 5)).astype(np.uint16)
    for row in (2, 0, 1):
        file.write(row, rows[row])
    np.testing.assert_array_equal(file.codes, rows)
    del file
    gc.collect()
    assert not list(tmp_path.iterdir())
