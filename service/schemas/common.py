"""The shapes every route shares: strict objects, query strings, pages.

Form is judged by the schemas: types, ranges, lengths, unknown fields. Meaning (does this reviewer exist?) is judged by
the handlers.
"""

from __future__ import annotations

from typing import Any

from marshmallow import RAISE, Schema

from service.schemas.fields import Coded, ListOf, Map, NestedRecord, QueryFlag, QueryWhole, Text

__all__ = ["MOST_PAIRS", "MOST_RECORDS", "PageQuery", "Query", "Record", "WarningSchema", "WriteQuery", "page_of"]

MOST_RECORDS = 50_000  # profiles or submissions in one upload
MOST_PAIRS = 1_000_000  # bids, conflicts, locks or scores in one upload


class Record(Schema):
    """An object that refuses fields it does not know, and lists those it does."""

    error_messages = {"type": Coded("must be an object", "wrong-type")}

    class Meta:
        unknown = RAISE

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        known = ", ".join(sorted(self.load_fields))
        self.error_messages = {
            **self.error_messages,
            "unknown": Coded(f"there is no such field; known: {known}", "unknown-field"),
        }


class Query(Record):
    """The parameters of a query string; none by default, and an unknown one is refused."""


class PageQuery(Query):
    """Where a list starts and how much of it is wanted."""

    cursor = Text(
        most=2000, least=1, metadata={"description": "The `next` of the page before; absent for the first page."}
    )
    limit = QueryWhole(
        least=1, most=None, metadata={"description": "Entries a page; 100 where absent, at most 1000 as shipped."}
    )


class WriteQuery(Query):
    """How an upload is meant."""

    dry_run = QueryFlag(
        metadata={"description": "Check everything and answer as usual, but store nothing.", "default": False}
    )


class WarningSchema(Schema):
    """Something worth knowing that did not stop the upload."""

    code = Text(required=True, metadata={"example": "probable-duplicate"})
    message = Text(required=True)
    submissions = ListOf(Text())
    reviewers = ListOf(Text())
    severity = Text()
    data = Map()


def page_of(name: str, item: type[Schema], words: str) -> type[Schema]:
    """The schema of one page of a list.

    Parameters
    ----------
    name : str
        Name of the component in the API document.
    item : type of Schema
        What the page holds.
    words : str
        What the entries are, for the description.
    """
    return Schema.from_dict(
        {
            "items": ListOf(NestedRecord(item), required=True, metadata={"description": words}),
            "next": Text(
                required=True,
                allow_none=True,
                metadata={"description": "`cursor` of the next page; null on the last one."},
            ),
        },
        name=name,
    )
