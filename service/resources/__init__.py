"""One blueprint a file; `BLUEPRINTS` lists them in the order of the API document."""

from service.resources import bids, conflicts, docs, health, locks, plans, reviewers, scores, submissions, venues

__all__ = ["BLUEPRINTS"]

BLUEPRINTS = (
    venues.blueprint,
    reviewers.blueprint,
    submissions.blueprint,
    bids.blueprint,
    conflicts.blueprint,
    locks.blueprint,
    scores.blueprint,
    plans.blueprint,
    health.blueprint,
    docs.blueprint,
)
