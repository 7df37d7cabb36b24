"""The command `revmatch bench`: a generated venue, solved and audited, beside one plain product over all pairs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.errors import InvalidParamsError, Issue, SolverError
from matching.generated import generated_problem, refused
from matching.memory import BARRED, BLOCKS, LISTED, VECTOR, Need, need_of_solve, require
from matching.objectives import OBJECTIVES, Wish, parse_objective
from matching.plan.audit import require_clean
from matching.plan.plan import plain
from matching.prepared import wishes_of_shape
from matching.scores.base import blocks
from matching.scores.fan import sweeping
from matching.solvers.base import Progress, ProgressCallback, Solution, Status
from matching.solvers.choose import solve
from matching.vectors.threads import cores
from service.commands.plan import objective_of

__all__ = ["BenchParams", "report", "yardstick"]

STAGES = ("vectors", "candidates", "flow", "prices", "sweeps", "ties", "audit")  # named in every report, 0 if unused
ENOUGH_SECONDS = 0.5  # a yardstick is repeated until this long has been measured
MOST_REPEATS = 5
SOLVED = 0.9  # share of the progress bar at which the audit begins
LIBRARIES = 130 * 10**6  # bytes that a process holds once everything is imported
DRAWN = 16  # bytes a pair while random pairs are drawn
FULL = (Status.OPTIMAL, Status.FEASIBLE_AT_LIMIT)


@dataclass(frozen=True)
class BenchParams:
    """What is generated and what is maximised.

    Attributes
    ----------
    submissions, reviewers : int
        At least 1.
    dim : int
        Dimensions of the vectors, at least 1.
    demand, load : int
        Reviews each submission needs, and most reviews of each reviewer; at least 0.
    conflicts, bids : float
        Shares of all pairs, [0, 1].
    seed : int
        At least 0; of the venue and of ties.
    workers : int
        Processes that compute what is computed for all pairs, at least 0; 0 for threads of this one.
    """

    submissions: int = 1000
    reviewers: int = 1000
    dim: int = 256
    demand: int = 3
    load: int = 4
    conflicts: float = 0.01
    bids: float = 0.003
    seed: int = 0
    workers: int = 0


def report(
    params: BenchParams,
    objective: Sequence[str] = (),
    as_json: bool = False,
    progress: ProgressCallback | None = None,
    memory_limit: int | None = None,
) -> tuple[str, bool]:
    """Generate, solve, audit and say what it took: text or one JSON object, and whether the plan is full.

    Parameters
    ----------
    params : BenchParams
    objective : sequence of str
        As `revmatch plan --objective` takes them; "total" where there is none.
    memory_limit : int, optional
        Bytes the run may take; None for what is free.

    Raises
    ------
    InvalidParamsError
        Numbers out of range and objectives that are unknown or lack an option, all of them.
    MemoryLimitError
        The run may need more memory than there is; nothing was generated.
    SolverError, AuditError
        There is no usable answer, or it is not what it claims to be.
    """
    typed, wishes = _checked(params, objective)
    need = needed(params, wishes)
    require(need.and_(needed_by_workers(params)), memory_limit)
    tell = progress or (lambda entry: None)

    tell(Progress("vectors", 0.0))
    begin = perf_counter()
    problem = generated_problem(
        params.submissions, params.reviewers, dim=params.dim, demand=params.demand, load_max=params.load,
        conflicts=params.conflicts, bids=params.bids, rng=params.seed,
    )  # fmt: skip
    vectors = perf_counter() - begin

    # before and after, since other work on the machine comes and goes
    tell(Progress("yardstick", 0.02))
    products = yardstick(problem.shape, params.dim)
    with _workers(params.workers) as executor, sweeping(executor):
        begin = perf_counter()
        solution, audit_seconds = _solved(problem, wishes, params.seed, tell)
        seconds = perf_counter() - begin
    peak = peak_mb()
    tell(Progress("yardstick", 0.97, solution.value, solution.bound, solution.gap))
    products = [*products, *yardstick(problem.shape, params.dim)]

    record = {
        **asdict(params),
        "objective": typed,
        "cores": cores(),
        "status": solution.status,
        "value": solution.value,
        "bound": solution.bound,
        "gap": solution.gap,
        "missing": int(solution.unfilled.sum() + solution.below_min.sum()),
        "audit": "clean",  # anything else has been raised
        "rounds": solution.rounds,
        "seconds": seconds,
        "stages": {**dict.fromkeys(STAGES, 0.0), **solution.stages, "vectors": vectors, "audit": audit_seconds},
        "yardstick_seconds": median(products),
        "ratio": seconds / median(products),
        "peak_mb": peak,
        **need.summary(),
    }
    text = json.dumps(plain(record), allow_nan=False, indent=2) if as_json else _in_words(record)
    return text, solution.status in FULL


def needed(params: BenchParams, wishes: Sequence[Wish] = ()) -> Need:
    """What the run will hold at most, the libraries and the yardstick included."""
    pairs = params.submissions * params.reviewers
    barred, listed = round(params.conflicts * pairs), round(params.bids * pairs)
    # scores and barred pairs once more as they are sent, where there is anybody to send them to
    sent = VECTOR * params.dim * (params.submissions + params.reviewers) + LISTED * listed + BARRED * barred
    drawn = Need(
        (
            ("libraries", LIBRARIES),
            ("drawing pairs", DRAWN * max(barred, listed)),
            ("sending", sent if params.workers else 0),
        )
    )
    names = [wish.name for wish in wishes] or ["total"]
    return drawn.and_(
        need_of_solve((params.submissions, params.reviewers), names, dim=params.dim, barred=barred, listed=listed)
    )


def needed_by_workers(params: BenchParams) -> Need:
    """What the other processes will hold: the libraries, blocks, and scores and barred pairs of their own."""
    pairs = params.submissions * params.reviewers
    each = VECTOR * params.dim * (params.submissions + params.reviewers) + LISTED * round(params.bids * pairs)
    each += LIBRARIES + BLOCKS + BARRED * round(params.conflicts * pairs)
    return Need((("workers", params.workers * each),))


@contextmanager
def _workers(count: int) -> Iterator[Executor | None]:
    """So many processes that have started; None for 0."""
    if not count:
        yield None
        return
    # not forked: this process has threads by now, and a copy of it would be counted as memory
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        try:
            for ready in [pool.submit(cores) for _ in range(count)]:
                ready.result()
        except (OSError, BrokenExecutor) as error:
            raise SolverError(f"the {count} processes did not start: {error}") from error
        yield pool


def yardstick(shape: tuple[int, int], dim: int) -> list[float]:
    """Seconds of plain float32 block products of vectors over all pairs; nothing is done with the products.

    Blocks are those of the sweeps, threads those of the process. Repeated until half a second has been measured, at
    most five times; one block is computed unmeasured first, since libraries start their threads on first use.

    Parameters
    ----------
    shape : tuple of int
        ``(n_submissions, n_reviewers)``.
    dim : int
        Dimensions of the vectors.

    Returns
    -------
    list of float
        One entry for each repeat, at least one, each > 0.
    """
    random = np.random.default_rng(0)  # the values do not matter, as long as none is subnormal
    left = random.standard_normal((shape[0], dim), dtype=np.float32)
    right = random.standard_normal((shape[1], dim), dtype=np.float32)
    tiles = list(blocks(shape))
    out = np.empty(max(_area(rows, cols) for rows, cols in tiles), dtype=np.float32)

    def product(rows: slice, cols: slice) -> None:
        size = (rows.stop - rows.start, cols.stop - cols.start)
        np.matmul(left[rows], right[cols].T, out=out[: size[0] * size[1]].reshape(size))

    product(*tiles[0])
    seconds: list[float] = []
    while len(seconds) < MOST_REPEATS and sum(seconds) < ENOUGH_SECONDS:
        begin = perf_counter()
        for rows, cols in tiles:
            product(rows, cols)
        seconds.append(perf_counter() - begin)
    return seconds


def peak_mb() -> float | None:
    """Most memory this process has held so far, in MB of 10**6 bytes; None where the system does not say."""
    try:
        # of this program alone; getrusage also counts what the process held before it became this program
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return None
    # kilobytes, but bytes on macOS
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def _checked(params: BenchParams, objective: Sequence[str]) -> tuple[Any, tuple[Wish, ...]]:
    """The objective as typed and as wishes; faults of it and of the numbers are raised together."""
    issues: list[Issue] = refused(
        params.submissions, params.reviewers, params.dim, params.demand, params.load, params.conflicts, params.bids,
        params.seed,
    )  # fmt: skip
    if params.workers < 0:
        reason = f"must be at least 0, got {params.workers}"
        issues.append(Issue(reason, "out-of-range", "workers", value=params.workers, source="params"))
    typed: Any = "total"
    wishes: tuple[Wish, ...] = ()
    try:
        typed = objective_of(objective) if objective else typed
        wishes = wishes_of_shape(parse_objective(typed), (1, 1))  # one number for all pairs is all that fits
    except InvalidParamsError as error:
        issues += [_with_hint(issue) for issue in error.issues]
    if issues:
        raise InvalidParamsError(issues=issues)
    return typed, wishes


def _with_hint(issue: Issue) -> Issue:
    """A missing option is told with the way to give it."""
    name, _, option = issue.reason.partition(" needs ")
    if issue.code != "missing" or name not in OBJECTIVES:
        return issue
    return replace(issue, reason=f'{issue.reason}; type it as \'{{"name": "{name}", "{option}": NUMBER}}\'')


def _solved(
    problem: AssignmentProblem, wishes: tuple[Wish, ...], seed: int, tell: Callable[[Progress], None]
) -> tuple[Solution, float]:
    """The plan, and how long its audit took."""

    def scaled(entry: Progress) -> None:
        tell(replace(entry, fraction=0.05 + (SOLVED - 0.05) * entry.fraction))

    solution = solve(problem, wishes, rng=seed, progress=scaled)
    tell(Progress("audit", SOLVED, solution.value, solution.bound, solution.gap))
    begin = perf_counter()
    require_clean(problem, solution, wishes)
    return solution, perf_counter() - begin


def _area(rows: slice, cols: slice) -> int:
    height: int = rows.stop - rows.start
    width: int = cols.stop - cols.start
    return height * width


def _in_words(record: dict[str, Any]) -> str:
    typed = record["objective"]
    name = typed if isinstance(typed, str) else json.dumps(typed, ensure_ascii=False)
    lines = [
        f"{record['submissions']:,} submissions x {record['reviewers']:,} reviewers, {record['dim']} dimensions, "
        f"demand {record['demand']}, load {record['load']}, {record['conflicts']:.4g} of all pairs barred, "
        f"{record['bids']:.4g} with a bid, seed {record['seed']}",
        f"{name}: {record['status']}, value {record['value']:.4f}, bound {record['bound']:.4f}, "
        f"gap {record['gap']:.2g}, audit {record['audit']}"
        + (f"; {record['missing']} reviews missing" if record["missing"] else ""),
        f"{record['seconds']:.2f} s to solve and audit in {record['rounds']} round{'s' * (record['rounds'] != 1)}: "
        f"{record['ratio']:.1f} times one plain product over all pairs ({record['yardstick_seconds']:.3f} s)"
        + (
            ""
            if record["peak_mb"] is None
            else f"; peak memory {record['peak_mb']:,.0f} MB of {record['needed_mb']:,.0f} foreseen"
        ),
    ]
    width = max(map(len, record["stages"]))
    lines += [f"  {stage:<{width}}  {seconds:8.3f} s" for stage, seconds in record["stages"].items()]
    return "\n".join(lines)
