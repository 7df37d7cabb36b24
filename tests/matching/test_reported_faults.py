"""Faults users of assignment systems met, each as its smallest case, through the engine's front doors.

The kinds of fault are tested closer to their code as well; here the cases run from venue to plan.
"""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import matching
from matching import Author, Bid, Lock, Params, Publication, Reviewer, Submission, Venue, readiness, recommend
from matching.profiles.venue import ImportedScores
from tests.venues import HAND, given, pairs_of, papers, people, table


def loads_of(plan):
    return Counter(pair.reviewer for pair in plan.assignments)


def codes(plan_or_report):
    items = plan_or_report["items"] if isinstance(plan_or_report, dict) else plan_or_report.notices
    return [item.code for item in items]


def test_b01_a_conflict_bars_the_pair_even_when_every_score_is_zero():
    """A conflict as a low score stops mattering when nothing scores higher."""
    venue = given(people(r1=1, r2=1), papers(p1=1, p2=1), {"r1-p1": 0, "r1-p2": 0, "r2-p1": 0, "r2-p2": 0},
                  conflicts=["r1-p1", "r2-p2"])  # fmt: skip
    assert pairs_of(recommend(venue, HAND)) == {("r2", "p1"), ("r1", "p2")}
    solution = matching.assign(np.zeros((2, 2)), demand=1, load_max=1, conflicts=[(0, 0), (1, 1)])
    assert solution.pairs.tolist() == [[0, 1], [1, 0]]


def test_b02_an_author_never_reviews_the_own_submission():
    """Found over a second address in other capitals, with an empty conflict list and the top score."""
    reviewers = (Reviewer("r1", emails=("a@x.example", "b@y.example")), Reviewer("r2"))
    submissions = (Submission("p1", demand=1, authors=(Author(email="B@Y.example"),)),)
    plan = recommend(given(reviewers, submissions, {"r1-p1": 1.0, "r2-p1": 0.1}), HAND)
    assert pairs_of(plan) == {("r2", "p1")}


@pytest.mark.parametrize(
    ("reviewer", "author", "barred"),
    [
        ("u@bigco.example", "v@bigco.example", True),
        ("u@oldco.example", "v@newco.example", True),
        ("u@poly.xa.example", "v@poly.xb.example", False),
        ("u@notuni.example", "v@uni.example", False),
        ("u@mail.cs.uni.example", "v@uni.example", True),
    ],
)
def test_b04_domains_are_compared_by_whole_labels_and_aliases(reviewer, author, barred):
    """An author without a profile is known by the address alone."""
    venue = given(
        (Reviewer("r1", emails=(reviewer,)), Reviewer("r2", emails=("w@elsewhere.example",))),
        (Submission("p1", demand=1, authors=(Author(email=author),)),),
        {"r1-p1": 1.0, "r2-p1": 0.1},
        domain_aliases={"oldco.example": "newco.example"},
    )
    assert pairs_of(recommend(venue, HAND)) == {("r2" if barred else "r1", "p1")}


@pytest.mark.parametrize(
    ("mine", "theirs", "institution", "barred"),
    [
        ("ann@gmail.com", "bob@gmail.com", "", False),
        ("ann@gmail.com", "Ann@GMAIL.com", "", True),
        ("ann@x.example", "bob@y.example", "  ", False),
        ("ann@x.example", "bob@y.example", "Independent Researcher", False),
    ],
)
def test_b05_free_mail_and_placeholders_make_no_colleagues(mine, theirs, institution, barred):
    """Generic values are no institution; the identical address is the same person."""
    venue = given(
        (Reviewer("r1", emails=(mine,), affiliations=(institution,)), Reviewer("r2")),
        (Submission("p1", demand=1, authors=(Author(email=theirs, affiliation=institution),)),),
        {"r1-p1": 1.0, "r2-p1": 0.1},
    )
    assert pairs_of(recommend(venue, HAND)) == {("r2" if barred else "r1", "p1")}


