"""Welfare on the real instances and on a large generated venue: value, proven gap, what the worst-off get, seconds.

    python -m tests.benchmarks.bench_welfare                      the real instances, alpha 1
    python -m tests.benchmarks.bench_welfare --alpha 0.5 2 8      other alphas
    python -m tests.benchmarks.bench_welfare --size 10000         a generated venue with 100 known pairs a submission

The lowest tenth is the mean over the tenth of the submissions with the lowest sums; `total` is the share kept of the
largest total. The instances lie beside the repository or where REVMATCH_SHARED says.
"""

import argparse
from time import perf_counter

import numpy as np
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.objectives import parse_objective
from matching.plan.audit import audit
from matching.scores.base import SparseScores
from matching.solvers.concave import WelfareSolver
from matching.solvers.pricing import PricingSolver
from tests.benchmarks.bench_solve import instance
from tests.shared import SHARED

HEAD = f"{'instance':<18}{'alpha':>6}{'equivalent':>12}{'gap':>9}{'least':>8}{'lowest 10 %':>12}{'total':>9}{'s':>8}"


def thin_venue(n, seed=1, known=100, topics=200, dim=32):
    """Vectors around uneven topics; each submission knows its nearest people and a few at random."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((topics, dim)).astype(np.float32)
    popular = 1.0 / (np.arange(topics) + 8.0)

    def vectors(share):
        share = share / share.sum()
        out = 0.8 * centres[rng.choice(topics, n, p=share)] + 0.5 * centres[rng.choice(topics, n, p=share)]
        out += 0.8 * rng.standard_normal((n, dim)).astype(np.float32)
        return out / np.linalg.norm(out, axis=1, keepdims=True)

    left, right = vectors(popular), vectors(popular * rng.lognormal(0, 0.5, topics))
    keys, data = [], []
    for top in range(0, n, 500):
        part = np.clip((left[top : top + 500] @ right.T + 0.35) / 1.35, 0.01, 1.0)
        near = np.argpartition(-part, known, axis=1)[:, : known - 15]
        cols = np.concatenate([near, rng.integers(0, n, (len(part), 15))], axis=1)
        rows = np.repeat(np.arange(len(part)), known)
        keys.append((rows + top) * n + cols.ravel())
        data.append(part[rows, cols.ravel()])
    places, first = np.unique(np.concatenate(keys), return_index=True)
    table = sparse.csr_array((np.concatenate(data)[first].astype(float), np.divmod(places, n)), shape=(n, n))
    return AssignmentProblem.of(SparseScores(table, default=np.nan), demand=3, load_max=4)


def report(name, problem, alphas):
    begin = perf_counter()
    best = PricingSolver().solve(problem)
    print(f"{name:<18} total {best.value:.5f}, gap {best.gap:g}, {perf_counter() - begin:.2f} s", flush=True)
    for alpha in alphas:
        begin = perf_counter()
        solution = WelfareSolver(alpha).solve(problem)
        seconds = perf_counter() - begin
        found = audit(problem, solution, parse_objective({"name": "welfare", "alpha": alpha}))
        assert found.clean, found.faults
        score = problem.scores.values(solution.pairs[:, 0], solution.pairs[:, 1])
        sums = np.sort(np.bincount(solution.pairs[:, 0], weights=score, minlength=problem.shape[0]))
        lowest = sums[: max(1, len(sums) // 10)].mean()
        print(
            f"{name:<18}{alpha:>6g}{solution.value:>12.5f}{100 * solution.gap / abs(solution.value):>8.3f}%"
            f"{sums[0]:>8.4f}{lowest:>12.4f}{100 * sums.sum() / best.value:>8.2f}%{seconds:>8.2f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alpha", type=float, nargs="*", default=[1.0])
    parser.add_argument("--size", type=int)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    print(HEAD)
    if options.size:
        report(f"thin {options.size}", thin_venue(options.size), options.alpha)
        return
    names = options.only or sorted(path.stem for path in (SHARED / "data" / "instances").glob("*.npz"))
    for name in names:
        report(name, instance(name), options.alpha)


if __name__ == "__main__":
    main()
