"""Suppression and masking of key cells."""

from __future__ import annotations
