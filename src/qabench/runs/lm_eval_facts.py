"""What happened in a run of lm-evaluation-harness, for the signatures of its answers.

``lm_eval_facts.json`` declares, with a reason, every key that the harness writes: as signed (a
field of the signature, and a deviation), as a property of the evaluated system (also signed, but
not a deviation), or as unsigned. A key that is not declared is signed. A test compares the
declarations with what the installed harness writes. The text and the options of each call are in
the samples, and are compared with what the benchmark would ask.
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
from qabench.evaluation.harness_fields import (
    SIGNED,
    SYSTEM,
    UNSIGNED,
    only_special_tokens,
    tables_of,
)
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
from qabench.runs.foreign import object_or_empty

# The harness's names of generation options, and the names in signatures.
OPTION_NAMES = {"max_gen_toks": "max_tokens"}
# ``do_sample`` follows from the temperature.
UNSIGNED_OPTIONS = ("do_sample",)
# The prefix of the fields for ``--model_args``.
MODEL_ARGUMENT = "model_arg_"
WITHOUT_RESULTS = "not recorded, because the file has no results_*.json next to it"

CONTENT = json.loads(
    resources.files("qabench.runs").joinpath("lm_eval_facts.json").read_text("utf-8")
)
TABLES = tables_of(CONTENT)
"""Section of the results file, such as "config" -> a title, and the treatment of its keys."""


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
    benchmark: Benchmark,
    questions: Sequence[Question],
    task: str,
    rows: Sequence[Row],
    results: Mapping[str, Any],
) -> HarnessFacts:
    """Return the facts of a file of samples.

    Args:
        benchmark: the benchmark that scores the answers.
        questions: its questions, from which the prompts are rendered again.
        task: the name of the harness's task.
        rows: the samples.
        results: the content of the file of results, or {} if there is none.
    """
    facts: dict[str, Any] = {}
    # The names of the facts that describe the evaluated system, and so are not deviations.
    system: set[str] = set()
    task_config = object_or_empty(object_or_empty(results.get("configs")).get(task))
    if results:
        sections: dict[str, Mapping[str, Any]] = {
            "results": _without_defaults(results, task),
            "config": object_or_empty(results.get("config")),
            "configs": task_config,
        }
        for section, values in sections.items():
            _add_signed(facts, system, section, values, prefix="")
        arguments = _model_arguments(sections["config"].get("model_args"))
        _add_signed(facts, system, "model_args", arguments, prefix=MODEL_ARGUMENT)
    else:
        facts["harness_options"] = WITHOUT_RESULTS
    # The options of the calls override what the task wrote, so they are added later.
    metadata = object_or_empty(task_config.get("metadata"))
    facts |= _signed_by_task(metadata)
    facts |= _options_of_calls(rows)
    in_template = bool(results.get("chat_template_sha"))
    facts |= _differing_prompts(benchmark, questions, rows, metadata, in_template)
    # No value is official, so the field is a deviation wherever it is present.
    deviation = Field((), "lm-evaluation-harness ran with {name}: {value}", absent=True)
    fields = {}
    declared = {}
    for name, value in facts.items():
        if value in (None, "", [], {}):
            continue
        fields[name] = _text(value)
        declared[name] = IRRELEVANT if name in system else deviation
    return HarnessFacts(fields, declared)


def _values(calls: Any) -> list[Any]:
    """Return the items of a list, or the values of an object, or [] for anything else.

    The harness has written calls and their arguments as objects since version 0.4.3, and as lists
    before.
    """
    if isinstance(calls, dict):
        return list(calls.values())
    return calls if isinstance(calls, list) else []


def _without_defaults(results: Mapping[str, Any], task: str) -> Json:
    """Return the results without flags that are off, and with "n-shot" for this task only."""
    values = {name: value for name, value in results.items() if value not in (False, 0)}
    examples = object_or_empty(results.get("n-shot")).get(task)
    values["n-shot"] = examples or None
    return values


def _add_signed(
    facts: dict[str, Any], system: set[str], section: str, values: Mapping[str, Any], prefix: str
) -> None:
    """Add the signed, unofficial values of a section to ``facts``.

    Args:
        facts: gets the values, by their names in signatures.
        system: gets the names of the values that describe the evaluated system.
        section: the section of the file of results, a key of ``TABLES``.
        values: the content of the section.
        prefix: what the names in signatures begin with.
    """
    _, table = TABLES[section]
    official = CONTENT[section].get("official", {})
    for name, value in values.items():
        treatment = table.get(name, (SIGNED, ""))[0]
        if treatment == UNSIGNED or value is None or value in official.get(name, ()):
            continue
        field = prefix + name.replace("-", "_")
        if section == "results":
            # The harness writes the digest of a text, such as the system prompt, as NAME_sha.
            field = field.removesuffix("_sha")
        if treatment == SYSTEM:
            system.add(field)
        if name not in table:
            # An argument that is not in the table could be a secret, so only its digest is signed.
            value = digest([str(value)])
        facts[field] = value


def _model_arguments(arguments: Any) -> Json:
    """Return ``--model_args`` by name. The harness writes them as text ("a=1,b=2") or an object."""
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str):
        return {}
    values: Json = {}
    for pair in arguments.split(","):
        name, _, value = pair.partition("=")
        values[name.strip()] = value
    # An argument that is off equals an absent one. It is removed only now, because if a name is
    # repeated, the last value counts.
    for name, value in list(values.items()):
        if value.lower() in ("false", "none", ""):
            del values[name]
    return values


def _signed_by_task(metadata: Mapping[str, Any]) -> Json:
    """Return the fields of signatures that the task itself wrote, such as the prompt's digest."""
    facts: Json = {}
    for line in object_or_empty(metadata.get("signatures")).values():
        try:
            facts |= parse(str(line))[1]
        except InputError as error:
            raise InputError(
                f"metadata.signatures of the task in results_*.json: {error}"
            ) from None
    # These three are signed from the file and its results, not from what the task wrote.
    for name in (ASKED, VERSION, "model"):
        facts.pop(name, None)
    return facts


