"""Passages named as shared can be found in both texts."""

import numpy as np
import pytest

from matching.explain.passages import shared_passages


@pytest.mark.parametrize(
    ("text", "other", "found"),
    [
        ("We use graph neural networks for x.", "On Graph Neural Networks for chemistry", ("graph neural networks",)),
        ("it is shown that the", "it is shown that the", ()),
        ("state-of-the-art results", "State-of-the-art. Results", ("state-of-the-art",)),
        ("深度神经网络的方法很多", "关于深度神经网络", ("深度神经网络",)),
        ("обучение с подкреплением роботов", "Обучение с подкреплением", ("обучение с подкреплением",)),
        ("", "anything at all", ()),
        ("two words", "two words", ()),
    ],
)  # fmt: skip
def test_the_longest_common_sequences_are_found(text, other, found):
    """Stop words at the ends and signs around say nothing; inside they belong to the passage."""
    assert shared_passages(text, other) == found


def test_every_passage_stands_in_both_texts():
    """Drawn texts with many repeats, signs and odd blanks."""
    rng = np.random.default_rng(3)
    words = ["deep", "graph", "the", "of", "kernel,", "(sparse)", "net-work", "网络", "模型", "\u00a0", "é", "a."]
    for _ in range(300):
        text, other = (" ".join(rng.choice(words, size=rng.integers(0, 40))) for _ in range(2))
        passages = shared_passages(text, other, limit=10)
        assert all(passage in text and passage in other for passage in passages)
        assert len(set(passages)) == len(passages)


def test_a_repeated_phrase_costs_no_more_than_its_length():
    """Every place in the one against every place in the other would be 10^10."""
    assert shared_passages("deep learning works " * 30_000, "deep learning works " * 30_000)
