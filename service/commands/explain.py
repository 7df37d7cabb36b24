"""The command `revmatch explain`: what it prints."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from matching.explain.evidence import Evidence
from matching.explain.explanation import Explanation, PairExplanation
from matching.explain.standing import Standing
from matching.formats.folder import read_folder
from matching.formats.plans import read_plan_json
from matching.plan.plan import ScorePart
from matching.questions import explanation
from matching.resources import Resources
from matching.roles import REVIEWER
from matching.roles import in_words as words_of

__all__ = ["in_words", "report"]

PUBLICATIONS_SHOWN = 5
WIDTH = 110
NAMES = {"text": "texts", "areas": "subject areas", "bids": "bid"}


def report(folder: Path, plan: Path, submission: str, reviewer: str | None, resources: Resources, as_json: bool) -> str:
    """Explain one submission of a plan: text or one JSON object.

    Raises
    ------
    InvalidFileError, InvalidVenueError, InvalidParamsError, MissingExtraError
        The folder or the plan cannot be used.
    UnknownIdError
        No such submission or reviewer.
    """
    venue, _ = read_folder(folder)
    found = explanation(
        venue, None, read_plan_json(plan.read_bytes(), name=plan.name), submission, reviewer, resources=resources
    )
    if as_json:
        return json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False, indent=2)
    return in_words(found)


def in_words(found: Explanation) -> str:
    """An explanation as lines for a terminal."""
    title = f": {found.title}" if found.title else ""
    lines = textwrap.wrap(f"{found.submission}{title}", WIDTH)
    lines.append(f"{found.received} of {found.demand} reviews assigned; {found.eligible} people are eligible.")
    eligible = {entry.role: entry.eligible for entry in found.roles}
    for entry in found.roles:
        told = f"{entry.received} of {entry.demand} assigned, {entry.eligible} people eligible"
        lines.append(f"  {words_of(entry.role)}: {told}")
    lines += [f"Note: {note}." for note in found.notes]
    for pair in found.pairs:
        lines += ["", *_pair(pair, eligible.get(pair.standing.role, found.eligible))]
    lines += ["", "Everybody by affinity, down to those after the last one chosen or asked about:"]
    lines += [line for standing in found.candidates for line in _standing(standing)]
    if found.not_listed:
        lines.append(f"  and {found.not_listed} more above the last one chosen or asked about")
    return "\n".join(lines)


def _pair(pair: PairExplanation, eligible: int) -> list[str]:
    standing, evidence = pair.standing, pair.evidence
    place = f"rank {standing.rank} of {eligible} eligible" if standing.rank else "not eligible"
    affinity = "unknown" if standing.affinity is None else f"{standing.affinity:.3f}"
    told = _who(standing) if standing.reason == "assigned" else f"{_who(standing)}: {standing.words}"
    lines = textwrap.wrap(told, WIDTH, subsequent_indent="  ")
    lines.append(f"  affinity {affinity}, {place}; load {standing.load} of {standing.load_max}")
    if pair.better:
        why = ", ".join(f"{count} {reason}" for reason, count in pair.better_reasons.items())
        lines.append(f"  better placed and not chosen: {pair.better} ({why}); see below")
    lines.append("  = " + " + ".join(_part(part) for part in evidence.parts) if evidence.parts else "  no signal")
    sure = f"confidence {evidence.confidence}: {evidence.confidence_words}"
    lines += textwrap.wrap(sure, WIDTH, initial_indent="  ", subsequent_indent="  ")
    return lines + _publications(evidence)


def _publications(evidence: Evidence) -> list[str]:
    if not evidence.publications:
        return []
    lines = ["  what carries the text part:"]
    for publication in evidence.publications[:PUBLICATIONS_SHOWN]:
        year = f" ({publication.year})" if publication.year is not None else ""
        fit = "" if publication.fit is None else f", fits by itself {publication.fit:.2f}"
        lines += textwrap.wrap(
            f"{publication.share:4.0%}  {publication.title}{year}{fit}",
            WIDTH,
            initial_indent="    ",
            subsequent_indent="          ",
        )
        shared = [f'"{passage}"' for passage in publication.passages] + [
            term for term in publication.terms if not any(term in passage for passage in publication.passages)
        ]
        if shared and publication.share * len(evidence.publications) >= 1:  # words of the others say little
            told = f"in both texts: {', '.join(shared)}"
            lines += textwrap.wrap(told, WIDTH, initial_indent="          ", subsequent_indent="          ")
    rest = evidence.publications[PUBLICATIONS_SHOWN:]
    if rest:
        lines.append(
            f"    {sum(entry.share for entry in rest):4.0%}  {len(rest)} more publication{'s' if len(rest) > 1 else ''}"
        )
    return lines


def _standing(standing: Standing) -> list[str]:
    affinity = "   ?  " if standing.affinity is None else f"{standing.affinity:6.3f}"
    rank = f"{standing.rank:>4}" if standing.rank else "   -"
    told = f"{rank}  {affinity}  {_who(standing)}: {standing.words}"
    return textwrap.wrap(told, WIDTH, subsequent_indent=" " * 14)


def _part(part: ScorePart) -> str:
    name = NAMES.get(part.signal, part.signal)
    stated = f"{part.used:.3f}" if part.value is not None else f"{part.used:.3f}, a stand-in"
    return f"{part.contribution:.3f} {name} ({part.weight:g} x {stated})"


def _who(standing: Standing) -> str:
    named = f"{standing.reviewer} ({standing.name})" if standing.name else standing.reviewer
    return named if standing.role == REVIEWER else f"{named}, {standing.role.replace('_', ' ')}"
