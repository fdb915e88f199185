"""What this machine must have for official results: packages, source files, environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True, slots=True)
class Need:
    """What a score or a run needs to be official.

    Attributes:
        what: the score, such as "loose and strict accuracy".
        fix: how to get what is missing, such as a command.
        packages: modules that must be importable.
        files: source files of the benchmark that must be in a mirror or in the cache; others are downloaded.
        variables: environment variables that must be set.
    """

    what: str
    fix: str = ""
    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()

    def missing(self, benchmark: str) -> list[str]:
        """The packages, files and variables that are missing on this machine."""
        from qabench.loading_scripts import source_table
        from qabench.sources import available

        found = [name for name in self.packages if find_spec(name) is None]
        found += [path for path in self.files if not available(source_table(benchmark)[path])]
        return found + [name for name in self.variables if not os.environ.get(name)]
