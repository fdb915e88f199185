"""What a performance script measures: the same work done by qabench and by alternatives.

A script that ``run.py`` finds defines one of these functions, or both:

- ``cases(size)``: an iterator of ``Case``. If the script has ``SIZES``, ``size`` is one of these
  numbers, else None.
- ``table(largest, rounds)``: a ``qabench.io.tables.Table`` of anything that is not a time.
"""

from __future__ import annotations

import importlib
import json
import operator
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "support")]


@dataclass(frozen=True)
class Measured:
    """The result of work that measures its own time, such as another process.

    Attributes:
        seconds: the time.
        output: what is compared.
        note: printed next to the time, such as the peak of memory.
    """

    seconds: float
    output: Any = None
    note: str = ""


@dataclass(frozen=True)
class Case:
    """One row of the results.

    Attributes:
        name: what is done.
        ours: does it with qabench; returns the output to compare, or ``Measured``.
        others: the alternatives by name and version.
        same: whether an output of ours equals an alternative's; None if they are not comparable.
        once: the alternatives that take minutes, and run once.
        warm: whether each way runs once before it is measured, which imports, compiles and builds
            what it needs.
    """

    name: str
    ours: Callable[[], Any]
    others: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    same: Callable[[Any, Any], bool] | None = operator.eq
    once: frozenset[str] = frozenset()
    warm: bool = True


class Unfinished:
    """Results of a script that runs for long, kept in a file until all of them are there.

    A run that was interrupted goes on where it stopped. Engines that are compared with each other
    belong into one result, so that all of them are measured in the same run.
    """

    def __init__(self, script: str) -> None:
        self.path = HERE / f"unfinished-{script}.json"
        self.results: dict[str, Any] = {}
        if self.path.is_file():
            self.results = json.loads(self.path.read_text(encoding="utf-8"))

    def get(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return a result that an earlier run has, or measure it."""
        if name not in self.results:
            self.results[name] = measure()
            self.path.write_text(json.dumps(self.results), encoding="utf-8")
        return self.results[name]

    def finish(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


def timed(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> Measured:
    """Runs the work once."""
    start = clock()
    result = work()
    seconds = clock() - start
    return result if isinstance(result, Measured) else Measured(seconds, result)


def cpu_seconds() -> float:
    """CPU time of this process and of its processes that have ended."""
    return time.process_time() + sum(os.times()[2:4])  # os.times counts in hundredths of a second


def script_names() -> list[str]:
    """The scripts that have ``cases`` or ``table``."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.py"))}
    return [
        name for name, text in texts.items() if "\ndef cases(" in text or "\ndef table(" in text
    ]


def cases_of(script: str, largest: int) -> Iterator[tuple[int | None, Case]]:
    """The cases of a script and their sizes, up to the largest."""
    module = importlib.import_module(script)
    if hasattr(module, "cases"):
        for size in (
            [size for size in module.SIZES if size <= largest]
            if hasattr(module, "SIZES")
            else [None]
        ):
            for case in module.cases(size):
                yield size, case
