"""Every kind of problem this API answers with: code, status, title, and what a reader can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matching import errors as engine
from matching.errors import MatchingError
from service import errors as own
from service.edge import errors as edge

__all__ = ["KINDS", "PROBLEMS", "Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem: its stable code, usual status, title, and what a reader can do about it."""

    code: str
    status: int
    title: str
    words: str


def _of(error: type[MatchingError], status: int, words: str) -> Kind:
    return Kind(error.code, status, error.title, words)


KINDS = (
    # what the edge itself says
    Kind(
        "bad-request",
        400,
        "The request cannot be understood",
        "The request breaks the rules of HTTP; `detail` says how.",
    ),
    _of(
        edge.InvalidJsonError,
        400,
        "The body is empty, not UTF-8, not JSON, not an object, or holds what JSON forbids: NaN, "
        "Infinity, numbers beyond float64, one name twice in an object. `errors` names each place.",
    ),
    Kind(
        "unauthorized",
        401,
        "A token is needed",
        "Send `Authorization: Bearer TOKEN` with the token this server was given.",
    ),
    Kind(
        "forbidden",
        403,
        "This request is not allowed",
        "Without a token the server answers programs and pages of its own "
        "machine only, addressed by a loopback name. Set a token to open it.",
    ),
    Kind(
        "unknown-route",
        404,
        "There is no such route",
        "/v1/docs lists every route; ids in addresses are percent-encoded.",
    ),
    Kind(
        "method-not-allowed",
        405,
        "The route does not know this method",
        "The Allow header lists the methods of the route.",
    ),
    Kind(
        "body-too-large",
        413,
        "The body is too large",
        "Split the upload; the limit is REVMATCH_MAX_BODY_BYTES of the server.",
    ),
    Kind(
        "unsupported-media-type",
        415,
        "The body has a type this route does not read",
        "Send `Content-Type: application/json`, or `text/csv` where the route says so, in UTF-8, without "
        "Content-Encoding.",
    ),
    _of(
        edge.InvalidRequestError,
        422,
        "Fields, types or ranges are wrong; `errors` lists all of them and nothing was stored.",
    ),
    Kind(
        "internal-error",
        500,
        "The service failed",
        "A fault of the service. Its log holds the reason under `request_id`.",
    ),
    # what the handlers say
    _of(own.NotFoundError, 404, "There is no venue, record, signal or plan with this id."),
    _of(
        own.StateConflictError,
        409,
        "What is stored contradicts the request, for example an id that exists already; `errors` "
        "lists every clash and nothing was stored.",
    ),
    _of(own.NotReadyError, 409, "The venue has no active submissions or no active reviewers, so no plan can be made."),
    _of(
        own.PreconditionFailedError, 412, "Somebody changed the record in between: read it again and send its new ETag."
    ),
    _of(
        own.PreconditionRequiredError,
        428,
        "Send If-Match with the ETag of the record you replace, so that nobody's change is lost.",
    ),
    _of(own.IdempotencyError, 422, "This Idempotency-Key was used for another request; take a new key."),
    _of(own.UnavailableError, 503, "The database is busy or cannot be reached; try again after Retry-After seconds."),
    _of(own.SettingsError, 500, "The server was started with settings that cannot work."),
    _of(own.ServiceError, 500, "A fault of the service."),
    # what the engine says
    _of(engine.InputError, 422, "Something handed in is wrong; `errors` lists every fault."),
    _of(
        engine.InvalidVenueError,
        422,
        "Profiles, submissions or references between them are wrong; `errors` lists every row and nothing was stored.",
    ),
    _of(engine.InvalidScoresError, 422, "Scores are out of range or contradict each other."),
    _of(engine.InvalidProblemError, 422, "Loads, demand, conflicts or locks contradict each other."),
    _of(engine.InvalidParamsError, 422, "An option of the plan is out of range or unknown."),
    _of(engine.InvalidFileError, 422, "A CSV body cannot be read; `errors` gives line numbers and nothing was stored."),
    _of(engine.UnknownIdError, 404, "An id that nobody has."),
    _of(engine.MissingExtraError, 422, "The options ask for a part that is not installed on this server."),
    _of(engine.SolverError, 500, "The solver gave no usable answer; this is never how infeasible is said."),
    _of(engine.SolverRangeError, 422, "The numbers are so large or so far apart that the solver cannot be exact."),
    _of(engine.AuditError, 500, "A plan contradicted its own inputs and was thrown away."),
    _of(
        engine.MemoryLimitError,
        503,
        "The machine that makes the plan has too little memory free for it; nothing was begun.",
    ),
    _of(
        engine.StorageError,
        503,
        "The machine that makes the plan has no room in its temporary folder (`TMPDIR`); free some, or name another.",
    ),
    _of(MatchingError, 500, "A fault of the service."),
)

PROBLEMS: Mapping[str, Kind] = {kind.code: kind for kind in KINDS}
"""Code -> kind; every error class of the service and the engine has its entry."""
