"""Reads finished logs without Inspect AI, whose import takes longer than scoring.

Only logs of Inspect 0.3.285 or later are read here. For everything else (another version of the
format, values of other types, references to attachments), the functions raise an exception, such as
``Unfamiliar``, and Inspect's classes read the log.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from qabench.data.rows import Json, without_none
from qabench.evaluation.records import Message
from qabench.io.limits import json_of
from qabench.runs.archive import VERSION, open_archive
from qabench.runs.log_fields import values_of_another_kind
from qabench.runs.log_types import (
    Log,
    ModelTokens,
    Sample,
    SampleError,
    SampleScore,
    Step,
    limit_text,
    shown_message,
)

# The oldest version of Inspect whose logs are read without it.
OLDEST = (0, 3, 285)
# The maximum size of the header or a sample. Inspect can read a part of a larger one.
MAX_BYTES = 64 << 20
FINISHED = ("success", "error", "cancelled")
# The kinds of the fields that are read (see ``qabench.runs.log_fields``).
_METRIC = {"value": int | float | None}
_REDUCED_SCORE = {
    "name": str,
    "scorer": str,
    "reducer": str | None,
    "scored_samples": int | None,
    "metrics": ({...: _METRIC}, None),
}
_ANY_FIELDS = {...: object}
_HEADER = {
    "results": ({"scores": ([_REDUCED_SCORE], None)}, None),
    "eval": {
        "task": str,
        "task_id": str,
        "created": str,
        "model": str,
        "model_base_url": str | None,
        "task_args": _ANY_FIELDS,
        "model_args": _ANY_FIELDS,
        "metadata": (_ANY_FIELDS, None),
        "packages": {"inspect_ai": str},
        "dataset": {"sample_ids": ([object], None)},
        "config": {"epochs": int | None},
        "model_generate_config": _ANY_FIELDS,
        "solver": str | None,
    },
    "plan": {
        "config": _ANY_FIELDS,
        "steps": [{"solver": str, "params": (_ANY_FIELDS, None)}],
        "finish": ({"solver": str}, None),
    },
}
_MESSAGE = {
    "role": str,
    "content": ([{"type": str, "text": str | None}], str),
    "tool_calls": ([{"function": str, "arguments": object}], None),
}
_SCORE = {
    "answer": str | None,
    "explanation": str | None,
    "reason": str | None,
    "metadata": (_ANY_FIELDS, None),
}
_USAGE = {
    "input_tokens": int,
    "output_tokens": int,
    "input_tokens_cache_read": int | None,
    "input_tokens_cache_write": int | None,
    "total_cost": int | float | None,
}
_SAMPLE = {
    "id": int | str,
    "epoch": int,
    "input": ([_MESSAGE], str),
    "target": ([str], str),
    "messages": [_MESSAGE],
    "output": {
        "choices": [{"stop_reason": str | None, "message": _MESSAGE}],
        "completion": str | None,
        "model": str | None,
        "error": str | None,
    },
    "scores": ({...: _SCORE}, None),
    "metadata": (_ANY_FIELDS, None),
    "model_usage": {...: _USAGE},
    "working_time": int | float | None,
    "invalidation": ({"reason": str | None}, None),
    "error": ({"message": str, "traceback": str}, None),
    "limit": ({"type": str, "limit": int | float}, None),
}
_SAMPLE_FILE = re.compile(r"samples/(.*)_epoch_([1-9][0-9]{0,8})\.json", re.DOTALL)


class Unfamiliar(Exception):
    """A log or a part of it has a form that only Inspect's classes read."""


