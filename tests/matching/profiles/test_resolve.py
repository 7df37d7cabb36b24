"""A venue's references resolved, people joined, numbers combined, every fault told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.errors import InvalidVenueError, Issue
from matching.notices import Notice
from matching.params import Params
from matching.profiles.resolve import ResolvedVenue, resolve_venue
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import Bid, DeclaredConflict, ImportedScores, Lock, Venue

R = Reviewer
P = Submission


def faults(venue: Venue, params: Params | None = None) -> list[Issue]:
    with pytest.raises(InvalidVenueError) as caught:
        resolve_venue(venue, params)
    return list(caught.value.issues)


def told(resolved: ResolvedVenue, code: str) -> list[Notice]:
    return [notice for notice in resolved.notices if notice.code == code]


def test_rows_and_columns_are_sorted_by_id() -> None:
    """Row order of an upload must not matter, so positions come from ids alone."""
    resolved = resolve_venue(Venue(reviewers=(R("r3"), R("r1"), R("r20")), submissions=(P("p10"), P("p2"), P("p1"))))
    assert [reviewer.id for reviewer in resolved.reviewers] == ["r1", "r20", "r3"]
    assert [submission.id for submission in resolved.submissions] == ["p1", "p10", "p2"]
    assert resolved.shape == (3, 3)
    assert resolved.reviewer_index.ids == ("r1", "r20", "r3")


def test_an_empty_venue_resolves_to_nothing() -> None:
    """Readiness is asked before anything is uploaded."""
    resolved = resolve_venue(Venue())
    assert resolved.shape == (0, 0)
    assert resolved.locks.shape == (0, 2)
    assert resolved.locks.dtype == resolved.demand.dtype == np.int64
    assert len(resolved.bids) == 0


def test_b36_values_stay_with_their_ids_in_any_row_order() -> None:
    """Three pairs with score 1, given in disorder, land on exactly their rows and columns."""
    pairs = [("p10", "r3"), ("p2", "r1"), ("p1", "r20")]
    table = ImportedScores("s", tuple(p for p, _ in pairs), tuple(r for _, r in pairs), np.ones(3))
    resolved = resolve_venue(
        Venue(reviewers=(R("r3"), R("r1"), R("r20")), submissions=(P("p10"), P("p2"), P("p1")), scores=(table,))
    )
    found = resolved.scores[0]
    named = {(resolved.submissions[row].id, resolved.reviewers[col].id) for row, col in zip(found.rows, found.cols)}
    assert named == set(pairs)


class TestNames:
    """B08: references over ids, aliases and addresses; nothing vanishes."""

    venue = Venue(
        reviewers=(R("r1", emails=("r1@x.example",), aliases=("old-r1",)), R("r2")), submissions=(P("p1"), P("p2"))
    )

    def test_b08_a_bid_by_an_old_id_counts(self) -> None:
        """After a profile merge the bids still hang on the old id."""
        resolved = resolve_venue(replace(self.venue, bids=(Bid("p1", "old-r1", "high"),)))
        assert (resolved.bids.rows.tolist(), resolved.bids.cols.tolist()) == ([0], [0])
        assert resolved.bids.labels == ("high",)
        assert resolved.bids.values.tolist() == [0.5]

    @pytest.mark.parametrize("name", [" R1@X.EXAMPLE ", "Ana <r1@x.example>", "r1@x.example", " r1 ", "R1", "OLD-R1"])
    def test_b08_a_conflict_row_finds_its_person_in_any_layout(self, name: str) -> None:
        """Addresses differ in capitals, spaces and layout between systems."""
        resolved = resolve_venue(replace(self.venue, conflicts=(DeclaredConflict("p1", name),)))
        assert [(row, col) for row, col, _ in resolved.declared] == [(0, 0)]

    def test_b08_a_bid_by_nobody_is_listed_with_its_row(self) -> None:
        """A row that matches nobody is told, with the place to mend it."""
        bids = (Bid("p1", "r1", "low"), Bid("p1", "ghost", "high"), Bid("p9", "r1", "high"), Bid("p2", "ghost", "low"))
        resolved = resolve_venue(replace(self.venue, bids=bids))
        notices = told(resolved, "unresolved-reference")
        assert [(n.data["field"], n.data["value"], n.data["rows"]) for n in notices] == [
            ("submission", "p9", (2,)),
            ("reviewer", "ghost", (1, 3)),
        ]
        assert notices[1].reviewers == ("ghost",)
        assert "row" in notices[0].message
        assert len(resolved.bids) == 1

    def test_unknown_names_of_a_large_list_share_one_notice_with_all_rows(self) -> None:
        """A wrong id system makes every row unknown; the list of notices stays readable and nothing is lost."""
        bids = tuple(Bid("p1", f"x{at}", "high") for at in range(300))
        notices = told(resolve_venue(replace(self.venue, bids=bids)), "unresolved-reference")
        assert len(notices) < 100
        assert sorted(row for notice in notices for row in notice.data["rows"]) == list(range(300))

    def test_the_index_knows_every_unambiguous_name(self) -> None:
        """Callers look people up by whatever they hold."""
        index = resolve_venue(self.venue).reviewer_index
        assert [index.get(name) for name in ("r1", "old-r1", "r1@x.example", "r2", "ghost")] == [0, 0, 0, 1, None]

    def test_two_ids_that_differ_in_capitals_are_two_records(self) -> None:
        """In many systems ids are case-sensitive; the exact one wins and the folded one is not guessed."""
        resolved = resolve_venue(
            Venue(
                reviewers=(R("Ab"), R("aB")),
                submissions=(P("X"), P("x")),
                bids=(Bid("X", "aB", "high"), Bid("x", "Ab", "low"), Bid("x", "AB", "low")),
            )
        )
        assert [reviewer.id for reviewer in resolved.reviewers] == ["Ab", "aB"]
        assert list(zip(resolved.bids.rows.tolist(), resolved.bids.cols.tolist())) == [(0, 1), (1, 0)]
        assert [notice.data["value"] for notice in told(resolved, "unresolved-reference")] == ["AB"]

    def test_a_conflict_for_a_shared_address_bars_everyone_who_has_it(self) -> None:
        """Which of the two is meant is unknown, and a hard rule is not lost for that."""
        both = Venue(
            reviewers=(R("r1", emails=("a@x.example",)), R("r2", emails=("A@X.example",))),
            submissions=(P("p1"),),
            conflicts=(DeclaredConflict("p1", "a@x.example"),),
            bids=(Bid("p1", "a@x.example", "high"),),
        )
        resolved = resolve_venue(both)
        assert [(row, col) for row, col, _ in resolved.declared] == [(0, 0), (0, 1)]
        assert len(resolved.bids) == 0
        assert [notice.data["rows"] for notice in told(resolved, "unresolved-reference")] == [(0,)]
        assert resolved.columns_of("a@x.example") == (0, 1)
        issue = faults(replace(both, locks=(Lock("p1", "a@x.example"),)))[0]
        assert (issue.code, issue.source, issue.row) == ("ambiguous-reference", "locks", 0)

    def test_a_shared_address_means_the_one_who_takes_part(self) -> None:
        """One human may be listed twice, as reviewer and as emergency reviewer."""
        resolved = resolve_venue(
            Venue(
                reviewers=(R("e", emails=("a@x.example",), role="emergency"), R("r", emails=("a@x.example",))),
                submissions=(P("p1"),),
                bids=(Bid("p1", "a@x.example", "high"),),
            )
        )
        assert len(resolved.bids) == 1
        assert resolved.reviewer_index.get("a@x.example") == 0


class TestPeople:
    """B09: one human being, one column."""

    def test_b09_the_same_id_twice_names_both_rows(self) -> None:
        """The second record must not silently overwrite the first."""
        issue = faults(Venue(reviewers=(R("r0"), R("r1", load_max=2), R("r1", load_max=4))))[0]
        assert issue.code == "duplicate-id"
        assert issue.source == "reviewers"
        assert "rows 1 and 2" in issue.reason

    def test_a_submission_id_twice_names_both_rows(self) -> None:
        """The same holds for submissions, also where only spaces differ."""
        issue = faults(Venue(submissions=(P("p1"), P(" p1"))))[0]
        assert (issue.source, issue.row) == ("submissions", 1)
        assert "rows 0 and 1" in issue.reason

    def test_b09_one_address_on_two_accounts_is_a_probable_duplicate(self) -> None:
        """It may be one human with double load; a chair decides."""
        people = (
            R("r1", emails=("a@x.example",)),
            R("r2", emails=("A@X.example ",)),
            R("r3", emails=("n/a",)),
            R("r4", emails=("n/a",)),
        )
        notices = told(resolve_venue(Venue(reviewers=people)), "probable-duplicate")
        assert [notice.reviewers for notice in notices] == [("r1", "r2")]

    def test_b09_one_name_and_one_publication_is_a_probable_duplicate(self) -> None:
        """A name alone is common; with a shared title it is a sign."""
        work = Publication("w", title="On  Matching")
        people = (
            R("r1", name="Zo\u00eb Doe", publications=(work,)),
            R("r2", name="Doe, Zoe", publications=(Publication("v", title="on matching"),)),
            R("r3", name="Zoe Doe"),
            R("r4", name="Ann Other", publications=(work,)),
        )
        notices = told(resolve_venue(Venue(reviewers=people)), "probable-duplicate")
        assert [notice.reviewers for notice in notices] == [("r1", "r2")]

    def test_b09_linked_accounts_become_one_person(self) -> None:
        """Double load and two slots on one submission become impossible, as there is one column."""
        one = R("r1", emails=("a@x.example",), publications=(Publication("w1"),), areas=("ml",), load_max=5, load_min=1)
        other = R(
            "r2",
            emails=("A@X.example", "b@y.example"),
            aliases=("old",),
            publications=(Publication("w1"), Publication("w2")),
            areas=("nlp", "ml"),
            load_max=3,
            load_min=2,
            same_person_as="r1",
            affiliations=("Uni",),
        )
        resolved = resolve_venue(
            Venue(reviewers=(other, R("r3"), one), submissions=(P("p1"),), bids=(Bid("p1", "r2", "high"),))
        )
        assert resolved.accounts == (("r1", "r2"), ("r3",))
        person = resolved.reviewers[0]
        assert (person.id, person.aliases) == ("r1", ("r2", "old"))
        assert person.emails == ("a@x.example", "b@y.example")
        assert [work.id for work in person.publications] == ["w1", "w2"]
        assert person.areas == ("ml", "nlp")
        assert person.affiliations == ("Uni",)
        assert (person.load_min, person.load_max) == (2, 3)
        assert (resolved.load_min[0], resolved.load_max[0]) == (2, 3)
        assert resolved.reviewer_index.get("r2") == resolved.reviewer_index.get("old") == 0
        assert resolved.bids.cols.tolist() == [0]
        assert not told(resolved, "probable-duplicate")
        assert told(resolved, "merged-accounts")[0].reviewers == ("r1", "r2")

    @pytest.mark.parametrize(
        ("links", "head"),
        [
            ({"a": "b", "b": "c"}, "c"),
            ({"a": "c", "b": "c"}, "c"),
            ({"a": "b", "b": "a", "c": "b"}, "a"),
            ({"a": "b", "b": "c", "c": "a"}, "a"),
            ({"a": "b", "b": "c", "c": "c"}, "c"),
            ({"a": " B ", "c": "b"}, "b"),
        ],
    )
    def test_chains_and_circles_of_links_join_all(self, links: dict[str, str], head: str) -> None:
        """However accounts are linked, one person results, whatever the order of records."""
        people = [R(name, same_person_as=links.get(name)) for name in "abc"]
        for order in (people, people[::-1]):
            resolved = resolve_venue(Venue(reviewers=tuple(order)))
            assert [reviewer.id for reviewer in resolved.reviewers] == [head]
            assert sorted(resolved.accounts[0]) == ["a", "b", "c"]

    def test_a_link_to_nobody_is_an_issue(self) -> None:
        """Dropping it would part one person into two."""
        issue = faults(Venue(reviewers=(R("r1"), R("r2", same_person_as="r9"))))[0]
        assert (issue.code, issue.field, issue.row, issue.value) == ("unknown-id", "same_person_as", 1, "r9")

    def test_a_link_to_oneself_means_nothing(self) -> None:
        """Some systems write every account's main account, also where it is the same."""
        assert resolve_venue(Venue(reviewers=(R("r1", same_person_as="r1"),))).accounts == (("r1",),)

    def test_a_retired_account_lends_its_names_but_no_column(self) -> None:
        """References to the old account still mean the person; the plan shows the living id."""
        resolved = resolve_venue(
            Venue(
                reviewers=(
                    R("old", active=False, emails=("o@x.example",), load_max=0, publications=(Publication("w"),)),
                    R("new", same_person_as="old"),
                ),
                submissions=(P("p1"),),
                conflicts=(DeclaredConflict("p1", "O@x.example"),),
            )
        )
        assert [reviewer.id for reviewer in resolved.reviewers] == ["new"]
        assert resolved.reviewers[0].emails == ("o@x.example",)
        assert resolved.reviewers[0].publications == ()
        assert resolved.load_max.tolist() == [6]
        assert [(row, col) for row, col, _ in resolved.declared] == [(0, 0)]

    def test_an_alias_of_another_person_is_an_issue(self) -> None:
        """One name cannot mean two people; linked accounts may share it."""
        venue = Venue(reviewers=(R("r1"), R("r2", aliases=("r1",))))
        issue = faults(venue)[0]
        assert (issue.code, issue.field) == ("duplicate-id", "aliases")
        assert "row 0" in issue.reason and "row 1" in issue.reason
        shared = Venue(reviewers=(R("r1", aliases=("x",)), R("r2", aliases=("x",))))
        assert faults(shared)[0].code == "duplicate-id"
        linked = Venue(reviewers=(R("r1"), R("r2", aliases=("r1",), same_person_as="r1")))
        assert resolve_venue(linked).accounts == (("r1", "r2"),)

    def test_other_roles_and_inactive_records_stay_out_and_are_told(self) -> None:
        """Emergency reviewers are a reserve; withdrawn submissions take no reviews."""
        resolved = resolve_venue(
            Venue(
                reviewers=(R("e", role="emergency"), R("c", role="area_chair"), R("x", active=False), R("r1")),
                submissions=(P("p1"), P("p2", active=False)),
                bids=(Bid("p1", "e", "high"), Bid("p2", "r1", "high"), Bid("p1", "r1", "high")),
                conflicts=(DeclaredConflict("p2", "r1"), DeclaredConflict("p1", "x")),
                locks=(Lock("p2", "r1"), Lock("p1", "x")),
            )
        )
        assert [reviewer.id for reviewer in resolved.reviewers] == ["r1"]
        assert [submission.id for submission in resolved.submissions] == ["p1"]
        assert len(resolved.bids) == 1
        assert resolved.locks.shape == (0, 2)
        assert [notice.reviewers for notice in told(resolved, "role-left-out")] == [("e",), ("c",)]
        idle = {(n.data["source"], n.data["value"], n.data["rows"]) for n in told(resolved, "inactive-reference")}
        assert idle == {
            ("bids", "e", (0,)), ("bids", "p2", (1,)), ("conflicts", "p2", (0,)), ("conflicts", "x", (1,)),
            ("locks", "p2", (0,)), ("locks", "x", (1,)),
        }  # fmt: skip

    def test_b26_people_without_evidence_keep_their_column(self) -> None:
        """Missing expertise never removes anybody."""
        people = [R(f"r{at}", publications=(Publication("w", title="t"),)) for at in range(6)]
        people += [R("r6", keywords=("ml",)), R("r7", keywords=("nlp",)), R("r8"), R("r9")]
        assert len(resolve_venue(Venue(reviewers=tuple(people))).reviewers) == 10


