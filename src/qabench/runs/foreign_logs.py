"""Finds the reader for the log of another harness."""

from __future__ import annotations

from pathlib import Path

from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.runs.file_kinds import (
    DETAILS,
    LINES,
    LM_EVAL_FIELDS,
    SHARED_FIELDS,
    SUFFIXES,
    first_row,
    pointer_error,
)


def read_foreign(path: Path) -> list[Evaluation]:
    """Return the logs of other harnesses in a file.

    Returns [] if there are none, such as in a qabench log. Readers are imported when they are
    needed: they are slow to import, and a command reads one kind of file.
    """
    if not path.is_file() or path.suffix not in SUFFIXES:
        return []
    if cause := pointer_error(path):
        raise InputError(f"{path} {cause}")
    if path.suffix == DETAILS:
        from qabench.runs.lighteval_details import read_lighteval

        return [read_lighteval(path)]
    if path.suffix == LINES:
        fields = first_row(path).keys()
        if fields >= SHARED_FIELDS:
            from qabench.runs.shared_instances import read_shared

            return read_shared(path)
        if fields >= LM_EVAL_FIELDS:
            from qabench.runs.lm_eval_samples import read_lm_eval

            return [read_lm_eval(path)]
        return []
    from qabench.runs.any_log import read_any_log

    return read_any_log(path)
