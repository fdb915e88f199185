"""What happened in a run, from the fields of Inspect's log, for its signatures (see ``qabench.tasks.facts``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from qabench.benchmarks import Benchmark, Setting, benchmark
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.evaluation import Evaluation
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
from qabench.io.tables import printable
from qabench.runs.asked import with_asked_texts, with_edited_answers
from qabench.runs.plain import values_of
from qabench.tasks.facts import (
    ASKED_WITH,
    EVAL_CONFIG,
    EVAL_SPEC,
    GENERATE_CONFIG,
    MODEL_ARGS,
    SIGNED,
    SYSTEM,
    signed,
)

NO_MODEL = "none/none"  # Inspect's name where a solver answers
MODEL_ARG = "model_arg_"  # before the names of a provider's arguments
LONGEST = 80  # characters of an argument's text in a signature
SOLVER = Field((), "solver: {value} instead of the authors' prompts and protocol", absent=True)
_ADDED = Field((), "{name}: {value}, which the setting does not have", absent=True)
_ARGUMENTS, _ORIGINS = ("prompt", "protocol"), ("official", "qabench")
# fields of the metadata that signatures also have
_REQUIRED = ("benchmark", "config", "setting", "data")


def facts_of(log: Any) -> Json:
    """Return the fields of a log that its run's scores depend on, by their name in signatures."""
    spec = log.eval
    generation = values_of(spec.model_generate_config) | values_of(log.plan.config)
    facts = signed(generation, GENERATE_CONFIG)
    facts |= signed(values_of(spec.config), EVAL_CONFIG)
    fields = values_of(spec)
    del fields["model_args"]
    facts |= signed(fields, EVAL_SPEC)
    arguments = {name.replace("-", "_"): value for name, value in spec.model_args.items()}
    for name, value in signed(arguments, MODEL_ARGS).items():
        # The text of an argument that is not in the table could be a secret.
        facts[MODEL_ARG + name] = _shown(value) if name in MODEL_ARGS else digest([str(value)])
    return facts


def _shown(value: Any) -> Any:
    """Return the name of a file or folder without its place, and a digest of a long text, such as a template."""
    if not isinstance(value, str):
        return value
    if len(value) > LONGEST:
        return digest([value])
    return value.rstrip("/").rpartition("/")[2] if value.startswith(("/", "~", ".")) else value


def with_facts(evaluation: Evaluation, log: Any) -> Evaluation:
    """Return the evaluation with what its log says about the run and its questions in the signatures.

    Raises:
        InputError: the log's metadata contradicts its task or its signatures.
    """
    setting = _setting_of(log, evaluation.path)
    scorer, facts = benchmark(evaluation.benchmark), facts_of(log)
    questions = asked_field(map(str, log.eval.dataset.sample_ids or ()))
    signatures = {}
    for group, line in evaluation.signatures.items():
        try:
            fields = parse(line)[1]
        except InputError:  # an edited one, which is a deviation
            signatures[group] = line
            continue
        _check_metadata(log, fields, evaluation.path)
        _check_arguments(log, fields, evaluation.path)
        renamed = {option: name for name, option in scorer.generation_fields.items() if name in fields}
        happened = {renamed.get(name, name): value for name, value in facts.items()}
        of_model = {} if group in scorer.groups_without_model else happened
        signatures[group] = with_fields(line, **of_model, asked=questions)
    declarations = {
        name: with_facts_declared(fields, facts) for name, fields in evaluation.declarations.items()
    }
    evaluation = replace(evaluation, signatures=signatures, declarations=declarations)
    if solver := _solver_of(log, setting):
        return with_solver(evaluation, solver)
    evaluation = _requiring_run_fields(evaluation, scorer, log)
    return with_edited_answers(with_asked_texts(evaluation, setting, log.eval.task_args))


def _requiring_run_fields(evaluation: Evaluation, scorer: Benchmark, log: Any) -> Evaluation:
    """Return the evaluation of a run, whose signatures must have how it asked: only files may lack these fields."""
    asked_with = log.metadata.get(ASKED_WITH)
    required = {"prompt", *(asked_with if isinstance(asked_with, dict) else ())}
    declarations = dict(evaluation.declarations)
    for group, line in evaluation.signatures.items():
        if group in scorer.groups_without_model:
            continue
        with suppress(InputError):
            name = signature_name(line)
            fields = dict(declarations.get(name, {}))
            for field in required & fields.keys():
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


def setting_of(scorer: Benchmark, task: str, arguments: Mapping[str, Any]) -> Setting | None:
    """Return the setting of a task: of several, the one that the task's arguments make. None for another task."""
    task = task.rpartition("/")[2]
    settings = [setting for setting in scorer.settings if setting.task == task]
    fitting = [each for each in settings if each.arguments.items() <= arguments.items()]
    return next(iter(fitting or settings), None)


def _setting_of(log: Any, path: str) -> Setting:
    """Return the setting of a log's task. Raises InputError if the metadata has another one."""
    spec, scorer = log.eval, benchmark(log.metadata["benchmark"])
    setting = setting_of(scorer, spec.task, spec.task_args)
    if setting is None:
        raise InputError(
            f"{path} is the log of {printable(spec.task)!r}, which is not a task of {scorer.title}"
        )
    name = log.metadata["setting"]
    # Some settings are named with an option, such as "rag bm25".
    if name != setting.name and not name.startswith(f"{setting.name} "):
        raise _contradiction(path, "setting", name, setting.name)
    return setting


def _check_metadata(log: Any, fields: Mapping[str, str], path: str) -> None:
    for name in _REQUIRED:
        if name in fields and name in log.metadata and fields[name] != log.metadata[name]:
            raise _contradiction(path, name, log.metadata[name], fields[name])


def _check_arguments(log: Any, fields: Mapping[str, str], path: str) -> None:
    """Raise InputError if the task or its solvers were called with another prompt or protocol than they signed."""
    calls = [log.eval.task_args, *(step.params for step in log.plan.steps)]
    for arguments in calls:
        for name in _ARGUMENTS:
            value = (arguments or {}).get(name)
            signed_value = fields.get(name)
            if not isinstance(value, str) or value not in _ORIGINS or signed_value is None:
                continue
            if not is_mixed(signed_value) and signed_value.partition("-")[0] != value:
                raise _contradiction(path, f"argument {name}", value, signed_value, "call")


def _contradiction(
    path: str, name: str, of_metadata: str, of_run: str, where: str = "metadata"
) -> InputError:
    return InputError(
        f"{path} contradicts itself: its {where} has the {name} {printable(str(of_metadata))!r}, its run "
        f"{printable(of_run)!r}; it was edited, so use the log that Inspect wrote"
    )


def _solver_of(log: Any, setting: Setting) -> str:
    """Return the name of a solver that is not the setting's own, or "" for the setting's own."""
    spec, steps = log.eval, log.plan.steps
    if named := log.metadata.get("solver"):
        return str(named)
    names = [step.solver for step in steps]
    if spec.solver is None and tuple(names) == setting.solver and log.plan.finish is None:
        return ""
    what = [
        [step.params for step in steps],
        spec.solver_args,
        log.plan.finish and log.plan.finish.solver,
    ]
    return f"{'+'.join(names) or 'unknown'}-{digest([str(what)])}"


def with_solver(evaluation: Evaluation, solver: str) -> Evaluation:
    """Return the evaluation of a custom solver or function: its signatures name it, and it has no official setting."""
    model = solver if evaluation.model == NO_MODEL else evaluation.model
    signed = evaluation.signed({"solver": SOLVER}, solver=solver)
    return replace(signed, model=model, setting=AGENT)
