"""Several roles in one plan: reviewers and area chairs depend on each other, so they are solved together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import matching
from matching.constraints.role_rows import RoleRows, RoleScores
from matching.engine import exclusions, explanation, input_hash, readiness, recommend
from matching.errors import InvalidParamsError, InvalidVenueError
from matching.formats.plans import (
    read_plan_json,
    write_openreview_alternates,
    write_openreview_assignments,
    write_plan_csv,
    write_plan_json,
)
from matching.pairs import PairSet
from matching.params import Params
from matching.plan.plan import AssignmentPlan
from matching.profiles.resolve import resolve_venue
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import Bid, DeclaredConflict, ImportedScores, Lock, Venue
from matching.roles import parse_roles
from matching.scores.base import DenseScores, blocks

BOTH = {"reviewer": {"demand": 2}, "area_chair": {"demand": 1}}
ONLY_SCORES = {"areas": 0.0, "bids": 0.0}
SCHOOLS = ("Athena", "Borealis", "Cygnus")

Chosen = frozenset[tuple[str, str]]
Lawful = Callable[[Chosen], bool]


def venue_of(seed: int, *, papers: int = 3, people: int = 4, chairs: int = 3, twins: int = 0, **rest: Any) -> Venue:
    """Scores alone decide; the first `twins` area chairs are second accounts of the first reviewers."""
    rng = np.random.default_rng(seed)
    pool = [
        Reviewer(f"r{at}", affiliations=(SCHOOLS[at % 3],), publications=(Publication(id=f"w{at // 2}", title="x"),))
        for at in range(people)
    ]
    pool += [
        Reviewer(
            f"c{at}", role="area_chair", affiliations=(SCHOOLS[int(rng.integers(3))],),
            same_person_as=f"r{at}" if at < twins else None,
            publications=(Publication(id=f"w{at}", title="x"),),
        )
        for at in range(chairs)
    ]  # fmt: skip
    submissions = [Submission(f"p{at}") for at in range(papers)]
    pairs = [(entry.id, person.id) for entry in submissions for person in pool]
    values = np.round(rng.random(len(pairs)), 3)
    if twins:  # accounts of one person cannot differ
        known = dict(zip(pairs, values.tolist(), strict=True))
        values = np.array([
            known[paper, f"r{who[1:]}"] if who[0] == "c" and int(who[1:]) < twins else known[paper, who]
            for paper, who in pairs
        ])  # fmt: skip
    scores = ImportedScores("given", tuple(p for p, _ in pairs), tuple(r for _, r in pairs), values)
    return Venue(reviewers=tuple(pool), submissions=tuple(submissions), scores=(scores,), load_max=2, **rest)


def params_of(roles: Any = BOTH, **rest: Any) -> Params:
    return Params(roles=roles, weights=ONLY_SCORES, affiliation_conflicts=False, **rest)


def best_of(venue: Venue, params: Params, lawful: Lawful) -> float:
    """The best weighted total over every plan there is, by trying them all; -inf where there is none."""
    resolved = resolve_venue(venue, params)
    value = {
        (table.submissions[at], table.reviewers[at]): float(table.values[at])
        for table in venue.scores
        for at in range(len(table.values))
    }
    role_of = {entry.id: entry.role for entry in resolved.reviewers}
    weight = {wish.name: wish.weight for wish in resolved.roles}
    most = dict(zip(role_of, resolved.load_max.tolist(), strict=True))

    def teams(row: int) -> Iterator[tuple[str, ...]]:
        parts = []
        for role, wish in enumerate(resolved.roles):
            mine = [name for name, own in role_of.items() if own == wish.name]
            parts.append(list(combinations(mine, int(resolved.role_demand[role, row]))))
        for chosen in product(*parts):
            yield tuple(name for part in chosen for name in part)

    best = -np.inf
    names = [entry.id for entry in resolved.submissions]
    for chosen in product(*(list(teams(row)) for row in range(len(names)))):
        loads: dict[str, int] = {}
        for team in chosen:
            for name in team:
                loads[name] = loads.get(name, 0) + 1
        if any(count > most[name] for name, count in loads.items()):
            continue
        taken = frozenset((paper, name) for paper, team in zip(names, chosen, strict=True) for name in team)
        if lawful(taken):
            best = max(best, sum(value[pair] * weight[role_of[pair[1]]] for pair in taken))
    return best


def taken_in(plan: AssignmentPlan) -> Chosen:
    return frozenset((pair.submission, pair.reviewer) for pair in plan.assignments)


def teams_in(taken: Chosen) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for paper, who in sorted(taken):
        out.setdefault(paper, []).append(who)
    return out


def anything(taken: Chosen) -> bool:
    return True


def one_school_each(venue: Venue, roles: str = "rc") -> Lawful:
    school = {entry.id: entry.affiliations[0] for entry in venue.reviewers}

    def lawful(taken: Chosen) -> bool:
        teams = [[school[who] for who in team if who[0] in roles] for team in teams_in(taken).values()]
        return all(len(set(team)) == len(team) for team in teams)

    return lawful


def no_co_authors(venue: Venue) -> Lawful:
    works = {entry.id: {work.id for work in entry.publications} for entry in venue.reviewers}

    def lawful(taken: Chosen) -> bool:
        return not any(
            works[one] & works[other] for team in teams_in(taken).values() for one, other in combinations(team, 2)
        )

    return lawful


def nobody_twice(twins: int) -> Lawful:
    def lawful(taken: Chosen) -> bool:
        return not any(
            (paper, f"c{who[1:]}") in taken for paper, who in taken if who[0] == "r" and int(who[1:]) < twins
        )

    return lawful


ONE_SCHOOL = {"rule": "reviewers_per_submission", "each": "affiliation", "at_most": 1}
CHAIRS = {"role": "area_chair"}


class TestAgainstEveryPlan:
    """The proof says optimal; trying every plan of a tiny venue says so, too."""

    @pytest.mark.parametrize("seed", range(3))
    def test_without_rules_each_role_has_its_own_best(self, seed: int) -> None:
        """Demand, loads and weight of each role are its own."""
        venue, params = venue_of(seed), params_of({"reviewer": {"demand": 2}, "area_chair": {"weight": 2.5}})
        plan = recommend(venue, params)
        assert plan.status == "optimal" and plan.certificate.audited
        assert plan.value == pytest.approx(best_of(venue, params, anything))
        assert {pair.role for pair in plan.assignments} == {"reviewer", "area_chair"}

    @pytest.mark.parametrize("seed", range(4))
    def test_a_rule_counts_all_roles_of_a_submission_together(self, seed: int) -> None:
        """No two of one school on a submission means its area chair as well."""
        venue = venue_of(seed, rules=(ONE_SCHOOL,))
        plan, best = recommend(venue, params_of()), best_of(venue, params_of(), one_school_each(venue))
        assert (plan.status == "optimal") == np.isfinite(best)
        if np.isfinite(best):
            assert plan.value == pytest.approx(best)
            assert one_school_each(venue)(taken_in(plan))

    @pytest.mark.parametrize("seed", range(2))
    def test_a_rule_may_speak_of_one_role(self, seed: int) -> None:
        """Of reviewers no two may be of one school; an area chair may be of theirs."""
        venue = venue_of(seed, rules=({**ONE_SCHOOL, "reviewers": {"role": "reviewer"}},))
        plan = recommend(venue, params_of())
        assert plan.value == pytest.approx(best_of(venue, params_of(), one_school_each(venue, "r")))

    @pytest.mark.parametrize("seed", range(2))
    def test_co_authors_are_kept_apart_across_roles(self, seed: int) -> None:
        """An area chair is no co-author of the reviewers of a submission."""
        venue = venue_of(seed, people=5, rules=({"rule": "coreviewer_distance", "at_least": 2},))
        plan, best = recommend(venue, params_of()), best_of(venue, params_of(), no_co_authors(venue))
        assert (plan.status == "optimal") == np.isfinite(best)
        if np.isfinite(best):
            assert plan.value == pytest.approx(best)

    @pytest.mark.parametrize("seed", range(4))
    def test_nobody_has_two_roles_on_one_submission(self, seed: int) -> None:
        """A person with a reviewer's and an area chair's account is one person; each account has its own load."""
        venue = venue_of(seed, twins=2, chairs=2)
        plan = recommend(venue, params_of())
        assert plan.value == pytest.approx(best_of(venue, params_of(), nobody_twice(2)))
        assert nobody_twice(2)(taken_in(plan))
        assert [notice.reviewers for notice in plan.notices if notice.code == "several-roles"] == [
            ("r0", "c0"), ("r1", "c1"),
        ]  # fmt: skip

    def test_a_lower_bound_asks_no_more_than_the_roles_it_speaks_of_need(self) -> None:
        """At least two area chairs on a submission that needs one means one."""
        rule = {"rule": "reviewers_per_submission", "reviewers": CHAIRS, "at_least": 2}
        plan = recommend(venue_of(0, rules=(rule,)), params_of())
        assert plan.status == "optimal"
        assert plan.value == pytest.approx(best_of(venue_of(0), params_of(), anything))

    def test_reviewers_shared_by_two_submissions_are_those_of_the_role_named(self) -> None:
        """One area chair for both; without a role the rule is refused, not guessed at."""
        rule = {"rule": "share_reviewers", "submissions": {"id": ["p0", "p1"]}, "at_least": 1}
        plan = recommend(venue_of(1, rules=({**rule, "reviewers": CHAIRS},)), params_of())

        def lawful(taken: Chosen) -> bool:
            chair = {paper: who for paper, who in taken if who[0] == "c"}
            return chair["p0"] == chair["p1"]

        assert plan.value == pytest.approx(best_of(venue_of(1), params_of(), lawful))
        with pytest.raises(InvalidVenueError) as caught:
            recommend(venue_of(1, rules=(rule,)), params_of())
        assert [(issue.code, issue.field) for issue in caught.value.issues] == [("not-one-role", "rules[0].reviewers")]

    def test_rings_go_through_all_roles(self) -> None:
        """r0 reviews what c0 wrote while c0 handles what r0 wrote: a ring like any other."""
        venue = venue_of(2, rules=({"rule": "no_cycles", "length": 2},))
        authors = {"p0": (Author(id="r0"),), "p1": (Author(id="c0"),)}
        submissions = tuple(Submission(entry.id, authors=authors.get(entry.id, ())) for entry in venue.submissions)
        venue = Venue(**{**venue.__dict__, "submissions": submissions})

        def lawful(taken: Chosen) -> bool:
            return not {("p0", "c0"), ("p1", "r0")} <= taken and not {("p0", "r0"), ("p1", "c0")} & taken

        plan = recommend(venue, params_of())
        assert plan.value == pytest.approx(best_of(venue, params_of(), lawful))

    @pytest.mark.parametrize("objective", ["maximin", "welfare", "leximin", "envy", "evenness", "perturbed"])
    def test_other_objectives_are_audited_too(self, objective: str) -> None:
        """Sums are those of a role of a submission, so the lowest of maximin may be an area chair's."""
        plan = recommend(
            venue_of(3), params_of(objective=[objective, "total"] if objective == "maximin" else objective)
        )
        assert plan.certificate.audited and plan.status in ("optimal", "feasible_at_limit")
        if objective == "maximin":
            sums: dict[tuple[str, str], float] = {}
            for pair in plan.assignments:
                key = (pair.submission, pair.role)
                sums[key] = sums.get(key, 0.0) + pair.affinity
            assert plan.value == pytest.approx(min(sums.values()))

    def test_errors_by_id_make_a_robust_plan(self) -> None:
        """Uncertain area chairs are found in their rows."""
        errors = {"default": 0.1, "reviewers": {"c0": 0.4}, "pairs": [["p0", "c1", 0.2]]}
        plan = recommend(venue_of(3), params_of(objective={"name": "robust", "standard_error": errors, "radius": 1.0}))
        assert plan.certificate.audited and plan.status == "optimal"

    @pytest.mark.parametrize("errors", [0.2, {"default": 0.1, "pairs": [["p0", "c1", 0.3]]}, "evidence"])
    def test_errors_count_with_the_weight_of_a_role(self, errors: Any) -> None:
        """An error is one of an affinity: with every weight doubled the plan is the same and the value doubled."""
        words = ("sparse graphs", "random walks on graphs", "neural networks", "deep networks of neurons", "proofs")
        papers = [Submission(f"p{at}", title=words[at], abstract=words[at + 1]) for at in range(3)]
        people = [
            Reviewer(
                name, role=role, publications=tuple(Publication(f"{name}{k}", words[(at + k) % 5]) for k in (0, 2))
            )
            for role, names in (("reviewer", "abcd"), ("area_chair", "xyz"))
            for at, name in enumerate(names)
        ]
        robust = {"name": "robust", "standard_error": errors, "radius": 1.0}
        if isinstance(errors, dict):
            robust["standard_error"] = {**errors, "pairs": [["p0", "x", 0.3]]}
        values = []
        for weight in (1.0, 2.0):
            roles = {"reviewer": {"demand": 2, "weight": weight}, "area_chair": {"demand": 1, "weight": weight}}
            venue = Venue(people, papers, load_max=3)
            plan = recommend(venue, Params(roles=roles, objective=robust, scorer="lexical"))
            assert plan.certificate.audited
            values.append((plan.value, sorted((pair.submission, pair.reviewer) for pair in plan.assignments)))
        assert values[1][0] == pytest.approx(2 * values[0][0]) and values[0][1] == values[1][1]

    def test_caps_by_id_hold_for_the_roles_of_a_person(self) -> None:
        """Numbers by reviewer and by pair find their rows."""
        cap = {"default": 1.0, "reviewers": {"c0": 0.5}, "pairs": [["p0", "r0", 0.25]]}
        plan = recommend(venue_of(3), params_of(objective={"name": "randomised", "cap": cap}))
        chances = {(paper, who): chance for paper, who, chance in plan.probabilities}
        assert all(chance <= 0.5 + 1e-9 for (_, who), chance in chances.items() if who == "c0")
        assert chances.get(("p0", "r0"), 0.0) <= 0.25 + 1e-9


