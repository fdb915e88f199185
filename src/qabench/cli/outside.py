"""What ``qabench list`` and ``env`` say of benchmarks from outside of this package.

Their code is imported in processes of their own, so that it cannot stop, end or delay the command.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from qabench.benchmarks import benchmark
from qabench.data.rows import Json
from qabench.data.sources import available
from qabench.io.limits import json_of
from qabench.io.tables import printable, write_line
from qabench.loading_scripts import custom_folders, dataset_table, shipped_names, source_table

SECONDS = 5  # for all of them together
MAX_REASON = 300  # characters
RESULT = "qabench: "  # before the line with the rows, which code from outside cannot print by chance
CODE = "import sys; from qabench.cli import outside; outside.print_rows(*sys.argv[1:])"
Rows = Callable[[str], list[Json]]


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows about all benchmarks, and why there are none for the others.

    Attributes:
        rows: of the benchmarks of this package, then of those from outside.
        broken: benchmark from outside -> why it cannot be used, in one line.
    """

    rows: list[Json]
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def document(self) -> Json:
        """Return the part of a JSON document about broken benchmarks, which is empty if there are none."""
        return {"broken": self.broken} if self.broken else {}

    @property
    def notes(self) -> list[str]:
        """Return one line per broken benchmark."""
        return [f"{name} cannot be used: {reason}" for name, reason in self.broken.items()]


def config_rows(name: str) -> list[Json]:
    """Return the configs of a benchmark, for ``qabench list``."""
    rows = []
    for config in dataset_table(name).configs.values():
        places = {available(source_table(name)[file]) for file in config.files}
        data = "to fetch" if None in places else " and ".join(sorted(map(str, places)))
        rows.append(
            {
                "benchmark": name,
                "config": config.name,
                "splits": list(config.splits),
                "data": data or "shipped",
                "description": config.description,
            }
        )
    return rows


def need_rows(name: str) -> list[Json]:
    """Return what a benchmark needs on a machine, for ``qabench env``."""
    return [
        {"benchmark": name, "what": need.what, "missing": need.missing(name), "fix": need.fix}
        for need in benchmark(name).needs
    ]


ROWS: dict[str, Rows] = {"configs": config_rows, "needs": need_rows}


def listing(kind: str) -> Listing:
    """Return the rows of all benchmarks of a kind in ``ROWS``. Those from outside have a few seconds."""
    outside = sorted(custom_folders())
    started = {}
    broken = {}
    for name in outside:
        try:
            started[name] = _process(kind, name)
        except (
            OSError
        ) as error:  # the system has no more processes, or the user may not start Python again
            broken[name] = printable(f"no process for its import: {error}", MAX_REASON)
    rows = [row for name in shipped_names() for row in ROWS[kind](name)]
    deadline = time.monotonic() + SECONDS
    for name, process in started.items():
        try:
            output, errors = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            broken[name] = f"its import takes more than {SECONDS} seconds"
            continue
        lines = [line for line in output.splitlines() if line.startswith(RESULT)]
        if lines:
            rows += json_of(lines[-1].removeprefix(RESULT))
        else:
            reasons = [line for line in errors.splitlines() if line.strip()]
            reason = reasons[-1] if reasons else f"its import ends with exit code {process.returncode}"
            broken[name] = printable(reason.removeprefix(RESULT), MAX_REASON)
    return Listing(rows, broken)


def _process(kind: str, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CODE, kind, name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    )


def print_rows(kind: str, name: str) -> None:
    """Print the rows of a benchmark from outside. This is what the process of ``listing`` runs."""
    try:
        benchmark(name)  # so that both kinds report a broken one
        rows = ROWS[kind](name)
    except Exception as error:  # the reason is all that the parent process needs
        sys.exit(f"{RESULT}{error}")
    write_line("")  # code from outside may have begun a line
    write_line(RESULT + json.dumps(rows))
