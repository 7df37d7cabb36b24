"""What a run will need in memory, said beforehand; a run that cannot fit is refused with the numbers.

The formula is a sum of parts, each a count of what is held at once times the bytes of one. The constants are those of
the arrays where they can be read off the code, and otherwise measured: each is the largest seen over sizes, rounded up
(`tests/benchmarks/bench_memory.py` measures them again). It is meant as an upper estimate within a factor of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from matching.errors import MemoryLimitError

__all__ = ["Need", "free_memory", "need_of_solve", "need_of_texts", "require"]

MB = 10**6

# ---- the solve ----
BLOCKS = 100 * MB  # blocks of scores, of the sweeps and of the audit, and the solver's libraries
VECTOR = 12  # bytes a coordinate: the vectors with prices beside them, and the audit's own
BARRED = 12  # bytes a barred pair: the set, and the set with the locked pairs
LISTED = 48  # bytes a listed score, such as a bid: the table, its weighted form and the sum of several
PAIR = 350  # bytes an active pair: its numbers, the network and the flow solver's own arrays
ACTIVE = 24  # active pairs a line, submissions and reviewers alike
DENSE = 400_000  # problems up to here have every pair active
SUM = 8  # bytes a pair where the sum of several signals is kept, up to SUMMED pairs
SUMMED = 1 << 24

# ---- the texts ----
LEARNT = 420 * MB  # words, weights and topics, whatever the number of texts
CHARACTER = 10  # bytes a character of text: words, counts and weights, twice while they are made
MATRIX = 28  # bytes a pair of an affinity matrix while it is made
MATRIX_PAIRS = 25_000_000  # beyond, affinities lie in a file
ENCODER = 320 * MB  # weights of a small sentence encoder and its tokens
DOCUMENT = 3 * 4 * 384  # bytes a text: its vector, three times while it is compared

CGROUPS = (
    (
        "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "inactive_file",
    ),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file",
    ),
)  # fmt: skip
"""Files with the limit and the use of a container, in bytes, and with the part of the use that is copies of files which
are given up when room is needed: of the present interface and of the one before."""


@dataclass(frozen=True)
class Need:
    """Bytes a run will hold at most beside what the process holds already.

    Attributes
    ----------
    parts : tuple of (str, int)
        What for, and bytes, not negative.
    """

    parts: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """Bytes."""
        return sum(size for _, size in self.parts)

    @property
    def sentence(self) -> str:
        """The sum and its parts in words, the largest first."""
        largest = sorted(self.parts, key=lambda part: -part[1])
        return f"{_size(self.total)} ({', '.join(f'{name} {_size(size)}' for name, size in largest if size)})"

    def and_(self, other: Need) -> Need:
        """Both at once."""
        return Need((*self.parts, *other.parts))

    def summary(self) -> dict[str, object]:
        """``needed_mb`` and ``parts``, in MB of 10**6 bytes."""
        return {
            "needed_mb": round(self.total / MB, 1),
            "parts": {name: round(size / MB, 1) for name, size in self.parts if size},
        }


OF_OBJECTIVE: Mapping[str, int] = MappingProxyType(
    {
        "maximin": 60_000, "leximin": 75_000, "threshold": 110_000, "evenness": 60_000, "robust": 60_000,
        "perturbed": 25_000,
    }
)  # fmt: skip
"""Bytes a line, submissions and reviewers alike, that an objective takes beside the flow: programs and plans kept."""
AT_SIZE = 4_000_000
"""Pairs above which fair objectives without rules use no programs (`matching.solvers.flowbench.SIZE_PAIRS`)."""
OF_FAIR_AT_SIZE = 10_000
"""Bytes a line for maximin, leximin and threshold there."""
OF_CLASSES = 6_000
"""Bytes a line of nodes and prices for rules that the flow holds."""
OF_PROGRAMS = 200_000
"""Bytes a line of the programs that other rules need; most of it is the search for whole people."""


def need_of_solve(
    shape: tuple[int, int],
    objectives: Iterable[str] = ("total",),
    *,
    dim: int = 0,
    barred: int = 0,
    listed: int = 0,
    signals: int = 1,
    candidates: int = 16,
    classes: bool = False,
    programs: bool = False,
) -> Need:
    """What solving and auditing one problem takes, its scores included where they are vectors.

    Parameters
    ----------
    shape : tuple of int
        ``(n_submissions, n_reviewers)``.
    objectives : iterable of str
        Names of the wishes.
    dim : int
        Dimensions of the vectors, where affinity is their product; 0 where it is not.
    barred, listed : int
        Barred pairs, and pairs with a score of their own beside the rest, such as bids.
    signals : int
        Signals of positive weight; from two on their sum is kept for small venues.
    candidates : int
        First candidates of each line.
    classes : bool
        Whether there are rules that the flow holds.
    programs : bool
        Whether there are rules that it does not, for which there are linear and integer programs.

    Returns
    -------
    Need
    """
    pairs = shape[0] * shape[1]
    active = pairs if pairs <= DENSE else min(pairs, round(ACTIVE * sum(shape) * max(1.0, candidates / 16)))
    flows = pairs > AT_SIZE and not (classes or programs)
    fair = ("maximin", "leximin", "threshold")
    each = (OF_FAIR_AT_SIZE if flows and name in fair else OF_OBJECTIVE.get(name, 0) for name in objectives)
    extra = max(each, default=0)
    extra += OF_PROGRAMS if programs else OF_CLASSES if classes else 0
    return Need(
        (
            ("blocks", BLOCKS),
            ("vectors", VECTOR * dim * sum(shape)),
            ("conflicts", BARRED * barred),
            ("listed scores", LISTED * listed),
            ("sum of signals", SUM * pairs if signals > 1 and pairs <= SUMMED else 0),
            ("active pairs", PAIR * active),
            ("objective and rules", extra * sum(shape)),
        )
    )


def need_of_texts(scorer: str, shape: tuple[int, int], characters: int, texts: int) -> Need:
    """What making the text affinities of all pairs takes and keeps.

    Parameters
    ----------
    scorer : {"lexical", "encoder", "hybrid"}
    shape : tuple of int
        ``(n_submissions, n_reviewers)``.
    characters, texts : int
        Of all submissions and publications together.
    """
    pairs = shape[0] * shape[1]
    lexical, encoder = scorer in ("lexical", "hybrid"), scorer in ("encoder", "hybrid")
    return Need(
        (
            ("words", (LEARNT + CHARACTER * characters) if lexical else 0),
            ("sentence encoder", (ENCODER + DOCUMENT * texts) if encoder else 0),
            ("affinities of texts", MATRIX * pairs if pairs <= MATRIX_PAIRS else 0),
        )
    )


def free_memory() -> int | None:
    """Bytes this process can still have: what the system says is available, or less where a container has a limit.

    None where the system does not say, as outside Linux.
    """
    found = [*_available(), *_left_in_container()]
    return min(found) if found else None


def require(need: Need, limit: int | None = None) -> None:
    """Refuse what cannot fit.

    Parameters
    ----------
    need : Need
    limit : int or None
        Bytes the run may take, whatever the system says; None for `free_memory`.

    Raises
    ------
    MemoryLimitError
        ``memory-limit``: with what is needed, part by part, and what there is.
    """
    room = free_memory() if limit is None else limit
    if room is None or need.total <= room:
        return
    what = "free" if limit is None else "allowed"
    raise MemoryLimitError(
        f"this run may need {need.sentence} of memory, and {_size(room)} are {what}. Run it where there is more, or "
        "allow more (REVMATCH_MEMORY_LIMIT, in bytes) if you know better.",
        needed=need.total, room=room, parts=dict(need.parts),
    )  # fmt: skip


def _available() -> list[int]:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    return [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]


def _left_in_container() -> list[int]:
    out = []
    for limit, use, parts, copies in CGROUPS:
        try:
            most, used = Path(limit).read_text(encoding="ascii"), Path(use).read_text(encoding="ascii")
            out.append(max(0, int(most) - max(0, int(used) - _counted(parts, copies))))
        except (OSError, ValueError):  # no container, or one without a limit ("max")
            continue
    return out


def _counted(path: str, name: str) -> int:
    """The number that stands after a name in a file of such lines; 0 where it does not."""
    try:
        lines = [line.split() for line in Path(path).read_text(encoding="ascii", errors="replace").splitlines()]
    except OSError:
        return 0
    return sum(int(line[1]) for line in lines if len(line) == 2 and line[0] == name and line[1].isdecimal())


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / MB:.0f} MB"
