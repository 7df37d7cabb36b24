"""Text affinity: in [0, 1] or unknown, in the order of the evidence, whatever the order of the input."""

import warnings

import numpy as np
import pytest

from matching.errors import InvalidParamsError
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Submission
from matching.scores.text import named_scorer, reviewer_texts, text_affinity

GRAPHS = Publication("g", "Graph kernels", "Kernels that compare molecular graphs.", 2020)
PROTEINS = Publication("f", "Protein folding", "Predicting how proteins fold.", 2021)
AUCTIONS = Publication("a", "Auction theory", "Truthful mechanisms and revenue.", 2022)


def reviewer(name, *publications, **fields):
    return Reviewer(name, publications=publications, **fields)


PEOPLE = [
    reviewer("r1", GRAPHS),
    reviewer("r2", PROTEINS),
    reviewer("r3", AUCTIONS),
    reviewer("r4", GRAPHS, PROTEINS),
]
PAPERS = [
    Submission("p1", "Molecular graph kernels", "We compare graphs."),
    Submission("p2", "Folding proteins", "Protein structure."),
    Submission("p3", "Revenue of auctions", "Mechanisms for bidders."),
]


def quietly(papers=PAPERS, people=PEOPLE, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="raise", under="ignore"):
            return text_affinity(papers, people, **options)


def test_experts_come_first_and_all_lies_between_zero_and_one():
    affinity = quietly()
    assert affinity.dtype == np.float32 and affinity.shape == (3, 4)
    assert affinity.argmax(axis=1).tolist() == [0, 1, 2]
    assert ((affinity > 0) & (affinity < 1)).all()
    assert affinity[0, 3] > affinity[0, 2]


def test_b25_what_has_no_text_is_unscored_and_the_rest_is_not():
    papers = [Submission("p1"), Submission("p2", "", "  \n"), Submission("p3", None, None), PAPERS[0]]
    affinity = quietly(papers, [*PEOPLE, reviewer("r5"), reviewer("r6", Publication("x", "the", "of and 12"))])
    assert np.isnan(affinity[:3]).all()
    assert np.isfinite(affinity[3, :4]).all()
    assert np.isnan(affinity[3, 4:]).all()


@pytest.mark.parametrize("text", ["the of and", "1 2", ""])
def test_b25_an_empty_vocabulary_leaves_everything_unscored(text):
    papers = [Submission("p1", "", text), Submission("p2", text)]
    assert np.isnan(quietly(papers, [reviewer("r1", Publication("x", text, text))])).all()
    assert np.isnan(quietly(papers, PEOPLE)).all()
    assert np.isnan(quietly(PAPERS, [reviewer("r1", Publication("x", text, text))])).all()


def test_b25_empty_sides_have_empty_affinity():
    assert quietly([], PEOPLE).shape == (0, 4)
    assert quietly(PAPERS, []).shape == (3, 0)


def test_where_nothing_tells_pairs_apart_all_known_ones_get_one_half():
    same = Publication("x", "Graph kernels")
    affinity = quietly(
        [Submission("p1", "Graph kernels"), Submission("p2")], [reviewer("r1", same), reviewer("r2", same)]
    )
    np.testing.assert_array_equal(affinity, [[0.5, 0.5], [np.nan, np.nan]])
    assert quietly([PAPERS[0]], [PEOPLE[2]]).tolist() == [[0.5]]


def test_b26_keywords_alone_give_scores():
    affinity = quietly(PAPERS, [*PEOPLE, Reviewer("r5", keywords=("graph kernels", "molecules"))])
    assert np.isfinite(affinity).all()
    assert affinity[0, 4] > affinity[2, 4]


def test_b27_repeated_versions_give_equal_scores():
    again = [Publication(f"g{at}", "Graph Kernels.", GRAPHS.abstract, 2020) for at in range(2)]
    once = quietly(PAPERS, [*PEOPLE[:3], reviewer("r4", GRAPHS, PROTEINS)])
    often = quietly(PAPERS, [*PEOPLE[:3], reviewer("r4", GRAPHS, *again, PROTEINS)])
    np.testing.assert_allclose(once, often, atol=1e-9)


