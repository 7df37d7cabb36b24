"""Every objective on every recorded instance through `matching.assign`, beside what other systems reached.

    python -m tests.benchmarks.bench_objectives                           all, a line for each
    python -m tests.benchmarks.bench_objectives --only da1 midl --objectives total welfare
    python -m tests.benchmarks.bench_objectives --json runs.json          the lines as JSON too
    python -m tests.benchmarks.bench_objectives --table runs.json         README's table from such files, nothing run

One run each, of at most --limit seconds; the seconds include the audit that `assign` makes, and a second audit says
whether the plan is clean. The gap is a share of the bound; of a list of objectives it is the largest of its proofs,
level by level for leximin. Options that an objective cannot do without follow the instance: threshold asks for the mean
sum of the best total plan, perturbed weighs squares with a tenth of that plan's mean score, and robust takes standard
errors of 5 to 25 % of the largest score, seeded. The other systems' seconds were recorded elsewhere. The instances lie
beside the repository or where REVMATCH_SHARED says.
"""

import argparse
import csv
import json
from pathlib import Path
from time import perf_counter

import numpy as np

import matching
from matching.constraints.problem import AssignmentProblem
from matching.objectives import parse_objective
from matching.plan.audit import audit
from tests.benchmarks.bench_solve import case
from tests.shared import SHARED

TARGET = 0.005  # largest gap, as a share of the bound
LABELS = (
    "total", "welfare", "maximin, total", "randomised", "perturbed", "robust", "envy", "threshold", "leximin",
    "evenness",
)  # fmt: skip
PEER = {"total": "or_minmax", "maximin, total": "or_fairflow", "envy": "or_fairsequence", "randomised": "or_randomized"}


def recorded(name, label):
    """What another system reached on the same problem, or None."""
    options = "limit=0.5" if label == "randomised" else "lb=1" if name == "midl" else ""
    with (SHARED / "data" / "peers.csv").open() as file:
        for row in csv.DictReader(file):
            asked = (name.removesuffix("_without_load_min"), PEER.get(label), options)
            if (row["instance"], row["peer"], row["options"]) == asked and row["total"]:
                if label == "randomised" and name == "midl":
                    return None  # recorded without load minima
                keys = {"total": "total", "worst": "min_paper", "expected": "expected_total", "seconds": "wall_s"}
                return {"peer": asked[1]} | {key: float(row[at]) for key, at in keys.items() if row[at]}
    return None


def objective_of(label, given, best):
    """The objective of a label with the options that this module's first lines state."""
    reviews = int(np.sum(given["demand"]))
    if label == "threshold":
        return {"name": "threshold", "t": best / len(given["demand"])}
    if label == "perturbed":
        return {"name": "perturbed", "beta": 0.1 * best / reviews}
    if label == "robust":
        share = np.random.default_rng(0).uniform(0.05, 0.25, given["scores"].shape)
        return {"name": "robust", "standard_error": share * float(given["scores"].max())}
    return label.split(", ") if ", " in label else label


def run(name, label, given, best, limit):
    """One line: what came out, and how long it took."""
    objective = objective_of(label, given, best)
    begin = perf_counter()
    solution = matching.assign(**given, objective=objective, time_limit=limit)
    seconds = perf_counter() - begin
    problem = AssignmentProblem.of(**given)
    report = audit(problem, solution, parse_objective(objective))
    rows, cols = solution.pairs.T
    scores = given["scores"][rows, cols].astype(float)
    sums = np.bincount(rows, weights=scores, minlength=problem.shape[0])
    # what a second wish, or a later level, proves is of its own; envy's value and bound are 0 where it is met
    proofs = solution.proofs or (solution,)
    gaps = [proof.gap / abs(proof.bound) if proof.gap else 0.0 for proof in proofs]
    line = {
        "instance": name, "objective": label, "status": str(solution.status), "audit": report.clean,
        "value": solution.value, "bound": solution.bound, "gap": max(gaps), "first_gap": gaps[0],
        "levels": len(gaps), "open_levels": sum(gap > TARGET for gap in gaps), "seconds": seconds,
        "total": float(sums.sum()), "worst": float(sums[problem.demand > 0].min()), "recorded": recorded(name, label),
    }  # fmt: skip
    return line | ({"entropy": solution.meta["entropy"]} if "entropy" in solution.meta else {})


