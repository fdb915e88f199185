"""Labels that tell evaluations apart, and notes that name the systems they are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from qabench.errors import some
from qabench.evaluation.records import PREDICTIONS, distinct
from qabench.evaluation.scored import ScoredRecords

Line = TypeVar("Line")
MAX_LABEL_LENGTH = 80
# The end of a name is kept, because checkpoints and settings differ there.
LABEL_END_LENGTH = 34
# Arguments of runs that say nothing about the system, or that another part of the label shows.
NO_LABELS = {"model_path", "cache", "max_connections", "max_retries", "timeout"}


def labels(evaluations: Sequence[ScoredRecords]) -> list[str]:
    """Return one label per evaluation: the system's name, and what tells equal names apart.

    Benchmarks, configs and settings are named if they differ at all. If names are equal, the
    model's folder, Inspect's name of the model, the server, options and the date are added until
    they differ.
    """
    names, folders, models, questions, settings, servers = [], [], [], [], [], []
    options: set[str] = set()
    for evaluation in evaluations:
        names.append(evaluation.name or "no name")
        folders.append(str(evaluation.arguments.get("model_path", "")))
        models.append(evaluation.model)
        questions.append(evaluation.questions)
        settings.append(evaluation.setting)
        servers.append(evaluation.server.partition("://")[2])
        options.update(evaluation.arguments)
    for values in (folders, models):
        names = _distinguished(names, values, questions)
    for values in (questions, settings):
        if len(set(values)) > 1:
            names = [f"{name} · {value}" for name, value in zip(names, values, strict=True)]
    names = _distinguished(names, servers)
    for option in sorted(options - NO_LABELS):
        texts = []
        for evaluation in evaluations:
            value = evaluation.arguments.get(option)
            text = ""
            if value is not None:
                text = f"{option} {value}"
            texts.append(text)
        names = _distinguished(names, texts)
    # The date of a file of predictions says nothing about the system.
    if any(evaluation.setting != PREDICTIONS for evaluation in evaluations):
        dates = [evaluation.created[:16].replace("T", " ") for evaluation in evaluations]
        names = _distinguished(names, dates)
    shortened = [_shortened(name) for name in names]
    if len(set(shortened)) < len(set(names)):
        # Names that differ only in the middle would be equal when shortened.
        return distinct(names)
    return distinct(shortened)


def _shortened(name: str) -> str:
    """Shorten a long name to its start and its end, so that it fits into a label."""
    if len(name) <= MAX_LABEL_LENGTH:
        return name
    start_length = MAX_LABEL_LENGTH - LABEL_END_LENGTH - 1
    return f"{name[:start_length]}…{name[-LABEL_END_LENGTH:]}"


def _distinguished(
    names: Sequence[str], values: Sequence[str], questions: Sequence[str] = ()
) -> list[str]:
    """Add the values to names that occur several times with different values.

    Args:
        names: the names of systems.
        values: what may tell systems with the same name apart.
        questions: the questions of each system. If given, only systems on the same questions are
            told apart.
    """
    places = questions or [""] * len(names)
    triples = list(zip(names, values, places, strict=True))
    counts = Counter((name, place) for name, _, place in set(triples))
    distinguished = []
    for name, value, place in triples:
        if counts[name, place] > 1 and value:
            name = f"{name} · {value}"
        distinguished.append(name)
    return distinguished


def with_systems(lines_by_system: Mapping[str, Iterable[Line]]) -> list[tuple[str, Line]]:
    """Return each distinct line once, with the systems that have it, or "" if all of them do."""
    systems_by_line: dict[Line, list[str]] = {}
    for system, lines in lines_by_system.items():
        for line in dict.fromkeys(lines):
            systems_by_line.setdefault(line, []).append(system)
    pairs = []
    for line, systems in systems_by_line.items():
        named_systems = ""
        if len(systems) < len(lines_by_system):
            named_systems = f"{some(systems)}: "
        pairs.append((named_systems, line))
    return pairs
