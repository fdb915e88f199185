"""The commands of ``qabench expertqa``."""

from __future__ import annotations

from qabench.benchmarks.expertqa.commands.attribute import attribute
from qabench.benchmarks.expertqa.commands.claims import claims
from qabench.benchmarks.expertqa.commands.facts import facts
from qabench.benchmarks.expertqa.commands.faithfulness import faithfulness

__all__ = ["attribute", "claims", "facts", "faithfulness"]
