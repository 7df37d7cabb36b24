"""The loss on examples one can check by hand, and on the public gold standard (arXiv 2303.16750)."""

import json
import math
import shutil

import numpy as np
import pytest

from matching.errors import InvalidFileError, InvalidParamsError
from matching.evaluation import bootstrap_interval, evaluate, judge
from matching.resources import Resources
from tests.shared import SHARED, needs_shared
from tests.tiny_bert import write_model

HEADER = "ParticipantID\tPaper1\tPaper2\tPaper3\tExpertise1\tExpertise2\tExpertise3\n"
TEXTS = {"graphs": "kernels on graphs", "hands": "grasping with soft robot hands", "law": "contract law and courts"}


def write_version(folder, people, submissions=TEXTS):
    """People: id -> titles of their publications."""
    (folder / "archives").mkdir(parents=True)
    for person, titles in people.items():
        lines = [json.dumps({"id": f"{person}{at}", "content": {"title": title}}) for at, title in enumerate(titles)]
        (folder / "archives" / f"{person}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    records = {paper: {"id": paper, "content": {"title": title}} for paper, title in submissions.items()}
    (folder / "submissions.json").write_text(json.dumps(records), encoding="utf-8")


@pytest.fixture
def dataset(tmp_path):
    """Two versions; ana knows graphs, bo hands. Both are rated so that their own field comes first."""
    for version in ("d_1_2", "d_1_10"):
        write_version(
            tmp_path / version,
            {"~ana": ["graph kernels", "kernels that compare graphs"], "~bo": ["soft hands", "robot grasping"]},
        )
    rows = "ana\tgraphs\thands\tlaw\t5\t1\t1\nbo\thands\tgraphs\t\t4\t2\t\n"
    (tmp_path / "evaluations.tsv").write_text(HEADER + rows)
    return tmp_path


# --- the loss ------------------------------------------------------------------------------------------------


def test_a_single_pair_costs_all_half_or_nothing():
    """Right 0, tie one half, wrong 1: whatever the size of the difference, it is divided by itself."""
    ratings = {"ana": {"p": 5.0, "q": 2.0}}
    losses = [judge(ratings, {"ana": {"p": p, "q": q}}).loss for p, q in ((0.9, 0.1), (0.4, 0.4), (-2.0, 7.0))]
    assert losses == [0.0, 0.5, 1.0]


def test_pairs_weigh_as_much_as_their_ratings_differ():
    """Ratings 5, 3, 1 scored as 2, 3, 1: the pair 5-3 is wrong, 5-1 and 3-1 are right: 2 of 2 + 4 + 2."""
    found = judge({"ana": {"a": 5.0, "b": 3.0, "c": 1.0}}, {"ana": {"a": 2.0, "b": 3.0, "c": 1.0}})
    assert found.loss == 2 / 8 and found.wrong.tolist() == [2.0] and found.total.tolist() == [8.0] and found.pairs == 3


def test_participants_are_summed_before_the_division():
    """Someone with many or far-apart ratings counts for more: (0 + 1) / (4 + 1), not the mean of 0 and 1."""
    ratings = {"ana": {"a": 5.0, "b": 1.0}, "bo": {"a": 4.0, "b": 5.0}}
    assert judge(ratings, {"ana": {"a": 1, "b": 0}, "bo": {"a": 1, "b": 0}}).loss == 1 / 5


def test_equal_ratings_have_no_order_to_get_right():
    """All equal: nothing to divide by, which is not a loss of 0."""
    found = judge({"ana": {"a": 3.0, "b": 3.0, "c": 3.0}}, {"ana": {"a": 1, "b": 2, "c": 3}})
    assert found.loss is None and found.pairs == 0
    assert judge({"ana": {"a": 3.0, "b": 3.0, "c": 1.0}}, {"ana": {"a": 1, "b": 2, "c": 0}}).loss == 0.0


def test_a_missing_score_is_a_tie():
    """A scorer gains nothing by keeping silent on what it finds hard."""
    ratings = {"ana": {"a": 5.0, "b": 3.0, "c": 1.0}, "bo": {"a": 2.0, "b": 1.0}}
    found = judge(ratings, {"ana": {"a": 1.0, "b": math.nan, "c": 0.5}})
    # 5-1 right; 5-3 and 3-1 ties, 2 each; bo's pair a tie of 1
    assert found.loss == (1 + 1 + 0.5) / (2 + 4 + 2 + 1) and found.unscored == 3


def test_easy_and_hard_pairs_are_told_by_their_ratings():
    """Easy: at least 4 against at most 2. Hard: both at least 4. Anything else counts for the loss alone."""
    ratings = {"ana": {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0}}
    found = judge(ratings, {"ana": {"a": 1.0, "b": 1.0, "c": 0.0, "d": 1.5}})
    assert found.easy_pairs.tolist() == [2.0] and found.easy == 0.0  # a-d and b-d
    assert found.hard_pairs.tolist() == [1.0] and found.hard == 0.5  # a-b, a tie
    assert judge({"ana": {"a": 3.0, "b": 2.5}}, {}).easy is None


def test_the_order_of_people_and_papers_changes_nothing():
    """The loss is a sum over unordered pairs."""
    rng = np.random.default_rng(1)
    ratings = {str(at): {str(of): float(rng.integers(1, 6)) for of in range(6)} for at in range(5)}
    scores = {person: {paper: float(rng.integers(4)) for paper in rated} for person, rated in ratings.items()}
    turned = {person: dict(reversed(rated.items())) for person, rated in reversed(ratings.items())}
    assert judge(turned, scores).loss == pytest.approx(judge(ratings, scores).loss, abs=1e-12)


# --- the interval --------------------------------------------------------------------------------------------


def test_the_interval_is_a_point_for_one_participant_and_seeded_for_several():
    """One person drawn again and again is the same person; the same seed draws the same people."""
    one = judge({"ana": {"a": 5.0, "b": 3.0, "c": 1.0}}, {"ana": {"a": 2, "b": 3, "c": 1}})
    assert bootstrap_interval([one, one]) == (0.25, 0.25)
    ratings = {str(at): {"a": 5.0, "b": 1.0} for at in range(10)}
    half = judge(ratings, {str(at): {"a": at % 2, "b": 0.5} for at in range(10)})
    low, high = bootstrap_interval([half], rng=3)
    assert (low, high) == bootstrap_interval([half], rng=3)
    assert 0.1 <= low < 0.5 < high <= 0.9


def test_a_resample_draws_the_same_people_in_every_version():
    """Versions that err on different halves of the people: the mean of both is one half in every resample."""
    ratings = {str(at): {"a": 5.0, "b": 1.0} for at in range(10)}
    first = judge(ratings, {str(at): {"a": at % 2, "b": 0.5} for at in range(10)})
    second = judge(ratings, {str(at): {"a": 1 - at % 2, "b": 0.5} for at in range(10)})
    assert bootstrap_interval([first, second]) == pytest.approx((0.5, 0.5))


# --- datasets ------------------------------------------------------------------------------------------------


def test_a_dataset_is_scored_version_by_version(dataset):
    """Words tell graphs from hands; versions come in the order of their numbers."""
    found = evaluate(dataset, scorer="lexical")
    assert list(found.per_version) == ["d_1_2", "d_1_10"] and found.scorer == "lexical"
    assert found.loss == 0.0 and found.easy == 1.0 and found.hard is None and found.ci == (0.0, 0.0)
    assert found.participants == 2 and found.pairs == 3 and found.notices == ()
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {"loss", "easy", "hard", "ci", "per_version", "seconds"} <= set(told) and told["ci"] == [0.0, 0.0]


@pytest.mark.parametrize("beside", [True, False])
def test_one_version_is_enough_with_its_ratings_in_it_or_beside_it(dataset, beside):
    """A chair may point at the version itself."""
    if not beside:
        (dataset / "evaluations.tsv").rename(dataset / "d_1_2" / "evaluations.tsv")
    assert evaluate(dataset / "d_1_2", scorer="lexical").per_version == {"d_1_2": 0.0}


def test_people_and_papers_the_dataset_lacks_are_left_out_and_named(dataset):
    """What nobody could score tells nothing about a scorer."""
    with (dataset / "evaluations.tsv").open("a") as file:
        file.write("cy\tgraphs\tlaw\t\t1\t5\t\n")
        file.write("di\tgraphs\tgone\t\t5\t1\t\n")
    write_version(dataset / "d_1_3", {"~ana": ["graph kernels"], "~di": ["graphs"], "~bo": ["the of and"]})
    found = evaluate(dataset, scorer="lexical")
    by_code = {(notice.code, notice.message[:6].rstrip(":")): notice for notice in found.notices}
    assert by_code["participants-without-archive", "d_1_3"].reviewers == ("bo", "cy")
    assert by_code["participants-without-archive", "d_1_2"].reviewers == ("cy", "di")
    assert by_code["papers-without-text", "d_1_3"].submissions == ("gone",)
    assert found.loss == 0.0


def test_predictions_are_judged_as_they_are(dataset, tmp_path):
    """ana's 5 behind one 1, before the other; bo right: 4 of 4 + 4 + 2. Ids with and without their tilde."""
    file = tmp_path / "other.json"
    file.write_text(json.dumps({"~ana": {"graphs": 0.5, "hands": 0.9, "law": 0.1}, "bo": {"hands": 1, "graphs": 0}}))
    found = evaluate(dataset, scores=file)
    assert found.per_version == {"d_1_2": 0.4, "d_1_10": 0.4} and found.loss == 0.4 and found.scorer == str(file)
    rows = "graphs,~ana,0.5\nhands,~ana,0.9\nlaw,~ana,0.1\nhands,~bo,1\ngraphs,~bo,0\n"
    for name, text in (("bare.csv", rows), ("named.csv", "paper,reviewer,score\n" + rows)):
        (tmp_path / name).write_text(text)
        assert evaluate(dataset, scores=tmp_path / name).loss == 0.4
    swapped = "entityA,entityB,score\n" + "\n".join(
        f"{person},{paper},{score}" for paper, person, score in (row.split(",") for row in rows.split())
    )
    (tmp_path / "swapped.csv").write_text(swapped)
    assert evaluate(dataset, scores=tmp_path / "swapped.csv").loss == 0.4


def test_a_folder_of_predictions_has_one_file_a_version(dataset, tmp_path):
    """d_1_1 must not take the file of d_1_10."""
    folder = tmp_path / "predictions"
    folder.mkdir()
    right = {"ana": {"graphs": 3, "hands": 2, "law": 1}, "bo": {"hands": 2, "graphs": 1}}
    wrong = {person: {paper: -score for paper, score in own.items()} for person, own in right.items()}
    (folder / "x_d_1_2_ta.json").write_text(json.dumps(right))
    (folder / "x_d_1_10_ta.json").write_text(json.dumps(wrong))
    assert evaluate(dataset, scores=folder).per_version == {"d_1_2": 0.0, "d_1_10": 1.0}
    (folder / "x_d_1_2_t.json").write_text(json.dumps(right))
    (folder / "x_d_1_10_ta.json").unlink()
    with pytest.raises(InvalidFileError) as caught:
        evaluate(dataset, scores=folder)
    assert [issue.code for issue in caught.value.issues] == ["ambiguous-file", "missing-file"]


def test_missing_predictions_are_ties_and_told(dataset, tmp_path):
    """bo is not scored: half of 2, out of 4 + 4 + 2."""
    file = tmp_path / "some.json"
    file.write_text(json.dumps({"~ana": {"graphs": 3, "hands": 2, "law": 1}}))
    found = evaluate(dataset, scores=file)
    assert found.loss == 0.1 and [notice.data["count"] for notice in found.notices] == [2, 2]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"zed": {"graphs": 1}}', "unknown-id"),
        ('{"ana": {"graphs": "high"}}', "not-a-number"),
        ('{"ana": {"graphs": NaN}}', "not-finite"),
        ('{"ana": 3}', "not-an-object"),
        ("[1]", "not-an-object"),
        ("{}", "empty-file"),
        ("{", "not-json"),
    ],
)
def test_predictions_at_fault_are_refused(dataset, tmp_path, text, code):
    """A file that scores nobody would otherwise be a loss of one half."""
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(InvalidFileError) as caught:
        evaluate(dataset, scores=file)
    assert caught.value.issues[0].code == code and caught.value.issues[0].source == "bad.json"


