"""Who may not review what, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.constraints.conflicts import Conflicts, find_conflicts
from matching.params import Params
from matching.profiles.resolve import resolve_venue
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import DeclaredConflict, Venue

R = Reviewer
P = Submission


def conflicts_of(venue: Venue, **options: Any) -> Conflicts:
    params = Params(**options)
    return find_conflicts(resolve_venue(venue, params), params)


def barred(venue: Venue, **options: Any) -> set[tuple[str, str]]:
    """Barred pairs in outside ids."""
    params = Params(**options)
    resolved = resolve_venue(venue, params)
    pairs = find_conflicts(resolved, params).pairs
    return {(resolved.submissions[row].id, resolved.reviewers[col].id) for row, col in pairs}


def one_pair(reviewer: Reviewer, author: Author, **rest: Any) -> Venue:
    """One submission by one author, and one reviewer."""
    return Venue(reviewers=(reviewer,), submissions=(P("p1", authors=(author,)),), **rest)


def test_a_venue_without_ties_bars_nothing() -> None:
    """No people, no submissions, or strangers: nothing is in conflict."""
    assert len(conflicts_of(Venue()).pairs) == 0
    venue = one_pair(R("r1", emails=("a@x.example",)), Author("B", "b@y.example", "Y"))
    found = conflicts_of(venue)
    assert len(found.pairs) == 0
    assert found.reasons(0, 0) == ()
    assert dict(found.counts) == {"declared": 0, "authorship": 0, "same-address": 0, "affiliation": 0}


class TestDeclared:
    """What somebody declared holds as it is."""

    venue = Venue(
        reviewers=(R("r1"), R("r2")),
        submissions=(P("p1"), P("p2")),
        conflicts=(
            DeclaredConflict("p1", "r1"),
            DeclaredConflict("p2", "r2", "personal", "r2 and an author are married", "chair"),
            DeclaredConflict("p2", "r2", "barred"),
        ),
    )

    def test_b01_declared_pairs_are_a_mask_apart_from_any_score(self) -> None:
        """A conflict is a barred pair, not a low score."""
        assert barred(self.venue) == {("p1", "r1"), ("p2", "r2")}

    def test_every_declaration_is_a_reason_under_its_own_rule(self) -> None:
        """A pair may have several reasons, and none is lost."""
        found = conflicts_of(self.venue)
        assert [(reason.rule, reason.source) for reason in found.reasons(1, 1)] == [
            ("barred", ""),
            ("personal", "chair"),
        ]
        assert found.reasons(1, 1)[1].evidence == "r2 and an author are married"
        assert "r1" in found.reasons(0, 0)[0].evidence
        assert {rule: n for rule, n in found.counts.items() if n} == {"declared": 1, "personal": 1, "barred": 1}

    def test_the_same_declaration_twice_is_one_reason(self) -> None:
        """Sending a file again changes nothing."""
        twice = replace(self.venue, conflicts=self.venue.conflicts * 2)
        assert conflicts_of(twice).reasons(0, 0) == conflicts_of(self.venue).reasons(0, 0)
        assert conflicts_of(twice).counts == conflicts_of(self.venue).counts


class TestAuthorship:
    """B02: an author never reviews the own submission, with no declaration needed."""

    @pytest.mark.parametrize(
        "author",
        [
            Author(email="B@Y.example"),
            Author(email=" Bea <a@x.example>"),
            Author(id="r1"),
            Author(id=" R1 "),
            Author(id="old-r1"),
            Author(id="a@x.example"),
            Author(email="b@y.example", id="elsewhere-17"),
        ],
    )
    def test_b02_any_known_id_or_address_gives_an_author_away(self, author: Author) -> None:
        """The author is often the best-scoring reviewer, so one missed address assigns the own work."""
        venue = Venue(
            reviewers=(R("r1", emails=("a@x.example", "b@y.example"), aliases=("old-r1",)), R("r2")),
            submissions=(P("p1", authors=(Author("Other"), author)),),
        )
        assert barred(venue, affiliation_conflicts=False) == {("p1", "r1")}
        reason = conflicts_of(venue).reasons(0, 0)[0]
        assert reason.rule == "authorship"
        assert "author 2 of p1" in reason.evidence and "r1" in reason.evidence

    def test_b02_every_account_of_a_person_counts(self) -> None:
        """Accounts joined into one person bring all their names, a retired one too."""
        venue = Venue(
            reviewers=(R("r1"), R("r2", emails=("a@x.example",), same_person_as="r1", active=False), R("r3")),
            submissions=(P("p1", authors=(Author(id="r2"),)), P("p2", authors=(Author(email="A@x.example"),))),
        )
        assert barred(venue) == {("p1", "r1"), ("p2", "r1")}

    def test_b09_a_shared_address_bars_both_accounts(self) -> None:
        """Two accounts that are not linked may be one person: one barred too many is the safe side."""
        venue = Venue(
            reviewers=(R("r1", emails=("a@x.example",)), R("r2", emails=("A@X.example",))),
            submissions=(P("p1", authors=(Author(email="a@x.example"),)),),
        )
        assert barred(venue, affiliation_conflicts=False) == {("p1", "r1"), ("p1", "r2")}

    def test_an_address_of_somebody_else_than_the_id_is_a_reason_of_its_own(self) -> None:
        """The author is r1 by id and has r2's address: both are barred, for different reasons."""
        venue = Venue(
            reviewers=(R("r1"), R("r2", emails=("a@x.example",))),
            submissions=(P("p1", authors=(Author(id="r1", email="a@x.example"),)),),
        )
        found = conflicts_of(venue, affiliation_conflicts=False)
        assert [found.reasons(0, col)[0].rule for col in (0, 1)] == ["authorship", "same-address"]
        assert (found.counts["authorship"], found.counts["same-address"]) == (1, 1)

    def test_b05_the_identical_free_mail_address_is_the_same_person(self) -> None:
        """Leaving providers out of the institutions must not lose this check."""
        reviewer = R("r1", emails=("ann@gmail.com",))
        assert barred(one_pair(reviewer, Author(email="bob@gmail.com"))) == set()
        assert barred(one_pair(reviewer, Author(email="Ann@GMail.com"))) == {("p1", "r1")}

    def test_blank_and_placeholder_names_join_nobody(self) -> None:
        """Two missing values are not equal values."""
        for text in ("", " ", "n/a", None):
            venue = one_pair(R("r1", emails=(text,), affiliations=(text,)), Author("A", text, text, text))
            assert barred(venue) == set()

    def test_a_name_alone_is_a_notice_and_no_conflict(self) -> None:
        """Namesakes are common; a chair decides, once for each name."""
        venue = Venue(
            reviewers=(R("r1", name="Zo\u00eb Doe"), R("r2", name="Zoe Doe"), R("r3", name="Li")),
            submissions=(
                P("p1", authors=(Author("Doe, Zoe"), Author("Li"))),
                P("p2", authors=(Author("Zoe Doe", id="r1"),)),
            ),
        )
        found = conflicts_of(venue)
        assert barred(venue) == {("p2", "r1")}
        assert [notice.code for notice in found.notices] == ["same-name"]
        assert found.notices[0].submissions == ("p1", "p2")
        assert found.notices[0].reviewers == ("r1", "r2")
        assert found.notices[0].data["pairs"] == (("p1", "r1"), ("p1", "r2"), ("p2", "r2"))