class TestPlansOfReviewersAlone:
    """Whoever names no roles gets what was got before there were any."""

    def test_nothing_is_written_of_roles(self) -> None:
        """Options, hash and JSON do not mention them."""
        venue = venue_of(0)
        plan = recommend(venue, Params(demand=2, weights=ONLY_SCORES))
        assert "role" not in plan.to_dict()["assignments"][0]
        assert "role" not in plan.to_dict()["alternates"][0]
        assert "roles" not in Params().to_dict() and "roles" not in plan.report
        assert input_hash(venue, Params()) == input_hash(venue, Params(roles={}))
        assert input_hash(venue, Params()) != input_hash(venue, params_of())
        assert b"role" not in write_plan_csv(plan).splitlines()[0]
        assert [(notice.code, notice.message) for notice in plan.notices if notice.code == "role-left-out"] == [
            ("role-left-out", "3 area chairs take no part in a plan of reviewers")
        ]

    def test_reviewers_named_as_the_only_role_are_the_same_plan(self) -> None:
        """Only the words about roles differ."""
        venue = venue_of(0)
        bare = recommend(venue, Params(demand=2, weights=ONLY_SCORES))
        named = recommend(venue, Params(roles={"reviewer": {"demand": 2}}, weights=ONLY_SCORES))
        assert bare.assignments == named.assignments and bare.certificate == named.certificate
        assert bare.report == named.report

    def test_area_chairs_alone_are_a_plan_as_well(self) -> None:
        """Chairs may assign area chairs first and reviewers another day."""
        plan = recommend(venue_of(0), params_of({"area_chair": {"demand": 2}}))
        assert {pair.role for pair in plan.assignments} == {"area_chair"} and len(plan.assignments) == 6
        assert set(plan.certificate.submission_prices) == {"p0", "p1", "p2"}
        left_out = [notice.message for notice in plan.notices if notice.code == "role-left-out"]
        assert left_out == ["4 reviewers take no part in a plan of area chairs"]


