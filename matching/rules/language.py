"""The language of rules: what a chair may demand of a plan beyond demand, loads and conflicts, as plain JSON.

A rule is an object with ``rule`` (its kind), the people and submissions it is about, and numbers:

    {"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 1}

**Who.** ``reviewers`` and ``submissions`` choose by attributes; left out, they mean everybody or every submission. An
attribute is given a value, a list of values (any of them), or an object with ``not`` (none of these values),
``at_least`` and ``at_most`` (numbers, or dates as ``"2025-06-30"``); all that is said must hold. ``null`` among the
values stands for "has no value". Texts compare trimmed and without regard to capitals; of an attribute with several
values (areas, affiliations) one that fits is enough.

Attributes of reviewers: id (any id, alias or address), role, seniority, country, affiliation, email_domain, area,
keyword, track (from ``extra.track`` or ``extra.tracks``), load_max, publication. Of submissions: id, track, area,
keyword, demand, author, author_affiliation, author_country (of the authors in the pool). And on both sides
``extra.<name>`` for anything else a record came with. The names of the records' lists (areas, keywords,
affiliations) mean the same.

**Kinds that count**, with ``at_least``, ``at_most`` or both:

- ``reviewers_per_submission``: of each submission chosen, how many of its reviewers are among those chosen.
- ``submissions_per_reviewer``: of each reviewer chosen, how many of the reviewer's submissions are among those chosen.
- ``reviews_in_all``: reviews of all chosen submissions by all chosen reviewers together.

The first two count separately for every value with ``"each": "affiliation"``; ``"groups": {"Europe": ["DE", "FR"]}``
lets several values count as one, the others stay by themselves, and who has no value is not counted. With
``"sharing": "area"`` they count who has an area in common with the submission; ``{"submissions": "author_country",
"reviewers": "country"}`` compares two attributes. A lower bound never asks a submission for more reviewers than it
needs, nor a reviewer for more submissions than the load limit.

**Kinds about pairs**:

- ``same``: only reviewers who share ``attribute`` with the submission; ``missing`` says whether a side without a value
  is "allowed" (default) or "barred".
- ``bar``: no chosen reviewer on a chosen submission; with ``sharing`` only where the two share a value.
- ``lock``: the named reviewers on the named submissions; both by id.
- ``available``: nobody who is away during a submission's review window. ``from`` and ``until`` are a date for all or an
  attribute of submissions (default ``extra.from``, ``extra.until``), ``away`` an attribute of reviewers (default
  ``extra.away``) that holds ``"2025-07-01/2025-07-14"``, one day, or a list of those; ``at_most`` days of absence
  within the window are tolerated (default 0).

**Kinds about more than a pair**:

- ``coreviewer_distance``: ``at_least`` 2, no two co-authors on one submission; 3, nor two people with a common
  co-author. Co-authors are those who share a publication id or have written a submission together.
- ``no_cycles``: no ring of up to ``length`` (2 to 4) people each of whom reviews a submission of the next; ``among``
  "bids" looks only at pairs the reviewer asked for, default "all".
- ``share_reviewers``: any two chosen submissions with the same value of ``each`` have ``at_least`` reviewers in common.
  In a plan of several roles ``"reviewers": {"role": "reviewer"}`` says of which role; other choices are refused.
- ``no_shared_reviewers``: no reviewer has two chosen submissions with the same value of ``each``.
- ``load_weight``: the chosen submissions count ``weight`` toward load_max and load_min instead of 1.

A plan of several roles (`matching.params.Params.roles`) counts people of all roles together: at most one per
affiliation on a submission means its area chair, too. ``"reviewers": {"role": "area_chair"}`` keeps a rule to one role.

Every kind but ``lock`` and ``load_weight`` may have a ``price``: then it may be broken, and every unit by which it is
costs that much, in units of affinity. Every rule may have a ``name``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from matching.errors import InputError, InvalidParamsError
from matching.rules.readers import READERS, Faults, read_selection
from matching.rules.values import Rule

__all__ = ["KINDS", "parse_rules"]

KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "reviewers_per_submission": (
            ("submissions", "reviewers", "each", "groups", "sharing", "at_least", "at_most", "price"), ()),
        "submissions_per_reviewer": (
            ("submissions", "reviewers", "each", "groups", "sharing", "at_least", "at_most", "price"), ()),
        "reviews_in_all": (("submissions", "reviewers", "at_least", "at_most", "price"), ()),
        "same": (("submissions", "reviewers", "attribute", "missing", "price"), ("attribute",)),
        "bar": (("submissions", "reviewers", "sharing", "price"), ()),
        "lock": (("submissions", "reviewers"), ("submissions", "reviewers")),
        "available": (("submissions", "reviewers", "from", "until", "away", "at_most", "price"), ()),
        "coreviewer_distance": (("submissions", "reviewers", "at_least", "price"), ("at_least",)),
        "no_cycles": (("submissions", "reviewers", "length", "among", "price"), ("length",)),
        "share_reviewers": (("submissions", "reviewers", "each", "groups", "at_least", "price"), ("at_least",)),
        "no_shared_reviewers": (("submissions", "reviewers", "each", "groups", "price"), ()),
        "load_weight": (("submissions", "weight"), ("submissions", "weight")),
    }
)  # fmt: skip
"""Kind -> the keys it may have beside ``rule`` and ``name``, and those it must have."""

COUNTING = ("reviewers_per_submission", "submissions_per_reviewer", "reviews_in_all")
MOST_RULES = 1000
DISTANCES = (2, 3)


def parse_rules(
    value: Any, *, source: str = "params", error: type[InputError] = InvalidParamsError
) -> tuple[Rule, ...]:
    """Check the form of a list of rules.

    Parameters
    ----------
    value : sequence of mapping, or None
        As the module's description says; None for none.
    source : str
        What issues name as their source.
    error : type
        Class of the error to raise.

    Raises
    ------
    InputError
        Of the class `error`, with every fault and its place, such as ``rules[2].at_least``: unknown kinds and keys,
        missing keys, wrong types, numbers out of range.
    """
    faults = Faults(source)
    if value is None:
        return ()
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        faults.add("rules", "must be a list of rules", "wrong-type", value)
        raise error(issues=faults.issues)
    if len(value) > MOST_RULES:
        faults.add("rules", f"there may be at most {MOST_RULES} rules, got {len(value)}", "out-of-range")
        raise error(issues=faults.issues)
    rules = [_rule(entry, f"rules[{at}]", faults) for at, entry in enumerate(value)]
    if faults.issues:
        raise error(issues=faults.issues)
    return _named([rule for rule in rules if rule is not None])


def _rule(entry: Any, where: str, faults: Faults) -> Rule | None:
    if not isinstance(entry, Mapping):
        faults.add(where, "a rule must be an object", "wrong-type", entry)
        return None
    kind = entry.get("rule")
    if not isinstance(kind, str) or kind not in KINDS:
        said = kind[:80] if isinstance(kind, str) else type(kind).__name__
        near = get_close_matches(said, KINDS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        reason = f"there is no kind of rule {said!r}{hint}; known: {', '.join(KINDS)}"
        faults.add(f"{where}.rule", "is missing" if kind is None else reason, "unknown-rule", kind)
        return None
    before = len(faults.issues)
    allowed, needed = KINDS[kind]
    for key in entry:
        if key not in ("rule", "name", *allowed):
            faults.add(f"{where}.{key}", f"{kind} has no {key}; it has: {', '.join(allowed)}", "unknown-option")
    given = {key: item for key, item in entry.items() if item is not None}
    for key in needed:
        if key not in given:
            faults.add(f"{where}.{key}", f"{kind} needs {key}", "missing")
    name = given.get("name", "")
    if not isinstance(name, str):
        faults.add(f"{where}.name", "must be a text", "wrong-type", name)
        name = ""
    options: dict[str, Any] = {}
    for key in allowed:
        if key in given and key in READERS:
            options[key] = READERS[key](given[key], f"{where}.{key}", faults)
    sides = {key: read_selection(given.get(key), f"{where}.{key}", faults) for key in ("submissions", "reviewers")}
    _judge(kind, given, options, where, faults)
    if len(faults.issues) > before:
        return None
    options = {**_DEFAULTS.get(kind, {}), **options}
    price = options.pop("price", None)
    return Rule(
        kind, " ".join(name.split()) or _in_words(kind, given), sides["submissions"], sides["reviewers"],
        MappingProxyType(options), price, where, faults.source,
    )  # fmt: skip


_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "same": {"missing": "allowed"},
    "no_cycles": {"among": "all"},
    "available": {"from": "extra.from", "until": "extra.until", "away": "extra.away", "at_most": 0},
}


def _judge(kind: str, given: Mapping[str, Any], options: Mapping[str, Any], where: str, faults: Faults) -> None:
    """What keys must be together, and what a kind asks of its numbers."""
    low, high = options.get("at_least"), options.get("at_most")
    if kind in COUNTING:
        if "at_least" not in given and "at_most" not in given:
            faults.add(where, f"{kind} needs at_least, at_most or both", "missing")
        if low is not None and high is not None and low > high:
            faults.add(f"{where}.at_least", f"at_least {low} is above at_most {high}", "contradiction", low)
    if kind == "coreviewer_distance" and low is not None and low not in DISTANCES:
        faults.add(f"{where}.at_least", "must be 2 (no co-authors) or 3 (no common co-author)", "out-of-range", low)
    if kind == "share_reviewers" and low is not None and low < 1:
        faults.add(f"{where}.at_least", "must be at least 1", "out-of-range", low)
    if "groups" in given and "each" not in given:
        faults.add(f"{where}.groups", "groups say which values of each count as one; each is missing", "missing")
    if "each" in given and "sharing" in given:
        faults.add(f"{where}.sharing", "each and sharing exclude one another; write two rules", "contradiction")
    if kind == "bar" and not {"submissions", "reviewers", "sharing"} & set(given):
        faults.add(where, "bar without submissions, reviewers and sharing would bar every pair", "missing")
    if kind == "lock":
        for side in ("submissions", "reviewers"):
            chosen = given.get(side)
            if isinstance(chosen, Mapping) and (set(chosen) != {"id"} or isinstance(chosen["id"], Mapping)):
                faults.add(f"{where}.{side}", 'a lock names ids and nothing else: {"id": [...]}', "not-ids")


def _in_words(kind: str, given: Mapping[str, Any]) -> str:
    """A name for a rule that has none: its kind and what it says."""
    said = [f"{key.replace('_', ' ')} {_said(item)}" for key, item in given.items() if key not in ("rule", "price")]
    text = f"{kind.replace('_', ' ')}: {', '.join(said)}" if said else kind.replace("_", " ")
    return text if len(text) <= 120 else text[:119] + "…"


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return " and ".join(f"{key} {_said(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " or ".join(map(_said, value))
    return "no value" if value is None else str(value)


def _named(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules with names made unique by a number."""
    seen: dict[str, int] = {}
    out = []
    for rule in rules:
        count = seen[rule.name] = seen.get(rule.name, 0) + 1
        out.append(rule if count == 1 else replace(rule, name=f"{rule.name} ({count})"))
    return tuple(out)
