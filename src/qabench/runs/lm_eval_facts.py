"""What happened in a run of lm-evaluation-harness, from its samples and its results, for the signatures of its answers.

Every key that the harness writes is declared in ``lm_eval_facts.json``: signed, a part of the system
that is evaluated, or irrelevant with a reason. A key that is not there is a deviation. A test walks
what the installed harness writes. The text and the options of each call are in the samples, and are
compared with what the benchmark would ask.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from qabench.benchmarks import Benchmark
from qabench.data.rows import Json, Row
from qabench.errors import InputError, QabenchError
from qabench.evaluation.scoring import Messages, Question
from qabench.evaluation.signature import (
    ASKED,
    IRRELEVANT,
    NOT_RECORDED,
    VERSION,
    Field,
    common_value,
    digest,
    parse,
)
from qabench.tasks.facts import SIGNED, SYSTEM, UNSIGNED, only_special_tokens, tables_of

# The harness's names of generation options -> the names in signatures.
OPTION_NAMES = {"max_gen_toks": "max_tokens"}
# Whether the model samples follows from the temperature.
UNSIGNED_OPTIONS = ("do_sample",)
MODEL_ARGUMENT = "model_arg_"
WITHOUT_RESULTS = "not recorded, because the file has no results_*.json next to it"

CONTENT = json.loads(resources.files("qabench.runs").joinpath("lm_eval_facts.json").read_text("utf-8"))
TABLES = tables_of(CONTENT)
"""Part of the harness's results -> a title, and the treatment of its keys."""


@dataclass(frozen=True)
class HarnessFacts:
    """Fields for the signatures of a file of samples, and which of them are official.

    Attributes:
        fields: name -> value.
        declared: the official values of the fields that benchmarks do not declare.
    """

    fields: Mapping[str, str]
    declared: Mapping[str, Field]


def harness_facts(
    scorer: Benchmark,
    questions: Sequence[Question],
    task: str,
    rows: Sequence[Row],
    results: Mapping[str, Any],
) -> HarnessFacts:
    """Return the facts of a file of samples.

    Args:
        scorer: the benchmark that scores the answers.
        questions: its questions, from which the prompts are rendered again.
        task: the name of the harness's task.
        rows: the samples.
        results: the content of the file of results, or {} if there is none.
    """
    facts: dict[str, Any] = {}
    system: set[str] = set()
    configs = results.get("configs")
    task_config = configs.get(task) if isinstance(configs, dict) else None
    task_config = task_config if isinstance(task_config, dict) else {}
    if results:
        run_config = results.get("config")
        parts = {
            "results": _without_defaults(results, task),
            "config": run_config if isinstance(run_config, dict) else {},
            "configs": task_config,
        }
        for part, values in parts.items():
            _add_signed(facts, system, part, values, prefix="")
        arguments = _model_arguments(parts["config"].get("model_args"))
        _add_signed(facts, system, "model_args", arguments, prefix=MODEL_ARGUMENT)
    else:
        facts["harness_options"] = WITHOUT_RESULTS
    metadata = task_config.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    facts |= _signed_by_task(metadata)
    facts |= _options_of_calls(rows)
    in_template = bool(results.get("chat_template_sha"))
    facts |= _differing_prompts(scorer, questions, rows, metadata, in_template)
    fields = {name: _text(value) for name, value in facts.items() if value not in (None, "", [], {})}
    changed = Field((), "lm-evaluation-harness ran with {name}: {value}", absent=True)
    declared = {name: IRRELEVANT if name in system else changed for name in fields}
    return HarnessFacts(fields, declared)


def _without_defaults(results: Mapping[str, Any], task: str) -> Json:
    """Return the results with the number of examples of this task only, and without flags that are off."""
    shots = results.get("n-shot")
    number = shots.get(task, 0) if isinstance(shots, dict) else 0
    return {name: value for name, value in results.items() if value not in (False, 0)} | {
        "n-shot": number or None
    }


def _add_signed(
    facts: dict[str, Any], system: set[str], part: str, values: Mapping[str, Any], prefix: str
) -> None:
    """Add the values of a part that its table says are signed. Official values are left out."""
    table, official = TABLES[part][1], CONTENT[part].get("official", {})
    for name, value in values.items():
        treatment = table.get(name, (SIGNED, ""))[0]
        if treatment == UNSIGNED or value is None or value in official.get(name, ()):
            continue
        field = prefix + name.replace("-", "_")
        if part == "results":
            field = field.removesuffix("_sha")  # of the chat template, and of the system instruction
        if treatment == SYSTEM:
            system.add(field)
        # The text of an argument that is not in the table could be a secret.
        facts[field] = value if name in table else digest([str(value)])