class TestWhatIsAskedFor:
    """The option, its faults and where its numbers come from."""

    def test_every_fault_is_told_at_its_place(self) -> None:
        """A chair mends them all at once."""
        wrong: dict[str, Any] = {
            "boss": {}, "reviewer": {"demand": -1, "loads": 3}, "area_chair": {"weight": 0.0},
            "emergency": {"load_min": 4, "load_max": 2},
        }  # fmt: skip
        with pytest.raises(InvalidParamsError) as caught:
            Params(roles=wrong, demand=True)
        assert {(issue.field, issue.code) for issue in caught.value.issues} == {
            ("roles.boss", "unknown-role"), ("roles.reviewer.demand", "out-of-range"),
            ("roles.reviewer.loads", "unknown-option"), ("roles.area_chair.weight", "out-of-range"),
            ("roles.emergency.load_min", "contradiction"), ("demand", "out-of-range"),
        }  # fmt: skip
        odd: tuple[Any, ...] = ([], "reviewer", {"reviewer": 3})
        for value in odd:
            with pytest.raises(InvalidParamsError):
                Params(roles=value)

    def test_a_number_no_float_holds_is_a_fault_like_any_other(self) -> None:
        """JSON has whole numbers of any length."""
        huge = 10**400
        for wrong in (
            {"roles": {"reviewer": {"weight": huge}}}, {"weights": {"text": huge}}, {"defaults": {"text": -huge}},
            {"time_limit": huge}, {"recency_half_life": huge},
        ):  # fmt: skip
            with pytest.raises(InvalidParamsError):
                Params(**wrong)

    def test_two_numbers_for_reviewers_contradict(self) -> None:
        """Neither is preferred in silence."""
        with pytest.raises(InvalidParamsError) as caught:
            Params(demand=3, roles={"reviewer": {"demand": 2}})
        assert [issue.field for issue in caught.value.issues] == ["roles.reviewer.demand"]
        assert Params(demand=2, roles={"reviewer": {"demand": 2}}).role_wishes[0].demand == 2
        assert Params(roles={"reviewer": {"demand": np.int64(2)}}).role_wishes[0].demand == 2

    def test_the_order_in_which_roles_are_named_is_nothing(self) -> None:
        """Equal wishes are equal plans and equal hashes."""
        turned = dict(reversed(BOTH.items()))
        assert parse_roles(BOTH) == parse_roles(turned)
        assert input_hash(venue_of(0), params_of()) == input_hash(venue_of(0), params_of(turned))
        assert Params.from_mapping(params_of().to_dict()) == params_of()
        assert Params.from_toml("[roles.area_chair]\ndemand = 2").role_wishes[0].demand == 2

    def test_demand_and_loads_are_those_of_the_role(self) -> None:
        """A submission's own number goes first, then the role's, then what options and venue say."""
        people = (
            Reviewer("r"), Reviewer("a", role="area_chair", load_max=30), Reviewer("b", role="area_chair", load_min=2),
        )  # fmt: skip
        papers = (
            Submission("p", demand=5, extra={"demand_area_chair": 2}),
            Submission("q", extra={"demand_area_chair": "0"}),
            Submission("s"),
        )
        venue = Venue(reviewers=people, submissions=papers, demand=3, load_max=6, load_min=1)
        found = resolve_venue(venue, Params(roles={"reviewer": {}, "area_chair": {"load_max": 20}}))
        assert found.role_demand.tolist() == [[5, 3, 3], [2, 0, 1]] and found.demand.tolist() == [7, 3, 4]
        assert [entry.id for entry in found.reviewers] == ["r", "a", "b"]
        assert found.load_max.tolist() == [6, 20, 20] and found.load_min.tolist() == [1, 0, 2]
        cut = [notice.message for notice in found.notices if notice.code == "load-max-cut"]
        assert cut == ["1 area chairs stated a load_max above the global limit of 20; it is cut to 20"]

    def test_a_demand_that_is_no_number_is_told_with_its_row(self) -> None:
        """It is never taken for none."""
        papers = (Submission("q"), Submission("p", extra={"demand_area_chair": "two"}))
        with pytest.raises(InvalidVenueError) as caught:
            resolve_venue(Venue(submissions=papers), params_of())
        assert [(issue.field, issue.row) for issue in caught.value.issues] == [("extra.demand_area_chair", 1)]

    def test_locks_count_toward_their_role(self) -> None:
        """Two locked area chairs where one is needed are too many, though three people are."""
        locks = (Lock("p0", "c0"), Lock("p0", "c1"))
        with pytest.raises(InvalidVenueError, match="2 locked reviews of area chairs, its demand is 1"):
            recommend(venue_of(0, locks=locks), params_of())
        plan = recommend(venue_of(0, locks=locks[:1]), params_of())
        assert [(pair.reviewer, pair.role) for pair in plan.assignments if pair.locked] == [("c0", "area_chair")]

    def test_a_lock_on_somebody_with_two_roles_names_the_account(self) -> None:
        """An address does not say which role is meant, and both on one submission cannot be."""
        venue = venue_of(0, twins=1, locks=(Lock("p0", "c0"),))
        assert ("p0", "c0") in taken_in(recommend(venue, params_of()))
        pool = tuple(
            Reviewer(**{**{name: getattr(entry, name) for name in entry.__slots__}, "emails": ("x@y.example",)})
            if entry.id in ("r0", "c0") else entry
            for entry in venue.reviewers
        )  # fmt: skip
        with pytest.raises(InvalidVenueError, match="takes part in several roles"):
            recommend(
                Venue(**{**venue.__dict__, "reviewers": pool, "locks": (Lock("p0", "x@y.example"),)}), params_of()
            )
        rule = {"rule": "lock", "submissions": {"id": "p0"}, "reviewers": {"id": "c0"}}
        assert ("p0", "c0") in taken_in(recommend(venue_of(0, twins=1, rules=(rule,)), params_of()))
        with pytest.raises(InvalidVenueError, match="nobody has two roles on one submission"):
            recommend(venue_of(0, twins=1, locks=(Lock("p0", "c0"), Lock("p0", "r0"))), params_of())

    def test_conflicts_and_bids_are_of_the_person(self) -> None:
        """A conflict declared for one account bars the other, and a wish counts in either role."""
        venue = venue_of(0, twins=1, conflicts=(DeclaredConflict("p0", "r0"),), bids=(Bid("p1", "c0", "very_high"),))
        plan = recommend(venue, Params(roles=BOTH, weights={"areas": 0.0, "bids": 5.0}))
        assert not {("p0", "r0"), ("p0", "c0")} & taken_in(plan)
        assert {("p1", "r0"), ("p1", "c0")} & taken_in(plan)
        assert plan.report["totals"]["conflicts"] == 2

    def test_a_role_nobody_has_makes_no_full_plan(self) -> None:
        """The reviewers are assigned all the same, and area chairs are what is missing."""
        plan = recommend(venue_of(0, chairs=0), params_of())
        assert plan.status == "infeasible" and len(plan.assignments) == 6
        assert {entry["role"] for entry in plan.diagnosis["unfilled"]} == {"area_chair"}
        nothing = recommend(Venue(), params_of())
        assert nothing.status == "optimal" and not nothing.assignments

    def test_an_id_that_reads_like_another_submissions_role_is_refused(self) -> None:
        """Prices are named by it."""
        papers = (Submission("p"), Submission("p/area_chair"))
        venue = Venue(reviewers=(Reviewer("r"), Reviewer("c", role="area_chair")), submissions=papers)
        with pytest.raises(InvalidVenueError, match="stands for the role of another submission"):
            recommend(venue, params_of())


