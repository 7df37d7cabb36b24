"""What an objective may be, as it is given from Python."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import matching

SCORES = np.random.default_rng(1).random((4, 6))


@pytest.mark.parametrize(
    "name", ["total", "welfare", "maximin", "leximin", "envy", "evenness", "randomised", "perturbed", "robust"]
)
def test_a_loss_allowed_to_the_only_objective_changes_nothing(name):
    """Nothing comes after it. Solvers of one wish left it out of their proofs, and the audit refused the plan."""
    options = {"standard_error": 0.1} if name == "robust" else {}
    plain = matching.assign(SCORES, demand=2, load_max=2, objective={"name": name, **options})
    lossy = matching.assign(SCORES, demand=2, load_max=2, objective={"name": name, "loss": 0.3, **options})
    if name not in ("maximin", "leximin"):  # there the total comes after it
        assert lossy.value == pytest.approx(plain.value)
    assert lossy.status == "optimal"


@pytest.mark.parametrize("option", ["cap", "standard_error"])
@pytest.mark.parametrize(
    "value",
    [
        sparse.coo_array(np.eye(4, 6) * 0.5j), np.full(6, 0.5 + 0.5j), np.ma.masked_array(np.full(6, 0.5), np.ones(6)),
        "0.5", [[0.5, 0.2], [1.0]], {"reviewers": {"a": 0.5}}, np.full((6, 4), 0.5), np.nan,
    ],
    ids=str,
)  # fmt: skip
def test_numbers_of_pairs_that_are_none_are_refused(option, value):
    """Imaginary parts and masks would be dropped in silence."""
    name = "randomised" if option == "cap" else "robust"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(matching.MatchingError) as caught:
            matching.assign(SCORES, demand=2, load_max=2, objective={"name": name, option: value})
    assert caught.value.issues[0].field.endswith(option)


@pytest.mark.parametrize(
    ("objective", "place"),
    [
        ({"name": "total", "loss": False}, "objective.loss"),
        ({"name": "robust", "standard_error": 1e308}, "objective.standard_error"),
        ({"name": "robust", "standard_error": {"reviewers": {"ana": 1e200}}}, "objective.standard_error"),
        ({"name": "welfare", "alpha": 10**5000}, "objective.alpha"),
        ({"name": "welfare", "alpha": 1, "loss": 10**5000}, "objective.loss"),
        ({"name": "randomised", "cap": [[10**5000]]}, "objective.cap"),
    ],
    ids=lambda given: str(given)[:40] if isinstance(given, str) else None,
)
def test_b58_numbers_of_a_wrong_kind_or_beyond_all_use_are_refused_at_their_place(objective, place):
    """B58: false was taken for 0, squares of standard errors left float64, and a long number broke its own message."""
    with pytest.raises(matching.errors.InvalidParamsError) as caught:
        matching.assign(SCORES, demand=2, load_max=2, objective=objective)
    assert [issue.field for issue in caught.value.issues] == [place] and str(caught.value)


def test_numpy_scalars_are_numbers():
    """Single precision overflowed on its way to the range check, with a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for alpha in (np.float32(0.5), np.float16(2), np.int64(1)):
            found = matching.assign(SCORES, demand=2, load_max=2, objective={"name": "welfare", "alpha": alpha})
            assert found.status == "optimal"
        with pytest.raises(matching.MatchingError):
            matching.assign(SCORES, demand=2, load_max=2, objective={"name": "welfare", "alpha": np.float32("nan")})
