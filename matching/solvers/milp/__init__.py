"""Linear and integer programs on the active pairs, for what does not fit a network."""

from matching.solvers.milp.answer import ArcAnswer
from matching.solvers.milp.program import ArcProgram
from matching.solvers.milp.ruled import RuleSolver
from matching.solvers.milp.wishes import Lowest, Weighted

__all__ = ["ArcAnswer", "ArcProgram", "Lowest", "RuleSolver", "Weighted"]