def _model_arguments(arguments: Any) -> Json:
    """Return ``--model_args`` as a mapping. The harness writes what it was given: "name=value,..." or an object."""
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str):
        return {}
    pairs = [part.partition("=") for part in arguments.split(",") if part]
    values: Json = {name.strip(): value for name, _, value in pairs}
    # Off, as if it was not given.
    return {name: value for name, value in values.items() if value.lower() not in ("false", "none", "")}


def _signed_by_task(metadata: Mapping[str, Any]) -> Json:
    """Return the fields of the signatures that the task itself wrote: how it asked, such as the prompt's digest."""
    lines = metadata.get("signatures")
    facts: Json = {}
    for line in lines.values() if isinstance(lines, dict) else ():
        try:
            facts |= parse(str(line))[1]
        except InputError as error:
            raise InputError(f"metadata.signatures of the task in results_*.json: {error}") from None
    for name in (ASKED, VERSION, "model"):
        facts.pop(name, None)
    return facts


def _calls(rows: Iterable[Row]) -> Iterator[tuple[Row, Any, Json]]:
    """Yield the document, the context and the options of each call that the samples record."""
    for row in rows:
        arguments = row.get("arguments")
        # Since version 0.4.3 an object, before a list of lists.
        calls = list(arguments.values()) if isinstance(arguments, dict) else arguments or []
        for call in calls if isinstance(calls, list) else []:
            parts = list(call.values()) if isinstance(call, dict) else call
            if isinstance(parts, list) and len(parts) == 2 and isinstance(parts[1], dict):
                doc = row.get("doc")
                yield doc if isinstance(doc, dict) else {}, parts[0], parts[1]


def _options_of_calls(rows: Sequence[Row]) -> Json:
    """Return the generation options of the calls. Options that differ between calls are mixed values."""
    values: dict[str, Counter[str]] = {}
    total = 0
    for _, _, options in _calls(rows):
        total += 1
        for name, value in options.items():
            if name in UNSIGNED_OPTIONS or (name == "until" and only_special_tokens(value)):
                continue
            values.setdefault(OPTION_NAMES.get(name, name), Counter())[_text(value)] += 1
    facts = {}
    for name, counts in values.items():
        if missing := total - counts.total():
            counts[NOT_RECORDED] = missing
        facts[name] = common_value(counts)
    return facts


def _differing_prompts(
    scorer: Benchmark,
    questions: Sequence[Question],
    rows: Sequence[Row],
    metadata: Mapping[str, Any],
    in_template: bool,
) -> Json:
    """Return how many prompts are not what the task asks for the dataset's row, or why this is not known."""
    contexts = [(str(document_id(doc)), context) for doc, context, _ in _calls(rows)]
    if not contexts:
        return {"asked_text": "not recorded"}
    prefix = f"{scorer.name}_"
    arguments = {
        name.removeprefix(prefix): value for name, value in metadata.items() if name.startswith(prefix)
    }
    row_of = {question.id: question.row for question in questions}
    differing = 0
    try:
        asking = scorer.asking(**arguments)
        for id, context in contexts:
            # The dataset's row: the log's document can have been changed with its prompt.
            row = row_of.get(id)
            if row is None or not _is_sent_as(asking.messages(row), context, in_template):
                differing += 1
    except (QabenchError, TypeError) as error:  # prompts that are not available, arguments of others
        return {"asked_text": f"could not be compared ({error})"}
    if not differing:
        return {}
    return {"asked_text": f"{differing} of {len(contexts)} prompts are not the task's"}


def document_id(doc: Mapping[str, Any]) -> Any:
    """Return the id of a document of the harness. Some datasets name it "index"."""
    return doc.get("index") if "id" not in doc else doc["id"]


def _is_sent_as(messages: Messages, context: Any, in_template: bool) -> bool:
    """Return whether a context has the messages: as JSON of a chat, as one text, or within a chat template.

    A chat template is a deviation of its own, so only the order of the messages in it is checked.
    """
    if not isinstance(context, str):
        return False
    texts = [text.strip() for _, text in messages]
    try:
        chat = json.loads(context)
    except ValueError:
        chat = None
    if isinstance(chat, list):
        sent = [
            (message.get("role"), str(message.get("content")).strip())
            for message in chat
            if isinstance(message, dict)
        ]
        return sent == list(zip((role for role, _ in messages), texts, strict=True))
    if in_template:
        start = 0
        for text in texts:
            start = context.find(text, start)
            if start < 0:
                return False
        return True
    return context == "\n\n".join(text for _, text in messages)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