def test_b06_a_conflict_wins_over_a_bid_and_the_bid_is_reported_as_ignored():
    """Two inputs disagree about one pair; the precedence is stated and shown."""
    venue = given(
        people(r1=1, r2=1), papers(p1=1), bids={"r1-p1": "very_high", "r2-p1": "very_low"}, conflicts=["r1-p1"]
    )
    plan = recommend(venue)
    assert pairs_of(plan) == {("r2", "p1")}
    ignored = [notice for notice in plan.notices if notice.code == "ignored-bid"]
    assert [(notice.reviewers, notice.submissions) for notice in ignored] == [(("r1",), ("p1",))]


def test_b08_references_resolve_through_aliases_and_folded_addresses():
    """A bid by an old id counts, a conflict by an odd address holds, a ghost is listed with its row."""
    reviewers = (
        Reviewer("r1", aliases=("old-r1",), emails=("r1@x.example",), load_max=2),
        Reviewer("r2", load_max=2),
    )
    venue = given(reviewers, papers(p1=1, p2=1))
    venue = replace(
        venue,
        bids=(Bid("p1", "old-r1", "very_high"), Bid("p1", "ghost", "very_high")),
        conflicts=(matching.DeclaredConflict("p2", " R1@X.EXAMPLE "),),
    )
    plan = recommend(venue)
    assert pairs_of(plan) == {("r1", "p1"), ("r2", "p2")}
    (notice,) = [notice for notice in plan.notices if notice.code == "unresolved-reference"]
    assert "ghost" in notice.message and "1" in json.dumps(dict(notice.data))


def test_b09_one_person_with_two_accounts_is_told_and_after_linking_serves_once():
    """Linked accounts share one load limit and never both serve on a submission."""
    twins = (Reviewer("r1", emails=("a@x.example",), load_max=2), Reviewer("r2", emails=("A@X.example",), load_max=1),
             Reviewer("r3", load_max=2))  # fmt: skip
    venue = given(twins, papers(p1=2), {"r1-p1": 0.9, "r2-p1": 0.8, "r3-p1": 0.1})
    loose = recommend(venue, HAND)
    assert "probable-duplicate" in codes(loose) and pairs_of(loose) == {("r1", "p1"), ("r2", "p1")}
    linked = replace(venue, reviewers=(twins[0], replace(twins[1], same_person_as="r1"), twins[2]))
    plan = recommend(linked, HAND)
    assert pairs_of(plan) == {("r1", "p1"), ("r3", "p1")}
    again = recommend(replace(linked, submissions=papers(p1=1, p2=1, p3=1)), HAND)
    assert loads_of(again)["r1"] == 1


def test_b11_every_fault_is_listed_at_once():
    """Conflicts that name nobody and a record without id: one error, three entries."""
    venue = Venue(
        reviewers=(Reviewer("r1"), Reviewer("r2"), Reviewer("")),
        submissions=papers(p1=1),
        conflicts=(matching.DeclaredConflict("p1", "r99"), matching.DeclaredConflict("p99", "r1")),
    )
    with pytest.raises(matching.MatchingError) as caught:
        recommend(venue)
    issues = caught.value.issues
    assert {(issue.source, issue.row) for issue in issues} == {("conflicts", 0), ("conflicts", 1), ("reviewers", 2)}
    assert all(issue.reason for issue in issues)


def test_b12_a_load_max_of_zero_means_none():
    """Zero is a number; all at zero is infeasible and no crash."""
    scores = {f"{r}-{p}": value for r, value in (("r1", 0.9), ("r2", 0.3), ("r3", 0.2)) for p in ("p1", "p2")}
    plan = recommend(given(people(r1=0, r2=2, r3=2), papers(p1=1, p2=1), scores), HAND)
    assert pairs_of(plan) == {("r2", "p1"), ("r2", "p2")} and plan.value == pytest.approx(0.6)
    nobody = recommend(given(people(r1=0, r2=0, r3=0), papers(p1=1, p2=1), scores), HAND)
    assert nobody.status == "infeasible" and nobody.unfilled == {"p1": 1, "p2": 1}


def test_b13_personal_and_global_limits_hold_in_one_solve():
    """The smaller limit counts; a personal minimum is honoured beside it."""
    plan = recommend(given(people(r1=6, r2=2), papers(**{f"p{n}": 1 for n in range(6)}), load_max=4))
    assert loads_of(plan) == {"r1": 4, "r2": 2}
    reviewers = (Reviewer("r1", load_min=1, load_max=1), Reviewer("r2", load_max=3), Reviewer("r3", load_max=3))
    plan = recommend(given(reviewers, papers(**{f"p{n}": 1 for n in range(5)})))
    assert sorted(loads_of(plan).values()) == [1, 2, 2] and loads_of(plan)["r1"] == 1


