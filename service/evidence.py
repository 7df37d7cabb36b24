"""What pairs rest on, worked out where plans are made: right after a plan, and when somebody asks.

A worker has the vectors and affinities of the plan it has just made, and the sentence encoder it was made with; a web
process has neither and never scores a text. What a worker finds goes into the database, so that nothing is worked out
twice and answers do not depend on which worker is there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import structlog

from matching.errors import MatchingError
from matching.params import Params
from matching.plan.plan import AssignmentPlan
from matching.resources import Resources
from service import logs
from service.config import Settings, resource_settings
from service.engine import Engine, engine_or_default
from service.errors import NotFoundError
from service.store import Store
from service.store.evidence import Finding, Question, load_findings, store_findings
from service.store.plans import find_plan, load_document, page_of_results
from service.store.snapshot import load_snapshot
from service.store.tables import assignments
from service.translate import plan_from_rows, problem_of, venue_from_snapshot

if TYPE_CHECKING:  # it loads scikit-learn along
    from matching.explain.explanation import Reasoner

__all__ = ["MOST_PAIRS", "answer_questions", "forget", "keep", "load_plan", "tell_all"]

log = structlog.get_logger(__name__)

MOST_PAIRS = 1_000  # assigned pairs up to which a plan's evidence is stored unasked; about 10 ms each
BATCH = 20  # submissions a transaction

DOCUMENTS = ("certificate", "unfilled", "provenance")

_LOCK = threading.Lock()
_KEPT: dict[tuple[str, str], Reasoner] = {}
"""(database, plan) -> what explains it; one at most, of the last plan this process made or was asked about."""


def load_plan(store: Store, plan_id: str) -> AssignmentPlan:
    """A stored plan, as far as explaining it or beginning another one from it needs it. Raises NotFoundError."""
    with store.read() as connection:
        row = find_plan(connection, plan_id)
        pairs = page_of_results(connection, assignments, row.key, None, None, -1, None)
        documents = {name: json.loads(load_document(connection, row.key, name) or "{}") for name in DOCUMENTS}
    return plan_from_rows(row, pairs, documents)


def forget() -> None:
    """Give back the memory before a run that needs it."""
    _KEPT.clear()


def keep(store: Store, plan_id: str, reasoner: Reasoner) -> None:
    """Have it at hand for questions to come, in place of any other."""
    forget()
    _KEPT[store.url, plan_id] = reasoner


def tell_all(store: Store, plan_id: str, plan_key: int, reasoner: Reasoner) -> int:
    """Store the evidence of every assigned pair; returns for how many submissions.

    Nothing escapes: the plan is stored, and what is missing can be asked for.
    """
    done = 0
    try:
        names = reasoner.submissions
        for start in range(0, len(names), BATCH):
            questions = [(name, "") for name in names[start : start + BATCH]]
            _write(store, plan_key, dict(_answers(reasoner, questions)))
            done += len(questions)
    except Exception as error:  # a venue deleted meanwhile, a database that is gone
        log.warning("evidence_incomplete", plan=plan_id, submissions=done, exc_info=error)
    return done


def answer_questions(
    plan_id: str, questions: Sequence[Question], database_url: str | None = None, engine: Engine | None = None
) -> int:
    """Work out what is not stored yet, and store it; returns how many answers. Nothing escapes.

    Parameters
    ----------
    questions
        Ids as the plan has them.
    database_url, engine
        As for `service.worker.run_plan`.
    """
    logs.configure()
    store = None
    try:
        if database_url is None:
            settings = Settings.from_environment()
            store = Store(settings.database_url, settings.data_dir)
        else:
            store = Store(database_url)
        with _LOCK:
            return _answer(store, plan_id, questions, engine)
    except NotFoundError:
        return 0  # the venue was deleted meanwhile
    except Exception as error:  # Dask would log what it is handed, words and arguments included
        log.error("evidence_lost", plan=plan_id, exc_info=error)
        return 0
    finally:
        if store is not None:
            store.close()


def _answer(store: Store, plan_id: str, questions: Sequence[Question], engine: Engine | None) -> int:
    with store.read() as connection:
        plan_key = find_plan(connection, plan_id).key
        stored = load_findings(connection, plan_key, questions)
    open_ones = [key for key in dict.fromkeys(questions) if key not in stored or stored[key].failed]
    if not open_ones:
        return 0
    snapshot: dict[str, Any] = {}
    try:
        reasoner = _KEPT.get((store.url, plan_id))
        if reasoner is None:
            forget()
            reasoner = _reasoner(store, plan_id, engine, snapshot)
            keep(store, plan_id, reasoner)
        found = dict(_answers(reasoner, open_ones))
    except NotFoundError:
        raise
    except Exception as error:  # whoever asked must be told that nothing will come
        if not isinstance(error, MatchingError):
            log.error("evidence_crashed", plan=plan_id, exc_info=error)
        found = dict.fromkeys(open_ones, _failure(error, snapshot))
    _write(store, plan_key, found)
    log.info("evidence_found", plan=plan_id, questions=len(found))
    return len(found)


def _reasoner(store: Store, plan_id: str, engine: Engine | None, snapshot: dict[str, Any]) -> Reasoner:
    """What explains a plan, from the venue that was stored with it; `snapshot` is filled along the way."""
    with store.read() as connection:
        row = find_plan(connection, plan_id)
        snapshot.update(load_snapshot(connection, row.venue_hash))
    plan, params = load_plan(store, plan_id), Params.from_mapping(json.loads(row.params))
    resources = Resources(**resource_settings())
    return engine_or_default(engine).reasoner(venue_from_snapshot(snapshot), params, plan, resources=resources)


def _answers(reasoner: Reasoner, questions: Sequence[Question]) -> Iterator[tuple[Question, Finding]]:
    for paper, person in questions:
        try:
            body = reasoner.explain(paper, person or None).to_dict()
        except MatchingError as error:  # of one question; the others go on
            yield (paper, person), _failure(error, {})
            continue
        if person:
            body["pairs"] = [pair for pair in body["pairs"] if pair["standing"]["reviewer"] == person]
        yield (paper, person), Finding(body)


def _failure(error: Exception, snapshot: dict[str, Any]) -> Finding:
    problem = problem_of(error, snapshot)
    return Finding({"code": problem["code"], "detail": problem["detail"]}, True)


def _write(store: Store, plan_key: int, found: dict[Question, Finding]) -> None:
    store.write(lambda connection: store_findings(connection, plan_key, found))
