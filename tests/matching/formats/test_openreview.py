"""Datasets in OpenReview's layout, and the door that tells a dataset from a bundle."""

import json
from pathlib import Path

import pytest

from matching.errors import InvalidFileError
from matching.formats.bundle import write_bundle_zip
from matching.formats.container import zip_files
from matching.formats.folder import read_folder
from matching.formats.openreview import read_dataset
from matching.profiles.submission import Author
from matching.profiles.venue import Bid, Venue
from tests.shared import SHARED, needs_shared


def dataset(**more: object) -> dict[str, bytes]:
    """A small dataset; keyword names use ``__`` for ``/`` and values are documents or lists of lines."""
    files: dict[str, object] = {
        "archives/~Zoë_Doe1.jsonl": [
            {"id": "w1", "cdate": 1577836800000, "content": {"title": "A", "abstract": None, "venueid": "x"}},
            {"id": "w2", "cdate": 0, "content": {"title": {"value": "B"}, "abstract": {"value": "b"}}},
            {"id": "w3", "cdate": "soon", "content": {"title": " ", "abstract": ""}},
        ],
        "archives/a.b@x.example.jsonl": [],
        "submissions.json": {"p1": {"id": "p1", "content": {"title": "T", "abstract": {"value": "t"}}}},
    }
    files |= {name.replace("__", "/"): value for name, value in more.items()}
    return {name: packed(name, value) for name, value in files.items() if value is not None}


def packed(name: str, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, list) and name.endswith(".jsonl"):
        return "".join(json.dumps(line) + "\n" for line in value).encode()
    return json.dumps(value).encode()


def test_people_are_file_names_without_their_last_ending() -> None:
    """Names hold dots, tildes, accents and at signs."""
    venue, notices = read_dataset(zip_files(dataset()))
    first, second = venue.reviewers
    assert (first.id, first.name) == ("a.b@x.example", "") and first.emails == ("a.b@x.example",)
    assert (second.id, second.name, second.emails) == ("~Zoë_Doe1", "Zoë Doe", ())
    assert [(item.id, item.title, item.abstract, item.year) for item in second.publications] == [
        ("w1", "A", "", 2020),
        ("w2", "B", "b", None),
    ]
    assert [notice.code for notice in notices] == ["publications-without-text"]
    assert notices[0].data == {"count": 1, "by_reviewer": {"~Zoë_Doe1": 1}}


def test_the_list_of_papers_among_the_archives_is_no_person() -> None:
    """It is written for comparisons of papers with papers."""
    files = dataset() | {"archives/match_submissions.jsonl": b'{"id": "p9", "content": {"title": "x"}}\n'}
    assert len(read_dataset(zip_files(files))[0].reviewers) == 2


def test_b26_people_without_archive_are_in_the_pool() -> None:
    """Missing evidence never removes anybody."""
    files = dataset() | {"metadata.json": b'{"no_publications": ["~No_Pub1"], "no_profile": ["n@x.example"]}'}
    venue, notices = read_dataset(zip_files(files))
    assert {person.id for person in venue.reviewers} >= {"~No_Pub1", "n@x.example"}
    assert "people-without-archive" in {notice.code for notice in notices}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("submissions/p1.jsonl", b'{"content": {"title": "T", "abstract": "t"}}\n'),
        ("submissions.jsonl", b'{"id": "p1", "content": {"title": "T", "abstract": "t"}}\n'),
        ("submissions.json", b'{"p1": {"content": {"title": "T", "abstract": "t"}}}'),
    ],
)
def test_submissions_come_in_three_forms(name: str, content: bytes) -> None:
    """All of them are the same papers."""
    files = {key: data for key, data in dataset().items() if not key.startswith("submissions")} | {name: content}
    (paper,) = read_folder(zip_files(files))[0].submissions
    assert (paper.id, paper.title, paper.abstract) == ("p1", "T", "t")


def test_authors_are_read_where_the_dataset_names_them() -> None:
    """Authorship is a conflict; the rest of a record is kept."""
    content = {"title": "T", "authors": {"value": ["A B", "C D"]}, "authorids": ["~A_B1", "c@x.example"], "venue": "V"}
    files = dataset(**{"submissions.json": {"p1": {"id": "p1", "number": 7, "content": content}}})
    (paper,) = read_dataset(zip_files(files))[0].submissions
    assert paper.authors == (Author("A B", "", "", "~A_B1"), Author("C D", "c@x.example", "", "c@x.example"))
    assert dict(paper.extra) == {"number": 7, "content": {"venue": "V"}}


