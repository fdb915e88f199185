"""Types of the metadata that tasks of qabench write into logs, and their validation (see ``qabench.runs.kinds``)."""

from __future__ import annotations

import sys
from typing import Any

from qabench.benchmarks import Benchmark
from qabench.errors import InputError
from qabench.io.tables import printable
from qabench.runs.kinds import others

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
    for place, found in others(where, value, kind):
        raise InputError(
            f"{path} was edited, or is damaged: {printable(place)} is {printable(repr(found), LONGEST_VALUE)}, which "
            "qabench does not write there; use the log that Inspect wrote"
        )


def check_sample(path: Any, sample: Any, scorer: Benchmark) -> None:
    """Raise InputError for a field of a sample, or of one of its scores, that no task of qabench writes like this."""
    where = f"sample {sample.id!r}"
    check(path, f"{where}, metadata", sample.metadata or {}, SAMPLE)
    detail = (dict(scorer.log_kinds.get("detail", {})), None)
    for name, score in (sample.scores or {}).items():
        of_score = f"{where}, score {name!r}"
        check(path, f"{of_score}, answer", score.answer, str | None)
        check(path, f"{of_score}, metadata", score.metadata or {}, SCORE)
        check(path, f"{of_score}, metadata.detail", (score.metadata or {}).get("detail"), detail)
        for column, number in score.value.items() if isinstance(score.value, dict) else ():
            if isinstance(number, int) and abs(number) > sys.float_info.max:
                check(path, f"{of_score}, value.{column}", number, float)
