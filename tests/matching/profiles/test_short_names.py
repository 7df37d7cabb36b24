"""Languages named by a letter, and everything else a letter may be."""

import pytest

from matching.profiles.short_names import short_names
from matching.profiles.text import clean_text, has_words, matched_forms, tokens


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("C", ["c"]),
        ("C ; R", ["c", "r"]),
        ("Statistical computing with R", ["r"]),
        ("Mixed models in R. We show", ["r"]),
        ("written in R.", ["r"]),
        ("Memory safety of C programs", ["c"]),
        ("C and C++ compilers", ["c", "c++"]),
        ("C/C++ code", ["c", "c++"]),
        ("bindings for Python/R", ["r"]),
        ("R, Python and C#", ["r", "c#"]),
        ("Rust, C, and Go", ["c"]),
        ("the interface (R, Python)", ["r"]),
        ("using R 4.0.2", ["r"]),
        ("code in “C”", ["c"]),
        ("C's memory model, C: a language", ["c", "c"]),
        ("F# and C#", ["f#", "c#"]),
        ("C言語とR言語", ["c", "r"]),
        ("Ｃで書く", ["c"]),
    ],
)
def test_one_letter_languages_are_words(text, names):
    """The pattern of words asks for two characters, which leaves a C expert with nothing."""
    assert short_names(clean_text(text)) == names
    assert [token for token in tokens(clean_text(text)) if token in ("c", "r", "c++", "c#", "f#")] == names
    assert has_words(clean_text(text)) and set(names) <= set(matched_forms(clean_text(text)))


@pytest.mark.parametrize(
    "text",
    [
        "let R be a ring", "a matrix R of rank", "vitamin C", "Appendix C", "Pearson R", "the constant C",
        "J. R. Smith", "R. Tibshirani", "by Ann C. Smith", "C. elegans",
        "R = 5", "x > C", "R^n", "R(x)", "f: R → R", "5 C", "25 °C", "C/N ratio", "R&D", "R'",
        "systems A, B and C", "C, D and E", "A, B, or C",
        "R-CNN", "LDL-C", "Objective-C", "CRISPR", "R2", "C_i", "(C) 2020", "I saw a thing",
        r"$R$ and $$C_i + R$$", r"\(C\) or \[R\]", r"\mathbb{R}^n", "x ∈ ℝ", "𝐑 and Ⓡ", "<mi>R</mi>",
        '<mml:mi x="y">C</mml:mi>',
    ],
)  # fmt: skip
def test_other_single_letters_are_none(text):
    """Variables, labels, initials and parts of other names would make strangers look alike."""
    assert short_names(clean_text(text)) == []
    assert not {"c", "r"} & set(tokens(clean_text(text)))


def test_the_languages_are_told_apart():
    """Three experts, three tokens."""
    assert len({*tokens("C"), *tokens("C++"), *tokens("C#"), *tokens("R")}) == 4


def test_a_text_of_letters_takes_time_in_proportion():
    """Each letter looks at a few neighbours only."""
    assert len(short_names("C, " * 100_000)) == 100_000
    assert isinstance(clean_text("$" + "R " * 100_000), str)
    assert isinstance(clean_text(r"\(C " * 50_000), str)
