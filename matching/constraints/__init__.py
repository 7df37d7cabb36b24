"""Which pairs are barred, and the problem the solvers see. The problem's module is imported where it is used."""

from matching.constraints.conflicts import ConflictReason, Conflicts, find_conflicts

__all__ = ["ConflictReason", "Conflicts", "find_conflicts"]
