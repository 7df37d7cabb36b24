"""Why somebody is not there: the facts on record, each with its evidence."""

import numpy as np
import pytest

from matching import Author, DeclaredConflict, Lock, Params, Publication, Reviewer, Submission, Venue
from matching.engine import exclusions, input_hash
from matching.errors import InvalidParamsError
from matching.profiles.resolve import resolve_venue
from matching.scores.affinity import affinity_of
from tests.venues import table


def venue(**options):
    """One person for each way not to be there, and two who may."""
    text = (Publication("a", "Graph kernels"),)
    return Venue(
        reviewers=(
            Reviewer("ana", emails=("ana@uni.example",), publications=text),
            Reviewer("bo", publications=text, load_max=2),
            Reviewer("old", same_person_as="bo", aliases=("older",)),
            Reviewer("cy", publications=text, load_max=0),
            Reviewer("di", active=False),
            Reviewer("eve", role="area_chair"),
            Reviewer("mute"),
        ),
        submissions=(
            Submission("p1", "Graph kernels at scale", authors=(Author(name="C. Doe", email="c@uni.example"),)),
            Submission("p2", "Soft robots", demand=0),
            Submission("p3", active=False),
        ),
        conflicts=(DeclaredConflict("p1", "ana", "personal", "former student", "chair"),),
        demand=1,
        **options,
    )


def test_each_way_not_to_be_there_is_told_apart():
    """Rule and evidence for conflicts; a number, a flag or a role for the others."""
    found = exclusions(venue(), Params(allow_unknown=False))
    told = {party.id: (why.code, why.reasons) for party, why in found.excluded(found.submission("p1"))}
    assert {name: code for name, (code, _) in told.items()} == {
        "ana": "conflict", "cy": "no-load", "di": "inactive", "eve": "role", "mute": "unknown-affinity",
    }  # fmt: skip
    assert told["ana"][1] == (
        "conflict (personal): former student",
        "conflict (affiliation): author 1 of p1 (C. Doe) and reviewer ana share the domain uni.example",
    )
    assert "area_chair" in told["eve"][1][0] and "load_max" in told["cy"][1][0]
    open_to_all = exclusions(venue(), Params())
    assert "mute" not in {party.id for party, _ in open_to_all.excluded(open_to_all.submission("p1"))}


def test_a_submission_that_wants_nothing_says_so():
    """A demand of 0 and a withdrawn submission are no faults of the people."""
    found = exclusions(venue())
    assert found.of_submission(found.submission("P2 ")).code == "no-demand"
    assert found.of_submission(found.submission("p3")).code == "inactive-submission"
    assert found.of_submission(found.submission("p1")) is None
    assert found.submission("p9") is None


def test_accounts_aliases_and_addresses_mean_their_person():
    """And the answer says what the name was."""
    found = exclusions(venue())
    for name, word in (
        ("old", "accounts of one person"),
        ("older", "another name"),
        ("ANA@uni.example", "another name"),
    ):
        (person,) = found.people(name)
        assert person.id in ("bo", "ana") and word in person.note and name in person.note
    assert found.people("bo")[0].note == "" and found.people("ghost") == []


def test_a_person_has_a_list_of_submissions_too():
    """Only what lies in the pair; that somebody is inactive is said once."""
    found = exclusions(venue())
    (ana,) = found.people("ana")
    assert [(party.id, why.code) for party, why in found.excluded_from(ana)] == [("p1", "conflict")]
    (di,) = found.people("di")
    assert list(found.excluded_from(di)) == [] and found.of_person(di).code == "inactive"


@pytest.mark.parametrize("weights", [{}, {"text": 0.0}, {"text": 0.0, "hand": 0.0}, {"hand": 0.0}])
@pytest.mark.parametrize("default", [None, 0.5])
def test_unknown_is_what_the_affinity_calls_unknown(weights, default):
    """Told without computing a single text score, and never differently."""
    params = Params(weights=weights, allow_unknown=False)
    whole = venue(scores=(table({"mute-p1": 0.5, "cy-p2": 0.0}, default=default),))
    found, resolved = exclusions(whole, params), resolve_venue(whole, params)
    real = affinity_of(resolved, params)
    for row in range(resolved.shape[0]):
        columns = np.arange(resolved.shape[1])
        assert (
            found._unknown(row, columns).tolist() == np.isnan(real.values(np.full(columns.size, row), columns)).tolist()
        )


def test_numbers_are_what_the_locks_leave():
    """The certificate counts with them."""
    found = exclusions(venue(load_min=1, locks=(Lock("p1", "bo"),)))
    assert found.demand == {"p1": 0, "p2": 0}
    assert found.loads["bo"] == (1, 0) and found.loads["mute"] == (6, 1) and found.loads["cy"] == (0, 0)


def test_the_time_limit_is_no_part_of_the_input():
    """A server adds its own, and the plan stays the same."""
    assert input_hash(venue(), Params(time_limit=5.0)) == input_hash(venue(), Params())
    assert input_hash(venue(), Params(rng=1)) != input_hash(venue(), Params())


def test_contradictory_load_options_are_refused_with_each_other():
    """Each alone is fine."""
    with pytest.raises(InvalidParamsError) as caught:
        Params(load_min=3, load_max=2)
    assert [(issue.field, issue.code) for issue in caught.value.issues] == [("load_min", "contradiction")]
    Params(load_min=2, load_max=2)
