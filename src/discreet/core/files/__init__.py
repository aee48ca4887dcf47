"""Files as such: read and written whole or not at all, and what this process has written."""

from __future__ import annotations
