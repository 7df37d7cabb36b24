"""The evidence of pairs: read where it is stored, asked for where it is not, and put into words.

No text is scored here. What a worker has not left behind it is asked for; a request waits a few seconds for the
answer and says so where it takes longer, so that a large venue never holds up this process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row

from service.handlers.common import Record
from service.store.evidence import Finding, Question, load_findings
from service.wiring import Services

if TYPE_CHECKING:
    from matching.explain.exclusions import Exclusions

__all__ = ["bare", "with_evidence"]

WAIT_SECONDS = 8.0  # a request waits for a worker
MOST_WAITING = 2  # requests of one process that wait: with those that wait for plans less than all of its threads
POLL = 0.05  # seconds between two looks
AGAIN_SECONDS = 60.0  # after which a question that could not be answered is asked again
SAME = 1e-9  # difference up to which a stored affinity is the sum of parts worked out later
NAMED = 5  # people better placed, and publications, told in sentences; the numbers are complete
SIGNALS = {"text": "texts", "areas": "subject areas", "bids": "bid"}
WAITING = "the evidence is being worked out, or waits for a worker that is free; ask again in a moment"

_WAITERS = threading.BoundedSemaphore(MOST_WAITING)


def bare() -> Record:
    """The keys of an explanation that say what it rests on, without any of it."""
    return {
        "summary": [], "eligible": None, "standing": None, "better_placed": None, "evidence": None,
        "evidence_state": "none", "notes": [],
    }  # fmt: skip


def with_evidence(
    services: Services, plan: Row[Any], facts: Exclusions, items: Sequence[Record], pair: bool
) -> list[Record]:
    """The items of one page with evidence, standing, the people better placed, and sentences.

    Parameters
    ----------
    plan : Row
        With a result.
    facts : Exclusions
        Of the venue stored with the plan: they tell who takes part.
    items : sequence of dict
        Of `service.handlers.explanations`.
    pair : bool
        Whether each item is a pair somebody asked about, so that its evidence is wanted in any case.

    Returns
    -------
    list of dict
        With summary, eligible, standing, better_placed, evidence, evidence_state and notes filled in. Affinity and
        parts of pairs outside the plan are added where they are known.
    """
    taking_part = [_takes_part(facts, item) for item in items]
    questions: list[Question | None] = []
    for item, inside in zip(items, taking_part):
        alone = pair and not item["assigned"]
        questions.append((item["submission"], item["reviewer"] if alone else "") if inside else None)
    wanted = {key for key, item in zip(questions, items) if key is not None and (pair or item["assigned"])}
    found = _found(services, plan, [key for key in questions if key is not None], sorted(wanted))
    return [
        item if key is None else _completed(item, found.get(key), key in wanted) for item, key in zip(items, questions)
    ]


def _takes_part(facts: Exclusions, item: Record) -> bool:
    """Whether both sides of an item have a row and a column in the plan."""
    if item["submission"] is None or item["reviewer"] is None:
        return False
    paper = facts.submission(item["submission"])
    people = facts.people(item["reviewer"])
    return paper is not None and paper.at >= 0 and any(one.id == item["reviewer"] and one.at >= 0 for one in people)


def _found(
    services: Services, plan: Row[Any], questions: Sequence[Question], wanted: Sequence[Question]
) -> dict[Question, Finding]:
    """What is stored of the questions; those wanted are asked for where nothing is, and waited for a while."""

    def look(keys: Sequence[Question]) -> dict[Question, Finding]:
        with services.store.read() as connection:
            return load_findings(connection, plan.key, keys)

    found = look(questions) if questions else {}
    stale = time.time() - AGAIN_SECONDS
    open_ones = [key for key in wanted if key not in found or (found[key].failed and found[key].created_at < stale)]
    if not open_ones:
        return found
    services.jobs.explain(plan.id, open_ones)
    answers = {key: entry for key, entry in look(open_ones).items() if not _is_old(entry, stale)}
    if len(answers) < len(open_ones) and services.jobs.alive() and _WAITERS.acquire(blocking=False):
        try:
            until = time.monotonic() + WAIT_SECONDS
            while len(answers) < len(open_ones) and time.monotonic() < until:
                time.sleep(POLL)
                answers = {key: entry for key, entry in look(open_ones).items() if not _is_old(entry, stale)}
        finally:
            _WAITERS.release()
    return {**found, **answers}


def _is_old(entry: Finding, stale: float) -> bool:
    return entry.failed and entry.created_at < stale


def _completed(item: Record, found: Finding | None, is_wanted: bool) -> Record:
    if found is None:
        return {**item, "evidence_state": "waiting", "notes": [WAITING]} if is_wanted else _on_request(item)
    if found.failed:
        words = f"the evidence could not be worked out ({found.body['code']}): {found.body['detail']}"
        return {**item, "evidence_state": "failed", "notes": [words]}
    explained, name = found.body, item["reviewer"]
    pair = next((entry for entry in explained["pairs"] if entry["standing"]["reviewer"] == name), None)
    if pair is None:
        standing = next((entry for entry in explained["candidates"] if entry["reviewer"] == name), None)
        return {**_on_request(item), "eligible": _eligible(explained, standing), "standing": standing}
    standing, evidence = pair["standing"], dict(pair["evidence"])
    affinity, parts = evidence.pop("affinity"), evidence.pop("parts")
    notes = list(explained["notes"])
    if item["affinity"] is None:
        item = {**item, "affinity": affinity, "parts": parts}
    elif not item["parts"]:  # an alternate: its affinity is the plan's own, and parts must add up to it
        if affinity is not None and abs(affinity - item["affinity"]) <= SAME:
            item = {**item, "parts": parts}
        else:
            notes.append("the affinity worked out now is not the plan's own, so its parts are left out")
    better = {
        "count": pair["better"],
        "by_reason": pair["better_reasons"],
        "people": [
            entry
            for entry in explained["candidates"]
            if entry["reason"] != "assigned"
            and entry.get("role") == standing.get("role")
            and entry["affinity"] is not None
            and standing["affinity"] is not None
            and entry["affinity"] > standing["affinity"]
        ],
    }
    eligible = _eligible(explained, standing)
    return {
        **item,
        "summary": list(_sentences(item, standing, better, evidence, eligible)),
        "eligible": eligible,
        "standing": standing,
        "better_placed": better,
        "evidence": evidence,
        "evidence_state": "given",
        "notes": notes,
    }


def _eligible(explained: Mapping[str, Any], standing: Mapping[str, Any] | None) -> int:
    """People who could be assigned, of the role of a standing where there are several."""
    role = None if standing is None else standing.get("role")
    for entry in explained.get("roles") or ():
        if entry["role"] == role:
            return int(entry["eligible"])
    return int(explained["eligible"])


def _on_request(item: Record) -> Record:
    return {**item, "evidence_state": "on-request"}


def _sentences(
    item: Record, standing: Mapping[str, Any], better: Mapping[str, Any], evidence: Mapping[str, Any], eligible: int
) -> list[str]:
    """What a chair reads first."""
    out = []
    if item["parts"]:
        total = "unknown" if item["affinity"] is None else f"{item['affinity']:.3f}"
        out.append(f"affinity {total} = " + " + ".join(_part(part) for part in item["parts"]))
    place = f"rank {standing['rank']} of {eligible} eligible" if standing["rank"] else "not eligible"
    out.append(f"{place}; {standing['words']}; load {standing['load']} of {standing['load_max']}")
    if better["count"]:
        why = ", ".join(f"{count} {reason}" for reason, count in better["by_reason"].items())
        out.append(f"better placed and not chosen: {better['count']} ({why})")
        telling = [entry for entry in better["people"] if entry["reason"] != "lower"]
        out += [f"better placed: {entry['reviewer']}, {entry['words']}" for entry in telling[:NAMED]]
    elif standing["affinity"] is not None:
        out.append("nobody who is not chosen has a higher affinity")
    for entry in evidence["publications"][:NAMED]:
        year = f" ({entry['year']})" if entry["year"] is not None else ""
        shared = [f'"{passage}"' for passage in entry["passages"]]
        shared += [term for term in entry["terms"] if not any(term in passage for passage in entry["passages"])]
        words = f"; in both texts: {', '.join(shared)}" if shared else ""
        out.append(f"{entry['share']:.0%} of the text part from {entry['title']}{year}{words}")
    out.append(f"confidence {evidence['confidence']}: {evidence['confidence_words']}")
    return out


def _part(part: Mapping[str, Any]) -> str:
    name = SIGNALS.get(part["signal"], part["signal"])
    stated = f"{part['used']:.3f}" + ("" if part["value"] is not None else ", a stand-in")
    return f"{part['contribution']:.3f} {name} ({part['weight']:g} x {stated})"
