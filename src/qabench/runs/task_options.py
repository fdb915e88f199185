"""The options of a task (``-T NAME=VALUE``), from the signature and the docstring of its function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from docstring_parser import parse

from qabench.benchmarks import Benchmark, Setting
from qabench.errors import unknown_name

Arguments = Mapping[str, Any] | None
"""Arguments of a task or of a provider, by name."""
# References to code in docstrings, which would not help readers of a command's help.
_POINTER = re.compile(r"[;.]? [Ss]ee ``[\w.]+``")


@dataclass(frozen=True, slots=True)
class TaskOption:
    """An argument of a task: name, default, description, and the texts that its type allows."""

    name: str
    default: Any
    about: str
    choices: tuple[str, ...] = ()


def task_options(benchmark: Benchmark, setting: Setting) -> list[TaskOption]:
    """Return the options of a setting's task that have an effect and that the setting leaves open."""
    # Read the undecorated function, because reading an Inspect task would import Inspect.
    function = inspect.unwrap(benchmark.tasks()[setting.task])
    descriptions, types = _arguments(function), get_type_hints(function)
    options = []
    for name, parameter in inspect.signature(function).parameters.items():
        # The setting has decided these, or its way of asking does not use them.
        if name in setting.arguments or name in setting.without:
            continue
        choices = tuple(_choices(types[name]))
        options.append(TaskOption(name, parameter.default, descriptions.get(name, ""), choices))
    return options


def check_task_options(
    benchmark: Benchmark, setting: Setting, arguments: Mapping[str, Any]
) -> None:
    """Raise InputError, with the allowed names, for an argument that the setting does not have."""
    allowed = [option.name for option in task_options(benchmark, setting)]
    for name in arguments:
        if name not in allowed:
            raise unknown_name(f"{benchmark.title}, {setting.name}, has no option", name, allowed)


def _choices(annotation: Any) -> Iterator[str]:
    """Yield the values of the ``Literal`` types in an annotation."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for part in get_args(annotation):
            yield from _choices(part)


def _arguments(function: Any) -> dict[str, str]:
    """Return the arguments' descriptions for the command line."""
    about = {}
    for parameter in parse(function.__doc__ or "").params:
        text = " ".join((parameter.description or "").split())
        about[parameter.arg_name] = _POINTER.sub("", text).replace("``", "")
    return about
