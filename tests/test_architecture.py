"""Imports go one way. The rules are checked on the source alone, and each is shown an import that breaks it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MATCHING = (
    "errors", "types", "index", "pairs", "notices", "resources", "memory", "objectives", "rules", "roles", "params",
    "profiles", "vectors", "scores", "constraints", "solvers", "plan", "explain", "formats", "evaluation", "prepared",
    "foreseen", "solved", "matrices", "planned", "questions", "engine", "watched", "generated",
)  # fmt: skip
"""The engine from the ground up: a line may import those before it."""

SERVICE = (
    "errors", "config", "process", "logs", "store", "engine", "translate", "evidence", "worker", "cluster",
    "questions", "limits", "jobs", "wiring", "schemas", "handlers", "requestid", "edge", "kinds", "auth", "problems",
    "pages", "resources", "openapi", "app", "server", "commands", "cli",
)  # fmt: skip
"""The service from the ground up: settings and store, work, use cases, then what speaks HTTP."""

HTTP = ("requestid", "edge", "auth", "problems", "pages", "resources", "openapi", "app", "server", "cli")

FOREIGN: Mapping[str, tuple[str, ...]] = {
    "ortools": ("matching.solvers.flow",),
    "highspy": ("matching.solvers.milp",),
    "sklearn": ("matching.profiles", "matching.vectors", "matching.scores"),
    "snowballstemmer": ("matching.profiles", "matching.vectors"),
    "threadpoolctl": ("matching.vectors",),
    "onnxruntime": ("matching.vectors.onnx",),
    "flask": tuple(f"service.{unit}" for unit in HTTP),
    "werkzeug": tuple(f"service.{unit}" for unit in HTTP),
    "flask_smorest": tuple(f"service.{unit}" for unit in HTTP),
    "waitress": ("service.server", "service.cli"),
    "marshmallow": ("service.schemas", *(f"service.{unit}" for unit in HTTP)),
    "sqlalchemy": ("service.store", "service.worker", "service.limits", "service.jobs", "service.handlers"),
    "alembic": ("service.store",),
    "distributed": ("service.cluster", "service.worker"),
    "dask": ("service.cluster", "service.worker"),
    "structlog": ("service",),
    "click": ("service.cli",),
    "rich": ("service.cli",),
}
"""Library -> the only modules (with what lies below them) that may know it."""

ENVIRONMENT = ("service.config",)  # the only reader of environment variables

AUDIT = "matching.plan.audit"  # checks solvers, so it must not share their code
AUDIT_PARTS = (
    AUDIT,
    *(
        f"matching.plan.{part}"
        for part in ("claims", "duality", "facts", "lottery", "mixture", "proofs", "rule_prices")
    ),
)
AUDIT_MAY_IMPORT = "matching.solvers.base"  # the values a solver hands out, no solving


def sources() -> dict[str, str]:
    """Module name -> source of everything the two packages hold."""
    found = {}
    for package in ("matching", "service"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


@cache
def nodes(source: str) -> list[ast.AST]:
    """The syntax nodes the rules are about."""
    wanted = (ast.Import, ast.ImportFrom, ast.Call, ast.Attribute)
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, wanted)]


def imports(name: str, source: str, known: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a module imports, wherever in it; a name that is a module counts as one."""
    is_package = any(other.startswith(f"{name}.") for other in known)
    for node in nodes(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = name.split(".") if is_package else name.split(".")[:-1]
                base = ".".join([*here[: len(here) - node.level + 1], *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield node.lineno, whole if whole in known else base
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
                yield node.lineno, str(first.value)


def within(name: str, places: tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


def reads_environment(source: str) -> Iterator[int]:
    names = {"environ", "environb", "getenv"}
    for node in nodes(source):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "os" and node.attr in names:
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "os" and names & {alias.name for alias in node.names}:
            yield node.lineno


def unit_rank(name: str, order: tuple[str, ...]) -> int | None:
    """Height of a module; the package's own __init__ lies above everything in it; None for a unit nobody placed."""
    parts = name.split(".")
    if len(parts) == 1:
        return len(order)
    return order.index(parts[1]) if parts[1] in order else None


def direction(name: str, target: str) -> str | None:
    """What is wrong with `name` importing `target`, both ours; None when nothing is."""
    package, target_package = name.split(".")[0], target.split(".")[0]
    if package != target_package:
        return "the engine must not know the service" if package == "matching" else None
    order = MATCHING if package == "matching" else SERVICE
    mine, theirs = unit_rank(name, order), unit_rank(target, order)
    if mine is None:
        return f"{'.'.join(name.split('.')[:2])} has no place in the order; give it one in {Path(__file__).name}"
    if theirs is not None and theirs > mine:
        return "the import goes up"
    return None


def in_rings(graph: Mapping[str, set[str]]) -> list[str]:
    """Modules that take part in imports going round, or lie between two such rings."""
    left = {name: set(targets) for name, targets in graph.items()}
    while True:
        imported = set().union(*left.values()) if left else set()
        ends = {name for name, targets in left.items() if not targets or name not in imported}
        if not ends:
            return sorted(left)
        left = {name: targets - ends for name, targets in left.items() if name not in ends}


def faults(modules: Mapping[str, str]) -> list[str]:
    """Every import that breaks a rule."""
    found = []
    graph: dict[str, set[str]] = {}
    for name, source in modules.items():
        graph[name] = set()
        for line, target in imports(name, source, modules):
            top = target.split(".")[0]
            reason = None
            if top in ("matching", "service"):
                reason = direction(name, target)
                if target in modules and target != name:
                    graph[name].add(target)
                if name in AUDIT_PARTS and within(target, ("matching.solvers",)) and target != AUDIT_MAY_IMPORT:
                    reason = "the audit must not share code with what it audits"
            elif top in ("tests", "fixtures"):
                reason = "the product must not need the tests"
            elif top in FOREIGN and not within(name, FOREIGN[top]):
                reason = f"only {', '.join(FOREIGN[top])} may know {top}"
            if reason:
                found.append(f"{name}:{line} imports {target}: {reason}")
        if name not in ENVIRONMENT:
            found += [
                f"{name}:{line} reads the environment: only service.config may" for line in reads_environment(source)
            ]
    rings = in_rings(graph)
    return found + ([f"{', '.join(rings)}: the imports go round"] if rings else [])


def test_no_import_breaks_the_direction() -> None:
    """The whole product obeys every rule of this file."""
    assert faults(sources()) == []


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("matching.profiles.new", "import flask", "may know flask"),
        ("matching.engine", "from marshmallow import Schema", "may know marshmallow"),
        ("matching.formats.new", "import sqlalchemy.orm", "may know sqlalchemy"),
        ("matching.formats.new", "import alembic", "may know alembic"),
        ("matching.engine", "from distributed import Client", "may know distributed"),
        ("matching.engine", "import click", "may know click"),
        ("matching.engine", "import structlog", "may know structlog"),
        ("matching.engine", "from service.config import Settings", "must not know the service"),
        ("matching.engine", "def f():\n    from service import config", "must not know the service"),
        ("matching.engine", "import importlib\nimportlib.import_module('service.store')", "must not know the service"),
        ("matching.engine", "from tests import oracles", "must not need the tests"),
        ("matching.solvers.new", "from ortools.graph.python import min_cost_flow", "may know ortools"),
        ("matching.plan.new", "import highspy", "may know highspy"),
        ("matching.types", "from matching.pairs import PairMask", "goes up"),
        ("matching.profiles.new", "from matching.scores.base import Affinity", "goes up"),
        ("matching.profiles.new", "from ..vectors import lexical", "goes up"),
        ("matching.solvers.new", "from matching.plan import plan", "goes up"),
        ("matching.explain.new", "from matching.engine import recommend", "goes up"),
        ("matching.plan.new", "import matching", "goes up"),
        ("matching.novel", "import matching.errors", "no place in the order"),
        ("matching.plan.audit", "from matching.solvers.flow import solve", "must not share code"),
        ("matching.plan.audit", "from matching.solvers import pricing", "must not share code"),
        ("matching.plan.duality", "from matching.solvers import stages", "must not share code"),
        ("service.store.new", "from service.handlers import venues", "goes up"),
        ("service.config", "from service.store import Store", "goes up"),
        ("service.handlers.new", "from flask import request", "may know flask"),
        ("service.handlers.new", "from service.resources import venues", "goes up"),
        ("service.resources.new", "from service.app import create_app", "goes up"),
        ("service.resources.new", "from sqlalchemy import select", "may know sqlalchemy"),
        ("service.jobs", "from service.wiring import Services", "goes up"),
        ("service.app", "import click", "may know click"),
        ("service.novel", "import service.errors", "no place in the order"),
        ("service.app", "import os\nos.environ['X']", "reads the environment"),
        ("matching.engine", "from os import getenv", "reads the environment"),
    ],
)
def test_a_bad_import_is_reported(name: str, line: str, said: str) -> None:
    """A checker that never complains proves nothing: each kind of bad import is put in and must be found."""
    modules = sources()
    modules[name] = f"{modules.get(name, '')}\n{line}\n"
    last = modules[name].count("\n")
    assert any(fault.startswith(f"{name}:{last} ") and said in fault for fault in faults(modules))


def test_a_ring_of_imports_is_reported() -> None:
    """Two modules of one package that need each other are one idea in two files."""
    ring = {"matching.plan.a": "import matching.plan.b", "matching.plan.b": "from matching.plan import a"}
    ring["matching.plan.c"] = "import matching.plan.a"
    ring["matching.plan.d"] = "import matching.errors"
    assert faults(ring) == ["matching.plan.a, matching.plan.b: the imports go round"]


def test_every_unit_in_the_order_exists() -> None:
    """A name left over in the order would let a new module of that name in unseen."""
    there = {".".join(name.split(".")[:2]) for name in sources()}
    named = {f"matching.{unit}" for unit in MATCHING} | {f"service.{unit}" for unit in SERVICE}
    assert named - there == set()


@pytest.mark.parametrize(
    ("loaded", "absent"),
    [
        (AUDIT, ("ortools", "highspy", "sklearn", "matching.solvers.flow", "matching.solvers.pricing")),
        ("service.config", ("flask", "sqlalchemy", "distributed", "ortools", "sklearn", "numpy")),
        ("service.schemas.venues", ("flask", "sqlalchemy", "distributed", "ortools", "sklearn")),
        ("service.handlers", ("flask", "ortools", "sklearn")),
    ],
)
def test_loading_a_module_does_not_load_what_it_must_not_need(loaded: str, absent: tuple[str, ...]) -> None:
    """What the source does not say, a package's __init__ may: a fresh interpreter tells what really comes along."""
    code = f"import sys, {loaded}; print(*sorted(set({absent!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
