"""What is lost when a profile is cut to 1, 2, 3 or 5 publications, and whether shrinkage gets any of it back.

    python -m tests.benchmarks.thin_profiles [--versions 10] [--draws 5] [--scorer lexical] [--cache FOLDER]

Shrinkage moves a reviewer's scores toward those of the k most similar reviewers, by kappa / (kappa + n) for n
publications: multi-task averaging (Feldman, Gupta and Frigyik, "Revisiting Stein's paradox: multi-task
averaging", JMLR 15, 2014), with one noise for all and similarity by the cosine of mean document vectors. "once"
takes the neighbours' scores as they are, "joint" solves for all reviewers together.

"one thin": one participant is cut at a time, all others keep their profiles, as for a newcomer in a large pool.
"all thin": everybody is cut, and word weights are learnt from what is left. "cv" is the loss under the setting
chosen on the other participants, for each size alone and for all sizes together.
"""

import argparse
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse

from matching.profiles.text import reviewer_documents, submission_text
from matching.resources import Resources
from matching.scores.pooling import pool_lse, pool_mean, pool_top
from matching.scores.text import named_scorer
from tests.benchmarks.gold import Losses, load, texts_of

SIZES = (1, 2, 3, 5)
KAPPAS = (0.25, 0.5, 1.0, 2.0, 4.0)
NEIGHBOURS = (1, 2, 3, 5, 10, 28)
NONE = (0.0, 0, "once")
SETTINGS = [NONE, *itertools.product(KAPPAS, NEIGHBOURS, ("once", "joint"))]


class Fitted:
    """One version under one scorer: parts pooled over any choice of documents."""

    def __init__(self, version, scorer):
        self.version = version
        self.texts = texts_of(version)
        documents = [document.text for document in self.texts.documents]
        self.model = scorer.fit(documents, [submission_text(entry) for entry in version.submissions])
        every = slice(0, len(version.submissions))
        self.similar = {comparison.name: comparison.block(every) for comparison in self.model.comparisons}
        self.indptr = self.texts.indptr
        whole = np.arange(self.indptr[-1])
        self.frame = {comparison.name: self._pooled(comparison, whole, self.indptr)
                      for comparison in self.model.comparisons}  # fmt: skip
        self.spread = {group.name: self._sum(group, whole, self.indptr).std() for group in self.model.groups}
        self.scores = self.scored(whole, self.indptr)
        self.means = self.mean_vectors(whole, self.indptr)
        self.counts = np.diff(self.indptr)

    def _pooled(self, comparison, members, indptr):
        similar, weights = self.similar[comparison.name][:, members], self.texts.weights[members]
        if comparison.pooling == "mean":
            return pool_mean(similar, indptr, weights)
        pool = pool_lse if comparison.pooling == "lse" else pool_top
        return pool(similar, indptr, weights, comparison.amount)

    def _sum(self, group, members, indptr):
        """A group's standardised comparisons; row means, mean and spread are those of full profiles."""
        total = 0.0
        for comparison in group.comparisons:
            whole = self.frame[comparison.name]
            base = comparison.centre * whole.mean(axis=1, keepdims=True)
            pooled = self._pooled(comparison, members, indptr)
            total = total + (pooled - base - (whole - base).mean()) / (whole - base).std()
        return total

    def scored(self, members, indptr):
        """The weighted sum of all groups, for any documents of the reviewers."""
        groups = self.model.groups
        return sum(group.weight * self._sum(group, members, indptr) / self.spread[group.name] for group in groups)

    def mean_vectors(self, members, indptr):
        """Unit mean of each reviewer's document vectors in the first comparison."""
        ones = np.ones(len(members)) / np.repeat(np.diff(indptr), np.diff(indptr))
        vectors = sparse.csr_array((ones, members, indptr), shape=(len(indptr) - 1, self.indptr[-1]))
        means = vectors @ self.model.comparisons[0].documents
        means = means.toarray() if sparse.issparse(means) else np.asarray(means)
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)

    def cut(self, size, rng):
        """Documents left when every reviewer keeps at most `size` of them, and their segments."""
        kept = [
            np.sort(rng.permutation(np.arange(start, end))[:size]) for start, end in itertools.pairwise(self.indptr)
        ]
        return np.concatenate(kept), np.concatenate([[0], np.cumsum([len(part) for part in kept])])


def shrunk(scores, others, near, counts, setting):
    """Scores (n_submissions, n_reviewers) moved toward those of similar reviewers.

    `others` are the scores of the neighbours, `near` the similarity of each reviewer (row) and neighbour.
    """
    kappa, count, how = setting
    if not kappa:
        return scores
    near = near.copy()
    np.fill_diagonal(near, -np.inf)
    order = np.argsort(-near, axis=1, kind="stable")[:, :count]
    weight = np.zeros(near.shape)
    np.put_along_axis(weight, order, np.maximum(np.take_along_axis(near, order, axis=1), 1e-9), axis=1)
    weight /= weight.sum(axis=1, keepdims=True)
    if how == "joint":
        pull = np.diag(kappa / counts) @ (np.eye(len(counts)) - weight)
        return np.linalg.solve(np.eye(len(counts)) + pull, scores.T).T
    share = kappa / (kappa + counts)
    return (1 - share) * scores + share * (others @ weight.T)