def test_b14_a_minimum_is_a_hard_bound_or_its_shortfall_is_said():
    """One paper each although one person is best everywhere; an impossible minimum is infeasible by 3."""
    scores = {f"{r}-{p}": 0.9 if r == "r1" else 0.1 for r in ("r1", "r2", "r3") for p in ("p1", "p2", "p3")}
    reviewers = tuple(Reviewer(name, load_min=1, load_max=3) for name in ("r1", "r2", "r3"))
    plan = recommend(given(reviewers, papers(p1=1, p2=1, p3=1), scores), HAND)
    assert set(loads_of(plan).values()) == {1} and plan.value == pytest.approx(1.1)
    free = recommend(given(people(r1=3, r2=3, r3=3), papers(p1=1, p2=1, p3=1), scores), HAND)
    assert free.value == pytest.approx(2.7)
    greedy = tuple(replace(reviewer, load_min=2) for reviewer in reviewers)
    plan = recommend(given(greedy, papers(p1=1, p2=1, p3=1), scores), HAND)
    assert plan.status == "infeasible"
    assert sum(entry["missing"] for entry in plan.diagnosis["load_min"]) == 3
    assert "6 reviews" in " ".join(plan.diagnosis["sentences"])


def test_b16_demand_is_each_submissions_own_and_what_is_held_counts():
    """None, three and the default in one solve; an emergency round adds exactly the missing review."""
    venue = given(people(r1=3, r2=3, r3=3, r4=3), papers(p1=0, p2=3, p3=None), demand=2)
    plan = recommend(venue)
    assert Counter(pair.submission for pair in plan.assignments) == {"p2": 3, "p3": 2}
    emergency = given(people(r1=1, r2=1, r3=1, r4=1), papers(p4=3), locks=["r1-p4", "r2-p4"])
    plan = recommend(emergency)
    added = pairs_of(plan) - {("r1", "p4"), ("r2", "p4")}
    assert len(plan.assignments) == 3 and added in ({("r3", "p4")}, {("r4", "p4")})
    assert {pair.reviewer for pair in plan.assignments if pair.locked} == {"r1", "r2"}


def test_b17_alternates_are_a_list_and_no_demand():
    """Feasible with two alternates wanted; the other person is the only one, full; a conflicted one never is."""
    venue = given(
        people(r1=1, r2=1, r3=1), papers(p1=1, p2=1), {"r1-p1": 0.9, "r2-p2": 0.9}, conflicts=["r3-p1", "r3-p2"]
    )
    plan = recommend(venue, replace(HAND, n_alternates=2))
    assert plan.status == "optimal"
    assert [(entry.submission, entry.reviewer, entry.full) for entry in plan.alternates] == [
        ("p1", "r2", True),
        ("p2", "r1", True),
    ]


def test_b19_a_shortage_is_said_in_figures_a_chair_knows():
    """Needed, available, short by how much, and which setting closes it; infeasible is no error."""
    plan = recommend(given(people(r1=1, r2=1), papers(p1=2, p2=2)))
    capacity = plan.diagnosis["capacity"]
    assert plan.status == "infeasible"
    assert (capacity["needed"], capacity["available"], capacity["shortfall"]) == (4, 2, 2)
    assert capacity["load_max_that_suffices"] == 2 and "short by 2" in capacity["sentence"]
    many = given(people(**{f"r{n}": 2 for n in range(50)}), papers(**{f"p{n}": 3 for n in range(50)}))
    report = readiness(many)
    assert not report["ready"] and any("short by 50" in item.message for item in report["items"])
    assert recommend(many).diagnosis["capacity"]["shortfall"] == 50


