"""Texts: markup goes, words of any script stay, and a work counts once."""

import itertools

import numpy as np
import pytest

from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Submission
from matching.profiles.text import (
    _COMMAND,
    _KEYED,
    clean_text,
    has_words,
    merge_versions,
    publication_year,
    reviewer_documents,
    submission_text,
    tokens,
)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("<p>Deep <b>nets</b></p>", "Deep nets"),
        ("&lt;p&gt;Deep&lt;/p&gt; &amp; wide", "Deep & wide"),
        ("H<sub>2</sub>O", "H2O"),
        ("<jats:p>Text</jats:p><jats:p>more</jats:p>", "Text more"),
        ("<!-- hidden -->seen", "seen"),
        (r"\emph{Words} of {B}ERT", "Words of BERT"),
        (r"$\alpha$-stable $x_i \leq 3$", "alpha -stable x_i 3"),
        (r"as shown \cite{smith2020} in \ref{sec:one}", "as shown in"),
        (r"Poincar\'e, G\"{o}del, Erd\H{o}s, Stra\ss e", "Poincaré, Gödel, Erdős, Straße"),
        (r"\href{http://a.b/c}{the link}", "the link"),
        (r"5\% of \frac{a}{b}", "5% of a b"),
        ("ﬁne\u00ad-tuned\n\n  text", "fine-tuned text"),
    ],
)
def test_markup_goes_and_its_words_stay(given, wanted):
    """Abstracts arrive as HTML, JATS or LaTeX; a command that is matched as a word is noise."""
    assert clean_text(given) == wanted


def test_inequalities_are_not_taken_for_tags():
    """ "a<b and c>d" looks like a tag to a careless pattern, which would eat the words between."""
    assert clean_text("if a<b and c>d then") == "if a<b and c>d then"
    assert clean_text("p < 0.05 and q > 3") == "p < 0.05 and q > 3"


def test_missing_and_blank_parts_leave_no_trace():
    assert clean_text(None, "  \n") == ""
    assert clean_text("Title", None) == "Title"
    assert clean_text(" ", "Abstract") == "Abstract"
    assert clean_text("Title", "Abstract") == "Title Abstract"


@pytest.mark.parametrize(
    "piece", ["<a ", "\\cite{", "$", "&lt;", "\\'", "\\textbf{", "<!--", "\\href{", "a_", "\\cite["]
)
def test_hostile_repetition_ends_and_never_raises(piece):
    """A pattern that backtracks would hang the service on one abstract."""
    text = clean_text(piece * 5_000, piece * 5_000)
    assert isinstance(tokens(text), list)


@pytest.mark.parametrize(
    "piece",
    [
        "\\cite[",
        "\\cite[a",
        "\\a[",
        "\\ref[][",
        "\\href{",
        "<a ",
        "<!--",
        "&#",
        "y",
        "\u0301\u0316",
        "a\u0301\u0316\u0334",
    ],
)
def test_two_million_characters_of_markup_end_within_the_suite(piece):
    """Work grows with the length and not with its square, which would take hours here."""
    text = clean_text(piece * (2_000_000 // len(piece)))
    assert has_words(text) in (True, False)


def test_brackets_that_never_close_are_looked_through_once():
    """An optional argument ends where the next one starts, so no character is looked at for two commands."""
    assert _KEYED.search(r"\cite[a [b]{key}") is None
    assert _COMMAND.search(r"\a[b [c]{d}").group(2) is None
    assert clean_text(r"as in \cite[p.~\textbf{3}][see]{key} and \sqrt[3]{x}") == "as in and x"


@pytest.mark.parametrize("digits", [5_000, 20, 1_000_000])
def test_a_character_reference_of_any_length_is_read(digits):
    """Python refuses to turn more than 4,300 digits into a number."""
    assert clean_text("a &#" + "9" * digits + "; b") == "a \ufffd b"


def test_marks_on_one_letter_are_limited_and_words_keep_theirs():
    """Bringing a heap of marks into order takes the square of its height."""
    assert len(clean_text("e" + "\u0301\u0316" * 1_000)) <= 31
    assert clean_text("e\u0301te\u0301 \u0e01\u0e49\u0e33") == "\u00e9t\u00e9 \u0e01\u0e49\u0e4d\u0e32"
    assert isinstance(tokens("e" + "\u0301\u0316" * 200_000), list)


def test_words_meet_in_their_stems_and_without_accents():
    assert tokens("Generalisations generalisation") == [tokens("generalisation")[0]] * 2
    assert tokens("Naïve") == tokens("naive")
    assert tokens(clean_text(r"Poincar\'e")) == tokens("Poincare")


def test_stop_words_numbers_and_single_letters_are_dropped():
    assert tokens("The of and 1 2 2024 a x") == []
    assert tokens("3d GPT4 models") == ["3d", "gpt4", "model"]
    assert not has_words("the 12 of")
    assert has_words("the 12 of models")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("深度学习模型", "学习"),
        ("การเรียนรู้ของเครื่อง", "เรียนรู้"),
        ("딥러닝을 위한", "딥러닝은"),
        ("ニューラルネット", "ニューラル"),
    ],
)
def test_scripts_without_spaces_match_by_neighbouring_characters(left, right):
    """One long "word" a sentence would match nothing but the identical sentence."""
    assert set(tokens(left)) & set(tokens(right))


