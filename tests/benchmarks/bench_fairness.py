"""Worst-off first, then the total, on the real instances, beside the recorded runs of FairFlow and recorded optima.

    python -m tests.benchmarks.bench_fairness                 worst submission and total, and the lowest tenth
    python -m tests.benchmarks.bench_fairness --stacks        a table of stacks: values and gaps of every wish
    python -m tests.benchmarks.bench_fairness --size 3000     a generated venue of vectors

Objectives by themselves, leximin too, are in bench_objectives.

Seconds are those of one run on this machine; FairFlow's were recorded elsewhere and are set beside them as they are.
"""

import argparse
import csv
import json
from time import perf_counter

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.objectives import parse_objective
from matching.plan.audit import audit
from matching.scores.base import VectorScores
from matching.solvers.lexicographic import StackSolver
from tests.benchmarks.bench_solve import instance, topic_vectors
from tests.shared import SHARED

STACKS = (
    ["maximin", "total", "evenness"],
    ["maximin", {"name": "total", "loss": 0.01}, "evenness"],
    [{"name": "total", "loss": 0.01}, "maximin"],
    ["welfare", "total"],
    ["maximin", "welfare"],
)


def expected():
    return json.loads((SHARED / "data" / "expected_maximin.json").read_text())


def fairflow():
    """Name -> (worst, total, seconds) of FairFlow's recorded runs."""
    with (SHARED / "data" / "peers.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["peer"] == "or_fairflow" and row["min_paper"]]
    found = {}
    for row in rows:
        name = row["instance"]
        if name == "midl" and "lb=1" not in row["options"]:
            name = "midl_without_load_min"
        found[name] = (float(row["min_paper"]), float(row["total"]), float(row["wall_s"]))
    return found


def timed(problem, objective):
    begin = perf_counter()
    solution = StackSolver().solve(problem, parse_objective(objective))
    return perf_counter() - begin, solution


def sums_of(problem, solution):
    score = problem.scores.values(solution.pairs[:, 0], solution.pairs[:, 1])
    sums = np.bincount(solution.pairs[:, 0], weights=score, minlength=problem.shape[0])
    return np.sort(sums[problem.demand > 0])


def worst_then_total():
    peers = fairflow()
    print(f"{'instance':<23}{'worst':>9}{'recorded':>10}{'gap':>7}{'total':>12}{'off by %':>10}{'gap %':>7}"
          f"{'lowest 10 %':>13}{'audit':>7}{'s':>7}   FairFlow: worst, total, s, times ours")  # fmt: skip
    for name, known in expected().items():
        problem = instance(name)
        seconds, solution = timed(problem, ["maximin", "total"])
        worst, total = solution.proofs
        sums = sums_of(problem, solution)
        tenth = sums[: max(1, len(sums) // 10)].mean()
        clean = audit(problem, solution, parse_objective(["maximin", "total"])).clean
        off = 100 * (total.value / known["total_at_worst"] - 1)
        peer = "-"
        if name in peers:
            low, value, wall = peers[name]
            peer = f"{low:.4f} {value:.3f} {wall:.2f} {wall / seconds:.0f}"
        share, word = 100 * total.gap / total.bound, "clean" if clean else "NO"
        print(f"{name:<23}{worst.value:>9.5f}{known['worst']:>10.5f}{worst.gap:>7.1g}{total.value:>12.5f}{off:>10.4f}"
              f"{share:>7.3f}{tenth:>13.4f}{word:>7}{seconds:>7.2f}   {peer}", flush=True)  # fmt: skip


def stacks(limit):
    for stack in STACKS:
        print(stack if isinstance(stack, str) else json.dumps(stack))
        for name in expected():
            problem = instance(name)
            begin = perf_counter()
            wishes = parse_objective(stack)
            solution = StackSolver().solve(problem, wishes, time_limit=limit)
            seconds = perf_counter() - begin
            clean = "clean" if audit(problem, solution, wishes).clean else "NOT CLEAN"
            seen, words = {}, []
            for proof in solution.proofs:
                seen.setdefault(proof.wish["name"], proof)
            for wish, proof in seen.items():
                words.append(f"{wish} {proof.value:.5g} gap {proof.gap / max(abs(proof.bound), 1e-12):.2%}")
            print(f"  {name:<23}{seconds:>7.2f} s  {solution.status:<18}{clean}  {'; '.join(words)}", flush=True)


def generated(size):
    operator = VectorScores(topic_vectors(size, 64, 1, 0.45), topic_vectors(size, 64, 2, 0.35))
    problem = AssignmentProblem.of(operator, demand=3, load_max=4)
    seconds, solution = timed(problem, ["maximin", "total"])
    report = audit(problem, solution)
    print(f"{size} x {size}: {seconds:.1f} s, {solution.status}, audit clean {report.clean}")
    for proof in solution.proofs:
        print(f"  {proof.wish['name']} {proof.value:.6f}, gap {proof.gap / abs(proof.bound):.4%}")
    print("  stages", {key: round(value, 2) for key, value in solution.stages.items()}, solution.meta)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, help="side of a generated venue")
    parser.add_argument("--stacks", action="store_true")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each stack")
    options = parser.parse_args()
    if options.size:
        generated(options.size)
    elif options.stacks:
        stacks(options.limit)
    else:
        worst_then_total()
