"""The options that a metric's page offers, from the signature and the documentation of the metric itself.

A page may be open to everybody. So it offers what is harmless to choose: truth values, numbers, and texts out of a few
that the metric documents. What names servers, keys, models or files is set where the page runs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qabench.errors import InputError

# What a page passes on without asking: a stranger shall not spend the money of who runs it without an end.
FIXED: Mapping[str, Any] = {"judge": {"max_calls": 100}}
COLUMN = re.compile(r"`(\w+)` column")
CHOICE = re.compile(r'"([\w.-]+)"')


@dataclass(frozen=True, slots=True)
class Option:
    """An option and what it may be.

    Attributes:
        kind: "bool", "int", "ints" (one or several) or "choice".
        choices: for the last.
    """

    name: str
    kind: str
    default: Any
    about: str
    choices: tuple[str, ...] = ()

    def value(self, given: Any) -> Any:
        """What the metric gets for what a person chose or typed.

        Raises:
            InputError: that is not one of the option's values.
        """
        if self.kind == "bool":
            return bool(given)
        if self.kind == "choice":
            if given not in self.choices:
                raise InputError(f"{self.name} is {given!r}; allowed: {', '.join(self.choices)}")
            return given
        try:
            numbers = [int(part) for part in str(given).split(",")] if self.kind == "ints" else [int(given)]
        except (TypeError, ValueError):
            what = "a whole number, or several with commas between" if self.kind == "ints" else "a whole number"
            raise InputError(f"{self.name} is {given!r}; give {what}") from None
        return numbers if len(numbers) > 1 else numbers[0]


@dataclass(frozen=True, slots=True)
class Interface:
    """What a metric takes.

    Attributes:
        fields: the field of a dataset's row for "references" and each further column, such as {"domains": "domain"}.
        columns: the further columns, with what is said of them. takes_ids: whether there are names for questions.
        options: those that a page offers. fixed: those that it sets. left_out: those that are set where it runs.
    """

    fields: Mapping[str, str]
    columns: Mapping[str, str]
    takes_ids: bool
    options: tuple[Option, ...]
    fixed: Mapping[str, Any]
    left_out: tuple[str, ...]
    about: Mapping[str, str]


def interface(metric: Any) -> Interface:
    """What an ``evaluate`` metric of this package takes, by its ``_compute`` and its ``inputs_description``."""
    about = _documented(metric.inputs_description)
    fields = {name: found[1] for name, text in about.items() if (found := COLUMN.search(text))}
    parameters = inspect.signature(metric._compute).parameters
    own = {name: p for name, p in parameters.items() if name not in ("predictions", "references", "ids")}
    columns = {name: about[name] for name in own if name in fields}
    options = {name: _option(p, about.get(name, "")) for name, p in own.items() if name not in columns}
    return Interface(
        fields=fields,
        columns=columns,
        takes_ids="ids" in parameters,
        options=tuple(option for option in options.values() if option),
        fixed={name: value for name, value in FIXED.items() if name in parameters},
        left_out=tuple(name for name, option in options.items() if not option),
        about=about,
    )


def _option(parameter: inspect.Parameter, about: str) -> Option | None:
    name, default, annotation = parameter.name, parameter.default, str(parameter.annotation)
    if isinstance(default, bool):
        return Option(name, "bool", default, about)
    if isinstance(default, int):
        return Option(name, "ints" if "list" in annotation else "int", default, about)
    choices = tuple(dict.fromkeys([default, *CHOICE.findall(about)]))
    if isinstance(default, str) and len(choices) > 1:
        return Option(name, "choice", default, about, choices)
    return None


def _documented(description: str) -> dict[str, str]:
    """What the part ``Args:`` of a description says of each argument."""
    part = description.partition("Args:\n")[2].partition("\nReturns:")[0]
    found: dict[str, str] = {}
    for line in part.splitlines():
        if named := re.match(r" {4}(\w+): (.*)", line):
            name = named[1]
            found[name] = named[2]
        elif found:
            found[name] += f" {line.strip()}"
    return found
