"""Checks of what a benchmark from outside of this package declares, before anything uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from qabench.benchmarks.declared import Need, Option, Setting
from qabench.data.pinned import HubDataset
from qabench.errors import InputError, check_name
from qabench.evaluation.score_spec import ScoreSpec

# The types of the attributes of a benchmark.
SINGLE_VALUES: Mapping[str, Any] = {
    **dict.fromkeys(("name", "title", "prompt", "part", "planned_reply"), str),
    "data": HubDataset | None,
    "failures_official": bool,
}
SEQUENCES: Mapping[str, type] = {
    "settings": Setting,
    "scores": ScoreSpec,
    "options": Option,
    "needs": Need,
    **dict.fromkeys(("headline", "default_groups", "prediction_fields"), str),
    **dict.fromkeys(("answer_fields", "id_fields", "commands"), str),
}
MAPPINGS = ("groups", "groupings", "official")
# The attributes of the object that ``logs()`` returns.
LOGS_SEQUENCES = ("model_fields", "groups_without_model")
LOGS_MAPPINGS = ("kinds", "resume_hints", "generation_fields")

# Former attributes and methods of ``Benchmark`` -> their class, their new name, and the method of
# ``Benchmark`` that returns an object of this class.
MOVED = {
    "statistics": ("Numbers", "tables", "numbers"),
    "log_kinds": ("Logs", "kinds", "logs"),
    "report_sections": ("Report", "sections", "report"),
    "official_shape": ("Report", "official_shape", "report"),
}
for _name in ("counts", "counted_by", "published", "reproduce"):
    MOVED[_name] = ("Numbers", _name, "numbers")
for _name in (
    *("resume_hints", "model_fields", "generation_fields", "groups_without_model"),
    *("prediction", "rescored_prediction", "rescoring_options"),
    *("first_messages", "scored_replies", "conditions_of_model"),
):
    MOVED[_name] = ("Logs", _name, "logs")


def check_declared(benchmark: Any, where: object) -> None:
    """Check the attributes' names and types, and the groups of scores that they name.

    Raises:
        InputError: an attribute is wrong. The message begins with ``where``.
    """
    for name, (owner, new_name, method) in MOVED.items():
        if hasattr(benchmark, name):
            raise InputError(
                f"{where}: Benchmark.{name} is now {owner}.{new_name} of qabench.benchmarks.{method}: "
                f"move it to a subclass of {owner}, which the method {method}() of the benchmark returns"
            )
    for name, kind in SINGLE_VALUES.items():
        value = getattr(benchmark, name, None)
        if not isinstance(value, kind):
            raise InputError(f"{where}: {name} is {value!r:.60}; allowed: {_allowed(kind)}")
    for name, kind in SEQUENCES.items():
        _check_sequence(benchmark, name, kind, where)
    _check_mappings(benchmark, MAPPINGS, where)
    groups_of_scores = [spec.group for spec in benchmark.scores]
    for group in [*groups_of_scores, *benchmark.default_groups]:
        check_name(f"{where}: unknown group", group, benchmark.groups)
    logs, numbers = benchmark.logs(), benchmark.numbers()
    for name in LOGS_SEQUENCES:
        _check_sequence(logs, name, str, f"{where}: Logs")
    _check_mappings(logs, LOGS_MAPPINGS, f"{where}: Logs")
    if not isinstance(numbers.counted_by, str):
        raise InputError(
            f"{where}: Numbers: counted_by is {numbers.counted_by!r:.60}; allowed: a string"
        )


def check_answers_public(benchmark: Any, task_args: Mapping[str, Any], generate_only: bool) -> None:
    """Raise InputError if the answers cannot be scored, or if ``generate_only`` is not needed.

    This is checked before the first call of the model. With ``generate_only``, questions whose
    answers are not public can be asked.
    """
    reason = benchmark.why_unscored(task_args.get("config"))
    if task_args.get("questions"):
        # Custom questions have not been read yet, so it is unknown whether they have answers.
        reason = None
    if reason and not generate_only:
        raise InputError(
            f"no score can be computed: {reason}. Nothing was asked. Add --generate-only (in Python "
            "generate_only=True) to ask the questions"
        )
    if generate_only and not reason:
        raise InputError(
            "--generate-only is for questions whose answers are not public, and these are scored; leave it out"
        )


def _check_mappings(declared: Any, names: Sequence[str], where: object) -> None:
    for name in names:
        value = getattr(declared, name, None)
        if not isinstance(value, Mapping):
            raise InputError(f"{where}: {name} is {value!r:.60}; allowed: a dictionary")


def _check_sequence(declared: Any, name: str, kind: type, where: object) -> None:
    elements: Any = getattr(declared, name, None)
    is_sequence = isinstance(elements, list | tuple)
    if not is_sequence or not all(isinstance(element, kind) for element in elements):
        allowed = f"a tuple or list with elements of the type {kind.__name__}"
        raise InputError(f"{where}: {name} is {elements!r:.60}; allowed: {allowed}")
    for element in elements:
        _check_texts(element, f"{where}: {name}")


def _check_texts(element: object, where: str) -> None:
    """Raise InputError if a field of a declared object has the type str, but is not a string."""
    if not is_dataclass(element):
        return
    for field in fields(element):
        value = getattr(element, field.name)
        # With ``from __future__ import annotations``, ``field.type`` is a string.
        if field.type == "str" and not isinstance(value, str):
            raise InputError(f"{where}: the field {field.name} is {value!r:.60}; allowed: a string")


def _allowed(kind: Any) -> str:
    """Return the name of a type, for an error."""
    return {str: "a string", bool: "True or False"}.get(kind, "a HubDataset or None")
