"""Reads finished logs without Inspect AI, whose import takes longer than scoring.

Only logs in exactly the form that Inspect 0.3.285 writes are read here. For everything else
(another version of the format, unknown fields, values of other types, references to attachments),
the functions raise ``Unfamiliar``, and Inspect's classes read the log.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qabench.data.rows import Json, without_none
from qabench.tasks.facts import EVAL_CONFIG, EVAL_PLAN, EVAL_PLAN_STEP, EVAL_SPEC, GENERATE_CONFIG

VERSION = 2
LARGEST = 64 << 20  # bytes of a sample. Inspect can read a part of a larger one
Types = Mapping[str, type | tuple[type, ...]]
Keys = Sequence[tuple[int | str, int]]
"""The id and the epoch of each sample."""
FINISHED = ("success", "error", "cancelled")
STOPS = ("stop", "max_tokens", "model_length", "tool_calls", "content_filter", "unknown")
_OPTIONAL_TEXT = (str, type(None))
_OPTIONAL_OBJECT = (dict, type(None))
_NUMBER = (float, int, type(None))
HEADER = {
    *("version", "status", "eval", "plan", "results", "stats", "error", "invalidated", "tags"),
    *("metadata", "reductions", "config_updates"),
}
"""The fields of a header that are read or needless.

Without ``log_updates``, which change the metadata.
"""
SAMPLE = {
    *("id", "epoch", "input", "choices", "target", "description", "sandbox", "files", "setup"),
    *("messages", "output", "scores", "metadata", "store", "events", "timelines", "model_usage"),
    *("role_usage", "model_fallbacks", "started_at", "completed_at", "total_time", "working_time"),
    *("uuid", "invalidation", "error", "error_retries", "attachments", "events_data", "limit"),
    *("message_limit", "token_limit", "token_limit_type", "token_limit_usage", "time_limit"),
    "turn_count",
}
_SPEC_TYPES: Types = {
    **dict.fromkeys(("task", "task_id", "model", "created"), str),
    **dict.fromkeys(("task_args", "task_args_passed", "model_args", "metadata"), dict),
    **dict.fromkeys(("dataset", "config", "model_generate_config"), dict),
    **dict.fromkeys(("model_base_url", "solver"), _OPTIONAL_TEXT),
}
_GENERATION_TYPES: Types = dict.fromkeys(
    ("temperature", "top_p", "frequency_penalty", "presence_penalty"), (float, type(None))
)
_SAMPLE_TYPES: Types = {
    "id": (str, int),
    "epoch": int,
    "messages": list,
    **dict.fromkeys(("output", "metadata", "model_usage"), dict),
    **dict.fromkeys(("scores", "error", "limit"), _OPTIONAL_OBJECT),
    "working_time": _NUMBER,
}
_USAGE_TYPES: Types = {
    **dict.fromkeys(("input_tokens", "output_tokens"), int),
    **dict.fromkeys(("input_tokens_cache_read", "input_tokens_cache_write"), (int, type(None))),
    "total_cost": (float, type(None)),
}


class Unfamiliar(Exception):
    """A log or a part of it has a form that only Inspect's classes read."""


class Fields:
    """A JSON object of a log. Its fields are attributes.

    Absent ones are None.
    """

    def __init__(self, values: Any, types: Types, names: Collection[str] = ()) -> None:
        """Raise Unfamiliar if a value has another type, or if a field is not in ``names``."""
        if not isinstance(values, dict):
            raise Unfamiliar(f"{values!r:.80} is not an object")
        for name, allowed in types.items():
            if not isinstance(values.get(name), allowed):
                raise Unfamiliar(name)
        if names and (unknown := values.keys() - names):
            raise Unfamiliar(str(sorted(unknown)))
        self.values = values

    def __getattr__(self, name: str) -> Any:
        return self.values.get(name)

    # tells mypy that every field can be replaced
    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value


def values_of(part: Any) -> Json:
    """Return the fields of a part of a log that are not None, by their name.

    ``part`` is also a class of Inspect.
    """
    if isinstance(part, Fields):
        return without_none(part.values)
    values: Json = part.model_dump(mode="json", exclude_none=True)
    return values


