"""What a run over a venue will need in memory, from counts alone."""

from __future__ import annotations

from collections.abc import Sequence

from matching.constraints.bounds import Bound
from matching.constraints.conflicts import Conflicts
from matching.constraints.families import families_of
from matching.memory import Need, need_of_solve, need_of_texts
from matching.params import Params
from matching.profiles.resolve import ResolvedVenue
from matching.scores.affinity import signals_of

__all__ = ["need_of_run"]


def need_of_run(
    resolved: ResolvedVenue, conflicts: Conflicts, bounds: Sequence[Bound], params: Params, scorer: str
) -> Need:
    """What `matching.recommend` may take at most, beside what the process holds when it begins.

    Parameters
    ----------
    scorer : {"lexical", "encoder", "hybrid"}
        The text scorer that will be used.

    Notes
    -----
    Time grows with the texts: their characters are counted, none is read.
    """
    counted = [entry for entry in signals_of(resolved, params, readable=0) if entry["weight"] > 0]
    texts = Need(())
    if any(entry["name"] == "text" for entry in counted):
        lengths = [len(paper.title or "") + len(paper.abstract or "") for paper in resolved.submissions]
        for person in resolved.reviewers:
            lengths += [len(paper.title or "") + len(paper.abstract or "") for paper in person.publications]
        texts = need_of_texts(scorer, resolved.shape, sum(lengths), len(lengths))
    names = [wish.name for wish in params.wishes]
    in_flow = not bounds or (names == ["total"] and families_of(bounds) is not None)
    solve = need_of_solve(
        resolved.shape, names, barred=len(conflicts.pairs),
        listed=sum(int(entry["pairs"]) for entry in counted if entry["name"] != "text"), signals=len(counted),
        candidates=params.candidates, classes=bool(bounds), programs=not in_flow,
    )  # fmt: skip
    return texts.and_(solve)
