"""What may be maximised: names, options, and for each the mathematics that value, gradient and proof need.

Every objective here is a concave function f of the submissions' sums U_p (or is reduced to one), and one fact
proves them all. For any weights y >= 0 let B(y) be an upper bound on ``sum y_p U_p`` over all lawful plans, which
dual prices give; then

    f(U) <= f*(y) + B(y),   f*(y) = sup over U of f(U) - y . U   (Fenchel, 1949; Rockafellar, 1970, section 12)

for every lawful plan, integral or randomised. Wishes that come earlier in a stack enter as constraints
``g(U) >= c`` with a multiplier k >= 0: they add ``k (g*(z) - c)`` and the weights ``k z``. So the whole certificate
of any stack is numbers that a few lines recompute.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from matching.errors import InvalidParamsError, Issue
from matching.types import FloatArray

__all__ = [
    "EVIDENCE", "OBJECTIVES", "Floors", "Level", "Measure", "Shortfall", "Total", "Welfare", "Wish", "parse_objective",
]  # fmt: skip

EVIDENCE = "evidence"
"""A standard error that comes from the evidence for each pair, where there is a venue with texts."""

OPTIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "total": {},
        "welfare": {"alpha": 1.0},
        "maximin": {},
        "leximin": {},
        "threshold": {"t": None},
        "envy": {},
        "randomised": {"cap": 0.5},
        "perturbed": {"beta": 0.5, "cap": 1.0},
        "robust": {"standard_error": EVIDENCE, "radius": 1.0},
        "evenness": {},
    }
)
"""Objective -> its options with their defaults; None where one must be given."""

OBJECTIVES = tuple(OPTIONS)
"""Names of the objectives the engine knows."""

MOST_ALPHA = 64.0  # beyond it U**-alpha leaves float64 for sums a hundredth of the typical one; ask for maximin
MOST_ERROR = 1e100  # squares of standard errors times a radius stay inside float64
FRACTIONAL = ("randomised", "perturbed", "robust")  # the answer is probabilities; only a last wish may be one


@dataclass(frozen=True, eq=False)
class Wish:
    """One objective with its options.

    Attributes
    ----------
    name : str
        One of OBJECTIVES.
    options : mapping
        Every option of the objective; `parse_objective` has filled in the defaults.
        ``alpha`` : [0, 64]; 0 is the total, 1 Nash welfare, larger ones turn to the worst-off.
        ``t`` : number between -1e9 and 1e9, the sum each submission should reach.
        ``cap`` : (0, 1], one number, one for each reviewer (shape (n_reviewers,)), or one for each pair (array or
        scipy.sparse of shape (n_submissions, n_reviewers), where entries not stored are 1): the highest probability
        of a pair.
        In a venue, by id: ``{"default": x, "reviewers": {id: x}, "pairs": [[submission, reviewer, x], ...]}``.
        ``beta`` : [0, 1e9], weight of the squared probabilities.
        ``standard_error`` : [0, 1e100], in the same forms as cap, or "evidence", the default, which takes the standard
        errors of the text affinities of a venue; ``radius`` : [0, 1e9].
    loss : float
        Share of this wish's best value that later wishes may give away, [0, 1).
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    loss: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As `parse_objective` takes it."""
        return {"name": self.name, **self.options, **({"loss": self.loss} if self.loss else {})}


def parse_objective(value: Any) -> tuple[Wish, ...]:
    """A name, a mapping with ``name`` and options, or a list of those in order of importance.

    Raises
    ------
    InvalidParamsError
        Every fault with its place: unknown names and options, numbers out of range, wishes that cannot be stacked.
    """
    entries = list(value) if isinstance(value, list | tuple) else [value]
    many = isinstance(value, list | tuple)
    issues: list[Issue] = []
    wishes: list[Wish] = []
    if not entries:
        issues.append(Issue("must name at least one objective", "out-of-range", "objective", source="params"))
    for place, entry in enumerate(entries):
        where = f"objective[{place}]" if many else "objective"
        wish = _wish(entry, where, issues)
        if wish is not None:
            wishes.append(wish)
    names = [wish.name for wish in wishes]
    for place, name in enumerate(names):
        where = f"objective[{place}]" if many else "objective"
        if name in (*FRACTIONAL, "envy") and len(names) > 1:
            reason = f"{name} stands alone; it cannot be stacked with other objectives"
            issues.append(Issue(reason, "contradiction", where, value=name, source="params"))
        elif name in names[:place]:
            issues.append(Issue(f"{name} is named twice", "duplicate", where, value=name, source="params"))
    if issues:
        raise InvalidParamsError(issues=issues)
    return tuple(wishes)


def _wish(entry: Any, where: str, issues: list[Issue]) -> Wish | None:
    def fault(reason: str, code: str, at: str, value: Any) -> None:
        issues.append(Issue(reason, code, at, value=value, source="params"))

    if isinstance(entry, Wish):
        entry = entry.to_dict()
    table: Any = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, Mapping) or "name" not in table:
        fault('must be a name or a mapping with "name"', "wrong-type", where, entry)
        return None
    name = table["name"]
    if not isinstance(name, str) or name not in OPTIONS:
        fault(f"must be one of {', '.join(OBJECTIVES)}", "unknown-objective", where, name)
        return None
    before = len(issues)
    known = OPTIONS[name]
    for key in table:
        if key not in ("name", "loss") and key not in known:
            listed = ", ".join(known) or "none"
            fault(f"{name} has no option {key}; it has: {listed}", "unknown-option", f"{where}.{key}", table[key])
    options = {key: table.get(key, default) for key, default in known.items()}
    for key, number in options.items():
        if number is None:
            fault(f"{name} needs {key}", "missing", f"{where}.{key}", None)
            continue
        reason = _RANGES[key](number)
        if reason:
            shown = number if isinstance(number, str | int | float) else None
            fault(f"{key} {reason}", "out-of-range", f"{where}.{key}", shown)
    loss = table.get("loss", 0.0)
    if isinstance(loss, bool) or not _is_number(loss) or not 0.0 <= loss < 1.0:
        fault("loss must be a number of at least 0 and below 1", "out-of-range", f"{where}.loss", loss)
    if len(issues) > before:
        return None
    return Wish(name, MappingProxyType(options), float(loss))


def _is_number(value: Any) -> bool:
    # compared, not converted: a whole number of 400 digits has no float
    most = sys.float_info.max
    number = float(value) if isinstance(value, np.floating) else value
    return isinstance(number, int | float | np.integer) and bool(-most <= number <= most)


def _number_within(low: float, high: float, words: str, open_low: bool = False) -> Any:
    def check(value: Any) -> str:
        good = _is_number(value) and not isinstance(value, bool) and (value > low if open_low else value >= low)
        return "" if good and value <= high else f"must be {words}"

    return check


def _by_id(value: Mapping[Any, Any], check: Any) -> str:
    """Numbers by id: ``{"default": x, "reviewers": {id: x}, "pairs": [[submission, reviewer, x], ...]}``."""
    strange = sorted(str(key) for key in set(value) - {"default", "reviewers", "pairs"})
    if strange:
        return f"has no entry {', '.join(strange)}; it may have: default, reviewers, pairs"
    people, pairs = value.get("reviewers", {}), value.get("pairs", [])
    if not isinstance(people, Mapping) or not all(isinstance(key, str) for key in people):
        return "needs a mapping of ids to numbers in reviewers"
    triples = isinstance(pairs, list | tuple) and all(
        isinstance(entry, list | tuple) and len(entry) == 3 and all(isinstance(part, str) for part in entry[:2])
        for entry in pairs
    )
    if not triples:
        return "needs a list of [submission, reviewer, number] in pairs"
    numbers = [*people.values(), *(entry[2] for entry in pairs), *([value["default"]] if "default" in value else [])]
    if not all(_is_number(number) and not isinstance(number, bool) for number in numbers):
        return "must hold finite numbers"
    return str(check(np.asarray(numbers, dtype=np.float64).reshape(-1)))


def _array(value: Any) -> FloatArray | None:
    """The numbers of an array, or those a sparse one stores; None where they are none, are complex or masked."""
    if isinstance(value, np.ma.MaskedArray):
        return None
    try:
        numbers = np.asarray(value.data if hasattr(value, "nnz") else value)
        return None if numbers.dtype.kind == "c" else numbers.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _cap(value: Any) -> str:
    if isinstance(value, bool | str):
        return "must be a number"
    if hasattr(value, "by_reviewer"):
        return ""  # PairNumbers, made from what was checked here before
    if isinstance(value, Mapping):
        return _by_id(value, _cap)
    numbers = _array(value)
    if numbers is None:
        return "must be a number, or an array of numbers"
    if not np.isfinite(numbers).all() or (numbers < 0).any() or (numbers > 1).any():
        return "must lie between 0 and 1"
    if numbers.ndim == 0 and float(numbers) == 0.0:
        return "must be above 0: with it nobody can be assigned"
    return ""


def _errors(value: Any) -> str:
    if isinstance(value, str) and value == EVIDENCE:
        return ""
    if isinstance(value, bool | str):
        return f'must be a number, or "{EVIDENCE}"'
    if hasattr(value, "by_reviewer"):
        return ""
    if isinstance(value, Mapping):
        return _by_id(value, _errors)
    numbers = _array(value)
    if numbers is None:
        return "must be a number, or an array of numbers"
    good = np.isfinite(numbers).all() and (numbers >= 0).all()
    if good and (numbers > MOST_ERROR).any():
        return f"must be at most {MOST_ERROR:g}: their squares are added up"
    return "" if good else "must be finite and not negative"


_RANGES: Mapping[str, Any] = {
    "alpha": _number_within(0.0, MOST_ALPHA, f"a number between 0 and {MOST_ALPHA:g}; beyond that ask for maximin"),
    "t": _number_within(-1e9, 1e9, "a number between -1e9 and 1e9"),
    "cap": _cap,
    "beta": _number_within(0.0, 1e9, "a number between 0 and 1e9"),
    "radius": _number_within(0.0, 1e9, "a number between 0 and 1e9"),
    "standard_error": _errors,
}


class Measure(Protocol):
    """A concave function of the submissions' sums. All arrays have shape (n_submissions,), float64."""

    def value(self, sums: FloatArray) -> float:
        """f(U)."""
        ...

    def weights(self, sums: FloatArray) -> FloatArray:
        """A supergradient of f at U: y with ``f(V) <= f(U) + y . (V - U)`` for every V. Not negative."""
        ...

    def conjugate(self, weights: FloatArray) -> float:
        """``sup over U of f(U) - weights . U``; inf where the weights prove nothing."""
        ...


