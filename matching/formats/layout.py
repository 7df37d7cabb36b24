"""Which names a layout reads, and what a name that nearly fits was meant to be.

A file that is there but is not read loses what it says. A missing conflicts.csv says that nobody declared a
conflict; so ``Conflicts.csv``, ``conflicts.csv.gz`` or a dead link of that name must stop the reading.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from matching.errors import Issue
from matching.formats.container import Container
from matching.notices import Notice, in_words

__all__ = ["BUNDLE", "DATASET", "Judged", "Layout", "judge_names"]

DATA_ENDINGS = (".json", ".jsonl", ".csv", ".tsv", ".txt")
DOCUMENT_ENDINGS = frozenset(
    "bib css gif htm html ico ipynb jpeg jpg js log md pdf png ps py r rst sh svg tex toml webp".split()  # noqa: SIM905
)  # what nobody writes lists of pairs in; whatever else carries a known name was meant to be read
BACKUP_ENDINGS = ("~", ".bak", ".old", ".orig", ".swp")
LONGEST_NAME = 255  # characters of a part of a path that are looked at; no disk has longer ones
COPY_NUMBER = re.compile(r"\s*\(\d+\)$")  # "conflicts (1).csv", as browsers name a second download


@dataclass(frozen=True)
class Layout:
    """The names one kind of venue consists of.

    Attributes
    ----------
    what : str
        Its name, for messages.
    files : frozenset of str
        Files at the top that are read.
    folders : mapping of str to str
        Folder (with ``/``) -> ending of the files directly in it that are read.
    meant : mapping of str to str
        Name without endings, folded -> what to write for it.
    unread : frozenset of str
        Files that belong there and lose nothing by not being read.
    """

    what: str
    files: frozenset[str]
    folders: Mapping[str, str]
    meant: Mapping[str, str]
    unread: frozenset[str] = frozenset()

    def reads(self, name: str) -> bool:
        """Whether a file of this name is read."""
        folder, slash, rest = name.partition("/")
        ending = self.folders.get(folder + slash)
        if not slash or ending is None:
            return name in self.files
        stem = rest.removesuffix(ending)
        # The stem of .jsonl files is an id, and ids have no outer blanks.
        return stem != rest and "/" not in stem and bool(stem.strip()) and (ending == ".csv" or stem == stem.strip())

    def inside(self, files: Container, folder: str) -> list[str]:
        """Names directly in a folder that are read, in order."""
        return [name for name in files.names(folder) if self.reads(name)]

    def expected(self, name: str, files: Container) -> tuple[str, str] | None:
        """The part of a name that nearly fits and what it should be; None for a stranger."""
        parts = name.split("/")
        base = parts[-1]
        ending = base.rpartition(".")[2].casefold() if "." in base else ""
        if name in self.unread or ending in DOCUMENT_ENDINGS:
            return None
        if base.startswith(".") and not base.endswith(DATA_ENDINGS):  # .gitkeep, .~lock.conflicts.csv#
            return None
        if any(name.endswith(mark) and name.removesuffix(mark) in files for mark in BACKUP_ENDINGS):
            return None
        for place in range(len(parts), 0, -1):
            stem = _stem(parts[place - 1])
            stems = (stem, stem + "s") if place == len(parts) and f".{ending}" in DATA_ENDINGS else (stem,)
            for known in stems:
                if known in self.meant:
                    return "/".join(parts[:place]), self.meant[known]
        return None


def _stem(part: str) -> str:
    """A file name without case, endings, copy numbers and marks nobody sees."""
    text = unicodedata.normalize("NFKC", part[:LONGEST_NAME]).casefold()
    text = "".join(mark for mark in text if unicodedata.category(mark) != "Cf").strip().lstrip(".")
    return COPY_NUMBER.sub("", text.split(".", 1)[0]).strip().rstrip("~")


SIDE_FILES = ("bids.csv", "conflicts.csv", "loads.csv", "demands.csv", "locks.csv", "rules.json")
SCORES = {"scores": "scores/<signal>.csv"}
LISTS = ("manifest.json", "papers.jsonl", "reviewers.jsonl", "publications.jsonl")
BUNDLE = Layout(
    what="a bundle",
    files=frozenset((*SIDE_FILES, *LISTS)),
    folders={"scores/": ".csv"},
    meant=SCORES
    | {name.split(".")[0]: name for name in (*SIDE_FILES, *LISTS)}
    | {"constraints": "conflicts.csv with the columns paper and reviewer"},
    unread=frozenset({"plan.json"}),
)
DATASET = Layout(
    what="an OpenReview dataset",
    files=frozenset((*SIDE_FILES, "constraints.csv", "metadata.json", "submissions.json", "submissions.jsonl")),
    folders={"archives/": ".jsonl", "submissions/": ".jsonl", "bids/": ".jsonl", "scores/": ".csv"},
    meant=SCORES
    | {name.split(".")[0]: name for name in (*SIDE_FILES, "constraints.csv", "metadata.json")}
    | {
        "archives": "archives/<person>.jsonl",
        "submissions": "submissions.json, submissions.jsonl or submissions/<paper>.jsonl",
        "bids": "bids.csv or bids/<paper>.jsonl",
        "papers": "submissions.json instead of a bundle's papers.jsonl",
        "reviewers": "archives/<person>.jsonl instead of a bundle's reviewers.jsonl",
        "publications": "archives/<person>.jsonl instead of a bundle's publications.jsonl",
        "manifest": "no manifest.json, which belongs to a bundle",
    },
    unread=frozenset({"publications_by_profile_id.json"}),
)


@dataclass(frozen=True)
class Judged:
    """What is wrong with the names of a venue's files.

    Attributes
    ----------
    issues : tuple of Issue
        ``unreadable`` (links to nothing, folders, pipes where a file should be; folders that cannot be looked
        into) and ``misplaced-file`` (case, ending, folder or compression differ).
    notices : tuple of Notice
        ``ignored-file`` for each other file of data, ``not-read`` for other things that are no files.
    meant : frozenset of str
        What the things at fault were meant to be: that these are missing is no second fault.
    """

    issues: tuple[Issue, ...]
    notices: tuple[Notice, ...]
    meant: frozenset[str]


def judge_names(files: Container, layout: Layout) -> Judged:
    """Faults for what nearly fits or should be readable and is not, notices for strangers."""
    issues: dict[str, Issue] = {}
    notices: list[Notice] = []
    meant: set[str] = set()

    def fault(source: str, reason: str, code: str, expected: str = "") -> None:
        issues.setdefault(source, Issue(reason, code, source=source))
        meant.add(expected)

    for name, reason in files.closed.items():
        fault(name, f"{reason}; what lies in it may belong to the venue", "unreadable")
    strangers = []
    for name, reason in files.odd.items():
        if (found := layout.expected(name, files)) is None:
            strangers.append(name)
        else:
            fault(name, f"{reason}; expected {found[1]}", "unreadable", found[1])
    for place in sorted(files.places):
        # Other folders are judged by what is in them.
        if place.endswith(DATA_ENDINGS) and (found := layout.expected(place, files)):
            fault(f"{place}/", f"is a folder; expected {found[1]}", "unreadable", found[1])
    for name in files.readers:
        if layout.reads(name):
            continue
        if found := layout.expected(name, files):
            part, expected = found
            # One fault for a folder of a wrong name, however much it holds.
            source = name if part == name or f"{part}/" in layout.folders else f"{part}/"
            reason = f"is not read: {layout.what} has {expected}; rename, move or unpack it, or take it away"
            fault(source, reason, "misplaced-file", expected)
        elif name.endswith(DATA_ENDINGS) and name not in layout.unread:
            text = f"{name} is no part of {layout.what} and was not read"
            notices.append(Notice("ignored-file", text, data={"file": name}))
    if strangers:
        words = in_words([f"{name} {files.odd[name]}" for name in strangers])
        notices.append(Notice("not-read", f"not read: {words}", data={"files": strangers}))
    return Judged(tuple(issues.values()), tuple(notices), frozenset(meant))
