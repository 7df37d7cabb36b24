"""The venues that come with the package."""

from itertools import combinations, product
from pathlib import Path

import pytest

from matching.engine import recommend
from matching.errors import UnknownIdError
from matching.formats.bundle import read_bundle
from matching.formats.fixtures import FIXTURE_LICENCE, FIXTURES, fixture_path, load_fixture
from matching.params import Params
from matching.profiles.venue import BID_VALUES, Venue

BARRED = {("p1", "r1"), ("p2", "r2"), ("p3", "r3"), ("p4", "r4"), ("p4", "r1")}  # by the table of tiny's README


def totals(venue: Venue, each: int, bid_weight: float) -> list[float]:
    """Totals of every lawful full plan, best first, by trying all."""
    (table,) = venue.scores
    worth = dict(zip(zip(table.submissions, table.reviewers), table.values.tolist()))
    for bid in venue.bids:
        worth[bid.submission, bid.reviewer] += bid_weight * BID_VALUES[bid.bid]
    people = [person.id for person in venue.reviewers]
    papers = [paper.id for paper in venue.submissions]
    found = []
    for chosen in product(combinations(people, each), repeat=len(papers)):
        pairs = [(paper, person) for paper, group in zip(papers, chosen) for person in group]
        if not BARRED & set(pairs) and all(sum(name == person for _, name in pairs) <= each for person in people):
            found.append(round(sum(worth[pair] for pair in pairs), 6))
    return sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("each", "bid_weight", "expected"),
    [
        (2, 0.0, [4.2, 4.1, 3.6]),
        (2, 0.25, [4.35, 4.075, 3.725]),
        (1, 0.0, [2.3, 2.2, 2.2, 1.9, 1.9, 1.4]),
    ],
)
def test_the_paper_computation_of_tiny_is_right(each: int, bid_weight: float, expected: list[float]) -> None:
    """Its README lists all lawful plans; trying all of them gives the same totals."""
    venue = load_fixture("tiny")
    assert (venue.demand, venue.load_max) == (2, 2)
    assert totals(venue, each, bid_weight) == expected


def test_tiny_reads_without_a_notice() -> None:
    """What we ship is what we ask of others."""
    assert read_bundle(fixture_path("tiny"))[1] == ()


@pytest.mark.parametrize("name", FIXTURES)
def test_every_fixture_loads_and_names_only_invented_places(name: str) -> None:
    """Addresses end in .example, which nobody can own."""
    if not (fixture_path(name) / "reviewers.jsonl").is_file():
        pytest.skip(f"{name} has no reviewers.jsonl yet")
    venue = load_fixture(name)
    addresses = [address for person in venue.reviewers for address in person.emails]
    addresses += [author.email for paper in venue.submissions for author in paper.authors if author.email]
    assert addresses and all(address.casefold().endswith(".example") for address in addresses)
    assert FIXTURE_LICENCE == "CC0-1.0"


def test_an_unknown_fixture_lists_those_there_are() -> None:
    """So that a typing error is mended at once."""
    with pytest.raises(UnknownIdError, match="icml2026, tiny"):
        load_fixture("huge")


def test_an_installed_package_finds_its_fixtures_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel carries them as matching/fixtures; the sources beside the package are only a fall-back."""
    inside = tmp_path / "matching" / "fixtures" / "tiny"
    inside.mkdir(parents=True)
    monkeypatch.setattr("matching.formats.fixtures.files", lambda _: tmp_path / "matching")
    assert fixture_path("tiny") == inside
    with pytest.raises(UnknownIdError, match="not installed"):
        fixture_path("icml2026")


@pytest.mark.parametrize(
    ("bids", "each", "expected"),
    [
        (0.0, 2, "p1: r3 r4; p2: r1 r4; p3: r1 r2; p4: r2 r3"),
        (0.25, 2, "p1: r2 r3; p2: r1 r4; p3: r1 r4; p4: r2 r3"),
        (0.0, 1, "p1: r4; p2: r1; p3: r2; p4: r3"),
    ],
)
def test_the_engine_finds_the_plans_of_tinys_readme(bids: float, each: int, expected: str) -> None:
    """Paper and engine agree, conflicts of every kind included."""
    weights = {"text": 0.0, "areas": 0.0, "bids": bids}
    plan = recommend(load_fixture("tiny"), Params(demand=each, load_max=each, weights=weights))
    groups: dict[str, list[str]] = {}
    for item in plan.assignments:
        groups.setdefault(item.submission, []).append(item.reviewer)
    assert "; ".join(f"{paper}: {' '.join(sorted(people))}" for paper, people in sorted(groups.items())) == expected
    assert plan.certificate.audited and plan.gap == 0
