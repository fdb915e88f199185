"""Classes for what a benchmark declares: settings, options, needs and leaderboards."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

from qabench.data.sources import available
from qabench.loading_scripts import dataset_table

# The name of the solver that asks a model once, with the messages of ``asking``.
ASKED_ONCE = ("qabench/ask",)


@dataclass(frozen=True, slots=True)
class Setting:
    """A protocol by which a model is prompted.

    Attributes:
        name: the setting's name, such as "closed-book".
        task: the name of the Inspect task.
        about: what the model is given, in one sentence.
        arguments: the arguments of the task that select this setting.
        requires: a sentence about required arguments, which says what to type, or "" if no argument
            is required.
        without: the task arguments that are rejected because they have no effect in this setting.
        solver: the names of the setting's solvers in Inspect's registry, in order. A run with
            another solver counts as a run of an agent.
        prompt: the user message of the default tasks in this setting, if it is not
            ``Benchmark.prompt``.
    """

    name: str
    task: str
    about: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    requires: str = ""
    without: tuple[str, ...] = ()
    solver: tuple[str, ...] = ASKED_ONCE
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of ``qabench score`` and ``qabench.evaluate_predictions`` that one benchmark adds.

    Attributes:
        name: the name of the keyword argument. On the command line, with hyphens instead of
            underscores.
        about: the help text.
        type: str, int, float, bool or pathlib.Path.
        default: the value if it is not passed.
        choices: the allowed values, or () if any value is allowed.
        method: the method of ``Benchmark`` to which the option is passed.
        secret: whether the value can contain a key. If so, evaluations do not record it.
        metavar: the name of the value in the help, such as "URL". "" means the name of the type.
        groups: the groups of scores that the option affects, or () for all.
        fields: the fields of predictions that it affects, or () for any.
    """

    name: str
    about: str
    type: type = str
    default: Any = None
    choices: tuple[str, ...] = ()
    method: Literal["scorer", "read", "load"] = "scorer"
    secret: bool = False
    metavar: str = ""
    groups: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Need:
    """What an official score or a run requires of the machine.

    Attributes:
        what: the score or the part of a run, such as "loose and strict accuracy".
        fix: how to install what is missing, such as a command.
        packages: modules that must be importable.
        files: source files of the benchmark that must be in a mirror or in the cache. Other files
            are downloaded when they are needed.
        variables: environment variables that must be set.
        nltk_data: NLTK data that must be installed, such as "tokenizers/punkt_tab".
    """

    what: str
    fix: str = ""
    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    nltk_data: tuple[str, ...] = ()

    def missing(self, benchmark: str) -> list[str]:
        """Return the packages, files, variables and data that are missing on this machine."""
        sources = dataset_table(benchmark).sources
        missing = [name for name in self.packages if find_spec(name) is None]
        missing += [path for path in self.files if not available(sources[path])]
        missing += [name for name in self.variables if not os.environ.get(name)]
        for name in self.nltk_data:
            if not _has_nltk_data(name):
                missing.append(f"NLTK's {name}")
        return missing


def _has_nltk_data(name: str) -> bool:
    """Tell whether NLTK data is installed. False if NLTK itself is not installed."""
    if find_spec("nltk") is None:
        return False
    import nltk

    try:
        nltk.data.find(name)
    except LookupError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Leaderboards:
    """Which official scores have leaderboards on the Hub: one per config, setting and score.

    Attributes:
        groups: config -> groups of scores. Empty for all groups on the default config.
        settings: the names of the settings in results on the Hub, if they differ from those in
            ``Benchmark.settings``.
        cutoff: the k at which leaderboards show scores that are declared for every cutoff.
    """

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    cutoff: str = "10"
