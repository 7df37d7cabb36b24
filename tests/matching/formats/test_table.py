"""Scores, bids, conflicts, loads, demands and locks as files."""

import numpy as np
import pytest

from matching.errors import InvalidFileError
from matching.formats.bid_labels import bid_label
from matching.formats.table import (
    Demand,
    Load,
    read_bids,
    read_conflicts,
    read_demands,
    read_loads,
    read_locks,
    read_scores,
)
from matching.formats.table_out import (
    write_bids,
    write_conflicts,
    write_demands,
    write_loads,
    write_locks,
    write_scores,
)
from matching.profiles.venue import Bid, DeclaredConflict, ImportedScores, Lock


def faults(read, data: bytes, **options) -> list[tuple[str, int | None, str | None]]:
    with pytest.raises(InvalidFileError) as error:
        read(data, **options)
    return [(issue.code, issue.row, issue.field) for issue in error.value.issues]


def test_scores_carry_their_lines_and_the_name_of_their_file() -> None:
    """Later stages name the line of a reference to nobody."""
    parsed = read_scores(b"pid,rid,score\n\np1,r1,0.5\np2,r2,1e-3\n", name="tpms.csv", default=0.0)
    assert parsed.records.name == "tpms"
    assert parsed.records.default == 0.0
    assert parsed.records.values.tolist() == [0.5, 0.001]
    assert parsed.lines.tolist() == [3, 4]


@pytest.mark.parametrize("cell", ["nan", "NaN", "inf", "-Infinity", "1e999"])
def test_b41_numbers_that_are_not_finite_are_refused_with_their_row(cell: str) -> None:
    """Every comparison with NaN is false, so range checks let it through."""
    data = f"paper,reviewer,score\np1,r1,0.5\np1,r2,{cell}\n".encode()
    assert faults(read_scores, data) == [("not-finite", 3, "score")]


@pytest.mark.parametrize("cell", ["1000000000.1", "-2e9", "1e300"])
def test_scores_beyond_a_thousand_million_are_refused_with_their_row(cell: str) -> None:
    """Single precision and the solver's whole numbers cannot tell such numbers apart."""
    data = f"paper,reviewer,score\np1,r1,-1e9\np1,r2,{cell}\n".encode()
    assert faults(read_scores, data) == [("out-of-range", 3, "score")]


@pytest.mark.parametrize("default", [1.1e9, float("nan"), float("inf")])
def test_a_default_of_scores_is_judged_like_a_score(default: float) -> None:
    """It stands for every pair that is not listed."""
    assert faults(read_scores, b"paper,reviewer,score\n", default=default) == [("out-of-range", None, "default")]


@pytest.mark.parametrize("data", [b"", b"\n \n", b"p1,r1\n"])
@pytest.mark.parametrize("read", [read_scores, read_bids, read_conflicts, read_loads, read_demands, read_locks])
def test_declared_columns_that_lack_a_name_are_refused_whatever_the_file_holds(read, data: bytes) -> None:
    """An empty file once passed and failed later with an error of another kind."""
    for columns in ((), ("bid",), ("evidence", "rule")):
        assert {code for code, _, _ in faults(read, data, columns=columns)} == {"missing-column"}


def test_a_column_may_be_declared_once_only() -> None:
    """Which of the two would count?"""
    columns = ("submission", "reviewer", "reviewer")
    assert faults(read_locks, b"p1,r1,r2\n", columns=columns) == [("ambiguous-column", 1, "reviewer")]


@pytest.mark.parametrize("cell", ["", "high", "1_0", "0x1", "N/A"])
def test_scores_that_are_no_numbers_are_refused(cell: str) -> None:
    """Unknown is a row that is not there."""
    data = f"paper,reviewer,score\np1,r1,{cell}\n".encode()
    assert faults(read_scores, data) == [("not-a-number", 2, "score")]


def test_a_decimal_comma_is_explained() -> None:
    """Spreadsheet programs in many countries write 0,5."""
    with pytest.raises(InvalidFileError, match=r"write 0\.5 with a point"):
        read_scores(b"paper;reviewer;score\np1;r1;0,5\n")


