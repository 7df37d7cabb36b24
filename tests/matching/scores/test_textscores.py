"""Text affinity as an operator: exact or within its tolerance, the same on every machine, added to without a refit."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from matching.errors import InvalidParamsError, StorageError
from matching.pairs import PairSet
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Submission
from matching.scores.base import DenseScores, ScoreOperator
from matching.scores.pooling import pool_lse
from matching.scores.shares import pooled_similarity
from matching.scores.textscores import TextScores
from matching.vectors import Comparison, Group, TextModel

N_PAPERS, N_PEOPLE = 150, 40


def drawn_venue(seed=1, n_papers=N_PAPERS, n_people=N_PEOPLE):
    """Texts of six topics; one paper and two people say nothing, one title in two papers and two profiles."""
    rng = np.random.default_rng(seed)
    words = [f"word{chr(97 + at % 26)}{chr(97 + at // 26)}" for at in range(300)]

    def text(topic):
        own = rng.integers(50 * topic, 50 * topic + 50, size=8)
        return " ".join(words[at] for at in [*own, *rng.integers(300, size=8)])

    papers = [Submission(f"p{at}", text(at % 6), text(at % 6)) for at in range(n_papers)]
    people = [
        Reviewer(
            f"r{at}",
            publications=tuple(
                Publication(f"{at}-{to}", text(at % 6), text(at % 6), 2000 + to) for to in range(rng.integers(1, 9))
            ),
        )
        for at in range(n_people)
    ]
    papers[7] = Submission("p7", "the of", "and")
    people[3], people[5] = Reviewer("r3"), Reviewer("r5", publications=(Publication("x", "1 2"),))
    papers[9] = Submission("p9", papers[8].title, papers[8].abstract)
    people[11] = Reviewer("r11", publications=people[10].publications)
    return papers, people


def whole(scores: ScoreOperator):
    return np.array(scores.block(slice(0, scores.shape[0]), slice(0, scores.shape[1])))


def exact(scores: ScoreOperator):
    rows, cols = (part.ravel() for part in np.indices(scores.shape))
    return scores.values(rows, cols).reshape(scores.shape)


@pytest.fixture(params=["matrix", "codes", "codes, sampled"])
def form(request, monkeypatch):
    """Each form a venue's affinities can take, whatever the size of the venue."""
    if request.param != "matrix":
        monkeypatch.setattr("matching.scores.filling.MATRIX_PAIRS", 0)
    if request.param == "codes, sampled":
        monkeypatch.setattr("matching.scores.filling.KEPT_PAIRS", 0)
        monkeypatch.setattr("matching.scores.filling.SAMPLED_ROWS", 100)
    return request.param


def test_a_block_is_within_tolerance_of_the_exact_values(form):
    scores = TextScores.fit(*drawn_venue())
    block, values = whole(scores), exact(scores)
    assert block.dtype == np.float32 and values.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(block), np.isnan(values))
    assert np.isnan(values[7]).all() and np.isnan(values[:, [3, 5]]).all()
    assert scores.known_pairs == np.isfinite(values).sum() == (N_PAPERS - 1) * (N_PEOPLE - 2)
    assert np.nanmax(np.abs(block - values)) <= scores.tolerance
    assert (scores.tolerance == 0.0) == (form == "matrix") and scores.tolerance < 2e-5
    assert scores.mean == pytest.approx(np.nanmean(values), abs=1e-5)
    low, high = scores.bounds()
    assert low <= np.nanmin(values) and np.nanmax(values) <= high and high - np.nanmax(values) < 1e-4
    np.testing.assert_array_equal(scores.block(slice(4, 9), slice(2, 30)), block[4:9, 2:30])


def test_affinities_lie_on_a_grid(form):
    """So the last digits, which differ from processor to processor, do not decide among equals."""
    values = exact(TextScores.fit(*drawn_venue())) * 2.0**20
    known = np.isfinite(values)
    np.testing.assert_array_equal(values[known], np.rint(values[known]))