class TestAffiliation:
    """B04, B05: same employer, by domain or by name."""

    @pytest.mark.parametrize(
        ("one", "other", "expected"),
        [
            ("u@bigco.example", "v@bigco.example", True),
            ("u@uni.example", "v@mail.cs.uni.example", True),
            ("u@cs.uni.example", "v@math.uni.example", True),
            ("u@oldco.example", "v@newco.example", True),
            ("u@lab.oldco.example", "v@hq.newco.example", True),
            ("u@poly.xa.example", "v@poly.xb.example", False),
            ("u@notuni.example", "v@uni.example", False),
            ("u@ox.ac.uk", "v@cam.ac.uk", False),
            ("u@gmail.com", "v@gmail.com", False),
            ("u@mail.local-provider.example", "v@local-provider.example", False),
        ],
    )
    def test_b04_domains_decide_without_any_profile(self, one: str, other: str, expected: bool) -> None:
        """The author has only an address; the table of aliases is the venue's."""
        rest = {"domain_aliases": {"oldco.example": "newco.example"}, "free_mail": ("local-provider.example",)}
        for mine, theirs in ((one, other), (other, one)):
            venue = one_pair(R("r1", emails=(mine,)), Author(email=theirs), **rest)
            assert bool(barred(venue)) is expected
            assert not barred(venue, affiliation_conflicts=False)

    def test_the_evidence_names_the_domains(self) -> None:
        """A chair must see why, also where two domains meet through an alias."""
        same = conflicts_of(one_pair(R("r1", emails=("u@x.example",)), Author("Ann B", "v@x.example")))
        assert same.reasons(0, 0)[0].evidence == "author 1 of p1 (Ann B) and reviewer r1 share the domain x.example"
        alias = {"domain_aliases": {"old.example": "new.example"}}
        joined = conflicts_of(one_pair(R("r1", emails=("u@old.example",)), Author(email="v@cs.new.example"), **alias))
        evidence = joined.reasons(0, 0)[0].evidence
        assert "old.example" in evidence and "cs.new.example" in evidence
        assert joined.counts["affiliation"] == 1

    def test_conflict_domains_count_as_the_reviewers_own(self) -> None:
        """A former employer is stated there."""
        reviewer = R("r1", emails=("u@x.example",), conflict_domains=("@Former.example",))
        assert barred(one_pair(reviewer, Author(email="v@lab.former.example"))) == {("p1", "r1")}

    def test_an_id_that_is_an_address_tells_the_institution(self) -> None:
        """In some systems the address is the id and there is no other field."""
        assert barred(one_pair(R("u@x.example"), Author(email="v@x.example"))) == {("p1", "u@x.example")}

    def test_b05_placeholders_and_blanks_are_no_institution(self) -> None:
        """Two unaffiliated people are not colleagues."""
        for text in ("", "  ", "None", "Independent Researcher", "n/a", "-"):
            assert barred(one_pair(R("r1", affiliations=(text,)), Author(affiliation=text))) == set()

    def test_the_same_institution_name_is_a_conflict(self) -> None:
        """Names compare folded and equal only."""
        reviewer = R("r1", affiliations=("Other", "University of  XA"))
        venue = one_pair(reviewer, Author(affiliation="university of xa"))
        assert barred(venue) == {("p1", "r1")}
        assert 'the institution "University of XA"' in conflicts_of(venue).reasons(0, 0)[0].evidence
        assert barred(one_pair(reviewer, Author(affiliation="University of XA, Lab"))) == set()

    def test_an_author_with_an_account_brings_its_institutions(self) -> None:
        """The author record holds an id alone; the colleague in the pool is still a colleague."""
        venue = Venue(
            reviewers=(
                R("r1", emails=("u@x.example",)),
                R("r2", emails=("v@x.example",)),
                R("r3", emails=("w@y.example",)),
            ),
            submissions=(P("p1", authors=(Author(id="r1"),)),),
        )
        assert barred(venue) == {("p1", "r1"), ("p1", "r2")}

    def test_switching_affiliations_off_keeps_every_other_rule(self) -> None:
        """The switch is about employers alone."""
        venue = Venue(
            reviewers=(R("r1", emails=("u@x.example",)), R("r2", emails=("v@x.example",)), R("r3")),
            submissions=(P("p1", authors=(Author(email="u@x.example"),)),),
            conflicts=(DeclaredConflict("p1", "r3", "affiliation"),),
        )
        assert barred(venue) == {("p1", "r1"), ("p1", "r2"), ("p1", "r3")}
        assert barred(venue, affiliation_conflicts=False) == {("p1", "r1"), ("p1", "r3")}

    def test_a_pair_under_several_rules_counts_for_each(self) -> None:
        """The numbers answer "how many pairs does this rule bar"."""
        venue = one_pair(
            R("r1", emails=("u@x.example",)), Author(email="u@x.example"), conflicts=(DeclaredConflict("p1", "r1"),)
        )
        found = conflicts_of(venue)
        assert dict(found.counts) == {"declared": 1, "authorship": 1, "same-address": 0, "affiliation": 1}
        assert [reason.rule for reason in found.reasons(0, 0)] == ["declared", "authorship", "affiliation"]