def test_b11_all_faults_of_a_file_are_listed_together() -> None:
    """One round of mending is enough."""
    data = b"paper,reviewer,score\n,r1,0.5\np1,,x\np2,r2,0.5\np2,r2,0.6\n"
    assert faults(read_scores, data) == [
        ("missing-id", 2, "submission"),
        ("missing-id", 3, "reviewer"),
        ("not-a-number", 3, "score"),
        ("contradiction", 5, "score"),
    ]


def test_a_repeated_row_counts_once_and_is_told() -> None:
    """Two exports pasted together are harmless as long as they agree."""
    parsed = read_scores(b"paper,reviewer,score\np1,r1,0.5\np1,r1,0.5\np1,r1,0.50\n")
    assert parsed.records.values.tolist() == [0.5]
    assert [notice.code for notice in parsed.notices] == ["repeated-rows"]


def test_b08_addresses_that_differ_in_capitals_are_one_person() -> None:
    """So two different scores for them contradict each other."""
    data = b"paper,reviewer,score\np1,R1@X.example,0.5\np1,Zoe <r1@x.example>,0.6\n"
    assert faults(read_scores, data) == [("contradiction", 3, "score")]


@pytest.mark.parametrize("read", [read_scores, read_bids, read_conflicts, read_locks])
def test_b44_swapped_columns_are_noticed(read) -> None:
    """Chairs swap the columns by hand and sometimes forget."""
    extra = {read_scores: ("score", "1"), read_bids: ("bid", "yes")}.get(read)
    head, tail = (f",{extra[0]}", f",{extra[1]}") if extra else ("", "")
    data = f"paper,reviewer{head}\nr1,p1{tail}\nR2@X.example,p2{tail}\n".encode()
    options = {"submissions": {"p1", "p2"}, "reviewers": {"r1", "r2@x.example"}}
    assert faults(read, data, **options) == [("columns-swapped", 2, "submission")]


def test_b44_ids_that_are_numbers_on_both_sides_are_not_called_swapped() -> None:
    """1, 2, 3 may be a paper and a person at once."""
    numbers = {"1", "2", "3"}
    parsed = read_scores(b"paper,reviewer,score\n1,2,0.5\n3,1,0.5\n", submissions=numbers, reviewers=numbers)
    assert len(parsed.records.values) == 2


def test_bids_of_other_systems_are_read_as_ours() -> None:
    """The table of synonyms is public."""
    labels = {
        "very_high": ["very_high", "Very High", "eager", "YES", "2"],
        "high": ["high", "willing", "maybe", "1"],
        "neutral": ["neutral", "none", "0", ""],
        "low": ["low", "In a pinch", "-1", "\N{MINUS SIGN}1"],
        "very_low": ["very-low", "no", "not willing", "-2"],
    }
    cells = [(label, word) for label, words in labels.items() for word in words]
    data = "paper,reviewer,bid\n" + "".join(f"p{row},r1,{word}\n" for row, (_, word) in enumerate(cells))
    assert [bid.bid for bid in read_bids(data.encode()).records] == [label for label, _ in cells]
    assert bid_label(-2) == "very_low"
    assert bid_label(True) is None and bid_label(1.0) is None and bid_label(None) is None


def test_an_unknown_bid_lists_what_is_accepted() -> None:
    """A label of another venue is not guessed."""
    with pytest.raises(InvalidFileError, match=r"very_high \(very high, eager, yes") as error:
        read_bids(b"paper,reviewer,bid\np1,r1,keen\n")
    assert error.value.issues[0].row == 2


def test_bids_that_contradict_name_both_lines() -> None:
    """The last one does not win in silence."""
    with pytest.raises(InvalidFileError, match="line 2") as error:
        read_bids(b"paper,reviewer,bid\np1,r1,yes\np2,r1,yes\np1,r1,no\n")
    assert error.value.issues[0].row == 4


