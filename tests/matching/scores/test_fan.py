"""Sweeps have one answer, whoever computes them: threads, processes or a cluster, and whatever happens to those."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

import matching
from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import RoleRows, RoleScores
from matching.errors import InvalidParamsError
from matching.generated import generated_problem
from matching.pairs import PairSet
from matching.scores import candidates, desk, fan
from matching.scores.base import DenseScores, ScoreOperator, VectorScores
from matching.scores.exceeding import Exceeding
from matching.scores.fan import strips, sweeping, swept
from matching.solvers.pricing import PricingSolver

SHAPE = (1600, 1100)  # four strips


@contextmanager
def two_processes() -> Iterator[Executor]:
    """A pool that ends, also where one of its processes died while it was being sent something.

    Early releases of Python 3.11 wait for ever then: what is sent waits for a reader, and the only one left is here.
    """
    pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        calls, broken = pool._call_queue, pool._broken
        pool.shutdown(wait=not broken)
        if broken:
            calls._reader.close()


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with two_processes() as pool:
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


class Quiet(Executor):
    """Takes everything and runs nothing."""

    def __init__(self) -> None:
        self.taken = 0

    def submit(self, fn, /, *args, **kwargs):
        self.taken += 1
        return Future()


class Refusing(Executor):
    """Raises at submit."""

    def submit(self, fn, /, *args, **kwargs):
        raise OSError("no more processes")


@dataclass
class Forgetful(Executor):
    """A new worker for every parcel, which keeps nothing; a dataclass, so that it has no hash."""

    parcels: int = 0

    def submit(self, fn, /, *args, **kwargs):
        self.parcels += 1
        assert self.parcels < 100, "no end"
        desk._DESK = desk._Desk()
        done = Future()
        done.set_result(pickle.loads(pickle.dumps(fn(*args, **kwargs))))
        return done


class Unpacked(Killing):
    """Scores that say in their own way that they cannot be sent."""

    def __reduce__(self):
        raise ValueError("pointers cannot be pickled")


class Unsent(Exception):
    """An error that does not pickle: its second argument is lost on the way."""

    def __init__(self, one, other):
        super().__init__(one)


class Odd(Killing):
    """Scores that raise an error which does not travel."""

    def block(self, rows, cols):
        raise Unsent("odd", 1)


def is_abroad() -> bool:
    """Whether sweeps of this process would go elsewhere."""
    return fan._ABROAD.get() is not None


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
    with sweeping(processes):
        for _ in range(3):
            answers(scores, processes)
    assert packed == [scores]


def test_the_scores_of_several_roles_are_sent_once_as_well(processes, monkeypatch):
    """Not once for each role, and not again because there are more sets of conflicts than values are kept."""
    packed = []
    dumps = pickle.dumps
    monkeypatch.setattr(fan.pickle, "dumps", lambda value, **options: packed.append(value) or dumps(value, **options))
    scores = VectorScores(*(np.random.default_rng(0).standard_normal((size, 8)) for size in (1100, 900)))
    rows = RoleRows(("reviewer", "area_chair", "emergency"), 1100, np.array([0, 500, 700, 900]), (1.0, 0.5, 2.0))
    of_roles = RoleScores(scores, rows)
    u, w = np.full(3300, 2.5), np.zeros(900)
    skip = PairSet(np.array([[0, 1], [1101, 600]]), of_roles.shape)
    here = [of_roles.exceeding(u, w, 0.0, None, skip) for _ in range(2)]
    with sweeping(processes):
        assert same(here, [of_roles.exceeding(u, w, 0.0, None, skip) for _ in range(2)])
        assert list(swept(sweep_of(of_roles), strips(3300)))
    assert [value for value in packed if not isinstance(value, PairSet)] == [scores]
    assert here[0][1].size > 100 and len(packed) == 4


def test_a_process_that_dies_costs_only_its_strips(tmp_path):
    """The pool is broken for good; what it has not answered is computed here, and so is every sweep after that."""
    scores = generated_problem(*SHAPE, dim=16, bids=0.0).scores
    here = answers(scores, None)
    with two_processes() as pool:
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


@pytest.mark.parametrize("executor", [Quiet, Refusing, Forgetful, "shut", "shut-threads"])
def test_an_executor_that_is_of_no_use_costs_nothing_but_time(executor, monkeypatch):
    """It runs nothing, raises, is shut down already or has workers without memory: the answer is the same."""
    monkeypatch.setattr(fan, "PATIENCE", 0.01)
    monkeypatch.setattr(desk, "_DESK", desk._DESK)
    scores = generated_problem(*SHAPE, dim=8, bids=0.01).scores
    here = answers(scores, None)
    if isinstance(executor, str):
        made = ThreadPoolExecutor(1) if executor == "shut-threads" else ProcessPoolExecutor(1)
        made.shutdown()
    else:
        made = executor()
    with sweeping(made):
        assert same(here, answers(scores, made))
        assert same(here, answers(scores, made))


def test_an_executor_that_answered_nothing_is_not_waited_for_again(monkeypatch):
    """A plan takes many sweeps; each would cost all the patience."""
    monkeypatch.setattr(fan, "PATIENCE", 0.3)
    waits = []
    result = Future.result
    monkeypatch.setattr(Future, "result", lambda self, timeout=None: waits.append(timeout) or result(self, timeout))
    quiet, scores = Quiet(), generated_problem(*SHAPE, dim=8, bids=0.0).scores
    for _ in range(3):
        answers(scores, quiet)
    assert quiet.taken and sum(waits) < 0.5


def test_threads_that_wait_for_each_other_do_not_wait_for_ever():
    """A plan made by a thread of the very pool that it is to use: nobody else is there to do the strips."""
    scores = generated_problem(*SHAPE, dim=8, bids=0.0).scores
    here = answers(scores, None)
    with ThreadPoolExecutor(1) as pool:
        assert same(here, pool.submit(answers, scores, pool).result(timeout=30))


def test_a_worker_forked_during_a_sweep_plans_by_itself():
    """It has a copy of the pool, and nobody who works for it."""
    scores = generated_problem(*SHAPE, dim=8, bids=0.0).scores
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        answers(scores, pool)
        assert pool.submit(is_abroad).result(timeout=30) is False


def test_scores_that_changed_since_the_last_plan_are_sent_again(processes):
    """An operator may use a matrix where it lies; workers that kept the one of before would prove a wrong plan."""
    scores = generated_problem(*SHAPE, dim=8, bids=0.0).scores
    matrix = scores.block(slice(0, SHAPE[0]), slice(0, SHAPE[1])).copy()
    dense = DenseScores(matrix)
    before = answers(dense, processes)
    matrix[:] = matrix[::-1].copy()
    assert same(answers(dense, None), answers(dense, processes))
    assert not same(before, answers(dense, processes))


@pytest.mark.parametrize("kind", [Unpacked, Odd])
def test_what_does_not_pickle_is_no_reason_to_fail_otherwise(kind, processes):
    """Scores are swept here, whatever they say; errors are those of the scores."""
    scores = kind(generated_problem(*SHAPE, dim=8, bids=0.0).scores, -1, Path("nowhere"))
    if kind is Odd:
        with pytest.raises(Unsent):
            answers(scores, processes)
    else:
        assert same(answers(scores, None), answers(scores, processes))


def test_what_is_no_executor_is_refused_by_name():
    """Not by an error from deep inside."""
    with pytest.raises(InvalidParamsError, match="executor") as error:
        matching.assign([[1.0]], demand=1, load_max=1, executor="two processes")
    assert error.value.issues[0].field == "executor"


def test_two_threads_share_an_executor(processes, monkeypatch):
    """More large parts come and go at the same time than are kept; nothing is mixed up."""
    monkeypatch.setattr(fan, "KEPT", 1)
    some = [generated_problem(*SHAPE, dim=8, bids=0.0, rng=seed).scores for seed in range(3)]
    here = [answers(scores, None) for scores in some]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(2):
            there = list(threads.map(lambda scores: answers(scores, processes), some))
            assert all(same(one, other) for one, other in zip(here, there))