def show(line):
    peer = line["recorded"] or {}
    words = ", ".join(f"{key} {value:.6g}" for key, value in peer.items() if key != "peer")
    gap = f"{line['gap']:.3%}" + (" !" if line["gap"] > TARGET else "")
    clean = "clean" if line["audit"] else "FAULTS"
    levels = f" ({line['open_levels']} of {line['levels']} open)" if line["open_levels"] else ""
    print(
        f"{line['instance']:<23}{line['objective']:<16}{line['value']:>12.6g}{line['bound']:>12.6g}{gap:>11}"
        f"{line['total']:>11.5g}{line['worst']:>9.4g}{line['seconds']:>8.2f}  {clean} {line['status']}{levels}"
        + (f"  {peer['peer']}: {words}" if peer else ""),
        flush=True,
    )


def table(lines):
    """README's table, one line an instance: shares of the best total, and gaps of the first wish and of the worst."""
    known = json.loads((SHARED / "data" / "expected_maximin.json").read_text())
    by = {(line["instance"], line["objective"]): line for line in lines}

    def gap(name, label):
        def word(share):
            return ("0" if share < 5e-6 else f"{100 * share:.2g}") + (" *" if share > TARGET else "")

        first, most = word(by[name, label]["first_gap"]), word(by[name, label]["gap"])
        return first if first == most else f"{first}; {most}"

    def beside(name, label, ours, theirs):
        peer, best = by[name, label]["recorded"], by[name, "total"]["total"]
        other = f"{100 * peer[theirs] / best:.2f}" if peer else "-"
        return f"{100 * by[name, label][ours] / best:.2f} ({other})"

    head = (
        "instance", "total, s", "welfare, gap", "worst (FairFlow)", "its total", "expected (Randomized)", "robust, gap",
        "envy (FairSequence)", "threshold, gaps", "leximin, gaps",
    )  # fmt: skip
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for name, expected in known.items():
        fair = by[name, "maximin, total"]
        peer = fair["recorded"]
        assert abs(fair["worst"] - expected["worst"]) < 1e-4, name
        cells = (
            name, f"{by[name, 'total']['seconds']:.2f}", gap(name, "welfare"),
            f"{fair['worst']:.4f} ({peer['worst']:.4f})" if peer else f"{fair['worst']:.4f} (-)",
            f"{100 * fair['total'] / expected['total_at_worst']:.2f}",
            beside(name, "randomised", "value", "expected"), gap(name, "robust"),
            beside(name, "envy", "total", "total"), gap(name, "threshold"), gap(name, "leximin"),
        )  # fmt: skip
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="instances; default all")
    parser.add_argument("--objectives", nargs="*", choices=LABELS, default=LABELS)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each run")
    parser.add_argument("--json", metavar="FILE", type=Path)
    parser.add_argument("--table", metavar="FILE", type=Path, nargs="+")
    options = parser.parse_args()
    if options.table:
        table([line for file in options.table for line in json.loads(file.read_text(encoding="utf-8"))])
        return
    lines = []
    print(f"{'instance':<23}{'objective':<16}{'value':>12}{'bound':>12}{'gap':>11}{'total':>11}{'worst':>9}{'s':>8}")
    for name in options.only or json.loads((SHARED / "data" / "expected_maximin.json").read_text()):
        given = case(name)
        best = matching.assign(**given).value
        for label in options.objectives:
            lines.append(run(name, label, given, best, options.limit))
            show(lines[-1])
            if options.json:
                options.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