def test_b27_recency_prefers_what_somebody_works_on_now():
    old = Publication("o", GRAPHS.title, GRAPHS.abstract, 2005)
    new = Publication("n", PROTEINS.title, PROTEINS.abstract, 2024)
    people = [*PEOPLE[:3], reviewer("r4", old, new)]
    plain, recent = quietly(PAPERS, people), quietly(PAPERS, people, half_life=4.0, this_year=2024)
    assert recent[0, 3] < recent[1, 3]
    assert recent[0, 3] < plain[0, 3]


@pytest.mark.parametrize("year", [None, 2099, 1, -5])
def test_b27_bad_years_are_neutral(year):
    dated = [Publication("a", "A", "graphs", 2024), Publication("b", "B", "kernels", 2020)]
    texts = reviewer_texts([reviewer("r", *dated, Publication("c", "C", "proteins", year))], 4.0, 2024)
    by_id = {document.publication.id: weight for document, weight in zip(texts.documents, texts.weights)}
    assert by_id == pytest.approx({"a": 1.0, "b": 0.5, "c": 0.75})
    alone = reviewer_texts([reviewer("r", Publication("c", "C", "proteins", year))], 4.0, 2024)
    assert alone.weights.tolist() == [1.0]


def test_b27_an_old_profile_does_not_vanish():
    """Half a century at a half-life of a month is below the smallest float; the ratios are what counts."""
    people = [*PEOPLE[:3], reviewer("r4", Publication("x", GRAPHS.title, GRAPHS.abstract, 1950))]
    affinity = quietly(PAPERS, people, half_life=0.08, this_year=2024)
    assert np.isfinite(affinity).all()


def drawn_venue(seed, n_papers=14, n_people=11):
    rng = np.random.default_rng(seed)
    words = [f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(90)]

    def text():
        return " ".join(rng.choice(words, size=rng.integers(0, 15)))

    papers = [Submission(f"p{at}", text(), text()) for at in range(n_papers)]
    people = [
        reviewer(f"r{at}", *(Publication(f"{at}-{to}", text(), text(), 2000 + to) for to in range(rng.integers(0, 9))))
        for at in range(n_people)
    ]
    return papers, people


@pytest.mark.parametrize("half_life", [None, 5.0])
def test_order_of_rows_columns_and_publications_changes_no_score(half_life):
    papers, people = drawn_venue(5)
    rng = np.random.default_rng(6)
    rows, cols = rng.permutation(len(papers)), rng.permutation(len(people))
    turned = [Reviewer(person.id, publications=person.publications[::-1]) for person in people]
    once = quietly(papers, people, half_life=half_life)
    again = quietly([papers[row] for row in rows], [turned[col] for col in cols], half_life=half_life)
    np.testing.assert_allclose(again, once[np.ix_(rows, cols)], atol=1e-9)


def test_blocks_of_submissions_do_not_show(monkeypatch):
    papers, people = drawn_venue(7)
    whole = quietly(papers, people)
    monkeypatch.setattr("matching.scores.text.BLOCK_SIMILARITIES", 1)
    np.testing.assert_allclose(quietly(papers, people), whole, atol=1e-6)


def test_texts_in_any_script_match():
    papers = [Submission("p1", "深度学习的图像识别"), Submission("p2", "Обучение с подкреплением")]
    people = [reviewer("r1", Publication("a", "图像识别方法")), reviewer("r2", Publication("b", "обучение роботов"))]
    affinity = quietly(papers, people)
    assert affinity[0, 0] > affinity[0, 1] and affinity[1, 1] > affinity[1, 0]


def test_an_unknown_scorer_lists_the_known():
    with pytest.raises(InvalidParamsError, match="known: lexical"):
        named_scorer("oracle")