def test_other_scripts_keep_whole_words():
    """Vowel signs are part of a word; Python's own word pattern breaks Hindi at each of them."""
    assert tokens("हिन्दी में मशीन लर्निंग") == ["हिन्दी", "में", "मशीन", "लर्निंग"]
    assert tokens("Машинное обучение") == ["машинное", "обучение"]
    assert tokens("BERT模型") == ["bert", "模型"]


def test_fast_and_careful_patterns_agree():
    """Plain text takes a short cut; a non-ASCII word elsewhere must not change what is found."""
    text = "Graph neural networks for protein-folding, U-net 3d"
    assert tokens(text + " é") == tokens(text)
    assert tokens(text + " 学习")[:-1] == tokens(text)


def test_publication_years_outside_reason_are_none():
    assert publication_year(Publication("a", year=2020), 2024) == 2020
    for year in (None, 1899, 2025, 2099, True, 2020.5, "2020"):
        assert publication_year(Publication("a", year=year), 2024) is None


@pytest.mark.parametrize("year", [np.int64(2020), np.int16(2020), 2020.0, np.float64(2020)])
def test_b27_years_out_of_tables_count(year):
    """A column of years with one gap is a column of fractions; recency must not be dropped for it without a word."""
    assert publication_year(Publication("a", year=year), 2024) == 2020


@pytest.mark.parametrize("year", [np.nan, float("inf"), np.int64(3000), np.bool_(True), 10**400, [2020], b"2020", 1j])
def test_b27_what_is_no_year_is_neutral(year):
    """Whatever a table holds in such a cell."""
    assert publication_year(Publication("a", year=year), 2024) is None


def test_b27_versions_count_once_and_the_newest_with_abstract_stands_for_the_work():
    """A preprint, a blind copy and the final version would otherwise tilt the profile."""
    bare = Publication("p1", "On A: a Study", year=2019)
    full = Publication("p2", "On a -- A Study", "Text of A.", 2021)
    newest = Publication("p3", "ON A A STUDY", "", 2023)
    other = Publication("p4", "On B", "Text of B.", 2010)
    for order in itertools.permutations([bare, full, newest, other]):
        assert set(merge_versions(order, 2024)) == {full, other}


def test_b27_an_impossible_year_is_the_oldest():
    good = Publication("p1", "A", "Text.", 2001)
    for year in (None, 2099, 0):
        assert merge_versions([Publication("p2", "A", "Text.", year), good], 2024) == (good,)


def test_b27_weight_zero_excludes_and_nothing_is_no_document():
    kept = Publication("p1", "A", "Text.")
    out = [Publication("p2", "B", "Text.", weight=0.0), Publication("p3"), Publication("p4", " ", "\n")]
    assert merge_versions([*out, kept]) == (kept,)


def test_untitled_publications_merge_by_abstract_only():
    first, second = Publication("p1", "", "One text"), Publication("p2", "", "Another text")
    assert merge_versions([first, second, first]) == (first, second)


def test_b26_keywords_speak_where_publications_do_not():
    """Any supplied evidence counts: a newcomer with keywords is not without expertise."""
    keywords = ("graph learning", "proteins")
    only = Reviewer("r1", keywords=keywords)
    unreadable = Reviewer("r2", publications=(Publication("p", "12", "the of"),), keywords=keywords)
    both = Reviewer("r3", publications=(Publication("p", "Kernels"),), keywords=keywords)
    assert [document.text for document in reviewer_documents(only)] == ["graph learning ; proteins"]
    assert reviewer_documents(unreadable) == reviewer_documents(only)
    assert [document.text for document in reviewer_documents(both)] == ["Kernels"]
    assert reviewer_documents(Reviewer("r4")) == []


def test_b25_a_submission_without_words_has_no_text():
    assert submission_text(Submission("p", "", " \n")) == ""
    assert submission_text(Submission("p", "the of", "1 2")) == ""
    assert submission_text(Submission("p", keywords=("graphs",))) == "graphs"
    assert submission_text(Submission("p", "Kernels", keywords=("graphs",))) == "Kernels"
