"""Text affinity: in [0, 1] or unknown, in the order of the evidence, whatever the order of the input."""

import warnings

import numpy as np
import pytest

from matching.errors import InvalidFileError, InvalidParamsError, MissingExtraError
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Submission
from matching.resources import Resources
from matching.scores.text import SCORERS, known_scorer, named_scorer, reviewer_texts, text_affinity
from matching.vectors import Comparison, Group, HybridVectorizer, LexicalVectorizer, TextModel
from tests.tiny_bert import write_model

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
    monkeypatch.setattr("matching.scores.filling.ROWS", 3)
    monkeypatch.setattr("matching.scores.sweep.DOCUMENTS", 5)
    np.testing.assert_array_equal(quietly(papers, people), whole)


def test_texts_in_any_script_match():
    papers = [Submission("p1", "深度学习的图像识别"), Submission("p2", "Обучение с подкреплением")]
    people = [reviewer("r1", Publication("a", "图像识别方法")), reviewer("r2", Publication("b", "обучение роботов"))]
    affinity = quietly(papers, people)
    assert affinity[0, 0] > affinity[0, 1] and affinity[1, 1] > affinity[1, 0]


def test_an_unknown_scorer_lists_the_known():
    with pytest.raises(InvalidParamsError, match="known: auto, encoder, hybrid, lexical"):
        named_scorer("oracle")


def test_auto_is_hybrid_where_an_encoder_is_to_be_had(monkeypatch, tmp_path):
    """The best there is on this machine; a chair who wants one scorer everywhere names it."""
    assert known_scorer("auto") == "lexical"
    assert known_scorer("auto", Resources(encoder_model=tmp_path)) == "hybrid"
    assert known_scorer("auto", Resources(encoder_cache=tmp_path)) == "lexical"
    monkeypatch.setattr("matching.scores.text.has_packaged_weights", lambda: True)
    assert known_scorer("auto") == "hybrid"
    assert all(known_scorer(name) == name for name in SCORERS)


def test_a_scorer_says_what_it_is(tmp_path):
    """Plans of different scorers must not be taken for each other."""
    resources = Resources(write_model(tmp_path))
    assert {name: named_scorer(name, resources).describe()["scorer"] for name in SCORERS} == {n: n for n in SCORERS}


@pytest.mark.parametrize("scorer", ["encoder", "hybrid"])
def test_a_scorer_without_its_weights_says_what_to_add(monkeypatch, scorer):
    """Not a lexical plan under the name of another scorer."""
    monkeypatch.setattr("matching.vectors.model._packaged_folder", lambda: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'revmatch\[encoder\]'"):
        quietly(vectorizer=named_scorer(scorer))


def test_auto_with_a_broken_model_is_an_error(tmp_path):
    """The operator named a model; silently doing without it would not be noticed for years."""
    with pytest.raises(InvalidFileError):
        quietly(vectorizer=named_scorer("auto", Resources(tmp_path / "nowhere")))


ONE_EACH = [reviewer(f"r{at}", Publication("x", f"{word} graphs")) for at, word in enumerate("abcd")]


class Given:
    """A vectoriser whose groups are made by hand from matrices of similarities."""

    def __init__(self, *groups):
        """Each: weight, then matrices of shape (n_submissions, n_documents)."""
        self.groups = groups

    def fit(self, documents, submissions):
        """One document a reviewer; a matrix with NaN in a whole row or column leaves that text unknown."""
        found = []
        for at, (weight, *matrices) in enumerate(self.groups):
            unknown = np.isnan(matrices[0])
            parts = tuple(
                Comparison(f"{at}-{to}", np.nan_to_num(matrix), np.eye(matrix.shape[1]), pooling="mean")
                for to, matrix in enumerate(matrices)
            )
            found.append(Group(str(at), parts, ~unknown.all(axis=1), ~unknown.all(axis=0), weight))
        return TextModel(tuple(found))

    def describe(self):
        return {"scorer": "given"}


def standardised(matrix):
    return (matrix - matrix.mean()) / matrix.std()


def curve(matrix):
    return 0.5 + np.arctan((standardised(matrix) - 1.0) / 1.25) / np.pi


def test_groups_are_added_as_the_formula_says():
    """z(0.7 z(first) + 0.3 z(z(second) + z(third))), whatever the scales of the three."""
    rng = np.random.default_rng(4)
    first, second, third = rng.normal(size=(3, 3, 4)) * [[[1.0]], [[50.0]], [[0.01]]]
    words = standardised(standardised(second) + standardised(third))
    wanted = curve(0.7 * standardised(first) + 0.3 * words)
    for groups in ([(0.7, first), (0.3, second, third)], [(0.3, second, third), (0.7, first)]):
        np.testing.assert_allclose(quietly(PAPERS, ONE_EACH, vectorizer=Given(*groups)), wanted, atol=1e-5)


def test_a_group_that_knows_nothing_of_a_pair_leaves_it_to_the_others():
    """Its mean stands in: neither praise nor blame. A pair that no group knows stays unscored."""
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(2, 3, 4))
    first[:, 3], second[:, 0], second[2] = np.nan, np.nan, np.nan
    total = np.zeros((3, 4))
    total[:, :3] += 0.6 * standardised(first[:, :3])
    total[:2, 1:] += 0.4 * standardised(second[:2, 1:])
    known = np.ones((3, 4), dtype=bool)
    known[2, 3] = False
    wanted = np.full((3, 4), np.nan)
    wanted[known] = curve(total[known])
    np.testing.assert_allclose(
        quietly(PAPERS, ONE_EACH, vectorizer=Given((0.6, first), (0.4, second))), wanted, atol=1e-5
    )


def test_a_group_in_which_nothing_differs_does_not_disturb_the_others():
    """An encoder of one constant vector, say."""
    first = np.random.default_rng(6).normal(size=(3, 4))
    found = quietly(PAPERS, ONE_EACH, vectorizer=Given((0.3, first), (0.7, np.ones((3, 4)))))
    np.testing.assert_allclose(found, curve(first), atol=1e-5)


def test_hybrid_is_the_weighted_sum_of_its_two_scorers():
    """Seven tenths of the encoder, three of the words."""
    matrix = np.random.default_rng(7).normal(size=(3, 4))
    documents, submissions = [p.publications[0].title for p in ONE_EACH], [p.title for p in PAPERS]
    plain = LexicalVectorizer().fit(documents, submissions)
    groups = HybridVectorizer(Given((1.0, matrix))).fit(documents, submissions).groups
    assert [(group.name, round(group.weight, 12)) for group in groups] == [("lexical", 0.3), ("0", 0.7)]
    assert [part.name for part in groups[0].comparisons] == [part.name for part in plain.comparisons]
