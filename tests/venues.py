"""Short ways to write the small venues of the reported faults."""

import numpy as np

from matching import Bid, DeclaredConflict, ImportedScores, Lock, Params, Reviewer, Submission, Venue

__all__ = ["HAND", "given", "pairs_of", "papers", "people", "table"]

HAND = Params(weights={"hand": 1.0}, affiliation_conflicts=True)
"""Only the hand-made scores count; there are no texts in these venues."""


def people(**loads):
    """r1=2 makes a reviewer r1 with load_max 2; None leaves it to the venue."""
    return tuple(Reviewer(id=name, load_max=most) for name, most in loads.items())


def papers(**demands):
    """p1=3 makes a submission p1 with demand 3; None leaves it to the venue."""
    return tuple(Submission(id=name, demand=wanted) for name, wanted in demands.items())


def table(scores, name="hand", default=None):
    """Scores from {"r1-p1": 0.9}, as in the notation of the cases."""
    pairs = [key.split("-") for key in scores]
    return ImportedScores(
        name, [pair[1] for pair in pairs], [pair[0] for pair in pairs], np.array(list(scores.values())), default
    )


def given(reviewers, submissions, scores=None, conflicts=(), bids=(), locks=(), **options):
    """A venue; conflicts and locks as ["r1-p1"], bids as {"r1-p1": "high"}."""
    return Venue(
        reviewers=reviewers,
        submissions=submissions,
        scores=() if scores is None else (table(scores, default=0.0),),
        conflicts=tuple(DeclaredConflict(key.split("-")[1], key.split("-")[0]) for key in conflicts),
        bids=tuple(Bid(key.split("-")[1], key.split("-")[0], label) for key, label in dict(bids).items()),
        locks=tuple(Lock(key.split("-")[1], key.split("-")[0]) for key in locks),
        **options,
    )


def pairs_of(plan):
    """A plan as a set of (reviewer, submission) ids."""
    return {(pair.reviewer, pair.submission) for pair in plan.assignments}
