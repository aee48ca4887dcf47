"""Files and databases in and out, with the roles of their columns."""

from discreet.core.files.atomic import make_folder, replacing, replacing_folder, replacing_together
from discreet.io.reading import options_for, read
from discreet.io.sidecar import load_roles, load_sidecar, save_roles, sidecar_path
from discreet.io.writing import write, write_together
from discreet.io.writing_in_parts import write_parts

__all__ = [
    "load_roles",
    "load_sidecar",
    "make_folder",
    "options_for",
    "read",
    "replacing",
    "replacing_folder",
    "replacing_together",
    "save_roles",
    "sidecar_path",
    "write",
    "write_parts",
    "write_together",
]
