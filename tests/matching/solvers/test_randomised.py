"""Lotteries under caps, with squares, plans for the worst case: against linear and quadratic programs, enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import LinearConstraint, linprog, minimize

from matching.constraints.problem import AssignmentProblem
from matching.errors import InvalidParamsError
from matching.objectives import parse_objective
from matching.plan.audit import audit
from matching.solvers.base import Status
from matching.solvers.perturbed import PerturbedSolver
from matching.solvers.pricing import PricingSolver
from matching.solvers.quadratic import QuadraticDual
from matching.solvers.randomised import RandomisedSolver
from matching.solvers.robust import RobustSolver
from matching.solvers.sampling import draw, entropy
from tests.shared import SHARED, needs_shared
from tests.strategies import problems


def problem_of(given_problem):
    scores = given_problem.pop("scores")
    return AssignmentProblem.of(scores, **given_problem)


def random_problem(seed, n=12, m=9, demand=2, load_max=4, load_min=1):
    rng = np.random.default_rng(seed)
    conflicts = [(row, int(rng.integers(m))) for row in range(0, n, 3)]
    return AssignmentProblem.of(
        rng.random((n, m)), demand=demand, load_max=load_max, load_min=load_min, conflicts=conflicts
    )


def lawful_table(problem):
    """Which pairs may be assigned, and which must."""
    free = np.ones(problem.shape, dtype=bool)
    free[tuple(problem.barred.pairs().T)] = False
    held = np.zeros(problem.shape, dtype=bool)
    held[tuple(problem.locked.T)] = True
    return free, held


def linear_program(problem, cap):
    """Largest expected total under a table of caps by HiGHS on the textbook model; None where there is none."""
    n, m = problem.shape
    scores = problem.scores.values(*np.indices((n, m)).reshape(2, -1))
    free, held = lawful_table(problem)
    low = np.where(held, 1.0, 0.0).ravel()
    high = np.where(held, 1.0, np.where(free, cap, 0.0)).ravel()
    rows, cols = np.kron(np.eye(n), np.ones((1, m))), np.kron(np.ones((1, n)), np.eye(m))
    answer = linprog(
        -scores, A_ub=np.vstack([cols, -cols]), b_ub=np.concatenate([problem.load_max, -problem.load_min]), A_eq=rows,
        b_eq=problem.demand, bounds=np.column_stack([low, high]), method="highs",
    )  # fmt: skip
    return -answer.fun if answer.status == 0 else None


def check_lottery(problem, solution, cap):
    """What must be true of probabilities whatever the objective."""
    p = solution.probabilities.toarray()
    held = lawful_table(problem)[1]
    assert (p >= 0).all() and (p <= np.where(held, 1.0, cap) + 1e-12).all()
    assert np.abs(p.sum(axis=1) - problem.demand).max(initial=0.0) < 1e-9
    assert (p.sum(axis=0) <= problem.load_max + 1e-9).all() and (p.sum(axis=0) >= problem.load_min - 1e-9).all()
    for seed in range(3):
        pairs = draw(solution.probabilities, seed)
        load = np.bincount(pairs[:, 1], minlength=problem.shape[1])
        assert (np.bincount(pairs[:, 0], minlength=problem.shape[0]) == problem.demand).all()
        assert (load <= problem.load_max).all() and (load >= problem.load_min).all()
    report = audit(problem, solution)
    assert report.clean, report.faults


class TestRandomised:
    def test_b58_two_of_four_share_the_paper(self):
        """Reported: one paper, caps of a half; r1 and r2 half each, 94.4 % of the best, frequencies as published."""
        problem = AssignmentProblem.of([[0.9, 0.8, 0.1, 0.1]], demand=1, load_max=1)
        solution = RandomisedSolver(0.5).solve(problem)
        assert solution.status == Status.OPTIMAL and solution.gap == 0.0
        assert solution.probabilities.toarray().tolist() == [[0.5, 0.5, 0.0, 0.0]]
        assert solution.value == pytest.approx(0.85, abs=1e-12)
        assert solution.meta["share_of_total"] == pytest.approx(0.85 / 0.9)
        drawn = np.bincount([int(draw(solution.probabilities, seed)[0, 1]) for seed in range(2000)], minlength=4)
        assert np.abs(drawn / 2000 - [0.5, 0.5, 0.0, 0.0]).max() < 0.05
        assert {int(RandomisedSolver(0.5).solve(problem, rng=seed).pairs[0, 1]) for seed in range(12)} == {0, 1}

    def test_b58_an_impossible_cap_is_infeasible_and_says_why(self):
        """Reported: two reviews wanted, three people at a half each are one and a half; it must not hang."""
        problem = AssignmentProblem.of([[0.9, 0.8, 0.1]], demand=2, load_max=1)
        solution = RandomisedSolver(0.5).solve(problem)
        assert solution.status == Status.INFEASIBLE
        assert solution.unfilled.tolist() == [1] and len(solution.pairs) == 1
        assert solution.meta["short_caps"] == [{"submission": 0, "caps": 1.5, "demand": 2}]
        assert audit(problem, solution).clean

    def test_b58_cap_one_is_the_total(self):
        """Reported: a ceiling of 1 must give the deterministic total."""
        for seed in range(5):
            problem = random_problem(seed)
            solution = RandomisedSolver(1.0).solve(problem)
            assert solution.value == pytest.approx(PricingSolver().solve(problem).value, abs=1e-9)
            assert (solution.probabilities.data == 1.0).all()
            assert solution.meta["share_of_total"] == pytest.approx(1.0)

    @pytest.mark.parametrize("cap", [0.5, 0.3, 1 / 3, 0.7, 0.9371])
    def test_the_expected_total_is_that_of_a_linear_program(self, cap):
        """Also for caps with no short binary form: the answer is off by no more than rounding."""
        for seed in range(4):
            problem = random_problem(seed, load_max=5)
            best = linear_program(problem, np.full(problem.shape, cap))
            solution = RandomisedSolver(cap).solve(problem)
            assert solution.value == pytest.approx(best, abs=1e-8) and solution.gap == 0.0
            check_lottery(problem, solution, cap)

    def test_caps_by_reviewer_and_by_pair(self):
        """A doubtful person or pair gets a lower ceiling; pairs a sparse array does not store have none."""
        problem = random_problem(7, load_max=5)
        rng = np.random.default_rng(7)
        people = rng.choice([0.25, 0.5, 1.0], problem.shape[1])
        pairs = rng.uniform(0.2, 1.0, problem.shape)
        some = np.where(rng.random(problem.shape) < 0.3, 0.4, 0.0)
        zero = sparse.csr_array((np.zeros(2), ([0, 1], [1, 0])), shape=problem.shape)
        for cap, table in (
            (people, np.broadcast_to(people, problem.shape)),
            (pairs, pairs),
            (sparse.csr_array(some), np.where(some > 0, some, 1.0)),
            (zero, np.where(np.isin(np.arange(problem.shape[0] * problem.shape[1]), [1, 9]), 0.0, 1.0).reshape(12, 9)),
        ):
            solution = RandomisedSolver(cap).solve(problem)
            assert solution.value == pytest.approx(linear_program(problem, table), abs=1e-8)
            check_lottery(problem, solution, table)

    def test_a_locked_pair_is_certain_whatever_its_cap(self):
        """A lock is the chair's word; the cap speaks of what the engine chooses."""
        problem = AssignmentProblem.of(
            np.random.default_rng(0).random((4, 6)), demand=2, load_max=2, locks=[(0, 5), (3, 1)]
        )
        solution = RandomisedSolver(0.5).solve(problem)
        p = solution.probabilities.toarray()
        assert p[0, 5] == p[3, 1] == 1.0
        check_lottery(problem, solution, 0.5)

    @given(problems(), st.sampled_from([0.25, 0.3, 0.5, 0.8, 1.0]))
    @settings(max_examples=80, deadline=None)
    def test_small_venues_of_every_kind(self, given_problem, cap):
        """Ties, conflicts, locks, minima, nothing to do: feasible exactly when the linear program is, and as good."""
        problem = problem_of(dict(given_problem))
        best = linear_program(problem, np.full(problem.shape, cap))
        solution = RandomisedSolver(cap).solve(problem)
        report = audit(problem, solution)
        assert report.clean, report.faults
        if best is None:
            assert solution.status == Status.INFEASIBLE
            assert solution.unfilled.sum() + solution.below_min.sum() > 0
        else:
            assert solution.status == Status.OPTIMAL
            assert solution.value == pytest.approx(best, abs=1e-8)
            check_lottery(problem, solution, cap)

    def test_row_order_does_not_change_the_value(self):
        """Records in another order are the same venue."""
        rng = np.random.default_rng(3)
        scores = np.round(rng.random((15, 12)), 1)
        value = RandomisedSolver(0.5).solve(AssignmentProblem.of(scores, demand=2, load_max=4)).value
        shuffled = scores[rng.permutation(15)][:, rng.permutation(12)]
        assert RandomisedSolver(0.5).solve(AssignmentProblem.of(shuffled, demand=2, load_max=4)).value == pytest.approx(
            value
        )

    def test_the_same_seed_gives_the_same_plan(self):
        """Probabilities do not depend on the seed at all, the draw on nothing else."""
        problem = random_problem(1)
        one, same, other = (RandomisedSolver(0.4).solve(problem, rng=seed) for seed in (1, 1, 2))
        assert (one.pairs == same.pairs).all()
        assert (one.probabilities != other.probabilities).nnz == 0 and not np.array_equal(one.pairs, other.pairs)

    def test_candidates_change_the_time_and_not_the_value(self):
        """Pairs join by price, so starting from two a line ends at the same optimum."""
        problem = random_problem(5, 60, 50, 3, 5, 0)
        few = RandomisedSolver(0.3, candidates=2, dense_pairs=0).solve(problem)
        assert few.value == pytest.approx(RandomisedSolver(0.3).solve(problem).value, abs=1e-8) and few.gap == 0.0

    def test_a_limit_of_no_time_ends_without_a_plan(self):
        """Which is neither infeasible nor an error."""
        assert RandomisedSolver(0.5).solve(random_problem(0), time_limit=0.0).status == Status.LIMIT_WITHOUT_PLAN

    def test_where_no_full_plan_exists_the_answer_is_that_of_the_total(self):
        """Caps are not to blame then, and the fullest plan with its proof says more than a lottery."""
        problem = AssignmentProblem.of(np.ones((3, 2)), demand=2, load_max=2)
        solution = RandomisedSolver(0.5).solve(problem)
        assert solution.status == Status.INFEASIBLE and solution.probabilities is None
        assert audit(problem, solution).clean

    def test_loads_beyond_all_submissions_do_not_overflow(self):
        """Unlimited loads are often given as a huge number, and units multiply it."""
        problem = AssignmentProblem.of(np.random.default_rng(0).random((5, 5)), demand=2, load_max=2**31 - 1)
        assert RandomisedSolver(0.5).solve(problem).status == Status.OPTIMAL

    def test_caps_that_only_lack_a_digit_are_named_as_such(self):
        """Three caps of 0.333333 are meant to be one review; calling that infeasible would send a chair astray."""
        problem = AssignmentProblem.of([[0.9, 0.8, 0.1]], demand=1, load_max=1)
        with pytest.raises(InvalidParamsError, match="round them up"):
            RandomisedSolver(0.333333).solve(problem)

    @pytest.mark.parametrize("cap", [0.0, 1.5, -1.0, np.nan, [0.5, 0.5], "high"])
    def test_a_cap_that_is_none_is_refused(self, cap):
        """Out of range, of another shape, no number."""
        with pytest.raises(InvalidParamsError):
            RandomisedSolver(cap).solve(AssignmentProblem.of(np.ones((2, 3)), demand=1, load_max=2))

    @needs_shared
    @pytest.mark.parametrize("name", ["mockbids", "csconf1", "csconf2", "sigir2007", "csconf3", "gold_tpms"])
    def test_real_venues_reach_what_another_system_reached(self, name):
        """Recorded expected totals of OpenReview Randomized at 0.5 are a floor."""
        recorded = {"mockbids": 82.5, "csconf1": 103.125, "csconf2": 119.0, "sigir2007": 126.0, "csconf3": 387.5,
                    "gold_tpms": 130.133767}  # fmt: skip
        with np.load(SHARED / "data" / "instances" / f"{name}.npz") as data:
            problem = AssignmentProblem.of(
                data["scores"], demand=data["demand"], load_max=data["load_max"], conflicts=data["conflict_idx"]
            )
        solution = RandomisedSolver(0.5).solve(problem)
        assert solution.value >= recorded[name] - 1e-6 and solution.gap == 0.0
        assert audit(problem, solution).clean


