"""Sweeps have one answer, whoever computes them: threads, processes or a cluster, and whatever happens to those."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

import matching
from matching.constraints.problem import AssignmentProblem
from matching.generated import generated_problem
from matching.scores import candidates, fan
from matching.scores.base import ScoreOperator, VectorScores
from matching.scores.exceeding import Exceeding
from matching.scores.fan import strips, sweeping, swept
from matching.solvers.pricing import PricingSolver

SHAPE = (1600, 1100)  # four strips


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local,
        Client(local) as client,
    ):
        yield client


class Killing(ScoreOperator):
    """Scores of which one block kills the process that computes it, the first time; `marker` remembers."""

    def __init__(self, scores: ScoreOperator, row: int, marker: Path) -> None:
        self.scores, self.row, self.marker, self.home = scores, row, marker, os.getpid()
        self.shape, self.tolerance = scores.shape, scores.tolerance

    def block(self, rows, cols):
        if os.getpid() != self.home and rows.start <= self.row < rows.stop and not self.marker.exists():
            self.marker.touch()
            os._exit(1)
        return self.scores.block(rows, cols)

    def values(self, rows, cols):
        return self.scores.values(rows, cols)


class Failing(Killing):
    """Scores of which one block is faulty wherever it is computed; `marker` counts."""

    def block(self, rows, cols):
        if rows.start <= self.row < rows.stop:
            with self.marker.open("a") as out:
                out.write("x")
            raise ZeroDivisionError("no such block")
        return self.scores.block(rows, cols)


def sweep_of(scores: ScoreOperator) -> Exceeding:
    rng = np.random.default_rng(3)
    u, w = rng.random(scores.shape[0]) * 0.1 + 0.25, rng.random(scores.shape[1]) * 0.1
    return Exceeding(scores, u, w, 0.0, 5, None)


def answers(scores: ScoreOperator, executor: Executor | None) -> list[tuple[np.ndarray, ...]]:
    with sweeping(executor):
        return list(swept(sweep_of(scores), strips(scores.shape[0])))


def same(ours, theirs) -> bool:
    return len(ours) == len(theirs) and all(
        np.array_equal(one, other) for mine, its in zip(ours, theirs) for one, other in zip(mine, its)
    )


def test_strips_have_the_same_answer_whoever_computes_them(processes, cluster, monkeypatch):
    """Also in the last bit, or plans would depend on the machine: threads, one or two, processes, a cluster."""
    scores = generated_problem(*SHAPE, dim=32, bids=0.01).scores
    here = answers(scores, None)
    assert sum(part[0].size for part in here) > 100
    monkeypatch.setattr(fan, "cores", lambda: 1)
    assert same(here, answers(scores, None))
    monkeypatch.setattr(fan, "cores", lambda: 3)
    assert same(here, answers(scores, None))
    with ThreadPoolExecutor(2) as threads:
        assert same(here, answers(scores, threads))
    assert same(here, answers(scores, processes))
    assert same(here, answers(scores, cluster.get_executor()))


def test_plans_are_identical_on_one_process_two_and_a_cluster(processes, cluster, monkeypatch):
    """Candidates, sweeps and the audit all go abroad; what comes back is the plan of one process, prices included."""
    monkeypatch.setattr(candidates, "SAMPLE", 256)
    problem = generated_problem(*SHAPE, dim=32, demand=2)

    def solved(executor):
        return matching.assign(
            problem.scores, demand=2, load_max=4, conflicts=problem.barred.pairs(), executor=executor
        )

    alone = solved(None)
    assert alone.status == "optimal" and alone.gap == 0.0
    for executor in (processes, cluster.get_executor()):
        other = solved(executor)
        assert np.array_equal(alone.pairs, other.pairs)
        assert (alone.value, alone.bound, alone.rounds) == (other.value, other.bound, other.rounds)
        assert np.array_equal(alone.submission_prices, other.submission_prices)
        assert np.array_equal(alone.reviewer_prices, other.reviewer_prices)


def test_the_scores_are_sent_once(processes, monkeypatch):
    """Not with every strip and every sweep: at full size that would take longer than computing them."""
    packed = []
    dumps = pickle.dumps
    monkeypatch.setattr(fan.pickle, "dumps", lambda value, **options: packed.append(value) or dumps(value, **options))
    scores = VectorScores(*(np.random.default_rng(0).standard_normal((size, 8)) for size in SHAPE))
    for _ in range(3):
        answers(scores, processes)
    assert packed == [scores]


def test_a_process_that_dies_costs_only_its_strips(tmp_path):
    """The pool is broken for good; what it has not answered is computed here, and so is every sweep after that."""
    scores = generated_problem(*SHAPE, dim=16, bids=0.0).scores
    here = answers(scores, None)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert same(here, answers(Killing(scores, 700, tmp_path / "dead"), pool))
        assert (tmp_path / "dead").exists()
        assert same(here, answers(scores, pool))


def test_a_cluster_gives_the_strips_of_a_dead_worker_to_another(tmp_path, cluster, monkeypatch):
    """By itself, and the plan is none the worse for it."""
    scores = generated_problem(*SHAPE, dim=16, bids=0.0).scores
    problem = AssignmentProblem.of(Killing(scores, 700, tmp_path / "dead"), demand=2, load_max=4)
    with monkeypatch.context() as patch:
        patch.setattr(fan, "_here", None)  # nothing is left to be done here
        solution = PricingSolver(candidates=3, executor=cluster.get_executor()).solve(problem)
    assert (tmp_path / "dead").exists() and solution.rounds > 1
    alone = PricingSolver(candidates=3).solve(problem)
    assert solution.status == "optimal" and np.array_equal(solution.pairs, alone.pairs)


def test_a_fault_of_the_scores_is_raised_and_not_tried_for_ever(tmp_path, processes):
    """A strip that raises would raise anywhere: it is no matter of the worker."""
    scores = Failing(generated_problem(*SHAPE, dim=16, bids=0.0).scores, 700, tmp_path / "count")
    with pytest.raises(ZeroDivisionError, match="no such block"):
        answers(scores, processes)
    assert (tmp_path / "count").read_text() == "x"


def test_scores_that_cannot_be_sent_are_swept_here(processes):
    """A lambda inside is no reason to fail."""
    scores = Killing(generated_problem(*SHAPE, dim=16, bids=0.0).scores, -1, Path("nowhere"))
    here = answers(scores, None)
    scores.extra = lambda: None
    assert same(here, answers(scores, processes))
