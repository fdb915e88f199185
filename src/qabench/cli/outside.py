"""What ``qabench list`` and ``env`` print about benchmarks from outside of this package.

Their code is imported in separate processes, so that it cannot stop, end or delay the command.
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
from qabench.io.redaction import printable, write_line
from qabench.loading_scripts import custom_folders, dataset_table, shipped_names

# Importing another package may take arbitrarily long, but a listing must not.
SECONDS_FOR_ALL = 5
# A reason is a single line of at most this length, whatever an exception says.
MAX_REASON_CHARACTERS = 300
# Marks the line with the rows, or with an error. Code from outside may print lines of its own, so
# the last marked line is read.
RESULT = "qabench: "
CODE = "import sys; from qabench.cli import outside; outside.print_rows(*sys.argv[1:])"
Rows = Callable[[str], list[Json]]


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows about all benchmarks that can be used, and why the others cannot.

    Attributes:
        rows: the rows of the benchmarks of this package, then of those from outside.
        broken: benchmark from outside -> why it cannot be used, in one line.
    """

    rows: list[Json]
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def document(self) -> Json:
        """Return the part of a JSON document about broken benchmarks, or {} without any."""
        if not self.broken:
            return {}
        return {"broken": self.broken}

    @property
    def notes(self) -> list[str]:
        """Return one line per broken benchmark."""
        return [f"{name} cannot be used: {reason}" for name, reason in self.broken.items()]


def config_rows(name: str) -> list[Json]:
    """Return the configs of a benchmark, for ``qabench list``."""
    table = dataset_table(name)
    rows = []
    for config in table.configs.values():
        locations = {available(table.sources[file]) for file in config.files}
        if not locations:
            data = "shipped"
        elif None in locations:
            data = "to fetch"
        else:
            data = " and ".join(sorted(map(str, locations)))
        rows.append(
            {
                "benchmark": name,
                "config": config.name,
                "splits": list(config.splits),
                "data": data,
                "description": config.description,
            }
        )
    return rows


def need_rows(name: str) -> list[Json]:
    """Return what a benchmark needs on a machine, for ``qabench env``."""
    rows = []
    for need in benchmark(name).needs:
        missing = need.missing(name)
        rows.append({"benchmark": name, "what": need.what, "missing": missing, "fix": need.fix})
    return rows


ROWS: dict[str, Rows] = {"configs": config_rows, "needs": need_rows}


def listing(kind: str) -> Listing:
    """Return the rows that ``ROWS[kind]`` computes for each benchmark."""
    outside = sorted(custom_folders())
    # All processes start before the rows of this package are read, so they run at the same time.
    started = {}
    broken = {}
    for name in outside:
        # The operating system may refuse to start another process.
        try:
            started[name] = _process(kind, name)
        except OSError as error:
            broken[name] = printable(
                f"could not start a process to import it: {error}", MAX_REASON_CHARACTERS
            )
    rows = []
    for name in shipped_names():
        rows += ROWS[kind](name)
    deadline = time.monotonic() + SECONDS_FOR_ALL
    for name, process in started.items():
        try:
            output, errors = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            # Wait until the process has ended, which also closes its pipes.
            process.communicate()
            broken[name] = f"its import takes more than {SECONDS_FOR_ALL} seconds"
            continue
        lines = [line for line in output.splitlines() if line.startswith(RESULT)]
        if lines:
            rows += json_of(lines[-1].removeprefix(RESULT))
            continue
        reason = f"its import ends with exit code {process.returncode}"
        messages = [line for line in errors.splitlines() if line.strip()]
        if messages:
            # The last line of a traceback has the exception.
            reason = messages[-1].removeprefix(RESULT)
        broken[name] = printable(reason, MAX_REASON_CHARACTERS)
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
        # Not every kind of rows imports the benchmark, but every kind must report a broken one.
        benchmark(name)
        rows = ROWS[kind](name)
    except Exception as error:
        # The parent process only needs the reason.
        sys.exit(f"{RESULT}{error}")
    # Code from outside may have printed the beginning of a line.
    write_line("")
    write_line(RESULT + json.dumps(rows))
