"""Logs of any task of Inspect AI (.eval, or .json)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabench.data.predictions import some
from qabench.errors import QabenchError
from qabench.evaluation import Record
from qabench.llm.client import run_sync
from qabench.runs.foreign import Log, groups_of, numbers_of
from qabench.runs.log import check_archive, damaged, inspect_log, record_of, samples_of, with_buffer
from qabench.runs.plain import read_plain_header

# How the JSON of a log starts, and not logs.json and eval-set.json, which Inspect writes beside the
# logs of a suite.
START = re.compile(rb'\s*\{\s*"(version|status|eval)"\s*:')
FIRST_BYTES = 4096


def read(path: Path) -> list[Log]:
    """Return the log of a task that is not of qabench, or [] for other files.

    Raises InputError if it is damaged.
    """
    if path.suffix == ".json" and not _starts_as_log(path):
        return []
    with suppress(Exception):  # Inspect reads it, or says why it cannot
        if isinstance(read_plain_header(path).metadata.get("benchmark"), str):
            return []
    try:
        header = inspect_log().read_eval_log(str(path), header_only=True)
        if isinstance((header.eval.metadata or {}).get("benchmark"), str):
            return []
        if path.suffix != ".json":
            check_archive(path)
        ids = dict.fromkeys(header.eval.dataset.sample_ids or ())
        epochs = range(1, (header.eval.config.epochs or 1) + 1)
        keys = [(id, epoch) for id in ids for epoch in epochs]
        records = _records(path, header, keys)
    except QabenchError:
        raise
    except Exception as error:  # a file that is not a log can cause any exception in the reader
        raise damaged(path, error) from error
    present = {record.id for record in records if record.epoch == 1}
    missing = [id for id in map(str, ids) if id not in present]
    problem = f"questions without a sample: {len(missing)} ({some(missing)})"
    log = Log(
        path=str(path),
        task=header.eval.task,
        model=header.eval.model,
        created=header.eval.created,
        records=records,
        status=header.status,
        expected=max(len(keys), len(records)),
        arguments=header.eval.task_args | header.plan.config.model_dump(exclude_none=True),
        problems=[problem] if missing else [],
        origin=header.eval.task_id,
    )
    return [log]


def _starts_as_log(path: Path) -> bool:
    with path.open("rb") as file:
        return START.match(file.read(FIRST_BYTES)) is not None


def _records(path: Path, header: Any, keys: Sequence[tuple[int | str, int]]) -> list[Record]:
    if path.suffix == ".json":
        log = inspect_log().read_eval_log(str(path), resolve_attachments="core")
        return list(map(_record, log.samples or ()))
    with with_buffer(path, header.status) as file:
        return run_sync(samples_of(file, keys, _record))


def _record(sample: Any) -> Record:
    scores = dict(sample.scores or {})
    # Metadata has another meaning in logs of qabench.
    bare = {name: score.model_copy(update={"metadata": None}) for name, score in scores.items()}
    return replace(
        record_of(sample.model_copy(update={"metadata": {}, "scores": bare})),
        question=_text(sample.input),
        reference=_text(sample.target),
        scores=numbers_of({name: score.value for name, score in scores.items()}),
        groups=groups_of(sample.metadata),
        detail={name: score.explanation for name, score in scores.items() if score.explanation},
    )


def _text(value: str | Sequence[Any]) -> str:
    """Return an input (a text or messages) or a target (a text or several) as one text."""
    if isinstance(value, str):
        return value
    return "\n".join(part if isinstance(part, str) else part.text for part in value)
