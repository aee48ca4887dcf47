"""The page: the whole job in a browser, on top of the same functions. Started by ``discreet app``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.app.journey import Journey
    from discreet.app.serving import serve

__all__ = ["Journey", "serve"]


def __getattr__(name: str) -> Any:
    if name == "serve":
        from discreet.app.serving import serve

        return serve
    if name == "Journey":
        from discreet.app.journey import Journey

        return Journey
    raise AttributeError(f"module 'discreet.app' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__
