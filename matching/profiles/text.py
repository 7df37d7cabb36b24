"""Titles, abstracts and keywords as clean texts, and texts as words that can match.

A text goes through `clean_text` (markup off, words kept) and `tokens` (words of any script, stems of the
Latin ones). A reviewer becomes a few weighted documents: one a work, whichever version of it is best.
"""

from __future__ import annotations

import datetime
import html
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from numbers import Real
from operator import methodcaller
from typing import NamedTuple

from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.short_names import short_names, without_variables
from matching.profiles.submission import Submission

__all__ = [
    "Document",
    "clean_text",
    "has_words",
    "matched_forms",
    "merge_versions",
    "publication_year",
    "reviewer_documents",
    "submission_text",
    "tokens",
]

FIRST_YEAR = 1900  # a publication year before it is taken for a typing error
LONGEST_WORD = 100  # letters; longer ones match as they are
STEMS_KEPT = 1 << 18  # words whose stems are remembered; about 40 MB, above the vocabulary of a large venue


class Document(NamedTuple):
    """One text that speaks for a reviewer.

    Attributes
    ----------
    text : str
        Clean, never blank.
    weight : float
        (0, inf), no unit; only ratios within a reviewer matter.
    publication : Publication or None
        Where the text is from; None for the reviewer's keywords.
    """

    text: str
    weight: float
    publication: Publication | None


# --- markup -----------------------------------------------------------------------------------------------

_INLINE = "abbr|b|big|em|font|i|mark|s|small|span|strong|sub|sup|tt|u|italic|bold|sc|monospace"
_BLOCK = (
    "a|article|blockquote|body|br|caption|center|cite|code|dd|div|dl|dt|figure|h[1-6]|head|hr|html|img|label|li|link|ol|p|"
    "pre|q|section|sec|table|tbody|td|th|thead|title|tr|ul|abstract|ext-link|inline-formula|disp-formula|xref|alternatives|"
    "tex-math|math|mrow|mi|mo|mn|ms|mtext|msub|msup|msubsup|mfrac|msqrt|mroot|mover|munder|munderover|mfenced|mtable|"
    "mtr|mtd|mspace|mstyle|semantics|annotation"
)
# Only names and attributes that are really used: "a<b and c>d" is mathematics, and its words are to stay.
_ATTRIBUTES = r"(?:\s+[\w:-]{1,50}\s?=[^<>]{0,500}|\s*)/?"
_INLINE_TAG = re.compile(rf"</?(?:\w{{1,20}}:)?(?:{_INLINE}){_ATTRIBUTES}>", re.IGNORECASE)
_BLOCK_TAG = re.compile(rf"</?(?:\w{{1,20}}:)?(?:{_BLOCK}){_ATTRIBUTES}>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--(?:(?!<!--).){0,5000}?-->|<!\[CDATA\[|\]\]>", re.DOTALL)

_ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", "=": "\u0304", "u": "\u0306", ".": "\u0307",
    '"': "\u0308", "r": "\u030a", "H": "\u030b", "v": "\u030c", "d": "\u0323", "c": "\u0327", "k": "\u0328",
}  # fmt: skip
_LETTER = r"(?:\{\\?([A-Za-z])\}|\\?([A-Za-z]))"
_ACCENT = re.compile(rf"\\(?:([`'^~=.\"])\s?{_LETTER}|([uvHcdkr])(?:\{{\\?([A-Za-z])\}}|\s([A-Za-z])(?![A-Za-z])))")
_LETTERS = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "aa": "å", "AA": "Å",
}  # fmt: skip
_LETTER_COMMAND = re.compile(r"\\(ss|ae|AE|oe|OE|aa|AA|o|O|l|L)(?![A-Za-z])(?:\{\})?\s?")
# Arguments that are keys, addresses or lengths, not words. No argument reaches over the bracket that opens the
# next one: so each character is looked at for one command only, and the work is linear in the text.
_KEYED = re.compile(
    r"\\(?:[cC]ite\w*|ref|eqref|autoref|[cC]ref|label|url|begin|end|bibliography|includegraphics|vspace|hspace|footnotemark|"
    r"textcolor|color|pageref)\*?\s?(?:\[[^\[\]]{0,200}\]){0,2}\{[^{}]{0,500}\}"
)
_LINK = re.compile(r"\\href\s?\{[^{}]{0,500}\}")
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?(\s?\{|\[[^\[\]]{0,200}\]\{)?")
# Commands that stand alone and name a font, a size, a space or a relation: nothing a reader would call a word.
_SILENT = frozenset(
    """
    bf bfseries it itshape em sc scshape tt ttfamily rm sf sl mathbf mathrm mathcal mathbb
    small large Large tiny footnotesize normalsize displaystyle textstyle centering
    left right big Big bigl bigr Bigl Bigr limits nolimits langle rangle lfloor rfloor lceil rceil mid vert Vert
    quad qquad xspace par noindent item newline linebreak protect hfill hline
    cdot cdots ldots dots times to in le leq ge geq neq approx sim equiv pm mp over under not subset subseteq cup cap
    forall exists rightarrow leftarrow Rightarrow xrightarrow mapsto circ ast star prime ell
    """.split()  # noqa: SIM905
)
_ESCAPED = re.compile(r"\\([%&#_{}])")
_DELIMITER = re.compile(r"\\[()\[\],;:!>|/\s\\-]|\$+")
# Longer than any code point; the standard library raises where they are thousands of digits.
_ENDLESS_REFERENCE = re.compile(r"&#[0-9]{20,};?")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]|[\x00-\x08\x0e-\x1f\x7f]")


def _command_word(match: re.Match[str]) -> str:
    """What is left of a LaTeX command: nothing if it formats its argument, else its name (``\\alpha`` -> alpha)."""
    name, argument = match.group(1), match.group(2)
    if argument:
        return "" if name.startswith(("text", "math", "emph")) else " "
    return " " if name in _SILENT else f" {name} "


def _accented(match: re.Match[str]) -> str:
    mark = match.group(1) or match.group(4)
    letter = match.group(2) or match.group(3) or match.group(5) or match.group(6)
    return unicodedata.normalize("NFC", letter + _ACCENTS[mark])


def _strip_latex(text: str) -> str:
    if "\\" in text:
        text = _KEYED.sub(" ", text)
        text = _LINK.sub(" ", text)
        text = _ACCENT.sub(_accented, text)
        text = _LETTER_COMMAND.sub(lambda match: _LETTERS[match.group(1)], text)
        text = _COMMAND.sub(_command_word, text)
        text = _ESCAPED.sub(lambda match: match.group(1) if match.group(1) in "%&#" else " ", text)
    if "$" in text or "\\" in text:
        text = _DELIMITER.sub(" ", text)
    return text.replace("}{", " ").replace("{", "").replace("}", "").replace("~", " ")


def clean_text(title: str | None, abstract: str | None = None) -> str:
    """Title and abstract as one plain text: NFKC, one line, without markup, "" if both are missing or blank.

    Parameters
    ----------
    title, abstract : str or None
        Plain text, HTML or XML fragments (entities too), LaTeX, in any script.

    Notes
    -----
    Tags and formatting commands go and the words inside them stay; so do the names of symbols
    (``$\\alpha$`` becomes "alpha"). Citation keys, labels and addresses are no words and go as well. The variables C
    and R of formulas become small letters, so that the capitals left are names.
    """
    parts = []
    for part in (title, abstract):
        if not part or part.isspace():
            continue
        if "&" in part:
            part = html.unescape(_ENDLESS_REFERENCE.sub("\ufffd", part))
        part = without_variables(part)
        if "<" in part:
            part = _COMMENT.sub(" ", part)
            part = _INLINE_TAG.sub("", part)
            part = _BLOCK_TAG.sub(" ", part)
        part = _strip_latex(part)
        if not (part.isascii() and part.isprintable()):  # most parts are, and need none of this
            part = unicodedata.normalize("NFKC", _few_marks(_INVISIBLE.sub("", part)))
        part = " ".join(part.split())
        if part:
            parts.append(part)
    return " ".join(parts)


# --- words ------------------------------------------------------------------------------------------------


def _ranges(codes: Iterable[int]) -> str:
    """Code points as the inside of a regular expression's character class."""
    spans: list[list[int]] = []
    for code in codes:
        if spans and spans[-1][1] == code - 1:
            spans[-1][1] = code
        else:
            spans.append([code, code])
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in spans)