@contextmanager
def open_archive(path: str | Path) -> Iterator[zipfile.ZipFile]:
    """Open a log, whose compression older versions of Python cannot read."""
    if sys.version_info < (3, 14):
        import zipfile_zstd  # noqa: F401  (adds the compression of Inspect's logs to zipfile)
    with zipfile.ZipFile(path) as archive:
        yield archive


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the JSON of a file in a log, which is compared with its checksum."""
    if archive.getinfo(name).file_size > LARGEST:
        raise Unfamiliar("a large file")
    return json.loads(archive.read(name))


def read_plain_header(path: str | Path) -> Fields:
    """Return a finished log without its samples. Raises any exception if Inspect has to read it."""
    with open_archive(path) as archive:
        values = _member(archive, "header.json")
    header = Fields(values, {"version": int, "status": str, "eval": dict, "plan": dict}, HEADER)
    if header.version != VERSION or header.status not in FINISHED:
        raise Unfamiliar("the version or the status")
    spec = Fields(header.eval, _SPEC_TYPES, EVAL_SPEC)
    if not spec.created.endswith("+00:00"):
        raise Unfamiliar("the time zone")
    spec.config = Fields(spec.values["config"], {"epochs": (int, type(None))}, EVAL_CONFIG)
    spec.dataset = Fields(spec.values["dataset"], {"sample_ids": (list, type(None))})
    spec.model_generate_config = _generation(spec.values["model_generate_config"])
    plan = Fields(header.plan, {"steps": list, "config": dict}, EVAL_PLAN)
    plan.config = _generation(plan.values["config"])
    plan.steps = [_step(step) for step in plan.values["steps"]]
    plan.finish = _step(plan.values["finish"]) if plan.values.get("finish") else None
    header.metadata, header.eval, header.plan = spec.metadata, spec, plan
    return header


def _generation(values: Any) -> Fields:
    return Fields(values, _GENERATION_TYPES, GENERATE_CONFIG)


def _step(values: Any) -> Fields:
    return Fields(values, {"solver": str, "params": dict}, EVAL_PLAN_STEP)


def read_plain_samples(path: str | Path, keys: Keys) -> Iterator[Fields]:
    """Yield the samples with these ids and epochs that a log has.

    Raises any exception if Inspect has to read it.
    """
    with open_archive(path) as archive:
        names = archive.namelist()
        if len(set(names)) < len(names):
            raise Unfamiliar("a sample that is there twice")
        for id, epoch in keys:
            name = f"samples/{id}_epoch_{epoch}.json"
            if name in names:
                sample = _sample(_member(archive, name))
                if (str(sample.id), sample.epoch) != (str(id), epoch):
                    raise Unfamiliar("another sample")
                yield sample


def _sample(values: Any) -> Fields:
    sample = Fields(values, _SAMPLE_TYPES, SAMPLE)
    score_types: Types = {"answer": _OPTIONAL_TEXT, "metadata": _OPTIONAL_OBJECT}
    sample.scores = _objects(sample.scores or {}, score_types)
    sample.model_usage = _objects(sample.model_usage, _USAGE_TYPES)
    sample.messages = list(map(_message, sample.messages))
    sample.output = _output(sample.output)
    sample.error = sample.error and Fields(sample.error, {"message": str, "traceback": str})
    sample.limit = sample.limit and Fields(sample.limit, {"type": str, "limit": (int, float)})
    return sample


def _objects(values: Json, types: Types) -> dict[str, Fields]:
    return {name: Fields(value, types) for name, value in values.items()}


def _output(values: Any) -> Fields:
    optional = {"usage": _OPTIONAL_OBJECT, "error": _OPTIONAL_TEXT}
    output = Fields(values, {"choices": list, "completion": str, **optional})
    output.choices = [
        Fields(choice, {"message": dict, "stop_reason": str}) for choice in output.choices
    ]
    if output.choices:
        first = output.choices[0]
        output.stop_reason = first.stop_reason
        if output.stop_reason not in STOPS:
            raise Unfamiliar(output.stop_reason)
        output.completion = output.completion or _message(first.message).text
    return output


def _message(values: Any) -> Fields:
    message = Fields(
        values, {"role": str, "content": (str, list), "tool_calls": (list, type(None))}
    )
    texts = [message.content]
    if isinstance(message.content, list):
        parts = [Fields(part, {"type": str}) for part in message.content]
        texts = [part.text for part in parts if part.type == "text"]
    calls = [
        Fields(call, {"function": str, "arguments": dict}) for call in message.tool_calls or ()
    ]
    message.text, message.tool_calls = "\n".join(texts), calls
    for text in (*texts, *(str(call.arguments) for call in calls)):
        # Inspect's classes replace these.
        if "attachment://" in text or "tc://" in text or "<think" in text:
            raise Unfamiliar("a reference or reasoning")
    return message
