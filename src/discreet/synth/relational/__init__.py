"""Linked tables: a schema of parents and children, and tables that hang together as those of the data do."""

from discreet.synth.relational.fitted import FittedRelational
from discreet.synth.relational.linked_tables import LinkedTables
from discreet.synth.relational.relational import Relational
from discreet.synth.relational.schema import Schema, TableSchema

__all__ = ["FittedRelational", "LinkedTables", "Relational", "Schema", "TableSchema"]
