"""How does the code of one compiled function get into another? As it is, to be improved and written out there.

The compiler makes good machine code of every function by itself, and then once more in each function that calls it; a
chain of sixteen functions takes four times as long as it need. Nobody runs a function that only compiled ones call, so
that its code can wait for its callers. The compiler has no option for that: two of its classes are extended here, in
versions in which that was tried. In others every function is made good by itself, and first calls take longer.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

TRIED = ("0.68.",)


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """Code that waits for its callers: linked with what it calls itself, neither improved nor written out."""

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Say that there is nothing to be run."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> _Part:
        """Stand in for the code generator, of which a finished function asks one thing."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Leave the environment unset, as it is in functions that are read from disk."""


class _WithinCallers(Compiler):  # type: ignore[misc]
    """The usual compiler, with another place for the code."""

    def __init__(self, typing_context: Any, context: Any, library: Any, *rest: Any) -> None:
        library = library or _Part(context.codegen(), "part")
        super().__init__(typing_context, context, library, *rest)


def within_callers() -> dict[str, Any]:
    """Give the options of a function whose code waits for its callers; it is not kept on disk by itself then."""
    if numba.__version__.startswith(TRIED):
        return {"pipeline_class": _WithinCallers}
    return {"cache": True}
