"""What the service adds to the engine's error tree; each class knows the HTTP status that says it.

    MatchingError
    +-- ServiceError
    |   +-- NotFoundError               not-found              404   no such venue, record or plan
    |   +-- StateConflictError          state-conflict         409   stored state contradicts the request; lists all
    |   +-- NotReadyError               not-ready              409   the venue cannot be planned yet
    |   +-- PreconditionFailedError     precondition-failed    412   the record changed since it was read
    |   +-- PreconditionRequiredError   precondition-required  428   the request must say which version it replaces
    |   +-- IdempotencyError            idempotency-mismatch   422   one Idempotency-Key, two different requests
    |   +-- UnavailableError            unavailable            503   the database is busy or gone; try again
    +-- InputError
        +-- SettingsError               invalid-settings       the environment; the process does not start

Faults in what a caller sent stay the engine's own InputError classes (422), with one Issue a fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from matching.errors import ISSUES_IN_MESSAGE, InputError, Issue, MatchingError

__all__ = [
    "IdempotencyError",
    "NotFoundError",
    "NotReadyError",
    "PreconditionFailedError",
    "PreconditionRequiredError",
    "ServiceError",
    "SettingsError",
    "StateConflictError",
    "UnavailableError",
]


class ServiceError(MatchingError):
    """Root of the service's own errors; never raised itself.

    Attributes
    ----------
    status : int
        HTTP status of the class.
    """

    code = "service-error"
    title = "The service could not do this"
    status: ClassVar[int] = 500


class NotFoundError(ServiceError):
    """There is no venue, record or plan with this id."""

    code = "not-found"
    title = "There is nothing with this id"
    status = 404


class StateConflictError(ServiceError):
    """The stored state contradicts the request; ``issues`` holds one entry a clash, perhaps none."""

    code = "state-conflict"
    title = "The stored state does not allow this"
    status = 409

    def __init__(self, detail: str | None = None, issues: Iterable[Issue] = (), **data: Any) -> None:
        self.issues = tuple(issues)
        if detail is None:
            shown = [str(issue) for issue in self.issues[:ISSUES_IN_MESSAGE]]
            more = len(self.issues) - len(shown)
            detail = "; ".join(shown) + (f"; and {more} more" if more else "")
        super().__init__(detail, **data)


class NotReadyError(ServiceError):
    """The venue lacks something without which no plan can be computed."""

    code = "not-ready"
    title = "The venue is not ready for a plan"
    status = 409


class PreconditionFailedError(ServiceError):
    """``If-Match`` names another version than the stored one."""

    code = "precondition-failed"
    title = "The record changed since it was read"
    status = 412


class PreconditionRequiredError(ServiceError):
    """A replacement came without ``If-Match``."""

    code = "precondition-required"
    title = "The request must say which version it replaces"
    status = 428


class IdempotencyError(ServiceError):
    """An ``Idempotency-Key`` came again with another request."""

    code = "idempotency-mismatch"
    title = "This Idempotency-Key belongs to another request"
    status = 422


class UnavailableError(ServiceError):
    """The database stayed locked or could not be reached; the same request may work later."""

    code = "unavailable"
    title = "The service cannot answer at the moment"
    status = 503


class SettingsError(InputError):
    """One or more settings are wrong; ``issues`` names every variable."""

    code = "invalid-settings"
    title = "The settings are not valid"
