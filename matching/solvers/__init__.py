"""Solvers: a problem in, a solution with its proof out. The modules are imported where they are used."""

from matching.solvers.base import Progress, Solution, Solver, Status

__all__ = ["Progress", "Solution", "Solver", "Status"]
