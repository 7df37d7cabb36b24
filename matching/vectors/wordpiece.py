"""Words -> numbers of word pieces, as the models of the BERT family were trained with.

Written out here because it is short, and because the usual library for it brings a client for a model hub along:
nothing in this package should be able to reach for a network.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from matching.errors import InvalidFileError
from matching.vectors.model_json import flag, read_object, why_unreadable

__all__ = ["WordPiece"]

PIECES_KEPT = 1 << 17  # words whose pieces are remembered
LONGEST_WORD = 100  # characters, where a folder says nothing
_ASCII_WORD = re.compile(r"[0-9a-z]+|[!-/:-@\[-`{-~]")
_BLANK = " \t\n\r"


class WordPiece:
    """A vocabulary and the rules by which words are cut into its pieces.

    Parameters
    ----------
    vocabulary : mapping of str to int
        Piece -> number; pieces inside a word start with `prefix`.
    lowercase, strip_accents, split_chinese : bool
        What is done to a text before it is cut.
    special : mapping of str to str
        "unk", "cls" and "sep" -> piece.
    prefix : str
    longest : int
        Most characters of a word; a longer one is unknown as a whole.

    Raises
    ------
    InvalidFileError
        ``invalid-file``: a special piece is not in the vocabulary, or a number is not a whole one of at least 0.

    References
    ----------
    Devlin et al., "BERT: pre-training of deep bidirectional transformers for language understanding",
    NAACL 2019, section 3. Wu et al., "Google's neural machine translation system", arXiv 1609.08144, section 4.1.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        special: Mapping[str, str] | None = None,
        prefix: str = "##",
        longest: int = LONGEST_WORD,
    ) -> None:
        names = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", **(special or {})}
        missing = sorted(piece for piece in names.values() if piece not in vocabulary)
        if missing:
            raise InvalidFileError(f"the vocabulary lacks {', '.join(missing)}")
        odd = [number for number in vocabulary.values() if not _is_count(number)]
        if odd:
            raise InvalidFileError(
                f"the vocabulary numbers a piece {odd[0]!r}; numbers are whole and at least 0 ({len(odd)} are not)"
            )
        self._vocabulary = dict(vocabulary)
        self._prefix, self._longest = prefix, longest
        self._longest_piece = max(map(len, vocabulary))
        self.unknown, self.first, self.last = (vocabulary[names[name]] for name in ("unk", "cls", "sep"))
        self.size = max(self._vocabulary.values()) + 1
        self._lowercase = lowercase
        self._strip_accents = lowercase if strip_accents is None else strip_accents
        self._cleaning = _Cleaning(split_chinese)
        self._spacing = _Spacing()
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str, limit: int) -> list[int]:
        """The first pieces of a text between the two special ones, at most `limit` numbers in all.

        Markers such as ``[SEP]`` inside a text are words like any other: a text cannot forge them.
        """
        out = [self.first]
        for word in self._words(text):
            out.extend(self._pieces(word))
            if len(out) >= limit - 1:
                break
        del out[limit - 1 :]
        out.append(self.last)
        return out

    def _words(self, text: str) -> Iterable[str]:
        if self._lowercase and text.isascii() and text.isprintable():
            return (match.group() for match in _ASCII_WORD.finditer(text.lower()))
        text = text.translate(self._cleaning)
        if self._strip_accents:
            text = "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")
        if self._lowercase:
            text = text.lower()
        return text.translate(self._spacing).split()

    def _pieces(self, word: str) -> tuple[int, ...]:
        found = self._known.get(word)
        if found is None:
            found = self._cut(word)
            if len(self._known) >= PIECES_KEPT:
                self._known.clear()
            self._known[word] = found
        return found

    def _cut(self, word: str) -> tuple[int, ...]:
        """The longest piece from the left, again and again; unknown if a rest has none."""
        if len(word) > self._longest:
            return (self.unknown,)
        out: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest_piece), start, -1):
                piece = self._vocabulary.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return (self.unknown,)
            out.append(piece)
            start, prefix = end, self._prefix
        return tuple(out)

    @classmethod
    def of_folder(cls, folder: Path) -> WordPiece:
        """The tokeniser of a model folder: tokenizer.json, else vocab.txt.

        Raises
        ------
        InvalidFileError
            ``invalid-file``: neither file, not readable, or not of the BERT family.
        """
        settings: dict[str, Any] = {}
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            if (folder / name).exists():
                settings.update(read_object(folder / name))
        special = {
            name: text
            for name in ("unk", "cls", "sep")
            if (text := _plain(settings.get(f"{name}_token"))) is not None
        }  # fmt: skip
        if (folder / "tokenizer.json").is_file():
            return cls._of_json(read_object(folder / "tokenizer.json"), special)
        try:
            lines = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        except FileNotFoundError as error:
            raise InvalidFileError("the model folder has neither tokenizer.json nor vocab.txt") from error
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidFileError(f"vocab.txt cannot be read: {why_unreadable(error)}") from error
        if lines[-1] == "":
            lines.pop()
        file = "tokenizer_config.json"
        return cls(
            {line.rstrip("\r"): number for number, line in enumerate(lines)},
            lowercase=bool(flag(settings, "do_lower_case", True, file)),
            strip_accents=flag(settings, "strip_accents", None, file),
            split_chinese=bool(flag(settings, "tokenize_chinese_chars", True, file)),
            special=special,
        )

    @classmethod
    def _of_json(cls, content: Mapping[str, Any], special: Mapping[str, str]) -> WordPiece:
        file = "tokenizer.json"
        model, normalizer = content.get("model"), content.get("normalizer")
        kinds = [part.get("type") if isinstance(part, dict) else None for part in (model, normalizer)]
        if kinds != ["WordPiece", "BertNormalizer"]:
            raise InvalidFileError(
                f"{file} describes {kinds[0]} with {kinds[1]}; only WordPiece with BertNormalizer is read here"
            )
        assert isinstance(model, dict) and isinstance(normalizer, dict)
        vocabulary = model.get("vocab")
        if not isinstance(vocabulary, dict) or not vocabulary:
            raise InvalidFileError(f"{file} has no vocabulary")
        unknown, prefix = model.get("unk_token", "[UNK]"), model.get("continuing_subword_prefix", "##")
        longest = model.get("max_input_chars_per_word", LONGEST_WORD)
        faults = []
        for name, value in (("unk_token", unknown), ("continuing_subword_prefix", prefix)):
            if not isinstance(value, str):
                faults.append(f"{name} must be text, not {value!r}")
        if not _is_count(longest) or longest < 1:
            faults.append(f"max_input_chars_per_word must be a whole number of at least 1, not {longest!r}")
        if faults:
            raise InvalidFileError(f"{file}: {'; '.join(faults)}")
        return cls(
            vocabulary,
            lowercase=bool(flag(normalizer, "lowercase", True, file)),
            strip_accents=flag(normalizer, "strip_accents", None, file),
            split_chinese=bool(flag(normalizer, "handle_chinese_chars", True, file)),
            special={**special, "unk": unknown},
            prefix=prefix,
            longest=longest,
        )


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _plain(token: Any) -> str | None:
    """A special piece, given as text or as an object with its content."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


class _Cleaning(dict[int, str]):
    """For `str.translate`: control characters go, blanks become spaces, Chinese characters stand alone."""

    def __init__(self, split_chinese: bool) -> None:
        super().__init__()
        self._split_chinese = split_chinese

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind = unicodedata.category(char)
        if char in _BLANK or kind == "Zs":
            out = " "
        elif code == 0xFFFD or kind in ("Cc", "Cf", "Co", "Cs"):
            out = ""
        else:
            out = f" {char} " if self._split_chinese and _is_chinese(code) else char
        self[code] = out
        return out


class _Spacing(dict[int, str]):
    """For `str.translate`: punctuation stands alone."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        # of ASCII all that is neither letter nor digit, "$" and "+" too, although Unicode calls them symbols
        alone = (code < 128 and not char.isalnum() and code > 32) or unicodedata.category(char).startswith("P")
        out = f" {char} " if alone else char
        self[code] = out
        return out


def _is_chinese(code: int) -> bool:
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2B81F
        or 0x2B920 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )
