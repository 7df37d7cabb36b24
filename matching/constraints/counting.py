"""Rules that count: reviewers of a submission, submissions of a reviewer, reviews in all, and load weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from matching.constraints.bars import own_class_bounds, singles
from matching.constraints.bounds import NO_UPPER, GroupBound
from matching.constraints.choice import Choice
from matching.types import FloatArray, IntArray

__all__ = ["LOAD", "load_bound", "per_line", "reviews_in_all", "same_value_once"]

LOAD = "load"
"""Name of the bound that stands for load_max and load_min where submissions weigh differently."""


def per_line(choice: Choice, load_max: IntArray) -> list[GroupBound]:
    """``reviewers_per_submission`` and ``submissions_per_reviewer``.

    Parameters
    ----------
    load_max : ndarray of shape (n_reviewers,), int64
        Most submissions each reviewer can have.
    """
    rule = choice.rule
    by_reviewer = rule.kind == "submissions_per_reviewer"
    line_name, other_name = ("reviewers", "submissions") if by_reviewer else ("submissions", "reviewers")
    side, lines = choice.side(line_name)
    room = load_max if by_reviewer else choice.attributes.demand_for(choice.cols)
    low, high = rule.options.get("at_least", 0), rule.options.get("at_most", NO_UPPER)
    sharing = rule.options.get("sharing")
    if sharing is not None:
        sets = choice.value_sets(line_name, sharing, "sharing")
        if sets is None:
            return []
        least = np.minimum(low, room[sets.lines]).astype(np.float64)
        return own_class_bounds(
            rule.name, sets.lines, sets.of_line, sets.shared, least, np.full(least.size, float(high)), rule.price,
            side.ids[: side.n], sets.labels, by_reviewer=by_reviewer,
        )  # fmt: skip
    classes = choice.classes(other_name, rule.options.get("each"), rule.options.get("groups"))
    if not choice.sound or not lines.size:
        return []
    one = singles(lines, side.n)
    least = np.minimum(low, room[lines]).astype(np.float64)
    labels = [side.ids[line] for line in lines.tolist()]
    if by_reviewer:
        return [
            GroupBound.of(
                rule.name,
                classes.member,
                one,
                lower=least[None, :],
                upper=high,
                price=rule.price,
                submission_labels=classes.labels,
                reviewer_labels=labels,
            )
        ]
    return [
        GroupBound.of(
            rule.name,
            one,
            classes.member,
            lower=least[:, None],
            upper=high,
            price=rule.price,
            submission_labels=labels,
            reviewer_labels=classes.labels,
        )
    ]


def reviews_in_all(choice: Choice) -> list[GroupBound]:
    """``reviews_in_all``: one number for all chosen submissions and reviewers together."""
    left, right = choice.classes("submissions", None, None), choice.classes("reviewers", None, None)
    options = choice.rule.options
    return [
        GroupBound.of(
            choice.rule.name,
            left.member,
            right.member,
            lower=options.get("at_least", 0),
            upper=options.get("at_most", NO_UPPER),
            price=choice.rule.price,
            submission_labels=left.labels,
            reviewer_labels=right.labels,
        )
    ]


def same_value_once(choice: Choice) -> list[GroupBound]:
    """``no_shared_reviewers``: each reviewer has at most one submission of every class."""
    rule = choice.rule
    classes = choice.classes("submissions", rule.options.get("each"), rule.options.get("groups"))
    if not choice.sound or not choice.cols.size:
        return []
    several = np.flatnonzero(np.diff(classes.member.indptr) > 1)
    if not several.size:
        return []
    side = choice.attributes.reviewers
    return [
        GroupBound.of(
            rule.name,
            classes.member[several],
            singles(choice.cols, side.n),
            upper=1,
            price=rule.price,
            submission_labels=[classes.labels[at] for at in several.tolist()],
            reviewer_labels=[side.ids[col] for col in choice.cols.tolist()],
        )
    ]


def load_bound(
    weights: FloatArray, load_max: IntArray, load_min: IntArray, reviewer_ids: Sequence[str]
) -> tuple[GroupBound, IntArray, IntArray]:
    """Loads where a submission counts its weight, and what they leave of the plain limits.

    Parameters
    ----------
    weights : ndarray of shape (n_submissions,), float64, > 0
    load_max, load_min : ndarray of shape (n_reviewers,), int64

    Returns
    -------
    bound : GroupBound
        The weighted sum of each reviewer lies between load_min and load_max.
    load_max, load_min : ndarray, int64
        As many submissions as any lawful load can hold, and as few; what is tighter only the bound can say.
    """
    n_reviewers = load_max.size
    whole = sparse.csr_array(weights[None, :])
    bound = GroupBound.of(
        LOAD, whole, singles(np.arange(n_reviewers), n_reviewers), lower=load_min[None, :], upper=load_max[None, :],
        submission_labels=("all submissions, weighted",), reviewer_labels=reviewer_ids,
    )  # fmt: skip
    # the lightest submissions first give the most, the heaviest the fewest; sums of decimals need a little slack
    light = np.cumsum(np.sort(weights))
    heavy = np.cumsum(np.sort(weights)[::-1])
    most = np.searchsorted(light, load_max * (1 + 1e-12) + 1e-9, side="right").astype(np.int64)
    fewest = np.searchsorted(heavy, load_min * (1 - 1e-12) - 1e-9, side="left").astype(np.int64) + 1
    return bound, most, np.where(load_min > 0, np.minimum(fewest, most), 0)
