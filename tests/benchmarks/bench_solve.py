"""How long the solve stage takes, as ratios against yardsticks timed in the same run.

    python -m tests.benchmarks.bench_solve                    the real instances, against a plain HiGHS model
    python -m tests.benchmarks.bench_solve --size 5000        a generated venue of vectors, against one float32
                                                              block product over all pairs

Medians of --repeat runs. The instances lie beside the repository or where REVMATCH_SHARED says.
"""

import argparse
import json
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import matching
from matching.constraints.problem import AssignmentProblem
from matching.plan.audit import audit
from matching.scores.base import VectorScores, blocks
from matching.solvers.pricing import PricingSolver
from tests.shared import SHARED


def case(name):
    """What `matching.assign` takes of a recorded instance; midl comes with load minima and without."""
    with np.load(SHARED / "data" / "instances" / f"{name.removesuffix('_without_load_min')}.npz") as data:
        found = {key: data[key] for key in ("scores", "demand", "load_max")} | {"conflicts": data["conflict_idx"]}
        return found | ({"load_min": data["load_min"]} if name == "midl" else {})


def instance(name):
    """The problem of a recorded instance."""
    return AssignmentProblem.of(**case(name))


def timed(work, repeat):
    seconds, result = [], None
    for _ in range(repeat):
        begin = perf_counter()
        result = work()
        seconds.append(perf_counter() - begin)
    return median(seconds), result


def plain_model(scores, demand, load_max, load_min, conflicts):
    """The textbook linear program, whose vertices are integral, by HiGHS."""
    n_submissions, n_reviewers = scores.shape
    of_row = sparse.kron(sparse.eye_array(n_submissions), np.ones((1, n_reviewers)), format="csr")
    of_col = sparse.kron(np.ones((1, n_submissions)), sparse.eye_array(n_reviewers), format="csr")
    upper = np.ones(scores.shape)
    upper[conflicts[:, 0], conflicts[:, 1]] = 0
    result = linprog(
        -scores.ravel().astype(float),
        A_ub=sparse.vstack([of_col, -of_col]),
        b_ub=np.concatenate([load_max, -load_min]),
        A_eq=of_row,
        b_eq=demand,
        bounds=np.column_stack([np.zeros(scores.size), upper.ravel()]),
        method="highs",
    )
    return -result.fun


def instances(repeat, largest, only):
    expected = json.loads((SHARED / "data" / "expected_totals.json").read_text())
    print(f"{'instance':<18}{'size':>12}{'total':>14}{'off by':>10}{'gap':>6}{'s':>8}{'HiGHS s':>9}{'ratio':>7}")
    for name, known in expected.items():
        if only and name not in only:
            continue
        given = case(name)
        scores, demand, load_max, conflicts = (given[key] for key in ("scores", "demand", "load_max", "conflicts"))
        load_min = given.get("load_min", np.zeros(scores.shape[1], int))
        ours, solution = timed(partial(matching.assign, **given), repeat)
        theirs, ratio = "-", "-"
        if scores.size <= largest:
            seconds, _ = timed(partial(plain_model, scores, demand, load_max, load_min, conflicts), 1)
            theirs, ratio = f"{seconds:.2f}", f"{seconds / ours:.0f}"
        print(
            f"{name:<18}{scores.shape[0]:>6} x{scores.shape[1]:>4}{solution.value:>14.4f}"
            f"{solution.value - known['total']:>10.0e}{solution.gap:>6.0g}{ours:>8.3f}{theirs:>9}{ratio:>7}"
        )


def topic_vectors(n, dim, seed, spread):
    """Unit vectors around 200 topics of uneven popularity, a few topics each, plus noise."""
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((200, dim))
    popularity = 1.0 / (np.arange(200) + 8.0)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(0.05 * 200 * popularity / popularity.sum() + 0.01, n)
    vectors = weights @ topics
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors += spread * rng.standard_normal((n, dim)) / np.sqrt(dim)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def generated(size, dim, candidates, repeat):
    left, right = topic_vectors(size, dim, 1, 0.45), topic_vectors(size, dim, 2, 0.35)
    operator = VectorScores(left, right)
    rng = np.random.default_rng(3)
    conflicts = np.column_stack([np.arange(size).repeat(size // 100), rng.integers(size, size=size * (size // 100))])
    problem = AssignmentProblem.of(operator, demand=3, load_max=4, conflicts=conflicts)

    def product():
        for rows, cols in blocks(operator.shape):
            left[rows] @ right[cols].T

    yardstick, _ = timed(product, repeat)
    seconds, solution = timed(lambda: PricingSolver(candidates).solve(problem), repeat)
    audit_seconds, report = timed(lambda: audit(problem, solution), repeat)
    print(f"{size} x {size}, {dim} dimensions, {candidates} candidates a side, {len(problem.barred)} conflicts")
    print(f"{solution.status}, value {solution.value:.4f}, gap {solution.gap:g}, rounds {solution.rounds}")
    print(f"active pairs {solution.meta['active_pairs']}, stages", {k: round(v, 2) for k, v in solution.stages.items()})
    print(f"audit clean {report.clean}, improving pairs {report.improving_pairs}, recomputed gap {report.gap:g}")
    print(
        f"yardstick {yardstick:.2f} s, solve {seconds:.2f} s ({seconds / yardstick:.1f} times), "
        f"audit {audit_seconds:.2f} s ({audit_seconds / yardstick:.1f} times)"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, help="side of the generated venue")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--candidates", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="instances; default all")
    parser.add_argument("--largest", type=int, default=300_000, help="pairs up to which the plain model is run too")
    options = parser.parse_args()
    if options.size:
        generated(options.size, options.dim, options.candidates, options.repeat)
    else:
        instances(options.repeat, options.largest, options.only)
