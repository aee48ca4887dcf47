"""Treatments of microdata: recode, suppress, perturb, mask."""

from discreet.protect.extremes import TopBottomCode
from discreet.protect.identifiers import DropIdentifiers, Pseudonymize
from discreet.protect.ordering import ReorderRecords, ShiftDates
from discreet.protect.plan import Draft, Plan
from discreet.protect.recoding import Band, Generalize, Recode, Round
from discreet.protect.treatment import Change, Treatment

__all__ = [
    "Band",
    "Change",
    "Draft",
    "DropIdentifiers",
    "Generalize",
    "Plan",
    "Pseudonymize",
    "Recode",
    "ReorderRecords",
    "Round",
    "ShiftDates",
    "TopBottomCode",
    "Treatment",
]
