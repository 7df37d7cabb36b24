"""Zip files come from strangers: nothing is unpacked to disk, and odd entries are refused by name."""

import io
import random
import stat
import zipfile
from pathlib import Path

import pytest

from matching.errors import InvalidFileError
from matching.formats import zip_reader
from matching.formats.bundle import read_bundle
from matching.formats.container import open_container, zip_files


def zipped(*names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return stream.getvalue()


@pytest.mark.parametrize("name", ["../a.csv", "a/../../b.csv", "/etc/a.csv", "C:/a.csv", "a\\..\\b.csv"])
def test_entries_that_point_outside_are_refused(name: str) -> None:
    """Whoever unpacked them would write where the sender wished."""
    with pytest.raises(InvalidFileError) as error:
        open_container(zipped("ok.csv", name))
    assert [issue.code for issue in error.value.issues] == ["unsafe-name"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_that_is_there_twice_is_refused() -> None:
    """Readers differ in which of the two they see."""
    with pytest.raises(InvalidFileError, match="twice"):
        open_container(zipped("a.csv", "a.csv"))


def test_names_that_differ_in_capitals_stay_two_files() -> None:
    """On some disks unpacking would merge two people."""
    assert list(open_container(zipped("archives/~A.jsonl", "archives/~a.jsonl")).readers) == [
        "archives/~A.jsonl",
        "archives/~a.jsonl",
    ]


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"not a zip", zipped("a")[:-10]])
def test_what_is_no_zip_file_is_said_to_be_none(data: bytes) -> None:
    """With our own error."""
    with pytest.raises(InvalidFileError):
        open_container(data)


def test_a_damaged_entry_is_named() -> None:
    """Its checksum does not match."""
    data = zip_files({"a.csv": b"hello" * 100})
    damaged = bytearray(data)
    damaged[40] ^= 0xFF
    container = open_container(bytes(damaged))
    with pytest.raises(InvalidFileError):
        for name in container.readers:
            container.read(name)


def test_droppings_of_file_managers_are_ignored(tmp_path: Path) -> None:
    """They would hide that a zip file holds a single folder."""
    container = open_container(zipped("b/papers.jsonl", "b/scores/x.csv", "__MACOSX/b/._papers.jsonl", "b/.DS_Store"))
    assert list(container.readers) == ["papers.jsonl", "scores/x.csv"]
    (tmp_path / ".DS_Store").write_bytes(b"x")
    (tmp_path / "a.csv").write_bytes(b"x")
    assert list(open_container(tmp_path).readers) == ["a.csv"]


def test_a_folder_is_not_walked_to_its_end(tmp_path: Path) -> None:
    """Someone will point at a home directory."""
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    for folder in (deep, deep.parent, deep.parent.parent, tmp_path):
        (folder / "x.csv").write_bytes(b"")
    assert list(open_container(tmp_path).readers) == ["a/b/x.csv", "a/x.csv", "x.csv"]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_zip_file_is_always_told_as_one(method: int) -> None:
    """The library raises a dozen kinds of errors, or none: a changed name would lose the file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("papers.jsonl", '{"id": "p1"}\n' + '{"id": "p2", "title": "a title"}\n')
        archive.writestr("reviewers.jsonl", '{"id": "r1"}\n')
        archive.writestr("conflicts.csv", "paper,reviewer\np1,r1\n")
    intact = stream.getvalue()
    rng = random.Random(method)
    for _ in range(400):
        damaged = bytearray(intact)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        try:
            venue, _ = read_bundle(bytes(damaged))
        except InvalidFileError as error:
            str(error).encode()
        else:
            assert len(venue.conflicts) == 1 and len(venue.submissions) == 2


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_plain_and_deflated_entries_are_read(method: int) -> None:
    """The library inflates the others without a limit: 4 kB may become gigabytes in one step."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("a.csv", "x" * 99)
    with pytest.raises(InvalidFileError) as error:
        open_container(stream.getvalue())
    assert [(issue.source, issue.code) for issue in error.value.issues] == [("a.csv", "unsupported-compression")]


def test_what_an_entry_really_inflates_to_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The header is written by whoever packed the file; the bytes are counted as they come."""
    monkeypatch.setattr(zip_reader, "CHUNK", 64)
    container = open_container(zip_files({"a.csv": b"a" * 600, "b.csv": b"b" * 600}))
    monkeypatch.setattr(zip_reader, "MOST_ENTRY_BYTES", 500)
    with pytest.raises(InvalidFileError) as error:
        container.read("a.csv")
    assert [(issue.source, issue.code) for issue in error.value.issues] == [("a.csv", "too-large")]
    monkeypatch.setattr(zip_reader, "MOST_ENTRY_BYTES", 1_000)
    monkeypatch.setattr(zip_reader, "MOST_BYTES", 1_000)
    assert container.read("a.csv") == container.read("a.csv")  # reading again counts once
    with pytest.raises(InvalidFileError) as error:
        container.read("b.csv")
    assert [(issue.source, issue.code) for issue in error.value.issues] == [("b.csv", "too-large")]


def test_a_zip_file_that_says_it_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one with a single entry that is."""
    data = zip_files({"a.csv": b"a" * 600, "b.csv": b"b" * 600})
    for name in ("MOST_BYTES", "MOST_ENTRY_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(zip_reader, name, 500)
            with pytest.raises(InvalidFileError) as error:
                open_container(data)
            assert {issue.code for issue in error.value.issues} == {"too-large"}


def test_an_entry_whose_header_lies_about_its_size_is_damaged() -> None:
    """Entry sizes stand in the directory at the end."""
    data = bytearray(zip_files({"a.csv": b"a" * 600}))
    at = data.rindex(b"PK\x01\x02") + 24
    data[at : at + 4] = (10).to_bytes(4, "little")
    with pytest.raises(InvalidFileError) as error:
        open_container(bytes(data)).read("a.csv")
    assert error.value.issues[0].source == "a.csv"


def test_links_inside_a_zip_file_are_no_files() -> None:
    """Their content is the path they point to."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("papers.jsonl", '{"id": "p1"}\n')
        archive.writestr("reviewers.jsonl", '{"id": "r1"}\n')
        link = zipfile.ZipInfo("conflicts.csv")
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "../secret.csv")
    with pytest.raises(InvalidFileError) as error:
        read_bundle(stream.getvalue())
    assert [(issue.source, issue.code) for issue in error.value.issues] == [("conflicts.csv", "unreadable")]


def test_entry_names_with_dots_are_the_names_they_mean() -> None:
    """Some tools write ./papers.jsonl."""
    assert list(open_container(zipped("./a.csv", "b/./c.csv", "b//d.csv")).readers) == ["a.csv", "b/c.csv", "b/d.csv"]
    with pytest.raises(InvalidFileError, match="twice"):
        open_container(zipped("./a.csv", "a.csv"))


def test_a_zip_file_too_large_for_memory_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read whole before it is opened."""
    (tmp_path / "a.zip").write_bytes(zip_files({"a.csv": b"x"}))
    monkeypatch.setattr(zip_reader, "MOST_BYTES", 50)
    with pytest.raises(InvalidFileError, match="at most"):
        open_container(tmp_path / "a.zip")
