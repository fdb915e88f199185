"""Reads files of per-item scores for ``qabench compare-scores``, and finds the items that they share."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.limits import json_of

NAMED = 5  # ids that a message lists; the others are counted


@dataclass
class Scores:
    """One system's scores by item, the question of each item, and the problems of the file."""

    values: dict[str, float]
    questions: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_scores(path: Path, metric: str, cluster: str | None) -> Scores:
    """The scores of a JSONL file; each line is an object with "id" and scores, nested or not."""
    rows: dict[str, dict[str, Any]] = {}
    unreadable, repeated = [], []
    for number, row in _json_lines(path):
        if isinstance(row, str):
            unreadable.append(f"line {number}: {row}")
            continue
        item = str(row["id"])
        if item in rows:
            repeated.append(f"{item} (line {number})")
        rows[item] = row
    numbers = {item: dict(_numbers(row)) for item, row in rows.items()}
    if not numbers:
        reason = f" ({unreadable[0]})" if unreadable else ""
        raise InputError(
            f'{path} has no scores{reason}. A line must look like {{"id": "7d...", "acc": {{"loose": 0.5}}}}'
        )
    name = matching(metric, {name for found in numbers.values() for name in found}, str(path))
    values = {item: found[name] for item, found in numbers.items() if name in found}
    questions = {item: _question(rows[item], cluster, path) for item in values} if cluster else {}
    without = [item for item in rows if item not in values]
    said = {"unreadable lines": unreadable, "replaced an earlier line of the same id": repeated}
    said[f"without a number for {name}"] = without
    return Scores(values, questions, [f"{kind}: {len(of)} ({_some(of)})" for kind, of in said.items() if of])


def _question(row: dict[str, Any], cluster: str, path: Path) -> str:
    if isinstance(row.get(cluster), str | int):
        return str(row[cluster])
    raise InputError(f"{path}: the row with id {row['id']!r} does not have its question in the field {cluster!r}")


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(line number, object with an id), or (line number, the reason why the line is not such an object)."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the file of scores {path}: {error.strerror or error}") from None
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json_of(line)
        except json.JSONDecodeError as error:
            row = f"not JSON ({error.msg}, column {error.colno})"
        except ValueError as error:
            row = f"not valid JSON ({error})"
        else:
            if not isinstance(row, dict) or not isinstance(row.get("id"), str | int):
                row = 'not an object with an "id"'
        yield number, row


def _numbers(row: dict[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """(dotted name, number) of each number in a row; true and false count as 1 and 0."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{before}{key}.")
        elif isinstance(value, int | float) and abs(value) <= sys.float_info.max and before + key != "id":
            yield before + key, float(value)


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
            system.problems.append(f"left out because they are not in every file: {len(left)} ({_some(left)})")
    if not ids:
        raise InputError(
            "the files have no id in common: "
            + "; ".join(f"{name}: {len(system.values)} ({_some(system.values)})" for name, system in systems.items())
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


def _some(items: Iterable[str]) -> str:
    items = list(items)
    return ", ".join(items[:NAMED]) + (f" and {len(items) - NAMED} more" if len(items) > NAMED else "")
