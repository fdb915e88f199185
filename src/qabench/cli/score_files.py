"""Reads files of per-item scores for ``qabench compare-scores``, and finds the items that they share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabench.data.predictions import read_predictions, some
from qabench.errors import InputError
from qabench.io.tables import flattened


@dataclass
class Scores:
    """One system's scores by item, the question of each item, and the problems of the file."""

    values: dict[str, float]
    questions: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_scores(path: Path, metric: str, cluster: str | None) -> Scores:
    """The scores of a JSONL file; one object with "id" and scores, nested or not, per line."""
    read = read_predictions(path)
    rows = {row.id: row.fields for row in read.rows}
    first = {row.id: row.line for row in reversed(read.rows)}
    repeated = [f"{row.id} (line {row.line})" for row in read.rows if row.line != first[row.id]]
    numbers = {item: dict(_numbers(row)) for item, row in rows.items()}
    if not any(numbers.values()):
        raise InputError(f'{path} has no scores. A line must look like {{"id": "7d...", "acc": {{"loose": 0.5}}}}')
    name = matching(metric, {name for found in numbers.values() for name in found}, str(path))
    values = {item: found[name] for item, found in numbers.items() if name in found}
    questions = {item: _question(rows[item], cluster, path) for item in values} if cluster else {}
    without = [item for item in rows if item not in values]
    unreadable = [f"line {bad.line}: {bad.reason}" for bad in read.bad_lines]
    said = {"unreadable lines": unreadable, "replaced an earlier line of the same id": repeated}
    said[f"without a number for {name}"] = without
    return Scores(values, questions, [f"{kind}: {len(of)} ({some(of)})" for kind, of in said.items() if of])


def _question(row: Mapping[str, Any], cluster: str, path: Path) -> str:
    if isinstance(row.get(cluster), str | int):
        return str(row[cluster])
    raise InputError(f"{path}: the row with id {row['id']!r} does not have its question in the field {cluster!r}")


def _numbers(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """(dotted name, number) of each number in a row; true and false count as 1 and 0."""
    for name, value in flattened(row):
        if isinstance(value, int | float) and abs(value) <= sys.float_info.max and name != "id":
            yield name, float(value)


def matching(metric: str, names: Iterable[str], where: str) -> str:
    """The one of ``names`` that equals the metric or ends with it (rouge1.fscore matches rouge.rouge1.fscore)."""
    names = sorted(names)
    if metric in names:
        return metric
    ending = [name for name in names if name.endswith(f".{metric}") or metric.endswith(f".{name}")]
    if len(ending) != 1:
        raise InputError(f"{where} does not have exactly one score {metric!r}; allowed: {', '.join(names) or '(none)'}")
    return ending[0]


def shared_ids(systems: dict[str, Scores]) -> list[str]:
    """The ids that all systems have; other ids are recorded as problems of their system."""
    first, *others = systems.values()
    ids = [i for i in first.values if all(i in other.values for other in others)]
    shared = set(ids)
    for system in systems.values():
        if left := [i for i in system.values if i not in shared]:
            system.problems.append(f"left out because they are not in every file: {len(left)} ({some(left)})")
    if not ids:
        raise InputError(
            "the files have no id in common: "
            + "; ".join(f"{name}: {len(system.values)} ({some(system.values)})" for name, system in systems.items())
        )
    return ids


def questions_of(systems: dict[str, Scores], ids: list[str]) -> list[str]:
    first, *others = systems.values()
    for i in ids:
        if named := {other.questions[i] for other in others} - {first.questions[i]}:
            raise InputError(
                f"the files have different questions for id {i!r}: {first.questions[i]!r}, {named.pop()!r}"
            )
    return [first.questions[i] for i in ids]