def _calls(rows: Iterable[Row]) -> Iterator[tuple[Row, Any, Json]]:
    """Yield the document, the context and the options of each call that the samples record."""
    for row in rows:
        doc = object_or_empty(row.get("doc"))
        for call in _values(row.get("arguments")):
            arguments = _values(call)
            # Calls that ask for the likelihood of a text have two texts and no options.
            if len(arguments) == 2 and isinstance(arguments[1], dict):
                context, options = arguments
                yield doc, context, options


def _options_of_calls(rows: Sequence[Row]) -> Json:
    """Return the generation options of the calls. One that differs between calls is "mixed"."""
    counts_by_option: dict[str, Counter[str]] = {}
    total = 0
    for _, _, options in _calls(rows):
        total += 1
        for name, value in options.items():
            if name in UNSIGNED_OPTIONS or (name == "until" and only_special_tokens(value)):
                continue
            counts = counts_by_option.setdefault(OPTION_NAMES.get(name, name), Counter())
            counts[_text(value)] += 1
    facts = {}
    for option, counts in counts_by_option.items():
        # Some calls may have been sent without an option that others had.
        if missing := total - counts.total():
            counts[NOT_RECORDED] = missing
        facts[option] = common_value(counts)
    return facts


def _differing_prompts(
    benchmark: Benchmark,
    questions: Sequence[Question],
    rows: Sequence[Row],
    metadata: Mapping[str, Any],
    in_template: bool,
) -> Json:
    """Return the field ``asked_text``, or {} if all prompts are the benchmark's.

    The value is the number of prompts that differ, or the reason why the prompts could not be
    compared.
    """
    contexts = [(str(document_id(doc)), context) for doc, context, _ in _calls(rows)]
    if not contexts:
        return {"asked_text": "not recorded"}
    prefix = f"{benchmark.name}_"
    arguments = {}
    for name, value in metadata.items():
        if name.startswith(prefix):
            arguments[name.removeprefix(prefix)] = value
    row_of = {question.id: question.row for question in questions}
    differing = 0
    try:
        asking = benchmark.asking(**arguments)
        for id, context in contexts:
            # Take the dataset's row: if the log was edited, its document may have been edited, too.
            row = row_of.get(id)
            if row is None or not _is_sent_as(asking.messages(row), context, in_template):
                differing += 1
    except (QabenchError, TypeError) as error:
        # The prompts are not available, or another version of qabench wrote the arguments.
        return {"asked_text": f"could not be compared ({error})"}
    if not differing:
        return {}
    return {"asked_text": f"{differing} of {len(contexts)} prompts are not the task's"}


def document_id(doc: Mapping[str, Any]) -> Any:
    """Return the id of a document of the harness. Some datasets name it "index"."""
    if "id" in doc:
        return doc["id"]
    return doc.get("index")


def _is_sent_as(messages: Messages, context: Any, in_template: bool) -> bool:
    """Return whether the context of a call is these messages, as the JSON of a chat or as text.

    A chat template is a separate deviation, so in a template, only the texts and their order are
    checked.
    """
    if not isinstance(context, str):
        return False
    expected = [(role, text.strip()) for role, text in messages]
    try:
        chat = json.loads(context)
    except ValueError:
        chat = None
    if isinstance(chat, list):
        sent = []
        for message in chat:
            if isinstance(message, dict):
                sent.append((message.get("role"), str(message.get("content")).strip()))
        return sent == expected
    if in_template:
        start = 0
        for _, text in expected:
            start = context.find(text, start)
            if start < 0:
                return False
        return True
    return context == "\n\n".join(text for _, text in messages)


def _text(value: Any) -> str:
    """Return a value as text, in the same form for equal objects."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
