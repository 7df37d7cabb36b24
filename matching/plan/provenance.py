"""What a plan was made from and by: one hash of the input, and the versions of what computed it."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from matching.params import Params
from matching.plan.plan import plain
from matching.profiles.venue import Venue

__all__ = ["input_hash", "versions"]


def input_hash(venue: Venue, params: Params) -> str:
    """SHA-256 over what a plan is made from, as 64 hexadecimal digits; the order of records changes nothing.

    The time limit is left out: it says how long a run may take, not which plan is wanted, and servers add their own.
    """

    def canonical(value: Any) -> Any:
        return json.dumps(plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=repr)

    digest = hashlib.sha256()
    for records in (venue.reviewers, venue.submissions, venue.bids, venue.conflicts, venue.locks):
        for line in sorted(canonical(_unordered(_fields(record))) for record in records):
            digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
        digest.update(b"\x1d")
    for table in sorted(venue.scores, key=lambda entry: entry.name):
        rows = sorted(zip(table.submissions, table.reviewers, table.values.tolist()))
        digest.update(canonical([table.name, table.default, rows]).encode("utf-8", "surrogatepass") + b"\x1d")
    for line in sorted(map(canonical, venue.rules)):
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    rest = [venue.demand, venue.load_max, venue.load_min, dict(venue.domain_aliases), sorted(venue.free_mail)]
    wanted = {name: value for name, value in params.to_dict().items() if name != "time_limit"}
    digest.update(canonical([rest, wanted]).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _unordered(record: Any) -> Any:
    """A record's fields with those lists sorted whose order says nothing; areas and authors keep theirs."""
    for name in ("publications", "emails", "aliases", "keywords", "affiliations", "conflict_domains"):
        if isinstance(record.get(name), list):
            record[name] = sorted(
                record[name], key=lambda entry: json.dumps(plain(entry), sort_keys=True, default=repr)
            )
    return record


def _fields(record: Any) -> Any:
    """A record as plain dicts; read-only mappings inside it cannot be deep-copied, so fields are walked by hand."""
    if hasattr(record, "__dataclass_fields__"):
        return {name: _fields(getattr(record, name)) for name in record.__dataclass_fields__}
    if isinstance(record, Mapping):
        return {str(key): _fields(value) for key, value in record.items()}
    if isinstance(record, tuple | list):
        return [_fields(value) for value in record]
    return record


def versions() -> dict[str, str]:
    """Library -> version of what a plan depends on."""
    found = {"python": platform.python_version()}
    for name in ("revmatch", "numpy", "scipy", "scikit-learn", "ortools", "snowballstemmer"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed as a package"
    return found