class TestNumbers:
    """B12, B13, B16, B43: demand and loads."""

    def test_b12_zero_is_a_number_and_none_is_not(self) -> None:
        """A reviewer who said no gets nothing; one who said nothing gets the default."""
        resolved = resolve_venue(Venue(reviewers=(R("r1", load_max=0), R("r2"), R("r3", load_max=2)), load_max=4))
        assert resolved.load_max.tolist() == [0, 4, 2]
        assert resolve_venue(Venue(reviewers=(R("r1"),)), Params(load_max=0)).load_max.tolist() == [0]

    def test_b13_the_smaller_of_personal_and_global_limit_holds(self) -> None:
        """Global 4: personal 6 becomes 4, personal 2 stays; what was cut is told."""
        people = (R("r1", load_max=6), R("r2", load_max=2), R("r3"))
        resolved = resolve_venue(Venue(reviewers=people, load_max=4))
        assert resolved.load_max.tolist() == [4, 2, 4]
        assert told(resolved, "load-max-cut")[0].reviewers == ("r1",)
        assert resolve_venue(Venue(reviewers=people, load_max=4), Params(load_max=9)).load_max.tolist() == [6, 2, 9]

    def test_b13_personal_minimum_and_maximum_hold_together(self) -> None:
        """One pass honours every personal number."""
        resolved = resolve_venue(Venue(reviewers=(R("r1", load_min=1, load_max=1), R("r2", load_max=3), R("r3"))))
        assert resolved.load_min.tolist() == [1, 0, 0]

    def test_b16_demand_is_the_submissions_own_number_or_the_default(self) -> None:
        """0 wants nobody, an option replaces the default only."""
        venue = Venue(submissions=(P("p1", demand=0), P("p2", demand=3), P("p3")), demand=2)
        assert resolve_venue(venue).demand.tolist() == [0, 3, 2]
        assert resolve_venue(venue, Params(demand=5)).demand.tolist() == [0, 3, 5]
        assert resolve_venue(venue, Params(demand=0)).demand.tolist() == [0, 3, 0]

    def test_a_default_minimum_gives_way_to_a_personal_maximum(self) -> None:
        """Who offered one review is not in error because the venue wishes for two."""
        resolved = resolve_venue(Venue(reviewers=(R("r1", load_max=1), R("r2"), R("r3", load_max=0)), load_min=2))
        assert resolved.load_min.tolist() == [1, 2, 0]
        assert told(resolved, "load-min-cut")[0].reviewers == ("r1", "r3")

    @pytest.mark.parametrize(
        ("venue", "params", "row", "source"),
        [
            (Venue(reviewers=(R("r0"), R("r1", load_min=3, load_max=2))), None, 1, "reviewers"),
            (Venue(reviewers=(R("r1", load_min=3),), load_max=2), None, 0, "reviewers"),
            (Venue(reviewers=(R("r1", load_min=3),)), Params(load_max=2), 0, "reviewers"),
            (Venue(reviewers=(R("r1", load_min=3), R("r2", load_max=2, same_person_as="r1"))), None, 0, "reviewers"),
            (Venue(load_min=3, load_max=2), None, None, "venue"),
            (Venue(load_max=2), Params(load_min=3), None, "params"),
        ],
    )
    def test_a_minimum_above_the_maximum_is_one_issue(
        self, venue: Venue, params: Params | None, row: int | None, source: str
    ) -> None:
        """Wherever the two numbers come from, the contradiction is told once, not resolved by taste."""
        found = faults(venue, params)
        assert [(i.code, i.field, i.row, i.source) for i in found] == [("contradiction", "load_min", row, source)]

    @pytest.mark.parametrize("value", [2.5, True, -1, "three", 2.0, float("nan"), 2**31, [2]])
    def test_b43_a_count_is_a_whole_number(self, value: Any) -> None:
        """2.34 must not become 2, nor true 1; the field is named."""
        venue = Venue(
            reviewers=(R("r1", load_max=value), R("r2", load_min=value)),
            submissions=(P("p1", demand=value),),
            demand=value,
        )
        found = {(issue.source, issue.row, issue.field) for issue in faults(venue)}
        assert found == {
            ("reviewers", 0, "load_max"),
            ("reviewers", 1, "load_min"),
            ("submissions", 0, "demand"),
            ("venue", None, "demand"),
        }

    def test_numpy_whole_numbers_are_whole_numbers(self) -> None:
        """Tables read by numpy hold its integers."""
        resolved = resolve_venue(Venue(reviewers=(R("r1", load_max=np.int32(2)),)))  # type: ignore[arg-type]
        assert resolved.load_max.tolist() == [2]