def test_b20_a_submission_with_too_few_eligible_people_is_named_with_the_reasons():
    """Totals are ample; one conflict makes one submission impossible, and only that one is listed."""
    venue = given(people(r1=5, r2=5, r3=5), papers(p1=3, p2=3, p3=3, p4=3), conflicts=["r1-p4"])
    (entry,) = recommend(venue).diagnosis["too_few_eligible"]
    assert (entry["submission"], entry["demand"], entry["eligible"]) == ("p4", 3, 2)
    assert [person["reviewer"] for person in entry["excluded"]] == ["r1"] and entry["excluded"][0]["reasons"]
    report = readiness(venue)
    assert not report["ready"] and [
        item.submissions for item in report["items"] if item.code == "too-few-eligible"
    ] == [("p4",)]


def texts(name, *titles):
    return tuple(Publication(f"{name}-{n}", title, title + " studied in depth") for n, title in enumerate(titles))


def test_b24_unknown_is_not_zero_and_a_switch_decides_whether_it_may_be_used():
    """Off: infeasible, naming what is left over and the switch. On, or without any scores: one each."""
    reviewers = (Reviewer("r1", load_max=1), Reviewer("r2", load_max=1, publications=texts("r2", "graph kernels")))
    submissions = (Submission("p1", "Kernels on graphs", demand=1), Submission("p2", "Graph kernel machines", demand=1))
    venue = Venue(reviewers, submissions)
    off = recommend(venue, Params(allow_unknown=False))
    assert off.status == "infeasible" and len(off.unfilled) == 1
    told = " ".join(off.diagnosis["sentences"])
    assert next(iter(off.unfilled)) in told and "allow_unknown" in told
    on = recommend(venue, Params(allow_unknown=True))
    assert on.status == "optimal" and set(loads_of(on).values()) == {1}
    bare = recommend(given(people(r1=1, r2=1), papers(p1=1, p2=1)))
    assert bare.status == "optimal" and set(loads_of(bare).values()) == {1}


def test_b25_texts_without_words_are_unscored_and_listed():
    """Blank, empty and missing abstracts beside a normal one; then nothing but stop words and digits."""
    reviewers = (Reviewer("r1", load_max=4, publications=texts("r1", "convex optimisation", "stochastic gradients")),
                 Reviewer("r2", load_max=4, publications=texts("r2", "protein folding")))  # fmt: skip
    submissions = (Submission("p1"), Submission("p2", abstract="  \n"), Submission("p3", abstract=None),
                   Submission("p4", "Stochastic gradients for convex problems"))  # fmt: skip
    plan = recommend(Venue(reviewers, submissions, demand=1))
    (notice,) = [notice for notice in plan.notices if notice.code == "unscored-submission"]
    assert notice.submissions == ("p1", "p2", "p3")
    by_submission = {pair.submission: pair for pair in plan.assignments}
    assert by_submission["p4"].reviewer == "r1" and by_submission["p4"].parts[0].value is not None
    assert by_submission["p1"].parts[0].value is None
    empty = Venue(
        (Reviewer("r1", publications=(Publication("x", "the of and", "1 2"),)),),
        (Submission("p1", "1 2", "the of and", demand=1),),
    )
    plan = recommend(empty)
    assert plan.status == "optimal" and {"unscored-submission", "no-evidence"} & set(codes(plan))
    json.dumps(plan.to_dict(), allow_nan=False)


def test_b26_everybody_stays_in_and_missing_evidence_is_counted_and_named():
    """Six with publications, two with keywords only, two with nothing: 8 of 10, two names."""
    reviewers = (
        *(Reviewer(f"r{n}", publications=texts(f"r{n}", "deep learning theory")) for n in range(6)),
        *(Reviewer(f"r{n}", keywords=("deep learning",)) for n in (6, 7)),
        Reviewer("r8"),
        Reviewer("r9"),
    )
    venue = Venue(reviewers, (Submission("p1", "Theory of deep learning", demand=10),))
    report = readiness(venue)
    (notice,) = [item for item in report["items"] if item.code == "no-evidence"]
    assert notice.reviewers == ("r8", "r9") and "8 of 10" in notice.message
    assert len(recommend(venue).assignments) == 10


