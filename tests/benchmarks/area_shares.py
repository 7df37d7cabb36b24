"""How often texts alone find reviewers of the right subject area, on the fictional venue that comes with revmatch.

    python -m tests.benchmarks.area_shares [--json] [--scorer NAME ...] [--cache FOLDER] [--model FOLDER]

The venue icml2026 states areas for submissions and reviewers. They are taken out of every record before anything is
scored, and come back only to judge: an area of the reviewer is accepted if the submission states it, too. Two shares
are measured for each scorer, with bids and without, both in pairs, three a submission:

"top 3"  the three best reviewers of each submission who are not in conflict with it and take reviews at all, whatever
         else they carry;
"plan"   the plan, in which nobody carries more than the own load.

"any pair" is the share among all pairs of submissions and reviewers who take reviews: what drawing lots would give.
Without --scorer it is lexical, and hybrid where an encoder is to be had (a minute, less with a --cache).
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from matching.engine import recommend
from matching.formats.fixtures import load_fixture
from matching.params import DEFAULT_WEIGHTS, Params
from matching.resources import Resources
from matching.scores.text import AUTO, known_scorer

FIXTURE = "icml2026"
TOP = 3
BIDS = (DEFAULT_WEIGHTS["bids"], 0.0)


def without_areas(venue):
    """The venue as if nobody had stated an area; keywords stay, no keyword of the fixture is the name of an area."""
    return replace(
        venue,
        submissions=tuple(replace(entry, areas=()) for entry in venue.submissions),
        reviewers=tuple(replace(entry, areas=()) for entry in venue.reviewers),
    )


def without_limits(venue):
    """The venue where everybody who takes any review would take all: its plan is each submission's first choices."""
    everything = len(venue.submissions)
    return replace(
        venue,
        submissions=tuple(replace(entry, demand=TOP) for entry in venue.submissions),
        reviewers=tuple(
            entry if entry.load_max == 0 else replace(entry, load_min=None, load_max=everything)
            for entry in venue.reviewers
        ),
        load_max=everything,
        load_min=0,
    )


def chosen(venue, scorer, bids, resources=None):
    """The first choices and the plan, each as a dict of (submission, reviewer) -> affinity; areas are not looked at."""
    hidden, params = without_areas(venue), Params(weights={"bids": bids}, scorer=scorer, n_alternates=0)
    plans = (recommend(entry, params, resources=resources) for entry in (without_limits(hidden), hidden))
    return tuple({(pair.submission, pair.reviewer): pair.affinity for pair in plan.assignments} for plan in plans)


def accepted(venue):
    """All pairs, as (submission, reviewer), that share an area."""
    return {
        (submission.id, reviewer.id)
        for submission in venue.submissions
        for reviewer in venue.reviewers
        if set(submission.areas) & set(reviewer.areas)
    }


def share(pairs, right):
    """Which part of the pairs is among those that are right."""
    return len(right.intersection(pairs)) / len(pairs)


def measured(venue, scorers, resources=None):
    """One row per scorer and weight of bids: its shares, and the numbers of pairs they are of."""
    right, rows = accepted(venue), []
    for scorer in scorers:
        for bids in BIDS:
            top, plan = chosen(venue, scorer, bids, resources)
            shares = {"top": share(top, right), "plan": share(plan, right)}
            rows.append({"scorer": scorer, "bids": bids, **shares, "top_pairs": len(top), "plan_pairs": len(plan)})
    return rows


def any_pair(venue):
    """The share among all pairs of reviewers who take reviews."""
    willing = [entry.id for entry in venue.reviewers if entry.load_max != 0]
    return share([(entry.id, person) for entry in venue.submissions for person in willing], accepted(venue))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scorer", action="append", help="text scorer; may be repeated")
    parser.add_argument("--cache", type=Path, help="folder in which a sentence encoder keeps its vectors")
    parser.add_argument("--model", type=Path, help="folder of a sentence encoder; default: the weights of the extra")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args()
    venue = load_fixture(FIXTURE)
    with TemporaryDirectory() as folder:  # four runs with the same texts: each is encoded once
        resources = Resources(options.model, options.cache or Path(folder))
        scorers = options.scorer or list(dict.fromkeys(("lexical", known_scorer(AUTO, resources))))
        rows = measured(venue, scorers, resources)
    lots = any_pair(venue)
    if options.json:
        print(json.dumps({"fixture": FIXTURE, "any_pair": lots, "shares": rows}, indent=2))
        return
    print(f"{FIXTURE}, areas hidden; any pair {lots:.3f}")
    print(f"{'scorer':<10}{'bids':>6}{f'top {TOP}':>8}{'plan':>8}{'pairs':>11}")
    for row in rows:
        pairs = f"{row['top_pairs']}, {row['plan_pairs']}"
        print(f"{row['scorer']:<10}{row['bids']:>6g}{row['top']:>8.3f}{row['plan']:>8.3f}{pairs:>11}")


if __name__ == "__main__":
    main()