class TestTables:
    """Bids and scores: one value a pair, no contradiction unseen."""

    base = Venue(
        reviewers=(R("r1", aliases=("old",)), R("r2", same_person_as="r1"), R("r3")), submissions=(P("p1"), P("p2"))
    )

    def test_the_same_bid_twice_is_fine(self) -> None:
        """Sending a row again must not change anything."""
        resolved = resolve_venue(replace(self.base, bids=(Bid("p1", "r1", "low"), Bid("p1", "old", "low"))))
        assert resolved.bids.labels == ("low",)

    def test_b13_bids_that_contradict_name_both_rows(self) -> None:
        """Neither row may silently win, also where one uses an alias."""
        bids = (Bid("p2", "r3", "low"), Bid("p1", "r1", "low"), Bid("p1", "old", "high"))
        issue = faults(replace(self.base, bids=bids))[0]
        assert (issue.code, issue.source, issue.row, issue.value) == ("contradiction", "bids", 2, "high")
        assert "rows 1 and 2" in issue.reason

    def test_two_accounts_of_one_person_may_bid_differently(self) -> None:
        """Linking accounts later must not make the venue invalid; the less willing bid counts and it is told."""
        bids = (Bid("p1", "r1", "high"), Bid("p1", "r2", "very_low"))
        resolved = resolve_venue(replace(self.base, bids=bids))
        assert resolved.bids.labels == ("very_low",)
        assert told(resolved, "merged-values")[0].data == {"source": "bids", "count": 1}

    def test_an_unknown_label_is_an_issue(self) -> None:
        """A wish that is not understood is not neutral."""
        issue = faults(replace(self.base, bids=(Bid("p1", "r1", "eager"),)))[0]
        assert (issue.code, issue.row, issue.value) == ("unknown-bid", 0, "eager")

    def test_scores_are_sorted_and_each_pair_once(self) -> None:
        """Accounts of one person have scores of their own; the higher counts."""
        table = ImportedScores("t", ("p2", "p1", "p1", "p1"), ("r3", "r2", "r1", "r1"), np.array([1, 2, 3, 3]), 0.5)
        found = resolve_venue(replace(self.base, scores=(table,))).scores[0]
        assert list(zip(found.rows.tolist(), found.cols.tolist(), found.values.tolist())) == [(0, 0, 3.0), (1, 1, 1.0)]
        assert found.default == 0.5
        assert not found.values.flags.writeable

    def test_scores_that_contradict_name_both_rows(self) -> None:
        """The last row must not win by accident."""
        table = ImportedScores("t", ("p1", "p1"), ("r1", "old"), np.array([0.1, 0.2]))
        issue = faults(replace(self.base, scores=(table,)))[0]
        assert (issue.code, issue.source, issue.row) == ("contradiction", "scores:t", 1)
        assert "rows 0 and 1" in issue.reason

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_a_score_that_is_not_finite_names_its_pair(self, value: float) -> None:
        """NaN passes every range check and surfaces hours later."""
        table = ImportedScores("t", ("p1", "p2"), ("r1", "r3"), np.array([0.1, value]))
        issue = faults(replace(self.base, scores=(table,)))[0]
        assert (issue.code, issue.source, issue.row) == ("not-finite", "scores:t", 1)
        assert "'p2'" in issue.reason and "'r3'" in issue.reason

    @pytest.mark.parametrize("value", ["x", 10**400, -(10**400), 1j])
    def test_a_score_that_is_no_number_of_ours_is_refused(self, value: object) -> None:
        """Whole numbers of Python have no largest one; float64 has."""
        with pytest.raises(InvalidVenueError) as caught:
            ImportedScores("t", ("p1", "p2"), ("r1", "r3"), (0.1, value))
        assert [(issue.code, issue.source) for issue in caught.value.issues] == [("wrong-type", "scores:t")]

    def test_a_table_full_of_faults_is_reported_within_reason(self) -> None:
        """A hundred examples and a count say as much as a million issues."""
        table = ImportedScores("t", ("p1",) * 500, ("r1",) * 500, np.full(500, np.nan))
        found = faults(replace(self.base, scores=(table,)))
        assert len(found) == 101
        assert found[-1].value == 400

    @pytest.mark.parametrize(
        "table",
        [
            ImportedScores("text", ("p1",), ("r1",), np.ones(1)),
            ImportedScores(" ", ("p1",), ("r1",), np.ones(1)),
            ImportedScores("t", ("p1",), ("r1",), np.ones(2)),
            ImportedScores("t", ("p1",), ("r1",), np.ones((1, 1))),
            ImportedScores("t", ("p1",), ("r1",), np.ones(1), float("nan")),
            ImportedScores("t", ("p1",), ("r1",), np.ones(1), True),
        ],
    )
    def test_a_table_that_cannot_be_a_signal_is_an_issue(self, table: ImportedScores) -> None:
        """Name, lengths and default are checked before any row."""
        assert [(issue.source, issue.row) for issue in faults(replace(self.base, scores=(table,)))] == [("scores", 0)]

    def test_two_tables_of_one_name_are_an_issue(self) -> None:
        """Weights are given by name."""
        table = ImportedScores("t", ("p1",), ("r1",), np.ones(1))
        assert faults(replace(self.base, scores=(table, table)))[0].code == "duplicate-id"

    def test_values_that_are_no_numbers_are_refused_at_once(self) -> None:
        """numpy's own error must not reach a caller."""
        with pytest.raises(InvalidVenueError):
            ImportedScores("t", ("p1",), ("r1",), ["x"])  # type: ignore[arg-type]

    def test_locks_are_resolved_and_each_pair_once(self) -> None:
        """A lock on two accounts of one person is one held review."""
        locks = (Lock("p2", "r3"), Lock("p1", "r2"), Lock("p1", "old"))
        assert resolve_venue(replace(self.base, locks=locks)).locks.tolist() == [[0, 0], [1, 1]]


