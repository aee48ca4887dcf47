"""Secondary suppression by Gaussian elimination, on nothing but the matrix of inner cells and published cells."""

from discreet.tables.gauss.elimination import Elimination, Reason, secondary

__all__ = ["Elimination", "Reason", "secondary"]
