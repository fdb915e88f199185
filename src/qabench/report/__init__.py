"""Reports of one or several runs as a single HTML page that works offline."""

from __future__ import annotations

from qabench.report.page import build_report

__all__ = ["build_report"]
