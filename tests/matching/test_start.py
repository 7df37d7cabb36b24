"""From one plan to the next: people leave, submissions come, and ids tell who is who."""

import json
from dataclasses import replace

import numpy as np
import pytest

import matching
from matching import ImportedScores, Params, Reviewer, Submission, Venue
from matching.errors import InvalidParamsError
from matching.formats.plans import read_plan_json, write_plan_json
from matching.plan.moves import moves_of, start_hash

PARAMS = Params(weights={"text": 0, "areas": 0, "bids": 0})


def venue(papers, people, **rest):
    """Scores that depend on the ids alone, so that they stay when others come and go."""
    every = [(paper, person) for paper in papers for person in people]
    value = np.array([np.random.default_rng([*paper.encode(), *person.encode()]).random() for paper, person in every])
    table = ImportedScores("hand", tuple(p for p, _ in every), tuple(r for _, r in every), value)
    return Venue(
        tuple(Reviewer(name) for name in people), tuple(Submission(name, f"title {name}") for name in papers),
        scores=(table,), **{"demand": 2, "load_max": 3, **rest},
    )  # fmt: skip


PAPERS, PEOPLE = [f"p{at:02}" for at in range(30)], [f"r{at:02}" for at in range(26)]


@pytest.fixture(scope="module")
def first():
    return matching.recommend(venue(PAPERS, PEOPLE), PARAMS)


def counts(plan):
    return {name: count for name, count in plan.report["changes"].items() if not isinstance(count, list)}


def test_people_leave_and_a_submission_comes_and_the_rest_stays(first):
    """As good as from scratch, certified, with what moved in the report and the start's hash in the record."""
    papers, people = [*PAPERS[1:], "late"], PEOPLE[:-1]
    after = venue(papers, people)
    found, cold = matching.recommend(after, PARAMS, start=first), matching.recommend(after, PARAMS)
    assert found.status == "optimal" and found.certificate.audited and found.gap == 0
    assert found.value == pytest.approx(cold.value, abs=1e-9)
    old = {(pair.submission, pair.reviewer) for pair in first.assignments}
    new = {(pair.submission, pair.reviewer) for pair in found.assignments}
    changes = found.report["changes"]
    assert changes["kept"] == len(old & new) and changes["added"] == len(new - old)
    assert changes["removed"] == len(old - new) == len(changes["removed_pairs"])
    gone = {pair for pair in old if pair[0] == PAPERS[0] or pair[1] == PEOPLE[-1]}
    assert changes["gone"] == len(gone) and 0 < changes["moved"] <= changes["added"]
    (notice,) = (entry for entry in found.notices if entry.code == "started-from-plan")
    assert str(changes["kept"]) in notice.message and notice.data == counts(found)
    assert found.provenance["start"]["used"] is True and len(found.provenance["start"]["hash"]) == 64
    assert "changes" not in cold.report and "start" not in cold.provenance


def test_a_plan_read_back_from_its_file_is_the_same_start(first):
    """Stored plans are what repairs begin from; equal input gives the equal plan but for the seconds."""
    after = venue(PAPERS, PEOPLE[1:])
    stored = read_plan_json(write_plan_json(first))
    plans = [matching.recommend(after, PARAMS, start=start) for start in (first, stored, stored)]
    texts = []
    for plan in plans:
        record = json.loads(write_plan_json(plan))
        record["provenance"].pop("seconds")
        texts.append(json.dumps(record, sort_keys=True))
    assert texts[0] == texts[1] == texts[2]
    assert read_plan_json(write_plan_json(plans[0])).report["changes"] == plans[0].report["changes"]


def test_nothing_changed_and_everything_is_kept(first):
    """The same plan with the same value; only its history is longer."""
    again = matching.recommend(venue(PAPERS, PEOPLE), PARAMS, start=first)
    assert again.assignments == first.assignments
    assert counts(again) == {"kept": 60, "added": 0, "removed": 0, "gone": 0, "moved": 0, "submissions": 0}


@pytest.mark.parametrize("objective", ["maximin", {"name": "welfare", "alpha": 1.0}, ["total", "evenness"]])
def test_a_start_that_is_not_used_is_never_ignored_silently(first, objective):
    """Other objectives are solved as without it, which a notice says; the comparison is made all the same."""
    params = replace(PARAMS, objective=objective)
    after = venue(PAPERS, PEOPLE[1:])
    found, cold = matching.recommend(after, params, start=first), matching.recommend(after, params)
    assert found.assignments == cold.assignments
    (notice,) = (entry for entry in found.notices if entry.code == "start-not-used")
    assert "only the total without rules" in notice.message
    assert found.provenance["start"]["used"] is False and counts(found)["kept"] > 0


