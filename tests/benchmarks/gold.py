"""The rated pairs of the public gold standard (development half) as arrays, for studies that try many settings.

What a setting scores is a vector with one entry a rated pair: the score of the paper rated higher less that of
the other. Losses are then sums over these vectors, so thousands of settings take seconds.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from matching.formats.openreview import read_dataset
from matching.formats.ratings import open_rated
from matching.scores.text import reviewer_texts
from tests.shared import SHARED

GOLD = SHARED / "data" / "gold_dev"


@dataclass(frozen=True, eq=False)
class Version:
    """One version of the dataset: texts, and the rated pairs as rows and columns."""

    name: str
    submissions: tuple
    reviewers: tuple
    high: np.ndarray  # row of the paper rated higher, of each pair
    low: np.ndarray
    column: np.ndarray  # the participant, as a reviewer
    person: np.ndarray  # the same, as a number that holds in all versions
    difference: np.ndarray  # of the ratings, above 0
    kind: np.ndarray  # 1 easy, 2 hard, 0 neither

    def ahead(self, scores):
        """Score of the paper rated higher less that of the other, of each pair."""
        return scores[self.high, self.column] - scores[self.low, self.column]


def load(count=10, only=None):
    """The first `count` versions; all have the same participants and ratings."""
    rated = open_rated(GOLD)
    people = {person: at for at, person in enumerate(rated.ratings)}
    versions = []
    for name, files in list(rated.versions.items())[:count]:
        if only and name not in only:
            continue
        venue = read_dataset(files)[0]
        row = {entry.id: at for at, entry in enumerate(venue.submissions)}
        column = {entry.id.removeprefix("~"): at for at, entry in enumerate(venue.reviewers)}
        found = []
        for person, ratings in rated.ratings.items():
            for (first, high), (second, low) in itertools.combinations(ratings.items(), 2):
                if high == low:
                    continue
                if high < low:
                    first, second, high, low = second, first, low, high
                kind = 1 if high >= 4 and low <= 2 else 2 if low >= 4 else 0
                found.append((row[first], row[second], column[person], people[person], high - low, kind))
        high, low, at, who, difference, kind = (np.asarray(values) for values in zip(*found))
        versions.append(
            Version(name, venue.submissions, venue.reviewers, high, low, at, who, difference.astype(float), kind)
        )
    return versions


def texts_of(version, half_life=None):
    """Documents, weights and segments of the reviewers."""
    return reviewer_texts(version.reviewers, half_life)


class Losses:
    """Losses of settings, each given as the concatenated `ahead` of all versions."""

    def __init__(self, versions):
        self.people = int(max(version.person.max() for version in versions)) + 1
        self.versions = len(versions)
        self.difference = np.concatenate([version.difference for version in versions])
        self.kind = np.concatenate([version.kind for version in versions])
        self.cell = np.concatenate([at * self.people + version.person for at, version in enumerate(versions)])
        self.total = self._sum(self.difference)

    def _sum(self, values):
        sums = np.bincount(self.cell, weights=values, minlength=self.versions * self.people)
        return sums.reshape(self.versions, self.people)

    def wrong(self, ahead):
        """Rating differences ordered wrongly, of shape (n_versions, n_people)."""
        return self._sum(self.difference * np.where(ahead < 0, 1.0, np.where(ahead == 0, 0.5, 0.0)))

    def loss(self, wrong):
        """Mean over the versions; `wrong` may have settings in front."""
        return (wrong.sum(-1) / self.total.sum(-1)).mean(-1)

    def share(self, ahead, kind):
        """Pairs of a kind that are ordered right."""
        chosen = self.kind == kind
        return float(np.mean(np.where(ahead > 0, 1.0, np.where(ahead == 0, 0.5, 0.0))[chosen]))

    def cross_validated(self, wrong, folds=5, repeats=40, seed=0):
        """Loss of the setting chosen on the other people, and how often each setting is chosen.

        `wrong` has shape (n_settings, n_versions, n_people). People are cut into folds anew in each repeat.
        """
        rng = np.random.default_rng(seed)
        flat = wrong.reshape(len(wrong), self.versions, self.people)
        chosen = np.zeros(len(wrong))
        losses = []
        for _ in range(repeats):
            fold = rng.permutation(np.arange(self.people) % folds)
            held = np.zeros((self.versions, self.people))
            for number in range(folds):
                train = fold != number
                best = int(np.argmin((flat[:, :, train].sum(-1) / self.total[:, train].sum(-1)).mean(-1)))
                chosen[best] += 1
                held[:, ~train] = flat[best][:, ~train]
            losses.append(self.loss(held))
        return float(np.mean(losses)), chosen / chosen.sum()

    def halves(self, wrong, repeats=300, seed=0):
        """Loss on one random half of the people of the setting chosen on the other."""
        rng = np.random.default_rng(seed)
        losses = []
        for _ in range(repeats):
            train = rng.permutation(self.people) < self.people // 2
            best = int(np.argmin((wrong[:, :, train].sum(-1) / self.total[:, train].sum(-1)).mean(-1)))
            losses.append((wrong[best][:, ~train].sum(-1) / self.total[:, ~train].sum(-1)).mean())
        return float(np.mean(losses))

    def change(self, wrong, base, resamples=2000, seed=0):
        """Loss less that of `base`, with a 95 % interval over people drawn anew."""
        times = np.random.default_rng(seed).multinomial(self.people, np.full(self.people, 1 / self.people), resamples)
        deltas = ((times @ (wrong - base).T) / (times @ self.total.T)).mean(-1)
        low, high = np.quantile(deltas, [0.025, 0.975])
        return float(self.loss(wrong) - self.loss(base)), float(low), float(high)


def standardised(matrix):
    return (matrix - matrix.mean()) / matrix.std()


def centred(matrix, share):
    return matrix - share * matrix.mean(axis=1, keepdims=True)
