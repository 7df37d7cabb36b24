"""How well scores order papers as people order their own expertise.

The measure is the weighted Kendall tau loss of the public gold standard: over all pairs of papers rated by
one participant, a pair ordered wrongly costs the difference of its ratings, a tie in the scores half of it;
the sum is divided by the sum of all differences.

References
----------
Stelmakh, Wieting, Neubig and Shah, "A gold standard dataset for the reviewer assignment problem",
arXiv 2303.16750, 2023.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from matching.errors import InvalidFileError, Issue
from matching.formats.openreview import read_dataset
from matching.formats.ratings import Scores, open_predictions, open_rated, read_predictions
from matching.notices import Notice, in_words
from matching.params import Params
from matching.plan.plan import plain
from matching.profiles.text import reviewer_documents, submission_text
from matching.profiles.venue import Venue
from matching.resources import Resources
from matching.scores.text import known_scorer, named_scorer, text_affinity
from matching.types import FloatArray
from matching.vectors.base import Vectorizer

__all__ = ["Evaluation", "Judgement", "bootstrap_interval", "evaluate", "judge"]

log = logging.getLogger(__name__)

EXPERT = 4.0  # rating from which a paper counts as one the participant can review well
LAYMAN = 2.0  # rating up to which it counts as one the participant cannot
RESAMPLES = 1000
LEVEL = 0.95  # of the interval


@dataclass(frozen=True, eq=False)
class Judgement:
    """How scores order the pairs of rated papers, summed up for each participant.

    Attributes
    ----------
    participants : tuple of str
        In the order of the ratings.
    wrong, total : ndarray of shape (n_participants,), float64
        Rating differences of the pairs ordered wrongly (ties half), and of all pairs. In units of rating.
    easy_right, easy_pairs : ndarray of shape (n_participants,), float64
        Pairs of one rating of at least 4 and one of at most 2: how many are ordered right (ties half), and
        how many there are.
    hard_right, hard_pairs : ndarray of shape (n_participants,), float64
        The same for pairs of two different ratings of at least 4.
    pairs : int
        Pairs of different ratings, all participants together.
    unscored : int
        Rated papers without a score. Every pair with one of them is a tie.
    """

    participants: tuple[str, ...]
    wrong: FloatArray
    total: FloatArray
    easy_right: FloatArray
    easy_pairs: FloatArray
    hard_right: FloatArray
    hard_pairs: FloatArray
    pairs: int
    unscored: int

    @property
    def loss(self) -> float | None:
        """Weighted Kendall tau loss, [0, 1], lower is better; None where no two ratings differ."""
        return _ratio(self.wrong, self.total)

    @property
    def easy(self) -> float | None:
        """Share of the easy pairs that are ordered right, [0, 1]; None where there are none."""
        return _ratio(self.easy_right, self.easy_pairs)

    @property
    def hard(self) -> float | None:
        """Share of the hard pairs that are ordered right, [0, 1]; None where there are none."""
        return _ratio(self.hard_right, self.hard_pairs)


def _ratio(part: FloatArray, whole: FloatArray) -> float | None:
    total = float(whole.sum())
    return float(part.sum()) / total if total > 0 else None


def judge(ratings: Mapping[str, Mapping[str, float]], scores: Mapping[str, Mapping[str, float]]) -> Judgement:
    """Compare scores with ratings.

    Parameters
    ----------
    ratings : mapping of str to mapping of str to float
        Participant -> paper -> rating, higher is more expert.
    scores : mapping of str to mapping of str to float
        Participant -> paper -> score, any unit, higher is better. Missing or NaN: the scores say nothing.

    Notes
    -----
    A pair is a tie where its scores are equal or one of them is missing: keeping silent costs as much as a
    coin would. Time grows with the pairs: about a microsecond each.
    """
    sums = np.zeros((len(ratings), 6))
    pairs = unscored = 0
    for at, (person, rated) in enumerate(ratings.items()):
        own = scores.get(person, {})
        known = [(rating, own.get(paper, math.nan)) for paper, rating in rated.items()]
        unscored += sum(math.isnan(score) for _, score in known)
        for (first, ahead), (second, behind) in itertools.combinations(known, 2):
            if first == second:
                continue  # no order to get right
            pairs += 1
            if first < second:
                first, second, ahead, behind = second, first, behind, ahead
            right = 1.0 if ahead > behind else 0.0 if ahead < behind else 0.5
            easy = first >= EXPERT and second <= LAYMAN
            hard = second >= EXPERT
            sums[at] += ((1 - right) * (first - second), first - second, right * easy, easy, right * hard, hard)
    wrong, total, easy_right, easy_pairs, hard_right, hard_pairs = np.ascontiguousarray(sums.T)
    return Judgement(tuple(ratings), wrong, total, easy_right, easy_pairs, hard_right, hard_pairs, pairs, unscored)


def bootstrap_interval(
    judgements: Sequence[Judgement], *, resamples: int = RESAMPLES, level: float = LEVEL, rng: int = 0
) -> tuple[float, float]:
    """Where the mean loss of all versions lies when participants are drawn anew, with replacement.

    Parameters
    ----------
    judgements : sequence of Judgement
        One a version; a resample draws the same people in each.
    resamples : int
        [1, inf).
    level : float
        Share of the resamples inside the interval, (0, 1).
    rng : int
        Seed; equal input and seed give the equal interval.

    Returns
    -------
    tuple of two floats
        Percentiles of the loss, [0, 1]. Resamples in which a version has no two ratings that differ are left
        out; NaN, NaN if that leaves none.
    """
    people = sorted({person for judgement in judgements for person in judgement.participants})
    column = {person: at for at, person in enumerate(people)}
    wrong, total = (np.zeros((len(judgements), len(people))) for _ in range(2))
    for version, judgement in enumerate(judgements):
        at = [column[person] for person in judgement.participants]
        wrong[version, at], total[version, at] = judgement.wrong, judgement.total
    times = np.random.default_rng(rng).multinomial(len(people), np.full(len(people), 1 / len(people)), resamples)
    whole = times @ total.T
    usable = (whole > 0).all(axis=1)
    if not usable.any():
        return math.nan, math.nan
    losses = ((times @ wrong.T)[usable] / whole[usable]).mean(axis=1)
    low, high = np.quantile(losses, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What `evaluate` found.

    Attributes
    ----------
    loss : float
        Weighted Kendall tau loss, mean over the versions, [0, 1], lower is better.
    easy, hard : float or None
        Share of the easy and of the hard pairs that are ordered right, mean over the versions that have any.
    ci : tuple of two floats
        95 % bootstrap interval of `loss` over participants.
    per_version : mapping of str to float
        Version -> loss.
    seconds : float
        Wall time of reading, scoring and judging.
    scorer : str
        Name of the text scorer that was used, never "auto", or of the file or folder of scores.
    participants, pairs : int
        People with at least one pair, and pairs of different ratings; of the version that has most.
    text : mapping of str to object, or None
        The text scorer with its settings and the checksum of its weights, as a plan records it
        (`Vectorizer.describe`); None for scores from elsewhere.
    notices : tuple of Notice
        Whom and what the loss leaves out, and what was not scored.
    """

    loss: float
    easy: float | None
    hard: float | None
    ci: tuple[float, float]
    per_version: Mapping[str, float]
    seconds: float
    scorer: str
    participants: int
    pairs: int
    text: Mapping[str, Any] | None = None
    notices: tuple[Notice, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON: the figures under their names, notices as code and message."""
        return {
            "scorer": self.scorer,
            "loss": self.loss,
            "easy": self.easy,
            "hard": self.hard,
            "ci": list(self.ci),
            "per_version": dict(self.per_version),
            "seconds": self.seconds,
            "participants": self.participants,
            "pairs": self.pairs,
            "text": None if self.text is None else plain(self.text),
            "notices": [
                {
                    "code": notice.code,
                    "message": notice.message,
                    "reviewers": list(notice.reviewers),
                    "submissions": list(notice.submissions),
                }
                for notice in self.notices
            ],
        }


def evaluate(
    source: str | Path,
    *,
    scorer: str | None = None,
    scores: str | Path | None = None,
    resources: Resources | None = None,
    rng: int = 0,
) -> Evaluation:
    """Judge a text scorer, or scores from elsewhere, by people's ratings of their own expertise.

    Parameters
    ----------
    source : str or Path
        Ratings and dataset versions; see `matching.formats.ratings.open_rated`.
    scorer : str or None
        Name of a text scorer; None for the default of Params. Not used where `scores` is given.
    scores : str or Path or None
        Predictions; see `matching.formats.ratings.open_predictions`.
    resources : Resources or None
        Folders of a sentence encoder and of its cache.
    rng : int
        Seed of the bootstrap.

    Returns
    -------
    Evaluation

    Raises
    ------
    InvalidFileError
        ``invalid-file``: the dataset, the ratings or the predictions are at fault, or nothing can be compared.
    InvalidParamsError
        ``invalid-params``: there is no scorer of that name.
    MissingExtraError
        ``missing-extra``: the scorer is an optional part that is not installed.

    Notes
    -----
    Ratings of people without readable publications and of papers without readable text are left out, for
    every scorer alike, and listed in the notices: a dataset that does not hold them says nothing about a
    scorer. A participant ``12`` is the reviewer ``12``, or else ``~12``.
    """
    begin = perf_counter()
    name = known_scorer(scorer if scorer is not None else Params().scorer, resources)
    vectorizer = named_scorer(name, resources) if scores is None else None
    rated = open_rated(source)
    predicted = None if scores is None else open_predictions(scores, rated.versions)
    notices = list(rated.notices)
    judgements: dict[str, Judgement] = {}
    for version, files in rated.versions.items():
        venue, told = read_dataset(files)
        notices += [Notice(entry.code, f"{version}: {entry.message}") for entry in told]
        people = _participants(rated.ratings, venue)
        ratings, left_out = _comparable(version, rated.ratings, venue, people)
        notices += left_out
        if predicted is None:
            found = _affinities(ratings, venue, people, vectorizer)
        else:
            found = _predicted(version, predicted[version], ratings, people)
        judgement = judge(ratings, found)
        if judgement.loss is None:
            why = "".join(f"; {entry.message.removeprefix(f'{version}: ')}" for entry in left_out)
            raise InvalidFileError(f"{version}: no participant has two comparable papers with different ratings{why}")
        if judgement.unscored:
            text = f"{version}: {judgement.unscored} rated papers have no score; their pairs count as ties"
            notices.append(Notice("unscored-papers", text, data={"version": version, "count": judgement.unscored}))
        judgements[version] = judgement
        log.info("%s: loss %.4f", version, judgement.loss)
    done = list(judgements.values())
    losses = {version: judgement.loss or 0.0 for version, judgement in judgements.items()}
    return Evaluation(
        loss=float(np.mean(list(losses.values()))),
        easy=_mean([judgement.easy for judgement in done]),
        hard=_mean([judgement.hard for judgement in done]),
        ci=bootstrap_interval(done, rng=rng),
        per_version=losses,
        seconds=perf_counter() - begin,
        scorer=name if scores is None else str(scores),
        participants=max(int(np.count_nonzero(judgement.total)) for judgement in done),
        pairs=max(judgement.pairs for judgement in done),
        text=None if vectorizer is None else vectorizer.describe(),
        notices=tuple(notices),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _participants(ratings: Mapping[str, Any], venue: Venue) -> dict[str, str]:
    """Participant -> reviewer id, for those who are in the pool; the id itself goes before its other form."""
    pool = {reviewer.id for reviewer in venue.reviewers}
    forms = {person: (person, f"~{person}", person.removeprefix("~")) for person in ratings}
    return {person: next(form for form in own if form in pool) for person, own in forms.items() if pool & {*own}}


def _comparable(
    version: str, ratings: Mapping[str, Mapping[str, float]], venue: Venue, people: Mapping[str, str]
) -> tuple[Scores, list[Notice]]:
    """The ratings this version can be judged by, and who and what is left out."""
    wanted = {paper for rated in ratings.values() for paper in rated}
    readable = {entry.id for entry in venue.submissions if entry.id in wanted and submission_text(entry)}
    sought = set(people.values())
    documented = {entry.id for entry in venue.reviewers if entry.id in sought and reviewer_documents(entry)}
    silent = tuple(person for person in ratings if people.get(person) not in documented)
    missing = tuple(sorted(wanted - readable))
    notices = []
    if silent:
        text = f"{version}: left out, no publications to go by: {len(silent)} participants ({in_words(silent)})"
        notices.append(Notice("participants-without-archive", text, reviewers=silent))
    if missing:
        text = f"{version}: left out, no submission text to go by: {len(missing)} rated papers ({in_words(missing)})"
        notices.append(Notice("papers-without-text", text, submissions=missing))
    kept = {
        person: {paper: rating for paper, rating in rated.items() if paper in readable}
        for person, rated in ratings.items()
        if person not in silent
    }
    return kept, notices


def _affinities(ratings: Scores, venue: Venue, people: Mapping[str, str], vectorizer: Vectorizer | None) -> Scores:
    """Text affinity of the rated pairs; all of the version takes part in word weights and standardisation."""
    affinity = text_affinity(venue.submissions, venue.reviewers, vectorizer=vectorizer)
    row = {entry.id: at for at, entry in enumerate(venue.submissions)}
    column = {entry.id: at for at, entry in enumerate(venue.reviewers)}
    return {
        person: {paper: float(affinity[row[paper], column[people[person]]]) for paper in rated}
        for person, rated in ratings.items()
    }


def _predicted(version: str, file: tuple[str, bytes], ratings: Scores, people: Mapping[str, str]) -> Scores:
    """Scores of the participants in a file, under either form of their ids."""
    name, data = file
    given = read_predictions(data, name=name)
    found = {
        person: next((given[form] for form in (people[person], person, person.removeprefix("~")) if form in given), {})
        for person in ratings
    }
    if not any(paper in found[person] for person, rated in ratings.items() for paper in rated):
        reason = (
            f"scores none of the rated pairs of {version}; expected reviewers such as {next(iter(people.values()))!r} "
            f"and papers such as {next(paper for rated in ratings.values() for paper in rated)!r}"
        )
        raise InvalidFileError(issues=[Issue(reason, "unknown-id", source=name, value=next(iter(given)))])
    return found
