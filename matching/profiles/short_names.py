"""Names too short to be words: the languages C, R, C++, C#, F#.

A capital C or R alone is a language in "packages for R" and a variable, a label or an initial in "let R be", in
"vitamin C" and in "J. R. Smith". Only what stands alone, in none of these places, counts; C++, C# and F# always do.
Other letters are nearly always variables, and "a" and "I" are words.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["short_names", "without_variables"]

_NAME = r"C\+\+|[CF]#|[CR]"
# Letters and digits that make a longer word of it. Those of scripts without spaces do not: "C言語", "R을".
_JOINED = "0-9A-Za-z_\u00aa\u00b5\u00ba\u00c0-\u024f\u0370-\u052f"
_CANDIDATE = re.compile(rf"(?<![{_JOINED}])(?:{_NAME})(?![{_JOINED}])")
_MAYBE = re.compile("[CFR](?![a-z])")  # fast, and rarely there: one look at each text, not at each of its words

_HYPHENS = r"\-\u00ad\u2010-\u2015\u2212"
_OPERATORS = rf"=<>\u2264\u2265\u2248\u223c~^*×·÷+±\u2190-\u22ff|°\u2032{_HYPHENS}"
_AFTER_OPERATOR = re.compile(rf"[{_OPERATORS}]\s*$|&$|[0-9)\]}}]\s*$|(?<![A-Za-z]{{3}})/$")
_BEFORE_OPERATOR = re.compile(
    rf"\s*[{_OPERATORS}]|&|['’](?!s\b)|\s*[(\[{{]\s*[^)\]}}\s]{{1,3}}\s*[)\]}}]|/(?!C\+\+|C#|[A-Za-z]{{3}})"
)
# One of several lettered things: "A, B and C". Beside another language it is none: "C, R and Python".
_LISTED_BEFORE = re.compile(r"(?<![A-Za-z])[ABD-QS-Z][,;]?\s+(?:and\s+|or\s+|&\s*)?$")
_LISTED_AFTER = re.compile(r"(?:[,;]\s*(?:and\s+|or\s+)?|\s+(?:and|or|&)\s+)[BD-HJ-QS-Z](?![A-Za-z0-9+#])")
_WORD_BEFORE = re.compile(r"([^\W\d_]+)[\s]*[\"'“‘(]?\s*$")
_LABELLED = frozenset(
    """
    let denote denotes appendix figure fig table section part case type class group set subset cluster category level
    grade stage phase factor constant matrix vector tensor variable parameter coefficient radius ring rank module field
    operator graph point node space protein vitamin hepatitis influenza cytochrome complement carbon pearson spearman
    reactive statistic value values domain region site model option scenario condition arm cohort patient player agent
    """.split()  # noqa: SIM905
)
"""Words after which a letter names one of several things."""


def short_names(text: str) -> list[str]:
    """The languages a text names by a letter, lower case, in order, repeats included: "c", "r", "c++", "c#", "f#".

    Parameters
    ----------
    text : str
        As `clean_text` returns it; capitals matter.
    """
    if not _MAYBE.search(text):
        return []
    found = []
    for match in _CANDIDATE.finditer(text):
        name = match.group()
        if len(name) > 1 or _stands_alone(text[max(0, match.start() - 40) : match.start()], text[match.end() :][:40]):
            found.append(name.lower())
    return found


def _stands_alone(before: str, after: str) -> bool:
    if _AFTER_OPERATOR.search(before) or _BEFORE_OPERATOR.match(after):
        return False
    if _LISTED_BEFORE.search(before) or _LISTED_AFTER.match(after):
        return False
    if before.endswith("(") and after.startswith(")"):
        return False  # a mark or a number: "(C) 2020", "(R)"
    word = _WORD_BEFORE.search(before)
    if word and word.group(1).casefold() in _LABELLED:
        return False
    if after.startswith("."):
        # An initial or a species where a sentence does not end: "by J. R. Smith", "Ann C. Smith", "C. elegans".
        if before.rstrip().endswith(".") or (word and not word.group(1).islower() and after[1:].strip()):
            return False
        if not before.strip() and after[1:].strip():
            return False
        return not re.match(r"\.\s*[a-z]", after)
    return True


# --- variables --------------------------------------------------------------------------------------------

_MATHEMATICS = re.compile(
    r"\$\$?[^$]{1,500}\$\$?|\\\((?:(?!\\\().){1,500}?\\\)|\\\[(?:(?!\\\[).){1,500}?\\\]|\\math[a-z]{1,8}\s?\{[^{}]{1,50}\}"
    r"|<(?:\w{1,20}:)?mi(?:\s[^<>]{0,200})?>[^<>]{1,20}<",
    re.DOTALL,
)
_VARIABLE = re.compile(r"(?<![A-Za-z\\])[CR](?![A-Za-z])")
# Letters of another font are mathematics: what normalising would turn into a plain C or R. The wide forms are not:
# they are how Japanese and Chinese texts write the letter.
_FONTS = {
    code: unicodedata.normalize("NFKC", chr(code)).lower()
    for code in (*range(0x2100, 0x2150), *range(0x24B6, 0x24D0), *range(0x1D400, 0x1D800), *range(0x1F110, 0x1F190))
    if unicodedata.normalize("NFKC", chr(code)) in ("C", "R")
}
_FONT = re.compile(f"[{''.join(map(chr, _FONTS))}]")


def without_variables(text: str) -> str:
    """A text, its markup still on, whose variables C and R are small letters, which name nothing."""
    if "$" in text or "\\" in text or "<" in text:
        text = _MATHEMATICS.sub(lambda match: _VARIABLE.sub(lambda letter: letter.group().lower(), match.group()), text)
    return text if text.isascii() or not _FONT.search(text) else text.translate(_FONTS)