def test_what_is_not_there_is_said(tmp_path, dataset):
    """No ratings, no version, no scorer, no order to judge by."""
    with pytest.raises(InvalidParamsError, match="lexical"):
        evaluate(dataset, scorer="psychic")
    with pytest.raises(InvalidFileError, match="nowhere"):
        evaluate(dataset / "nowhere")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidFileError, match="has no ratings"):
        evaluate(empty, scorer="lexical")
    (empty / "evaluations.csv").write_text(HEADER.replace("\t", ",") + "ana,graphs,law,,3,3,\n")
    with pytest.raises(InvalidFileError, match="no version"):
        evaluate(empty, scorer="lexical")
    write_version(empty / "v", {"ana": ["graphs"]})
    with pytest.raises(InvalidFileError, match="different ratings"):
        evaluate(empty, scorer="lexical")


@needs_shared
def test_one_version_of_the_gold_standard_has_the_known_loss():
    """0.158 over all ten versions, single ones differ by 0.007; 791 pairs of 29 people."""
    found = evaluate(SHARED / "data" / "gold_dev" / "d_20_7", scorer="lexical")
    assert found.loss <= 0.165 and found.participants == 29 and found.pairs == 791 and not found.notices
    assert found.ci[0] < found.loss < found.ci[1] and found.easy > 0.9 and 0.6 < found.hard < 0.8


