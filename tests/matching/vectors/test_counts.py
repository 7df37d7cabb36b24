"""Words counted one text at a time: the same matrix whatever the order, one row for texts that are the same."""

from collections import Counter

import numpy as np
import pytest

from matching.profiles.text import tokens
from matching.vectors.counts import count_words, counted

TEXTS = ["graph kernels graph", "Kernels, Graph: graph!", "protein folding", "", "the of", "folding"]


def test_counts_are_those_of_the_words():
    counts = count_words(TEXTS)
    assert list(counts.columns) == sorted(counts.columns)
    for text, row in zip(TEXTS, counts.rows_of(TEXTS).tolist()):
        found = dict(zip(counts.matrix[[row]].indices.tolist(), counts.matrix[[row]].data.tolist()))
        assert found == {counts.columns[word]: number for word, number in Counter(tokens(text)).items()}


def test_texts_of_the_same_words_are_one_row():
    """Copies of a publication differ in commas and capitals from one co-author's list to the next."""
    counts = count_words(TEXTS)
    assert counts.matrix.shape[0] == 4
    assert counts.rows[TEXTS[0]] == counts.rows[TEXTS[1]] and counts.rows[""] == counts.rows["the of"]


def test_neither_order_nor_repeats_nor_spelling_change_the_matrix():
    once, again = count_words(TEXTS), count_words([*TEXTS[::-1], *TEXTS, "GRAPH graph kernels"])
    assert once.columns == again.columns
    np.testing.assert_array_equal(once.matrix.toarray(), again.matrix.toarray())
    assert {text: once.rows[text] for text in TEXTS} == {text: again.rows[text] for text in TEXTS}


@pytest.mark.parametrize("texts", [[], [""], ["the of", "1 2"]])
def test_b25_no_words_are_no_columns(texts):
    counts = count_words(texts)
    assert counts.matrix.shape == (1 if texts else 0, 0)


def test_later_texts_count_known_words_and_are_as_long_as_they_are():
    counts = count_words(TEXTS)
    matrix, lengths = counted(["graph graph unheard", "", "unheard"], counts.columns)
    assert matrix.toarray()[0, counts.columns["graph"]] == 2.0 and matrix.sum() == 2.0
    assert lengths.tolist() == [3.0, 0.0, 1.0]


def test_progress_is_told_and_may_stop_it(monkeypatch):
    monkeypatch.setattr("matching.vectors.counts.REPORT_EVERY", 2)
    told = []
    count_words(TEXTS, told.append)
    assert told == [0.0, 2 / 6, 4 / 6]

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_words(TEXTS, stop)
