"""Tasks for lm-evaluation-harness with this package's data and scores.

    lm_eval run --include_path "$(qabench path lm-eval)" --tasks qabench ...

Each benchmark has its tasks in ``qabench/benchmarks/NAME/lm_eval``. ``lm_eval ls tasks
--include_path ...`` lists them. The tag ``qabench`` selects one task per benchmark and method,
``qabench_sample`` those on the shipped samples.

Data comes from a mirror, the cache or a download, as everywhere in qabench, never from the Hub. The
scores equal the output of ``qabench score`` on the same replies to the last digit, except in runs
on several processes, where the harness adds up in another order. Everything that scores depend on
is in the results' ``configs``, under ``metadata``: the task's version and the signatures.

Only the harness itself imports modules that need the harness.
"""

from __future__ import annotations

import json
from pathlib import Path

from qabench.data.rows import SourceRow, read_json_lines
from qabench.errors import DataError, InputError, unreadable

__all__ = ["generations"]
ID_FIELDS = ("id", "index")


def generations(path: str | Path) -> str:
    """Return the answers that ``lm_eval --log_samples`` wrote, as predictions for ``qabench score``.

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
        raise unreadable(f"the samples {path}", error) from None
    if not rows:
        raise InputError(f"{path} has no samples; was the run stopped?")
    return "".join(json.dumps(row) + "\n" for row in rows)


def _answer(row: SourceRow) -> dict[str, str]:
    try:
        question = SourceRow.of(row.get("doc", dict), f"{row.where}, field 'doc'")
        (answer,) = row.texts("filtered_resps")
        name = next((name for name in ID_FIELDS if name in question.fields), ID_FIELDS[0])
        return {"id": question.get(name, str), "answer": answer}
    except (DataError, ValueError) as error:
        raise InputError(
            f"{row.where} is not a sample of a qabench task ({error}); give a file samples_qabench_... of "
            "`lm_eval --log_samples --output_path ...`"
        ) from None