class TestFaults:
    """B11: everything at once, in places a user can find."""

    def test_b11_all_faults_come_in_one_error(self) -> None:
        """A conflict that names nobody is never dropped, and each fault has its list, row, field and value."""
        venue = Venue(
            reviewers=(R("r1"), R("r2"), R("")), submissions=(P("p1"),), conflicts=(DeclaredConflict("p99", "r99"),)
        )
        found = {(issue.source, issue.row, issue.field, issue.value) for issue in faults(venue)}
        assert found == {
            ("reviewers", 2, "id", ""), ("conflicts", 0, "submission", "p99"), ("conflicts", 0, "reviewer", "r99"),
        }  # fmt: skip

    def test_b11_a_lock_that_names_nobody_is_never_dropped(self) -> None:
        """A held review that vanished would be given away again."""
        venue = Venue(reviewers=(R("r1"),), submissions=(P("p1"),), locks=(Lock("p1", "r1"), Lock("p1", "x")))
        assert [(i.code, i.source, i.row) for i in faults(venue)] == [("unknown-id", "locks", 1)]

    @pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), "1", True])
    def test_a_publication_weight_is_finite_and_not_negative(self, weight: Any) -> None:
        """A NaN weight would poison the reviewer's whole profile."""
        venue = Venue(reviewers=(R("r1", publications=(Publication("a"), Publication("b", weight=weight))),))
        assert [(i.row, i.field) for i in faults(venue)] == [(0, "publications.1.weight")]

    def test_null_is_missing_everywhere(self) -> None:
        """JSON null in a text or list is no text and an empty list, not a crash later."""
        reviewer = R(
            "r1",
            name=None,
            emails=None,
            aliases=(None, " "),
            keywords=None,
            areas=None,
            affiliations=(None, " ", "U"),
            publications=(Publication("w", title=None, abstract=None, year="old", weight=None),),
            conflict_domains=None,
            extra=None,
        )
        submission = P(
            "p1", title=None, abstract=None, authors=(Author(None, None, None, " "),), areas=None, track=" ", extra=None
        )
        resolved = resolve_venue(
            Venue(reviewers=(reviewer,), submissions=(submission,), bids=None, domain_aliases=None)
        )
        kept = resolved.reviewers[0]
        assert (kept.name, kept.emails, kept.aliases, kept.affiliations) == ("", (), (), ("U",))
        assert kept.publications == (Publication("w", year=None),)
        assert resolved.submissions[0] == P("p1", authors=(Author(),))

    @given(st.data())
    @settings(max_examples=150, deadline=None)
    def test_no_value_of_a_wrong_type_escapes_as_a_python_error(self, data: st.DataObject) -> None:
        """Whatever stands in a field, the answer is a venue or one InvalidVenueError."""
        odd = st.sampled_from(
            [None, 0, 1.5, float("nan"), True, "", "x", b"x", [], [1], ["x"], {}, {"a": 1}, (None,), object()]
        )
        reviewer_fields = [name for name in R.__dataclass_fields__]
        submission_fields = [name for name in P.__dataclass_fields__]
        pick = lambda names, most: {data.draw(st.sampled_from(names)): data.draw(odd) for _ in range(most)}  # noqa: E731
        author = Author(**pick(["name", "email", "affiliation", "id"], 2))
        work = Publication(**{"id": "w"} | pick(["id", "title", "abstract", "year", "weight"], 2))
        reviewer = R(**{"id": "r1", "publications": (work, data.draw(odd))} | pick(reviewer_fields, 2))
        submission = P(**{"id": "p1", "authors": (author, data.draw(odd))} | pick(submission_fields, 2))
        venue = Venue(
            **{
                "reviewers": (reviewer, data.draw(odd)), "submissions": (submission, data.draw(odd)),
                "bids": (Bid(data.draw(odd), data.draw(odd), data.draw(odd)), data.draw(odd)),
                "conflicts": (DeclaredConflict(data.draw(odd), data.draw(odd), data.draw(odd), data.draw(odd)),),
                "locks": (Lock(data.draw(odd), data.draw(odd)),),
                "scores": (ImportedScores(data.draw(odd), data.draw(odd), data.draw(odd), np.ones(1), data.draw(odd)),),
            }
            | pick([name for name in Venue.__dataclass_fields__], 1)
        )  # fmt: skip
        try:
            resolve_venue(venue)
        except InvalidVenueError as error:
            assert error.issues


