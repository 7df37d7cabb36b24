"""Why these reviewers and not those: reasons that can be checked against the plan."""

import json
from dataclasses import replace

import pytest

import matching
from matching import Bid, Params, Publication, Reviewer, Submission, Venue, explanation, recommend
from matching.errors import UnknownIdError
from matching.explain.standing import REASONS
from tests.tiny_bert import write_model
from tests.venues import HAND, given, papers, people, table


def explained(venue, submission, reviewer=None, params=HAND):
    plan = recommend(venue, params)
    return plan, explanation(venue, params, plan, submission, reviewer)


def standings(found):
    return {entry.reviewer: entry for entry in found.candidates}


def test_b60_a_full_reviewer_with_a_higher_score_is_listed_as_full():
    """r1 is best for p2, too, and has one review to give; the load and the prices are shown."""
    venue = given(people(r1=1, r2=1, r3=1), papers(p1=1, p2=1),
                  {"r1-p1": 0.9, "r1-p2": 0.8, "r2-p2": 0.7, "r2-p1": 0.1, "r3-p2": 0.2})  # fmt: skip
    plan, found = explained(venue, "p2")
    (pair,) = found.pairs
    assert (pair.standing.reviewer, pair.standing.rank, found.eligible) == ("r2", 2, 3)
    assert pair.better == 1 and pair.better_reasons == {"full": 1}
    by_name = standings(found)
    assert by_name["r1"].reason == "full" and "1 of 1 reviews, on p1" in by_name["r1"].words
    price = by_name["r1"].price
    assert price.holds and price.affinity <= price.submission_price + price.reviewer_price + 1e-6
    assert price.submission_price == plan.certificate.submission_prices["p2"]
    assert by_name["r3"].reason == "lower" and by_name["r3"].rank == 3


def test_b60_conflicts_come_with_rule_and_evidence():
    """The best one is barred: no rank, and the reason anybody can check."""
    venue = given(people(r1=1, r2=1), papers(p1=1), {"r1-p1": 0.9, "r2-p1": 0.1}, conflicts=["r1-p1"])
    venue = replace(venue, conflicts=(matching.DeclaredConflict("p1", "r1", "personal", "married", "chair"),))
    _, found = explained(venue, "p1", "r1")
    assert [entry.standing.reviewer for entry in found.pairs] == ["r2", "r1"]
    barred = found.pairs[1].standing
    assert barred.reason == "conflict" and barred.rank is None and "personal: married" in barred.words
    assert [(reason.rule, reason.evidence, reason.source) for reason in barred.conflicts] == [
        ("personal", "married", "chair")
    ]
    assert found.eligible == 1 and found.pairs[0].standing.rank == 1


@pytest.mark.parametrize(
    ("venue", "params", "reviewer", "reason", "words"),
    [
        (given(people(r1=0, r2=1), papers(p1=1), {"r1-p1": 0.9}), HAND, "r1", "no-load", "load_max is 0"),
        (given(people(r1=1, r2=1), papers(p1=0, p2=1), {"r1-p1": 0.9}), HAND, "r1", "no-demand", "demand is 0"),
        (Venue(people(r1=1, r2=1), papers(p1=1), scores=(table({"r2-p1": 0.2}),)), replace(HAND, allow_unknown=False),
         "r1", "unknown-affinity", "allow_unknown"),
        (given(people(r1=1, r2=1), papers(p1=1), {"r1-p1": 0.9, "r2-p1": 0.1}, locks=["r2-p1"]), HAND,
         "r1", "held", "held by r2"),
        (given(people(r1=1, r2=2), papers(p1=1), {"r1-p1": 0.5, "r2-p1": 0.5}), HAND, None, "tie", "equal"),
    ],
)  # fmt: skip
def test_every_reason_has_its_smallest_case(venue, params, reviewer, reason, words):
    """Loads, demand, switches, locks and ties."""
    _, found = explained(venue, "p1", reviewer, params)
    assert reason in REASONS
    same = [entry for entry in found.candidates if entry.reason == reason]
    assert same and all(words in entry.words for entry in same)
    if reviewer:
        assert found.pairs[-1].standing.reviewer == reviewer and found.pairs[-1].standing.reason == reason