def _check(what: str, value: Any, kind: Any) -> None:
    """Raise Unfamiliar for a header or a sample with a field of another kind."""
    for field, wrong_value in values_of_another_kind(what, value, kind):
        raise Unfamiliar(f"{field} is {wrong_value!r:.80}")


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the JSON of a file in a log. Reading the file compares it with its checksum."""
    if archive.getinfo(name).file_size > MAX_BYTES:
        raise Unfamiliar("a large file")
    return json_of(archive.read(name))


def read_plain_header(path: str | Path) -> Log:
    """Return a finished log without its samples.

    Raises:
        Exception: an exception of any type, which says that Inspect has to read the log.
    """
    with open_archive(path) as archive:
        header = _member(archive, "header.json")
    _check("header", header, _HEADER)
    spec = header["eval"]
    plan = header["plan"]
    # Later changes to the metadata are in ``log_updates``, which this reader does not apply.
    if (
        header.get("version") != VERSION
        or header.get("status") not in FINISHED
        or header.get("log_updates") is not None
    ):
        raise Unfamiliar("the version, the status or changed metadata")
    written_by = tuple(map(int, spec["packages"]["inspect_ai"].split(".")[:3]))
    if written_by < OLDEST or not spec["created"].endswith("+00:00"):
        raise Unfamiliar("the version of Inspect or the time zone")
    finish = plan.get("finish")
    ids = spec["dataset"].get("sample_ids") or ()
    steps = [Step(step["solver"], step.get("params") or {}) for step in plan["steps"]]
    return Log(
        is_plain=True,
        status=header["status"],
        invalidated=bool(header.get("invalidated")),
        task=spec["task"],
        task_id=spec["task_id"],
        created=spec["created"],
        model=spec["model"],
        server=spec.get("model_base_url") or "",
        task_args=spec["task_args"],
        model_args=spec["model_args"],
        metadata=spec.get("metadata") or {},
        listed_ids=list(map(str, ids)),
        epochs=spec["config"].get("epochs") or 1,
        spec=without_none(spec),
        run_options=without_none(spec["config"]),
        model_generation=without_none(spec["model_generate_config"]),
        generation=without_none(plan["config"]),
        solver=spec.get("solver"),
        solver_args=spec.get("solver_args"),
        steps=steps,
        finish=finish["solver"] if finish else None,
        results=without_none(header.get("results") or {}),
    )


def read_plain_samples(path: str | Path, ids: Collection[str], epochs: int) -> Iterator[Sample]:
    """Yield the samples of a log with these ids, and with epochs from 1 to ``epochs``.

    The archive's files are listed, not all pairs of an id and an epoch: the header could claim any
    number of epochs. Any exception means that the log has to be read by Inspect.
    """
    with open_archive(path) as archive:
        for name in dict.fromkeys(archive.namelist()):
            match = _SAMPLE_FILE.fullmatch(name)
            if match and match[1] in ids and int(match[2]) <= epochs:
                sample = _sample(_member(archive, name))
                # A copied or renamed file would answer another question.
                if (str(sample.id), sample.epoch) != (match[1], int(match[2])):
                    raise Unfamiliar("another sample")
                yield sample


def _sample(values: Json) -> Sample:
    """Return a sample with the values that Inspect's classes would read."""
    _check("sample", values, _SAMPLE)
    output = values["output"]
    stop_reason = None
    completion = output.get("completion") or ""
    if output["choices"]:
        choice = output["choices"][0]
        stop_reason = choice.get("stop_reason")
        completion = completion or _text(choice["message"])
    scores = {}
    for name, score in (values.get("scores") or {}).items():
        scores[name] = SampleScore(
            value=score.get("value"),
            answer=score.get("answer"),
            explanation=score.get("explanation"),
            reason=score.get("reason"),
            metadata=score.get("metadata") or {},
        )
    error = values.get("error")
    limit = values.get("limit")
    invalidation = values.get("invalidation")
    return Sample(
        id=values["id"],
        epoch=values["epoch"],
        question=_joined(values["input"]),
        target=_joined(values["target"]),
        messages=list(map(_message, values["messages"])),
        has_output=bool(output["choices"]),
        completion=completion,
        model_in_reply=output.get("model") or "",
        stop_reason=stop_reason,
        output_error=output.get("error"),
        is_too_long=stop_reason == "model_length" and output.get("usage") is None,
        error=SampleError(error["message"], error["traceback"]) if error else None,
        limit=limit_text(limit["type"], limit["limit"]) if limit else None,
        usages=list(map(_usage, values["model_usage"].values())),
        seconds=values.get("working_time"),
        metadata=values.get("metadata") or {},
        scores=scores,
        is_invalidated=invalidation is not None,
        invalidation_reason=invalidation.get("reason") if invalidation else None,
    )


def _usage(usage: Json) -> ModelTokens:
    """Return the tokens of one model in a sample."""
    # Providers count cached tokens separately.
    prompt_tokens = usage["input_tokens"]
    prompt_tokens += usage.get("input_tokens_cache_read") or 0
    prompt_tokens += usage.get("input_tokens_cache_write") or 0
    return ModelTokens(prompt_tokens, usage["output_tokens"], usage.get("total_cost"))


def _joined(value: str | list[Any]) -> str:
    """Return an input (a text or messages) or a target (a text or several) as one text."""
    if isinstance(value, str):
        return value
    texts = []
    for item in value:
        texts.append(item if isinstance(item, str) else _text(item))
    return "\n".join(texts)


def _text(message: Json) -> str:
    """Return the text of a message. Raises Unfamiliar if Inspect would change it or a tool call."""
    content = message["content"]
    texts = [content]
    if isinstance(content, list):
        texts = [part["text"] for part in content if part["type"] == "text"]
    calls = message.get("tool_calls") or ()
    arguments = [str(call.get("arguments")) for call in calls]
    for text in (*texts, *arguments):
        # Inspect's classes replace references by what they refer to, and take reasoning out of texts.
        if "attachment://" in text or "tc://" in text or "<think" in text:
            raise Unfamiliar("a reference or reasoning")
    return "\n".join(texts)


def _message(message: Json) -> Message:
    calls = message.get("tool_calls") or ()
    arguments = [(call["function"], call.get("arguments")) for call in calls]
    return shown_message(message["role"], _text(message), arguments)
