"""What a small change of a large venue costs when the new plan is found from the old one, beside a solve from scratch.

    python -m tests.benchmarks.bench_repair --size 10000

Each change is solved twice in the same run, from the old plan and without it; both are audited, and their totals must
agree. Seconds begin after the new problem is loaded. `products` is what the new plan took, audit included, as a
multiple of one plain float32 product over all pairs timed just before.
"""

import argparse
from dataclasses import replace
from statistics import median
from time import perf_counter

import numpy as np
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.generated import generated_problem
from matching.objectives import parse_objective
from matching.pairs import PairSet
from matching.plan.audit import require_clean
from matching.scores.base import SparseScores, VectorScores, blocks
from matching.scores.operator import AffinityOperator
from matching.solvers.choose import solve
from matching.solvers.start import Start

TOTAL = parse_objective("total")
DEMAND, LOAD_MAX = 3, 4


class World:
    """A generated venue with one submission to spare; problems are made of any of its lines."""

    def __init__(self, size, dim, seed):
        whole = generated_problem(size + 1, size, dim=dim, demand=DEMAND, load_max=LOAD_MAX, rng=seed)
        self.signals = whole.scores.signals
        self.vectors, self.bids = self.signals[0].operator, self.signals[1].operator.matrix
        self.barred = whole.barred.table()

    def problem(self, rows, cols, bids=None):
        bids = self.bids if bids is None else bids
        shape = (len(rows), len(cols))
        text = VectorScores(self.vectors._left[rows], self.vectors._right[cols])
        signals = (
            replace(self.signals[0], operator=text),
            replace(self.signals[1], operator=SparseScores(bids[rows][:, cols], np.nan)),
        )
        barred = PairSet.of_table(self.barred[rows][:, cols])
        return AssignmentProblem.of(
            AffinityOperator(shape, signals), demand=DEMAND, load_max=LOAD_MAX, conflicts=barred
        )


def carried(plan, before, after):
    """The old plan in the rows and columns of the new problem; lines are named by their place in the world."""
    pairs = [(before[0][row], before[1][col]) for row, col in plan.pairs.tolist()]
    u = dict(zip(before[0].tolist(), plan.submission_prices.tolist()))
    w = dict(zip(before[1].tolist(), plan.reviewer_prices.tolist()))
    return Start.by_id(pairs, u, w, after[0].tolist(), after[1].tolist())


def changes(world, size, plan, rng):
    """(name, rows, columns, bids) of each change."""
    everyone, all_papers = np.arange(size), np.arange(size)
    load = np.bincount(plan.pairs[:, 1], minlength=size)
    dearest = int(np.argmax(plan.reviewer_prices))
    some = rng.choice(np.flatnonzero(load > 0), 3, replace=False).tolist()
    for name, who in [("the dearest reviewer leaves", [dearest])] + [("a reviewer leaves", [one]) for one in some]:
        yield name, all_papers, np.delete(everyone, who), None
    yield "ten reviewers leave", all_papers, np.delete(everyone, rng.choice(size, 10, replace=False)), None
    yield "a late submission", np.arange(size + 1), everyone, None
    bids = world.bids.tolil()
    mine = plan.pairs[rng.choice(len(plan.pairs), 50, replace=False)]
    for row, col in mine.tolist():
        bids[row, col] = -1.0
    for row, col in zip(rng.integers(size, size=50).tolist(), rng.integers(size, size=50).tolist()):
        bids[row, col] = 1.0
    yield "100 bids change", all_papers, everyone, sparse.csr_array(bids)


def yardstick(world, size):
    """Seconds of one plain float32 product over all pairs."""
    begin = perf_counter()
    for rows, cols in blocks((size, size)):
        world.vectors._left[rows] @ world.vectors._right[cols].T
    return perf_counter() - begin


def timed(problem, start):
    begin = perf_counter()
    solution = solve(problem, TOTAL, start=start)
    middle = perf_counter()
    require_clean(problem, solution, TOTAL)
    return solution, middle - begin, perf_counter() - middle


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=1, help="solves from the old plan, of which the median counts")
    args = parser.parse_args()
    world = World(args.size, args.dim, args.seed)
    lines = np.arange(args.size), np.arange(args.size)
    first = world.problem(*lines)
    plan, seconds, audit_seconds = timed(first, None)
    print(
        f"{args.size} x {args.size}, {args.dim} dimensions, demand {DEMAND}, load {LOAD_MAX}: {len(plan.pairs)} pairs, "
        f"first plan {seconds:.2f} s and audit {audit_seconds:.2f} s, "
        f"one plain product over all pairs {yardstick(world, args.size):.2f} s"
    )
    print(
        f"{'':<28}{'s':>7}{'audit':>7}{'scratch':>9}{'ratio':>7}{'products':>10}{'kept':>8}{'added':>7}{'removed':>9}"
    )
    for name, rows, cols, bids in changes(world, args.size, plan, np.random.default_rng(args.seed)):
        problem = world.problem(rows, cols, bids)
        start = carried(plan, lines, (rows, cols))
        product = yardstick(world, args.size)
        runs = [timed(problem, start) for _ in range(args.repeat)]
        found, again, audited = runs[0][0], median(run[1] for run in runs), median(run[2] for run in runs)
        cold, scratch, _ = timed(problem, None)
        assert abs(found.value - cold.value) <= 1e-9 * abs(cold.value), (found.value, cold.value)
        facts = found.meta["start"]
        assert facts["used"], facts
        print(
            f"{name:<28}{again:>7.2f}{audited:>7.2f}{scratch:>9.2f}{scratch / again:>7.1f}"
            f"{(again + audited) / product:>10.1f}{facts['kept']:>8}{facts['added']:>7}{facts['removed']:>9}"
        )


if __name__ == "__main__":
    main()
