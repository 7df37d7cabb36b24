"""Time and memory of text affinity on generated venues, and how far scores drift that are added without a refit.

    python -m tests.benchmarks.bench_text --size 3000            one venue: N submissions, N reviewers
    python -m tests.benchmarks.bench_text --table 1000 3000 10000    one process a size, as a table
    python -m tests.benchmarks.bench_text --size 10000 --solve   then the best plan over all those pairs, proven
    python -m tests.benchmarks.bench_text --size 1000 --drift    fit with a few people and papers less, and add them

The texts resemble those of the gold standard in what costs time: 60,000 stems in several forms, two fifths of a text's
words from two of 300 topics, 120 to 180 words an abstract of which two fifths are stop words, about 80 distinct stems
a text (67 there) of which two texts share 6 (7 there), 15 publications a reviewer. They do not resemble them in what
they say: losses are measured on real texts only.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.pairs import PairSet
from matching.plan.audit import require_clean
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Submission
from matching.scores.operator import AffinityOperator, Signal
from matching.scores.textscores import TextScores
from matching.solvers.pricing import PricingSolver
from matching.vectors.lexical import LexicalVectorizer

STEMS, TOPICS, OF_TOPIC = 60_000, 300, 1_000
STOP_WORDS = (
    "the", "of", "and", "in", "to", "a", "is", "for", "we", "that", "this", "with", "are", "by", "on", "as", "be",
)  # fmt: skip
ENDINGS, FREQUENT = ("", "s", "ing", "ed"), (0.6, 0.25, 0.1, 0.05)
PUBLICATIONS = 15
EXACT_PAIRS = 200_000  # whose exact values are timed


def vocabulary():
    """Made-up words that the stemmer takes for words, each in several forms."""
    syllables = [first + vowel for first in "bdfgklmnprtvz" for vowel in "aiou"]
    size = len(syllables)
    stems = [
        syllables[at % size] + syllables[at // size % size] + syllables[at // size**2] + "m" for at in range(STEMS)
    ]
    return [[stem + ending for ending in ENDINGS] for stem in stems]


class Writer:
    """Draws texts; equal seeds give equal texts."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.words = vocabulary()
        common = (np.arange(STEMS) + 60.0) ** -1.5
        self.general = np.cumsum(common / common.sum())
        inner = (np.arange(OF_TOPIC) + 3.0) ** -1.5
        self.inner = np.cumsum(inner / inner.sum())
        chosen = np.random.default_rng(0)  # topics are the same whatever the seed
        self.topics = np.stack([chosen.choice(STEMS, OF_TOPIC, replace=False) for _ in range(TOPICS)])

    def topics_of(self, count):
        return self.rng.choice(TOPICS, size=count, replace=False)

    def text(self, topics, length):
        own = self.rng.random(length)
        general = np.searchsorted(self.general, self.rng.random(length))
        inner = self.topics[self.rng.choice(topics, length), np.searchsorted(self.inner, self.rng.random(length))]
        forms = self.rng.choice(len(ENDINGS), length, p=FREQUENT)
        stops = self.rng.integers(len(STOP_WORDS), size=length)
        chosen = np.where(own < 0.24, inner, general)
        return " ".join(
            STOP_WORDS[stop] if kind > 0.6 else self.words[stem][form]
            for kind, stem, form, stop in zip(own.tolist(), chosen.tolist(), forms.tolist(), stops.tolist())
        )

    def paper(self, topics):
        return self.text(topics, 9).capitalize(), self.text(topics, int(self.rng.integers(120, 181))) + "."


def venue(size, seed=1):
    writer = Writer(seed)
    submissions = [Submission(f"p{at}", *writer.paper(writer.topics_of(2))) for at in range(size)]
    reviewers = []
    for at in range(size):
        topics = writer.topics_of(3)
        papers = tuple(
            Publication(f"{at}-{to}", *writer.paper(topics[:2] if to % 2 else topics[1:]), 2010 + to)
            for to in range(PUBLICATIONS)
        )
        reviewers.append(Reviewer(f"r{at}", publications=papers))
    return submissions, reviewers


