"""Wishes in order: the best for the first, then for the second among the plans the first allows, and so on.

Every wish but evenness is a concave function of the submissions' sums. A wish that has been settled becomes a
constraint ``g(U) >= c`` on all later ones, where c is what it reached, less the loss allowed. Each wish has its own
proof, and each proof names the constraints it stands under (`matching.solvers.base.Proof`).

maximin, leximin and threshold alone leave much open, so the total decides among the plans they allow, with a proof of
its own; evenness decides what then still ties. Evenness asked for stands last: a wish after it is stated and bounded
for the plan as it is. Alone, it leaves the choice among the evenest plans to the total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from matching.constraints.ideal import welfare_of
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Level, Measure, Shortfall, Total, Welfare, Wish
from matching.solvers.base import Progress, ProgressCallback, Proof, Solution, Status
from matching.solvers.clock import Clock, slack_of
from matching.solvers.concave import WelfareSolver
from matching.solvers.evenness import EvennessBound, evenest_of, spread
from matching.solvers.levels import keeps_behind, leximin, lowered, with_floors, with_loss
from matching.solvers.marks import by_marks
from matching.solvers.milp.ruled import solution_of
from matching.solvers.pricing import evenest, plan_from, without_plan
from matching.solvers.slopes import by_slopes
from matching.solvers.stages import Bound, Constraints, Plan, kept_value, plan_of, restated
from matching.solvers.stated import stated
from matching.solvers.workbench import CLOSE, Workbench

__all__ = ["Run", "StackSolver", "first_plan"]

PAID_ROUNDS = 8  # programs asked for one wish for the sake of what missed rules cost
OPEN_ENDED = ("maximin", "leximin", "threshold")  # alone they leave the total open


@dataclass(eq=False)
class _Settled:
    """A wish with what was found for it."""

    wish: Mapping[str, Any]
    bounds: tuple[Bound, ...] = ()
    proof: Proof | None = None  # of a solver that proves in its own way; restated for the final plan


class StackSolver:
    """Wishes in order of importance, each within the allowed loss of those before it.

    Parameters
    ----------
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not what is proven.
    """

    def __init__(self, candidates: int = 16) -> None:
        self.candidates = candidates

    def solve(
        self,
        problem: AssignmentProblem,
        wishes: Sequence[Wish],
        *,
        rng: int = 0,
        time_limit: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> Solution:
        """The best plan found for the stack with a proof for each wish; see Solution.

        `Solution.value`, `bound` and `gap` are those of the first wish. Where no full plan exists, the fullest and
        among those the best total, as for the objective "total".

        Parameters
        ----------
        wishes : sequence of Wish
            total, welfare, maximin, leximin, threshold and evenness, each at most once, at least one.

        Raises
        ------
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        clock = Clock(time_limit)
        report = progress or (lambda entry: None)
        report(Progress("candidates", 0.0))
        place = [0]
        asked = list(wishes)
        if len(asked) == 1 and asked[0].name in OPEN_ENDED:
            asked.append(Wish("total"))

        def tell(phase: str, value: float | None, bound: float | None) -> None:
            del value, bound  # of one wish among several, in a unit of its own
            report(Progress(phase, min(0.95, (place[0] + 0.5) / (len(asked) + 1))))

        bench = Workbench(problem, self.candidates, rng, clock, tell)
        build_seconds = clock.seconds
        first = first_plan(bench, clock, build_seconds, rng)
        if isinstance(first, Solution):
            return first
        run = Run(bench, first, rng)
        for wish in asked:
            place[0] += 1
            run.settle(wish)
        tell("ties", None, None)
        with clock.stage("ties"):
            run.even_ties()
        solution = run.solution(build_seconds)
        report(Progress("sweep", 1.0, solution.value, solution.bound, solution.gap))
        return solution


