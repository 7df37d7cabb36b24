"""Files of ratings, in every form a spreadsheet program gives them."""

import pytest

from matching.errors import InvalidFileError
from matching.formats.ratings import read_ratings

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
    assert codes(b"")[0][0] == "missing-column"
    assert codes(written(ROWS[:1])) == [("empty-file", None, None)]
    assert codes(written([*ROWS, ["3", "p", "q", "1", "2", "3"]])) == [("wrong-width", 4, None)]
