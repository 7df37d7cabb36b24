"""The command `revmatch plan`: objectives and rules as typed, and what a summary says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matching.errors import InvalidFileError, InvalidParamsError, Issue
from matching.formats.faults import Faults
from matching.formats.json_text import parse_json
from matching.formats.plans import read_plan_json
from matching.plan.plan import AssignmentPlan
from matching.roles import in_words
from matching.rules import parse_rules

__all__ = ["by_role", "objective_of", "reached", "rules_of", "slack", "start_of"]

MISSED_SHOWN = 12  # places where rules are missed that a summary names
LEVELS_SHOWN = 12  # objectives and levels of them; the plan file has them all
RESULT = ("name", "value", "bound", "gap")


def objective_of(texts: Sequence[str]) -> Any:
    """The option ``objective`` from what was typed: names, or JSON as the library takes it.

    Raises
    ------
    InvalidParamsError
        A text that begins like JSON and is none.
    """
    issues: list[Issue] = []
    wishes = []
    for at, text in enumerate(texts):
        value: Any = text.strip()
        if value[:1] in ("{", "["):
            faults = Faults("--objective")
            value = parse_json(value.encode("utf-8", "replace"), faults)
            where = f"objective[{at}]" if len(texts) > 1 else "objective"
            issues += [Issue(issue.reason, issue.code, where, value=text, source="params") for issue in faults.issues]
        wishes.append(value)
    if issues:
        raise InvalidParamsError(issues=issues)
    return wishes[0] if len(wishes) == 1 else wishes


def rules_of(path: Path) -> Any:
    """The rules in a JSON file, a list.

    Raises
    ------
    InvalidFileError
        No strict JSON, or rules of a wrong form, each with its place.
    """
    faults = Faults(path.name)
    value = parse_json(path.read_bytes(), faults)
    faults.raise_if_any()
    if value is None:
        raise InvalidFileError(issues=[Issue("must be a list of rules", "wrong-type", "rules", source=path.name)])
    parse_rules(value, source=path.name, error=InvalidFileError)
    return value


def start_of(path: Path) -> AssignmentPlan:
    """The plan to begin from, as `revmatch plan --out` writes it.

    Raises
    ------
    InvalidFileError
        No plan, each fault with its place.
    """
    return read_plan_json(path.read_bytes(), name=path.name)


def reached(found: AssignmentPlan) -> list[str]:
    """A line for each objective, unless the total is the only one: its value, bound and gap."""
    if [entry["name"] for entry in found.objectives] == ["total"]:
        return []
    lines = []
    for entry in found.objectives[:LEVELS_SHOWN]:
        options = ", ".join(f"{name} {_number(value)}" for name, value in entry.items() if name not in RESULT)
        numbers = f"{_number(entry['value'])}, bound {_number(entry['bound'])}, gap {_number(entry['gap'], 2)}"
        lines.append(f"{entry['name']}{f' ({options})' if options else ''}: {numbers}")
    if (more := len(found.objectives) - LEVELS_SHOWN) > 0:
        lines.append(f"and {more} more levels, all in the plan file")
    return lines


def by_role(found: AssignmentPlan) -> list[str]:
    """A line for each role of a plan of several: people assigned, and their loads."""
    lines = []
    for role, part in found.report.get("roles", {}).items():
        totals, loads = part["totals"], part["loads"]
        held = ", ".join(f"{count} x {load}" for load, count in loads["distribution"].items())
        lines.append(
            f"{in_words(role)}: {totals['reviews_assigned']} of {totals['reviews_needed']} places filled by "
            f"{totals['reviewers']} people, affinity {totals['affinity']:.4f}, loads {held}"
        )
    return lines


def slack(found: AssignmentPlan) -> list[str]:
    """A line for each place where a rule is missed, the dearest first."""
    entries = sorted(
        found.rule_shortfalls, key=lambda entry: (entry.get("cost") is not None, -(entry.get("cost") or 0))
    )
    lines = [f"rule missed: {_missed(entry)}" for entry in entries[:MISSED_SHOWN]]
    if (more := len(entries) - MISSED_SHOWN) > 0:
        lines.append(f"rules missed at {more} more places, all in the plan file")
    return lines


def _missed(entry: Mapping[str, Any]) -> str:
    places = [str(entry[name]) for name in ("submissions", "reviewers", "where") if entry.get(name) not in (None, "")]
    side = "above" if "above" in entry else "below"
    cost = "" if entry.get("cost") is None else f", costs {_number(entry['cost'])}"
    return f"{entry['rule']}, at {' x '.join(places) or 'all'}: {_number(entry[side])} {side}{cost}"


def _number(value: Any, digits: int = 5) -> str:
    return f"{value:.{digits}g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
