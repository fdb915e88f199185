"""The signature fields of a run, read from Inspect's log.

``qabench.adapters.inspect_ai.facts`` declares what each field of the log means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from qabench.adapters.inspect_ai.facts import (
    ASKED_WITH,
    EVAL_CONFIG,
    EVAL_SPEC,
    GENERATE_CONFIG,
    MODEL_ARGS,
)
from qabench.benchmarks import Benchmark, Setting
from qabench.benchmarks import benchmark as benchmark_of
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.harness_fields import SIGNED, SYSTEM, signed
from qabench.evaluation.records import AGENT
from qabench.evaluation.signature import (
    IRRELEVANT,
    Declaration,
    Field,
    asked_field,
    digest,
    is_mixed,
    parse,
    signature_name,
    with_fields,
)
from qabench.io.redaction import printable
from qabench.runs.asked import with_asked_texts, with_edited_answers
from qabench.runs.log_types import NO_MODEL, Log

# The prefix of the fields for a provider's arguments.
MODEL_ARG = "model_arg_"
# The maximum number of characters of an argument in a signature.
LONGEST = 80
SOLVER = Field((), "solver: {value} instead of the authors' prompts and protocol", absent=True)
_ADDED = Field((), "{name}: {value}, which the setting does not have", absent=True)
_ARGUMENTS, _ORIGINS = ("prompt", "protocol"), ("official", "qabench")
# The fields of a log's metadata that its signatures also have.
_REQUIRED = ("benchmark", "config", "setting", "data")


def facts_of(log: Log) -> Json:
    """Return the fields of a log that the scores depend on, by their name in signatures."""
    facts = signed(log.model_generation | log.generation, GENERATE_CONFIG)
    facts |= signed(log.run_options, EVAL_CONFIG)
    # Provider arguments are signed one by one below.
    without_arguments = {name: value for name, value in log.spec.items() if name != "model_args"}
    facts |= signed(without_arguments, EVAL_SPEC)
    arguments = {name.replace("-", "_"): value for name, value in log.model_args.items()}
    for name, value in signed(arguments, MODEL_ARGS).items():
        if name in MODEL_ARGS:
            facts[MODEL_ARG + name] = _shown(value)
        else:
            # The text of an argument that is not in the table could be a secret.
            facts[MODEL_ARG + name] = digest([str(value)])
    return facts


def _shown(value: Any) -> Any:
    """Return an argument as signatures show it: a path without folders, a long text as a digest."""
    if not isinstance(value, str):
        return value
    if len(value) > LONGEST:
        return digest([value])
    if value.startswith(("/", "~", ".")):
        # The parent folders only describe the machine of the run.
        return value.rstrip("/").rpartition("/")[2]
    return value


def with_facts(evaluation: Evaluation, log: Log) -> Evaluation:
    """Add to the signatures what a log says about its run and its questions.

    Raises:
        InputError: the log's metadata contradicts its task or its signatures.
    """
    # Sign the options of the run.
    setting = _setting_of(log, evaluation.path)
    benchmark = benchmark_of(evaluation.benchmark)
    facts = facts_of(log)
    logs = benchmark.logs()
    questions = asked_field(log.listed_ids)
    signatures = {}
    for group, line in evaluation.signatures.items():
        try:
            fields = parse(line)[1]
        except InputError:
            # An edited signature is reported as a deviation.
            signatures[group] = line
            continue
        _check_metadata(log, fields, evaluation.path)
        _check_arguments(log, fields, evaluation.path)
        facts_of_group = {}
        if group not in logs.groups_without_model:
            # A benchmark may use its own name for a generation option in signatures.
            own_names = {}
            for name, option in logs.generation_fields.items():
                if name in fields:
                    own_names[option] = name
            for option, value in facts.items():
                facts_of_group[own_names.get(option, option)] = value
        signatures[group] = with_fields(line, **facts_of_group, asked=questions)
    declarations = {}
    for name, declaration in evaluation.declarations.items():
        declarations[name] = with_facts_declared(declaration, facts)
    evaluation = replace(evaluation, signatures=signatures, declarations=declarations)

    # Sign how the questions were asked.
    if solver := _solver_of(log, setting):
        # A custom solver may send any prompt, so there is no text to compare with.
        return with_solver(evaluation, solver)
    evaluation = _requiring_run_fields(evaluation, benchmark, log)
    return with_edited_answers(with_asked_texts(evaluation, setting, log.task_args))


def _requiring_run_fields(evaluation: Evaluation, benchmark: Benchmark, log: Log) -> Evaluation:
    """Require the fields about how a run asked its questions. Only predictions may lack them."""
    asked_with = log.metadata.get(ASKED_WITH)
    required = {"prompt", *(asked_with if isinstance(asked_with, dict) else ())}
    declarations = dict(evaluation.declarations)
    for group, line in evaluation.signatures.items():
        if group in benchmark.logs().groups_without_model:
            continue
        with suppress(InputError):
            name = signature_name(line)
            fields = dict(declarations.get(name, {}))
            for field in required & fields.keys():
                # An irrelevant field may be absent.
                if fields[field].official is not None:
                    fields[field] = replace(fields[field], absent=False)
            declarations[name] = fields
    return replace(evaluation, declarations=declarations)


def with_facts_declared(declaration: Declaration, names: Iterable[str]) -> Declaration:
    """Return a benchmark's declaration with the fields that Inspect's log adds to signatures.

    Args:
        declaration: the benchmark's own fields, which are kept.
        names: the fields of the log, or of a signature.
    """
    added = {}
    for name in names:
        if name not in GENERATE_CONFIG:
            added[name] = IRRELEVANT if _is_of_system(name) else _ADDED
    return {**added, **declaration}


def _is_of_system(name: str) -> bool:
    return MODEL_ARGS.get(name.removeprefix(MODEL_ARG), (SIGNED,))[0] == SYSTEM


def setting_of(benchmark: Benchmark, task: str, arguments: Mapping[str, Any]) -> Setting | None:
    """Return the setting of a task, or None. If several have the task, its arguments decide."""
    task = task.rpartition("/")[2]
    settings = [setting for setting in benchmark.settings if setting.task == task]
    for setting in settings:
        if setting.arguments.items() <= arguments.items():
            return setting
    return settings[0] if settings else None


def _setting_of(log: Log, path: str) -> Setting:
    """Return the setting of a log's task. Raises InputError if the metadata has another one."""
    benchmark = benchmark_of(log.metadata["benchmark"])
    setting = setting_of(benchmark, log.task, log.task_args)
    if setting is None:
        raise InputError(
            f"{path} is the log of {printable(log.task)!r}, which is not a task of {benchmark.title}"
        )
    name = log.metadata["setting"]
    # Some settings are named with an option, such as "rag bm25".
    if name != setting.name and not name.startswith(f"{setting.name} "):
        raise _contradiction(path, "setting", name, setting.name)
    return setting


