"""Rules in plain JSON: their language, and the values it is read into. Compiling them needs a venue."""

from matching.rules.language import KINDS, parse_rules
from matching.rules.values import Condition, Rule, Scalar, Selection, Sharing, freeze_rules, moment

__all__ = ["KINDS", "Condition", "Rule", "Scalar", "Selection", "Sharing", "freeze_rules", "moment", "parse_rules"]
