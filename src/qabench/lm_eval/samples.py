"""The harness's logged samples as a file of answers."""

from __future__ import annotations

import json
from pathlib import Path

from qabench.errors import DataError, InputError
from qabench.rows import Row, read_json_lines


def generations(path: str | Path) -> str:
    """FanOutQA's answers that ``lm_eval --log_samples`` wrote, as JSONL for ``qabench score`` and the leaderboard.

    The harness writes a reply that is not there as the text "None".

    Args:
        path: a file ``samples_qabench_fanoutqa_closed_book_*.jsonl``.

    Returns:
        A line ``{"id", "answer"}`` for each logged question, in the file's order.

    Raises:
        InputError: the file cannot be read, holds nothing, or is that of another task.
    """
    try:
        rows = [_answer(row) for row in read_json_lines(Path(path))]
    except OSError as error:
        raise InputError(f"cannot read the samples {path}: {error.strerror or error}") from None
    if not rows:
        raise InputError(f"{path} holds no samples; was the run stopped?")
    return "".join(json.dumps(row) + "\n" for row in rows)


def _answer(row: Row) -> dict[str, str]:
    try:
        question = Row.of(row.get("doc", dict), f"{row.where}, field 'doc'")
        (answer,) = row.texts("filtered_resps")
        return {"id": question.get("id", str), "answer": answer}
    except (DataError, ValueError) as error:
        raise InputError(
            f"{row.where} is no sample of FanOutQA ({error}); give a file samples_qabench_fanoutqa_... of "
            "`lm_eval --log_samples --output_path ...`"
        ) from None
