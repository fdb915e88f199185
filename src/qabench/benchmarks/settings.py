"""Which Inspect task runs a setting of a benchmark: the names of ``qabench run BENCHMARK --setting``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qabench.errors import InputError

Setting = tuple[str, Mapping[str, Any]]  # the task's name, and the arguments that make the setting

# The first of each benchmark is its default.
SETTINGS: Mapping[str, Mapping[str, Setting]] = {
    "fanoutqa": {
        "closed-book": ("fanoutqa_closed_book", {}),
        "open-book": ("fanoutqa_open_book", {}),
        "evidence-provided": ("fanoutqa_evidence_provided", {}),
    },
    "felm": {
        "raw": ("felm", {"method": "raw"}),
        "cot": ("felm", {"method": "cot"}),
        "cot-cons": ("felm", {"method": "cot-cons"}),
        "link": ("felm", {"method": "link"}),
        "content": ("felm", {"method": "content"}),
    },
    "expertqa": {
        "closed": ("expertqa", {"method": "closed"}),
        "retrieve-read": ("expertqa", {"method": "retrieve-read"}),
        "post-hoc": ("expertqa", {"method": "post-hoc"}),
    },
    "fastbook": {"rag": ("fastbook_rag", {})},
}

# Which argument of a benchmark's tasks chooses a part of its questions.
PART_ARGUMENTS = {"fanoutqa": "category", "felm": "domains", "expertqa": "fields", "fastbook": "chapters"}


def setting(benchmark: str, name: str | None) -> tuple[str, Setting]:
    """The setting's name (the benchmark's first where ``name`` is None) and what runs it.

    Raises:
        InputError: an unknown benchmark or setting.
    """
    if benchmark not in SETTINGS:
        raise InputError(f"unknown benchmark {benchmark!r}; allowed: {', '.join(SETTINGS)}")
    table = SETTINGS[benchmark]
    chosen = next(iter(table)) if name is None else name
    if chosen not in table:
        raise InputError(f"{benchmark} has no setting {chosen!r}; allowed: {', '.join(table)}")
    return chosen, table[chosen]
