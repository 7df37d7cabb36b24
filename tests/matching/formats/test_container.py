"""Zip files come from strangers: nothing is unpacked to disk, and odd entries are refused by name."""

import io
import zipfile
from pathlib import Path

import pytest

from matching.errors import InvalidFileError
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