def test_somebody_with_room_may_still_be_worth_more_elsewhere():
    """load_min sends r2 to p1 although r1 fits better and has room: the plan as a whole has to give r2 a review."""
    reviewers = (Reviewer("r1", load_max=2), Reviewer("r2", load_max=1, load_min=1))
    venue = given(reviewers, papers(p1=1, p2=1), {"r1-p1": 0.6, "r1-p2": 0.9, "r2-p1": 0.5, "r2-p2": 0.1})
    _, found = explained(venue, "p1")
    entry = standings(found)["r1"]
    assert entry.reason == "elsewhere" and entry.load == 1 and "plan as a whole" in entry.words
    assert entry.price.holds and "is not above" in entry.words


def test_a_submission_without_reviewers_says_so():
    """A plan that cannot be full explains what it has, and prices that are penalties are not shown as affinities."""
    venue = given(people(r1=1), papers(p1=1, p2=1), {"r1-p1": 0.9, "r1-p2": 0.8})
    plan, found = explained(venue, "p2")
    assert plan.status == "infeasible" and found.received == 0
    assert any("cannot be filled" in note for note in found.notes)
    assert "another submission with fewer" in standings(found)["r1"].words
    json.dumps(found.to_dict(), allow_nan=False)


def test_b60_primary_topics_count_more():
    """Topics K (primary), A, B: knowing A and B ranks below knowing K and A; the part is told."""
    reviewers = (Reviewer("ab", areas=("A", "B")), Reviewer("ka", areas=("A", "K")), Reviewer("b", areas=("B",)))
    venue = Venue(reviewers, (Submission("p1", areas=("K", "A", "B"), demand=1),))
    _, found = explained(venue, "p1", "ab", Params(weights={"areas": 1.0}))
    assert [(entry.standing.reviewer, entry.standing.rank) for entry in found.pairs] == [("ka", 1), ("ab", 2)]
    (part,) = [part for part in found.pairs[0].evidence.parts if part.signal == "areas"]
    assert part.contribution == pytest.approx(0.75) and found.pairs[0].evidence.affinity == pytest.approx(0.75)


def test_b60_a_whole_plan_is_explained():
    """Every assigned pair: parts sum to the plan's own number, rank and reasons agree with the loads."""
    venue = matching.load_fixture("icml2026")
    params = Params(n_alternates=0)
    plan = recommend(venue, params)
    affinity = {(pair.submission, pair.reviewer): pair.affinity for pair in plan.assignments}
    for submission in ("000-1", "001-6", "003-11"):
        found = explanation(venue, None, plan, submission)
        assert not found.notes and len(found.pairs) == found.demand == 3
        for pair in found.pairs:
            told = affinity[submission, pair.standing.reviewer]
            assert pair.standing.affinity == pytest.approx(told, abs=1e-9)
            assert sum(part.contribution for part in pair.evidence.parts) == pytest.approx(told, abs=1e-9)
            assert sum(entry.share for entry in pair.evidence.publications) == pytest.approx(1.0, abs=1e-9)
        values = [entry.affinity for entry in found.candidates]
        assert values == sorted(values, reverse=True)
        assert sum(entry.reason == "assigned" for entry in found.candidates) == 3
        for entry in found.candidates:
            if entry.reason in ("full", "elsewhere"):
                assert entry.price.holds and (entry.load == entry.load_max) == (entry.reason == "full")
        json.dumps(found.to_dict(), allow_nan=False)


def test_people_are_found_by_any_of_their_names():
    """A chair has an address or an old id at hand."""
    reviewers = (
        Reviewer("r1", aliases=("old",), emails=("A@X.example",), load_max=1),
        Reviewer("r2", load_max=1),
        Reviewer("gone", active=False),
        Reviewer("chair", role="area_chair"),
    )
    venue = given(reviewers, papers(p1=1), {"r1-p1": 0.9})
    plan = recommend(venue, HAND)
    for name in ("r1", "old", "a@x.example"):
        assert explanation(venue, HAND, plan, "p1", name).pairs[-1].standing.reviewer == "r1"
    with pytest.raises(UnknownIdError, match="not active"):
        explanation(venue, HAND, plan, "p1", "gone")
    with pytest.raises(UnknownIdError, match="role area_chair"):
        explanation(venue, HAND, plan, "p1", "chair")
    for submission, reviewer in (("p9", None), ("p1", "nobody")):
        with pytest.raises(UnknownIdError):
            explanation(venue, HAND, plan, submission, reviewer)


