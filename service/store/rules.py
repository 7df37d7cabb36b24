"""The rules of a venue: one list, one version; every function runs inside the caller's transaction."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from service.store.tables import venue_rules

__all__ = ["NO_RULES", "change_rules", "find_rules"]

NO_RULES = "[]"
"""The JSON text of a list without a rule."""


def find_rules(connection: Connection, venue_key: int) -> tuple[int, str]:
    """Version and JSON text of a venue's rules; version 0 where none were ever stored."""
    query = select(venue_rules.c.version, venue_rules.c.body).where(venue_rules.c.venue_key == venue_key)
    row = connection.execute(query).first()
    return (0, NO_RULES) if row is None else (row.version, row.body)


def change_rules(connection: Connection, venue_key: int, version: int, body: str) -> bool:
    """Replace the list and count its version up; False where it is not at `version` any more.

    Where another request stored the first list in the same moment, the insert breaks a constraint and `Store.write`
    begins anew.
    """
    if version == 0:
        connection.execute(insert(venue_rules).values(venue_key=venue_key, version=1, body=body))
        return True
    condition = (venue_rules.c.venue_key == venue_key) & (venue_rules.c.version == version)
    result = connection.execute(update(venue_rules).where(condition).values(version=version + 1, body=body))
    return result.rowcount == 1