def test_both_forms_say_the_same(monkeypatch):
    matrix = exact(TextScores.fit(*drawn_venue()))
    monkeypatch.setattr("matching.scores.filling.MATRIX_PAIRS", 0)
    np.testing.assert_allclose(exact(TextScores.fit(*drawn_venue())), matrix, atol=3 * 2.0**-20)


def test_neither_threads_nor_their_number_change_a_bit(form):
    venue = drawn_venue()
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads), ThreadPoolExecutor(threads) as executor:
            scores = TextScores.fit(*venue, executor=executor)
        found.append((whole(scores), exact(scores)))
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


def test_no_order_changes_a_bit(form):
    """Neither that of submissions nor of reviewers nor of publications: to the last bit, and so to 1e-9."""
    papers, people = drawn_venue()
    rng = np.random.default_rng(2)
    rows, cols = rng.permutation(N_PAPERS), rng.permutation(N_PEOPLE)
    turned = [Reviewer(person.id, publications=person.publications[::-1]) for person in people]
    once = TextScores.fit(papers, people)
    again = TextScores.fit([papers[row] for row in rows], [turned[col] for col in cols])
    np.testing.assert_array_equal(whole(again), whole(once)[np.ix_(rows, cols)])
    np.testing.assert_array_equal(exact(again), exact(once)[np.ix_(rows, cols)])


@pytest.mark.parametrize("half_life", [None, 3.0])
def test_similarities_make_the_score_by_the_same_formula(form, half_life):
    """What explains a score has to add up to it."""
    scores = TextScores.fit(*drawn_venue(), half_life=half_life, this_year=2024)
    values = exact(scores)
    for row, col in ((0, 0), (8, 11), (149, 39), (7, 2), (4, 3), (6, 5)):
        found = scores.similarities(row, col)
        pooled = [pooled_similarity(comparison, alike, weights) for _, comparison, alike, weights in found]
        assert [entry[1].name for entry in found] == ["words", "topics", "language"]
        assert all(entry[2].size == entry[3].size == len(scores.documents_of(col)) for entry in found)
        np.testing.assert_equal(scores.affinity_of_pooled(pooled, row), values[row, col])


def test_who_is_added_changes_no_other_score_and_gets_what_a_twin_has(form):
    papers, people = drawn_venue()
    before = TextScores.fit(papers, people)
    scores = before.with_reviewer(people[10]).with_submission(papers[8]).with_reviewer(people[5])
    scores = scores.with_submission(papers[20]).with_submission(papers[7])
    assert scores.shape == (N_PAPERS + 3, N_PEOPLE + 2) and before.shape == (N_PAPERS, N_PEOPLE)
    for form_of in (whole, exact):
        after, first = form_of(scores), form_of(before)
        np.testing.assert_array_equal(after[:N_PAPERS, :N_PEOPLE], first)
        slack = 2.0**-19 + 2 * scores.tolerance  # a sweep rounds the submission's mean in single precision
        np.testing.assert_allclose(after[:N_PAPERS, N_PEOPLE], first[:, 10], atol=slack)
        np.testing.assert_allclose(after[N_PAPERS, :N_PEOPLE], first[8], atol=slack)
        np.testing.assert_allclose(after[N_PAPERS + 1, N_PEOPLE], first[20, 10], atol=slack)
        assert np.isnan(after[:, -1]).all() and np.isnan(after[-1]).all()
    assert np.nanmax(np.abs(whole(scores) - exact(scores))) <= scores.tolerance
    np.testing.assert_array_equal(
        scores.block(slice(140, N_PAPERS + 2), slice(30, N_PEOPLE + 1)), whole(scores)[140:-1, 30:-1]
    )
    np.testing.assert_array_equal(
        scores.block(slice(N_PAPERS, N_PAPERS + 2), slice(N_PEOPLE, N_PEOPLE + 2)),
        whole(scores)[N_PAPERS:-1, N_PEOPLE:],
    )
    assert scores.known_pairs == np.isfinite(exact(scores)).sum()
    assert [document.text for document in scores.documents_of(N_PEOPLE)] == [
        document.text for document in scores.documents_of(10)
    ]
    (_, _, alike, _), *_ = scores.similarities(N_PAPERS, N_PEOPLE)
    np.testing.assert_allclose(alike, scores.similarities(8, 10)[0][2], atol=1e-12)


