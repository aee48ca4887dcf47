"""Local suppression: single key cells are blanked so that nobody stands out."""

from __future__ import annotations
