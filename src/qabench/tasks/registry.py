"""What Inspect AI finds by the entry point: every task of this package."""

from __future__ import annotations