def test_who_is_added_is_scored_nearly_as_by_a_refit(form):
    """The drift: words and topics learnt without one person of forty. Real venues are larger, and drift less."""
    papers, people = drawn_venue()
    refitted = exact(TextScores.fit(papers, people))
    added = exact(TextScores.fit(papers, people[:-1]).with_reviewer(people[-1]))
    drift = np.abs(added - refitted)
    assert np.nanmean(drift) < 0.01 and np.nanmean(drift[:, -1]) < 0.05
    assert np.corrcoef(added[np.arange(N_PAPERS) != 7, -1], refitted[np.arange(N_PAPERS) != 7, -1])[0, 1] > 0.95


def test_words_that_nobody_used_before_match_nothing():
    papers, people = drawn_venue()
    scores = TextScores.fit(papers, people)
    strange = scores.with_submission(Submission("new", "unheard inventions", "unseen"))
    assert np.isnan(whole(strange)[-1]).all()
    longer = Submission("new", papers[8].title, f"{papers[8].abstract} unheard inventions")
    mixed = whole(scores.with_submission(longer))[-1]
    assert np.corrcoef(mixed[[0, 1, 2, 4, 6]], whole(scores)[8, [0, 1, 2, 4, 6]])[0, 1] > 0.9


def test_a_scorer_that_has_to_be_fitted_again_says_so():
    papers, people = drawn_venue()
    scores = TextScores.fit(papers, people[:3], vectorizer=Given(np.eye(2)))
    with pytest.raises(InvalidParamsError, match="fit it again"):
        scores.with_reviewer(people[0])


