"""What a route reads: one record, an upload of many as JSON or CSV, and the query string."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import request
from marshmallow import Schema, ValidationError

from matching.errors import InvalidFileError, Issue
from service.edge.batch import Batch
from service.edge.csvrows import CsvReader
from service.edge.errors import InvalidRequestError, PlacedIssue, Step, unfold
from service.edge.payload import media_type, read_body, read_object
from service.edge.quick import quick_reader

__all__ = ["JsonBody", "Upload", "read_query"]


class JsonBody:
    """One record as a JSON object.

    Parameters
    ----------
    schema : type of Schema
    example : mapping
        For the API document; valid by the schema.
    media : sequence of str
        Content types the document names.
    """

    def __init__(
        self, schema: type[Schema], example: Mapping[str, Any], media: Sequence[str] = ("application/json",)
    ) -> None:
        self.schema = schema
        self.loader = schema()
        self.example = example
        self.media = media

    def document(self) -> dict[str, Any]:
        """The requestBody object of the API document."""
        return {
            "required": True,
            "content": {media: {"schema": self.schema, "example": dict(self.example)} for media in self.media},
        }

    def read(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """The loaded record; raises InvalidRequestError with every fault of form."""
        media_type(self.media)
        data = read_object()
        try:
            loaded: dict[str, Any] = self.loader.load(data)
        except ValidationError as error:
            raise InvalidRequestError(issues=list(unfold(error.messages, data))) from None
        return loaded


class Upload:
    """Many records in one request: ``{"bids": [...]}`` or the same rows as CSV.

    Parameters
    ----------
    name : str
        Name of the list, "bids".
    schema : type of Schema
        The whole JSON body; its field `name` holds the rows, further fields are options.
    row : type of Schema
        One row.
    most : int
        Most rows.
    example : mapping
        Valid by `schema`.
    single : bool
        Whether a bare row is taken as an upload of one.
    csv : CsvReader, optional
    csv_example : str
    """

    def __init__(
        self,
        name: str,
        schema: type[Schema],
        row: type[Schema],
        most: int,
        example: Mapping[str, Any],
        *,
        single: bool = False,
        csv: CsvReader | None = None,
        csv_example: str = "",
    ) -> None:
        self.name, self.schema, self.row, self.most = name, schema, row, most
        self.example, self.single, self.csv, self.csv_example = example, single, csv, csv_example
        self.rows = row(many=True)
        self.quick = quick_reader(self.rows)
        self.options = schema(exclude=(name,))
        self.media = ("application/json", "text/csv") if csv else ("application/json",)

    def document(self) -> dict[str, Any]:
        """The requestBody object of the API document."""
        if self.single:
            one = self.example[self.name][0]
            json_form: dict[str, Any] = {
                "schema": {"anyOf": [self.row, self.schema]},
                "examples": {
                    "one": {"summary": "One record", "value": one},
                    "many": {"summary": "Several records", "value": dict(self.example)},
                },
            }
        else:
            json_form = {"schema": self.schema, "example": dict(self.example)}
        content = {"application/json": json_form}
        if self.csv:
            content["text/csv"] = {"schema": {"type": "string"}, "example": self.csv_example}
        return {"required": True, "content": content}

    def read(self, query: Mapping[str, Any]) -> Batch:
        """The rows; faults of form are kept beside them, so that faults of meaning can join them."""
        if media_type(self.media) == "csv":
            return self._read_csv(read_body(), query)
        data = read_object()
        if self.single and self.name not in data:
            return self._judge([data], Batch(self.name, [], (0,), single=True))
        given = data.get(self.name)
        faults: list[Issue] = []
        options: dict[str, Any] = {}
        rest = {key: value for key, value in data.items() if key != self.name}
        try:
            options = self.options.load(rest)
        except ValidationError as error:
            faults += unfold(error.messages, rest)
        if self.name not in data:
            faults.append(PlacedIssue("is missing", "required", self.name, path=(self.name,)))
        elif not isinstance(given, list):
            faults.append(PlacedIssue("must be a list", "wrong-type", self.name, value=given, path=(self.name,)))
        elif not 1 <= len(given) <= self.most:
            words = f"must have 1 to {self.most} entries, has {len(given)}"
            faults.append(PlacedIssue(words, "too-long" if given else "too-short", self.name, path=(self.name,)))
        if faults:
            raise InvalidRequestError(issues=faults)
        assert isinstance(given, list)
        return self._judge(given, Batch(self.name, [], range(len(given)), options=options))

    def _read_csv(self, data: bytes, query: Mapping[str, Any]) -> Batch:
        assert self.csv is not None
        source = f"{self.name}.csv"
        columns = [name.strip() for name in query["columns"].split(",")] if "columns" in query else None
        table = self.csv(data, columns)
        found = len(table.rows) + len(table.faults)
        if not 1 <= found <= self.most:
            words = f"has {found} rows; 1 to {self.most} are taken"
            raise InvalidFileError(issues=[Issue(words, "too-long" if found else "empty-file", source=source)])
        options = {"default": query["default"]} if "default" in query else {}
        batch = Batch(self.name, [], table.lines, list(table.faults), csv=True, options=options, notices=table.notices)
        return self._judge(table.rows, batch)

    def _judge(self, given: list[Any], batch: Batch) -> Batch:
        """Good rows into `rows`, the faults of the others into `faults`."""
        quick = self.quick(given) if self.quick is not None else None
        if quick is not None:
            return replace(batch, rows=quick)
        try:
            return replace(batch, rows=self.rows.load(given))
        except ValidationError as error:
            messages: Mapping[int, Any] = error.messages  # type: ignore[assignment]
            loaded: Any = error.valid_data
        faults = list(batch.faults)
        for row, inner in messages.items():
            found = unfold(inner, given[row], () if batch.single else (self.name, row))
            if batch.single:
                faults += found
            elif batch.csv:
                line = batch.origin[row]
                faults += [Issue(i.reason, i.code, i.field, line, i.value, f"{self.name}.csv") for i in found]
            else:
                faults += [replace(issue, row=row, source=self.name, field=_inside(issue.path)) for issue in found]
        good = [row for row in range(len(given)) if row not in messages]
        return replace(
            batch, rows=[loaded[row] for row in good], origin=[batch.origin[row] for row in good], faults=faults
        )


def _inside(path: tuple[Step, ...] | None) -> str | None:
    """The field of a row as words: ("reviewers", 3, "publications", 0, "title") -> "publications.0.title"."""
    return ".".join(str(step) for step in (path or ())[2:]) or None


def read_query(schema: Schema) -> dict[str, Any]:
    """The query string; a parameter given twice or not known is refused.

    Raises
    ------
    InvalidRequestError (``invalid-request``)
        Each issue's `source` is "query".
    """
    issues: list[Issue] = []
    given: dict[str, str] = {}
    for name, values in request.args.lists():
        if len(values) > 1:
            issues.append(PlacedIssue("is given twice", "repeated-name", name, source="query", path=None))
        given[name] = values[0]
    loaded: dict[str, Any] = {}
    try:
        loaded = schema.load(given)
    except ValidationError as error:
        issues += [replace(issue, path=None, source="query") for issue in unfold(error.messages, given)]
    issues += [
        PlacedIssue("must not hold NUL characters", "unfit-text", name, source="query", path=None)
        for name, value in loaded.items()
        if isinstance(value, str) and "\x00" in value
    ]
    if issues:
        raise InvalidRequestError(issues=issues)
    return loaded
