"""Outside ids to row numbers and back, with a stated answer for ids nobody has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from matching.errors import InvalidVenueError, Issue, UnknownIdError
from matching.types import IntArray

__all__ = ["IdIndex"]


class IdIndex:
    """A one-to-one map between ids and positions 0..n-1, plus other names for the same positions.

    Parameters
    ----------
    ids : iterable of str
        In position order. An id that occurs twice is an error that names both positions.
    aliases : mapping of str to str
        Other name -> id. An alias equal to an id is ignored where it means the same one and is an error
        where it means another.
    """

    __slots__ = ("_ids", "_position")

    def __init__(self, ids: Iterable[str], aliases: Mapping[str, str] | None = None) -> None:
        self._ids: tuple[str, ...] = tuple(ids)
        position: dict[str, int] = {}
        issues = []
        for row, name in enumerate(self._ids):
            if name in position:
                issues.append(
                    Issue(
                        f"id {name!r} is also at row {position[name]}; an id names one record",
                        "duplicate-id",
                        "id",
                        row,
                        name,
                    )
                )
            else:
                position[name] = row
        for other, name in (aliases or {}).items():
            if name not in position:
                issues.append(Issue(f"alias {other!r} points at unknown id {name!r}", "unknown-id", value=name))
            elif position.setdefault(other, position[name]) != position[name]:
                issues.append(
                    Issue(f"alias {other!r} of {name!r} is the id of another record", "duplicate-id", value=other)
                )
        if issues:
            raise InvalidVenueError(issues=issues)
        self._position = MappingProxyType(position)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, name: object) -> bool:
        return name in self._position

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids in position order."""
        return self._ids

    def get(self, name: str) -> int | None:
        """Position of an id or alias, or None for an id nobody has."""
        return self._position.get(name)

    def position(self, name: str) -> int:
        """Position of an id or alias; raises UnknownIdError (``unknown-id``)."""
        try:
            return self._position[name]
        except KeyError:
            raise UnknownIdError(f"no record has the id {name!r}", id=name) from None

    def positions(self, names: Sequence[str]) -> IntArray:
        """Positions of many ids, int64 of shape (n,), -1 for an id nobody has."""
        get = self._position.get
        return np.fromiter((get(name, -1) for name in names), dtype=np.int64, count=len(names))
