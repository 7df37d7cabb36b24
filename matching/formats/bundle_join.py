"""Side files of a bundle joined onto its people and papers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from matching.formats.faults import Faults
from matching.formats.records import publication_from_dict
from matching.formats.table import Demand, Load, Parsed
from matching.profiles.identity import fold_id
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Submission

__all__ = ["KnownPeople", "join_demands", "join_loads", "join_publications"]

People = list[tuple[int, Reviewer]]
Papers = list[tuple[int, Submission]]


class KnownPeople:
    """Who a name in a side file means, as `matching.profiles.people` will find it, and names of records at fault.

    Parameters
    ----------
    reviewers : iterable of Reviewer
    broken : iterable of str
        Names of records that could not be read: a reference to one of them is not a second fault.
    """

    def __init__(self, reviewers: Iterable[Reviewer], broken: Iterable[str] = ()) -> None:
        self.exact: dict[str, str] = {}
        self.folded: dict[str, str | None] = {}  # None where several people share a name
        for reviewer in reviewers:
            for name in (reviewer.id, *reviewer.aliases):
                self.exact.setdefault(name, reviewer.id)
            for name in {fold_id(name) for name in (reviewer.id, *reviewer.aliases, *reviewer.emails)} - {""}:
                if self.folded.setdefault(name, reviewer.id) != reviewer.id:
                    self.folded[name] = None
        self.broken = {fold_id(name) for name in broken}

    def __contains__(self, name: str) -> bool:
        return name in self.exact or (key := fold_id(name)) in self.folded or key in self.broken

    def names(self) -> set[str]:
        """Everything somebody is known by."""
        return {*self.exact, *self.folded}

    def owner(self, name: str, faults: Faults, line: int) -> str | None:
        """Id of the reviewer a name means, or None after noting that it means nobody or several."""
        name = name.strip()
        owner = self.exact.get(name) or self.folded.get(fold_id(name))
        if name not in self:
            faults.add(f"there is no reviewer {name!r}", "unknown-id", "reviewer", line, name)
        elif owner is None and fold_id(name) not in self.broken:
            faults.add(f"{name!r} belongs to several reviewers; use the id", "ambiguous-id", "reviewer", line, name)
        return owner


def join_publications(
    people: People, known: KnownPeople, lines: Iterable[tuple[int, dict[str, Any]]], faults: Faults
) -> People:
    """Publications of publications.jsonl after those that came with the reviewers."""
    added: dict[str, dict[str, Publication]] = {
        value.id: {item.id: item for item in value.publications} for _, value in people
    }
    for line, record in lines:
        record = dict(record)
        name = record.pop("reviewer", None)
        value = publication_from_dict(record, faults, row=line, default_id=f"publications.jsonl#{line}")
        if not isinstance(name, str) or not name.strip():
            faults.add("needs the id of a reviewer", "missing-id", "reviewer", line, name)
            continue
        owner = known.owner(name, faults, line)
        if value is not None and owner is not None and added[owner].setdefault(value.id, value) != value:
            reason = f"publication {value.id!r} of {owner!r} is listed before with other content"
            faults.add(reason, "duplicate-id", "id", line, value.id)
    return [(line, replace(value, publications=tuple(added[value.id].values()))) for line, value in people]


def join_loads(people: People, known: KnownPeople, loads: Parsed[tuple[Load, ...]] | None, faults: Faults) -> People:
    """Limits of loads.csv where the reviewer states none; another number is a contradiction that names both."""
    if loads is None:
        return people
    given: dict[str, tuple[int, Load]] = {}
    for load, line in zip(loads.records, loads.lines.tolist()):
        owner = known.owner(load.reviewer, faults, line)
        if owner is None:
            continue
        first, other = given.setdefault(owner, (line, load))
        if (other.load_max, other.load_min) != (load.load_max, load.load_min):
            reason = f"{load.reviewer!r} and {other.reviewer!r} on line {first} are one person with different limits"
            faults.add(reason, "contradiction", "reviewer", line, load.reviewer)
    joined = []
    for place, value in people:
        line, load = given.get(value.id, (0, Load(value.id)))
        limits = {}
        for name in ("load_max", "load_min"):
            own, other_limit = getattr(value, name), getattr(load, name)
            if own is not None and other_limit is not None and own != other_limit:
                reason = f"{name} {other_limit} of {value.id!r} contradicts {own} in reviewers.jsonl, line {place}"
                faults.add(reason, "contradiction", name, line, other_limit)
            limits[name] = own if own is not None else other_limit
        most, least = limits["load_max"], limits["load_min"]
        if most is not None and least is not None and least > most and line:
            faults.add(
                f"load_min {least} of {value.id!r} is above load_max {most}", "contradiction", "load_min", line, least
            )
        joined.append((place, replace(value, **limits)))
    return joined


def join_demands(papers: Papers, demands: Parsed[tuple[Demand, ...]] | None, faults: Faults) -> Papers:
    """Demands of demands.csv where the submission states none; another number is a contradiction."""
    if demands is None:
        return papers
    ids = {value.id for _, value in papers}
    given: dict[str, tuple[int, int | None]] = {}
    for demand, line in zip(demands.records, demands.lines.tolist()):
        if demand.submission not in ids:
            faults.add(
                f"there is no submission {demand.submission!r}", "unknown-id", "submission", line, demand.submission
            )
        given[demand.submission] = (line, demand.demand)
    joined = []
    for place, value in papers:
        line, wanted = given.get(value.id, (0, None))
        if value.demand is not None and wanted is not None and value.demand != wanted:
            reason = f"demand {wanted} of {value.id!r} contradicts {value.demand} in papers.jsonl, line {place}"
            faults.add(reason, "contradiction", "demand", line, wanted)
        joined.append((place, replace(value, demand=value.demand if value.demand is not None else wanted)))
    return joined
