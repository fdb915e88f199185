"""Checks the fields of logs, which may have been edited, before their values are used.

Each field has a kind, which is one of:

- a type, or several of them in a union;
- ``[kind]``, a list;
- ``{"name": kind, ...}``, an object with these fields and any others. A field that is absent is
  None;
- ``{...: kind}``, an object whose fields all have this kind;
- ``(kind, kind)``, one of several.

The kinds below describe the metadata that qabench tasks write.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.errors import InputError
from qabench.io.redaction import printable
from qabench.runs.log_types import Sample

# The key, in a run's metadata, for the name that the user gave to the system.
NAME = "name"
# The maximum number of characters of a value that an error quotes.
MAX_SHOWN = 60
# The kind of an object of texts, or None.
_TEXTS = ({...: str}, None)
RUN = {
    "signatures": _TEXTS,
    "unscored": str | None,
    "available": int | None,
    NAME: str | None,
}
SAMPLE = {
    "groups": ({...: [str]}, None),
    "problems": ([str], None),
    "replies": ({"all": int | None, "cached": int | None}, None),
}
SCORE = {"detail": ({...: object}, None), "signatures": _TEXTS, "statuses": _TEXTS}


def values_of_another_kind(path: str, value: Any, kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each part of ``value`` that is not of the declared kind.

    Args:
        path: the path of ``value`` in the log, such as "header.eval". The yielded paths begin with
            it.
        value: the value, parsed from JSON.
        kind: the declared kind (see the module).
    """
    if isinstance(kind, tuple):
        problems = [list(values_of_another_kind(path, value, choice)) for choice in kind]
        if all(problems):
            # The first kind is the usual one, so its problem says which part of the value is wrong.
            yield problems[0][0] if problems else (path, value)
    elif isinstance(kind, list):
        if not isinstance(value, list):
            yield path, value
            return
        for number, item in enumerate(value):
            yield from values_of_another_kind(f"{path}[{number}]", item, kind[0])
    elif isinstance(kind, dict):
        if not isinstance(value, dict):
            yield path, value
            return
        names = value if ... in kind else kind
        for name in names:
            kind_of_field = kind.get(name, kind.get(...))
            yield from values_of_another_kind(f"{path}.{name}", value.get(name), kind_of_field)
    elif kind is None:
        if value is not None:
            yield path, value
    elif isinstance(value, bool) and kind in (int, int | None):
        # For isinstance, a bool is an int.
        yield path, value
    elif not isinstance(value, kind):
        yield path, value


def check_is_own(path: str | Path, task: str, metadata: Mapping[str, Any] | None) -> None:
    """Raise InputError for the log of a task that does not belong to qabench."""
    metadata = metadata or {}
    names = ("benchmark", "config", "setting")
    if lacking := [name for name in names if not isinstance(metadata.get(name), str)]:
        raise InputError(
            f"{path} is the log of {task!r}, which is not a task of qabench (its metadata has no "
            f"{', '.join(lacking)}); allowed: logs of `qabench run` or of `inspect eval qabench/...`"
        )
    try:
        benchmark_of(metadata["benchmark"])
    except InputError as error:
        raise InputError(
            f"{path} is the log of the benchmark {metadata['benchmark']!r:.80}: {error}"
        ) from None


def check(path: str | Path, where: str, value: object, kind: Any) -> None:
    """Raise InputError, which names the log and the field, for a value of another kind."""
    for field, wrong_value in values_of_another_kind(where, value, kind):
        shown = printable(repr(wrong_value), MAX_SHOWN)
        raise InputError(
            f"{path} was edited, or is damaged: {printable(field)} is {shown}, which qabench does not write there; "
            "use the log that Inspect wrote"
        )


def check_sample(path: str | Path, sample: Sample, benchmark: Benchmark) -> None:
    """Raise InputError if qabench cannot have written a field of a sample or of its scores."""
    where = f"sample {sample.id!r}"
    check(path, f"{where}, metadata", sample.metadata, SAMPLE)
    detail_kind = (dict(benchmark.logs().kinds.get("detail", {})), None)
    for name, score in sample.scores.items():
        of_score = f"{where}, score {name!r}"
        check(path, f"{of_score}, answer", score.answer, str | None)
        check(path, f"{of_score}, metadata", score.metadata, SCORE)
        check(path, f"{of_score}, metadata.detail", score.metadata.get("detail"), detail_kind)
        if not isinstance(score.value, dict):
            continue
        for column, number in score.value.items():
            # JSON has whole numbers of any size, and scores are floats.
            if isinstance(number, int) and abs(number) > sys.float_info.max:
                check(path, f"{of_score}, value.{column}", number, float)
