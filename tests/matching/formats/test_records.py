"""Dicts to values and back: strict types, kept extras, all faults together."""

import pytest

from matching.errors import InvalidVenueError
from matching.formats.faults import Faults
from matching.formats.records import (
    publication_from_dict,
    reviewer_from_dict,
    reviewer_to_dict,
    reviewers_from_dicts,
    submission_from_dict,
    submission_to_dict,
    submissions_from_dicts,
)
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Submission


def fault_codes(read, record: object) -> list[tuple[str, str | None]]:
    faults = Faults("x")
    assert read(record, faults, row=7) is None
    assert {issue.row for issue in faults.issues} == {7}
    return [(issue.code, issue.field) for issue in faults.issues]


@pytest.mark.parametrize("value", [2.5, True, -1, "three", [1], {}, 2**31, 2.0])
def test_b43_loads_and_demands_are_judged_strictly(value: object) -> None:
    """A load of 2.34 does not become 2, nor true 1."""
    assert fault_codes(reviewer_from_dict, {"id": "r1", "load_max": value}) == [("not-a-count", "load_max")]
    assert fault_codes(submission_from_dict, {"id": "p1", "demand": value}) == [("not-a-count", "demand")]


def test_b12_zero_and_null_survive_a_round_trip() -> None:
    """0 means none at all, null the default."""
    for load in (0, None, 3):
        record = reviewer_to_dict(Reviewer("r1", load_max=load))
        assert record["load_max"] == load
        assert reviewer_from_dict(record, Faults("x")) == Reviewer("r1", load_max=load)


def test_b25_null_text_is_missing_text() -> None:
    """A gap in one record is no fault."""
    record = {"id": "p3", "title": None, "abstract": None, "authors": None, "areas": None, "active": None}
    assert submission_from_dict(record, Faults("x")) == Submission("p3")


def test_b11_every_fault_of_every_record_is_listed() -> None:
    """With row, field and value, and nothing is returned."""
    records = [{"id": "r1", "load_max": -1, "role": "boss"}, {"id": "r2"}, {"name": "no id"}, None, {"id": "r1"}]
    with pytest.raises(InvalidVenueError) as error:
        reviewers_from_dicts(records)
    found = [(issue.row, issue.field, issue.code) for issue in error.value.issues]
    assert found == [
        (0, "role", "unknown-choice"),
        (0, "load_max", "not-a-count"),
        (2, "id", "missing-id"),
        (3, None, "not-an-object"),
        (4, "id", "duplicate-id"),
    ]
    assert "row 0" in error.value.issues[-1].reason


def test_unknown_keys_are_kept_and_told() -> None:
    """A converter loses nothing; a misspelt key is pointed out."""
    faults = Faults("reviewers.jsonl")
    record = {"id": "r1", "email": "a@x.example", "max_load": 3, "colour": ["red"]}
    reviewer = reviewer_from_dict(record, faults)
    assert reviewer is not None and not faults
    assert dict(reviewer.extra) == {"email": "a@x.example", "max_load": 3, "colour": ["red"]}
    assert reviewer_to_dict(reviewer)["max_load"] == 3
    messages = " ".join(notice.message for notice in faults.notices())
    assert "did you mean 'emails'" in messages and "did you mean 'load_max'" in messages and "'colour'" in messages


def test_an_extra_may_not_hide_a_field() -> None:
    """On export it would overwrite it."""
    with pytest.raises(InvalidVenueError, match="load_max"):
        reviewer_to_dict(Reviewer("r1", extra={"load_max": 3}))


def test_an_author_needs_a_name_an_address_or_an_id() -> None:
    """And a misspelt address must not lose a conflict."""
    assert fault_codes(submission_from_dict, {"id": "p1", "authors": [{"name": " "}]}) == [
        ("nameless-author", "authors[0]")
    ]
    assert fault_codes(submission_from_dict, {"id": "p1", "authors": [{"name": "A", "emails": "a@x.example"}]}) == [
        ("unknown-field", "authors[0].emails")
    ]
    assert fault_codes(submission_from_dict, {"id": "p1", "authors": ["A B"]}) == [("not-an-object", "authors[0]")]


def test_ids_and_addresses_are_trimmed_and_texts_are_not() -> None:
    """Blanks around an id are never part of it."""
    record = {"id": " r1 ", "emails": [" R1@X.example "], "name": " Zoë ", "affiliations": ["A", None]}
    assert reviewer_from_dict(record, Faults("x")) == Reviewer("r1", " Zoë ", ("R1@X.example",), affiliations=("A",))


@pytest.mark.parametrize("value", ["a@x.example", {"0": "a@x.example"}, 3, True])
def test_a_list_is_a_list(value: object) -> None:
    """A bare text would be read letter by letter."""
    assert fault_codes(reviewer_from_dict, {"id": "r1", "emails": value}) == [("not-a-list", "emails")]


def test_publications_keep_strict_types_too() -> None:
    """Years and weights reach the scorer as numbers."""
    faults = Faults("x")
    record = {"id": "w1", "year": "2020", "weight": -1, "title": 3}
    assert publication_from_dict(record, faults, where="publications[0].") is None
    assert [issue.field for issue in faults.issues] == [
        "publications[0].title",
        "publications[0].year",
        "publications[0].weight",
    ]


def test_publications_without_id_get_one_that_nobody_shares() -> None:
    """Equal ids would make strangers co-authors."""
    one, two = reviewers_from_dicts([{"id": name, "publications": [{"title": "T"}]} for name in ("r1", "r2")])
    assert one.publications[0].id != two.publications[0].id


def test_one_id_for_two_publications_is_a_fault_and_a_repeat_is_not() -> None:
    """The same entry twice says nothing new."""
    same = {"id": "r1", "publications": [{"id": "w", "title": "T"}] * 2}
    assert len(reviewers_from_dicts([same])[0].publications) == 1
    other = {"id": "r1", "publications": [{"id": "w", "title": "T"}, {"id": "w", "title": "U"}]}
    assert fault_codes(reviewer_from_dict, other) == [("duplicate-id", "publications[1].id")]


def test_submissions_round_trip_with_everything_in_them() -> None:
    """Twins agree."""
    record = {
        "id": "p1",
        "title": "T",
        "abstract": "A",
        "authors": [{"name": "N", "email": "n@x.example", "affiliation": "I", "id": "r9"}],
        "areas": ["a"],
        "keywords": ["k"],
        "track": "main",
        "demand": 2,
        "active": False,
        "session": {"day": 1},
    }
    (value,) = submissions_from_dicts([record])
    assert submission_to_dict(value) == record


@pytest.mark.parametrize(
    ("read", "record", "field"),
    [
        (reviewer_from_dict, {"id": "r\ud800"}, "id"),
        (reviewer_from_dict, {"id": "r", "emails": ["a", "\udc00@x"]}, "emails[1]"),
        (reviewer_from_dict, {"id": "r", "publications": [{"id": "w", "title": "\udfff"}]}, "publications[0].title"),
        (submission_from_dict, {"id": "p", "track": "\ud83d"}, "track"),
        (submission_from_dict, {"id": "p", "authors": [{"id": "\ud83d"}]}, "authors[0].id"),
    ],
)
def test_half_characters_are_faults_wherever_a_text_stands(read, record: dict, field: str) -> None:
    """A plan that names such an id could not be written; whole ones are fine."""
    assert fault_codes(read, record) == [("not-unicode", field)]
    assert submission_from_dict({"id": "\U0001f600"}, Faults("x")) is not None