# Vowel signs and tone marks belong to the word although \w leaves them out; without them every word of
# Hindi, Tamil or Thai falls into single letters.
_MARKS = _ranges(code for code in range(0x300, 0x10000) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
# Normalising sorts marks that stand in a row, which takes the square of their number. Thirty is what Unicode's
# Stream-Safe Text Format leaves on one letter (Unicode Standard Annex 15, section 13).
_STACKED = re.compile(f"[{_ranges(code for code in range(0x300, 0x20000) if unicodedata.combining(chr(code)))}]{{31,}}")
# Written without spaces, or (Hangul) with endings grown onto the word: two neighbouring characters are the
# smallest piece that matches. Thai to Lao, Myanmar, Khmer, kana, bopomofo, Han and its extensions, Hangul.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\W_])(?:(?![{_UNSPACED}])(?:[^\W_]|[{_MARKS}]))*")
_ASCII_WORD = re.compile(r"[a-z0-9]{2,}")
_LATIN = re.compile("[0-9a-z\u00aa-\u024f\u1e00-\u1eff]+")
_PLAIN_WORD = re.compile(r"[^\W_]{2,}")
_UNSPACED_START = re.compile(f"[{_UNSPACED}]")
_SPECIAL = re.compile(f"[{_UNSPACED}{_MARKS}]")  # without any of these the plain pattern finds the same, faster
_whole = methodcaller("group")

_stemmers = threading.local()


@cache
def _stop_words() -> frozenset[str]:
    # imported late: scikit-learn takes a second, and reading profiles needs none of it
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)


def _without_accents(word: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))


@lru_cache(maxsize=STEMS_KEPT)
def _stem(word: str) -> str:
    """The word's form for matching, "" if it carries no meaning."""
    if word in _stop_words() or word.isdecimal():
        return ""
    # "naïve" and "naive", "Poincaré" and "Poincare" are one word
    plain = word if word.isascii() else _without_accents(word)
    # Letters in a heap are no English word, and the stemmer takes the square of their number.
    if len(plain) > LONGEST_WORD or not _LATIN.fullmatch(plain):
        return word
    stemmer = getattr(_stemmers, "english", None)
    if stemmer is None:  # a stemmer keeps the word it works on, so threads must not share one
        import snowballstemmer

        stemmer = _stemmers.english = snowballstemmer.stemmer("english")
    return str(stemmer.stemWord(plain))


def _words(text: str) -> Iterator[str]:
    """Lower-case words and, in scripts without spaces, pairs of characters; before stop words and stems."""
    text, pattern = _prepared(text)
    return _special_words(text) if pattern is None else map(_whole, pattern.finditer(text))


def _prepared(text: str) -> tuple[str, re.Pattern[str] | None]:
    """A text in lower case, and what finds its words: a fast pattern, or None where only `_special_words` will do."""
    text = text.lower()
    if text.isascii():
        return text, _ASCII_WORD
    text = unicodedata.normalize("NFC", _few_marks(text))
    return text, None if any(map(_is_special, set(text))) else _PLAIN_WORD