def _check_metadata(log: Log, fields: Mapping[str, str], path: str) -> None:
    """Raise InputError if the metadata of a log contradicts the signatures."""
    for name in _REQUIRED:
        if name in fields and name in log.metadata and fields[name] != log.metadata[name]:
            raise _contradiction(path, name, log.metadata[name], fields[name])


def _check_arguments(log: Log, fields: Mapping[str, str], path: str) -> None:
    """Raise InputError if the prompt or the protocol of a call contradicts the signatures."""
    calls = [log.task_args, *(step.params for step in log.steps)]
    for arguments in calls:
        for name in _ARGUMENTS:
            value = arguments.get(name)
            signed_value = fields.get(name)
            if not isinstance(value, str) or value not in _ORIGINS or signed_value is None:
                continue
            if not is_mixed(signed_value) and signed_value.partition("-")[0] != value:
                raise _contradiction(path, f"argument {name}", value, signed_value, "call")


def _contradiction(
    path: str, name: str, of_metadata: str, of_run: str, where: str = "metadata"
) -> InputError:
    """Return the error for a log whose metadata or calls contradict the rest of the log."""
    return InputError(
        f"{path} contradicts itself: its {where} has the {name} {printable(str(of_metadata))!r}, its run "
        f"{printable(of_run)!r}; it was edited, so use the log that Inspect wrote"
    )


def _solver_of(log: Log, setting: Setting) -> str:
    """Return the name of a solver that is not the setting's own, or "" for the setting's own."""
    if named := log.metadata.get("solver"):
        return str(named)
    names = [step.solver for step in log.steps]
    if log.solver is None and tuple(names) == setting.solver and log.finish is None:
        return ""
    calls = [[step.params for step in log.steps], log.solver_args, log.finish]
    return f"{'+'.join(names) or 'unknown'}-{digest([str(calls)])}"


def with_solver(evaluation: Evaluation, solver: str) -> Evaluation:
    """Sign a custom solver or function, whose results have no official setting."""
    model = solver if evaluation.model == NO_MODEL else evaluation.model
    signed = evaluation.signed({"solver": SOLVER}, solver=solver)
    return replace(signed, model=model, setting=AGENT)
