"""Time limits and cancelling, the same for every objective: distinct ends, true bounds, nothing thrown away."""

import numpy as np
import pytest

import matching
import matching.solvers.clock as clocks
from matching.constraints.attributes import Attributes
from matching.constraints.problem import AssignmentProblem
from matching.constraints.rules import compile_rules
from matching.objectives import parse_objective
from matching.plan.audit import require_clean
from matching.prepared import wishes_of_shape
from matching.rules import parse_rules
from matching.solvers.base import Status
from matching.solvers.choose import solve
from matching.solvers.milp.model import FREE, IntegerAnswer, Model
from tests.ticks import Ticks

OBJECTIVES = {
    "total": "total",
    "welfare": {"name": "welfare", "alpha": 1.0},
    "mean": {"name": "welfare", "alpha": 0.0},
    "maximin": "maximin",
    "leximin": "leximin",
    "threshold": {"name": "threshold", "t": 1.2},
    "evenness": "evenness",
    "envy": "envy",
    "randomised": {"name": "randomised", "cap": 0.5},
    "perturbed": {"name": "perturbed", "beta": 0.5, "cap": 0.7},
    "robust": {"name": "robust", "standard_error": 0.1, "radius": 1.0},
    "stack": [{"name": "maximin", "loss": 0.05}, "total", "evenness"],
    "fair stack": [{"name": "welfare", "alpha": 1.0, "loss": 0.01}, {"name": "threshold", "t": 1.0}, "total"],
}
KINDS = [(name, ruled, feasible) for ruled in (False, True) for feasible in (True, False) for name in OBJECTIVES]


