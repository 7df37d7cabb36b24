"""Randomised plans: against a plain HiGHS model, against what another system reached, and what chance costs.

    python -m tests.benchmarks.bench_randomised                      the real instances at --cap
    python -m tests.benchmarks.bench_randomised --size 10000         a generated venue of --size x 100 pairs
    python -m tests.benchmarks.bench_randomised --curve gold_tpms    expected total against entropy, caps and squares;
                                                                     --svg FILE draws it

The instances lie beside the repository or where REVMATCH_SHARED says.
"""

import argparse
import csv
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from matching.constraints.problem import AssignmentProblem
from matching.plan.audit import audit
from matching.scores.base import SparseScores
from matching.solvers.perturbed import PerturbedSolver
from matching.solvers.randomised import RandomisedSolver
from matching.solvers.sampling import draw
from tests.benchmarks.bench_solve import instance as recorded_instance
from tests.benchmarks.bench_solve import timed
from tests.shared import SHARED

CAPS = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25)
BETAS = (1e-4, 0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4)  # times the mean score of the best plan's pairs


def instance(name):
    """The problem, load minima left out: the other systems' values were recorded without them."""
    return recorded_instance(f"{name}_without_load_min")


def plain_model(problem, cap):
    """The textbook linear program with the cap as upper bound, by HiGHS."""
    n_submissions, n_reviewers = problem.shape
    scores = np.array(problem.scores.block(slice(0, n_submissions), slice(0, n_reviewers)), dtype=float)
    upper = np.full(problem.shape, cap)
    upper[tuple(problem.barred.pairs().T)] = 0.0
    result = linprog(
        -scores.ravel(),
        A_ub=sparse.kron(np.ones((1, n_submissions)), sparse.eye_array(n_reviewers), format="csr"),
        b_ub=problem.load_max,
        A_eq=sparse.kron(sparse.eye_array(n_submissions), np.ones((1, n_reviewers)), format="csr"),
        b_eq=problem.demand,
        bounds=np.column_stack([np.zeros(scores.size), upper.ravel()]),
        method="highs",
    )
    return -result.fun


def instances(cap, repeat, largest, only):
    with (SHARED / "data" / "peers.csv").open() as file:
        recorded = {
            row["instance"]: float(row["expected_total"])
            for row in csv.DictReader(file)
            if row["peer"] == "or_randomized" and row["options"] == f"limit={cap:g}"
        }
    print(
        f"{'instance':<18}{'expected':>12}{'recorded':>12}{'of total':>9}"
        f"{'gap':>6}{'s':>8}{'HiGHS s':>9}{'ratio':>7} audit"
    )
    for path in sorted((SHARED / "data" / "instances").glob("*.npz")):
        if only and path.stem not in only:
            continue
        problem = instance(path.stem)
        ours, solution = timed(partial(RandomisedSolver(cap).solve, problem), repeat)
        theirs, ratio = "-", "-"
        if problem.shape[0] * problem.shape[1] <= largest:
            seconds, value = timed(partial(plain_model, problem, cap), 1)
            assert abs(value - solution.value) < 1e-6 * value
            theirs, ratio = f"{seconds:.2f}", f"{seconds / ours:.0f}"
        peer = recorded.get(path.stem)
        print(
            f"{path.stem:<18}{solution.value:>12.4f}{'-' if peer is None else format(peer, '.4f'):>12}"
            f"{solution.meta['share_of_total']:>9.4f}{solution.gap:>6.0g}{ours:>8.3f}{theirs:>9}{ratio:>7}"
            f" {'clean' if audit(problem, solution).clean else 'FAULTS'}"
        )


