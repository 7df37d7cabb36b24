"""What a venue is made of, as values, and the venue with every reference resolved."""

from matching.profiles.resolve import ResolvedBids, ResolvedScores, ResolvedVenue, resolve_venue
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import BID_VALUES, Bid, DeclaredConflict, ImportedScores, Lock, Venue

__all__ = [
    "BID_VALUES",
    "Author",
    "Bid",
    "DeclaredConflict",
    "ImportedScores",
    "Lock",
    "Publication",
    "ResolvedBids",
    "ResolvedScores",
    "ResolvedVenue",
    "Reviewer",
    "Submission",
    "Venue",
    "resolve_venue",
]