def test_b27_versions_of_one_work_count_once():
    """{A, B} and {A, A, A, B} score alike; recency makes the old topic weaker; odd years crash nothing."""
    a, b = "Bandit algorithms for ranking", "Sparse coding of images"
    once = Reviewer("r1", publications=(Publication("1", a, a, 2020), Publication("2", b, b, 2020)))
    often = Reviewer("r2", publications=(Publication("1", a, a, 2020), Publication("2", a.upper(), a, 2020),
                                         Publication("3", a + ".", a, 2020), Publication("4", b, b, 2020)))  # fmt: skip
    other = Reviewer("r3", publications=texts("r3", "Compilers and types"))
    venue = Venue((once, often, other), (Submission("p1", "Ranking with bandits", demand=3),))
    affinity = {pair.reviewer: pair.affinity for pair in recommend(venue).assignments}
    assert affinity["r1"] == pytest.approx(affinity["r2"], abs=1e-9) and affinity["r1"] > affinity["r3"]
    odd = (Publication("v", "Notes", "Notes", None), Publication("w", "More", "More", 2099))
    person = Reviewer("r1", publications=(Publication("t", a, a, 2005), Publication("u", b, b, 2024), *odd))
    aging = Venue((person, other), (Submission("old", a, a, demand=2), Submission("new", b, b, demand=2)))
    plan = recommend(aging, Params(recency_half_life=4.0))
    affinity = {pair.submission: pair.affinity for pair in plan.assignments if pair.reviewer == "r1"}
    assert affinity["old"] < affinity["new"]


def test_b30_a_missing_pair_takes_the_default_and_parts_add_up():
    """What the solver used is what is shown."""
    venue = Venue(people(r1=1, r2=1), papers(p1=1), scores=(table({"r1-p1": 0.2}, default=0.5),))
    (pair,) = recommend(venue, HAND).assignments
    assert (pair.reviewer, pair.affinity, pair.parts[0].used) == ("r2", 0.5, 0.5)
    bids = given(people(r1=1), papers(p1=1), bids={"r1-p1": "high"})
    (pair,) = recommend(bids, Params(weights={"bids": 1.0})).assignments
    assert pair.affinity == 0.5
    plan = recommend(matching.load_fixture("icml2026"))
    for pair in plan.assignments:
        assert sum(part.weight * part.used for part in pair.parts) == pytest.approx(pair.affinity, abs=1e-9)
        assert sum(part.contribution for part in pair.parts) == pytest.approx(pair.affinity, abs=1e-9)


def test_b31_unused_bids_are_warned_about_and_no_bid_equals_neutral():
    """20 bids with weight 0 are named; order is positive, none or neutral, negative."""
    venue = given(people(**{f"r{n}": 5 for n in range(5)}), papers(p1=1, p2=1, p3=1, p4=1),
                  bids={f"r{r}-p{p}": "high" for r in range(5) for p in range(1, 5)})  # fmt: skip
    plan = recommend(venue, Params(weights={"text": 1.0, "bids": 0.0}))
    (notice,) = [notice for notice in plan.notices if notice.code == "unused-signal"]
    assert "20 bids present, weight 0" in notice.message
    assert {signal["name"]: signal["pairs"] for signal in plan.report["signals"]}["bids"] == 20
    order = given(people(r1=1, r2=1, r3=1), papers(p1=2), bids={"r2-p1": "neutral", "r3-p1": "low"})
    assert pairs_of(recommend(order)) == {("r1", "p1"), ("r2", "p1")}


def test_b34_equal_scores_spread_evenly_and_row_order_changes_nothing():
    """One paper each, not 3 + 1; the seed is stored; shuffled records give the identical plan."""
    scores = {f"r{r}-p{p}": 0.5 for r in range(1, 5) for p in range(1, 5)}
    venue = given(people(r1=3, r2=3, r3=3, r4=3), papers(p1=1, p2=1, p3=1, p4=1), scores)
    plan = recommend(venue, replace(HAND, rng=7))
    assert set(loads_of(plan).values()) == {1} and plan.provenance["seed"] == 7
    shuffled = replace(
        venue, reviewers=venue.reviewers[::-1], submissions=venue.submissions[2:] + venue.submissions[:2]
    )
    again = recommend(shuffled, replace(HAND, rng=7))
    assert pairs_of(again) == pairs_of(plan) and again.provenance["input_hash"] == plan.provenance["input_hash"]
    assert {round(recommend(venue, replace(HAND, rng=seed)).value, 9) for seed in range(4)} == {2.0}