def test_the_file_of_a_large_venue_goes_with_it(monkeypatch, tmp_path):
    monkeypatch.setattr("matching.scores.filling.MATRIX_PAIRS", 0)
    papers, people = drawn_venue()
    scores = TextScores.fit(papers, people, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size == 2 * N_PAPERS * N_PEOPLE
    more = scores.with_reviewer(people[0])
    del scores
    gc.collect()
    assert file.exists() and whole(more).shape == (N_PAPERS, N_PEOPLE + 1)
    del more
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_run_that_is_stopped_leaves_nothing(form, monkeypatch, tmp_path):
    """What progress raises is how a run is cancelled."""
    monkeypatch.setattr("matching.scores.filling.ROWS", 16)
    shares = []

    def stop(share):
        shares.append(share)
        if share > 0.8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TextScores.fit(*drawn_venue(), folder=tmp_path, progress=stop)
    gc.collect()
    assert not list(tmp_path.iterdir())
    assert shares == sorted(shares) and shares[0] == 0.0
    told = []
    TextScores.fit(*drawn_venue(), progress=told.append)
    assert told[-1] == 1.0


def test_a_folder_without_room_is_an_error_at_once(monkeypatch, tmp_path):
    """And not a crash when the disk fills up after an hour of encoding."""

    class NeverReached:
        def fit(self, documents, submissions):
            pytest.fail("no text may be worked on")

    monkeypatch.setattr("matching.scores.filling.MATRIX_PAIRS", 0)
    with pytest.raises(StorageError, match="nowhere"):
        TextScores.fit(*drawn_venue(), vectorizer=NeverReached(), folder=tmp_path / "nowhere")


def test_a_scorer_that_fails_leaves_no_file(monkeypatch, tmp_path):
    """The exception may be kept for long, in a log or a debugger; the gigabytes are not."""

    class Failing:
        def fit(self, documents, submissions):
            assert list(tmp_path.iterdir())
            raise ZeroDivisionError

    monkeypatch.setattr("matching.scores.filling.MATRIX_PAIRS", 0)
    with pytest.raises(ZeroDivisionError) as caught:
        TextScores.fit(*drawn_venue(), vectorizer=Failing(), folder=tmp_path)
    assert caught.value is not None and not list(tmp_path.iterdir())


def test_a_solver_finds_the_same_pairs_in_codes_as_in_exact_scores(monkeypatch):
    """Codes only say where to look; what exceeds prices is decided by exact values."""
    monkeypatch.setattr("matching.scores.filling.MATRIX_PAIRS", 0)
    scores = TextScores.fit(*drawn_venue())
    dense = DenseScores(exact(scores))
    rng = np.random.default_rng(3)
    prices = rng.uniform(0.1, 0.3, size=N_PAPERS), rng.uniform(0.0, 0.2, size=N_PEOPLE)
    pairs, excess, _ = scores.exceeding(*prices, 1e-9)
    wanted, wanted_excess, _ = dense.exceeding(*prices, 1e-9)
    assert 100 < len(pairs) == len(wanted)
    np.testing.assert_array_equal(pairs, wanted)
    np.testing.assert_array_equal(excess, wanted_excess)
    nothing = PairSet(None, scores.shape)
    best = scores.top_pairs(3, nothing, np.random.default_rng(4))
    assert len({*map(tuple, best)} & {*map(tuple, dense.top_pairs(3, nothing, np.random.default_rng(4)))}) > 0.95 * len(
        best
    )


def test_publications_too_old_to_weigh_anything_still_speak(form):
    """Recency leaves the newest a weight of 1; where that one says nothing, the others count alike."""
    papers, people = drawn_venue()
    old = [Publication(f"o{at}", papers[at].title, papers[at].abstract, 1950) for at in (0, 6)]
    people[0] = Reviewer("r0", publications=(*old, Publication("n", "unheard inventions", "unseen", 2024)))
    before = TextScores.fit(papers, people[1:], half_life=0.01, this_year=2024)
    scores = before.with_reviewer(people[0])
    even = before.with_reviewer(Reviewer("even", publications=tuple(old)))
    np.testing.assert_allclose(exact(scores)[:, -1], exact(even)[:, -1], atol=1e-6)


class Given:
    """A vectoriser that gives every document and submission the next of some vectors."""

    def __init__(self, vectors, **pooling):
        self.vectors, self.pooling = np.asarray(vectors), pooling

    def fit(self, documents, submissions):
        right, left = (self.vectors[np.arange(len(texts)) % len(self.vectors)] for texts in (documents, submissions))
        comparison = Comparison("given", left, right, **self.pooling)
        known = np.ones(len(submissions), dtype=bool), np.ones(len(documents), dtype=bool)
        return TextModel((Group("given", (comparison,), *known),))

    def describe(self):
        return {"scorer": "given"}


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_soft_maxima_of_any_size_are_finite_and_right(form, scale):
    """Exponentials of similarities over the temperature would overflow, or vanish and leave a logarithm of 0."""
    vectors = np.random.default_rng(5).normal(size=(7, 2)) * np.sqrt(scale)
    papers, people = drawn_venue()
    people = [person for person in people if person.id not in ("r3", "r5")]
    given = Given(vectors, pooling="lse", amount=0.3)
    scores = TextScores.fit(papers, people, vectorizer=given)
    model, texts = scores.model, scores.texts
    alike = model.comparisons[0].block(slice(0, N_PAPERS))
    pooled = pool_lse(alike, texts.indptr, texts.weights, 0.3)
    standardised = (pooled - pooled.mean()) / pooled.std()
    wanted = 0.5 + np.arctan((standardised - 1.0) / 1.25) / np.pi
    assert np.isfinite(whole(scores)).all()
    if form != "codes, sampled":  # there the mean and deviation are those of a sample
        np.testing.assert_allclose(whole(scores), wanted, atol=2e-6 + scores.tolerance)
    assert np.abs(whole(scores) - exact(scores)).max() <= scores.tolerance


@pytest.mark.parametrize("dense_from", [0.0, 1.0])
def test_words_are_compared_alike_whether_common_or_rare(monkeypatch, dense_from):
    venue = drawn_venue()
    wanted = whole(TextScores.fit(*venue))
    monkeypatch.setattr("matching.scores.sweep.DENSE_FROM", dense_from)
    np.testing.assert_allclose(whole(TextScores.fit(*venue)), wanted, atol=2.0**-20)
