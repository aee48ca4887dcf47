"""Groups of at least k similar records, by maximum distance to average vector."""

from __future__ import annotations