TIGHT = 1e-9  # how far weights may stray from where the conjugate is finite; the slack is charged where it can be


@dataclass(frozen=True, eq=False)
class Total:
    """Sum of U. Its only useful weights are ones."""

    def value(self, sums: FloatArray) -> float:
        return float(sums.sum())

    def weights(self, sums: FloatArray) -> FloatArray:
        return np.ones(sums.size)

    def conjugate(self, weights: FloatArray) -> float:
        return 0.0 if (weights == 1.0).all() else math.inf


@dataclass(frozen=True, eq=False)
class Level:
    """The least U among the submissions of `among`.

    Attributes
    ----------
    among : ndarray of shape (n_submissions,), bool
        At least one.
    """

    among: NDArray[np.bool_]

    def value(self, sums: FloatArray) -> float:
        return float(sums[self.among].min())

    def weights(self, sums: FloatArray) -> FloatArray:
        out = np.zeros(sums.size)
        out[np.flatnonzero(self.among)[int(np.argmin(sums[self.among]))]] = 1.0
        return out

    def conjugate(self, weights: FloatArray) -> float:
        """Finite (0) where the weights are not negative, lie on `among` and sum to one."""
        good = (weights >= 0).all() and not weights[~self.among].any() and abs(weights.sum() - 1.0) <= TIGHT
        return 0.0 if good else math.inf