def problem_of(ruled, feasible, shape=(6, 8)):
    """A small venue; where it is not feasible, three submissions share three people with too little room."""
    generator = np.random.default_rng(1)
    scores = generator.random(shape)
    options = {"demand": 2, "load_max": 2, "load_min": generator.integers(0, 2, shape[1])}
    if not feasible:
        few = [(row, col) for row in range(3) for col in range(3, shape[1])]
        options = {"demand": 3, "load_max": 2, "conflicts": few}
    problem = AssignmentProblem.of(scores, **options)
    if not ruled:
        return problem
    rules = parse_rules([
        {"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 1},
        {"rule": "reviewers_per_submission", "reviewers": {"country": "a"}, "at_most": 1, "price": 0.05},
    ])  # fmt: skip
    attributes = Attributes.of_columns(
        demand=problem.demand, load_max=problem.load_max, load_min=problem.load_min, submissions=None,
        reviewers={
            "seniority": ["senior" if at % 2 else "junior" for at in range(shape[1])],
            "country": ["a" if at % 3 else "b" for at in range(shape[1])],
        },
    )  # fmt: skip
    made = compile_rules(rules, attributes, barred=problem.barred)
    return AssignmentProblem.of(
        scores, demand=problem.demand, load_max=problem.load_max, load_min=problem.load_min,
        conflicts=problem.barred, rules=made.bounds,
    )  # fmt: skip


def wishes_for(name, problem):
    return wishes_of_shape(parse_objective(OBJECTIVES[name]), problem.shape)


def check(problem, cut, full):
    """What every end under a limit has to keep."""
    require_clean(problem, cut)
    if cut.status == Status.LIMIT_WITHOUT_PLAN:
        assert cut.pairs.size == 0 and cut.bound == np.inf and not cut.proofs
    elif cut.status == Status.INFEASIBLE:
        assert full.status == Status.INFEASIBLE  # proven, so it is true without the limit
    else:
        assert full.status == Status.OPTIMAL and np.isfinite(cut.bound)
        assert not cut.unfilled.any() and not cut.below_min.any()
        assert cut.proofs or cut.value <= full.bound + 1e-9
        if cut.proofs and cut.proofs[0].wish["name"] not in ("envy", "evenness"):
            assert cut.proofs[0].bound >= full.proofs[0].value - 1e-9
    if cut.status == Status.FEASIBLE_AT_LIMIT:
        assert any(proof.gap > 0 for proof in cut.proofs) or cut.gap > 0
    return cut.status


@pytest.mark.parametrize(("name", "ruled", "feasible"), KINDS)
def test_b40_whenever_the_limit_comes_the_end_says_what_is_known(monkeypatch, name, ruled, feasible):
    """Never "infeasible" without proof, never an error; once there is a plan it is kept, with a true bound."""
    problem = problem_of(ruled, feasible)
    wishes = wishes_for(name, problem)
    ticks = Ticks()
    monkeypatch.setattr(clocks, "time", ticks)
    full = solve(problem, wishes, rng=3, time_limit=1e9)
    assert full.status == (Status.OPTIMAL if feasible else Status.INFEASIBLE)
    seen = []
    for limit in np.unique(np.geomspace(1, ticks.now + 1, 9).astype(int)):
        monkeypatch.setattr(clocks, "time", Ticks())
        seen.append(check(problem, solve(problem, wishes, rng=3, time_limit=limit + 0.5), full))
    assert seen[0] == Status.LIMIT_WITHOUT_PLAN and seen[-1] == full.status
    later = seen[next((at for at, status in enumerate(seen) if status != Status.LIMIT_WITHOUT_PLAN)) :]
    assert Status.LIMIT_WITHOUT_PLAN not in later  # more time never loses a plan


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("feasible", [True, False])
def test_b40_whichever_program_the_limit_stops_the_end_says_what_is_known(monkeypatch, name, feasible):
    """HiGHS ends at its own limit with or without a plan in hand; neither means there is none."""
    problem = problem_of(True, feasible)
    wishes = wishes_for(name, problem)
    full = solve(problem, wishes, rng=3)
    linear, integral, within = Model.solve, Model.solve_integral, Model.solve_within
    calls, last = 0, np.inf

    def count():
        nonlocal calls
        calls += 1
        return calls > last

    def solve_linear(self, time_left, ask=None):
        return "limit" if count() else linear(self, time_left, ask)

    def solve_integral(self, whole, start, gap, time_left, ask=None):
        late = count()
        found = integral(self, whole, start, gap, time_left, ask)
        return IntegerAnswer(found.values if calls % 2 else None, -FREE, False) if late else found

    def solve_within(self, cost, bounds, whole, gap, time_left, ask=None):
        late = count()
        found = within(self, cost, bounds, whole, gap, time_left, ask)
        return IntegerAnswer(found.values if calls % 2 else None, -FREE, False) if late else found

    monkeypatch.setattr(Model, "solve_within", solve_within)
    monkeypatch.setattr(Model, "solve", solve_linear)
    monkeypatch.setattr(Model, "solve_integral", solve_integral)
    solve(problem, wishes, rng=3)
    for done in np.unique(np.geomspace(1, calls, 6).astype(int)) - 1:
        calls, last = 0, done
        check(problem, solve(problem, wishes, rng=3, time_limit=1e9), full)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_b40_forty_reviewers_sixty_papers_and_a_microsecond(name):
    """The reported case: no assignments, and not "infeasible"."""
    scores = np.random.default_rng(4).random((60, 40))
    found = matching.assign(scores, demand=3, load_max=6, objective=OBJECTIVES[name], time_limit=1e-6)
    assert found.status == Status.LIMIT_WITHOUT_PLAN and found.pairs.shape == (0, 2)
    assert (found.bound, found.gap) == (np.inf, np.inf)


class Stop(Exception):
    """Raised by whoever cancels."""


@pytest.mark.parametrize(("name", "ruled", "feasible"), KINDS)
def test_b47_a_cancel_passes_through_from_every_step(name, ruled, feasible):
    """The very exception of the progress callback comes out, also from inside HiGHS."""
    problem = problem_of(ruled, feasible)
    wishes = wishes_for(name, problem)
    reports = []
    solve(problem, wishes, rng=3, progress=reports.append)
    assert reports
    for step in np.unique(np.linspace(1, len(reports), 5).astype(int)):
        left, stop = step, Stop()

        def progress(report, stop=stop):
            nonlocal left
            left -= 1
            if left == 0:
                raise stop

        with pytest.raises(Stop) as told:
            solve(problem, wishes, rng=3, progress=progress)
        assert told.value is stop


def test_b47_a_cancel_reaches_a_linear_program_at_work(monkeypatch):
    """One program may take as long as all else; waiting for its end would be no answer to a cancel."""
    monkeypatch.setattr("matching.solvers.milp.model.ASKED", 1)
    generator = np.random.default_rng(2)
    model = Model()
    model.add_rows(np.ones(40), np.ones(40))
    entries = np.zeros((40, 400))
    entries[np.repeat(np.arange(20), 20), np.arange(400)] = 1.0
    entries[20 + np.tile(np.arange(20), 20), np.arange(400)] = 1.0
    from scipy import sparse

    model.add_cols(generator.random(400), np.zeros(400), np.full(400, FREE), sparse.csc_array(entries))
    asked, stop = [], Stop()

    def ask():
        asked.append(1)
        if len(asked) == 3:
            raise stop

    with pytest.raises(Stop) as told:
        model.solve(None, ask)
    assert told.value is stop and len(asked) == 3
