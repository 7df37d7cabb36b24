"""The lexical vectoriser: its formulas on paper-sized texts, its corner cases, its independence of order."""

import math
import warnings

import numpy as np
import pytest

from matching.vectors import LexicalVectorizer

DOCUMENTS = ["graph kernels", "protein folding folding", "graph proteins", "auction theory"]
SUBMISSIONS = ["graph kernels", "folding proteins", "auction mechanisms"]


def part(model, name):
    return next(comparison for comparison in model.comparisons if comparison.name == name)


def everything(comparison):
    return comparison.block(slice(0, comparison.submissions.shape[0]))


def test_equal_texts_have_cosine_one_and_strangers_zero():
    model = LexicalVectorizer().fit(DOCUMENTS, SUBMISSIONS)
    cosine = everything(part(model, "words"))
    assert cosine[0, 0] == pytest.approx(1.0)
    assert cosine[0, 3] == 0.0
    assert 0 < cosine[1, 1] < 1
    topics = everything(part(model, "topics"))
    assert topics[0, 0] == pytest.approx(1.0)
    assert (np.abs(topics) <= 1 + 1e-12).all()


def test_words_follow_the_written_formula():
    """Square root of the count, times smoothed idf, unit length; repeats of a text count once."""
    model = LexicalVectorizer().fit(["alpha alpha beta", "beta"], ["alpha", "alpha"])
    idf = {"alpha": math.log(4 / 3) + 1, "beta": math.log(4 / 3) + 1}  # three distinct texts, two have each
    weights = np.array([math.sqrt(2) * idf["alpha"], idf["beta"]])
    wanted = weights[0] / np.linalg.norm(weights)
    cosine = everything(part(model, "words"))
    np.testing.assert_allclose(cosine, [[wanted, 0.0]] * 2, atol=1e-15)


def test_language_follows_the_written_formula():
    model = LexicalVectorizer().fit(["alpha alpha beta", "beta gamma"], ["alpha beta"])
    total = 7  # words in the three distinct texts
    share = {"alpha": 3 / total, "beta": 3 / total}
    first = (math.log1p(2 / (100 * share["alpha"])) + math.log1p(1 / (100 * share["beta"]))) / 2
    second = math.log1p(1 / (100 * share["beta"])) / 2
    wanted = [first + math.log(100 / 103), second + math.log(100 / 102)]
    np.testing.assert_allclose(everything(part(model, "language"))[0], wanted, rtol=1e-12)


def test_order_and_repeats_of_texts_change_no_similarity():
    """Randomised decompositions start from the order of their rows unless it is made canonical."""
    rng = np.random.default_rng(3)
    words = [f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(120)]
    texts = [" ".join(rng.choice(words, size=12)) for _ in range(60)]
    documents, submissions = texts[:45], texts[40:]
    once = LexicalVectorizer().fit(documents, submissions)
    rows, cols = rng.permutation(len(submissions)), rng.permutation(len(documents))
    again = LexicalVectorizer().fit(
        [documents[col] for col in cols] + documents[:5], [submissions[row] for row in rows]
    )
    for left, right in zip(once.comparisons, again.comparisons, strict=True):
        shuffled = everything(right)[:, : len(documents)]
        np.testing.assert_allclose(shuffled, everything(left)[np.ix_(rows, cols)], atol=1e-12)


@pytest.mark.parametrize(
    ("documents", "submissions"),
    [([], []), ([""], [""]), (["graph"], []), ([], ["graph"]), (["the of"], ["1 2"]), (["graph"], [""])],
)
def test_b25_nothing_to_compare_is_no_error(documents, submissions):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LexicalVectorizer().fit(documents, submissions)
    assert model.comparisons == ()
    assert model.known_documents.shape == (len(documents),)
    assert model.known_submissions.shape == (len(submissions),)


@pytest.mark.parametrize("documents", [["graph"], ["graph", "graph"], ["graph", "", "kernel"], ["graph kernel"] * 3])
def test_b25_the_smallest_corpora_give_finite_numbers(documents):
    """One text or one word leaves no latent space; that part is left out, the others stand."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LexicalVectorizer().fit(documents, ["graph", "", "the"])
        assert model.comparisons
        for comparison in model.comparisons:
            assert np.isfinite(everything(comparison)).all()
    assert model.known_submissions.tolist() == [True, False, False]
    assert model.known_documents.tolist() == [bool(text) for text in documents]


def test_extreme_repetition_gains_little():
    """Repeating a keyword a thousand times must not make a profile fit everything."""
    honest, stuffed = "graph kernels on molecules", "graph " * 1000 + "kernels on molecules"
    model = LexicalVectorizer().fit(
        [honest, stuffed, "auctions", "proteins"], ["graph auctions", "graph kernels on molecules"]
    )
    cosine = everything(part(model, "words"))
    assert cosine[1, 0] > cosine[1, 1]


def test_a_latent_space_learnt_from_a_sample_still_serves_all_texts(monkeypatch):
    """Large venues learn it from some texts and the commoner words; nobody may fall out of it for that."""
    monkeypatch.setattr("matching.vectors.lexical.TOPIC_SAMPLE", 6)
    monkeypatch.setattr("matching.vectors.lexical.TOPIC_WORDS", 4)
    documents = [f"graph kernel rare{at}" for at in "abcdef"] + [f"auction revenue odd{at}" for at in "ghijkl"]
    model = LexicalVectorizer().fit(documents, ["graph kernel", "auction revenue", "unheard words"])
    topics = everything(part(model, "topics"))
    assert (topics[0, :6] > 0.9).all() and (topics[0, 6:] < 0.1).all()
    assert (topics[1, 6:] > 0.9).all() and (topics[1, :6] < 0.1).all()
    assert np.isfinite(topics).all()
