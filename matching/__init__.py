"""revmatch's engine: from profiles and abstracts, or from a score matrix, to an audited assignment plan.

Names are loaded on first use, so that importing one part (the audit, say) does not load the solver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matching.engine import recommend as recommend
    from matching.errors import MatchingError as MatchingError
    from matching.explain.explanation import Explanation as Explanation
    from matching.formats.fixtures import load_fixture as load_fixture
    from matching.matrices import assign as assign
    from matching.matrices import tradeoff as tradeoff
    from matching.params import Params as Params
    from matching.plan.plan import AssignmentPlan as AssignmentPlan
    from matching.profiles.reviewer import Publication as Publication
    from matching.profiles.reviewer import Reviewer as Reviewer
    from matching.profiles.submission import Author as Author
    from matching.profiles.submission import Submission as Submission
    from matching.profiles.venue import Bid as Bid
    from matching.profiles.venue import DeclaredConflict as DeclaredConflict
    from matching.profiles.venue import ImportedScores as ImportedScores
    from matching.profiles.venue import Lock as Lock
    from matching.profiles.venue import Venue as Venue
    from matching.questions import explanation as explanation
    from matching.questions import readiness as readiness
    from matching.resources import Resources as Resources
    from matching.scores.base import VectorScores as VectorScores
    from matching.solvers.base import Solution as Solution
    from matching.solvers.start import Start as Start
    from matching.watched import recommend_within as recommend_within

_HOMES = {
    "AssignmentPlan": "matching.plan.plan",
    "Author": "matching.profiles.submission",
    "Bid": "matching.profiles.venue",
    "DeclaredConflict": "matching.profiles.venue",
    "Explanation": "matching.explain.explanation",
    "ImportedScores": "matching.profiles.venue",
    "Lock": "matching.profiles.venue",
    "MatchingError": "matching.errors",
    "Params": "matching.params",
    "Publication": "matching.profiles.reviewer",
    "Resources": "matching.resources",
    "Reviewer": "matching.profiles.reviewer",
    "Solution": "matching.solvers.base",
    "Start": "matching.solvers.start",
    "Submission": "matching.profiles.submission",
    "VectorScores": "matching.scores.base",
    "Venue": "matching.profiles.venue",
    "assign": "matching.matrices",
    "explanation": "matching.questions",
    "load_fixture": "matching.formats.fixtures",
    "readiness": "matching.questions",
    "recommend": "matching.engine",
    "tradeoff": "matching.matrices",
    "recommend_within": "matching.watched",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'matching' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