def test_prices_beyond_every_score_do_not_open_closed_lines():
    """With a large beta prices fall far below any score; a reviewer without room must still take no part."""
    problem = AssignmentProblem.of(np.zeros((3, 3)), demand=[0, 0, 1], load_max=[0, 1, 1])
    solution = PerturbedSolver(30.0, 0.5).solve(problem)
    assert solution.value == pytest.approx(-15.0) and solution.gap == 0.0
    assert audit(problem, solution).clean


def quadratic_program(problem, beta, cap):
    """Largest total less squares by a general solver from scipy."""
    n, m = problem.shape
    scores = problem.scores.values(*np.indices((n, m)).reshape(2, -1))
    free, held = lawful_table(problem)
    low = np.where(held, 1.0, 0.0).ravel()
    high = np.where(held, 1.0, np.where(free, cap, 0.0)).ravel()
    rows, cols = np.kron(np.eye(n), np.ones((1, m))), np.kron(np.ones((1, n)), np.eye(m))
    answer = minimize(
        lambda x: beta * x @ x - scores @ x,
        np.full(n * m, 0.3),
        jac=lambda x: 2 * beta * x - scores,
        bounds=list(zip(low, high)),
        constraints=[
            LinearConstraint(rows, problem.demand, problem.demand),
            LinearConstraint(cols, problem.load_min, problem.load_max),
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert answer.success, answer.message
    return -answer.fun


class TestPerturbed:
    def test_it_can_be_worked_out_on_paper(self):
        """Two people share a paper where the marginal gains meet: 0.9 - 2 x 0.5 a = 0.8 - 2 x 0.5 (1 - a)."""
        problem = AssignmentProblem.of([[0.9, 0.8, 0.1, 0.1]], demand=1, load_max=1)
        solution = PerturbedSolver(0.5, 1.0).solve(problem)
        assert np.abs(solution.probabilities.toarray() - [[0.55, 0.45, 0, 0]]).max() < 1e-9
        assert solution.value == pytest.approx(0.6025, abs=1e-9) and solution.gap == 0.0

    @pytest.mark.parametrize("beta", [0.02, 0.2, 1.0, 20.0])
    @pytest.mark.parametrize("cap", [0.6, 1.0])
    def test_it_agrees_with_a_general_quadratic_solver(self, beta, cap):
        """From nearly linear to nearly uniform, with minima and conflicts."""
        for seed in range(2):
            problem = random_problem(seed, 5, 5, 2, 3, 1)
            solution = PerturbedSolver(beta, cap).solve(problem)
            assert solution.value == pytest.approx(quadratic_program(problem, beta, cap), abs=1e-5 * max(1.0, beta))
            assert solution.gap <= 1e-5 * max(1.0, abs(solution.value))
            check_lottery(problem, solution, cap)

    @given(problems(), st.sampled_from([0.0, 1e-4, 0.05, 0.5, 30.0]), st.sampled_from([0.4, 0.5, 1.0]))
    @settings(max_examples=80, deadline=None)
    def test_small_venues_of_every_kind(self, given_problem, beta, cap):
        """Its lotteries are lawful and its bounds proven, with ties, locks, minima and where no plan exists."""
        problem = problem_of(dict(given_problem))
        solution = PerturbedSolver(beta, cap).solve(problem)
        report = audit(problem, solution)
        assert report.clean, report.faults
        if solution.status == Status.OPTIMAL:
            check_lottery(problem, solution, cap)
            assert solution.gap <= 2e-5 * max(1.0, abs(solution.value))

    def test_flows_alone_find_the_same(self, monkeypatch):
        """The flows that stand in when Newton steps stall must not be a path nobody walks."""
        problem = random_problem(2, 20, 15, 3, 6, 2)
        usual = PerturbedSolver(0.3, 0.8).solve(problem)
        monkeypatch.setattr(
            QuadraticDual, "solve", lambda self, u, w, stop=None: (u, w, np.zeros(self.rows.size), np.inf)
        )
        flows = PerturbedSolver(0.3, 0.8).solve(problem)
        assert flows.value == pytest.approx(usual.value, rel=1e-4)
        assert flows.gap <= 1e-5 * abs(flows.value) and audit(problem, flows).clean

    def test_candidates_change_the_time_and_not_the_value(self):
        """A pair far down the list gets a small probability if beta is large; pricing must find it."""
        problem = random_problem(5, 60, 50, 3, 5, 0)
        few = PerturbedSolver(2.0, 0.5, candidates=2, dense_pairs=0).solve(problem)
        assert few.value == pytest.approx(PerturbedSolver(2.0, 0.5).solve(problem).value, rel=1e-5)
        assert audit(problem, few).clean

    def test_at_equal_expected_quality_there_is_no_less_entropy(self):
        """What it is for: where a cap reaches some expected total, squares reach it with more left to chance."""
        rng = np.random.default_rng(4)
        problem = AssignmentProblem.of(rng.beta(2, 5, (60, 40)), demand=3, load_max=6)
        spread = [PerturbedSolver(beta, 1.0).solve(problem) for beta in (0.01, 0.03, 0.1, 0.3, 1.0)]
        for cap in (0.9, 0.7, 0.5, 0.3):
            plain = RandomisedSolver(cap).solve(problem)
            enough = [entry for entry in spread if entry.meta["expected"] >= plain.value]
            assert max((entropy(entry.probabilities) for entry in enough), default=0.0) > 0
            same = PerturbedSolver(1e-4, cap).solve(problem)
            assert same.meta["expected"] >= plain.value * (1 - 1e-3)
            assert same.meta["entropy"] >= plain.meta["entropy"] - 1e-9

    def test_more_beta_means_less_total_and_more_entropy(self):
        """The trade-off is monotone, so a chair can move along it."""
        problem = random_problem(9, 30, 25, 3, 5, 0)
        points = [PerturbedSolver(beta, 0.9).solve(problem).meta for beta in (0.0, 0.05, 0.2, 1.0, 5.0)]
        expected, chance = [point["expected"] for point in points], [point["entropy"] for point in points]
        assert all(a >= b - 1e-6 for a, b in itertools.pairwise(expected))
        assert all(a <= b + 1e-6 for a, b in itertools.pairwise(chance))


def best_worst_case(problem, errors, radius):
    """Over all full plans of a small problem, by trying them."""
    free, held = lawful_table(problem)
    scores = problem.scores.values(*np.indices(problem.shape).reshape(2, -1)).reshape(problem.shape)
    options = []
    for row in range(problem.shape[0]):
        may = [
            chosen
            for chosen in itertools.combinations(np.flatnonzero(free[row]).tolist(), int(problem.demand[row]))
            if set(np.flatnonzero(held[row]).tolist()) <= set(chosen)
        ]
        options.append(may)
    best = None
    for rows in itertools.product(*options):
        load = np.bincount([col for chosen in rows for col in chosen], minlength=problem.shape[1])
        if (load > problem.load_max).any() or (load < problem.load_min).any():
            continue
        at = [(row, col) for row, chosen in enumerate(rows) for col in chosen]
        value = sum(scores[pair] for pair in at) - radius * np.sqrt(sum(errors[pair] ** 2 for pair in at))
        best = value if best is None else max(best, value)
    return best


class TestRobust:
    @given(problems(), st.integers(0, 2**20), st.sampled_from([0.0, 0.5, 2.0, 8.0]))
    @settings(max_examples=60, deadline=None)
    def test_no_plan_has_a_better_worst_case(self, given_problem, seed, radius):
        """Every plan of small venues is tried; the bound holds for lotteries too, so it may lie above."""
        problem = problem_of(dict(given_problem))
        errors = np.random.default_rng(seed).choice([0.0, 0.1, 0.3, 1.0], problem.shape)
        best = best_worst_case(problem, errors, radius)
        solution = RobustSolver(errors, radius).solve(problem)
        report = audit(problem, solution)
        assert report.clean, report.faults
        if best is None:
            assert solution.status == Status.INFEASIBLE
        else:
            assert solution.meta["best_plan"]
            assert solution.value == pytest.approx(best, abs=1e-7)
            assert solution.bound >= best - 1e-7

    def test_no_errors_means_the_total(self):
        """Radius 0 or errors of 0 leave nothing to fear."""
        problem = random_problem(0)
        total = PricingSolver().solve(problem).value
        for solver in (RobustSolver(0.2, 0.0), RobustSolver(0.0, 3.0)):
            solution = solver.solve(problem)
            assert solution.value == pytest.approx(total) and solution.gap == 0.0

    def test_a_sure_reviewer_beats_a_doubtful_one_of_the_same_score(self):
        """The point of it, on two people."""
        problem = AssignmentProblem.of([[0.8, 0.8]], demand=1, load_max=1)
        assert RobustSolver(np.array([[0.3, 0.1]]), 1.0).solve(problem).pairs.tolist() == [[0, 1]]
        assert RobustSolver(sparse.csr_array(np.array([[0.0, 0.3]])), 1.0).solve(problem).pairs.tolist() == [[0, 0]]

    def test_larger_venues_have_a_small_gap(self):
        """With many pairs their errors even out, so lotteries gain little over plans."""
        rng = np.random.default_rng(0)
        problem = AssignmentProblem.of(rng.beta(2, 3, (80, 60)), demand=3, load_max=5)
        solution = RobustSolver(rng.uniform(0.0, 0.15, (80, 60)), 1.0).solve(problem)
        assert solution.gap <= 0.005 * solution.value and audit(problem, solution).clean

    def test_the_limit_ends_it_with_a_plan_or_without_one(self):
        """Never an error."""
        problem = random_problem(0, 40, 30, 3, 5, 0)
        errors = np.random.default_rng(0).random(problem.shape)
        assert RobustSolver(errors).solve(problem, time_limit=0.0).status == Status.LIMIT_WITHOUT_PLAN


def test_the_objectives_are_reached_by_their_names():
    """The wishes a caller writes are those the solvers state in their proofs."""
    problem = random_problem(0)
    for solver, wish in (
        (RandomisedSolver(0.5), {"name": "randomised", "cap": 0.5}),
        (PerturbedSolver(0.1, 0.9), {"name": "perturbed", "beta": 0.1, "cap": 0.9}),
        (RobustSolver(0.1, 2.0), {"name": "robust", "standard_error": 0.1, "radius": 2.0}),
    ):
        solution = solver.solve(problem)
        assert dict(solution.proofs[0].wish) == wish
        assert audit(problem, solution, parse_objective(wish)).clean