def test_a_venue_that_has_changed_since_is_said():
    """Numbers of now beside loads of then must not pass for one plan."""
    venue = given(people(r1=1, r2=1), papers(p1=1), {"r1-p1": 0.9, "r2-p1": 0.1})
    plan = recommend(venue, HAND)
    later = replace(venue, bids=(Bid("p1", "r2", "high"),))
    assert any("changed" in note for note in explanation(later, HAND, plan, "p1").notes)
    assert not explanation(venue, HAND, plan, "p1").notes


def test_long_lists_are_cut_and_counted():
    """A submission served from far down names the first fifty above and counts the rest."""
    names = [f"r{at:03d}" for at in range(80)]
    scores = {f"{name}-p{at}": 1.0 - at / 100 - place / 1000 for place, name in enumerate(names) for at in range(80)}
    venue = given(people(**dict.fromkeys(names, 1)), papers(**{f"p{at}": 1 for at in range(80)}), scores)
    plan = recommend(venue, HAND)
    lengths = []
    for at in (0, 40, 79):
        found = explanation(venue, HAND, plan, f"p{at}")
        last = found.pairs[0].standing.rank
        assert len(found.candidates) == min(50, last + 5) and found.not_listed == max(0, last - 50)
        assert found.pairs[0].better == last - 1
        lengths.append(last)
    assert len(set(lengths)) > 1


def test_text_evidence_reaches_the_explanation():
    """From profiles to the publication that carries the score, in one call."""
    reviewers = tuple(
        Reviewer(name, publications=tuple(Publication(f"{name}{at}", text) for at, text in enumerate(texts)))
        for name, texts in {
            "ana": ("Graph kernels", "Wheat yields under drought"),
            "bo": ("Soft robot hands",),
            "cy": ("Auctions",),
        }.items()
    )
    venue = Venue(
        reviewers, (Submission("p1", "Kernels on graphs", demand=1), Submission("p2", "Soft hands", demand=1))
    )
    _, found = explained(venue, "p1", params=Params())
    (pair,) = found.pairs
    assert pair.standing.reviewer == "ana" and pair.evidence.publications[0].id == "ana0"
    assert {"graph", "kernels"} <= set(pair.evidence.terms)


@pytest.mark.parametrize("scorer", ["encoder", "hybrid", "auto"])
def test_every_scorer_is_explained_by_itself(tmp_path, scorer, no_sockets):
    """A plan made with sentence vectors is not explained by words alone, whatever "auto" means here and now."""
    resources = matching.Resources(write_model(tmp_path))
    reviewers = tuple(
        Reviewer(f"r{at}", publications=tuple(Publication(f"{at}{to}", text) for to, text in enumerate(texts)))
        for at, texts in enumerate([("graph kernels", "深度"), ("soft robot hands", "walks on graphs"), ("auctions",)])
    )
    venue = Venue(reviewers, (Submission("p1", "kernels on graphs", demand=2), Submission("p2", "bids", demand=1)))
    plan = recommend(venue, Params(scorer=scorer), resources=resources)
    found = explanation(venue, None, plan, "p1", resources=resources)
    assert not found.notes
    affinity = {pair.reviewer: pair.affinity for pair in plan.assignments if pair.submission == "p1"}
    for pair in found.pairs:
        assert pair.evidence.affinity == pytest.approx(affinity[pair.standing.reviewer], abs=1e-9)
        assert sum(entry.share for entry in pair.evidence.publications) == pytest.approx(1.0, abs=1e-9)
        assert len(pair.evidence.publications) == pair.evidence.documents


