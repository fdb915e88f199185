"""Types of the metadata that tasks of qabench write into logs, and their validation: a log may have been edited.

A kind is one of:

- a type, or several of them in a union;
- ``[kind]``, a list;
- ``{"name": kind, ...}``, an object with these fields and any others. A field that is absent is None;
- ``{...: kind}``, an object whose fields all have this kind;
- ``(kind, kind)``, one of several.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from qabench.benchmarks import Benchmark
from qabench.errors import InputError
from qabench.io.tables import printable

LONGEST_VALUE = 60  # characters of a value in an error
_TEXTS = ({...: str}, None)  # text by name, or nothing
RUN = {"signatures": _TEXTS, "unscored": str | None, "available": int | None}
SAMPLE = {
    "groups": ({...: [str]}, None),
    "problems": ([str], None),
    "replies": ({"all": int | None, "cached": int | None}, None),
}
SCORE = {"detail": ({...: object}, None), "signatures": _TEXTS, "statuses": _TEXTS}


def check(path: Any, where: str, value: Any, kind: Any) -> None:
    """Raise InputError, which names the log and the field, for a value of another kind."""
    for place, found in _others(where, value, kind):
        raise InputError(
            f"{path} was edited, or is damaged: {printable(place)} is {printable(repr(found), LONGEST_VALUE)}, which "
            "qabench does not write there; use the log that Inspect wrote"
        )


def check_sample(path: Any, sample: Any, scorer: Benchmark | None = None) -> None:
    """Raise InputError for a field of a sample, or of one of its scores, that no task of qabench writes like this."""
    where = f"sample {sample.id!r}"
    check(path, f"{where}, metadata", sample.metadata or {}, SAMPLE)
    detail = (dict(scorer.log_kinds.get("detail", {})), None) if scorer else object
    for name, score in (sample.scores or {}).items():
        of_score = f"{where}, score {name!r}"
        check(path, f"{of_score}, answer", score.answer, str | None)
        check(path, f"{of_score}, metadata", score.metadata or {}, SCORE)
        check(path, f"{of_score}, metadata.detail", (score.metadata or {}).get("detail"), detail)
        for column, number in score.value.items() if isinstance(score.value, dict) else ():
            if isinstance(number, int) and abs(number) > sys.float_info.max:
                check(path, f"{of_score}, value.{column}", number, float)


def _others(place: str, value: Any, kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield each value of another kind with its place."""
    if isinstance(kind, tuple):
        problems = [list(_others(place, value, each)) for each in kind]
        if all(problems):
            # The first kind is what is usual: its problem says which of its parts is wrong.
            yield problems[0][0] if problems else (place, value)
    elif isinstance(kind, list):
        if not isinstance(value, list):
            yield place, value
            return
        for number, item in enumerate(value):
            yield from _others(f"{place}[{number}]", item, kind[0])
    elif isinstance(kind, dict):
        if not isinstance(value, dict):
            yield place, value
            return
        for name in value if ... in kind else kind:
            yield from _others(f"{place}.{name}", value.get(name), kind.get(name, kind.get(...)))
    elif kind is None:
        if value is not None:
            yield place, value
    elif not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, int | None)):
        yield place, value