class TestWhatIsToldOfRoles:
    """Plans, files, reports, explanations and diagnoses say who is what."""

    def test_a_plan_file_keeps_the_roles(self) -> None:
        """Written and read again it is the same plan; older files have no roles and load."""
        plan = recommend(venue_of(0), params_of())
        again = read_plan_json(write_plan_json(plan))
        assert again.assignments == plan.assignments and again.alternates == plan.alternates
        header = write_plan_csv(plan).splitlines()[0]
        assert header == b"submission,reviewer,role,affinity,locked,contribution_given,reasons"
        old = json.loads(write_plan_json(recommend(venue_of(0), Params(weights=ONLY_SCORES))))
        assert all("role" not in entry for entry in (*old["assignments"], *old["alternates"]))
        assert read_plan_json(json.dumps(old).encode()).assignments[0].role == "reviewer"

    def test_openreview_has_a_file_for_each_role(self) -> None:
        """Its area chairs are another group with its own edges."""
        plan = recommend(venue_of(0), params_of())
        chairs = json.loads(write_openreview_assignments(plan, "area_chair"))
        people = json.loads(write_openreview_assignments(plan))
        assert {len(entries) for entries in chairs.values()} == {1}
        assert {len(entries) for entries in people.values()} == {2}
        stand_ins = json.loads(write_openreview_alternates(plan, "area_chair"))
        assert set(stand_ins) == {"p0", "p1", "p2"}
        assert all(entry["user"][0] == "c" for entries in stand_ins.values() for entry in entries)

    def test_alternates_are_of_the_same_role(self) -> None:
        """Nobody else could stand in."""
        plan = recommend(venue_of(0), params_of())
        assert {(entry.role, entry.reviewer[0]) for entry in plan.alternates} == {
            ("reviewer", "r"),
            ("area_chair", "c"),
        }
        ranks: dict[tuple[str, str], list[int]] = {}
        for entry in plan.alternates:
            ranks.setdefault((entry.submission, entry.role), []).append(entry.rank)
        assert all(found == list(range(1, len(found) + 1)) for found in ranks.values())

    def test_nobody_is_offered_or_explained_away_on_a_submission_they_are_on_in_another_role(self) -> None:
        """They are no stand-in, and it is not the prices that keep them off."""
        venue, params = venue_of(0, twins=2), params_of(n_alternates=9)
        plan = recommend(venue, params)
        on = {(pair.submission, pair.reviewer) for pair in plan.assignments}
        twin = {"r0": "c0", "c0": "r0", "r1": "c1", "c1": "r1"}
        assert ("p1", "r0") in on and not any(
            (entry.submission, twin.get(entry.reviewer)) in on for entry in plan.alternates
        )
        told = {entry.reviewer: entry for entry in explanation(venue, None, plan, "p1").candidates}
        assert told["c0"].reason == "other-role" and "as reviewer (r0)" in told["c0"].words

    def test_the_report_has_loads_and_sums_of_each_role(self) -> None:
        """Affinities are the pairs' own, whatever a role weighs."""
        plan = recommend(venue_of(0), params_of({"reviewer": {"demand": 2}, "area_chair": {"weight": 3.0}}))
        roles = plan.report["roles"]
        for role, count, head in (("reviewer", 6, "r"), ("area_chair", 3, "c")):
            mine = [pair for pair in plan.assignments if pair.role == role]
            assert all(pair.reviewer[0] == head for pair in mine)
            assert roles[role]["totals"]["reviews_assigned"] == len(mine) == count
            assert roles[role]["totals"]["affinity"] == pytest.approx(sum(pair.affinity for pair in mine))
        assert roles["area_chair"]["weight"] == 3.0
        assert plan.value == pytest.approx(
            roles["reviewer"]["totals"]["affinity"] + 3.0 * roles["area_chair"]["totals"]["affinity"]
        )
        assert plan.report["totals"]["submissions"] == 3

    def test_the_bound_follows_from_the_certificate(self) -> None:
        """By hand, from prices, demand, loads and weighted affinities."""
        venue, params = venue_of(0), params_of({"reviewer": {"demand": 2}, "area_chair": {"weight": 3.0}})
        plan = recommend(venue, params)
        prices, whose = plan.certificate.submission_prices, plan.certificate.reviewer_prices
        assert set(prices) == {"p0", "p1", "p2", "p0/area_chair", "p1/area_chair", "p2/area_chair"}
        bound = sum((2 if "/" not in name else 1) * price for name, price in prices.items())
        bound += sum(2 * max(price, 0.0) for price in whose.values())
        table = venue.scores[0]
        for paper, who, value in zip(table.submissions, table.reviewers, table.values.tolist(), strict=True):
            row, weight = (paper, 1.0) if who[0] == "r" else (f"{paper}/area_chair", 3.0)
            bound += max(0.0, weight * value - prices[row] - whose[who])
        assert bound == pytest.approx(plan.bound)

    def test_an_explanation_speaks_role_by_role(self) -> None:
        """Ranks and candidates are among people of the same role."""
        venue = venue_of(0)
        plan = recommend(venue, params_of())
        told = explanation(venue, None, plan, "p0")
        assert [(entry.role, entry.demand, entry.received, entry.eligible) for entry in told.roles] == [
            ("reviewer", 2, 2, 4), ("area_chair", 1, 1, 3),
        ]  # fmt: skip
        assert (told.demand, told.received, told.eligible) == (3, 3, 7)
        assert [pair.standing.role for pair in told.pairs] == ["reviewer", "reviewer", "area_chair"]
        ranks = [entry.rank for entry in told.candidates if entry.role == "area_chair"]
        assert ranks == sorted(ranks, key=lambda rank: rank or 99) and ranks[0] == 1
        assert told.to_dict()["candidates"][0]["role"] == "reviewer"
        bare = recommend(venue, Params(weights=ONLY_SCORES))
        assert "role" not in json.dumps(explanation(venue, None, bare, "p0").to_dict())

    def test_an_explanation_names_prices_of_the_weighted_affinity(self) -> None:
        """The proof is about what the objective counts; the affinity told is the pair's own."""
        venue, params = venue_of(0), params_of({"reviewer": {"demand": 2}, "area_chair": {"weight": 3.0}})
        plan = recommend(venue, params)
        own = {
            (table.submissions[at], table.reviewers[at]): table.values[at]
            for table in venue.scores for at in range(len(table.values))
        }  # fmt: skip
        seen = 0
        for paper in ("p0", "p1", "p2"):
            for entry in explanation(venue, None, plan, paper, "c0").candidates:
                assert entry.affinity == pytest.approx(own[paper, entry.reviewer])
                if entry.price is not None and entry.affinity is not None:
                    seen += 1
                    weight = 3.0 if entry.role == "area_chair" else 1.0
                    assert entry.price.holds and entry.price.affinity == pytest.approx(weight * entry.affinity)
        assert seen

    def test_a_diagnosis_says_which_role_is_short(self) -> None:
        """Enough people in all is no comfort where there are too few area chairs."""
        venue = venue_of(0, people=9, chairs=1)
        plan = recommend(venue, params_of())
        assert plan.status == "infeasible" and sum(plan.unfilled.values()) == 1
        diagnosis = plan.diagnosis
        assert [(entry["role"], entry["missing"]) for entry in diagnosis["unfilled"]] == [("area_chair", 1)]
        assert diagnosis["capacity"]["roles"]["area_chair"]["shortfall"] == 1
        assert diagnosis["capacity"]["roles"]["reviewer"]["shortfall"] == 0
        assert any(
            sentence.startswith("Of area chairs: 3 submissions x 1 review = 3 reviews needed; 1 area chair can give 2")
            for sentence in diagnosis["sentences"]
        )
        assert {"c0"} == {name for repair in diagnosis["repairs"] for name in repair.get("reviewers", ())}
        assert all(repair["kind"] != "allow_unknown" for repair in diagnosis["repairs"])
        recruits = [repair for repair in diagnosis["repairs"] if repair["kind"] == "recruit"]
        assert recruits and {repair["role"] for repair in recruits} == {"area_chair"}
        assert recruits[0]["sentence"].startswith("1 more area chair free of conflict with p")
        found = readiness(venue, params_of())
        assert not found["ready"]
        assert [item.data["role"] for item in found["items"] if item.code == "too-little-load"] == ["area_chair"]

    def test_nobody_is_advised_to_give_somebody_two_roles(self) -> None:
        """Where it is two accounts of one person that keep a plan from being full, others are to be found."""
        venue = venue_of(0, papers=1, people=2, chairs=1, twins=1)
        plan = recommend(venue, params_of())
        assert plan.status == "infeasible" and not nobody_twice(1)(frozenset({("p0", "r0"), ("p0", "c0")}))
        assert {pair.reviewer for pair in plan.assignments} in ({"r0", "r1"}, {"c0", "r1"})
        clash = plan.diagnosis["rules_clash"]
        assert [rule["rule"] for rule in clash["rules"]] == ["one role on a submission"]
        assert all(repair["kind"] != "rule" for repair in plan.diagnosis["repairs"])

    def test_too_few_eligible_names_the_role_and_only_its_people(self) -> None:
        """Reviewers are not listed as ruled out of an area chair's place."""
        conflicts = tuple(DeclaredConflict("p0", f"c{at}") for at in range(3))
        plan = recommend(venue_of(0, conflicts=conflicts), params_of())
        (entry,) = plan.diagnosis["too_few_eligible"]
        assert (entry["submission"], entry["role"], entry["demand"], entry["eligible"]) == ("p0", "area_chair", 1, 0)
        assert [who["reviewer"] for who in entry["excluded"]] == ["c0", "c1", "c2"]
        assert any("p0 (area chairs) needs 1, has 0 eligible" in text for text in plan.diagnosis["sentences"])

    def test_who_takes_no_part_is_told(self) -> None:
        """In a plan without reviewers a reviewer is out by role, and a role not needed is no demand."""
        found = exclusions(venue_of(0), params_of({"area_chair": {}}))
        (person,) = found.people("r0")
        told = found.of_person(person)
        assert told is not None and told.code == "role" and "only area chairs take part" in told.reasons[0]
        both = exclusions(venue_of(0), params_of({"reviewer": {"demand": 2}, "area_chair": {"demand": 0}}))
        (chair,) = both.people("c0")
        paper = both.submission("p0")
        assert paper is not None
        why = both.of_pair(paper, chair)
        assert why is not None and why.code == "no-demand" and "needs no area chairs" in why.reasons[0]
        assert "c0" in {party.id for party, _ in both.excluded(paper)}