class Memory:
    """Largest resident memory while it runs, in MB, with and without mapped files."""

    def __init__(self):
        self.own = self.whole = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _watch(self):
        while not self._stop.wait(0.1):
            status = dict(
                line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line
            )
            self.own = max(self.own, int(status["RssAnon"].split()[0]) // 1024)
            self.whole = max(self.whole, int(status["VmRSS"].split()[0]) // 1024)


def measured(size):
    """One fit, its stages, and single pairs after it."""
    submissions, reviewers = venue(size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    with tempfile.TemporaryDirectory() as folder, Memory() as memory:
        begin, cpu = perf_counter(), process_time()
        scores = TextScores.fit(submissions, reviewers, vectorizer=LexicalVectorizer(), folder=Path(folder))
        seconds, cpu = perf_counter() - begin, process_time() - cpu
        rng = np.random.default_rng(2)
        pairs = rng.integers(size, size=(2, EXACT_PAIRS))
        begin = perf_counter()
        exact = scores.values(*pairs)
        single = perf_counter() - begin
        begin = perf_counter()
        scores.with_reviewer(Reviewer("new", publications=reviewers[0].publications[:-1]))
        adding = perf_counter() - begin
        begin = perf_counter()
        scores.with_submission(Submission("new", submissions[0].title, submissions[1].abstract))
        adding_paper = perf_counter() - begin
        stored = np.concatenate(
            [scores.block(slice(row, row + 1), slice(0, size)).ravel() for row in range(0, size, max(1, size // 50))]
        )
    here = scores.block(slice(0, min(200, size)), slice(0, size))
    rows, cols = (part.ravel() for part in np.indices(here.shape))
    some = rng.choice(rows.size, min(20_000, rows.size), replace=False)
    error = float(np.abs(here[rows[some], cols[some]] - scores.values(rows[some], cols[some])).max())
    return {
        "size": size,
        "seconds": seconds,
        "cpu": cpu,
        "stages": dict(scores.stages),
        "venue_mb": before,
        "own_mb": memory.own,
        "whole_mb": memory.whole,
        "exact_pairs_s": single,
        "with_reviewer_s": adding,
        "with_submission_s": adding_paper,
        "error": error,
        "tolerance": scores.tolerance,
        "mean": float(np.nanmean(exact)),
        "quantiles": np.nanquantile(stored, [0.01, 0.5, 0.99, 0.9999]).round(3).tolist(),
    }  # fmt: skip


def solved(size):
    """A plan over all pairs by text affinity, 1 % of the pairs in conflict: seconds, proof and memory."""
    submissions, reviewers = venue(size)
    with tempfile.TemporaryDirectory() as folder, Memory() as memory:
        begin = perf_counter()
        scores = TextScores.fit(submissions, reviewers, folder=Path(folder))
        told = perf_counter() - begin
        text = Signal("text", 1.0, scores, scores.mean, known=scores.known_pairs)
        barred = np.random.default_rng(3).integers(size, size=(size * size // 100, 2))
        problem = AssignmentProblem.of(
            AffinityOperator(scores.shape, [text]), demand=3, load_max=4, conflicts=PairSet(barred, scores.shape)
        )
        begin = perf_counter()
        found = PricingSolver().solve(problem)
        seconds = perf_counter() - begin
        begin = perf_counter()
        require_clean(problem, found)
        checked = perf_counter() - begin
    stages = ", ".join(f"{name} {spent:.1f}" for name, spent in found.stages.items())
    print(f"{size} x {size}: texts {told:.1f} s; solve {seconds:.1f} s ({stages}), audit {checked:.1f} s")
    print(f"  {found.status}, value {found.value:.4f}, gap {found.gap:.2g}, {found.rounds} rounds; ", end="")
    print(f"memory {memory.own} MB, {memory.whole} MB with mapped files")


def drift(size, count=8):
    """Scores of people and papers added one by one, against scores of a fit with all of them."""
    submissions, reviewers = venue(size)
    whole = TextScores.fit(submissions, reviewers)
    kept = size - count
    everything = whole.block(slice(0, size), slice(0, size)).astype(float)

    scores = TextScores.fit(submissions, reviewers[:kept])
    for reviewer in reviewers[kept:]:
        scores = scores.with_reviewer(reviewer)
    told("reviewers added", scores.block(slice(0, size), slice(0, size)) - everything, np.s_[:, kept:], everything)
    scores = TextScores.fit(submissions[:kept], reviewers)
    for submission in submissions[kept:]:
        scores = scores.with_submission(submission)
    told("submissions added", scores.block(slice(0, size), slice(0, size)) - everything, np.s_[kept:], everything)


def told(name, difference, added, everything):
    difference = np.abs(difference)
    print(
        f"{name}: |difference| of the added max {difference[added].max():.4f}, mean {difference[added].mean():.5f}; "
        f"of all max {difference.max():.4f}, mean {difference.mean():.5f}; "
        f"spread of the affinities {everything.std():.3f}"
    )


def shown(found):
    stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in found["stages"].items())
    print(f"{found['size']} x {found['size']}, {PUBLICATIONS} publications a reviewer: ", end="")
    print(f"{found['seconds']:.1f} s, {found['cpu']:.1f} CPU s; stages, s: {stages}")
    print(f"  memory: {found['own_mb']} MB, {found['whole_mb']} MB with mapped files; the venue {found['venue_mb']} MB")
    print(f"  {EXACT_PAIRS} exact values {found['exact_pairs_s']:.1f} s, ", end="")
    print(f"one reviewer more {found['with_reviewer_s']:.2f} s, one submission more {found['with_submission_s']:.2f} s")
    print(
        f"  |block - values| {found['error']:.1e}, tolerance {found['tolerance']:.1e}; affinities {found['quantiles']}"
    )


def table(sizes):
    print(f"{'size':>7}{'s':>9}{'CPU s':>9}{'MB':>8}  stages, s")
    for size in sizes:
        call = [sys.executable, "-m", "tests.benchmarks.bench_text", "--size", str(size), "--json"]
        found = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
        stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in found["stages"].items())
        print(f"{size:>7}{found['seconds']:>9.1f}{found['cpu']:>9.1f}{found['own_mb']:>8}  {stages}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1000, help="submissions, and reviewers")
    parser.add_argument("--solve", action="store_true", help="then solve")
    parser.add_argument("--drift", action="store_true", help="fit again with a few texts less and add them")
    parser.add_argument("--table", type=int, nargs="+", metavar="SIZE")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.table:
        table(options.table)
    elif options.solve:
        solved(options.size)
    elif options.drift:
        drift(options.size)
    elif options.json:
        print(json.dumps(measured(options.size)))
    else:
        shown(measured(options.size))