def generated(size, cap, beta, repeat):
    """A venue in which every submission knows 100 people, the rest being unknown pairs."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(size), 100)
    cols = rng.integers(size, size=rows.size)
    table = sparse.coo_array((rng.beta(2, 4, rows.size), (rows, cols)), shape=(size, size)).tocsr()
    table.data = np.minimum(table.data, 1.0)
    problem = AssignmentProblem.of(SparseScores(table, default=np.nan), demand=3, load_max=4)
    for name, solver in (("randomised", RandomisedSolver(cap)), ("perturbed", PerturbedSolver(beta, cap))):
        seconds, solution = timed(partial(solver.solve, problem), repeat)
        again, _ = timed(partial(draw, solution.probabilities, 1), repeat)
        print(f"{name}: {size} x {size}, {table.nnz} pairs, {seconds:.2f} s, {solution.status}, gap {solution.gap:.2g}")
        print({key: round(value, 2) for key, value in solution.stages.items()}, f"one more draw {again:.2f} s")
        print({key: solution.meta[key] for key in ("active_pairs", "expected", "share_of_total", "entropy")})
        print("audit clean:", audit(problem, solution).clean)


def trade_off(problem):
    """(share of the best total, entropy in nats a review) along caps and along squares."""
    reviews = int(problem.demand.sum())
    best = RandomisedSolver(1.0).solve(problem).value

    def point(solution):
        return solution.meta["expected"] / best, solution.meta["entropy"] / reviews

    unit = best / reviews
    caps = [point(RandomisedSolver(cap).solve(problem)) for cap in CAPS]
    return {
        "caps": caps,
        "squares": [point(PerturbedSolver(beta * unit, 1.0).solve(problem)) for beta in BETAS],
    }


def curve(name, target):
    lines = trade_off(instance(name))
    for label, points in lines.items():
        print(label)
        for share, chance in points:
            print(f"  {share:8.4f} of the total  {chance:8.4f} nats a review")
    if target:
        Path(target).write_text(drawn(name, lines), encoding="utf-8")


def drawn(name, lines):
    """The curves as a small SVG."""
    width, height, left, base = 520, 340, 60, 290
    most = max(chance for points in lines.values() for _, chance in points) * 1.05
    least = min(share for points in lines.values() for share, _ in points)
    least = np.floor(least * 20) / 20
    colours = dict(zip(lines, ("#c2571a", "#0b6e4f")))

    def place(share, chance):
        return left + (chance / most) * (width - left - 20), base - (share - least) / (1.0 - least) * (base - 30)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f"<title>Expected total against entropy, {name}</title>",
        f'<path d="M{left} 30V{base}H{width - 20}" fill="none" stroke="#444"/>',
        f'<text x="{(left + width) / 2:.0f}" y="{height - 10}" text-anchor="middle">entropy, nats a review</text>',
        f'<text transform="translate(14 {base / 2 + 15:.0f}) rotate(-90)" text-anchor="middle">'
        "share of the best total</text>",
    ]
    for share in np.linspace(least, 1.0, 5):
        out.append(f'<text x="{left - 6}" y="{place(share, 0)[1] + 4:.1f}" text-anchor="end">{share:.2f}</text>')
    for chance in np.linspace(0.0, most / 1.05, 5):
        out.append(f'<text x="{place(1, chance)[0]:.1f}" y="{base + 16}" text-anchor="middle">{chance:.2f}</text>')
    for at, (label, points) in enumerate(lines.items()):
        spots = [place(*point) for point in points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        out.append(f'<path d="M{path}" fill="none" stroke="{colours[label]}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colours[label]}"/>' for x, y in spots]
        out.append(f'<text x="{left + 14}" y="{base - 34 + 16 * at}" fill="{colours[label]}">{label}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cap", type=float, default=0.5)
    parser.add_argument("--beta", type=float, default=0.1)
    parser.add_argument("--size", type=int, help="side of the generated venue")
    parser.add_argument("--curve", metavar="INSTANCE")
    parser.add_argument("--svg", metavar="FILE")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="instances; default all")
    parser.add_argument("--largest", type=int, default=3_000_000, help="pairs up to which the plain model is run too")
    options = parser.parse_args()
    if options.size:
        generated(options.size, options.cap, options.beta, options.repeat)
    elif options.curve:
        curve(options.curve, options.svg)
    else:
        instances(options.cap, options.repeat, options.largest, options.only)
