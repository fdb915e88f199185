"""Reads finished logs without Inspect AI, whose import takes longer than scoring.

Only logs of Inspect 0.3.285 or later are read here. For everything else (another version of the
format, values of other types, references to attachments), the functions raise ``Unfamiliar``, and
Inspect's classes read the log.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qabench.data.rows import Json, without_none
from qabench.io.limits import json_of
from qabench.runs.kinds import others

VERSION = 2
OLDEST = (0, 3, 285)  # version of Inspect that wrote the log
LARGEST = 64 << 20  # bytes of a sample. Inspect can read a part of a larger one
FINISHED = ("success", "error", "cancelled")
# What is read of the aggregate of a log.
_METRIC = {"value": int | float | None}
_SCORE = {
    "name": str,
    "scorer": str,
    "reducer": str | None,
    "scored_samples": int | None,
    "metrics": ({...: _METRIC}, None),
}
RESULTS = ({"scores": ([_SCORE], None)}, None)
_SAMPLE_FILE = re.compile(r"samples/(.*)_epoch_([1-9][0-9]{0,8})\.json", re.DOTALL)


class Unfamiliar(Exception):
    """A log or a part of it has a form that only Inspect's classes read."""


class Fields:
    """A JSON object of a log. Its fields are attributes.

    Absent ones are None.
    """

    def __init__(self, values: Any) -> None:
        """Raise Unfamiliar if the value is not an object."""
        if not isinstance(values, dict):
            raise Unfamiliar(f"{values!r:.80} is not an object")
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
    return json_of(archive.read(name))


def read_plain_header(path: str | Path) -> Fields:
    """Return a finished log without its samples. Raises any exception if Inspect has to read it."""
    with open_archive(path) as archive:
        values = _member(archive, "header.json")
    header = Fields(values)
    if header.version != VERSION or header.status not in FINISHED or header.log_updates is not None:
        raise Unfamiliar("the version, the status or changed metadata")
    spec = Fields(header.eval)
    for name in ("task_args", "model_args", "metadata"):
        Fields(spec.values.get(name) or {})
    if any(others("results", header.results, RESULTS)):
        raise Unfamiliar("the aggregate")
    written_by = tuple(map(int, spec.packages["inspect_ai"].split(".")[:3]))
    if written_by < OLDEST or not spec.created.endswith("+00:00"):
        raise Unfamiliar("the version of Inspect or the time zone")
    texts = (spec.task, spec.model, spec.task_id)
    if not all(isinstance(text, str) for text in texts) or type(spec.task_args) is not dict:
        raise Unfamiliar("a name or the arguments of the task")
    spec.config = Fields(spec.config)
    if type(spec.model_args) is not dict or type(spec.dataset) is not dict:
        raise Unfamiliar("the arguments of the model or the dataset")
    if type(spec.dataset.get("sample_ids")) not in (list, type(None)):
        raise Unfamiliar("the ids of the questions")
    if type(spec.config.epochs) not in (int, type(None)):
        raise Unfamiliar("the number of epochs")
    spec.dataset = Fields(spec.dataset)
    spec.model_generate_config = Fields(spec.model_generate_config)
    plan = Fields(header.plan)
    plan.config = Fields(plan.config)
    plan.steps = list(map(Fields, plan.steps))
    for step in plan.steps:
        if not isinstance(step.solver, str) or not isinstance(step.params, dict | None):
            raise Unfamiliar("a solver")
    plan.finish = plan.finish and Fields(plan.finish)
    header.metadata, header.eval, header.plan = spec.metadata, spec, plan
    return header


def read_plain_samples(path: str | Path, ids: Collection[str], epochs: int) -> Iterator[Fields]:
    """Yield the samples with these ids, and epochs from 1 to ``epochs``, that a log has.

    The files in the archive are walked, not the ids and epochs, whose number the header only
    claims. Raises any exception if Inspect has to read it.
    """
    with open_archive(path) as archive:
        for name in dict.fromkeys(archive.namelist()):
            match = _SAMPLE_FILE.fullmatch(name)
            if match and match[1] in ids and int(match[2]) <= epochs:
                sample = _sample(_member(archive, name))
                if (str(sample.id), sample.epoch) != (match[1], int(match[2])):
                    raise Unfamiliar("another sample")
                yield sample


def _sample(values: Any) -> Fields:
    sample = Fields(values)
    scores = (sample.scores or {}).items()
    sample.scores = {name: Fields(score) for name, score in scores}
    for score in sample.scores.values():
        if not isinstance(score.answer, str | None) or not isinstance(score.metadata, dict | None):
            raise Unfamiliar("the answer or the metadata of a score")
    usages = sample.model_usage.items()
    sample.model_usage = {name: Fields(usage) for name, usage in usages}
    if isinstance(sample.input, list):
        sample.input = list(map(_message, sample.input))
    sample.messages = list(map(_message, sample.messages))
    sample.output = _output(sample.output)
    sample.error = sample.error and Fields(sample.error)
    sample.limit = sample.limit and Fields(sample.limit)
    return sample


def _output(values: Any) -> Fields:
    output = Fields(values)
    output.choices = list(map(Fields, output.choices))
    if output.choices:
        first = output.choices[0]
        output.stop_reason = first.stop_reason
        output.completion = output.completion or _message(first.message).text
    return output


def _message(values: Any) -> Fields:
    message = Fields(values)
    texts = [message.content]
    if isinstance(message.content, list):
        parts = list(map(Fields, message.content))
        texts = [part.text for part in parts if part.type == "text"]
    calls = list(map(Fields, message.tool_calls or ()))
    message.text, message.tool_calls = "\n".join(texts), calls
    for text in (*texts, *(str(call.arguments) for call in calls)):
        # Inspect's classes replace these.
        if "attachment://" in text or "tc://" in text or "<think" in text:
            raise Unfamiliar("a reference or reasoning")
    return message
