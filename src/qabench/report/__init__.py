"""Reports of one or several runs as one HTML page that needs no network."""

from __future__ import annotations

from qabench.report.page import build_report

__all__ = ["build_report"]
