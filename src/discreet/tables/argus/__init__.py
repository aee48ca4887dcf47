"""Files of tau-ARGUS, in and out: hierarchies, code lists, a-priori files and JJ tables.

Written from the published description of the formats in the tau-ARGUS manual.
"""

from discreet.tables.argus.codelists import read_codelist, write_codelist
from discreet.tables.argus.hierarchies import read_hierarchy, write_hierarchy

__all__ = ["read_codelist", "read_hierarchy", "write_codelist", "write_hierarchy"]
