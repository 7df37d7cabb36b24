"""Rules by attributes: what they bind is what they say, counted here from plain lists, plan by plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from matching.constraints.attributes import Attributes
from matching.constraints.bounds import NO_UPPER, GroupBound, PairLimit, SharedReviewers
from matching.constraints.conflicts import find_conflicts
from matching.constraints.problem import AssignmentProblem
from matching.constraints.rules import CompiledRules, compile_rules, parse_rules
from matching.constraints.venue_attributes import attributes_of_venue
from matching.errors import InputError, InvalidParamsError, InvalidVenueError
from matching.pairs import PairSet
from matching.plan.audit import audit
from matching.profiles.resolve import resolve_venue
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import Bid, Venue
from matching.solvers.base import Status
from matching.solvers.milp import RuleSolver

N, M = 4, 5  # submissions, reviewers of the small problems below


def table(
    submissions: Mapping[str, Any] | None = None, reviewers: Mapping[str, Any] | None = None, **numbers: Any
) -> Attributes:
    """Attributes of N submissions and M reviewers with room for everything."""
    return Attributes.of_columns(
        demand=np.array(numbers.get("demand", [M] * N)),
        load_max=np.array(numbers.get("load_max", [N] * M)),
        load_min=np.array(numbers.get("load_min", [0] * M)),
        submissions=submissions,
        reviewers=reviewers,
        bids=numbers.get("bids"),
    )


def compiled(rule: Any, attributes: Attributes) -> CompiledRules:
    return compile_rules(parse_rules(rule if isinstance(rule, list) else [rule]), attributes)


def holds(made: CompiledRules, plan: np.ndarray) -> bool:
    """Whether a plan, bool of shape (n_submissions, n_reviewers), keeps everything that was compiled."""
    rows, cols = np.nonzero(plan)
    taken = sparse.csr_array(plan.astype(float))
    load = plan.sum(axis=0)
    good = not made.barred.contains(rows, cols).any() and plan[made.locks[:, 0], made.locks[:, 1]].all()
    good = good and (load <= made.load_max).all() and (load >= made.load_min).all()
    for bound in made.bounds:
        counts = bound.counts(taken)
        if isinstance(bound, GroupBound):
            dense = counts.toarray()
            good = good and (dense <= bound.upper + 1e-9).all() and (dense >= bound.lower - 1e-9).all()
        elif isinstance(bound, PairLimit):
            good = good and (counts <= bound.upper).all()
        else:
            assert isinstance(bound, SharedReviewers)
            good = good and (counts >= bound.least).all()
    return bool(good)


def words(error: pytest.ExceptionInfo[InputError]) -> list[tuple[str | None, str]]:
    return [(issue.field, issue.code) for issue in error.value.issues]


plans = st.lists(st.booleans(), min_size=N * M, max_size=N * M).map(lambda bits: np.array(bits).reshape(N, M))
one = st.sampled_from(["a", "b", None])
many = st.lists(st.sampled_from(["a", "b", "c"]), max_size=2)
rows_of = {"x": st.lists(one, min_size=N, max_size=N), "tags": st.lists(many, min_size=N, max_size=N)}
cols_of = {"x": st.lists(one, min_size=M, max_size=M), "tags": st.lists(many, min_size=M, max_size=M)}


@st.composite
def labelled(draw: Any) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    left = {name: draw(values) for name, values in rows_of.items()}
    right = {name: draw(values) for name, values in cols_of.items()}
    for side in (left, right):  # at least one of each, so that no rule is about nobody
        side["x"][0], side["tags"][0] = "a", ["a"]
    return left, right


def meets(values: Any, wanted: str) -> bool:
    return wanted in values if isinstance(values, list) else values == wanted


@settings(max_examples=30, deadline=None)
@given(labelled(), st.integers(0, 2), st.integers(0, 2), st.lists(plans, min_size=8, max_size=8))
def test_counts_of_reviewers_and_submissions_are_what_the_rule_says(
    labels: Any, low: int, more: int, tried: list[np.ndarray]
) -> None:
    """Both counting kinds, limited on the other side, against counting by hand."""
    left, right = labels
    attributes = table(left, right)
    high = low + more
    about_a = {"submissions": {"x": "a"}, "reviewers": {"tags": ["A "]}, "at_least": low, "at_most": high}
    rows = [row for row in range(N) if left["x"][row] == "a"]
    cols = [col for col in range(M) if "a" in right["tags"][col]]
    of_submissions = compiled({"rule": "reviewers_per_submission", **about_a}, attributes)
    of_reviewers = compiled({"rule": "submissions_per_reviewer", **about_a}, attributes)
    in_all = compiled({"rule": "reviews_in_all", **about_a}, attributes)
    for plan in tried:
        part = plan[np.ix_(rows, cols)]
        assert holds(of_submissions, plan) == all(low <= count <= high for count in part.sum(axis=1))
        assert holds(of_reviewers, plan) == all(low <= count <= high for count in part.sum(axis=0))
        assert holds(in_all, plan) == (low <= part.sum() <= high)


@settings(max_examples=30, deadline=None)
@given(labelled(), st.integers(0, 2), st.lists(plans, min_size=8, max_size=8), st.booleans())
def test_each_value_is_counted_by_itself_and_groups_count_as_one(
    labels: Any, high: int, tried: list[np.ndarray], merged: bool
) -> None:
    """Somebody with two values counts in both, but once in a group that holds both."""
    left, right = labels
    groups = {"ab": ["a", "b"]} if merged else None
    classes = [("a", "b"), ("c",)] if merged else [("a",), ("b",), ("c",)]
    rule = {"each": "tags", "groups": groups, "at_most": high}
    by_submission = compiled({"rule": "reviewers_per_submission", **rule}, table(left, right))
    by_reviewer = compiled({"rule": "submissions_per_reviewer", **rule}, table(left, right))
    for plan in tried:
        for made, side, counts in ((by_submission, right, plan), (by_reviewer, left, plan.T)):
            members = [[at for at, tags in enumerate(side["tags"]) if set(tags) & set(kind)] for kind in classes]
            assert holds(made, plan) == all((counts[:, who].sum(axis=1) <= high).all() for who in members)


@settings(max_examples=30, deadline=None)
@given(labelled(), st.integers(1, 2), st.lists(plans, min_size=8, max_size=8))
def test_sharing_counts_those_with_a_value_in_common(labels: Any, low: int, tried: list[np.ndarray]) -> None:
    """Area quotas: whoever has no area is not bound."""
    left, right = labels
    common = np.array([[bool(set(one) & set(two)) for two in right["tags"]] for one in left["tags"]])
    rule = {"sharing": "tags", "at_least": low}
    by_submission = compiled({"rule": "reviewers_per_submission", **rule}, table(left, right))
    by_reviewer = compiled({"rule": "submissions_per_reviewer", **rule}, table(left, right))
    for plan in tried:
        rows = [row for row in range(N) if left["tags"][row]]
        cols = [col for col in range(M) if right["tags"][col]]
        assert holds(by_submission, plan) == ((plan & common).sum(axis=1)[rows] >= low).all()
        assert holds(by_reviewer, plan) == ((plan & common).sum(axis=0)[cols] >= low).all()


@settings(max_examples=30, deadline=None)
@given(labelled(), st.sampled_from(["allowed", "barred"]), st.booleans(), st.lists(plans, min_size=8, max_size=8))
def test_same_and_bar_bar_exactly_their_pairs_hard_or_priced(
    labels: Any, missing: str, priced: bool, tried: list[np.ndarray]
) -> None:
    """A priced bar is a bound whose excess is the number of pairs it would have barred."""
    left, right = labels
    price = {"price": 0.5} if priced else {}
    common = np.array([[bool(set(one) & set(two)) for two in right["tags"]] for one in left["tags"]])
    unknown = np.array([not tags for tags in right["tags"]]) & (missing == "allowed")
    off = ~common & ~unknown[None, :] & np.array([bool(tags) for tags in left["tags"]])[:, None]
    same = compiled({"rule": "same", "attribute": "tags", "missing": missing, **price}, table(left, right))
    some = compiled({"rule": "bar", "sharing": "tags", **price}, table(left, right))
    for made, wanted in ((same, off), (some, common)):
        assert made.bars.counts == ({} if priced or not wanted.any() else {next(iter(made.rules)): int(wanted.sum())})
        if not priced:
            assert {tuple(pair) for pair in made.barred.pairs().tolist()} == set(zip(*map(list, np.nonzero(wanted))))
        for plan in tried:
            if priced:
                taken = sparse.csr_array(plan.astype(float))
                excess = sum(np.maximum(bound.counts(taken).toarray() - bound.upper, 0).sum() for bound in made.bounds)
                assert excess == (plan & wanted).sum() and all(bound.price == 0.5 for bound in made.bounds)
            else:
                assert holds(made, plan) == (not (plan & wanted).any())


@settings(max_examples=30, deadline=None)
@given(labelled(), st.lists(plans, min_size=8, max_size=8))
def test_submissions_that_share_or_must_not_share_reviewers(labels: Any, tried: list[np.ndarray]) -> None:
    """Pairs of a class have enough people in common; of no class has anybody two."""
    left, right = labels
    together = compiled({"rule": "share_reviewers", "each": "x", "at_least": 2}, table(left, right))
    apart = compiled({"rule": "no_shared_reviewers", "each": "x"}, table(left, right))
    pairs = [(p, q) for p in range(N) for q in range(p) if left["x"][p] and left["x"][p] == left["x"][q]]
    for plan in tried:
        common = [int((plan[p] & plan[q]).sum()) for p, q in pairs]
        assert holds(together, plan) == all(count >= 2 for count in common)
        assert holds(apart, plan) == (not any(common))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=N, max_size=N),
    st.lists(st.integers(0, 4), min_size=M, max_size=M), st.lists(st.integers(0, 1), min_size=M, max_size=M),
    st.lists(plans, min_size=8, max_size=8),
)  # fmt: skip
def test_load_weights_replace_the_plain_limits(
    weights: list[float], load_max: list[int], load_min: list[int], tried: list[np.ndarray]
) -> None:
    """Somebody with a load_max of 3 may take six short papers, and the plain limits never say less than the weights."""
    least = np.minimum(load_min, load_max)
    rules = [
        {"rule": "load_weight", "submissions": {"id": [str(row)]}, "weight": weight}
        for row, weight in enumerate(weights)
        if weight != 1.0
    ]
    made = compiled(rules, table(load_max=load_max, load_min=least))
    for plan in tried:
        load = np.array(weights) @ plan
        assert holds(made, plan) == bool((load <= load_max).all() and (load >= least).all())


def test_a_lower_bound_never_asks_for_more_than_is_needed() -> None:
    """A submission that needs no review needs no senior one either."""
    made = compiled(
        {"rule": "reviewers_per_submission", "at_least": 2}, table(demand=[0, 1, 2, 3], load_max=[0, 1, 2, 3, 4])
    )
    assert made.bounds[0].lower.ravel().tolist() == [0, 1, 2, 2]
    made = compiled(
        {"rule": "submissions_per_reviewer", "at_least": 2}, table(demand=[0, 1, 2, 3], load_max=[0, 1, 2, 3, 4])
    )
    assert made.bounds[0].lower.ravel().tolist() == [0, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ({"x": "A"}, [0, 4]),
        ({"x": ["a", "b"]}, [0, 1, 4]),
        ({"x": {"not": "a"}}, [1, 2, 3]),
        ({"x": None}, [2, 3]),
        ({"x": ["b", None]}, [1, 2, 3]),
        ({"x": {"not": None}}, [0, 1, 4]),
        ({"x": {"not": ["a", None]}}, [1]),
        ({"load_max": {"at_least": 2}}, [1, 2, 3, 4]),
        ({"load_max": {"at_least": 2, "at_most": 3}}, [1, 2]),
        ({"load_max": 3}, [2]),
        ({"joined": {"at_most": "2024-01-31"}}, [0, 1]),
        ({"extra.joined": {"at_least": "2024-01-02"}, "x": ["a", "b"]}, [1]),
        ({"id": [0, "4"]}, [0, 4]),
        ({"flag": True}, [1, 3]),
        ({"areas": "machine  LEARNING"}, [2]),
    ],
)
def test_selections_choose_whom_they_say(selection: dict[str, Any], chosen: list[int]) -> None:
    """Values, lists, not, null, numbers, dates, several attributes at once."""
    attributes = table(
        reviewers={
            "x": ["a", "b", None, " ", "A "],
            "joined": ["2024-01-01", "2024-01-02T10:00:00+00:00", None, "soon", None],
            "flag": [False, True, None, "true", 1],
            "area": [[], ["vision", "nlp"], "Machine Learning", None, ["nlp"]],
        },
        load_max=[1, 2, 3, 4, 4],
    )
    made = compiled({"rule": "bar", "submissions": {"id": "0"}, "reviewers": selection}, attributes)
    assert made.barred.row(0).tolist() == chosen


def test_every_fault_of_form_is_told_at_its_place() -> None:
    """A chair mends a file of rules once."""
    rules = [
        {"rule": "bars"},
        {"rule": "reviewers_per_submission", "reviewers": {"x": {"is": 1}}, "at_least": 2, "at_most": 1},
        3,
        {"rule": "lock", "submissions": {"track": "A"}},
        {"rule": "no_cycles", "length": 9, "price": -1},
        {"rule": "coreviewer_distance", "at_least": 1, "each": "x"},
        {"rule": "reviewers_per_submission", "each": "x", "sharing": "y", "at_least": True, "name": 3},
        {"rule": "submissions_per_reviewer", "groups": {"A": []}, "at_most": 1},
        {"rule": "load_weight", "submissions": {}, "weight": float("nan")},
        {"rule": "bar"},
        {
            "rule": "bar",
            "reviewers": {"x": [[1]], "y": {"at_least": "soon"}, "z": {"at_least": 1, "at_most": "2025-01-01"}},
        },
        {},
    ]  # fmt: skip
    with pytest.raises(InvalidParamsError) as error:
        parse_rules(rules)
    assert words(error) == [
        ("rules[0].rule", "unknown-rule"),
        ("rules[1].reviewers.x.is", "unknown-option"),
        ("rules[1].at_least", "contradiction"),
        ("rules[2]", "wrong-type"),
        ("rules[3].reviewers", "missing"),
        ("rules[3].submissions", "not-ids"),
        ("rules[4].length", "out-of-range"),
        ("rules[4].price", "out-of-range"),
        ("rules[5].each", "unknown-option"),
        ("rules[5].at_least", "out-of-range"),
        ("rules[6].name", "wrong-type"),
        ("rules[6].at_least", "out-of-range"),
        ("rules[6].sharing", "contradiction"),
        ("rules[7].groups.A", "wrong-type"),
        ("rules[7].groups", "missing"),
        ("rules[8].weight", "out-of-range"),
        ("rules[8].submissions", "missing"),
        ("rules[9]", "missing"),
        ("rules[10].reviewers.x[0]", "wrong-type"),
        ("rules[10].reviewers.y.at_least", "wrong-type"),
        ("rules[10].reviewers.z", "wrong-type"),
        ("rules[11].rule", "unknown-rule"),
    ]
    for value in ("bar", {"rule": "bar"}, 3):
        with pytest.raises(InvalidParamsError, match="must be a list"):
            parse_rules(value)


def test_rules_about_nobody_and_unknown_names_are_errors_that_name_them() -> None:
    """A misspelt rule must not look like a kept one."""
    attributes = table({"track": ["A", "A", "B", None]}, {"seniority": ["senior"] * 4 + [None], "odd": [{}] * 5})
    rules = [
        {"rule": "bar", "reviewers": {"seniorty": "senior"}},
        {"rule": "bar", "reviewers": {"seniority": "professor"}},
        {"rule": "bar", "reviewers": {"id": ["0", "zz"]}},
        {"rule": "reviewers_per_submission", "each": "country", "at_most": 1},
        {"rule": "reviewers_per_submission", "reviewers": {"seniority": None}, "each": "seniority", "at_most": 1},
        {"rule": "same", "attribute": {"submissions": "track", "reviewers": "tracks"}},
        {"rule": "submissions_per_reviewer", "each": "track", "groups": {"new": ["C"]}, "at_most": 1},
        {"rule": "bar", "reviewers": {"odd": 1}},
    ]
    with pytest.raises(InvalidParamsError) as error:
        compiled(rules, attributes)
    assert words(error) == [
        ("rules[0].reviewers.seniorty", "unknown-attribute"),
        ("rules[1].reviewers", "rule-matches-nobody"),
        ("rules[2].reviewers.id", "unknown-id"),
        ("rules[3].each", "unknown-attribute"),
        ("rules[4].each", "rule-matches-nobody"),
        ("rules[5].attribute", "unknown-attribute"),
        ("rules[6].groups.new", "rule-matches-nobody"),
        ("rules[7].reviewers.odd", "wrong-type"),
    ]
    reasons = [issue.reason for issue in error.value.issues]
    assert "did you mean seniority?" in reasons[0] and "professor" in reasons[1] and "'zz'" in reasons[2]


def test_a_value_nobody_has_among_others_is_told() -> None:
    """The rule binds, but perhaps not whom it was meant for."""
    made = compiled({"rule": "bar", "reviewers": {"x": ["senior", "profesor"]}}, table(reviewers={"x": ["senior"] * 5}))
    assert [notice.code for notice in made.notices] == ["unmatched-value"]
    assert "'profesor'" in made.notices[0].message


def test_columns_are_judged_before_rules_are_read() -> None:
    """Lists of a wrong length would say things about other people."""
    with pytest.raises(InvalidParamsError) as error:
        table({"track": ["A"], "id": ["p", "p", "q", "r"]}, {"x": "abcde"})
    assert words(error) == [
        ("submission_attributes.track", "wrong-shape"),
        ("submission_attributes.id", "duplicate-id"),
        ("reviewer_attributes.x", "wrong-type"),
    ]


def test_locks_name_ids_and_weights_agree() -> None:
    """Two rules that give one submission different weights contradict each other."""
    attributes = table(reviewers={"id": ["r1", "R1", "r2", "r3", "r4"]})
    made = compiled({"rule": "lock", "submissions": {"id": ["0", "1"]}, "reviewers": {"id": "r2"}}, attributes)
    assert made.locks.tolist() == [[0, 2], [1, 2]]
    assert (
        compiled({"rule": "lock", "submissions": {"id": "0"}, "reviewers": {"id": "R1"}}, attributes).locks[0, 1] == 1
    )
    with pytest.raises(InvalidParamsError) as error:
        compiled(
            [
                {"rule": "load_weight", "submissions": {"id": ["0", "1"]}, "weight": 0.5},
                {"rule": "load_weight", "submissions": {"id": ["1", "2"]}, "weight": 2},
                {"rule": "lock", "submissions": {"id": "0"}, "reviewers": {"id": " R2 "}},
            ],
            attributes,
        )
    assert words(error) == [("rules[1].weight", "contradiction")]


def test_absences_within_the_window_bar_and_days_are_counted_once() -> None:
    """Both ends count, overlapping absences are one, absences outside the window do not matter."""
    attributes = table(
        {"from": ["2025-07-10", "2025-08-01", None, "2025-07-14T12:00"], "until": ["2025-07-20"] * 4},
        {"away": [["2025-07-01/2025-07-10", "2025-07-09/2025-07-12"], "2025-07-20", None, "2025-07-14", "2026-01-01"]},
    )
    with pytest.raises(InvalidParamsError) as error:
        compiled({"rule": "available"}, attributes)
    assert words(error) == [("rules[0].until", "contradiction")]
    first = {"rule": "available", "submissions": {"id": {"not": "1"}}}
    made = compiled(first, attributes)
    assert [made.barred.row(row).tolist() for row in range(N)] == [[0, 1, 3], [], [], [1, 3]]
    assert "3 days" in next(iter(made.bars.reasons(0, 0))).evidence
    assert compiled({**first, "at_most": 2}, attributes).barred.row(0).tolist() == [0]
    fixed = compiled({"rule": "available", "from": "2025-01-01", "until": "2025-12-31", "at_most": 11}, attributes)
    assert fixed.barred.row(2).tolist() == [0]
    with pytest.raises(InvalidParamsError, match="an absence of 0 must be"):
        compiled({**first, "away": "id"}, attributes)


SENIORS = Venue(
    reviewers=(
        Reviewer("s1", seniority="Senior", load_max=2, extra={"tracks": ["A"]}),
        Reviewer("s2", seniority="senior ", load_max=1, extra={"track": "a"}, country="DE"),
        Reviewer("j1", seniority="junior", load_max=1, extra={"track": "A"}),
        Reviewer("j2", seniority="junior", load_max=1),
        Reviewer("j3", seniority="junior", load_max=1, extra={"track": "A"}),
        Reviewer("r9", load_max=3, extra={"track": "B"}),
        Reviewer("old", seniority="emeritus", active=False, country="FR"),
    ),
    submissions=(Submission("p1", track="A"), Submission("p2", track="A"), Submission("p3", track="a")),
    bids=(Bid("p1", "r9", "very_high"),),
    demand=2,
)


def test_b18_seniors_juniors_and_tracks_come_from_the_profiles() -> None:
    """The track beats bids and scores; everybody is counted by what the record says, capitals or not."""
    resolved = resolve_venue(SENIORS)
    made = compiled(
        [
            {"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 1},
            {"rule": "reviewers_per_submission", "reviewers": {"seniority": "junior"}, "at_most": 1},
            {"rule": "same", "attribute": "track", "name": "tracks"},
        ],
        attributes_of_venue(resolved),
    )
    ids = [entry.id for entry in resolved.reviewers]
    assert [(resolved.submissions[row].id, ids[col]) for row, col in made.barred] == [
        ("p1", "r9"), ("p2", "r9"), ("p3", "r9"),
    ]  # fmt: skip
    conflicts = find_conflicts(resolved).joined(made.bars)
    assert conflicts.counts["tracks"] == 3 and len(conflicts.pairs) == 3
    told = conflicts.reasons(0, ids.index("r9"))
    assert [(reason.rule, reason.source) for reason in told] == [("tracks", "rules")]
    assert told[0].evidence == "submission p1 has track A, reviewer r9 has track B"
    senior, junior = made.bounds
    assert {ids[col] for col in senior.reviewers.indices} == {"s1", "s2"} and (senior.lower == 1).all()
    assert {ids[col] for col in junior.reviewers.indices} == {"j1", "j2", "j3"} and (junior.upper == 1).all()
    good = {("p1", "s1"), ("p2", "s1"), ("p3", "s2"), ("p1", "j1"), ("p2", "j2"), ("p3", "j3")}
    plan = np.array([[(paper.id, who) in good for who in ids] for paper in resolved.submissions])
    assert holds(made, plan)
    scores = np.random.default_rng(1).random(resolved.shape)
    scores[0, ids.index("r9")] = 1.0
    problem = AssignmentProblem.of(
        scores, demand=resolved.demand, load_max=made.load_max, conflicts=conflicts.pairs, rules=made.bounds
    )
    solution = RuleSolver().solve(problem)
    assert solution.status == Status.OPTIMAL and audit(problem, solution).clean
    held = {(resolved.submissions[row].id, ids[col]) for row, col in solution.pairs}
    assert sum(who == "s1" for _, who in held) == 2 and sum(who == "s2" for _, who in held) == 1
    assert all(sum(what == paper and who.startswith("j") for what, who in held) == 1 for paper in ("p1", "p2", "p3"))


def test_people_out_of_the_run_make_a_notice_of_a_rule_about_them() -> None:
    """A drop-out is no misspelling: the rule stays and binds nobody."""
    resolved = resolve_venue(SENIORS)
    made = compiled(
        {"rule": "reviewers_per_submission", "reviewers": {"seniority": "emeritus"}, "at_most": 1},
        attributes_of_venue(resolved),
    )
    assert [notice.code for notice in made.notices] == ["rule-matches-idle"]
    assert made.bounds[0].reviewers.nnz == 0


def test_accounts_of_one_person_are_one_and_answer_to_every_name() -> None:
    """Whichever id or address a rule uses."""
    venue = Venue(
        reviewers=(
            Reviewer("a1", emails=("Ann@cs.Uni.example",), affiliations=("Uni X",), aliases=("~Ann1",)),
            Reviewer("a2", same_person_as="a1", country="DE", affiliations=("uni  x", "Lab Y")),
            Reviewer("b", emails=("b@uni.example", "b@gmail.com"), affiliations=("Lab Y", "n/a")),
        ),
        submissions=(Submission("p"),),
    )
    attributes = attributes_of_venue(resolve_venue(venue))
    for name in ("a1", "a2", "~ann1", "ann@CS.uni.example"):
        made = compiled({"rule": "bar", "reviewers": {"id": name}}, attributes)
        assert made.barred.pairs().tolist() == [[0, 0]]
    made = compiled({"rule": "bar", "reviewers": {"country": "de"}}, attributes)
    assert made.barred.pairs().tolist() == [[0, 0]]
    bound = compiled({"rule": "reviewers_per_submission", "each": "affiliation", "at_most": 1}, attributes).bounds[0]
    assert bound.reviewer_labels == ("Lab Y", "Uni X") and bound.reviewers.toarray().tolist() == [[1, 1], [1, 0]]
    bound = compiled({"rule": "reviewers_per_submission", "each": "email_domain", "at_most": 1}, attributes).bounds[0]
    assert bound.reviewer_labels == ("uni.example",) and bound.reviewers.toarray().tolist() == [[1, 1]]


def test_authors_lend_their_country_and_institution_to_the_submission() -> None:
    """Where they are in the pool; what a submission states about them counts too."""
    venue = Venue(
        reviewers=(Reviewer("a", country="FR", affiliations=("Uni X",)), Reviewer("b", country="fr"), Reviewer("c")),
        submissions=(Submission("p", authors=(Author(id="a"), Author(name="N", affiliation="Lab Z"))),),
    )
    attributes = attributes_of_venue(resolve_venue(venue))
    rule = {"rule": "bar", "sharing": {"submissions": "author_country", "reviewers": "country"}}
    assert compiled(rule, attributes).barred.row(0).tolist() == [0, 1]
    made = compiled(
        {"rule": "bar", "submissions": {"author_affiliation": "lab z"}, "reviewers": {"id": "c"}}, attributes
    )
    assert made.barred.row(0).tolist() == [2]


def test_rules_of_the_venue_are_faults_of_the_venue() -> None:
    """The error says where the rule stands."""
    venue = Venue(reviewers=SENIORS.reviewers, submissions=SENIORS.submissions, rules=({"rule": "bars"},))
    with pytest.raises(InvalidVenueError) as error:
        resolve_venue(venue)
    assert [(issue.source, issue.field) for issue in error.value.issues] == [("venue", "rules[0].rule")]
    attributes = attributes_of_venue(resolve_venue(SENIORS))
    mine = parse_rules([{"rule": "bar", "reviewers": {"seniority": "x"}}])
    theirs = parse_rules([{"rule": "bar", "reviewers": {"seniorty": "x"}}], source="venue")
    with pytest.raises(InvalidVenueError) as error:
        compile_rules([*theirs, *mine], attributes)
    assert [issue.source for issue in error.value.issues] == ["venue", "params"]
    twice = compile_rules([*parse_rules([{"rule": "bar", "reviewers": {"id": "s1"}}] * 2)] * 2, attributes)
    assert len(set(twice.rules)) == len(twice.bars.counts) == 4


def test_thirty_thousand_by_thirty_thousand_compiles_without_a_table_of_pairs() -> None:
    """Views instead of arrays: one institution each of 3,000, and a bar of a few hundred thousand pairs."""
    n = 30_000
    attributes = Attributes.of_columns(
        demand=np.full(n, 3), load_max=np.full(n, 6), load_min=np.zeros(n, dtype=np.int64),
        submissions={"track": [f"t{row % 300}" for row in range(n)]},
        reviewers={
            "affiliation": [f"Uni {col % 3000}" for col in range(n)], "track": [f"t{col % 300}" for col in range(n)],
        },
    )  # fmt: skip
    made = compiled(
        [
            {"rule": "reviewers_per_submission", "each": "affiliation", "at_most": 1},
            {"rule": "reviewers_per_submission", "sharing": "track", "at_least": 1},
            {"rule": "bar", "submissions": {"track": "t1"}, "reviewers": {"affiliation": ["Uni 1", "Uni 2"]}},
        ],
        attributes,
    )
    institutions = made.bounds[0]
    assert institutions.shape == (n, 3000) and institutions.lower.strides[1] == institutions.upper.strides[1] == 0
    assert institutions.submissions.nnz == institutions.reviewers.nnz == n
    assert len(made.bounds) == 1 + 3 and len(made.barred) == 100 * 20
    assert sum(bound.lower.nbytes for bound in made.bounds[1:]) < 40_000_000


def test_pairs_a_rule_bars_are_listed_once_with_those_in_conflict() -> None:
    """A table of pairs becomes the same set as a list of them."""
    pairs = PairSet([[0, 1], [2, 3], [0, 1]], (N, M))
    assert PairSet.of_table(pairs.table()).pairs().tolist() == pairs.pairs().tolist() == [[0, 1], [2, 3]]
    assert NO_UPPER > N * M


HUGE = 10**400  # valid JSON, and no float64


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ({"rule": "bar", "submissions": {"id": HUGE}}, "rules[0].submissions.id"),
        ({"rule": "bar", "reviewers": {"x": [1, HUGE]}}, "rules[0].reviewers.x[1]"),
        ({"rule": "bar", "reviewers": {"x": {"not": -HUGE}}}, "rules[0].reviewers.x.not"),
        ({"rule": "bar", "reviewers": {"x": 10**5000}}, "rules[0].reviewers.x"),
        ({"rule": [10**5000]}, "rules[0].rule"),
        (
            {"rule": "reviewers_per_submission", "each": "x", "groups": {"g": [HUGE]}, "at_most": 1},
            "rules[0].groups.g[0]",
        ),
    ],
)
def test_b58_numbers_no_float_holds_are_refused_at_their_place(rule: Any, place: str) -> None:
    """B58: they compare with nothing; comparing them ended in an OverflowError far from the rule."""
    with pytest.raises(InvalidParamsError) as error:
        compiled(rule, table(reviewers={"x": ["a"] * M}))
    assert [issue.field for issue in error.value.issues] == [place]


def test_b58_records_that_hold_such_numbers_are_named_where_a_rule_asks_for_them() -> None:
    """Elsewhere they are nobody's business."""
    attributes = table(reviewers={"x": ["a", HUGE, "b", "c", [float("nan"), "a"]], "y": [1] * M})
    assert compiled({"rule": "bar", "reviewers": {"y": 1}}, attributes).barred
    with pytest.raises(InvalidParamsError) as error:
        compiled({"rule": "bar", "reviewers": {"x": {"at_least": 1}}}, attributes)
    assert "x of 1 holds something" in str(error.value)


def test_long_lists_of_unknown_values_are_told_in_short() -> None:
    """A list pasted in by mistake makes neither a message of its own length nor a comparison of all with all."""
    attributes = table(reviewers={"x": ["a", *["b"] * (M - 1)]})
    many = [f"unknown {at}" for at in range(5000)]
    with pytest.raises(InvalidParamsError) as error:
        compiled({"rule": "bar", "reviewers": {"x": many}}, attributes)
    assert len(str(error.value)) < 500 and "4995 more" in str(error.value)
    (notice,) = compiled({"rule": "bar", "reviewers": {"x": ["a", *many]}}, attributes).notices
    assert len(notice.message) < 2000 and notice.message.endswith("4980 more")