@given(st.randoms(use_true_random=False), st.data())
@settings(max_examples=60, deadline=None)
def test_the_order_of_records_changes_nothing(shuffler: Any, data: st.DataObject) -> None:
    """Equal input in another row order gives the equal resolved venue."""
    ids = [f"r{at}" for at in range(6)]
    people = [
        R(
            name,
            emails=tuple(
                data.draw(st.lists(st.sampled_from(["a@x.example", "b@y.example", "c@z.example"]), max_size=2))
            ),
            same_person_as=data.draw(st.sampled_from([None, None, *ids])),
            active=data.draw(st.booleans()),
            load_max=data.draw(st.sampled_from([None, 0, 3, 9])),
            areas=tuple(data.draw(st.lists(st.sampled_from("klm"), max_size=2))),
        )
        for name in ids
    ]
    papers = [P(f"p{at}", demand=data.draw(st.sampled_from([None, 0, 2]))) for at in range(4)]
    bids = [Bid(f"p{data.draw(st.integers(0, 5))}", name, data.draw(st.sampled_from(["high", "low"]))) for name in ids]
    conflicts = [DeclaredConflict("p1", data.draw(st.sampled_from([*ids, "a@x.example", *ids]))) for _ in range(2)]
    known = {email for person in people for email in person.emails}
    conflicts = [row for row in conflicts if "@" not in row.reviewer or row.reviewer in known]
    lists = {"reviewers": people, "submissions": papers, "bids": bids, "conflicts": conflicts}
    first = resolve_venue(Venue(**lists))
    for entries in lists.values():
        shuffler.shuffle(entries)
    second = resolve_venue(Venue(**lists))
    for name in ("reviewers", "submissions", "accounts", "declared"):
        assert getattr(first, name) == getattr(second, name)
    for name in ("demand", "load_max", "load_min", "locks"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert first.bids.labels == second.bids.labels
    assert np.array_equal(first.bids.cols, second.bids.cols)
    assert [notice.message.partition(": row")[0] for notice in first.notices if "row" not in notice.message] == [
        notice.message for notice in second.notices if "row" not in notice.message
    ]