class TestRoleScores:
    """The operator a plan of several roles is solved with, against the matrix it stands for."""

    @pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 2.5)])
    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_blocks_values_and_sweeps_are_those_of_the_matrix(self, weights: Any, kind: Any) -> None:
        """Sweeps go role by role and must find what a sweep over the whole matrix finds."""
        rng = np.random.default_rng(5)
        plain = rng.random((7, 11)).astype(kind)
        rows = RoleRows(("reviewer", "area_chair"), 7, np.array([0, 8, 11]), weights)
        scores = RoleScores(DenseScores(plain), rows)
        whole = np.full((14, 11), np.nan)
        whole[:7, :8], whole[7:, 8:] = plain[:, :8] * weights[0], plain[:, 8:].astype(np.float64) * weights[1]
        assert scores.shape == (14, 11)
        np.testing.assert_array_equal(scores.block(slice(0, 14), slice(0, 11)), whole)
        np.testing.assert_array_equal(scores.block(slice(5, 9), slice(7, 10)), whole[5:9, 7:10])
        at = np.indices(whole.shape).reshape(2, -1)
        np.testing.assert_array_equal(scores.values(at[0], at[1]).reshape(whole.shape), whole)
        assert scores.bounds() == (np.nanmin(whole), np.nanmax(whole))
        u, w = rng.random(14), 0.3 * rng.random(11)
        barred = PairSet([(0, 0), (8, 9)], (14, 11))
        dense = DenseScores(whole)
        for y in (None, rng.random(14)):
            one, other = scores.priced(u, w, y), dense.priced(u, w, y)
            for lines, people in (*blocks((14, 11), 20), (slice(3, 10), slice(2, 11))):
                np.testing.assert_allclose(
                    one.block(lines, people), other.block(lines, people), atol=2 * one.tolerance + 1e-12
                )
        mine, theirs = scores.exceeding(u, w, 0.0, skip=barred), dense.exceeding(u, w, 0.0, skip=barred)
        order, turn = np.lexsort(mine[0].T), np.lexsort(theirs[0].T)
        np.testing.assert_array_equal(mine[0][order], theirs[0][turn])
        np.testing.assert_allclose(mine[1][order], theirs[1][turn])
        found = scores.top_pairs(2, barred, np.random.default_rng(1))
        assert not np.isnan(whole[found[:, 0], found[:, 1]]).any() and not barred.contains(*found.T).any()
        for row in range(14):
            known = np.where(np.isnan(whole[row]), -1.0, whole[row])
            known[barred.row(row)] = -1.0
            assert np.argmax(known) in found[found[:, 0] == row, 1]


def test_a_matrix_of_several_roles_is_stacked_by_hand() -> None:
    """As the docstring of assign says: rows of each role below one another, and rules for what spans them."""
    # ann, bob and cy review, ann and dee are area chairs
    scores = [[0.9, 0.8, 0.1, 0.0], [0.95, 0.0, 0.0, 0.2]]
    found = matching.assign(
        scores, demand=[2, 1], load_max=2, conflicts=[(0, 3), (1, 1), (1, 2)],
        submission_attributes={"paper": ["p", "p"]}, rules=[{"rule": "no_shared_reviewers", "each": "paper"}],
    )  # fmt: skip
    assert found.pairs.tolist() == [[0, 0], [0, 1], [1, 3]]  # 1.9, where ann as area chair would make 1.85
