"""Writers of the delimited files a venue is made of; the twins in `matching.formats.table` read them back unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from matching.formats.delimited import write_table
from matching.formats.table import Demand, Load
from matching.profiles.venue import Bid, DeclaredConflict, ImportedScores, Lock

__all__ = ["write_bids", "write_conflicts", "write_demands", "write_loads", "write_locks", "write_scores"]


def write_scores(scores: ImportedScores, *, for_spreadsheets: bool = False) -> bytes:
    """Twin of `read_scores`: paper, reviewer, score, sorted. The signal's name and default are not in the file."""
    rows = sorted(zip(scores.submissions, scores.reviewers, scores.values.tolist()))
    return write_table(("paper", "reviewer", "score"), rows, for_spreadsheets=for_spreadsheets)


def write_bids(bids: Sequence[Bid], *, for_spreadsheets: bool = False) -> bytes:
    """Twin of `read_bids`: paper, reviewer, bid, sorted."""
    rows = sorted((bid.submission, bid.reviewer, bid.bid) for bid in bids)
    return write_table(("paper", "reviewer", "bid"), rows, for_spreadsheets=for_spreadsheets)


def write_conflicts(conflicts: Sequence[DeclaredConflict], *, for_spreadsheets: bool = False) -> bytes:
    """Twin of `read_conflicts`: paper, reviewer, rule, evidence, since, until, source, sorted; no dates."""
    rows = sorted((item.submission, item.reviewer, item.rule, item.evidence, "", "", item.source) for item in conflicts)
    header = ("paper", "reviewer", "rule", "evidence", "since", "until", "source")
    return write_table(header, rows, for_spreadsheets=for_spreadsheets)


def write_locks(locks: Sequence[Lock], *, for_spreadsheets: bool = False) -> bytes:
    """Twin of `read_locks`: paper, reviewer, sorted."""
    rows = sorted((lock.submission, lock.reviewer) for lock in locks)
    return write_table(("paper", "reviewer"), rows, for_spreadsheets=for_spreadsheets)


def write_loads(loads: Sequence[Load], *, for_spreadsheets: bool = False) -> bytes:
    """Twin of `read_loads`: reviewer, load_max, load_min, by reviewer."""
    rows = [(load.reviewer, load.load_max, load.load_min) for load in sorted(loads, key=lambda load: load.reviewer)]
    return write_table(("reviewer", "load_max", "load_min"), rows, for_spreadsheets=for_spreadsheets)


def write_demands(demands: Sequence[Demand], *, for_spreadsheets: bool = False) -> bytes:
    """Twin of `read_demands`: paper, demand, by submission."""
    rows = [(item.submission, item.demand) for item in sorted(demands, key=lambda item: item.submission)]
    return write_table(("paper", "demand"), rows, for_spreadsheets=for_spreadsheets)