def first_plan(bench: Workbench, clock: Clock, build_seconds: float, rng: int) -> Plan | Solution:
    """The plan of the best total, or the final answer where there is no full plan or nothing to wish for."""
    problem, best = bench.problem, bench.total
    if best is None:
        return without_plan(problem, clock, build_seconds)
    if problem.rules:
        answer = bench.program.solve(Total(), integral=True)
        if answer is None or not answer.found:
            return without_plan(problem, clock, build_seconds)
        if not answer.feasible or not bench.wanting.any():
            found = solution_of(answer, {"name": "total"}, clock, build_seconds)
            return without_plan(problem, clock, build_seconds) if found.status == Status.LIMIT_WITHOUT_PLAN else found
        return plan_of(problem, answer.pairs, answer.cost, answer.rule_shortfall)
    if best.missing or not bench.wanting.any():
        best = evenest(bench.oracle, best, rng) if best.proven else best
        return plan_from(problem, best, clock, build_seconds, {"solver": "flow+pricing", "ortools": version("ortools")})
    return plan_of(problem, best.pairs)


class Run:
    """The plan that keeps all wishes settled so far, and what proves them."""

    def __init__(self, bench: Workbench, plan: Plan, rng: int) -> None:
        self.bench, self.plan, self.rng = bench, plan, rng
        self.constraints: Constraints = ()
        self.chain: Constraints = ()  # what leximin asks of later wishes besides floors
        self.settled: list[_Settled] = []
        self.meta: dict[str, Any] = {}

    def settle(self, wish: Wish) -> None:
        """The best plan for one wish under those before it."""
        name = wish.name
        if any(entry.wish["name"] == "evenness" for entry in self.settled):
            measure = self._measure(wish)  # no constraint on sums holds loads, so the plan stays as it is
            self.settled.append(_Settled(wish.to_dict(), (self.bench.ideal_bound(measure, self.constraints),)))
        elif name == "leximin":
            self._leximin(wish)
        elif name == "evenness":
            self.plan, even = evenest_of(self.bench, self.plan, self.constraints, self._row_weights(), self.rng)
            self.settled.append(_Settled(wish.to_dict(), (even,)))
        elif name == "welfare":
            self._welfare(wish)
        else:
            measure = self._measure(wish)
            self.plan, bound = self._best(measure)
            self.settled.append(_Settled(wish.to_dict(), (bound,)))
            self._keep(measure, bound, wish.loss)

    def _measure(self, wish: Wish) -> Measure:
        wanting = self.bench.wanting
        if wish.name in (
            "maximin",
            "leximin",
        ):  # of leximin its first level, where it comes too late to change the plan
            return Level(wanting)
        if wish.name == "threshold":
            return Shortfall(float(wish.options["t"]), wanting)
        if wish.name == "welfare":
            return welfare_of(self.bench.problem, float(wish.options["alpha"]))
        return Total()

    def _keep(self, measure: Measure, bound: Bound, loss: float) -> None:
        value = self.plan.value(measure)
        near = slack_of(0.0 if isinstance(measure, Level) else value)  # floors are kept by what is left above them
        if bound.height is None and bound.gap(self.plan) == 0.0 and abs(bound.bound - value) <= near:
            value = bound.bound  # the same number for every plan that reaches it
        least = kept_value(measure, value, loss)
        if isinstance(measure, Level):
            floors = np.where(measure.among, least, -np.inf)
            self.constraints = with_floors(self.constraints, floors)
        else:
            self.constraints = (*self.constraints, (measure, least))

    def _leximin(self, wish: Wish) -> None:
        found = leximin(self.bench, self.constraints, self.plan, sets=wish.loss == 0.0)
        self.plan = found.plan
        bounds = tuple(with_loss(bound, self.constraints, wish.loss) for bound in found.bounds)
        self.settled.append(_Settled(wish.to_dict(), bounds))
        floors = lowered(found.reached, wish.loss) if wish.loss else found.floors
        self.constraints = with_floors(self.constraints, floors)
        if wish.loss == 0.0:
            self.chain = found.chain
        self.meta["levels"] = [
            {"value": float(bound.measure.value(self.plan.sums)), "bound": float(bound.bound)}
            for bound in found.bounds
        ]  # fmt: skip
        self.meta["levels_complete"] = found.complete

    def _behind(self, plan: Plan) -> bool:
        """Whether those that leximin proved to stay behind do so: it does not give up one that can have more."""
        for entry in self.settled:
            if entry.wish["name"] == "leximin" and not entry.wish.get("loss", 0.0) and entry.bounds:
                last = entry.bounds[-1].measure
                assert isinstance(last, Level)
                return keeps_behind(plan, entry.bounds, last.among)
        return True

    def _under_chain(self, measure: Measure) -> None:
        """Among all leximin plans the best for this wish; then its sums are the floors of what follows."""
        constraints = (*self.constraints, *self.chain)
        answer = self.bench.ask(measure, constraints, self.plan, integral=True)
        if answer is not None:
            self.plan = self.bench.better(self.plan, self.bench.plan_of(answer), measure, constraints)
        among = self.bench.wanting
        levels = [entry for entry in self.settled if entry.wish["name"] == "leximin"][-1].bounds
        last = levels[-1].measure
        assert isinstance(last, Level)
        sums = self.plan.sums - self.plan.cost
        highest = float(sums[last.among].min())
        proven = np.full(among.size, -np.inf)
        for bound in levels:
            assert isinstance(bound.measure, Level)
            inside = bound.measure.among
            proven[inside] = np.maximum(proven[inside], bound.bound)
        floors = np.where(among, np.minimum(np.minimum(sums, highest), proven), -np.inf)
        self.constraints = with_floors(self.constraints, floors)
        self.chain = ()

    def _best(self, measure: Measure) -> tuple[Plan, Bound]:
        if self.chain:
            self._under_chain(measure)
        plan, bound = self._found(measure)
        return (plan if self._behind(plan) else self.plan), bound

    def _found(self, measure: Measure) -> tuple[Plan, Bound]:
        bench = self.bench
        if bench.at_size and (plan_and_bound := self._at_size(measure)) is not None:
            return plan_and_bound
        bent = isinstance(measure, Welfare) or any(isinstance(other, Welfare) for other, _ in self.constraints)
        if isinstance(measure, Welfare) and any(rule.price is not None for rule in bench.problem.rules):
            # welfare has no unit to set a missed rule's price against, and the programs would
            return bench.maximise(measure, self.constraints, self.plan, programs=False)
        if not bent or bench.exact or bench.problem.rules:
            plan, bound = bench.maximise(measure, self.constraints, self.plan)
            return self._paid(measure, plan, bound), bound
        if isinstance(measure, Level):
            return bench.maximise(measure, self.constraints, self.plan, programs=False)
        bound = bench.ideal_bound(measure, self.constraints)
        if bench.done(self.plan, bound):
            return self.plan, bound
        return by_slopes(bench, measure, self.constraints, self.plan, bound)

    def _at_size(self, measure: Measure) -> tuple[Plan, Bound] | None:
        """A threshold, or a total beside one that leaves it a choice, in a problem too large for programs."""
        bench = self.bench
        others = [other for other, _ in self.constraints]
        if not isinstance(measure, Shortfall | Total) or any(isinstance(other, Welfare) for other in others):
            return None
        if not any(isinstance(other, Shortfall) for other in (measure, *others)):
            return None
        bound = bench.ideal_bound(measure, self.constraints)
        if bench.done(self.plan, bound):
            return self.plan, bound
        return by_marks(bench, measure, self.constraints, self.plan, bound)

    def _paid(self, measure: Measure, plan: Plan, bound: Bound) -> Plan:
        """A better plan that keeps the wishes before it after paying for the rules it misses.

        The programs know their sums alone, so they are asked for sums that leave room for the cost of their last
        answer, until that has no other cost. What remains open stands in the gap.
        """
        bench, room = self.bench, 0.0
        if not self.constraints or all(rule.price is None for rule in bench.problem.rules):
            return plan
        for _ in range(PAID_ROUNDS):
            if bound.gap(plan) == 0.0 or bench.clock.over:
                break
            asked = tuple(
                (other, least if isinstance(other, Welfare) else least + room) for other, least in self.constraints
            )
            answer = bench.ask(measure, asked, plan, integral=True)
            other = None if answer is None else bench.plan_of(answer)
            if other is None:
                break
            plan = bench.better(plan, other, measure, self.constraints)
            if other.cost <= room or other.keeps(self.constraints):
                break
            room = other.cost
        return plan

    def _welfare(self, wish: Wish) -> None:
        """Its own solver says what is best without the wishes before; where that breaks them, the search goes on."""
        bench, measure = self.bench, self._measure(wish)
        assert isinstance(measure, Welfare)
        if not measure.among.any():
            self.settled.append(_Settled(wish.to_dict(), (bench.nothing(measure, ()),)))
            return
        found = bench.known.get(("welfare", measure.alpha))
        if found is None:
            found = WelfareSolver(measure.alpha, bench.candidates).solve(
                bench.problem, rng=self.rng, time_limit=bench.clock.left,
                progress=lambda report: bench.tell(report.phase, None, None),
            )  # fmt: skip
            bench.known["welfare", measure.alpha] = found
        proof = found.proofs[0] if found.proofs and found.status in (Status.OPTIMAL, Status.FEASIBLE_AT_LIMIT) else None
        if proof is not None:
            cost = float(bench.cost(found.rule_shortfall))
            other = plan_of(bench.problem, found.pairs, cost, found.rule_shortfall)
            if self._behind(other):
                self.plan = bench.better(self.plan, other, measure, self.constraints)
            if self.plan is other:
                self.settled.append(_Settled(wish.to_dict(), (), replace(proof, wish=wish.to_dict())))
                self._mark(measure, wish.loss)
                return
        self.plan, bound = self._best(measure)
        if proof is not None and proof.bound < measure.equivalent(bound.bound):
            self.settled.append(_Settled(wish.to_dict(), (), replace(proof, wish=wish.to_dict())))
        else:
            self.settled.append(_Settled(wish.to_dict(), (bound,)))
        self._mark(measure, wish.loss)

    def _mark(self, measure: Measure, loss: float) -> None:
        self.constraints = (*self.constraints, (measure, kept_value(measure, measure.value(self.plan.sums), loss)))

    def _row_weights(self) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        """Weights under which the present plan is nearly the best flow: those that prove the last wish."""
        if not self.settled:
            return None
        last = self.settled[-1]
        return last.proof.row_weights if last.proof is not None else last.bounds[-1].pull

    def relaxed(self, loss: float) -> Run:
        """The same first wish, as the only one, with another loss allowed; it was neither leximin nor evenness."""
        entry = self.settled[0]
        out = Run(self.bench, self.plan, self.rng)
        wish = {key: value for key, value in entry.wish.items() if key != "loss"} | ({"loss": loss} if loss else {})
        if entry.proof is not None:
            out.settled = [_Settled(wish, (), replace(entry.proof, wish=wish))]
            out._mark(entry.proof.measure, loss)
        else:
            out.settled = [_Settled(wish, entry.bounds)]
            out._keep(entry.bounds[0].measure, entry.bounds[0], loss)
        return out

    def even_ties(self) -> None:
        """Among plans that tie, the evenest, where the last wish is one the flow can state."""
        if (
            self.bench.problem.rules
            or not self.settled
            or any(entry.wish["name"] == "evenness" for entry in self.settled)
        ):
            return
        last = self.settled[-1].bounds
        if not last or last[-1].gap(self.plan) > 0.0 or self.bench.clock.over:
            return
        other = spread(self.bench, last[-1].pull, self.rng)
        bounds = [bound for entry in self.settled for bound in entry.bounds if not isinstance(bound, EvennessBound)]
        if (
            other is not None
            and other.keeps(self.constraints)
            and self._behind(other)
            and all(
                other.value(bound.measure) >= self.plan.value(bound.measure) - slack_of(self.plan.value(bound.measure))
                for bound in bounds
            )
        ):
            self.plan = other

    def solution(self, build_seconds: float) -> Solution:
        """Everything found, stated for the final plan."""
        bench, plan, clock = self.bench, self.plan, self.bench.clock
        proofs: list[Proof] = []
        for entry in self.settled:
            if entry.proof is not None:
                proofs.append(restated(entry.proof, plan))
            proofs += [bound.proof(entry.wish, plan) for bound in entry.bounds]
        wide = any(proof.gap > CLOSE * max(1.0, abs(proof.bound)) for proof in proofs)
        status = Status.FEASIBLE_AT_LIMIT if clock.over and wide else Status.OPTIMAL
        return stated(
            bench.problem, status, plan.pairs, tuple(proofs), clock, build_seconds,
            rounds=bench.solves["flows"],
            meta={
                "solver": "stack",
                "ortools": version("ortools"),
                "highspy": version("highspy"),
                "active_pairs": int(bench.oracle.state.rows.size),
                **bench.solves,
                **self.meta,
            },
            rule_shortfall=plan.rule_shortfall,
        )  # fmt: skip
