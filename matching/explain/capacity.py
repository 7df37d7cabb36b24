"""Reviews needed and reviews there are, by plain counting, role by role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.explain.names import Names, some
from matching.roles import in_words, one_of

__all__ = ["capacities", "capacity_of", "in_all"]

EVERYTHING = slice(None)


def capacity_of(
    problem: AssignmentProblem, lines: slice = EVERYTHING, people: slice = EVERYTHING, role: str | None = None
) -> dict[str, Any]:
    """Reviews needed and available by plain counting, and which setting would close a shortfall.

    Parameters
    ----------
    lines, people : slice
        Rows and columns that are counted; all of them by default.
    role : str, optional
        Whose they are, for the sentence.

    Returns
    -------
    dict
        ``needed``, ``available``, ``shortfall`` (reviews, int), ``sentence``, and ``load_max_that_suffices``:
        the smallest limit which, given to everyone who takes reviews at all, covers the need by count; None
        without a shortfall or where no limit does. Nobody can give more than one review to a submission.
    """
    demand = problem.demand[lines]
    wanting = int((demand > 0).sum())
    limits = np.minimum(problem.load_max[people], wanting)
    needed, available = int(demand.sum()), int(limits.sum())
    shortfall = max(0, needed - available)
    able = limits[limits > 0]
    each = demand[demand > 0]
    if wanting and (each == each[0]).all():
        what = f"{some(wanting, 'submission')} x {some(int(each[0]), 'review')} = {some(needed, 'review')} needed"
    else:
        what = f"{some(wanting, 'submission')} need {some(needed, 'review')} in all"
    one = "reviewer" if role is None else one_of(role)
    sentence = f"{what}; {some(able.size, one)} can give {available}"
    if role is not None:
        sentence = f"Of {in_words(role)}: {sentence}"
    enough = None
    if shortfall:
        sentence += f"; short by {shortfall}."
        if able.size * wanting >= needed:
            low, high = 1, wanting
            while low < high:
                middle = (low + high) // 2
                if np.maximum(able, middle).sum() >= needed:
                    high = middle
                else:
                    low = middle + 1
            enough = low
            sentence += f" A load_max of {enough} for these {one}s would close it by count."
        elif able.size:
            sentence += " No load_max closes it: a person gives a submission at most one review. Invite more people."
        else:
            sentence += f" Every {one} has a load_max of 0; raise it for some, or invite more people."
    else:
        sentence += "."
    return {
        "needed": needed,
        "available": available,
        "shortfall": shortfall,
        "load_max_that_suffices": enough,
        "sentence": sentence,
    }


def capacities(problem: AssignmentProblem, names: Names) -> list[tuple[str | None, dict[str, Any]]]:
    """`capacity_of` each role, in order; of a problem without roles one entry whose role is None."""
    if names.rows is None:
        return [(None, capacity_of(problem))]
    count = names.rows.n_submissions
    return [
        (role, capacity_of(problem, slice(at * count, (at + 1) * count), names.rows.columns(at), role))
        for at, role in enumerate(names.rows.roles)
    ]


def in_all(parts: Sequence[tuple[str | None, dict[str, Any]]]) -> dict[str, Any]:
    """The capacities of all roles together, from `capacities`.

    Returns
    -------
    dict
        As `capacity_of`; of several roles the sums, one sentence after another, no ``load_max_that_suffices``, and
        ``roles``: the capacity of each.
    """
    if len(parts) == 1:
        return dict(parts[0][1])
    held = [part for _, part in parts]
    return {
        "needed": sum(part["needed"] for part in held),
        "available": sum(part["available"] for part in held),
        "shortfall": sum(part["shortfall"] for part in held),
        "load_max_that_suffices": None,
        "sentence": " ".join(part["sentence"] for part in held),
        "roles": dict(parts),
    }