def test_bids_come_as_tags_and_as_edges() -> None:
    """Deleted ones do not count."""
    files = dataset(
        bids__p1=None,
        **{
            "bids/p1.jsonl": [
                {"tag": "Very High", "signatures": ["~Zoë_Doe1"], "forum": "p1"},
                {"label": "In a Pinch", "tail": "a.b@x.example", "head": "p1"},
                {"label": "High", "tail": "gone", "head": "p1", "ddate": 1},
                {"tag": "Low", "signatures": ["~No_Forum1"]},
            ]
        },
    )
    assert read_dataset(zip_files(files))[0].bids == (
        Bid("p1", "~Zoë_Doe1", "very_high"),
        Bid("p1", "a.b@x.example", "low"),
        Bid("p1", "~No_Forum1", "low"),
    )


def test_faults_of_all_files_are_listed_together() -> None:
    """With file, line and field."""
    files = dataset(
        **{
            "archives/~A1.jsonl": b'{"id": "w", "content": {"title": 3, "weight": -1}}\n[]\n{"id": NaN}\n',
            "submissions.json": {"p1": {"id": "p2", "content": {}}, "p3": None},
            "bids/p1.jsonl": [{"tag": "keen", "signatures": []}],
            "archives/~B1.jsonl": "ü".encode("latin-1"),
        }
    )
    with pytest.raises(InvalidFileError) as error:
        read_dataset(zip_files(files))
    assert [(issue.source, issue.row, issue.field, issue.code) for issue in error.value.issues] == [
        ("archives/~A1.jsonl", 1, "content.title", "not-text"),
        ("archives/~A1.jsonl", 1, "content.weight", "not-a-weight"),
        ("archives/~A1.jsonl", 2, None, "not-an-object"),
        ("archives/~A1.jsonl", 3, None, "not-finite"),
        ("archives/~B1.jsonl", 1, None, "not-utf8"),
        ("bids/p1.jsonl", 1, "signatures", "missing-id"),
        ("bids/p1.jsonl", 1, "label", "unknown-bid"),
        ("submissions.json", None, "p1.id", "contradiction"),
        ("submissions.json", None, "p3", "not-an-object"),
    ]


@pytest.mark.parametrize("date", [10**18, -(10**18), -1, True, [], 1e308])
def test_odd_dates_are_neutral(date: object) -> None:
    """A bad year never stops a run."""
    lines = [{"id": "w", "cdate": date, "content": {"title": "A"}}]
    files = dataset(**{"archives/~A1.jsonl": lines})
    (person,) = [person for person in read_dataset(zip_files(files))[0].reviewers if person.id == "~A1"]
    assert person.publications[0].year in (None, 1969)


def test_the_door_reads_bundles_too(tmp_path: Path) -> None:
    """And says what it looked for where there is neither."""
    assert read_folder(write_bundle_zip(Venue(name="x")))[0].name == "x"
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InvalidFileError, match=r"papers\.jsonl and reviewers\.jsonl.*archives/.*found notes\.txt"):
        read_folder(tmp_path)
    with pytest.raises(InvalidFileError, match="there is no folder or file"):
        read_folder(tmp_path / "nowhere")


def test_a_folder_of_several_versions_names_them(tmp_path: Path) -> None:
    """So that the user can pick one."""
    for version in ("d_1", "d_2"):
        for name, data in dataset().items():
            (tmp_path / version / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / version / name).write_bytes(data)
    with pytest.raises(InvalidFileError, match="d_1, d_2; name one") as error:
        read_folder(tmp_path)
    assert error.value.data["folders"] == ["d_1", "d_2"]


@needs_shared
def test_the_public_gold_standard_is_read() -> None:
    """A real dataset, with 29 people and their ten versions."""
    venue, notices = read_folder(SHARED / "data" / "gold_dev" / "d_20_1")
    assert len(venue.reviewers) == 29
    assert all(0 < len(person.publications) <= 20 for person in venue.reviewers)
    assert all(paper.title and paper.abstract for paper in venue.submissions)
    assert not notices
    with pytest.raises(InvalidFileError, match="d_20_10"):
        read_folder(SHARED / "data" / "gold_dev")
