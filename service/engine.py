"""The seam between service and engine: what is needed of it, and the real one."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from matching.params import Params
from matching.plan.plan import AssignmentPlan
from matching.profiles.venue import Venue
from matching.resources import Resources
from matching.solvers.base import Progress

if TYPE_CHECKING:  # it loads scikit-learn along
    from matching.explain.exclusions import Exclusions
    from matching.explain.explanation import Reasoner

__all__ = ["Engine", "engine_or_default"]


class Engine(Protocol):
    """What the service needs of `matching.engine`; tests hand in stand-ins."""

    def recommend(
        self,
        venue: Venue,
        params: Params,
        *,
        progress: Callable[[Progress], None] | None = None,
        resources: Resources | None = None,
        explain: Callable[[Reasoner], None] | None = None,
        start: AssignmentPlan | None = None,
    ) -> AssignmentPlan:
        """The audited plan. Whatever `progress` raises passes through; `explain` gets what explains its pairs.

        `start` is the plan to begin from, None for none.
        """
        ...

    def reasoner(
        self, venue: Venue, params: Params, plan: AssignmentPlan, *, resources: Resources | None = None
    ) -> Reasoner:
        """What explains the pairs of a plan, from the venue it was made from."""
        ...

    def readiness(self, venue: Venue, params: Params) -> dict[str, Any]:
        """``{"ready": bool, "counts": {...}, "items": [Notice, ...]}``."""
        ...

    def exclusions(self, venue: Venue, params: Params) -> Exclusions:
        """Who cannot be assigned where, and why."""
        ...


def engine_or_default(engine: Engine | None) -> Engine:
    """`engine`, or `matching.engine` for None.

    The module is imported on first use: it loads the solver and scikit-learn, a second or two and a hundred
    megabytes that a web process answering simple requests does not need.
    """
    return engine if engine is not None else cast(Engine, import_module("matching.engine"))