def test_b24_b26_people_without_evidence_are_in_the_list_and_the_switch_is_named():
    """Nobody vanishes: allowed, they carry the stand-in; not allowed, the switch is named."""
    reviewers = (Reviewer("r1"), Reviewer("r2", publications=(Publication("x", "graph kernels"),)), Reviewer("r3"))
    venue = Venue(reviewers, (Submission("p1", "Kernels on graphs", demand=1),))
    _, found = explained(venue, "p1", "r1", Params())
    assert {entry.reviewer for entry in found.candidates} == {"r1", "r2", "r3"} and found.eligible == 3
    (part,) = found.pairs[-1].evidence.parts
    assert part.value is None and part.contribution == part.used == found.pairs[-1].standing.affinity
    _, found = explained(venue, "p1", "r1", Params(allow_unknown=False))
    assert found.eligible == 1 and standings(found)["r3"].reason == "unknown-affinity"
    assert "allow_unknown" in found.pairs[-1].standing.words


def test_b30_the_default_that_was_used_is_the_one_that_is_shown():
    """r1 scored 0.2, r2 missing with default 0.5: r2 is chosen and explained with 0.5."""
    venue = Venue(people(r1=1, r2=1), papers(p1=1), scores=(table({"r1-p1": 0.2}, default=0.5),))
    _, found = explained(venue, "p1")
    (pair,) = found.pairs
    assert (pair.standing.reviewer, pair.evidence.affinity, pair.evidence.parts[0].used) == ("r2", 0.5, 0.5)
    assert standings(found)["r1"].affinity == 0.2


def test_b31_a_signal_that_was_not_used_is_shown_as_nothing():
    """The bid is there, with weight 0 and no contribution."""
    venue = given(people(r1=1), papers(p1=1), {"r1-p1": 0.4}, bids={"r1-p1": "very_high"})
    _, found = explained(venue, "p1", params=replace(HAND, weights={"hand": 1.0, "bids": 0.0}))
    parts = {part.signal: part for part in found.pairs[0].evidence.parts}
    assert (parts["bids"].value, parts["bids"].weight, parts["bids"].contribution) == (1.0, 0.0, 0.0)
    assert found.pairs[0].evidence.affinity == 0.4


def test_b41_an_explanation_is_strict_json_of_plain_numbers():
    """Unknown is null; nothing of numpy leaves."""
    reviewers = (Reviewer("r1"), Reviewer("r2", publications=(Publication("x", "graph kernels"),)))
    venue = Venue(reviewers, (Submission("p1", "Kernels on graphs", demand=1), Submission("p2", demand=1)))
    for params in (Params(), Params(allow_unknown=False)):
        plan = recommend(venue, params)
        for submission in ("p1", "p2"):
            for reviewer in ("r1", "r2"):
                record = explanation(venue, params, plan, submission, reviewer).to_dict()
                assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_run_hands_out_what_explains_it():
    """Nothing is scored a second time, and the answers are those of `explanation`."""
    venue = given(
        people(r1=1, r2=1, r3=1), papers(p1=1, p2=1), {"r1-p1": 0.9, "r1-p2": 0.8, "r2-p2": 0.7, "r3-p1": 0.2}
    )
    handed = []
    plan = recommend(venue, HAND, explain=handed.append)
    (reasoner,) = handed
    assert reasoner.submissions == ("p1", "p2")
    for submission in reasoner.submissions:
        for reviewer in (None, "r1", "r3"):
            assert reasoner.explain(submission, reviewer) == explanation(venue, HAND, plan, submission, reviewer)


def test_everybody_above_the_one_asked_about_is_listed():
    """Whoever asks about number four wants to see the three before."""
    scores = {f"r{at}-p1": 1.0 - at / 10 for at in range(9)}
    _, found = explained(given(people(**{f"r{at}": 1 for at in range(9)}), papers(p1=1), scores), "p1", "r3")
    assert found.pairs[-1].better == 2 and found.pairs[-1].better_reasons == {"lower": 2}
    assert [entry.reviewer for entry in found.candidates] == [f"r{at}" for at in range(9)]


def test_numbers_that_are_not_those_of_the_plan_are_told():
    """Another version of a library may score otherwise; loads and prices of then must not pass for its own."""
    venue = given(people(r1=1, r2=1), papers(p1=1), {"r1-p1": 0.9, "r2-p1": 0.1})
    plan = recommend(venue, HAND)
    assert explanation(venue, HAND, plan, "p1").notes == ()
    other = replace(plan, assignments=(replace(plan.assignments[0], affinity=0.8),))
    assert any("differ from the plan's own" in note for note in explanation(venue, HAND, other, "p1").notes)
