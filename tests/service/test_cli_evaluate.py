"""`revmatch evaluate`, as it is typed."""

import json

import pytest
from click.testing import CliRunner

from service.cli import INPUT_ERROR, main

RATINGS = "ParticipantID,Paper1,Paper2,Expertise1,Expertise2\nana,graphs,hands,5,1\nbo,hands,graphs,4,2\n"
PEOPLE = {"~ana": "graph kernels", "~bo": "soft hands"}
PAPERS = {"graphs": "kernels on graphs", "hands": "grasping with soft robot hands"}


def run(*arguments):
    return CliRunner().invoke(main, ["evaluate", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "rated" / "d_1_1"
    (folder / "archives").mkdir(parents=True)
    (folder.parent / "evaluations.csv").write_text(RATINGS)
    for person, title in PEOPLE.items():
        (folder / "archives" / f"{person}.jsonl").write_text(json.dumps({"id": person, "content": {"title": title}}))
    records = {paper: {"id": paper, "content": {"title": title}} for paper, title in PAPERS.items()}
    (folder / "submissions.json").write_text(json.dumps(records))
    return folder.parent


def test_evaluate_prints_the_loss_in_words_and_as_json(dataset):
    """Words for people, one object for programs."""
    told = run(dataset, "--scorer", "lexical")
    assert told.exit_code == 0 and "loss 0.0000" in told.stdout and "d_1_1" in told.stdout
    found = json.loads(run(dataset, "--scorer", "lexical", "--json").stdout)
    assert {"loss", "easy", "hard", "ci", "per_version", "seconds"} <= set(found)
    assert found["loss"] == 0.0 and found["per_version"] == {"d_1_1": 0.0} and found["hard"] is None


def test_evaluate_judges_scores_from_elsewhere(dataset, tmp_path):
    """A venue's own scores beside ours; what is left out goes to standard error, so that the JSON stays JSON."""
    scores = tmp_path / "scores.csv"
    scores.write_text("graphs,~ana,0.1\nhands,~ana,0.3\nhands,~bo,0.2\n")
    told = run(dataset, "--scores", scores, "--json")
    assert told.exit_code == 0 and json.loads(told.stdout)["loss"] == (4 + 1) / (4 + 2)
    assert "1 rated papers have no score" in told.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("{dataset}", "--scorer", "psychic"),
        ("{dataset}", "--scorer", "lexical", "--scores", "{dataset}"),
        ("{dataset}", "--scores", "{dataset}"),
        ("{dataset}", "--scores", "{dataset}/evaluations.csv"),
        ("{dataset}/d_1_1/archives", "--scorer", "lexical"),
        ("{dataset}/evaluations.csv", "--scorer", "lexical"),
        ("{dataset}/nowhere", "--scorer", "lexical"),
    ],
)
def test_bad_input_is_told_in_one_message(dataset, arguments):
    """No traceback, exit status 2."""
    done = run(*(argument.format(dataset=dataset) for argument in arguments))
    assert done.exit_code == INPUT_ERROR and done.output.strip() and "Traceback" not in done.output
