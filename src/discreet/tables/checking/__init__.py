"""What a table with suppressed cells still gives away: exactly, to contributors, within bounds, and by differences."""

from discreet.tables.checking.findings import Audit
from discreet.tables.checking.intervals import Bounds, Protection, feasible_bounds
from discreet.tables.checking.table_audit import audit
from discreet.tables.exact_disclosure import Computable, computable

__all__ = ["Audit", "Bounds", "Computable", "Protection", "audit", "computable", "feasible_bounds"]
