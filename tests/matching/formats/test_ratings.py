"""Files of ratings, in every form a spreadsheet program gives them."""

import pytest

from matching.errors import InvalidFileError
from matching.formats.ratings import read_predictions, read_ratings

ROWS = [
    ["ParticipantID", "Paper1", "Paper2", "Expertise1", "Expertise2"],
    ["1", "p", "q", "5.0", "2.25"],
    ["2", "p", "", "3", ""],
]
WANTED = {"1": {"p": 5.0, "q": 2.25}, "2": {"p": 3.0}}


def written(rows=ROWS, mark="\t", end="\n"):
    return end.join(mark.join(row) for row in rows).encode()


def codes(data):
    with pytest.raises(InvalidFileError) as caught:
        read_ratings(data)
    return [(issue.code, issue.row, issue.field) for issue in caught.value.issues]


@pytest.mark.parametrize("mark", ["\t", ",", ";"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_ratings_read_the_same_in_every_dialect(mark, end):
    """The public file is called .csv and is separated by tabs."""
    assert read_ratings(written(mark=mark, end=end)) == (WANTED, ())
    assert read_ratings(b"\xef\xbb\xbf" + written(mark=mark, end=end) + end.encode() * 2) == (WANTED, ())


def test_columns_are_found_by_name_and_blank_ends_may_be_missing():
    """Programs cut blank cells at the end of a row."""
    turned = [[row[3], row[0], row[1], row[4], row[2]] for row in ROWS]
    assert read_ratings(written(turned))[0] == WANTED
    assert read_ratings(written([*ROWS[:2], ["2", "p", "", "3"]]))[0] == WANTED


def test_a_paper_without_a_rating_is_left_out_and_told():
    """Nothing was said about it; that is no reason to refuse what was said about others."""
    ratings, notices = read_ratings(written([*ROWS, ["3", "p", "q", "", "1"]]))
    assert ratings["3"] == {"q": 1.0} and [notice.code for notice in notices] == ["unrated-papers"]


def test_every_fault_is_told_with_its_line():
    """One reading is enough to mend the file."""
    rows = [*ROWS, ["1", "r", "", "6", ""], ["", "p", "", "x", ""], ["4", "p", "p", "1", "2"], ["5", "", "", "nan", ""]]
    assert codes(written(rows)) == [
        ("repeated-id", 4, "ParticipantID"),
        ("out-of-range", 4, "Expertise1"),
        ("missing-id", 5, "ParticipantID"),
        ("not-a-number", 5, "Expertise1"),
        ("repeated-id", 6, "Paper2"),
        ("out-of-range", 7, "Expertise1"),
        ("missing-id", 7, "Paper1"),
    ]


def test_headers_that_lack_something_are_refused():
    """Guessing columns by position would read one paper's rating for another's."""
    assert codes(written([["Who", *ROWS[0][1:]]])) == [("missing-column", 1, "ParticipantID")]
    assert codes(written([ROWS[0][:4]])) == [("missing-column", 1, "Expertise2")]
    assert codes(written([ROWS[0][:1]])) == [("missing-column", 1, "Paper1"), ("missing-column", 1, "Expertise1")]
    assert codes(written([[*ROWS[0], "Paper1"]])) == [("ambiguous-column", 1, None)]
    assert codes(b"")[0][0] == "empty-file"
    assert codes(written(ROWS[:1])) == [("empty-file", None, None)]
    assert codes(written([*ROWS, ["3", "p", "q", "1", "2", "3"]])) == [("wrong-width", 4, None)]


@pytest.mark.parametrize("number", ["01", "\u0661", "9" * 5000, "1x"])
def test_numbers_of_columns_are_plain_and_counted_from_one(number):
    """Paper01, Arabic digits, a number of five thousand digits: no column of ours, whatever stands in it."""
    rows = [["ParticipantID", f"Paper{number}", f"Expertise{number}"], ["1", "p", "3"]]
    assert ("missing-column", 1, "Paper1") in codes(written(rows))


def test_an_empty_file_is_called_empty():
    """Three missing columns say less."""
    assert [code for code, _, _ in codes(b" \n\n")] == ["empty-file"]


@pytest.mark.parametrize("cell", ["0_4", "4_0e-1"])
def test_a_rating_in_the_notation_of_programmers_is_no_number(cell):
    """Python reads underscores; whoever typed one meant something else."""
    assert ("not-a-number", 2, "Expertise1") in codes(written([ROWS[0], ["1", "p", "", cell, ""]]))


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-" + "9" * 320])
def test_a_predicted_score_beyond_all_numbers_is_refused(number):
    """Whole numbers in JSON have no end, double precision has."""
    with pytest.raises(InvalidFileError) as caught:
        read_predictions(f'{{"a": {{"p": {number}, "q": 1}}}}'.encode(), name="s.json")
    assert [(issue.code, issue.field) for issue in caught.value.issues] == [("not-a-number", "a.p")]


@pytest.mark.parametrize("cell", ["nan", "inf", "-inf", "NaN"])
def test_a_first_row_without_a_number_is_still_a_row_and_is_named(cell):
    """It is no header: a message about missing columns would send the reader the wrong way."""
    with pytest.raises(InvalidFileError) as caught:
        read_predictions(f"p,~ana,{cell}\nq,~ana,0.7\n".encode(), name="s.csv")
    assert [issue.row for issue in caught.value.issues] == [1]
    assert "column" not in str(caught.value)
