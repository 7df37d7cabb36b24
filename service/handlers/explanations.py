"""Why a pair is in a plan, and why another one is not: the plan's rows and the facts of its stored venue together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row

from matching.errors import InputError, Issue
from matching.params import Params
from matching.roles import REVIEWER
from service.engine import engine_or_default
from service.errors import NotFoundError
from service.handlers.common import Page, Record, cut_page, page_start
from service.handlers.evidence import bare, with_evidence
from service.handlers.results import document, finished, show_alternate, show_assignment
from service.store import plans
from service.store.snapshot import load_snapshot
from service.store.tables import alternates, assignments
from service.translate import venue_from_snapshot
from service.wiring import Services

if TYPE_CHECKING:  # it loads scikit-learn, which a process that explains nothing does not need
    from matching.explain.exclusions import Exclusion, Exclusions, Party

__all__ = ["FORMULA", "plan_certificate", "plan_explanations"]

FORMULA = (
    "bound = sum over submissions of demand * price"
    " + sum over reviewers of (load_max * max(price, 0) - load_min * max(-price, 0))"
    " + sum over lawful pairs of max(0, affinity - price of the submission - price of the reviewer)"
    " + penalty * missing + locked_affinity."
    " demand, load_max and load_min are what the locked pairs leave; submissions whose demand and reviewers whose"
    " load_max is then 0 take no part. A pair is lawful if it is neither in conflict nor locked, and its affinity is"
    " one the options allow (allow_unknown, allow_zero)."
)
"""How the bound is recomputed from a certificate; `matching.plan.audit` is the same as code."""

FORMULA_OF_PROOFS = (
    "For each of proofs: bound = f*(y) + sum over constraints of multiplier * (g*(z) - at_least) + B, where f is the"
    " objective, g that of the earlier one, * the convex conjugate (the supremum of f(U) - y . U), y and z the weights."
    " B is the sum "
    + FORMULA.removeprefix("bound = ").rstrip(".")
    + ", with the prices of the proof, and with affinity replaced by (y + sum of multiplier * z) * affinity minus the"
    " prices of the rules the pair counts in, plus what those rules pay: price times at_most, or at_least where the"
    " price is negative. The conjugates: total 0 at weights of 1; level 0 at weights that sum to 1; floors minus the"
    " sum of weight * floor; shortfall the sum of (1 - weight) * t; welfare the sum of h(a) - weight * a, where h(x) ="
    " log(x / unit) at alpha 1, else (x / unit)**(1 - alpha) / (1 - alpha), and a has the slope h'(a) = weight; each"
    " over the submissions with demand but those in without. Value and bound of welfare are stated as the sum which,"
    " given to all of them alike, has that welfare; below floor h goes on as its tangent. Where whole is true, the"
    " bound is at most that of whole sets: each submission adds its best set of demand lawful people, at what their sum"
    " is worth minus their prices, to what reviewers pay. Worth is h for welfare, the sum for the total, min(sum, t)"
    " for a shortfall and 0 for a level; a total or a shortfall among the constraints adds the same times multiplier,"
    " and takes multiplier * at_least off once. Sets below the floors of a constraint are left out, and for a level"
    " those below height: then the number is below 0, so no plan reaches height, which is the bound."
    " For randomised and perturbed each excess above the prices counts times the pair's cap; for perturbed affinity is"
    " lowered by 2 * beta * anchor and beta * (sum of anchor**2) is added, for robust it is lowered by radius *"
    " standard_error * anchor, whose squares sum to at most 1 (locked pairs too; anchor is 0 where none is listed). A"
    " lottery lists the lawful plans it is over: the chances of those that hold a pair sum to its probability. Envy and"
    " evenness are bounded by the same prices as matching.plan.proofs says."
)
"""The same for rules and for other objectives than the total."""

FORMULA_OF_ROLES = (
    " Each role of a submission is a submission here, called <id>/<role> but for reviewers; only people of the role"
    " are lawful for it, and every affinity, those of locked pairs too, is multiplied by the weight of the role."
)
"""What is added for plans that name roles."""

MOST_KEPT = 2  # venues whose facts stay in memory: a chair asks about one plan many times

_KEPT: dict[tuple[str, str, str], Exclusions] = {}


def plan_explanations(
    services: Services,
    plan: str,
    submission: str | None = None,
    reviewer: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Page:
    """Why these pairs, and why not the others.

    Parameters
    ----------
    submission : str or None
        Its reviewers come first, then its alternates, then everybody who cannot review it.
    reviewer : str or None
        Id, alias, address, or another account; with `submission` the one pair, assigned or not; alone the person's
        submissions, alternates, and what the person cannot review.

    Returns
    -------
    items : list of dict
        submission, reviewer, assigned, code, affinity, locked, probability, parts, reasons, conflicts, alternate,
        and what `service.handlers.evidence.with_evidence` adds. A side is None where the reason is the other's alone.
        Evidence is looked up for those assigned and, if both are given, for the pair asked about, whatever became of
        it.
    cursor : str or None

    Raises
    ------
    InputError
        ``invalid-input``: neither is given.
    NotFoundError
        No such plan, or a name nobody in the plan's venue has.
    StateConflictError
        The plan has no result, or none yet.
    """
    if submission is None and reviewer is None:
        reason = "give a submission, a reviewer, or both"
        raise InputError(issues=[Issue(reason, "missing", "submission", source="query")])
    (after,), size = page_start(services, cursor, limit)
    with services.store.read() as connection:
        row = finished(connection, plan)
        facts = _facts(services, connection, row)
        paper = None if submission is None else facts.submission(submission)
        people = None if reviewer is None else facts.people(reviewer)
        for kind, name, found in (("submission", submission, paper), ("reviewer", reviewer, people)):
            if name is not None and not found:
                raise NotFoundError(f"{kind} {name!r} is unknown in the venue of this plan", kind=kind, id=name)
        teller = _Teller(connection, row, facts)
        if paper is not None and people is not None:
            items = [teller.pair(paper, person) for person in people]
        elif paper is not None:
            items = list(teller.of_submission(paper))
        else:
            items = [item for person in people or () for item in teller.of_person(person)]
    shown, following = cut_page(items, after, size)
    return with_evidence(services, row, facts, shown, pair=paper is not None and people is not None), following


def plan_certificate(services: Services, plan: str) -> Record:
    """The proof: {"plan", "status", "value", "bound", "gap", "certificate", "input_hash", "venue_hash", "provenance"}.

    Raises NotFoundError, and StateConflictError where the plan has no result.
    """
    with services.store.read() as connection:
        row = finished(connection, plan)
        facts = _facts(services, connection, row)
        certificate = document(connection, row, "certificate")
        provenance = document(connection, row, "provenance")
        weights = _weights(row)
        held = plans.locked_affinity(connection, row.key)
        locked = sum(weights.get(role or REVIEWER, 1.0) * affinity for role, affinity in held.items())
    certificate.setdefault("proofs", [])  # plans stored before there were rules have none
    prices, loads = certificate["submission_prices"], facts.loads
    certificate["submissions"] = [
        {"id": name, "demand": count, "price": prices.get(name)} for name, count in facts.demand.items()
    ]
    certificate["reviewers"] = [
        {"id": name, "load_max": most, "load_min": least, "price": certificate["reviewer_prices"].get(name)}
        for name, (most, least) in loads.items()
    ]
    formula = FORMULA_OF_PROOFS if certificate["proofs"] else FORMULA
    certificate.update(locked_affinity=locked, formula=formula + (FORMULA_OF_ROLES if weights else ""))
    numbers = {"status": row.status, "value": row.value, "bound": row.bound, "gap": row.gap}
    hashes = {"input_hash": row.input_hash, "venue_hash": row.venue_hash}
    return {"plan": row.id, **numbers, "certificate": certificate, **hashes, "provenance": provenance}


def _weights(row: Row[Any]) -> dict[str, float]:
    """What affinities of each role count in a plan that names roles; empty for others."""
    params = Params.from_mapping(json.loads(row.params))
    return {wish.name: wish.weight for wish in params.role_wishes} if params.roles else {}


def _facts(services: Services, connection: Connection, row: Row[Any]) -> Exclusions:
    """What rules out pairs of a plan, from the venue as it was stored with the plan."""
    key = (services.store.url, row.venue_hash, row.params)
    kept = _KEPT.get(key)
    if kept is None:
        venue = venue_from_snapshot(load_snapshot(connection, row.venue_hash))
        kept = engine_or_default(services.engine).exclusions(venue, Params.from_mapping(json.loads(row.params)))
        while len(_KEPT) >= MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)), None)
        _KEPT[key] = kept
    return kept


class _Teller:
    """Finds the words for pairs of one plan."""

    def __init__(self, connection: Connection, row: Row[Any], facts: Exclusions) -> None:
        self.connection, self.row, self.facts = connection, row, facts

    def of_submission(self, paper: Party) -> Iterator[Record]:
        """Reviewers, alternates, and everybody who is ruled out."""
        if (why := self.facts.of_submission(paper)) is not None:
            yield _item(paper.id, None, why.code, why.reasons)
            return
        assigned = self._rows(assignments, paper.id)
        yield from map(_assigned, assigned)
        yield from map(self._alternate, self._rows(alternates, paper.id))
        taken = {row.reviewer for row in assigned}  # a lock holds whatever is unknown
        for party, why in self.facts.excluded(paper):
            if party.id not in taken:
                yield _excluded(paper, party, why)

    def of_person(self, person: Party) -> Iterator[Record]:
        """Submissions, alternates, and what the person cannot review."""
        if (why := self.facts.of_person(person)) is not None:
            yield _noted(_item(None, person.id, why.code, why.reasons), person)
            return
        assigned = self._rows(assignments, None, person.id)
        for item in (*map(_assigned, assigned), *map(self._alternate, self._rows(alternates, None, person.id))):
            yield _noted(item, person)
        taken = {row.submission for row in assigned}
        for party, why in self.facts.excluded_from(person):
            if party.id not in taken:
                yield _noted(_excluded(party, person, why), person)

    def pair(self, paper: Party, person: Party) -> Record:
        """The one pair, whatever became of it."""
        assigned = self._rows(assignments, paper.id, person.id)
        spare = self._rows(alternates, paper.id, person.id)
        if assigned:
            item = _assigned(assigned[0])
        elif (why := self.facts.of_pair(paper, person)) is not None:
            item = _excluded(paper, person, why)
        elif spare:
            item = self._alternate(spare[0])
        else:
            item = _item(paper.id, person.id, *self._lawful(paper, person))
        return _noted(item, person)

    def _lawful(self, paper: Party, person: Party) -> tuple[str, tuple[str, ...]]:
        """A lawful pair that is neither assigned nor an alternate."""
        if self.row.status == "limit_without_plan":
            return "no-plan", ("lawful; no plan was found within the time limit",)
        for other in self.facts.other_accounts(person.at):
            if self._rows(assignments, paper.id, other):
                return "other-role", (f"on it as {other} already; nobody has two roles on one submission",)
        load, most = plans.load_in_plan(self.connection, self.row.key, person.id), self.facts.load_max(person.at)
        if load >= most:
            return "full", (f"lawful; the load of {person.id} is full ({load} of {most}) with other submissions",)
        if self._rows(alternates, paper.id):
            words = "lawful; ranks below the alternates listed"
            if not json.loads(self.row.params)["allow_zero"]:
                words += ", or its affinity is 0, which allow_zero rules out"
            return "lower", (words,)
        return "not-assigned", ("lawful; not assigned, and no alternates were listed that would give it a rank",)

    def _alternate(self, row: Row[Any]) -> Record:
        words = f"alternate number {row.rank}; lawful"
        if row.full:
            load = plans.load_in_plan(self.connection, self.row.key, row.reviewer)
            words += f", but the load of {row.reviewer} is full ({load} of {load}) with other submissions"
        elif self.row.status == "optimal":
            words += self._against_assigned(row)
        item = _item(row.submission, row.reviewer, "alternate", (words,))
        return {**item, "affinity": row.affinity, "alternate": show_alternate(row)}

    def _against_assigned(self, row: Row[Any]) -> str:
        """What an alternate with load left lacks beside the reviewers of its submission, in an optimal plan."""
        chosen = [
            entry.affinity
            for entry in self._rows(assignments, row.submission)
            if not entry.locked and entry.role == row.role
        ]
        lowest = min(chosen, default=-math.inf)
        if lowest > row.affinity:
            return f"; its affinity {row.affinity:.4g} is below the lowest assigned here, {lowest:.4g}"
        if lowest == row.affinity:
            # with rules or another objective the proof has prices of its own, and equals are not always equal
            what = (
                "the plan as a whole decides" if self._certificate.get("proofs") else "even loads and the seed decide"
            )
            return f"; its affinity equals the lowest assigned here, and between equals {what}"
        cost = self._cost(row)
        return f"; a plan with this pair is worth at least {cost:g} less" if cost else ""

    def _cost(self, row: Row[Any]) -> float:
        """What a plan with this pair loses for certain, by the prices; rounded down to four places."""
        prices = self._certificate
        if prices.get("proofs"):  # of weighted affinities, with rules or for other objectives
            return 0.0
        name = row.submission if row.role in (None, REVIEWER) else f"{row.submission}/{row.role}"
        whose = prices["submission_prices"]
        price = whose.get(name, whose.get(row.submission, 0.0)) + prices["reviewer_prices"].get(row.reviewer, 0.0)
        worth = row.affinity * _weights(self.row).get(row.role or REVIEWER, 1.0)
        lost = float(price - worth - (self.row.gap or 0.0))
        return max(0.0, math.floor(lost * 1e4) / 1e4)

    @cached_property
    def _certificate(self) -> Mapping[str, Any]:
        return document(self.connection, self.row, "certificate") or {}

    def _rows(self, table: Any, submission: str | None = None, reviewer: str | None = None) -> Sequence[Row[Any]]:
        return plans.page_of_results(self.connection, table, self.row.key, submission, reviewer, -1, None)


def _item(submission: str | None, reviewer: str | None, code: str, reasons: Sequence[str]) -> Record:
    return {
        "submission": submission, "reviewer": reviewer, "assigned": False, "code": code, "affinity": None,
        "locked": False, "probability": None, "parts": [], "reasons": list(reasons), "conflicts": [],
        "alternate": None, **bare(),
    }  # fmt: skip


def _assigned(row: Row[Any]) -> Record:
    shown = show_assignment(row)
    return {**_item(row.submission, row.reviewer, "assigned", ()), **shown, "assigned": True}


def _excluded(paper: Party, person: Party, why: Exclusion) -> Record:
    item = _item(paper.id, person.id, why.code, why.reasons)
    return {**item, "conflicts": [asdict(reason) for reason in why.conflicts]}


def _noted(item: Record, person: Party) -> Record:
    """The item, with what the name asked for is to the person, where it is not the id."""
    return {**item, "reasons": [person.note, *item["reasons"]]} if person.note else item