def test_b34_shuffling_every_record_of_a_real_venue_changes_nothing():
    """The whole fixture, texts and all, in another order: the same plan to the last sentence."""
    venue = matching.load_fixture("icml2026")
    order = np.random.default_rng(1)

    def shuffled(records):
        return tuple(records[at] for at in order.permutation(len(records)))

    mixed = replace(
        venue,
        reviewers=tuple(
            replace(entry, publications=shuffled(entry.publications)) for entry in shuffled(venue.reviewers)
        ),
        submissions=shuffled(venue.submissions),
        bids=shuffled(venue.bids),
        conflicts=shuffled(venue.conflicts),
    )
    first, second = recommend(venue), recommend(mixed)
    assert [(a.submission, a.reviewer) for a in first.assignments] == [
        (a.submission, a.reviewer) for a in second.assignments
    ]
    assert [a.affinity for a in first.assignments] == pytest.approx([a.affinity for a in second.assignments], abs=1e-9)


def test_b36_results_are_in_input_ids():
    """Ids whose order differs from their rows; the three pairs with score 1 are the answer in any order."""
    scores = {f"{r}-{p}": 0.0 for r in ("r3", "r1", "r20") for p in ("p10", "p2", "p1")}
    scores |= {"r3-p10": 1.0, "r1-p2": 1.0, "r20-p1": 1.0}
    venue = given(people(r3=1, r1=1, r20=1), papers(p10=1, p2=1, p1=1), scores)
    assert pairs_of(recommend(venue, HAND)) == {("r3", "p10"), ("r1", "p2"), ("r20", "p1")}


def test_b37_close_scores_stay_apart():
    """0.5049 against 0.5001 must not become a tie on the way into an integer solver; nor 1e-6 apart."""
    solution = matching.assign([[0.5049, 0.5001], [0.5001, 0.5049]], demand=1, load_max=1)
    assert solution.pairs.tolist() == [[0, 0], [1, 1]] and solution.value == pytest.approx(1.0098, abs=1e-12)
    fine = matching.assign([[0.5 + 1e-6, 0.5], [0.5, 0.5 + 1e-6]], demand=1, load_max=1)
    assert fine.pairs.tolist() == [[0, 0], [1, 1]]


def test_b41_numbers_that_are_not_finite_stop_at_the_gate_and_none_leave():
    """NaN in a matrix names the pair; an empty profile is unknown; output is strict JSON."""
    with pytest.raises(matching.MatchingError, match="submission 1, reviewer 0"):
        matching.assign([[0.1, 0.2], [float("nan"), 0.3]], demand=1, load_max=1)
    with pytest.raises(matching.MatchingError) as caught:
        recommend(Venue(people(r1=1), papers(p1=1), scores=(table({"r1-p1": float("inf")}),)))
    assert "r1" in str(caught.value) and "p1" in str(caught.value)
    mute = (Reviewer("r1"), Reviewer("r2", publications=texts("r2", "graph kernels")))
    plan = recommend(Venue(mute, (Submission("p1", "Kernels on graphs", demand=2),)))
    silent = next(pair for pair in plan.assignments if pair.reviewer == "r1")
    assert silent.parts[0].value is None and 0.0 < silent.parts[0].used < 1.0
    json.loads(json.dumps(plan.to_dict(), allow_nan=False))


@pytest.mark.parametrize("bad", [2.5, True, -1, "three"])
def test_b43_a_load_must_be_a_count(bad):
    """2.34 does not become 2 and true does not become 1; the field is named."""
    with pytest.raises(matching.MatchingError) as caught:
        recommend(Venue((Reviewer("r1", load_max=bad),), papers(p1=1)))
    assert caught.value.issues[0].field == "load_max" and caught.value.issues[0].row == 0


def test_locks_that_clash_are_refused_in_outside_ids():
    """A lock never lifts a conflict, exceeds a load or a demand; the people are named, not rows."""
    clash = given(people(r1=1, r2=1), papers(p1=1), conflicts=["r1-p1"], locks=["r1-p1"])
    with pytest.raises(matching.MatchingError, match="p1 and r1 are locked and in conflict"):
        recommend(clash)
    heavy = given(people(r1=1), papers(p1=1, p2=1), locks=["r1-p1", "r1-p2"])
    with pytest.raises(matching.MatchingError, match="r1 holds 2 locked reviews"):
        recommend(replace(heavy, locks=(*heavy.locks, Lock("p1", "r1"))))


