"""Files and databases in and out, with the roles of their columns."""

from discreet.io.atomic import replacing
from discreet.io.reading import options_for, read
from discreet.io.sidecar import load_roles, load_sidecar, save_roles, sidecar_path
from discreet.io.writing import write

__all__ = [
    "load_roles",
    "load_sidecar",
    "options_for",
    "read",
    "replacing",
    "save_roles",
    "sidecar_path",
    "write",
]