def one_thin(fitted, size, draws, seed):
    """Pair vectors under every setting when the participant alone is cut; "joint" is left to the other scenario."""
    found = {setting: [] for setting in SETTINGS if setting[2] == "once"}
    for draw, one in itertools.product(range(draws), fitted):
        rng = np.random.default_rng((seed, draw))
        members, indptr = one.cut(size, rng)
        scores, near = one.scored(members, indptr), one.mean_vectors(members, indptr) @ one.means.T
        for setting in found:
            moved = shrunk(scores, one.scores, near, np.minimum(one.counts, size), setting)
            found[setting].append(one.version.ahead(moved))
    return {setting: np.concatenate(parts) for setting, parts in found.items()}


def all_thin(versions, size, draws, seed, scorer):
    """The same when everybody is cut and the scorer is fitted on what is left; None for full profiles."""
    found = {setting: [] for setting in SETTINGS}
    for draw, version in itertools.product(range(draws), versions):
        rng = np.random.default_rng((seed, draw))
        one = Fitted(version if size is None else cut_version(version, size, rng), scorer)
        near = one.means @ one.means.T
        for setting in found:
            found[setting].append(version.ahead(shrunk(one.scores, one.scores, near, one.counts, setting)))
    return {setting: np.concatenate(parts) for setting, parts in found.items()}


def cut_version(version, size, rng):
    reviewers = []
    for reviewer in version.reviewers:
        usable = [document.publication for document in reviewer_documents(reviewer)]
        kept = rng.permutation(len(usable))[:size]
        reviewers.append(replace(reviewer, publications=tuple(usable[at] for at in sorted(kept))))
    return replace(version, reviewers=tuple(reviewers))


def table(title, results):
    """Losses of every size: without shrinkage, with the best setting, and with settings chosen on other people."""
    names = list(next(iter(results.values()))[1])
    wrong = {
        size: np.stack([losses.wrong(found[setting]) for setting in names]) for size, (losses, found) in results.items()
    }
    # all sizes together: the mean over versions and draws of each, laid side by side as if they were versions
    joined = np.stack([part.mean(axis=1) for part in wrong.values()], axis=1)
    total = next(iter(results.values()))[0].total.mean(axis=0)
    mean = joined.sum(axis=2).mean(axis=1) / total.sum()
    best_all = names[int(np.argmin(mean))]
    together, favourite = held_out(joined, total)
    print(f"\n{title}: best over all sizes {best_all}; chosen most often {names[favourite]} (kappa, k, how)")
    print(f"{'size':>6}{'none':>8}{'easy':>7}{'hard':>7}{'best':>8}  {'at':<20}{'cv size':>8}{'cv all':>8}", end="")
    print(f"  change under {best_all}")
    for at, (size, (losses, found)) in enumerate(results.items()):
        values = losses.loss(wrong[size])
        best = int(np.argmin(values))
        cv, _ = losses.cross_validated(wrong[size], repeats=20)
        delta, low, high = losses.change(wrong[size][names.index(best_all)], wrong[size][names.index(NONE)])
        easy, hard = losses.share(found[NONE], 1), losses.share(found[NONE], 2)
        print(
            f"{size or 'full':>6}{values[names.index(NONE)]:>8.4f}{easy:>7.3f}{hard:>7.3f}{values[best]:>8.4f}"
            f"  {names[best]!s:<20}{cv:>8.4f}{together[at]:>8.4f}  {delta:+.4f} [{low:+.4f}, {high:+.4f}]"
        )
    print(f"  mean over the sizes above; without shrinkage {mean[names.index(NONE)]:.4f}")
    for how in sorted({setting[2] for setting in names}, reverse=True):
        print(f"  {how:<8}" + "".join(f"{f'k={count}':>9}" for count in NEIGHBOURS))
        for kappa in KAPPAS:
            row = [mean[names.index((kappa, count, how))] for count in NEIGHBOURS]
            print(f"  {kappa:<8}" + "".join(f"{value:>9.4f}" for value in row))


def held_out(wrong, total, folds=5, repeats=40):
    """Loss of each size under the one setting chosen, for all sizes, on other people; and the favourite setting.

    `wrong` has shape (n_settings, n_sizes, n_people), `total` (n_people,).
    """
    rng = np.random.default_rng(0)
    held, chosen = np.zeros(wrong.shape[1]), np.zeros(len(wrong))
    for _ in range(repeats):
        fold = rng.permutation(np.arange(len(total)) % folds)
        for number in range(folds):
            train = fold != number
            best = int(np.argmin(wrong[:, :, train].sum((1, 2))))
            chosen[best] += 1
            held += wrong[best][:, ~train].sum(-1)
    return held / repeats / total.sum(), int(chosen.argmax())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--refits", type=int, default=2, help="draws of the second scenario, which fits anew each time")
    parser.add_argument("--scorer", default="lexical")
    parser.add_argument("--cache", type=Path, help="folder in which a sentence encoder keeps its vectors")
    options = parser.parse_args()
    versions, chosen = load(options.versions), named_scorer(options.scorer, Resources(encoder_cache=options.cache))
    fitted = [Fitted(version, chosen) for version in versions]
    results = {}
    for size in (*SIZES, None):
        draws = options.draws if size else 1
        found = one_thin(fitted, size or 10**6, draws, 1)
        results[size] = Losses(versions * draws), found
    table("one thin", results)
    some = versions[: max(1, options.versions // 2)]
    results = {}
    for size in (*SIZES, None):
        draws = options.refits if size else 1
        results[size] = Losses(some * draws), all_thin(some, size, draws, 2, chosen)
    table("all thin", results)
