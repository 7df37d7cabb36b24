"""Word pieces: by hand on a small vocabulary, and against the usual library where it is installed."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from matching.errors import InvalidFileError
from matching.vectors.wordpiece import WordPiece
from tests.tiny_bert import VOCABULARY, tokenizer_json, write_model

NUMBER = {word: at for at, word in enumerate(VOCABULARY)}


def pieces(text, limit=99, tokenizer=None):
    return [VOCABULARY[at] for at in (tokenizer or WordPiece(NUMBER)).encode(text, limit)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        ("Graph kernels", ["graph", "kernel", "##s"]),
        ("folding, folded.", ["fold", "##ing", ",", "fold", "##ed", "."]),
        ("zebra graph", ["[UNK]", "graph"]),
        ("graphx", ["[UNK]"]),
        ("图graph", ["图", "graph"]),
        ("gr\u0301aph\u200b ROBOT\u00a0soft", ["graph", "robot", "soft"]),
        ("é\x00\ufffd\x07", ["e"]),
        ("the\nof\tand", ["the", "of", "and"]),
        ("a" * 101, ["[UNK]"]),
        ("[SEP] graph [CLS]", ["[UNK]", "[UNK]", "[UNK]", "graph", "[UNK]", "[UNK]", "[UNK]"]),
    ],
)
def test_texts_become_the_pieces_one_finds_by_hand(text, wanted):
    """Markers inside a text are words: whoever writes an abstract must not end it for the model."""
    assert pieces(text) == ["[CLS]", *wanted, "[SEP]"]


@pytest.mark.parametrize("limit", [3, 4, 5, 99])
def test_a_long_text_is_cut_and_still_closed(limit):
    """The first pieces and the closing marker, never more than the limit."""
    found = pieces("graphs kernels", limit)
    assert found == ["[CLS]", *["graph", "##s", "kernel", "##s"][: limit - 2], "[SEP]"]


def test_fifty_thousand_words_are_no_trouble():
    """Whole profiles pasted into one abstract happen."""
    assert len(pieces("graph kernels " * 25_000, 256)) == 256


def test_both_vocabulary_files_give_the_same_pieces(tmp_path):
    """Older folders have the plain list only."""
    new = WordPiece.of_folder(write_model(tmp_path / "new"))
    old = WordPiece.of_folder(write_model(tmp_path / "old", vocabulary="vocab.txt"))
    for text in ("Graph kernels, éfolding 图!", "protein"):
        assert new.encode(text, 99) == old.encode(text, 99) == WordPiece(NUMBER).encode(text, 99)


def test_a_cased_vocabulary_keeps_capitals(tmp_path):
    """Some models tell "US" from "us"."""
    folder = write_model(tmp_path, vocabulary="vocab.txt")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False, "sep_token": {"content": "."}}))
    cased = WordPiece.of_folder(folder)
    assert pieces("Graph graph é", tokenizer=cased) == ["[CLS]", "[UNK]", "graph", "[UNK]", "."]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content["model"].update(type="BPE"), "describes BPE"),
        (lambda content: content.update(normalizer=None), "with None"),
        (lambda content: content["model"].update(vocab=["a"]), "no vocabulary"),
        (lambda content: content["model"]["vocab"].pop("[SEP]"), r"lacks \[SEP\]"),
    ],
)
def test_a_tokenizer_of_another_kind_is_refused(tmp_path, change, said):
    """Other pieces under the same numbers would give vectors of noise."""
    content = tokenizer_json()
    change(content)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(InvalidFileError, match=said):
        WordPiece.of_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [("vocab.txt", None), ("vocab.txt", b"\xff"), ("tokenizer.json", b"{"), ("tokenizer_config.json", b"[]")],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, content):
    """A folder may be half copied."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidFileError, match=name.replace(".", r"\.")):
        WordPiece.of_folder(tmp_path)


# up to here both sides use the same edition of the character tables
ALPHABET = st.one_of(
    st.sampled_from("graphkernlfoldingst .,!-$^'\"图的éÉßİ\u0301\u00a0\u200b\t\n\x00\ufffd"),
    st.characters(max_codepoint=0x05FF),
    st.characters(min_codepoint=0x2000, max_codepoint=0x2DFF),
    st.characters(min_codepoint=0x3000, max_codepoint=0x9FFF),
)


@given(st.text(ALPHABET, max_size=40))
@example("graph\u3000kernels\u2028fold ｇｒａｐｈ ￥ … “fold”")
def test_any_text_gives_what_the_usual_library_gives(text):
    """It is the definition of these pieces; this package reads none of it at run time."""
    tokenizers = pytest.importorskip("tokenizers", reason="the usual library is not installed")
    theirs = tokenizers.Tokenizer.from_str(
        json.dumps({
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "post_processor": None,
            "decoder": None, **tokenizer_json(),
        })
    )  # fmt: skip
    assert WordPiece(NUMBER).encode(text, 10_000)[1:-1] == theirs.encode(text).ids