def test_a_bottleneck_is_named_with_its_arithmetic():
    """All simple counts pass, yet three submissions share two free people."""
    venue = given(
        people(r1=2, r2=2, r3=6, r4=6), papers(p1=2, p2=2, p3=2, p4=2),
        conflicts=[f"{r}-{p}" for p in ("p1", "p2", "p3") for r in ("r3", "r4")],
    )  # fmt: skip
    plan = recommend(venue)
    bottleneck = plan.diagnosis["bottleneck"]
    assert plan.status == "infeasible" and sum(plan.unfilled.values()) == 2
    assert bottleneck["submissions"] == ["p1", "p2", "p3"] and bottleneck["reviewers"] == ["r1", "r2"]
    assert (bottleneck["needed"], bottleneck["capacity"]) == (6, 4)


def test_progress_is_told_and_whatever_it_raises_passes_through():
    """A run can be cancelled between steps, and the caller's own exception says so."""
    seen = []
    recommend(matching.load_fixture("tiny"), progress=seen.append)
    fractions = [report.fraction for report in seen]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0

    class Stop(Exception):
        pass

    def stop(report):
        if report.phase == "flow":
            raise Stop

    with pytest.raises(Stop):
        recommend(matching.load_fixture("tiny"), progress=stop)


@pytest.mark.parametrize(
    ("submission", "publication", "shown"),
    [
        ("state-of-the-art baselines", "Medieval art history", {"art"}),
        ("self-supervised encoders", "supervised ranking", {"supervised"}),
        ("new experiments in physics", "customer experience design", set()),
        ("marine animals", "marinating meat", set()),
        ("graph kernels", "kernel on graphs", {"graph", "kernel"}),
        ("COVID-19 spread", "covid wards", {"covid"}),
        ("深度神经网络", "神经科学", {"神经"}),
        ("हिंदी भाषा संसाधन", "हिंदी भाषा संसाधन", {"हिंदी", "भाषा", "संसाधन"}),
    ],
)
def test_b60_a_term_named_as_shared_stands_in_both_texts(submission, publication, shown):
    """A stem in common is not a word in common; and words are cut where the scorer cuts them."""
    reviewer = Reviewer("r1", publications=(Publication("x", publication),))
    other = Reviewer("r2", publications=(Publication("y", "unrelated zebra crossing"),))
    venue = Venue((reviewer, other), (Submission("p1", submission, demand=2), Submission("p2", "zebra fish", demand=1)))
    pair = next(pair for pair in recommend(venue).assignments if (pair.submission, pair.reviewer) == ("p1", "r1"))
    told = {
        term
        for reason in pair.reasons
        if reason.startswith("shared terms: ")
        for term in reason.removeprefix("shared terms: ").split(", ")
    }
    assert told == shown
    assert all(term in submission.lower() and term in publication.lower() for term in told)
    assert not any("no evidence" in reason for reason in pair.reasons)


def test_shared_terms_of_a_whole_venue_stand_in_both_texts():
    """Checked against the texts themselves, for every assigned pair of the fixture."""
    venue = matching.load_fixture("icml2026")
    written = {entry.id: f"{entry.title} {entry.abstract}".lower() for entry in venue.submissions}
    works = {
        entry.id: [f"{work.title} {work.abstract}".lower() for work in entry.publications] for entry in venue.reviewers
    }
    works["r43"] = [" ".join(next(entry for entry in venue.reviewers if entry.id == "r43").keywords).lower()]
    terms = 0
    for pair in recommend(venue).assignments:
        for reason in pair.reasons:
            if reason.startswith("shared terms: "):
                words = reason.removeprefix("shared terms: ").split(", ")
                terms += len(words)
                assert all(word in written[pair.submission] for word in words)
                assert any(all(word in work for word in words) for work in works[pair.reviewer])
    assert terms > 400


def test_the_order_of_publications_changes_neither_reasons_nor_hash():
    """A profile is a set of works."""
    works = (
        Publication("1", "Graph kernels"),
        Publication("2", "Kernels for graph data"),
        Publication("3", "Kernel graph"),
    )
    plans = [
        recommend(Venue((Reviewer("r1", publications=order),), (Submission("p1", "Graph kernel", demand=1),)))
        for order in (works, works[::-1])
    ]
    assert plans[0].assignments == plans[1].assignments
    assert plans[0].provenance["input_hash"] == plans[1].provenance["input_hash"]


def test_what_a_shortage_could_be_closed_by_is_true():
    """No limit helps where a person would have to review a submission twice; uneven demands are not averaged."""
    alone = recommend(given(people(r1=1), papers(p1=2, p2=2))).diagnosis["capacity"]
    assert alone["load_max_that_suffices"] is None and "Invite more people" in alone["sentence"]
    uneven = recommend(given(people(r1=1, r2=1, r3=1, r4=1, r5=1), papers(p1=1, p2=5))).diagnosis["capacity"]
    assert "2 submissions need 6 reviews in all" in uneven["sentence"] and uneven["load_max_that_suffices"] == 2


@pytest.mark.parametrize("bad", [1e39, -1e10, 1e308])
def test_scores_and_weights_beyond_reason_are_refused_by_name(bad):
    """Sums would leave single precision; the pair or the option is named."""
    with pytest.raises(matching.MatchingError, match="r1"):
        recommend(Venue(people(r1=1), papers(p1=1), scores=(table({"r1-p1": bad}),)))
    with pytest.raises(matching.MatchingError, match="bids"):
        Params(weights={"bids": abs(bad)})


@pytest.mark.parametrize("arguments", [(None,), ({},), (Venue(), {}), (Venue(), 3)])
def test_recommend_names_an_argument_of_the_wrong_type(arguments):
    """Before anything fails somewhere deep."""
    with pytest.raises(matching.MatchingError, match="must be"):
        recommend(*arguments)


def test_extra_fields_of_any_kind_do_not_stop_a_run():
    """They are kept, hashed and never read."""
    venue = Venue((Reviewer("r1", extra={"set": {1, 2}, "object": object}),), papers(p1=1))
    assert recommend(venue).status == "optimal"


@pytest.mark.parametrize("objective", ["total", "maximin", [{"name": "total", "loss": 0.1}, "welfare"], "leximin"])
def test_b34_the_order_of_rules_and_records_changes_no_plan_among_equals(objective):
    """B34: scores in quarters and priced rules leave many best plans; which one it is says nothing of any order."""
    rng = np.random.default_rng(11)
    tracks = {"a": "x", "b": "y"}
    people = [
        Reviewer(f"r{at}", seniority="ab"[at % 2], affiliations=("ABC"[at % 3],), extra={"track": tracks["ab"[at % 2]]})
        for at in range(6)
    ]
    papers = [Submission(f"p{at}", f"paper {at}", track="xy"[at % 2]) for at in range(5)]
    rows = [(f"p{row}", f"r{col}", round(4 * rng.random()) / 4) for row in range(5) for col in range(6)]
    rules = [
        {"rule": "reviewers_per_submission", "reviewers": {"seniority": "a"}, "at_least": 1, "price": 0.25},
        {"rule": "same", "attribute": "track", "price": 0.25},
        {"rule": "no_shared_reviewers", "each": "track", "price": 0.25},
        {"rule": "reviewers_per_submission", "each": "affiliation", "at_most": 1, "price": 0.25},
    ]
    params = Params(objective=objective, weights={"text": 0, "areas": 0, "bids": 0}, scorer="lexical", rng=3)
    found = set()
    for _ in range(4):
        venue = Venue(
            reviewers=tuple(people), submissions=tuple(papers), demand=2, load_max=3, rules=tuple(rules),
            scores=(ImportedScores("hand", *zip(*[row[:2] for row in rows]), np.array([row[2] for row in rows])),),
        )  # fmt: skip
        plan = recommend(venue, params)
        found.add((tuple((pair.submission, pair.reviewer) for pair in plan.assignments), plan.value, plan.bound))
        for part in (people, papers, rows, rules):
            rng.shuffle(part)
    assert len(found) == 1