@dataclass(frozen=True, eq=False)
class Floors:
    """The least of U - floor: as a constraint ``>= 0`` it says that every U reaches its floor.

    Attributes
    ----------
    floor : ndarray of shape (n_submissions,), float64
        -inf where there is none.
    """

    floor: FloatArray

    def value(self, sums: FloatArray) -> float:
        return float((sums - self.floor).min(initial=math.inf))

    def weights(self, sums: FloatArray) -> FloatArray:
        out = np.zeros(sums.size)
        out[int(np.argmin(sums - self.floor))] = 1.0
        return out

    def conjugate(self, weights: FloatArray) -> float:
        """``-weights . floor``; here the weights need not sum to one, since a constraint may be scaled."""
        on = weights > 0
        if (weights < 0).any() or not np.isfinite(self.floor[on]).all():
            return math.inf
        return -float(weights[on] @ self.floor[on])


@dataclass(frozen=True, eq=False)
class Shortfall:
    """Sum of min(U, t) over the submissions of `among`: what is missing to t counts, what is above it does not.

    Attributes
    ----------
    t : float
    among : ndarray of shape (n_submissions,), bool
    """

    t: float
    among: NDArray[np.bool_]

    def value(self, sums: FloatArray) -> float:
        return float(np.minimum(sums[self.among], self.t).sum())

    def weights(self, sums: FloatArray) -> FloatArray:
        return np.where(self.among & (sums < self.t), 1.0, 0.0)

    def conjugate(self, weights: FloatArray) -> float:
        if (weights < 0).any() or (weights > 1).any() or weights[~self.among].any():
            return math.inf
        return float(((1.0 - weights[self.among]) * self.t).sum())


