"""One function per use case, no Flask inside."""

from service.handlers.explanations import plan_certificate, plan_explanations
from service.handlers.health import health
from service.handlers.idempotency import Claim, once
from service.handlers.pairs import (
    delete_bids,
    delete_conflicts,
    delete_locks,
    list_bids,
    list_conflicts,
    list_locks,
    put_bids,
    put_conflicts,
    put_locks,
)
from service.handlers.plans import cancel_plan, create_plan, get_plan, list_plans, readiness
from service.handlers.results import (
    plan_alternates,
    plan_assignments,
    plan_diagnosis,
    plan_probabilities,
)
from service.handlers.reviewers import add_reviewers, delete_reviewer, get_reviewer, list_reviewers, put_reviewer
from service.handlers.rules import delete_rules, get_rules, put_rules
from service.handlers.scores import delete_scores, list_scores, list_signals, put_scores
from service.handlers.submissions import (
    add_submissions,
    delete_submission,
    get_submission,
    list_submissions,
    put_submission,
)
from service.handlers.venues import create_venue, delete_venue, get_venue, list_venues, update_venue

__all__ = [
    "Claim",
    "add_reviewers",
    "add_submissions",
    "cancel_plan",
    "create_plan",
    "create_venue",
    "delete_bids",
    "delete_conflicts",
    "delete_locks",
    "delete_reviewer",
    "delete_rules",
    "delete_scores",
    "delete_submission",
    "delete_venue",
    "get_plan",
    "get_reviewer",
    "get_rules",
    "get_submission",
    "get_venue",
    "health",
    "list_bids",
    "list_conflicts",
    "list_locks",
    "list_plans",
    "list_reviewers",
    "list_scores",
    "list_signals",
    "list_submissions",
    "list_venues",
    "once",
    "plan_alternates",
    "plan_assignments",
    "plan_certificate",
    "plan_diagnosis",
    "plan_explanations",
    "plan_probabilities",
    "put_bids",
    "put_conflicts",
    "put_locks",
    "put_reviewer",
    "put_rules",
    "put_scores",
    "put_submission",
    "readiness",
    "update_venue",
]
