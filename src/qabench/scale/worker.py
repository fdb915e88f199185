"""The actors of a job on a Ray cluster."""

from __future__ import annotations

import os
import pickle
import platform
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from typing import Any

from qabench.errors import QabenchError

# Packages that results depend on: they must have the same version on all machines.
PACKAGES = (
    "qabench",
    "ftfy",
    "numpy",
    "rouge-score",
    "rouge-score-rs",
    "sentencepiece",
    "simplemma",
    "spacy",
    "thinc",
    "torch",
    "transformers",
)


def versions() -> dict[str, str]:
    """Return the installed versions of packages that results depend on, and of Python."""
    versions = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


class Worker:
    """An actor of Ray Data. Errors are results: Ray would add its traceback to them."""

    def __init__(self, load: bytes, expected: dict[str, str], folder: str, attempts: tuple[Any, int, int]) -> None:
        self.function: Callable[[Any], Any]
        self.attempts, self.job, self.most = attempts
        with suppress(OSError):  # paths may be relative to the folder of the command
            os.chdir(folder)
        try:
            _check_versions(expected)
            self.function = pickle.loads(load)()
        except QabenchError as error:
            self.function = _raiser(error)

    def __call__(self, table: Any) -> Any:
        import pyarrow

        inputs = zip(table["number"].to_pylist(), table["data"].to_pylist(), strict=True)
        results = [pickle.dumps(self._result(number, data)) for number, data in inputs]
        return pyarrow.table({"number": table["number"], "result": pyarrow.array(results, pyarrow.large_binary())})

    def _result(self, number: int, data: bytes) -> tuple[bool, Any]:
        import ray

        if ray.get(self.attempts.next.remote((self.job, number))) > self.most:
            return True, QabenchError(
                f"part {number} of the job was started {self.most} times; its process or machine was lost each time "
                "(out of memory?)"
            )
        try:
            return False, self.function(pickle.loads(data))
        except QabenchError as error:
            return True, error


class Attempts:
    """An actor that counts how often each input was started: Ray Data repeats without a limit."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, int]] = Counter()

    def next(self, key: tuple[int, int]) -> int:
        self.counts[key] += 1
        return self.counts[key]


def _raiser(error: Exception) -> Callable[[Any], Any]:
    def fail(_: Any) -> Any:
        raise error

    return fail


def _check_versions(expected: dict[str, str]) -> None:
    here = versions()
    other = [f"{name} {here[name]} instead of {version}" for name, version in expected.items() if here[name] != version]
    if other:
        raise QabenchError(
            f"the machine {platform.node()} of the Ray cluster has {', '.join(other)}; install the same versions "
            "on all machines, because scores depend on them"
        )