def test_a_pair_may_be_in_conflict_for_several_reasons() -> None:
    """Each is evidence; dates bar the pair all the same."""
    data = b"pid,rid,reason,evidence,until\np1,r1,advisor,since 2020,2021-01-01\np1,r1,,,\np1,r1,,,\n"
    parsed = read_conflicts(data)
    assert parsed.records == (
        DeclaredConflict("p1", "r1", "advisor", "since 2020"),
        DeclaredConflict("p1", "r1", "declared"),
    )
    assert {notice.code for notice in parsed.notices} == {"repeated-rows", "conflict-dates"}


def test_constraints_of_openreview_bar_only_where_they_say_minus_one() -> None:
    """0 says nothing, 1 would be a wish, which is no conflict."""
    data = b"p1,r1,-1\np2,r1,0\n"
    columns = ("submission", "reviewer", "value")
    assert read_conflicts(data, columns=columns).records == (DeclaredConflict("p1", "r1"),)
    assert faults(read_conflicts, b"p1,r1,1\n", columns=columns) == [("not-a-conflict", 1, "value")]


def test_b13_two_limits_for_one_person_name_both_lines() -> None:
    """Duplicates never overwrite each other."""
    with pytest.raises(InvalidFileError, match="load_max 5 contradicts load_max 3 on line 2") as error:
        read_loads(b"reviewer,load_max\nr1,3\nr1,5\n")
    assert error.value.issues[0].row == 3


def test_b12_a_load_of_zero_is_kept_and_a_blank_means_the_default() -> None:
    """Zero, missing and null are three things."""
    parsed = read_loads(b"Email\tQuota\n# comment is data: r0\t0\nr2\t\n")
    assert parsed.records == (Load("# comment is data: r0", 0), Load("r2", None))


@pytest.mark.parametrize("cell", ["2.5", "-1", "three", "true", "3.0", "99999999999", "\N{ARABIC-INDIC DIGIT THREE}"])
def test_b43_loads_and_demands_are_whole_numbers(cell: str) -> None:
    """Nothing is rounded or cast."""
    assert faults(read_loads, f"reviewer,load_max\nr1,{cell}\n".encode()) == [("not-a-count", 2, "load_max")]
    assert faults(read_demands, f"paper,demand\np1,{cell}\n".encode()) == [("not-a-count", 2, "demand")]


def test_a_minimum_above_the_maximum_is_a_contradiction() -> None:
    """Said where it is written, not first by the solver."""
    assert faults(read_loads, b"reviewer,load_max,load_min\nr1,1,2\n") == [("contradiction", 2, "load_min")]


def test_a_loads_file_needs_a_limit() -> None:
    """A list of names alone would change nothing."""
    assert faults(read_loads, b"reviewer,papers\nr1,2\n")[0][0] == "missing-column"


def test_b44_our_own_exports_import_unchanged() -> None:
    """Sorted, and equal to the last digit."""
    rng = np.random.default_rng(0)
    pairs = [(f"p{number}", f"r, {number}") for number in range(5)]
    scores = ImportedScores("s", *zip(*pairs), rng.random(5) * 1e-7)
    back = read_scores(write_scores(scores), signal="s").records
    assert (back.submissions, back.reviewers) == (scores.submissions, scores.reviewers)
    assert back.values.tolist() == scores.values.tolist()
    bids = (Bid("p1", "r1", "very_low"), Bid("p1", "r2", "high"))
    assert read_bids(write_bids(bids)).records == bids
    conflicts = (DeclaredConflict("p1", "r1", "personal", ' two\r\nlines, "quoted" ', "chair"),)
    assert read_conflicts(write_conflicts(conflicts)).records == conflicts
    locks = (Lock("-5", "=r"), Lock("p1", "+r"))
    assert read_locks(write_locks(locks)).records == locks
    loads = (Load("r1", 0, None), Load("r2", None, 1))
    assert read_loads(write_loads(loads)).records == loads
    demands = (Demand("p1", 0), Demand("p2", None))
    assert read_demands(write_demands(demands)).records == demands
