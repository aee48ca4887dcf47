"""Files of tau-ARGUS, in and out: hierarchies, code lists, a-priori files and JJ tables.

Written from the published description of the formats in the tau-ARGUS manual.
"""

from discreet.tables.argus.apriori import apply_apriori, read_apriori, write_apriori
from discreet.tables.argus.codelists import read_codelist, write_codelist
from discreet.tables.argus.hierarchies import read_hierarchy, write_hierarchy
from discreet.tables.argus.jj import JJ, jj_of, read_jj, write_jj

__all__ = [
    "JJ",
    "apply_apriori",
    "jj_of",
    "read_apriori",
    "read_codelist",
    "read_hierarchy",
    "read_jj",
    "write_apriori",
    "write_codelist",
    "write_hierarchy",
    "write_jj",
]
