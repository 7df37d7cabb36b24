"""Evidence of a plan's pairs as rows: worked out once by a worker, read as often as somebody asks."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, and_, delete, insert, or_, select

from service.store.tables import plan_evidence

__all__ = ["Finding", "Question", "load_findings", "store_findings"]

Question: TypeAlias = tuple[str, str]
"""Submission, and the reviewer asked about or "" for those who were assigned; ids as the plan has them."""

LEVEL = 1  # zlib: a third of the size for next to no time
CHUNK = 200  # questions a statement; SQLite takes a thousand conditions at most


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to a question.

    Attributes
    ----------
    body : mapping
        An explanation as `matching.explain.explanation.Explanation.to_dict` makes it; of a failure
        ``{"code", "detail"}``.
    failed : bool
    created_at : float
        Seconds since 1970.
    """

    body: Mapping[str, Any]
    failed: bool = False
    created_at: float = 0.0


def load_findings(connection: Connection, plan_key: int, questions: Iterable[Question]) -> dict[Question, Finding]:
    """What is stored of these questions."""
    wanted, found = list(dict.fromkeys(questions)), {}
    for start in range(0, len(wanted), CHUNK):
        rows = connection.execute(
            select(plan_evidence).where(plan_evidence.c.plan_key == plan_key, _any_of(wanted[start : start + CHUNK]))
        )
        for row in rows:
            body = json.loads(zlib.decompress(row.body))
            found[row.submission, row.reviewer] = Finding(body, row.failed, row.created_at)
    return found


def store_findings(connection: Connection, plan_key: int, findings: Mapping[Question, Finding]) -> None:
    """Store answers; those that are there already give way."""
    keys, now = list(findings), time.time()
    for start in range(0, len(keys), CHUNK):
        some = keys[start : start + CHUNK]
        connection.execute(delete(plan_evidence).where(plan_evidence.c.plan_key == plan_key, _any_of(some)))
        rows = [
            {
                "plan_key": plan_key, "submission": key[0], "reviewer": key[1], "failed": findings[key].failed,
                "body": zlib.compress(json.dumps(findings[key].body, separators=(",", ":")).encode(), LEVEL),
                "created_at": now,
            }
            for key in some
        ]  # fmt: skip
        connection.execute(insert(plan_evidence), rows)


def _any_of(questions: Iterable[Question]) -> Any:
    table = plan_evidence.c
    return or_(*(and_(table.submission == paper, table.reviewer == person) for paper, person in questions))
