"""The options of a metric's page, from the signature and the documentation of the metric.

A page may be public, so it offers only harmless options: booleans, numbers, and strings with documented choices. The
host of the page sets the options for servers, keys, models and files.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qabench.errors import InputError

# Values that a page always passes, to limit the costs of its host.
FIXED: Mapping[str, Any] = {"judge": {"max_calls": 100}}
COLUMN = re.compile(r"`(\w+)` column")
CHOICE = re.compile(r'"([\w.-]+)"')


@dataclass(frozen=True, slots=True)
class Option:
    """An option and its type.

    Attributes:
        kind: "bool", "int", "ints" (one or several) or "choice".
        choices: the choices of a "choice".
    """

    name: str
    kind: str
    default: Any
    about: str
    choices: tuple[str, ...] = ()

    def value(self, given: Any) -> Any:
        """The value for the metric from a user's input.

        Raises:
            InputError: the input is not a value of the option.
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
            what = "an integer, or several separated by commas" if self.kind == "ints" else "an integer"
            raise InputError(f"{self.name} is {given!r}; it must be {what}") from None
        return numbers if len(numbers) > 1 else numbers[0]


@dataclass(frozen=True, slots=True)
class Interface:
    """The inputs of a metric.

    Attributes:
        fields: the field of a dataset's row for "references" and each further column, such as {"domains": "domain"}.
        columns: the further columns, with their documentation.
        takes_ids: whether the metric has an argument for ids.
        options: the options that a page offers.
        fixed: the options that a page sets.
        left_out: the options that are set by the host.
    """

    fields: Mapping[str, str]
    columns: Mapping[str, str]
    takes_ids: bool
    options: tuple[Option, ...]
    fixed: Mapping[str, Any]
    left_out: tuple[str, ...]
    about: Mapping[str, str]


def interface(metric: Any) -> Interface:
    """The inputs of an ``evaluate`` metric of this package, from its ``_compute`` and its ``inputs_description``."""
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
    """The documentation of each argument in the section ``Args:`` of a description."""
    part = description.partition("Args:\n")[2].partition("\nReturns:")[0]
    found: dict[str, str] = {}
    for line in part.splitlines():
        if named := re.match(r" {4}(\w+): (.*)", line):
            name = named[1]
            found[name] = named[2]
        elif found:
            found[name] += f" {line.strip()}"
    return found