ADDRESSES = ["a@uni.example", "b@cs.uni.example", "c@oldco.example", "d@newco.example", "e@gmail.com", ""]
PLACES = ["Uni", "uni ", "none", "Newco"]
IDS = [f"r{at}" for at in range(5)]


@st.composite
def venues(draw: st.DrawFn) -> Venue:
    """Small venues in which every rule may fire."""
    some = lambda values: tuple(draw(st.lists(st.sampled_from(values), max_size=2)))  # noqa: E731
    people = tuple(
        R(name, name=draw(st.sampled_from(["", "Ann Lee", "Bo Li"])), emails=some(ADDRESSES), affiliations=some(PLACES))
        for name in IDS
    )
    papers = tuple(
        P(
            f"p{at}",
            authors=tuple(
                Author(
                    draw(st.sampled_from(["Ann Lee", ""])),
                    draw(st.sampled_from(ADDRESSES)),
                    draw(st.sampled_from(PLACES)),
                    draw(st.sampled_from([None, None, *IDS])),
                )
                for _ in range(draw(st.integers(0, 2)))
            ),
        )
        for at in range(3)
    )
    pairs = st.builds(DeclaredConflict, st.sampled_from(["p0", "p1", "p2"]), st.sampled_from(IDS))
    return Venue(
        reviewers=people,
        submissions=papers,
        conflicts=tuple(draw(st.lists(pairs, max_size=3))),
        domain_aliases=draw(st.sampled_from([{}, {"oldco.example": "newco.example"}])),
    )