def _special_words(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = match.group()
        if not _UNSPACED_START.match(word):
            if len(word) >= 2:
                yield word
        elif len(word) == 1:
            yield word
        else:
            yield from (word[at : at + 2] for at in range(len(word) - 1))


@lru_cache(maxsize=1 << 16)
def _is_special(character: str) -> bool:
    return _SPECIAL.match(character) is not None


def _few_marks(text: str) -> str:
    """The text with at most thirty combining marks in a row."""
    if text.isascii() or not any(map(unicodedata.combining, set(text))):
        return text
    return _STACKED.sub(lambda match: match[0][:30], text)


def tokens(text: str) -> list[str]:
    """The words of a text in the form in which they match, in order, repeats included; short names last.

    Lower case, two characters or more, no English stop words, no bare numbers; English Snowball stems of
    words in Latin script, their accents dropped. Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese
    become pairs of neighbouring characters; other scripts stay whole words. Languages named by a letter ("C",
    "R", "C++") count, see `matching.profiles.short_names`.

    Parameters
    ----------
    text : str
        As `clean_text` returns it.
    """
    lower, pattern = _prepared(text)
    words = _special_words(lower) if pattern is None else pattern.findall(lower)
    return [stem for stem in map(_stem, words) if stem] + short_names(text)


def matched_forms(text: str) -> dict[str, tuple[str, ...]]:
    """Form in which words match -> the words of the text that have it, lower case, in order, each once."""
    forms: dict[str, dict[str, None]] = {}
    for word in _words(text):
        if stem := _stem(word):
            forms.setdefault(stem, {})[word] = None
    for name in short_names(text):
        forms.setdefault(name, {})[name] = None
    return {stem: tuple(words) for stem, words in forms.items()}


def has_words(text: str) -> bool:
    """Whether `tokens` finds anything; stops at the first."""
    return any(map(_stem, _words(text))) or bool(short_names(text))


# --- publications -----------------------------------------------------------------------------------------


def publication_year(publication: Publication, this_year: int | None = None) -> int | None:
    """The year if it can be true (a whole number, 1900 to `this_year`), else None.

    Parameters
    ----------
    this_year : int or None
        Last year to believe; None for the calendar's.
    """
    year = publication.year
    last = datetime.date.today().year if this_year is None else this_year
    # tables hand years out as numbers of their own kind, and as fractions where one is missing; NaN fails every test
    if isinstance(year, bool) or not isinstance(year, Real) or not FIRST_YEAR <= year <= last or year != int(year):
        return None
    return int(year)


def _name_of_work(publication: Publication) -> str:
    """Equal for versions of one work: letters and digits of the title, of the abstract where there is no title."""
    for text in map(clean_text, (publication.title, publication.abstract)):  # the second only if need be
        if key := "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text).casefold())):
            return key
    return ""


def merge_versions(publications: Sequence[Publication], this_year: int | None = None) -> tuple[Publication, ...]:
    """One publication a work: preprint, blind copy and final version count once.

    Versions are told by the letters and digits of their titles. The newest that has an abstract stands for
    the work. Publications of weight 0 are left out before that, those without title and abstract too.

    Parameters
    ----------
    publications : sequence of Publication
    this_year : int or None
        See `publication_year`; a version with an impossible year is taken as the oldest.

    Returns
    -------
    tuple of Publication
        In the order in which the works first occur. The choice does not depend on that order.
    """
    works: dict[str, list[Publication]] = {}
    for publication in publications:
        if publication.weight > 0 and (name := _name_of_work(publication)):
            works.setdefault(name, []).append(publication)

    def merit(version: Publication) -> tuple[bool, int, int, str, str, float]:
        abstract = clean_text(version.abstract)
        year = publication_year(version, this_year) or 0
        return bool(abstract), year, len(abstract), abstract, version.id, version.weight

    return tuple(versions[0] if len(versions) == 1 else max(versions, key=merit) for versions in works.values())


def reviewer_documents(reviewer: Reviewer, this_year: int | None = None) -> list[Document]:
    """The texts that speak for a reviewer; empty if nothing was supplied.

    The merged publications that have words. Where none has, the keywords together are one document of
    weight 1.
    """
    documents = []
    for publication in merge_versions(reviewer.publications, this_year):
        text = clean_text(publication.title, publication.abstract)
        if has_words(text):
            documents.append(Document(text, float(publication.weight), publication))
    if not documents and has_words(text := _keyword_text(reviewer.keywords)):
        documents.append(Document(text, 1.0, None))
    return documents


def submission_text(submission: Submission) -> str:
    """Title and abstract, or the keywords where those have no words; "" where nothing has."""
    for text in (clean_text(submission.title, submission.abstract), _keyword_text(submission.keywords)):
        if has_words(text):
            return text
    return ""


def _keyword_text(keywords: Iterable[str]) -> str:
    return clean_text(" ; ".join(keyword for keyword in keywords if keyword))
