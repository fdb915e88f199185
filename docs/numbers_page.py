"""Write the tables of reference/paper-numbers.md: ``python docs/numbers_page.py``.

The data must be in QABENCH_MIRROR.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from qabench.benchmarks import benchmark
from qabench.benchmarks.reproduction import Check

PAGE = Path(__file__).parent / "reference/paper-numbers.md"
PART = re.compile(r"(?<=<!-- numbers of )(\w+)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def _shown(value: float | None) -> str:
    return "not computed" if value is None else f"{value:,}"


def _row(title: str, checks: list[Check]) -> str:
    different = [check for check in checks if not check.agrees]
    if len(checks) <= 2:
        published = ", ".join(_shown(check.published) for check in checks)
        here = ", ".join(_shown(check.computed) for check in checks)
    else:
        published, here = f"{len(checks)} numbers", f"{len(checks) - len(different)} equal"
        names = [
            f"{check.name.removeprefix(title + ': ')} {_shown(check.computed)}"
            for check in different
        ]
        here += f"; {_different(different)}: {', '.join(names)}" if names else ""
    return f"| {title} | {published} | {here} |"


def _different(checks: list[Check]) -> str:
    return f"{len(checks)} different, because {checks[0].explanation}"


def table(name: str) -> str:
    """Return the statistics that ``qabench reproduce`` compares, one row per table of the paper."""
    groups: dict[str, list[Check]] = defaultdict(list)
    for check in benchmark(name).numbers().reproduce().checks:
        if check.kind == "statistic":
            groups[check.name.rpartition(": ")[0]].append(check)
    rows = [_row(title, checks) for title, checks in groups.items()]
    return "\n".join(["", "| what | published | here |", "|---|--:|---|", *rows, "", ""])


def written(text: str) -> str:
    """Return the page with its tables written anew."""
    return PART.sub(lambda part: part[1] + part[2] + table(part[1]), text)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