@given(venues(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_records_changes_no_conflict(venue: Venue, shuffler: Any) -> None:
    """Pairs, counts, notices and reasons depend on what was handed in, not on where it stood."""
    mixed = {name: list(getattr(venue, name)) for name in ("reviewers", "submissions", "conflicts")}
    for entries in mixed.values():
        shuffler.shuffle(entries)
    first, second = conflicts_of(venue), conflicts_of(replace(venue, **mixed))
    assert np.array_equal(first.pairs.pairs(), second.pairs.pairs())
    assert first.counts == second.counts
    assert first.notices == second.notices
    assert all(first.reasons(row, col) == second.reasons(row, col) for row, col in first.pairs)


@given(venues(), st.sampled_from(["p0", "p1", "p2"]), st.sampled_from(IDS))
@settings(max_examples=60, deadline=None)
def test_another_conflict_never_frees_a_pair(venue: Venue, submission: str, reviewer: str) -> None:
    """More declarations, aliases or addresses can only bar more."""
    before = barred(venue)
    declared = replace(venue, conflicts=(*venue.conflicts, DeclaredConflict(submission, reviewer)))
    assert barred(declared) == before | {(submission, reviewer)}
    assert barred(replace(venue, domain_aliases={**venue.domain_aliases, "uni.example": "newco.example"})) >= before
    people = tuple(
        replace(person, emails=(*person.emails, "a@uni.example")) if person.id == reviewer else person
        for person in venue.reviewers
    )
    assert barred(replace(venue, reviewers=people)) >= before


@given(venues())
@settings(max_examples=60, deadline=None)
def test_exactly_the_barred_pairs_have_reasons_and_the_counts_agree(venue: Venue) -> None:
    """The join over keys and the reasons asked for one by one are two ways to the same answer."""
    found = conflicts_of(venue)
    reasons = {(row, col): found.reasons(row, col) for row in range(3) for col in range(len(IDS))}
    assert {pair for pair, why in reasons.items() if why} == set(found.pairs)
    for rule, count in found.counts.items():
        assert count == sum(any(reason.rule == rule for reason in why) for why in reasons.values())
    assert set(conflicts_of(venue, affiliation_conflicts=False).pairs) <= set(found.pairs)
