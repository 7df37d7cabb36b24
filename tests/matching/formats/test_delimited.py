"""The shared layer under every delimited file: dialects, headers, and one message for every faulty row."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.errors import InvalidFileError
from matching.formats.delimited import read_table, write_table
from matching.formats.table import read_scores

PLAIN = 'reviewer_id,paper_id,score\n"Doe, Z.",p1,0.5\nZoë,p2,0.25\n'
PAIR = ("submission", "reviewer", "score")


def codes(error: pytest.ExceptionInfo[InvalidFileError]) -> list[tuple[str, int | None]]:
    return [(issue.code, issue.row) for issue in error.value.issues]


def columns(data: bytes) -> dict[str, list[str]]:
    return dict(read_table(data, name="x.csv", required=PAIR).columns)


@pytest.mark.parametrize(
    "data",
    [
        PLAIN.encode(),
        codecs.BOM_UTF8 + PLAIN.encode(),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace("\n", "\r").encode(),
        (PLAIN + "\n\n \n").encode(),
        PLAIN.rstrip("\n").encode(),
        PLAIN.replace("paper_id,score", " Paper ID ,\tSCORE").encode(),
        codecs.BOM_UTF8 + PLAIN.replace("\n", "\r\n").encode(),
        'reviewer_id;paper_id;score\n"Doe, Z.";p1;0.5\nZoë;p2;0.25\n'.encode(),
        "reviewer_id\tpaper_id\tscore\nDoe, Z.\tp1\t0.5\nZoë\tp2\t0.25\n".encode(),
        'reviewer_id, paper_id, score\n"Doe, Z.", p1, 0.5\nZoë, p2, 0.25\n'.encode(),
    ],
)
def test_b45_every_dialect_reads_like_the_plain_file(data: bytes) -> None:
    """Spreadsheet programs differ in marks, line ends and delimiters; the content is the same."""
    assert columns(data) == {"submission": ["p1", "p2"], "reviewer": ["Doe, Z.", "Zoë"], "score": ["0.5", "0.25"]}


def test_b45_latin1_bytes_name_the_row() -> None:
    """A file in another encoding is refused, never turned to rubbish."""
    with pytest.raises(InvalidFileError) as error:
        columns(PLAIN.encode("latin-1"))
    assert codes(error) == [("not-utf8", 3)]
    assert "UTF-8" in str(error.value)


def test_b45_utf16_is_refused_by_name() -> None:
    """Excel's "Unicode text" is UTF-16."""
    with pytest.raises(InvalidFileError, match="UTF-16"):
        columns(PLAIN.encode("utf-16"))


def test_b45_a_quoted_line_break_keeps_line_numbers_right() -> None:
    """A row is named by the line it starts on."""
    data = b'paper,reviewer,score\np1,"r\n1",0.5\n\np2,r2,x\np3,r3,nan\n'
    with pytest.raises(InvalidFileError) as error:
        read_scores(data)
    assert codes(error) == [("not-a-number", 5), ("not-finite", 6)]


def test_b44_columns_are_found_by_name_in_any_order() -> None:
    """Exported as reviewer, paper, score and imported as paper, reviewer, score is one file."""
    one = columns(b"reviewer,paper,score\nr1,p1,0.5\n")
    assert one == columns(b"paper,reviewer,score\np1,r1,0.5\n") == columns(b"entityA,entityB,similarity\nr1,p1,0.5\n")


def test_b44_extra_columns_are_ignored_with_a_note() -> None:
    """Nothing is left out in silence."""
    table = read_table(b"paper,reviewer,score,colour\np1,r1,0.5,red\n", name="x.csv", required=PAIR)
    assert [notice.code for notice in table.notices] == ["ignored-columns"]
    assert "'colour'" in table.notices[0].message


def test_b44_a_missing_column_lists_the_columns_found() -> None:
    """The chair sees at once what the file has instead."""
    with pytest.raises(InvalidFileError) as error:
        columns(b"paper,reviewer,points\np1,r1,0.5\n")
    assert codes(error) == [("missing-column", 1)]
    assert "'paper', 'reviewer', 'points'" in str(error.value)


def test_b44_a_file_without_header_is_read_only_when_declared() -> None:
    """Otherwise its first row would be taken for names, or names for data."""
    data = b"p1,r1,0.5\np2,r2,0.25\n"
    with pytest.raises(InvalidFileError, match="columns are declared"):
        columns(data)
    table = read_table(data, name="x.csv", required=PAIR, columns=PAIR)
    assert table.lines == [1, 2]
    assert table.columns["score"] == ["0.5", "0.25"]


def test_b44_a_header_in_a_file_declared_to_have_none_is_named() -> None:
    """The opposite mistake."""
    with pytest.raises(InvalidFileError) as error:
        read_table(b"paper,reviewer,score\np1,r1,0.5\n", name="x.csv", required=PAIR, columns=PAIR)
    assert codes(error) == [("header-row", 1)]


