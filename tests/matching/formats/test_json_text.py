"""Strict JSON with lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.formats.faults import Faults
from matching.formats.json_text import dump_json, dump_jsonl, parse_json, read_jsonl


def codes(faults: Faults) -> list[tuple[str, int | None]]:
    return [(issue.code, issue.row) for issue in faults.issues]


def test_b41_numbers_json_does_not_have_are_refused_with_their_line() -> None:
    """Python reads them; browsers do not."""
    faults = Faults("x.json")
    assert parse_json(b'{"a": NaN,\n"b": [1,\n-Infinity, 1e999], "c": "NaN"}', faults) is None
    assert codes(faults) == [("not-finite", 1), ("not-finite", 3), ("not-finite", 3)]


def test_a_key_given_twice_is_refused() -> None:
    """Which of the two was meant is not guessed; the same key in two objects is fine."""
    faults = Faults("x.json")
    assert parse_json(b'{"a": {"k": 1},\r"b": {"k": 2,\n"\\u006b": ["k"]}}', faults) is None
    assert codes(faults) == [("repeated-key", 3)]


def test_lines_at_fault_are_named_and_the_others_read() -> None:
    """A line separator inside a text does not end a line."""
    faults = Faults("x.jsonl")
    data = '{"a": 1}\n\n{"a": \n[1]\n{"b": "\u2028"}\r\n{"c": "\\ud800"}\n'.encode()
    assert list(read_jsonl(data, faults)) == [(1, {"a": 1}), (5, {"b": "\u2028"})]
    assert codes(faults) == [("not-json", 3), ("not-an-object", 4), ("not-unicode", 6)]


def test_hostile_documents_are_faults_and_no_crashes() -> None:
    """Deep nesting and endless digits break naive readers."""
    for text in ("[" * 100_000, "1" * 10_000, '{"a":' * 50_000, "", "nul", "[1,]", '"\x01"'):
        faults = Faults("x.json")
        assert parse_json(text.encode(), faults) is None
        assert codes(faults) == [("not-json", 1)], text[:20]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
numbers = st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_what_is_written_reads_back_equal(value: object) -> None:
    """And in strict JSON, whoever reads it."""
    faults = Faults("x.json")
    assert parse_json(dump_json(value), faults) == value
    assert not faults
    json.loads(dump_json(value), parse_constant=pytest.fail)
    assert list(read_jsonl(dump_jsonl([{"v": value}]), faults)) == [(1, {"v": value})]