# --- what the figures rest on --------------------------------------------------------------------------------


@pytest.mark.parametrize(("there", "name"), [(True, "hybrid"), (False, "lexical")])
def test_auto_is_told_as_what_it_was(dataset, tmp_path_factory, monkeypatch, there, name, no_sockets):
    """A figure without the name and the weights behind it cannot be compared with anything."""
    monkeypatch.setattr("matching.scores.text.has_packaged_weights", lambda: False)
    model = write_model(tmp_path_factory.mktemp("m") / "tiny") if there else None
    found = evaluate(dataset, resources=Resources(encoder_model=model))
    assert found.scorer == name and found.text["scorer"] == name
    assert evaluate(dataset, scorer="auto", resources=Resources(encoder_model=model)).scorer == name
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["scorer"] == name and written["text"]["scorer"] == name
    assert ("sha256" in written["text"].get("model", {})) == there


def test_scores_from_elsewhere_have_no_scorer_of_ours(dataset, tmp_path_factory):
    """Whoever reads the figures must not think that a model of this program made them."""
    file = tmp_path_factory.mktemp("s") / "scores.json"
    file.write_text('{"~ana": {"graphs": 1, "hands": 0}}')
    found = evaluate(dataset, scores=file)
    assert found.text is None and found.to_dict()["text"] is None and found.scorer == str(file)


@pytest.mark.parametrize("lost", ["archives", "submissions.json"])
def test_a_version_that_lost_a_part_is_told_and_not_passed_over(dataset, lost):
    """The mean of nine versions looks like the mean of ten."""
    target = dataset / "d_1_2" / lost
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    found = evaluate(dataset, scorer="lexical")
    assert set(found.per_version) == {"d_1_10"}
    (notice,) = [entry for entry in found.notices if entry.code == "incomplete-version"]
    assert notice.data["versions"] == ["d_1_2"] and "d_1_2" in notice.message


def test_where_nothing_can_be_compared_the_reason_is_said(dataset):
    """Ids of another edition, say: the names that were not found are what helps."""
    (dataset / "evaluations.tsv").write_text(HEADER + "eve\tgraphs\tx9\tlaw\t5\t1\t1\n")
    with pytest.raises(InvalidFileError, match=r"no participant.*no publications.*eve.*x9"):
        evaluate(dataset, scorer="lexical")