@dataclass(frozen=True, eq=False)
class Welfare:
    """Sum of ``x**(1 - alpha) / (1 - alpha)``, log x at alpha 1, with x = U / unit, over `among` (Atkinson, 1970).

    Below `floor` the function goes on as its tangent there: it stays concave and finite, so a plan that leaves a
    submission with nothing, or with a negative sum, has a value and a price. Submissions outside `among` are those
    that can have no positive sum in any plan; they would say the same of every plan.

    Attributes
    ----------
    alpha : float
        [0, 64].
    floor : float
        > 0, in units of score.
    among : ndarray of shape (n_submissions,), bool
    unit : float
        > 0, in units of score: what sums are measured in, so that powers stay inside float64 whatever the scores are
        counted in. It changes no preference and no equivalent.
    """

    alpha: float
    floor: float
    among: NDArray[np.bool_]
    unit: float = 1.0

    def _curve(self, sums: FloatArray) -> FloatArray:
        x = sums / self.unit
        return np.log(x) if self.alpha == 1.0 else x ** (1.0 - self.alpha) / (1.0 - self.alpha)

    def _slope(self, sums: FloatArray | float) -> FloatArray:
        return np.asarray(sums / self.unit, dtype=np.float64) ** -self.alpha / self.unit

    def parts(self, sums: FloatArray) -> FloatArray:
        """What each of `among` adds to the value, for the sums of `among` alone; float64 of their shape."""
        if self.alpha == 0.0:  # a line is its own tangent; by way of the floor tiny sums would be rounded to its size
            return sums / self.unit
        at = np.maximum(sums, self.floor)
        return self._curve(at) + self._slope(at) * (sums - at)

    def value(self, sums: FloatArray) -> float:
        return float(self.parts(sums[self.among]).sum())

    def weights(self, sums: FloatArray) -> FloatArray:
        out = np.zeros(sums.size)
        out[self.among] = self._slope(np.maximum(sums[self.among], self.floor))
        return out

    def conjugate_parts(self, weights: FloatArray) -> FloatArray:
        """What each of `among` adds to the conjugate, for the weights of `among` alone; inf where there is no bound."""
        steepest = float(self._slope(self.floor))
        out = np.full(weights.shape, math.inf)
        if self.alpha == 0.0:
            out[weights == steepest] = 0.0
            return out
        good = (weights > 0) & (weights <= steepest * (1 + TIGHT))
        y = np.minimum(weights[good], steepest)
        at = self.unit * (y * self.unit) ** (-1.0 / self.alpha)
        out[good] = self._curve(at) - y * at
        return out

    def conjugate(self, weights: FloatArray) -> float:
        if weights[~self.among].any():
            return math.inf
        return float(self.conjugate_parts(weights[self.among]).sum())

    def equivalent(self, value: float) -> float:
        """The equally distributed equivalent: the sum which, given to every submission alike, has this value.

        At alpha 1 the geometric mean of the sums, at alpha 0 their mean. In units of score; inf for a bound that no
        sum reaches, which there is above alpha 1.
        """
        count = int(self.among.sum())
        if not count:
            return 0.0
        mean = value / count
        if self.alpha == 0.0:
            return self.unit * mean
        at_floor = float(self._curve(np.array([self.floor]))[0])
        if mean < at_floor:
            return self.floor + (mean - at_floor) / float(self._slope(self.floor))
        power = (1.0 - self.alpha) * mean
        if self.alpha != 1.0 and power <= 0:
            return math.inf
        size = mean if self.alpha == 1.0 else math.log(power) / (1.0 - self.alpha)
        if size >= 700.0:  # beyond float64
            return math.inf
        return self.unit * (math.exp(mean) if self.alpha == 1.0 else float(power ** (1.0 / (1.0 - self.alpha))))

    def of_equivalent(self, equivalent: float) -> float:
        """The value whose equally distributed equivalent this is: the inverse of `equivalent`."""
        return float(self.parts(np.array([equivalent]))[0]) * int(self.among.sum())
