"""What a table with suppressed cells still gives away: exactly, to contributors, within bounds, and by differences."""

from discreet.tables.checking.intervals import Bounds, Protection, feasible_bounds
from discreet.tables.exact_disclosure import Computable, computable
from discreet.tables.table_audit import Audit, audit

__all__ = ["Audit", "Bounds", "Computable", "Protection", "audit", "computable", "feasible_bounds"]
