"""The arguments of a benchmark's Inspect tasks (``-T NAME=VALUE``): lists, checks and completes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qabench.benchmarks import Benchmark, Setting
from qabench.errors import InputError, MissingExtra


@dataclass(frozen=True, slots=True)
class TaskOption:
    """An argument of a task: its name, its default, and its description in the task's docstring."""

    name: str
    default: Any
    about: str


def task_function(setting: Setting) -> Any:
    """The function that creates the task of a setting. Raises MissingExtra without inspect_ai."""
    try:
        from qabench import inspect_tasks
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "inspect_ai":
            raise
        raise MissingExtra('running models needs inspect_ai: pip install "qabench[run]"') from None
    return getattr(inspect_tasks, setting.task)


def task_options(setting: Setting) -> list[TaskOption]:
    """The options of a setting's task, without those that make the setting or have no effect in it."""
    function = inspect.unwrap(task_function(setting))
    about = _arguments(function)
    return [
        TaskOption(name, parameter.default, about.get(name, ""))
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in setting.arguments and name not in setting.without
    ]


def check_task_options(found: Benchmark, setting: Setting, given: Mapping[str, Any]) -> None:
    """Raises InputError, with the allowed names, for an argument that the setting does not have."""
    allowed = [option.name for option in task_options(setting)]
    if unknown := [name for name in given if name not in allowed]:
        raise InputError(
            f"{found.title}, {setting.name}, has no option {unknown[0]!r}; allowed with -T: {', '.join(allowed)}"
        )


_SAME_AS = re.compile(r"see ``(\w+)``")
_POINTER = re.compile(r"[;.]? see ``[\w.]+``")  # of use to readers of the code only


def _arguments(function: Any) -> dict[str, str]:
    """The arguments' descriptions for the command line: those of another task that it refers to are filled in."""
    about = _documented(function.__doc__ or "")
    for name, text in about.items():
        if (same := _SAME_AS.match(text)) and same[1] in function.__globals__:
            other = _arguments(inspect.unwrap(function.__globals__[same[1]]))[name]
            text = other.removesuffix(".") + text[same.end() :]
        about[name] = _POINTER.sub("", text).replace("``", "")
    return about


def _documented(docstring: str) -> dict[str, str]:
    """The descriptions in the section "Args:" of a docstring; "a, b: text" describes both."""
    text = inspect.cleandoc(docstring)
    found = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", text, re.S | re.M)
    about: dict[str, str] = {}
    names: list[str] = []
    for line in found[1].splitlines() if found else ():
        head = re.match(r"    (\w+(?:, \w+)*): (.*)", line)
        if head:
            names = head[1].split(", ")
            about |= dict.fromkeys(names, head[2])
        elif line.strip():
            about |= {name: f"{about[name]} {line.strip()}" for name in names}
    return about
