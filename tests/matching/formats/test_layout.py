"""A file that is there but is not read loses what it says; where that may be a hard rule, reading stops."""

import os
import socket
from pathlib import Path

import pytest

from matching.errors import InvalidFileError
from matching.formats.bundle import read_bundle
from matching.formats.container import zip_files
from matching.formats.folder import read_folder
from matching.formats.layout import BUNDLE, DATASET
from matching.formats.openreview import read_dataset
from tests.matching.formats.test_bundle import PAPERS, REVIEWERS
from tests.matching.formats.test_openreview import dataset

TABLE = b"paper,reviewer\np1,r1\n"
BOTH = {"papers.jsonl": PAPERS.encode(), "reviewers.jsonl": REVIEWERS.encode()}
KNOWN = (
    "papers.jsonl", "reviewers.jsonl", "publications.jsonl", "bids.csv", "conflicts.csv", "loads.csv", "demands.csv",
    "locks.csv", "rules.json", "manifest.json", "scores/x.csv",
)  # fmt: skip


def laid_out(path: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def faults(source: Path | bytes, read=read_folder) -> list[tuple[str | None, str]]:
    with pytest.raises(InvalidFileError) as error:
        read(source)
    return [(issue.source, issue.code) for issue in error.value.issues]


def make_odd(path: Path, kind: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "dangling link":
        path.symlink_to("nowhere")
    elif kind == "link to itself":
        path.symlink_to(path.name)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link to a folder":
        (path.parent / "elsewhere").mkdir()
        path.symlink_to("elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            here = Path.cwd()
            os.chdir(path.parent)  # a socket's path may not be long
            try:
                server.bind(path.name)
            finally:
                os.chdir(here)


ODD = ("dangling link", "link to itself", "folder", "link to a folder", "pipe", "device", "socket")


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", [name for name in KNOWN if name not in BOTH])
def test_what_is_named_like_a_file_and_is_none_is_a_fault(tmp_path: Path, name: str, kind: str) -> None:
    """It would count as missing, and a missing conflicts.csv says that there are no conflicts."""
    make_odd(laid_out(tmp_path, BOTH) / name, kind)
    found = faults(tmp_path)
    assert found in ([(name, "unreadable")], [(f"{name}/", "unreadable")])


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", BOTH)
def test_a_list_that_cannot_be_read_is_said_to_be_that_and_not_missing(tmp_path: Path, name: str, kind: str) -> None:
    """One fault, with the reason."""
    files = {other: data for other, data in BOTH.items() if other != name}
    make_odd(laid_out(tmp_path, files) / name, kind)
    found = faults(tmp_path)
    assert found in ([(name, "unreadable")], [(f"{name}/", "unreadable")])


@pytest.mark.parametrize(
    "name",
    [
        "conflicts.csv.gz", "Conflicts.csv", "CONFLICTS.CSV", "conflicts.tsv", "sub/conflicts.csv", "a/b/conflicts.csv",
        "conflicts.txt", "conflicts.xlsx", "conflicts.json", "conflicts", "conflicts.csv.txt", "conflicts.csv.zip",
        " conflicts.csv", "conflicts .csv", "conflicts (1).csv", "conflict.csv", "conflicts\u200b.csv",
        ".conflicts.csv",
        "\uff43onflicts.csv", "conflicts.csv.bak", "conflicts.csv~", "conflicts.docx", "conflicts/part1.csv",
        "conflicts.csv/x.csv", "sub/Conflicts.CSV.GZ", "constraints.csv", "papers.json", "reviewers.csv", "rules.yaml",
        "Rules.json", "manifest.JSON", "sub/manifest.json", "Bids.csv", "bids/p1.jsonl", "loads.tsv", "sub/demands.csv",
        "locks.csv.xz", "publications.jsonl.gz", "scores.csv", "Scores/x.csv", "scores/x.tsv", "scores/x.csv.gz",
        "scores/sub/x.csv", "scores/.csv", "scores/ .csv", "scores/x", "scores/x.CSV", "sub/scores/x.csv",
    ],
)  # fmt: skip
@pytest.mark.parametrize("packed", [True, False])
def test_a_name_that_nearly_fits_is_a_fault(tmp_path: Path, name: str, packed: bool) -> None:
    """Case, ending, folder or compression differ from what is read: nobody put it there to be ignored."""
    files = BOTH | {name: TABLE}
    found = faults(zip_files(files) if packed else laid_out(tmp_path, files))
    assert [code for _, code in found] == ["misplaced-file"] or name == "conflicts.csv/x.csv"
    assert found[0][0] is not None and name.startswith(found[0][0].rstrip("/"))


def test_the_fault_says_what_was_expected(tmp_path: Path) -> None:
    """So that it can be mended without the documentation."""
    with pytest.raises(InvalidFileError, match=r"Conflicts\.csv: .*conflicts\.csv"):
        read_folder(zip_files(BOTH | {"Conflicts.csv": TABLE}))
    make_odd(laid_out(tmp_path, BOTH) / "conflicts.csv", "dangling link")
    with pytest.raises(InvalidFileError, match=r"conflicts\.csv: is a link to nothing; expected conflicts\.csv"):
        read_folder(tmp_path)


def test_a_manifest_that_lists_the_file_adds_no_second_fault(tmp_path: Path) -> None:
    """With or without a manifest the fault is the same."""
    manifest = b'{"files": {"conflicts.csv": {"records": 1}, "papers.jsonl": {"records": 2}}}'
    make_odd(laid_out(tmp_path, BOTH | {"manifest.json": manifest}) / "conflicts.csv", "pipe")
    assert faults(tmp_path) == [("conflicts.csv", "unreadable")]


@pytest.mark.parametrize(
    "name",
    ["README.md", "comments.csv", "papers.pdf", "papers/12.pdf", "conflicts.md", "plan.csv", "sub/history.csv",
     "scores/README.md", "scores/.gitkeep", ".~lock.conflicts.csv#", "._conflicts.csv", "sub/plan.json"],
)  # fmt: skip
def test_foreign_files_stay_a_notice_at_most(name: str) -> None:
    """A folder may hold other things; only data is worth a word."""
    _, notices = read_folder(zip_files(BOTH | {name: b"x"}))
    data = name.endswith((".csv", ".json")) and not name.startswith("._")
    assert [notice.code for notice in notices] == ["ignored-file"] * data


def test_a_backup_beside_the_file_itself_is_foreign() -> None:
    """Editors leave it there."""
    files = BOTH | {"conflicts.csv": TABLE, "conflicts.csv.bak": TABLE, "conflicts.csv~": TABLE}
    assert len(read_folder(zip_files(files))[0].conflicts) == 1


@pytest.mark.parametrize("kind", ["dangling link", "link to a folder", "pipe"])
def test_foreign_things_that_cannot_be_read_are_named(tmp_path: Path, kind: str) -> None:
    """Links to folders are not followed: the input is what lies in the folder."""
    make_odd(laid_out(tmp_path, BOTH) / "notes", kind)
    _, notices = read_bundle(tmp_path)
    (notice,) = [notice for notice in notices if notice.code == "not-read"]
    assert "notes" in notice.data["files"]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    """Neither out of the input nor round in circles."""
    outside = laid_out(tmp_path / "outside", {"conflicts.csv": TABLE})
    inside = laid_out(tmp_path / "inside", BOTH)
    (inside / "scores").symlink_to(outside)
    assert faults(inside) == [("scores", "unreadable")]
    (inside / "scores").unlink()
    (inside / "loop").symlink_to(inside)
    assert [notice.data["files"] for notice in read_bundle(inside)[1]] == [["loop"]]


def test_links_to_files_are_followed(tmp_path: Path) -> None:
    """A chair may keep one list for several venues."""
    outside = laid_out(tmp_path / "outside", {"c": TABLE})
    inside = laid_out(tmp_path / "inside", BOTH)
    (inside / "conflicts.csv").symlink_to(outside / "c")
    assert len(read_bundle(inside)[0].conflicts) == 1


@pytest.mark.parametrize("folder", ["scores", "other"])
def test_a_folder_that_cannot_be_looked_into_is_a_fault(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is in it may be a part of the venue."""
    laid_out(tmp_path, BOTH | {f"{folder}/x.csv": TABLE})
    scandir = os.scandir

    def refusing(path):
        if os.fspath(path) == str(tmp_path / folder):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert faults(tmp_path) == [(folder, "unreadable")]


def test_a_file_that_may_not_be_read_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is played here."""
    laid_out(tmp_path, BOTH | {"conflicts.csv": TABLE})
    read_bytes = Path.read_bytes

    def refusing(path: Path) -> bytes:
        if path.name == "conflicts.csv":
            raise PermissionError(13, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", refusing)
    assert faults(tmp_path) == [("conflicts.csv", "unreadable")]


def test_folders_too_deep_to_be_looked_into_are_named(tmp_path: Path) -> None:
    """What lies there is not read, and that is said."""
    laid_out(tmp_path, BOTH | {"a/b/c/conflicts.csv": TABLE})
    assert [notice.data["files"] for notice in read_bundle(tmp_path)[1]] == [["a/b/c"]]


def test_two_files_may_not_mean_one_signal() -> None:
    """%61 is a."""
    files = BOTH | dict.fromkeys(["scores/a.csv", "scores/%61.csv"], b"paper,reviewer,score\np1,r1,1\n")
    assert faults(zip_files(files)) == [("scores/a.csv", "duplicate-id")]


@pytest.mark.parametrize("layout", [BUNDLE, DATASET])
def test_a_layout_reads_its_own_names(layout) -> None:
    """A name that is read never counts as misplaced."""
    for name in layout.files:
        assert layout.reads(name)
    for folder, ending in layout.folders.items():
        assert layout.reads(f"{folder}x.y{ending}")


# --- datasets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize(
    "name", ["archives/~X1.jsonl", "conflicts.csv", "constraints.csv", "bids", "metadata.json", "submissions.jsonl"]
)
def test_a_dataset_is_read_whole_or_not_at_all(tmp_path: Path, name: str, kind: str) -> None:
    """A person whose archive is a dead link would be gone."""
    if name == "bids" and kind == "folder":
        pytest.skip("an empty folder of bids says there are none")
    make_odd(laid_out(tmp_path, dataset()) / name, kind)
    found = faults(tmp_path)
    assert (name, "unreadable") in found or (f"{name}/", "unreadable") in found


@pytest.mark.parametrize(
    "name",
    ["archives/.jsonl", "archives/ .jsonl", "archives/sub/~X1.jsonl", "archives/~X1.json", "archives/~X1.jsonl.gz",
     "archives/~X1.JSONL", "Archives/~X1.jsonl", "archives.zip", "archives/ ~X1.jsonl", "archives/~X1",
     "submissions/.jsonl", "submissions/sub/p1.jsonl", "Submissions.json", "bids/sub/p1.jsonl", "bids/p1.json",
     "Constraints.csv", "constraints.tsv", "sub/constraints.csv", "Conflicts.csv", "conflicts.csv.gz", "loads.txt",
     "publications.jsonl", "Manifest.json", "Reviewers.jsonl", "rules.yml"],
)  # fmt: skip
def test_a_name_that_nearly_fits_a_dataset_is_a_fault(name: str) -> None:
    """Nobody is left out for the spelling of a file name."""
    ((source, code),) = faults(zip_files(dataset() | {name: b""}))
    assert code == "misplaced-file" and name.startswith(source.rstrip("/"))


def test_droppings_beside_archives_are_no_people(tmp_path: Path) -> None:
    """The Mac keeps a file ``._name`` beside every file on foreign disks."""
    files = dataset() | {"archives/._~A1.jsonl": b"\0\5\x16\7", "archives/.DS_Store": b"", "archives/README.md": b""}
    for source in (zip_files(files), laid_out(tmp_path, files)):
        assert len(read_folder(source)[0].reviewers) == 2


def test_constraints_beside_archives_bar_pairs() -> None:
    """Rows of submission, reviewer and value without a header: -1 a conflict, 0 nothing."""
    files = dataset() | {"constraints.csv": "p1,~Zoë_Doe1,-1\np1,a.b@x.example,0\n".encode()}
    venue, notices = read_folder(zip_files(files))
    assert [(item.submission, item.reviewer) for item in venue.conflicts] == [("p1", "~Zoë_Doe1")]
    assert "no-conflict" in {notice.code for notice in notices}


def test_a_wanted_pair_is_refused_and_never_ignored() -> None:
    """1 would be a hard rule where the matcher it was written for fixes such pairs."""
    with pytest.raises(InvalidFileError, match="not supported by this version") as error:
        read_folder(zip_files(dataset() | {"constraints.csv": "p1,a.b@x.example,-1\np1,~Zoë_Doe1,1\n".encode()}))
    assert [(issue.source, issue.row) for issue in error.value.issues] == [("constraints.csv", 2)]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("p1,ghost,-1", "unknown-id"),
        ("p9,a.b@x.example,-1", "unknown-id"),
        ("p1,a.b@x.example,", "not-a-number"),
        ("pid,rid,value", "header-row"),
        ("a.b@x.example,p1,-1", "columns-swapped"),
        ("p1,a.b@x.example,2", "not-a-conflict"),
    ],
)
def test_constraints_are_judged_like_conflicts(row: str, code: str) -> None:
    """One that names nobody would be lost."""
    assert faults(zip_files(dataset() | {"constraints.csv": f"{row}\n".encode()})) == [("constraints.csv", code)]


def test_side_files_of_a_bundle_are_read_beside_archives() -> None:
    """They say the same there."""
    files = dataset() | {
        "conflicts.csv": b"paper,reviewer,rule\np1,A.B@x.example,advisor\n",
        "bids.csv": "paper,reviewer,bid\np1,~Zoë_Doe1,yes\np1,ghost,no\n".encode(),
        "loads.csv": "reviewer,load_max\n~Zoë_Doe1,2\n".encode(),
        "demands.csv": b"paper,demand\np1,1\n",
        "locks.csv": "paper,reviewer\np1,~Zoë_Doe1\n".encode(),
        "scores/tpms.csv": "paper,reviewer,score\np1,~Zoë_Doe1,0.5\n".encode(),
    }
    venue, notices = read_folder(zip_files(files))
    assert [(item.reviewer, item.rule) for item in venue.conflicts] == [("A.B@x.example", "advisor")]
    assert [(item.reviewer, item.bid) for item in venue.bids] == [("~Zoë_Doe1", "very_high"), ("ghost", "very_low")]
    assert {item.id: item.load_max for item in venue.reviewers} == {"~Zoë_Doe1": 2, "a.b@x.example": None}
    assert [item.demand for item in venue.submissions] == [1]
    assert [item.reviewer for item in venue.locks] == ["~Zoë_Doe1"]
    assert [item.name for item in venue.scores] == ["tpms"]
    assert "unresolved-line" in {notice.code for notice in notices}


def test_bids_in_both_places_may_not_contradict() -> None:
    """Which of them would win?"""
    files = dataset() | {
        "bids/p1.jsonl": '{"tag": "High", "signatures": ["~Zoë_Doe1"]}\n'.encode(),
        "bids.csv": "paper,reviewer,bid\np1,~Zoë_Doe1,no\n".encode(),
    }
    assert faults(zip_files(files)) == [("bids.csv", "contradiction")]
    files["bids.csv"] = "paper,reviewer,bid\np1,~Zoë_Doe1,high\n".encode()
    assert len(read_folder(zip_files(files))[0].bids) == 1


def test_rules_beside_archives_are_read_and_judged() -> None:
    """As in a bundle."""
    assert faults(zip_files(dataset() | {"rules.json": b'[{"kind": "x"}]'})) == [("rules.json", "unknown-rule")]
    rules = b'[{"rule": "reviewers_per_submission", "each": "affiliation", "at_most": 1}]'
    assert len(read_folder(zip_files(dataset() | {"rules.json": rules}))[0].rules) == 1


def test_a_folder_that_is_both_layouts_is_refused() -> None:
    """Half of it would be left out."""
    with pytest.raises(InvalidFileError, match="both"):
        read_folder(zip_files(dataset() | BOTH))
    assert faults(zip_files(dataset() | BOTH), read_dataset)[0][1] == "misplaced-file"


def test_metadata_at_fault_is_told_with_the_rest() -> None:
    """All faults together."""
    files = dataset() | {"metadata.json": b"\xff", "constraints.csv": b"p1,ghost,-1\n"}
    assert faults(zip_files(files)) == [("constraints.csv", "unknown-id"), ("metadata.json", "not-utf8")]


# --- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [b"archives/~X\xff1.jsonl", b"archives\xff/~X1.jsonl", b"notes\xff.csv"])
def test_file_names_that_are_not_utf8_never_reach_a_plan(tmp_path: Path, name: bytes) -> None:
    """Such an id cannot be written to any file; foreign ones are shown with the bytes spelled out."""
    place = os.fsencode(laid_out(tmp_path, dataset())) + b"/" + name
    os.makedirs(os.path.dirname(place), exist_ok=True)
    Path(os.fsdecode(place)).write_bytes(b"")
    if name.startswith(b"archives/"):
        assert faults(tmp_path) == [("archives/~X\\udcff1.jsonl", "unreadable")]
    else:
        for notice in read_folder(tmp_path)[1]:
            notice.message.encode()


def test_a_path_that_is_not_utf8_can_be_shown(tmp_path: Path) -> None:
    """In the message that there is no venue in it."""
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    for path in (place, place / "nothing", Path("a\0b")):
        with pytest.raises(InvalidFileError) as error:
            read_folder(path)
        str(error.value).encode()
    place.mkdir()
    with pytest.raises(InvalidFileError) as error:
        read_folder(place)
    str(error.value).encode()
