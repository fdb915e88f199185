"""The commands ``qabench fanoutqa ...``."""

from __future__ import annotations

from qabench.benchmarks.fanoutqa.commands.judge import judge
from qabench.benchmarks.fanoutqa.commands.submit import submit

__all__ = ["judge", "submit"]