def test_a_start_of_strangers_or_without_a_plan_is_no_fault(first):
    """Nobody of it is there: the plan is the one from scratch."""
    strangers = venue([f"x{at}" for at in range(30)], [f"y{at}" for at in range(26)])
    found = matching.recommend(strangers, PARAMS, start=first)
    assert found.value == pytest.approx(matching.recommend(strangers, PARAMS).value)
    assert counts(found)["kept"] == 0 and counts(found)["gone"] == 60
    bare = replace(first, assignments=(), certificate=replace(first.certificate, submission_prices={}))
    assert matching.recommend(venue(PAPERS, PEOPLE), PARAMS, start=bare).value == pytest.approx(first.value)


def test_what_is_no_plan_is_refused(first):
    """Before anything is scored."""
    with pytest.raises(InvalidParamsError, match="AssignmentPlan"):
        matching.recommend(venue(PAPERS, PEOPLE), PARAMS, start=first.to_dict())


def test_assign_takes_a_solution_or_a_start_carried_over():
    """The same for matrices: a solution as it is, or moved to other rows and columns by id."""
    rng = np.random.default_rng(0)
    scores = rng.random((12, 10))
    first = matching.assign(scores, demand=2, load_max=3)
    again = matching.assign(scores, demand=2, load_max=3, start=first)
    assert again.pairs.tolist() == first.pairs.tolist() and again.meta["start"]["kept"] == 24
    people = [f"r{at}" for at in range(10)]
    papers = [f"p{at}" for at in range(12)]
    pairs = [(papers[row], people[col]) for row, col in first.pairs.tolist()]
    prices = (dict(zip(names, found.tolist())) for names, found in (
        (papers, first.submission_prices), (people, first.reviewer_prices),
    ))  # fmt: skip
    start = matching.Start.by_id(pairs, *prices, papers, people[1:])
    found = matching.assign(scores[:, 1:], demand=2, load_max=3, start=start)
    cold = matching.assign(scores[:, 1:], demand=2, load_max=3)
    assert found.value == pytest.approx(cold.value) and found.meta["start"]["used"]
    other = matching.assign(scores, demand=2, load_max=3, objective="maximin", start=first)
    assert not other.meta["start"]["used"] and other.meta["start"]["reason"]


def test_a_plan_of_several_roles_is_a_start_in_each_of_them():
    """A submission has a row for its reviewers and one for its area chair; neither's people count for the other."""
    people = tuple(Reviewer(name, role="area_chair" if name < "r06" else "reviewer") for name in PEOPLE)
    before = replace(venue(PAPERS, PEOPLE, load_max=8), reviewers=people)
    after = replace(before, reviewers=people[:-1])
    after = replace(after, scores=(venue(PAPERS, PEOPLE[:-1]).scores[0],))
    wanted = replace(PARAMS, roles={"reviewer": {"demand": 2}, "area_chair": {"demand": 1}})
    plan = matching.recommend(before, wanted)
    found, cold = (matching.recommend(after, wanted, start=start) for start in (plan, None))
    assert found.status == "optimal" and found.value == pytest.approx(cold.value, abs=1e-9)
    assert found.provenance["start"]["used"] is True and found.report["changes"]["kept"] > 60
    again = matching.recommend(before, wanted, start=plan)
    assert again.report["changes"]["added"] == 0 and again.report["changes"]["kept"] == len(plan.assignments) == 90


def test_somebody_who_changes_roles_has_moved(first):
    """The pair of ids is the same, what the person does on the submission is not."""
    one, *rest = first.assignments
    other = replace(first, assignments=(replace(one, role="area_chair"), *rest))
    changes = moves_of(other, first, PAPERS, PEOPLE)
    assert (changes["kept"], changes["added"], changes["removed"], changes["moved"]) == (len(rest), 1, 1, 0)
    assert changes["added_pairs"] == [[one.submission, one.reviewer]]
    assert changes["removed_pairs"] == [[one.submission, one.reviewer, "area_chair"]]
    assert changes["submissions"] == 1 and changes["gone"] == 0
    assert moves_of(first, first, PAPERS, PEOPLE)["kept"] == len(first.assignments)
    assert start_hash(other) != start_hash(first)
