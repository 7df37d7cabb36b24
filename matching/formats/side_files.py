"""Files beside the two lists of a venue, the same for a bundle and a dataset: they are judged against the lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from matching.formats import table
from matching.formats.bundle_join import KnownPeople, join_demands, join_loads
from matching.formats.bundle_reader import BundleReader
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Submission
from matching.profiles.venue import Bid, DeclaredConflict, ImportedScores, Lock

__all__ = ["SideFiles", "read_side_files"]


@dataclass(frozen=True, eq=False)
class SideFiles:
    """What the side files say; `reviewers` and `submissions` are those given, with limits and demands joined on."""

    reviewers: tuple[Reviewer, ...]
    submissions: tuple[Submission, ...]
    bids: table.Parsed[tuple[Bid, ...]] | None
    conflicts: tuple[DeclaredConflict, ...]
    locks: tuple[Lock, ...]
    scores: tuple[ImportedScores, ...]


def read_side_files(
    reader: BundleReader,
    people: list[tuple[int, Reviewer]],
    papers: list[tuple[int, Submission]],
    known: KnownPeople,
    score_defaults: Mapping[str, float],
    conflict_files: Mapping[str, tuple[str, ...] | None],
) -> SideFiles:
    """Read bids, conflicts, loads, demands, locks and scores; faults and notices go to the reader.

    Parameters
    ----------
    people, papers : list of (int, record)
        With the lines they stand on.
    known : KnownPeople
    score_defaults : mapping of str to float
        Signal -> value of pairs that its table does not list.
    conflict_files : mapping of str to tuple of str or None
        File -> its columns, None where it has a header.
    """
    # Without the lists every reference would be one to nobody, which hides the fault that explains them all.
    listed = bool(papers and people) or not reader.faulty
    ids = {value.id for _, value in papers} | reader.broken["papers.jsonl"]
    # Swapped columns can only be told where there is something to compare with.
    sets: dict[str, Any] = {"submissions": ids, "reviewers": known.names()} if papers and people else {}
    loads = reader.delimited("loads.csv", table.read_loads)
    demands = reader.delimited("demands.csv", table.read_demands)
    bids = reader.delimited("bids.csv", table.read_bids, **sets)
    conflicts = {
        name: reader.delimited(name, table.read_conflicts, columns=columns, **sets)
        for name, columns in conflict_files.items()
    }
    locks = reader.delimited("locks.csv", table.read_locks, **sets)
    scores = reader.scores(score_defaults, sets)
    if listed:
        people = join_loads(people, known, loads, reader.of("loads.csv"))
        papers = join_demands(papers, demands, reader.of("demands.csv"))
        reader.note_unknown("bids.csv", bids, ids, known)
        for name, declared in conflicts.items():
            reader.refuse_unknown(name, declared, ids, known)
        reader.refuse_unknown("locks.csv", locks, ids, known)
    every = dict.fromkeys(item for declared in conflicts.values() if declared for item in declared.records)
    return SideFiles(_values(people), _values(papers), bids, tuple(every), locks.records if locks else (), scores)


def _values(records: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    return tuple(value for _, value in records)