def test_a_columns_own_name_wins_over_a_synonym_beside_it() -> None:
    """Many exports carry both an id and an address."""
    table = read_table(b"paper,reviewer,email,score\np1,r1,a@x.example,1\n", name="x.csv", required=PAIR)
    assert table.columns["reviewer"] == ["r1"]
    assert table.notices[0].data["columns"] == ["email"]


def test_two_synonyms_for_one_column_are_ambiguous() -> None:
    """Which of the two is meant is not guessed."""
    with pytest.raises(InvalidFileError) as error:
        columns(b"paper,user,email,score\np1,r1,a@x.example,1\n")
    assert codes(error) == [("ambiguous-column", 1)]


def test_rows_of_a_wrong_width_are_listed_together() -> None:
    """An unquoted comma shifts a row; blank cells at the end do not."""
    with pytest.raises(InvalidFileError) as error:
        columns(b"paper,reviewer,score\np1,r1\np2,r,2,0.5\np3,r3,0.5,,\n")
    assert codes(error) == [("wrong-width", 2), ("wrong-width", 3)]


def test_an_open_quote_is_an_error_with_its_line() -> None:
    """Read leniently it would swallow the rest of the file."""
    with pytest.raises(InvalidFileError) as error:
        columns(b'paper,reviewer,score\np1,"r1,0.5\np2,r2,0.5\n')
    assert codes(error) == [("quoting", 2)]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"   \n", codecs.BOM_UTF8])
def test_an_empty_file_says_which_header_it_lacks(data: bytes) -> None:
    """A forgotten export is not the statement that there is nothing."""
    with pytest.raises(InvalidFileError, match="empty"):
        columns(data)


def test_a_header_alone_is_an_empty_table() -> None:
    """That is the statement that there is nothing."""
    assert len(read_table(b"paper,reviewer,score\n", name="x.csv", required=PAIR)) == 0


def test_deleted_edges_are_left_out_with_a_note() -> None:
    """OpenReview exports keep deleted edges and mark them with a date."""
    data = b"head,tail,weight,label,ddate\np1,~A_B1,0.5,,\np2,~A_B1,0.5,,1700000000000\n"
    table = read_table(data, name="edges.csv", required=PAIR)
    assert table.columns["submission"] == ["p1"]
    assert {notice.code for notice in table.notices} == {"deleted-rows", "ignored-columns"}


def test_spreadsheet_files_cannot_run_formulas() -> None:
    """Text cells that start like a formula get an apostrophe; numbers and the round-trip writer stay as they are."""
    rows = [("=1+1", -5), ("@x", 0.5), ("-5", 1), ("Zoë", None)]
    guarded = write_table(("a", "b"), rows, for_spreadsheets=True)
    assert guarded == codecs.BOM_UTF8 + "a,b\r\n'=1+1,-5\r\n'@x,0.5\r\n'-5,1\r\nZoë,\r\n".encode()
    assert write_table(("a", "b"), rows) == "a,b\n=1+1,-5\n@x,0.5\n-5,1\nZoë,\n".encode()


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@given(st.lists(st.tuples(cells, cells), max_size=6))
def test_b44_what_is_written_reads_back_unchanged(rows: list[tuple[str, str]]) -> None:
    """Whatever the text holds: quotes, commas, line breaks, blanks at the ends."""
    kept = [("x" + a, "x" + b) for a, b in rows]
    data = write_table(("evidence", "paper"), [(a, b + "x") for a, b in kept])
    table = read_table(data, name="x.csv", required=("evidence", "submission"))
    assert table.columns["evidence"] == [a for a, _ in kept]
    assert table.columns["submission"] == [b + "x" for _, b in kept]


@given(st.binary(max_size=60))
def test_no_bytes_end_in_anything_but_a_table_or_a_listed_fault(data: bytes) -> None:
    """Bad input is never a crash."""
    try:
        read_scores(b"paper,reviewer,score\n" + data)
    except InvalidFileError as error:
        assert error.issues


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;", "sep=;;"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_first_line_that_states_the_delimiter_is_no_header(first, end):
    """Spreadsheet programs are told the delimiter that way; the other lines keep their numbers."""
    data = end.join([first, "paper;reviewer;bid, of sorts", "p1;r1;high", ""]).encode("utf-8-sig")
    table = read_table(data, name="bids.csv", required=("submission", "reviewer"))
    assert (table.cells("submission"), table.cells("reviewer"), table.lines) == (["p1"], ["r1"], [3])


def test_a_cell_that_is_too_long_is_not_called_a_fault_of_quotes():
    """The reader has a limit; quotes have nothing to do with it."""
    data = b"paper,reviewer\np1,r1\np2," + b"x" * 200_000 + b"\n"
    with pytest.raises(InvalidFileError) as caught:
        read_table(data, name="bids.csv", required=("submission", "reviewer"))
    issue = caught.value.issues[0]
    assert (issue.code, issue.row) == ("too-long", 3) and "131072 characters" in issue.reason
