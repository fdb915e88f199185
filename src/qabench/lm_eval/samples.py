"""The harness's logged samples as a file of predictions."""

from __future__ import annotations

import json
from pathlib import Path

from qabench.data.rows import Row, read_json_lines
from qabench.errors import DataError, InputError

ID_FIELDS = ("id", "index")


def generations(path: str | Path) -> str:
    """The answers that ``lm_eval --log_samples`` wrote, as predictions for ``qabench score``.

    The harness writes a missing reply as the string "None".

    Args:
        path: a file ``samples_qabench_*.jsonl``.

    Returns:
        One line ``{"id", "answer"}`` per sample, in the file's order.

    Raises:
        InputError: the file cannot be read, is empty, or belongs to a task that is not qabench's.
    """
    try:
        rows = [_answer(row) for row in read_json_lines(Path(path))]
    except OSError as error:
        raise InputError(f"cannot read the samples {path}: {error.strerror or error}") from None
    if not rows:
        raise InputError(f"{path} has no samples; was the run stopped?")
    return "".join(json.dumps(row) + "\n" for row in rows)


def _answer(row: Row) -> dict[str, str]:
    try:
        question = Row.of(row.get("doc", dict), f"{row.where}, field 'doc'")
        (answer,) = row.texts("filtered_resps")
        name = next((name for name in ID_FIELDS if name in question.fields), ID_FIELDS[0])
        return {"id": question.get(name, str), "answer": answer}
    except (DataError, ValueError) as error:
        raise InputError(
            f"{row.where} is not a sample of a qabench task ({error}); give a file samples_qabench_... of "
            "`lm_eval --log_samples --output_path ...`"
        ) from None
