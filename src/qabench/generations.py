"""Files of generated answers: reading them, and joining them to a benchmark's questions by id.

A file is JSONL, one ``{"id": ..., "answer": ...}`` a line, as on FanOutQA's leaderboard. Real files lack ids, repeat
them, carry ids of other versions and end in half a line: each such thing is counted and named, and costs no other
line its score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabench.answers import UNANSWERED
from qabench.errors import InputError
from qabench.limits import json_of

NAMED = 5  # how many ids or lines a message names before it counts the rest


@dataclass(frozen=True, slots=True)
class Generation:
    """One answer of a file, and the line it stands on (from 1)."""

    line: int
    id: str
    answer: Any


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no answer, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Generations:
    """What a file holds, in the file's order."""

    path: str
    answers: tuple[Generation, ...]
    bad_lines: tuple[BadLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """Answers aligned with questions, and everything that did not fit.

    Attributes:
        ids: the question ids that are scored, in order.
        predictions: an answer for each, ``UNANSWERED`` where there is none.
        missing: ids of questions without an answer.
        unknown: answers whose id is no question's.
        repeated: answers that a later line with the same id replaced (the last one counts, as upstream).
        null: ids whose answer is null. empty: ids whose answer is "" or blank. not_text: of another type than text.
        bad_lines: lines that hold no answer.
    """

    ids: tuple[str, ...]
    predictions: tuple[Any, ...]
    missing: tuple[str, ...] = ()
    unknown: tuple[Generation, ...] = ()
    repeated: tuple[Generation, ...] = ()
    null: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    not_text: tuple[str, ...] = ()
    bad_lines: tuple[BadLine, ...] = field(default=())

    def problems(self) -> list[str]:
        """A sentence for each kind of thing that a user should know of; empty for a perfect file."""
        said = [
            ("questions without an answer", list(self.missing)),
            ("answers to unknown questions", [f"{g.id} (line {g.line})" for g in self.unknown]),
            ("answers replaced by a later line", [f"{g.id} (line {g.line})" for g in self.repeated]),
            ("null answers", list(self.null)),
            ("empty answers", list(self.empty)),
            ("answers that are not text", list(self.not_text)),
            ("unreadable lines", [f"line {b.line}: {b.reason}" for b in self.bad_lines]),
        ]
        return [f"{kind}: {len(items)} ({_some(items)})" for kind, items in said if items]

    def counts(self) -> dict[str, int]:
        """How many of each, for a report."""
        names = ("missing", "unknown", "repeated", "null", "empty", "not_text", "bad_lines")
        return {"scored": len(self.ids)} | {name: len(getattr(self, name)) for name in names}


def read_generations(path: str | Path) -> Generations:
    """The answers of a JSONL file; lines that hold none are listed with the reason.

    Raises:
        InputError: there is no such file, it cannot be read, or not one of its lines holds an answer.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the generations file {path}: {error.strerror or error}") from None
    answers: list[Generation] = []
    bad: list[BadLine] = []
    # Only \n ends a line: texts may hold other separators that str.splitlines would break at.
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        found = _parse(number, line)
        if isinstance(found, Generation):
            answers.append(found)
        else:
            bad.append(found)
    if not answers:
        first = f"; line {bad[0].line}: {bad[0].reason}" if bad else " (it is empty)"
        raise InputError(
            f'{path} holds no answers{first}. A line must be a JSON object such as {{"id": "7d...", "answer": "..."}}'
        )
    return Generations(str(path), tuple(answers), tuple(bad))


def _parse(number: int, line: bytes) -> Generation | BadLine:
    try:
        row = json_of(line)
    except UnicodeDecodeError as error:
        return BadLine(number, f"not UTF-8 at byte {error.start}")
    except ValueError as error:
        return BadLine(number, f"not JSON ({error})")
    if not isinstance(row, dict):
        return BadLine(number, f"a JSON {type(row).__name__}, not an object")
    if lacking := [key for key in ("id", "answer") if key not in row]:
        return BadLine(
            number, f"without {' and '.join(map(repr, lacking))} (keys: {', '.join(map(repr, row)) or 'none'})"
        )
    if not isinstance(row["id"], str):
        return BadLine(number, f"the id is not a string: {row['id']!r:.60}")
    return Generation(number, row["id"], row["answer"])


def join(
    question_ids: Sequence[str],
    generations: Generations,
    *,
    only_score_answered: bool = False,
    ignore_unknown: bool = False,
) -> Joined:
    """Answers in the order of their questions.

    Args:
        question_ids: the ids of the benchmark's questions, in its order.
        generations: what ``read_generations`` gave.
        only_score_answered: leave the questions without an answer out, instead of scoring them 0; the order is then
            that of the answers, as upstream (a mean's last digit depends on it).
        ignore_unknown: with ``only_score_answered``, pass over answers to unknown questions.

    Raises:
        InputError: with ``only_score_answered``, an answer's id is no question's (upstream crashes); or no id at all
            is a question's, which means that the file belongs to another benchmark or split.
    """
    known = set(question_ids)
    last = {g.id: g for g in generations.answers}
    unknown = tuple(g for g in generations.answers if g.id not in known)
    if len(unknown) == len(generations.answers):
        raise InputError(
            f"none of the {len(unknown)} answers of {generations.path} belongs to a question of this config "
            f"(the first: id {unknown[0].id!r}, line {unknown[0].line}); is it for another config or benchmark?"
        )
    if unknown and only_score_answered and not ignore_unknown:
        raise InputError(
            f"{len(unknown)} answers of {generations.path} have an id that is no question's: "
            f"{_some([f'{g.id} (line {g.line})' for g in unknown])}. Scoring only what is answered, the official "
            "scorer fails on them: remove the lines, or pass them over with ignore_unknown (--ignore-unknown)."
        )
    ids = tuple(i for i in last if i in known) if only_score_answered else tuple(question_ids)
    given = {i: last[i].answer for i in ids if i in last}
    return Joined(
        ids=ids,
        predictions=tuple(given.get(i, UNANSWERED) for i in ids),
        missing=tuple(i for i in question_ids if i not in last),
        unknown=unknown,
        repeated=tuple(g for g in generations.answers if last[g.id] is not g and g.id in known),
        null=tuple(i for i, a in given.items() if a is None),
        empty=tuple(i for i, a in given.items() if isinstance(a, str) and not a.strip()),
        not_text=tuple(i for i, a in given.items() if a is not None and not isinstance(a, str)),
        bad_lines=generations.bad_lines,
    )


def _some(items: Iterable[str]) -> str:
    items = list(items)
    more = f" and {len(items) - NAMED} more" if len(items) > NAMED else ""
    return ", ".join(items[:NAMED]) + more
