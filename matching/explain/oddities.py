"""Everything odd about an input that does not stop a run, in one list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from matching.constraints.conflicts import Conflicts
from matching.explain.names import PEOPLE_LISTED, listed, some
from matching.explain.readiness import Readings, address_notices, profile_notices, text_notices
from matching.notices import Notice
from matching.profiles.resolve import ResolvedVenue

__all__ = ["oddities", "without_evidence", "without_text"]


def without_evidence(resolved: ResolvedVenue, readings: Readings) -> list[str]:
    """Ids of people about whom nothing is known: no text, no areas, no imported score."""
    scored = {int(col) for table in resolved.scores for col in np.unique(table.cols)}
    return [
        reviewer.id
        for col, reviewer in enumerate(resolved.reviewers)
        if col not in scored and not reviewer.areas and not readings.documents[col]
    ]


def without_text(resolved: ResolvedVenue, readings: Readings) -> list[str]:
    """Ids of submissions without a usable word."""
    return [entry.id for entry, text in zip(resolved.submissions, readings.texts) if not text]


def oddities(
    resolved: ResolvedVenue, conflicts: Conflicts, signals: Sequence[Mapping[str, Any]], readings: Readings
) -> list[Notice]:
    """Everything odd about the input that does not stop a run."""
    out = list(resolved.notices) + list(conflicts.notices)
    has_text = any(signal["name"] == "text" for signal in signals)
    if blank := without_text(resolved, readings) if has_text else []:
        out.append(
            Notice(
                "unscored-submission",
                f"no usable text in {some(len(blank), 'submission')}, which stay unscored: "
                f"{listed(blank, PEOPLE_LISTED)}.",
                tuple(blank),
            )
        )
    mute = without_evidence(resolved, readings)
    if mute:
        whole = resolved.shape[1]
        out.append(
            Notice(
                "no-evidence",
                f"evidence for {whole - len(mute)} of {whole} reviewers; none for {listed(mute, PEOPLE_LISTED)}.",
                reviewers=tuple(mute),
                data={"covered": whole - len(mute), "reviewers": whole},
            )
        )
    elif has_text:
        silent = [entry.id for entry, documents in zip(resolved.reviewers, readings.documents) if not documents]
        if silent:
            out.append(
                Notice(
                    "no-text",
                    f"no text speaks for {some(len(silent), 'reviewer')}: {listed(silent, PEOPLE_LISTED)}.",
                    reviewers=tuple(silent),
                )
            )
    if has_text:
        out += [*profile_notices(resolved, readings), *text_notices(resolved, readings)]
    out += address_notices(resolved)
    bids = resolved.bids
    ignored = conflicts.pairs.contains(bids.rows, bids.cols)
    for row, col in zip(bids.rows[ignored].tolist(), bids.cols[ignored].tolist()):
        who, what = resolved.reviewers[col].id, resolved.submissions[row].id
        out.append(
            Notice("ignored-bid", f"the bid of {who} on {what} is ignored: the pair is in conflict.", (what,), (who,))
        )
    for signal in signals:
        if signal["pairs"] and not signal["weight"]:
            count, unit = signal["pairs"], signal.get("unit", "pairs")
            out.append(
                Notice(
                    "unused-signal",
                    f"{count} {unit if signal['name'] != 'bids' else 'bids'} present, weight 0: "
                    f"the signal {signal['name']} is not used.",
                    data={"signal": signal["name"], "pairs": count},
                )
            )
    return out
