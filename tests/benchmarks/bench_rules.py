"""The total over all pairs of a generated venue under rules that the flow holds, beside the same venue without.

    python -m tests.benchmarks.bench_rules --size 10000
    python -m tests.benchmarks.bench_rules --size 1000 --programs    beside the linear and integer programs as well

Seconds are of the solve and of its audit; "nodes" are the bounds that got a node of their own.
"""

import argparse
from dataclasses import replace
from time import perf_counter

import numpy as np
from scipy import sparse

from matching.constraints.bounds import GroupBound
from matching.generated import generated_problem
from matching.objectives import parse_objective
from matching.plan.audit import audit
from matching.solvers.choose import solve
from matching.solvers.milp import RuleSolver

TOTAL = parse_objective("total")


def classes(rng, n_classes, n):
    """Everybody in one of the classes."""
    return sparse.csr_array((np.ones(n), (rng.integers(0, n_classes, n), np.arange(n))), shape=(n_classes, n))


def rules_of(problem, seed):
    """Label -> rules: 30 % seniors, 30 % students, institutions of ten, 20 countries, ten tracks."""
    rng, (n, m) = np.random.default_rng(seed), problem.shape
    each, person = sparse.eye_array(n, format="csr"), sparse.eye_array(m, format="csr")
    level = rng.random((1, m))
    senior = GroupBound.of("senior", each, (level < 0.3).astype(float), lower=1)
    student = GroupBound.of("students", each, (level > 0.7).astype(float), upper=1)
    schools = classes(rng, max(1, m // 10), m)
    return {
        "no rules": (),
        "at least one senior": (senior,),
        "a senior and at most one student": (senior, student),
        "at most one of an institution": (GroupBound.of("institutions", each, schools, upper=1),),
        "at most one of a country": (GroupBound.of("countries", each, classes(rng, 20, m), upper=1),),
        "at most two of a track each": (GroupBound.of("tracks", classes(rng, 10, n), person, upper=2),),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="words of the labels to run; default all")
    parser.add_argument("--programs", action="store_true")
    options = parser.parse_args()
    bare = generated_problem(options.size, options.size, dim=options.dim, rng=options.seed)
    best = None
    for label, rules in rules_of(bare, options.seed).items():
        if best is not None and options.only and not any(word in label for word in options.only):
            continue
        problem = replace(bare, rules=rules)
        begin = perf_counter()
        found = solve(problem, TOTAL)
        solved = perf_counter()
        report = audit(problem, found, TOTAL)
        audited = perf_counter()
        best = found.value if best is None else best
        words = "clean" if report.clean else f"FAULTS {report.faults}"
        line = (
            f"{label:<34}{found.status:<11}{found.value:>12.4f}{100 * found.value / best:>9.3f} %  gap {found.gap:.2g}"
            f"{solved - begin:>8.2f} s + {audited - solved:.2f} s  {found.meta.get('rule_nodes', 0):>6} nodes  {words}"
        )
        if options.programs and rules:
            begin = perf_counter()
            other = RuleSolver().solve(problem)
            line += f"  programs {perf_counter() - begin:.2f} s, off by {abs(other.value - found.value):.2g}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
