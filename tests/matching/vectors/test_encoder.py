"""The encoder as a vectoriser: its vectors, its neighbours, its cache, and its independence of order."""

import numpy as np
import pytest

from matching.errors import InvalidFileError, MissingExtraError
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Submission
from matching.scores.text import text_affinity
from matching.scores.textscores import TextScores
from matching.vectors import EncoderVectorizer, HybridVectorizer
from matching.vectors import encoder as under_test
from matching.vectors import model as models
from matching.vectors.bert import BertEncoder
from matching.vectors.neighbours import smoothed
from tests.tiny_bert import WORDS, drawn_weights, reference, write_model

pytestmark = pytest.mark.usefixtures("no_sockets")

DOCUMENTS = ["Graph kernels.", "Protein folding", "Auction theory", "Deep learning of images", "graph, kernels"]
SUBMISSIONS = ["Kernels on graphs", "Soft robots grasp"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def encoded(monkeypatch):
    """The piece lists that were really encoded."""
    seen = []
    real = BertEncoder.encode

    def counted(self, pieces):
        seen.append(tuple(pieces))
        return real(self, pieces)

    monkeypatch.setattr(BertEncoder, "encode", counted)
    return seen


def vectors(folder, texts):
    tokenizer = models.open_model(folder).tokenizer
    return reference(drawn_weights(), [tokenizer.encode(text, 256) for text in texts])


def only(model):
    (group,) = model.groups
    (comparison,) = group.comparisons
    return comparison


def test_without_smoothing_the_vectors_are_the_model_s(folder):
    """Cosines of a plain reference, whatever the length of the texts beside them."""
    comparison = only(EncoderVectorizer(folder, neighbours=0).fit(DOCUMENTS[:4], SUBMISSIONS))
    assert (comparison.pooling, comparison.amount, comparison.centre) == ("lse", 0.1, 0.0)
    np.testing.assert_allclose(comparison.documents, vectors(folder, DOCUMENTS[:4]), atol=2e-6)
    np.testing.assert_allclose(comparison.submissions, vectors(folder, SUBMISSIONS), atol=2e-6)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_vector_depends_on_its_own_text_alone(folder, threads):
    """Not on the texts it is encoded with nor on the number of cores: a cached vector equals a fresh one."""
    alone = only(EncoderVectorizer(folder, neighbours=0, threads=1).fit(DOCUMENTS[:1], SUBMISSIONS[:1]))
    many = [*DOCUMENTS[:4], *(" ".join(WORDS[:at]) for at in range(1, 18))]
    among = only(EncoderVectorizer(folder, neighbours=0, threads=threads).fit(many, SUBMISSIONS))
    np.testing.assert_array_equal(alone.documents[0], among.documents[0])
    np.testing.assert_array_equal(alone.submissions[0], among.submissions[0])


def test_neighbours_are_other_works_of_the_archive(folder):
    """Copies of a paper are one, a text is not its own neighbour, and submissions are nobody's."""
    found = only(EncoderVectorizer(folder, neighbours=2).fit(DOCUMENTS, [*SUBMISSIONS, "PROTEIN FOLDING!"]))
    works = vectors(folder, [*DOCUMENTS[:4], *SUBMISSIONS]).astype(np.float32)
    # the longest spelling in the archive stands for a work
    works[0] = vectors(folder, [max(DOCUMENTS[0], DOCUMENTS[4], key=lambda text: (len(text), text))])[0]
    wanted = smoothed(works, np.arange(4), np.array([0, 1, 2, 3, -1, -1]), 2, 0.5)
    np.testing.assert_allclose(found.documents, wanted[[0, 1, 2, 3, 0]], atol=5e-6)
    np.testing.assert_allclose(found.submissions, wanted[[4, 5, 1]], atol=5e-6)
    with_more = only(EncoderVectorizer(folder, neighbours=2).fit(DOCUMENTS, [*SUBMISSIONS, "Market price of a robot"]))
    np.testing.assert_allclose(with_more.submissions[:2], found.submissions[:2], atol=1e-6)


@pytest.mark.parametrize("tokens", [3, 7, 256])
def test_a_text_is_read_up_to_the_limit(folder, tokens):
    """And never beyond the model's own positions, which would be an index out of range."""
    text = " ".join(WORDS * 30)
    vectorizer = EncoderVectorizer(folder, neighbours=0, tokens=tokens)
    pieces = models.open_model(folder).tokenizer.encode(text, min(tokens, 40))
    np.testing.assert_allclose(
        only(vectorizer.fit([text], ["graph"])).documents, reference(drawn_weights(), [pieces]), atol=2e-6
    )
    assert vectorizer.describe()["settings"]["tokens"] == min(tokens, 40)


@pytest.mark.parametrize("text", ["", "!?", "...", "zebra", "жук"])
def test_b25_a_text_the_model_knows_nothing_of_is_unknown(folder, text):
    """Nothing but unknown pieces would make such texts each other's best match."""
    (group,) = EncoderVectorizer(folder).fit(["graph", text], [text, "kernel"]).groups
    assert group.known_documents.tolist() == [True, False]
    assert group.known_submissions.tolist() == [False, True]
    (group,) = EncoderVectorizer(folder).fit([text], [text]).groups
    assert group.comparisons == () and not group.known_documents.any()


@pytest.mark.parametrize(("documents", "submissions"), [([], []), (["graph"], []), ([], ["graph"])])
def test_b25_an_empty_side_is_no_error(folder, documents, submissions):
    """A venue is filled one upload after the other."""
    (group,) = EncoderVectorizer(folder).fit(documents, submissions).groups
    assert group.comparisons == ()
    assert (group.known_documents.shape, group.known_submissions.shape) == ((len(documents),), (len(submissions),))


def test_cached_texts_are_not_encoded_again(folder, tmp_path, encoded):
    """One new submission costs one text; the result is the same to the last bit."""
    first = only(EncoderVectorizer(folder, tmp_path).fit(DOCUMENTS, SUBMISSIONS))
    assert len(encoded) == 6  # two of the seven are one work
    encoded.clear()
    again = only(EncoderVectorizer(folder, tmp_path).fit(DOCUMENTS, SUBMISSIONS))
    assert encoded == []
    np.testing.assert_array_equal(again.submissions, first.submissions)
    np.testing.assert_array_equal(again.documents, first.documents)
    EncoderVectorizer(folder, tmp_path).fit(DOCUMENTS, [*SUBMISSIONS, "Market price"])
    assert len(encoded) == 1


def test_another_model_or_limit_never_meets_old_vectors(folder, tmp_path, encoded):
    """A cache folder outlives the model it was filled with."""
    EncoderVectorizer(folder, tmp_path / "cache").fit(["graph"], ["kernel"])
    EncoderVectorizer(folder, tmp_path / "cache", tokens=9).fit(["graph"], ["kernel"])
    other = write_model(tmp_path / "other", weights=drawn_weights(1))
    EncoderVectorizer(other, tmp_path / "cache").fit(["graph"], ["kernel"])
    assert len(encoded) == 6


def test_a_stopped_run_goes_on_where_it_was(folder, tmp_path, encoded, monkeypatch):
    """Hours of encoding must not be lost to a cancelled plan or a restart."""
    monkeypatch.setattr(under_test, "STEP", 2)
    texts = [" ".join(WORDS[at : at + 3]) for at in range(9)]
    told = []

    def stop(share):
        told.append(share)
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        EncoderVectorizer(folder, tmp_path, progress=stop).fit(texts, [])
    done = len(encoded)
    assert 4 < done < 9 and told == sorted(told) and told[0] == 0.0
    EncoderVectorizer(folder, tmp_path, progress=told.append).fit(texts, [])
    assert len(encoded) == len(set(encoded)) == 9 and told[-1] == 1.0


def test_a_killed_run_loses_at_most_the_last_few_texts(folder, tmp_path, encoded, monkeypatch):
    """A process that is killed runs no clean-up: what counts is what lies on the disk while it still works."""
    monkeypatch.setattr(under_test, "STEP", 2)
    monkeypatch.setattr(under_test, "KEPT_EVERY", 4)
    texts = [" ".join(WORDS[at : at + 3]) for at in range(9)]
    on_disk = []
    EncoderVectorizer(folder, tmp_path, progress=lambda share: on_disk.append(len(list(tmp_path.rglob("*.vec"))))).fit(
        texts, []
    )
    assert on_disk == [0, 0, 1, 1, 2, 3]


def test_weights_that_give_no_numbers_are_an_error(tmp_path):
    """Not a plan in which half of the scores are unknown."""
    weights = drawn_weights()
    weights["embeddings.LayerNorm.weight"] = np.full_like(weights["embeddings.LayerNorm.weight"], np.nan)
    with pytest.raises(InvalidFileError, match="not finite"):
        EncoderVectorizer(write_model(tmp_path, weights=weights)).fit(["graph"], ["kernel"])


def test_without_weights_nothing_is_computed(monkeypatch):
    """The message is that of `open_model`."""
    monkeypatch.setattr(models, "_packaged_folder", lambda: None)
    for vectorizer in (EncoderVectorizer(), HybridVectorizer(EncoderVectorizer())):
        with pytest.raises(MissingExtraError):
            vectorizer.fit(["graph"], ["kernel"])


def test_the_record_names_model_and_settings(folder):
    """A plan can be made again only by who knows what made it."""
    model = models.open_model(folder)
    settings = {"tokens": 40, "neighbours": 10, "share": 0.5, "temperature": 0.1}
    told = EncoderVectorizer(folder).describe()
    assert told["settings"] == settings
    assert told["model"]["sha256"] == model.sha256 and told["model"]["fingerprint"] == model.fingerprint
    mixed = HybridVectorizer(EncoderVectorizer(folder)).describe()
    assert mixed["scorer"] == "hybrid" and mixed["settings"] == {**settings, "encoder_share": 0.7}


def drawn_venue(seed, n_papers=9, n_people=8):
    rng = np.random.default_rng(seed)

    def text():
        return " ".join(rng.choice([*WORDS, "zebra"], size=rng.integers(0, 12)))

    papers = [Submission(f"p{at}", text(), text()) for at in range(n_papers)]
    people = [
        Reviewer(
            f"r{at}", publications=tuple(Publication(f"{at}-{to}", text(), text()) for to in range(rng.integers(0, 6)))
        )
        for at in range(n_people)
    ]
    return papers, people


@pytest.mark.parametrize("hybrid", [False, True])
def test_order_of_rows_columns_and_publications_changes_no_score(folder, hybrid):
    """Rounding must not depend on where in a matrix or a batch a text stands."""

    def scores(papers, people):
        encoder = EncoderVectorizer(folder)
        return text_affinity(papers, people, vectorizer=HybridVectorizer(encoder) if hybrid else encoder)

    papers, people = drawn_venue(5)
    rng = np.random.default_rng(6)
    rows, cols = rng.permutation(len(papers)), rng.permutation(len(people))
    turned = [Reviewer(person.id, publications=person.publications[::-1]) for person in people]
    once = scores(papers, people)
    again = scores([papers[row] for row in rows], [turned[col] for col in cols])
    np.testing.assert_allclose(again, once[np.ix_(rows, cols)], atol=1e-9)
    assert np.isfinite(once).any()


@pytest.mark.parametrize("hybrid", [False, True])
def test_texts_that_come_later_are_scored_without_a_refit(folder, hybrid):
    """A twin of somebody who is there gets the twin's scores; nobody else's change."""
    papers, people = drawn_venue(7)
    encoder = EncoderVectorizer(folder)
    before = TextScores.fit(papers, people, vectorizer=HybridVectorizer(encoder) if hybrid else encoder)
    after = before.with_reviewer(people[2]).with_submission(papers[3]).with_reviewer(Reviewer("blank"))
    first, second = (scores.block(slice(0, scores.shape[0]), slice(0, scores.shape[1])) for scores in (before, after))
    assert second.shape == (len(papers) + 1, len(people) + 2) and np.isfinite(first[3, 2])
    np.testing.assert_array_equal(second[: len(papers), : len(people)], first)
    np.testing.assert_allclose(second[: len(papers), len(people)], first[:, 2], atol=1e-5)
    np.testing.assert_allclose(second[len(papers), : len(people)], first[3], atol=1e-5)
    assert np.isnan(second[:, -1]).all()
    stranger = Submission("new", "zebra graph", "a graph of a zebra")
    line = before.with_submission(stranger).block(slice(len(papers), len(papers) + 1), slice(0, len(people)))
    assert np.isfinite(line).any()


@pytest.mark.parametrize("scorer", ["encoder", "hybrid"])
def test_a_submission_spelled_like_another_changes_nothing_about_it(folder, scorer):
    """Two papers whose letters are the same are two texts; only the archive says how a work is spelled."""
    people = [
        Reviewer(name, publications=(Publication(f"{name}1", text),))
        for name, text in zip("abc", DOCUMENTS, strict=False)
    ]
    papers = [Submission("p1", "Kernels on graphs"), Submission("p2", "Soft robots grasp")]
    twin = Submission("p3", "KERNELS, on .. graphs! ! !")

    def made():
        encoder = EncoderVectorizer(folder)
        return encoder if scorer == "encoder" else HybridVectorizer(encoder)

    alone, beside = (TextScores.fit(own, people, vectorizer=made()) for own in (papers, [*papers, twin]))
    meaning = [fitted.model.comparisons[-1].submissions[0] for fitted in (alone, beside)]
    np.testing.assert_allclose(*meaning, atol=1e-7)  # a product's last digit depends on how many rows it has
    later, everyone = alone.with_submission(twin), np.arange(3)
    # constants are of another set of pairs, so vectors are compared, not affinities
    added, fitted = later._left[1].vectors[-1][0], beside.model.comparisons[-1].submissions[2]
    np.testing.assert_allclose(added, fitted, atol=1e-7)
    assert np.abs(fitted - meaning[1]).max() > 1e-3
    assert np.isfinite(later.values(np.full(3, 2), everyone)).all()


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_no_bit_of_any_vector(folder, monkeypatch, threads):
    """Nearest neighbours included: a product that is split over threads may be summed in another order."""
    monkeypatch.setattr("matching.vectors.neighbours.ROWS", 7)
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(WORDS, size=12)) for _ in range(60)]
    found = []
    for count in (1, threads):
        model = EncoderVectorizer(folder, threads=count).fit(texts[:40], texts[40:])
        found.append([only(model).documents, only(model).submissions])
    for one, many in zip(*found, strict=True):
        np.testing.assert_array_equal(one, many)


def test_smoothing_never_lets_the_number_library_split_a_product(folder, monkeypatch):
    """Its own threads are switched off and blocks of texts are spread instead."""
    import threadpoolctl

    seen = []
    real = under_test.smoothed

    def watched(*args, **options):
        pools = threadpoolctl.threadpool_info()
        seen.extend(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")
        return real(*args, **options)

    monkeypatch.setattr(under_test, "smoothed", watched)
    EncoderVectorizer(folder, threads=2).fit(DOCUMENTS, SUBMISSIONS)
    assert seen and set(seen) == {1}
