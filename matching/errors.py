"""Every error the engine raises, in one tree.

    MatchingError
    +-- InputError                invalid-input       something handed in is wrong; lists every fault found
    |   +-- InvalidVenueError     invalid-venue       profiles, submissions, references between them
    |   +-- InvalidScoresError    invalid-scores      a score matrix or a score table
    |   +-- InvalidProblemError   invalid-problem     loads, demand, conflicts, locks that contradict
    |   +-- InvalidParamsError    invalid-params      an option out of range or an unknown name
    |   +-- InvalidFileError      invalid-file        a file that cannot be read as what it should be
    +-- UnknownIdError            unknown-id          an id nobody has
    +-- MissingExtraError         missing-extra       an optional part that is not installed
    +-- SolverError               solver-error        the solver gave no usable answer
    |   +-- SolverRangeError      solver-range        numbers outside what the solver can represent
    +-- AuditError                audit-failed        a solution that its own inputs contradict
    +-- MemoryLimitError          memory-limit        the run would not fit into memory; said before it begins
    +-- StorageError              storage-error       the machine has no room for what a run has to put aside

A class has a stable ``code`` and a ``title``; an instance has a ``detail`` sentence and, for input
errors, ``issues``: one entry for each fault, so that a caller can mend all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "AuditError",
    "InputError",
    "InvalidFileError",
    "InvalidParamsError",
    "InvalidProblemError",
    "InvalidScoresError",
    "InvalidVenueError",
    "Issue",
    "MatchingError",
    "MemoryLimitError",
    "MissingExtraError",
    "SolverError",
    "SolverRangeError",
    "StorageError",
    "UnknownIdError",
]

ISSUES_IN_MESSAGE = 5  # faults spelled out in str(error); .issues always holds all of them


@dataclass(frozen=True, slots=True)
class Issue:
    """One fault in something handed in.

    Attributes
    ----------
    reason : str
        What is wrong and what would be right, in words a chair reads.
    code : str
        Stable, lower case with hyphens, for example ``"duplicate-id"``.
    field : str or None
        The field or column at fault.
    row : int or None
        Position of the faulty record, counted from 0 as in a JSON array; for files this is the
        **line number**, counted from 1.
    value : object
        The offending value as given, None where there is none to show.
    source : str or None
        The list or file the row is in, for example ``"conflicts"`` or ``"bids.csv"``.
    severity : str
        ``"error"`` or ``"warning"``.
    """

    reason: str
    code: str = "invalid"
    field: str | None = None
    row: int | None = None
    value: Any = None
    source: str | None = None
    severity: str = "error"

    def __str__(self) -> str:
        where = ", ".join(
            part
            for part in (
                self.source,
                None if self.row is None else f"row {self.row}",
                None if self.field is None else f"field {self.field}",
            )
            if part
        )
        return f"{where}: {self.reason}" if where else self.reason


class MatchingError(Exception):
    """Root of the tree; never raised itself."""

    code = "matching-error"
    title = "The engine could not do this"

    def __init__(self, detail: str, **data: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.data = data


class InputError(MatchingError):
    """Something handed in is wrong; ``issues`` lists every fault found."""

    code = "invalid-input"
    title = "The input is not valid"

    def __init__(self, detail: str | None = None, issues: Iterable[Issue] = (), **data: Any) -> None:
        self.issues = tuple(issues)
        if detail is None:
            detail = self._summary()
        super().__init__(detail, **data)

    def _summary(self) -> str:
        shown = [str(issue) for issue in self.issues[:ISSUES_IN_MESSAGE]]
        more = len(self.issues) - len(shown)
        return "; ".join(shown) + (f"; and {more} more" if more else "")


class InvalidVenueError(InputError):
    code = "invalid-venue"
    title = "Profiles, submissions or references between them are not valid"


class InvalidScoresError(InputError):
    code = "invalid-scores"
    title = "The scores are not valid"


class InvalidProblemError(InputError):
    code = "invalid-problem"
    title = "Loads, demand, conflicts or locks contradict each other"


class InvalidParamsError(InputError):
    code = "invalid-params"
    title = "An option is not valid"


class InvalidFileError(InputError):
    code = "invalid-file"
    title = "A file cannot be read"


class UnknownIdError(MatchingError):
    """An id that nobody has."""

    code = "unknown-id"
    title = "There is nothing with this id"


class MissingExtraError(MatchingError):
    """An optional part of the package is not installed."""

    code = "missing-extra"
    title = "An optional part is not installed"


class SolverError(MatchingError):
    """The solver gave no usable answer; this is never how "infeasible" is said."""

    code = "solver-error"
    title = "The solver gave no usable answer"


class SolverRangeError(SolverError):
    """Numbers outside the range in which the solver is exact."""

    code = "solver-range"
    title = "The numbers are outside the solver's range"


class AuditError(MatchingError):
    """A solution contradicts the inputs it was made from; it must not be used."""

    code = "audit-failed"
    title = "The plan failed its audit"


class StorageError(MatchingError):
    """A folder in which a run puts numbers aside is missing, full or closed; the input is not at fault."""

    code = "storage-error"
    title = "There is no room to work in"


class MemoryLimitError(MatchingError):
    """A run would take more memory than there is; nothing was begun, and ``data`` holds the numbers."""

    code = "memory-limit"
    title = "The run does not fit into memory"
