"""The short way of judging pair rows agrees with the schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marshmallow import Schema, ValidationError

from service.edge.quick import quick_reader
from service.schemas.bids import BidSchema
from service.schemas.conflicts import ConflictSchema, LockSchema
from service.schemas.reviewers import ReviewerSchema
from service.schemas.scores import ScoreSchema

SCHEMAS: list[type[Schema]] = [BidSchema, ConflictSchema, LockSchema, ScoreSchema]
NAMES = ["submission", "reviewer", "bid", "score", "rule", "evidence", "source", "other"]
VALUES = st.one_of(
    st.sampled_from(["p1", "high", "", "x" * 1001, "neutral"]),
    st.floats(),
    st.integers(-(2**60), 2**60),
    st.booleans(),
    st.none(),
    st.lists(st.integers(), max_size=1),
)
ROWS = st.lists(st.one_of(st.dictionaries(st.sampled_from(NAMES), VALUES), VALUES), max_size=3)
GOOD = st.lists(
    st.fixed_dictionaries({"submission": st.just("p1"), "reviewer": st.text(min_size=1, max_size=3)}, optional={
        "bid": st.just("low"), "score": st.one_of(st.floats(-1, 1), st.integers(0, 1)), "evidence": st.text(max_size=2),
    }),
    max_size=3,
)  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS)
@given(rows=st.one_of(ROWS, GOOD))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_a_quick_yes_is_what_the_schema_loads(schema: type[Schema], rows: list[Any]) -> None:
    """It may say "I do not know", never anything else than the schema would."""
    loader = schema(many=True)
    read = quick_reader(loader)
    assert read is not None
    quick = read(rows)
    try:
        loaded = loader.load(rows)
    except ValidationError:
        assert quick is None
    else:
        assert quick is None or quick == loaded


@pytest.mark.parametrize(
    ("schema", "row"),
    [
        (BidSchema, {"submission": "p", "reviewer": "r", "bid": "low"}),
        (ScoreSchema, {"submission": "p", "reviewer": "r", "score": 1}),
        (LockSchema, {"submission": "p", "reviewer": "r"}),
        (ConflictSchema, {"submission": "p", "reviewer": "r", "rule": "personal"}),
    ],
)
def test_usual_rows_take_the_short_way(schema: type[Schema], row: dict[str, Any]) -> None:
    """Otherwise it would be there for nothing."""
    read = quick_reader(schema(many=True))
    assert read is not None and read([row]) == schema(many=True).load([row])


def test_nested_records_are_left_to_the_schema() -> None:
    """The short way knows texts and numbers only."""
    assert quick_reader(ReviewerSchema(many=True)) is None
