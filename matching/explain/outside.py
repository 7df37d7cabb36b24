"""What keeps a pair out of a plan: hard rules that a swap would break, and prices, those of rules among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import RoleRows
from matching.explain.line import Line
from matching.explain.ruled import Broken, RulePrice, Rules
from matching.notices import in_words
from matching.plan.plan import AssignmentPlan
from matching.profiles.resolve import ResolvedVenue

__all__ = ["TOLERANCE", "Outside", "PriceProof", "difference"]

TOLERANCE = 1e-6  # difference below which two affinities are equal to a reader and to the solver's resolution
SAID = 5  # people of whom it is said what rules add to their pairs


@dataclass(frozen=True, slots=True)
class PriceProof:
    """The certificate's numbers for a pair outside the plan: it cannot improve the plan if what is left of its
    affinity after the prices of rules is at most the sum of the other two.

    Attributes
    ----------
    affinity : float
        Multiplied by the weight of the role, where it has one.
    submission_price : float
        What one more review is worth to the submission under the plan, in units of affinity.
    reviewer_price : float
        What one more review by the reviewer is worth elsewhere in the plan.
    holds : bool
        ``affinity - sum of the prices of rules <= submission_price + reviewer_price``, up to 1e-6.
    rules : tuple of RulePrice
        What bounds of rules take from the pair.
    """

    affinity: float
    submission_price: float
    reviewer_price: float
    holds: bool
    rules: tuple[RulePrice, ...] = ()


class Outside:
    """Pairs outside one plan, against those inside.

    Parameters
    ----------
    resolved, problem
        Of the venue and the options the plan was made from.
    plan : AssignmentPlan
    rows : RoleRows
        What rows and columns of the problem are.
    """

    def __init__(
        self, resolved: ResolvedVenue, problem: AssignmentProblem, plan: AssignmentPlan, rows: RoleRows
    ) -> None:
        self._resolved, self._problem, self._plan, self._rows = resolved, problem, plan, rows
        self._names = rows.names([entry.id for entry in resolved.submissions])
        self._reviewers = [entry.id for entry in resolved.reviewers]
        self._proof_of_total = _of_total(plan) if problem.rules else None

    def broken(self, line: Line, col: int, rivals: Sequence[int], full: bool) -> tuple[str, tuple[str, ...], bool]:
        """Hard rules that would not hold with somebody in a free place or instead of a rival.

        Parameters
        ----------
        rivals : sequence of int
            Columns of people who are on the submission and could go.
        full : bool
            Whether the person would have to give up another review.

        Returns
        -------
        (str, tuple of str, bool)
            The end of a sentence, the names of the rules, and whether no place is left at all.
        """
        moves: list[int | None] = list(rivals)
        if len(line.chosen) < self._problem.demand[line.place]:
            moves.append(None)
        if not moves or not self._problem.rules:
            return "", (), False
        found: dict[Broken, list[int | None]] = {}
        for other in moves:
            if (bound := self._rules.broken(line.place, col, other, full)) is not None:
                found.setdefault(bound, []).append(other)
        said = []
        for bound, others in found.items():
            names = [self._reviewers[other] for other in others if other is not None]
            instead = f"instead of {in_words(names)}" if names else ""
            beside = "in a free place" if None in others else ""
            fate = "would be missed by more" if bound.already else "would not hold"
            place = " or ".join(filter(None, (instead, beside)))
            said.append(f'with them {place} rule "{bound.rule}" {fate} ({bound.where})')
        return "; ".join(said), tuple(bound.rule for bound in found), sum(map(len, found.values())) == len(moves)

    def gifts(self, line: Line, col: int, rivals: Sequence[int]) -> dict[int, tuple[RulePrice, ...]]:
        """What rules add to rivals, and not to somebody."""
        if self._proof_of_total is None:
            return {}
        found = {other: self._rules.gifts(line.place, other, besides=col) for other in rivals}
        return {other: gifts for other, gifts in found.items() if gifts}

    def costlier(self, line: Line, col: int, rivals: Sequence[int]) -> tuple[str, tuple[str, ...]]:
        """Priced rules that cost more than a place is worth to somebody: the end of a sentence, and their names.

        Both are empty where one place is worth it.
        """
        weight = self._rows.weights[self._rows.place(line.place)[0]]
        said, names = [], []
        for other in rivals if self._problem.rules else ():
            cost, missed = self._rules.cost(line.place, col, other)
            if not missed or cost <= TOLERANCE or weight * (line.scores[col] - line.scores[other]) > cost + TOLERANCE:
                return "", ()
            where = " and ".join(f'rule "{bound.rule}" ({bound.where})' for bound in missed)
            said.append(f"with them instead of {self._reviewers[other]} {where} would cost {cost:.3f} more")
            names += [bound.rule for bound in missed]
        return "; ".join(said[:SAID]), tuple(names)

    def decided(self, line: Line, price: PriceProof, rivals: Sequence[int]) -> bool:
        """Whether without the prices of rules the pair would be worth more than its place, or than a rival's pair."""
        worth = price.affinity - price.reviewer_price
        if not price.holds:
            return False
        if worth > price.submission_price + TOLERANCE:
            return True
        paid = sum(rule.price for rule in price.rules)
        for other in rivals:
            theirs = self.price(line, other, float(line.scores[other]))
            # a rival's pair may be below its prices in a plan with a gap; only what rules take or add speaks of rules
            dearer = theirs is not None and paid > sum(rule.price for rule in theirs.rules) + TOLERANCE
            if theirs is not None and dearer and worth > theirs.affinity - theirs.reviewer_price + TOLERANCE:
                return True
        return False

    def price(self, line: Line, col: int, score: float) -> PriceProof | None:
        """The numbers of the proof for a pair of a known affinity; None where they say nothing about it."""
        certificate = self._plan.certificate
        name, reviewer = self._names[line.place], self._reviewers[col]
        rules: tuple[RulePrice, ...] = ()
        u, w = certificate.submission_prices.get(name), certificate.reviewer_prices.get(reviewer)
        if certificate.proofs:
            # for another objective than the total, prices belong to weighted affinities and say nothing about this one
            proof = self._proof_of_total
            if proof is None or proof["weights"].get(name) != 1.0 or not self._rules.priced:
                return None
            u, w = proof["submission_prices"].get(name), proof["reviewer_prices"].get(reviewer)
            rules = self._rules.prices(line.place, col)
        if u is None or w is None:
            return None
        score *= self._rows.weights[self._rows.place(line.place)[0]]
        left = score - sum(entry.price for entry in rules)
        return PriceProof(score, u, w, left <= u + w + TOLERANCE, rules)

    def proof(
        self, price: PriceProof | None, gifts: Mapping[int, tuple[RulePrice, ...]]
    ) -> tuple[str, tuple[str, ...]]:
        """What the prices say, as the end of a sentence, and the rules it names."""
        if price is None:
            return "", ()
        penalty = self._penalty
        if penalty and max(abs(price.submission_price), abs(price.reviewer_price)) > penalty / 2:
            return "; a review moved here would leave another submission with fewer", ()
        dear = [entry for entry in price.rules if penalty and entry.price > penalty / 2]
        if dear and price.holds:
            where = "; ".join(f'"{entry.rule}" ({entry.where})' for entry in dear)
            words = f"; a review moved here would leave reviews missing elsewhere by rule {where}"
            return words, tuple(entry.rule for entry in dear)
        if not price.holds:
            gap = "" if self._plan.gap == 0 else f" (its gap is {self._plan.gap:.3g})"
            return f"; the prices of this plan do not show that this is best{gap}", ()
        terms = "".join(
            f' {"-" if entry.price > 0 else "+"} {abs(entry.price):.3f} (rule "{entry.rule}", {entry.where})'
            for entry in price.rules
        )
        words = (
            f"; affinity {price.affinity:.3f}{terms} is not above {price.submission_price:.3f} (one more review here) "
            f"+ {price.reviewer_price:.3f} (one of theirs elsewhere)"
        )
        for other, given in list(gifts.items())[:SAID]:
            who = self._reviewers[other]
            for entry in given:
                words += f'; rule "{entry.rule}" adds {-entry.price:.3f} to {who} ({entry.where})'
        return words, tuple(entry.rule for entry in (*price.rules, *chain.from_iterable(gifts.values())))

    @property
    def _penalty(self) -> float:
        proof = self._proof_of_total
        return self._plan.certificate.penalty if proof is None else float(proof["penalty"])

    @cached_property
    def _rules(self) -> Rules:
        index, papers = self._resolved.reviewer_index, self._resolved.submission_index
        places = [(papers.get(pair.submission), index.get(pair.reviewer)) for pair in self._plan.assignments]
        pairs = [(row, col) for row, col in places if row is not None and col is not None]
        known = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
        return Rules(self._problem, self._rows.pairs(known), self._proof_of_total, self._reviewers)


def _of_total(plan: AssignmentPlan) -> Mapping[str, Any] | None:
    """The proof that the total is best, where that is what the plan was made for first."""
    proofs = plan.certificate.proofs
    if proofs and proofs[0]["objective"]["name"] == "total" and not proofs[0]["constraints"]:
        return proofs[0]
    return None


def difference(rules: Sequence[str]) -> str:
    """The beginning of a sentence about rules whose prices decide."""
    names = list(dict.fromkeys(rules))
    if len(names) == 1:
        return f'rule "{names[0]}" makes the difference'
    return "rules " + " and ".join(f'"{name}"' for name in names) + " make the difference"
