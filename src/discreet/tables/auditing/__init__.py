"""What a table with suppressed cells still gives away: exactly, to contributors, within bounds, and by differences."""

from discreet.tables.auditing.auditing import audit
from discreet.tables.auditing.findings import Audit
from discreet.tables.auditing.intervals import Bounds, feasible_bounds
from discreet.tables.auditing.levels import Protection
from discreet.tables.auditing.rank import Computable, computable

__all__ = ["Audit", "Bounds", "Computable", "Protection", "audit", "computable", "feasible_bounds"]
