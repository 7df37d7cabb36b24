"""Engines that do what a test needs; each can be sent to a worker process."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from matching.engine import exclusions, reasoner
from matching.explain.exclusions import Exclusions
from matching.explain.explanation import Reasoner
from matching.notices import Notice
from matching.params import Params
from matching.plan.plan import Alternate, Assignment, AssignmentPlan, Certificate, ScorePart
from matching.profiles.venue import Venue
from matching.resources import Resources
from matching.solvers.base import Progress, Status

Report = Callable[[Progress], None]

DIE, HANG, LONG = 1001, 1002, 1003
"""Seeds that make `BySeed` do what its name says."""


def plan_of(venue: Venue, status: Status = Status.OPTIMAL) -> AssignmentPlan:
    """Every submission to the first reviewer, the second as alternate."""
    papers = sorted(submission.id for submission in venue.submissions)
    people = sorted(reviewer.id for reviewer in venue.reviewers)
    part = ScorePart("text", 0.5, 0.5, 1.0, 0.5)
    has_plan = status is not Status.LIMIT_WITHOUT_PLAN
    return AssignmentPlan(
        status=status,
        assignments=tuple(Assignment(paper, people[0], 0.5, (part,), False, ("near",)) for paper in papers if has_plan),
        alternates=tuple(
            Alternate(paper, name, 1, 0.25, 1, False) for paper in papers for name in people[1:2] if has_plan
        ),
        value=0.5 * len(papers),
        bound=0.5 * len(papers),
        gap=0.0,
        unfilled={papers[0]: 1} if status is Status.INFEASIBLE else {},
        certificate=Certificate(dict.fromkeys(papers, 0.5), dict.fromkeys(people, 0.0), audited=True),
        report={"totals": {"reviews_assigned": len(papers)}},
        diagnosis={"shortfall": 1} if status is Status.INFEASIBLE else {},
        notices=(Notice("ignored-bid", "a bid is ignored"),),
        provenance={"versions": {"numpy": "2"}, "input_hash": "0" * 64, "params": {"time_limit": 5.0}},
    )


class StandIn:
    """Returns a plan of a given status; counts and keeps what it was asked."""

    def __init__(self, status: Status = Status.OPTIMAL, error: Exception | None = None) -> None:
        self.status, self.error = status, error
        self.asked: list[tuple[Venue, Params]] = []

    def recommend(
        self,
        venue: Venue,
        params: Params,
        *,
        progress: Report | None = None,
        resources: Resources | None = None,
        explain: Callable[[Reasoner], None] | None = None,
    ) -> AssignmentPlan:
        self.asked.append((venue, params))
        if progress is not None:
            progress(Progress("flow", 0.5, value=1.0, bound=2.0, gap=1.0))
        if self.error is not None:
            raise self.error
        return plan_of(venue, self.status)

    def readiness(self, venue: Venue, params: Params) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        counts = {"reviewers": len(venue.reviewers), "submissions": len(venue.submissions)}
        return {"ready": True, "counts": counts, "items": [Notice("no-text", "p1 has no text", submissions=("p1",))]}

    def reasoner(
        self, venue: Venue, params: Params, plan: AssignmentPlan, *, resources: Resources | None = None
    ) -> Reasoner:
        if self.error is not None:
            raise self.error
        return reasoner(venue, params, plan, resources=resources)

    def exclusions(self, venue: Venue, params: Params) -> Exclusions:
        return exclusions(venue, params)


class Calling(StandIn):
    """Calls a function in the middle of a run, in the same thread: what others do meanwhile."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self.meanwhile = meanwhile

    def recommend(
        self,
        venue: Venue,
        params: Params,
        *,
        progress: Report | None = None,
        resources: Resources | None = None,
        explain: Callable[[Reasoner], None] | None = None,
    ) -> AssignmentPlan:
        self.meanwhile()
        if progress is not None:
            progress(Progress("sweep", 0.9))
        return plan_of(venue)


class BySeed(StandIn):
    """In a worker process; what it does is the seed of the parameters."""

    def recommend(
        self,
        venue: Venue,
        params: Params,
        *,
        progress: Report | None = None,
        resources: Resources | None = None,
        explain: Callable[[Reasoner], None] | None = None,
    ) -> AssignmentPlan:
        assert progress is not None
        progress(Progress("flow", 0.1))
        if params.rng == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        if params.rng == HANG:
            ctypes.PyDLL(None).sleep(600)  # native code that holds the interpreter's lock
        if params.rng == LONG:
            for step in range(6000):
                progress(Progress("sweep", step / 6000))
                time.sleep(0.05)
        return plan_of(venue)
