"""Submissions to FanOutQA's leaderboard: checks, and the files of the pull request.

The leaderboard checks only that each line has an "id" and a string "answer", and that the metadata
have the right keys. This module also checks for missing, unknown and repeated ids, empty answers,
answers that are truncated for the judge, and runs that differ from the authors'. Problems that make
the leaderboard's check fail, or a score unpredictable, are errors. Problems that only lower the
score are warnings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark
from qabench.benchmarks.fanoutqa.judge import MAX_ANSWER_CHARACTERS
from qabench.data.predictions import Prediction, Predictions, join, read_predictions, some
from qabench.data.rows import Json, read_json
from qabench.errors import DataError, InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.signature import asked_part, deviations, signature_name
from qabench.io.files import write_text

SETTINGS = ("closedbook", "openbook", "evidenceprovided")
"""The leaderboard's names of the settings."""
TYPES = ("FOUNDATION", "FINETUNE", "PROMPT", "OTHER")
# A question that was removed from the test questions in 2026, but that most submissions answer.
DROPPED = "36146d2306ce9ca3"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a submission: the file, what is wrong, what is allowed and how to fix it.

    With an error the submission is not written, with a warning it is.
    """

    file: str
    message: str
    error: bool = True


@dataclass(frozen=True)
class Submission:
    """A checked submission: the name of its files, its metadata, the answers in each setting, and all problems."""

    name: str
    metadata: Mapping[str, Any]
    answers: Mapping[str, Predictions]
    problems: Sequence[Problem]


def leaderboard_ids() -> list[str]:
    """Return the ids of the leaderboard's questions, the test questions.

    Raises SourceError without their file.
    """
    return [question.id for question in benchmark("fanoutqa").load("test").rows]


def check(
    name: str,
    metadata: Path,
    answers: Mapping[str, Path | Evaluation],
    question_ids: Sequence[str],
    allow_unofficial: bool = False,
) -> Submission:
    """Check a user's files, and return them as a submission with all its problems.

    ``metadata`` is a JSON file with the keys of ``KEYS``. ``answers`` has for each submitted
    setting of ``SETTINGS`` a run or a file of predictions, {"id", "answer"}. With
    ``allow_unofficial``, differences from the authors' runs are warnings, and listed in the
    metadata's details.
    """
    if not re.fullmatch("[A-Za-z0-9_-]+", name):
        raise InputError(
            f"the submission's name is {name!r}; file names of the leaderboard may contain the letters A-Z and "
            "a-z, digits, - and _"
        )
    if not answers:
        raise InputError(
            "a submission needs answers: use at least one of --closed-book, --open-book, ..."
        )
    read: dict[str, Predictions] = {}
    problems: list[Problem] = []
    differing: list[str] = []
    for setting, source in answers.items():
        file = source.path if isinstance(source, Evaluation) else str(source)
        try:
            read[setting], sentences = _read_answers(source, setting)
            problems += _of_answers(read[setting], question_ids)
        except InputError as error:
            problems.append(Problem(file, str(error)))
            continue
        problems += [Problem(file, sentence, not allow_unofficial) for sentence in sentences]
        differing += [f"{setting}: {'; '.join(sentences)}"] if sentences else []
    files = {
        f"{setting}_generations": f"{name}.jsonl" if setting in answers else None
        for setting in SETTINGS
    }
    complete, of_metadata = _read_metadata(metadata, files)
    if differing:
        notes = f"Differs from the authors' runs. {'. '.join(differing)}."
        complete["details"] = f"{complete.get('details') or ''} {notes}".strip()
    problems = [Problem(str(metadata), message) for message in of_metadata] + problems
    return Submission(name, complete, read, problems)


def _read_answers(run: Path | Evaluation, setting: str) -> tuple[Predictions, list[str]]:
    """Return the answers of a run or a file, and how the run differs from the authors' runs."""
    if isinstance(run, Path):
        return read_predictions(run, ("answer",)), []
    if run.benchmark != "fanoutqa" or run.setting.replace("-", "") != setting:
        raise InputError(
            f"{run.path} is a run of {run.benchmark} {run.setting}, not of fanoutqa {setting}"
        )
    # A failed question has no answer: the leaderboard counts it as unanswered.
    rows = [
        {"id": record.id, "answer": record.answer}
        for record in run.records
        if record.answer is not None
    ]
    return replace(read_predictions(rows, ("answer",)), path=run.path), run_deviations(run)


def run_deviations(run: Evaluation) -> list[str]:
    """Return how a run differs from the authors' runs: prompt, protocol, parameters, questions, or [] if equal."""
    if line := run.signatures.get("run"):
        sentences = deviations(line, run.declarations[signature_name(line)])
    else:
        sentences = ["the log does not contain the prompt and the protocol"]
    sentences += asked_part(len({record.id for record in run.records}), run.available)
    if run.status != "success":
        sentences.append(f"the run did not finish ({run.status})")
    return sentences


def write(submission: Submission, out: Path) -> list[Path]:
    """Write the files of a submission below ``out``, the metadata last.

    Raises InputError if other files have these names, and QabenchError if a file cannot be written.
    """
    files = {}
    for setting, answers in submission.answers.items():
        rows = ({"id": row.id, "answer": row.fields["answer"]} for row in answers.rows)
        lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows]
        files[out / f"{setting}-generations/{submission.name}.jsonl"] = "".join(lines)
    files[out / f"metadata/{submission.name}.json"] = (
        json.dumps(submission.metadata, ensure_ascii=False, indent=2) + "\n"
    )
    if taken := [
        str(path)
        for path, text in files.items()
        if path.exists() and path.read_bytes() != text.encode()
    ]:
        raise InputError(
            f"another submission has this name: {', '.join(taken)}. Nothing was written; use another --name or --out, "
            "or remove these files first (and keep your metadata in another folder)"
        )
    for path, text in files.items():
        write_text(path, text)
    return list(files)


def _of_answers(predictions: Predictions, question_ids: Sequence[str]) -> list[Problem]:
    """Return one problem of each kind. Raises InputError if no answer is to a test question."""
    joined = join(question_ids, predictions)
    answers = [(row, row.fields["answer"]) for row in predictions.rows]
    texts = [(row, answer) for row, answer in answers if isinstance(answer, str)]
    errors = {
        "unreadable lines; fix or remove them": [
            f"line {bad.line}: {bad.reason}" for bad in joined.bad_lines
        ],
        "answers to a question that a later line answers again; remove one of the two": _places(
            joined.repeated
        ),
        "ids of no test question; remove the lines (is the file for other questions?)": _places(
            row for row in joined.unknown if row.id != DROPPED
        ),
        'answers that are not strings, such as "1998" or "" (write each list item on its own line)': [
            f"{row.id:.60} (line {row.line}): {json.dumps(answer):.40}"
            for row, answer in answers
            if not isinstance(answer, str)
        ],
        "answers with a lone surrogate, which is not a character": _places(
            row for row, text in texts if re.search("[\ud800-\udfff]", text + row.id)
        ),
    }
    warnings = {
        "answers to a question of test_nov23 that was removed later, which are not scored": _places(
            row for row in joined.unknown if row.id == DROPPED
        ),
        "empty answers, which score 0": _places(row for row, text in texts if not text.strip()),
        f"answers of which the judge gets only the first {MAX_ANSWER_CHARACTERS:,} characters": _places(
            row for row, text in texts if len(text) > MAX_ANSWER_CHARACTERS
        ),
        "questions without an answer, which score 0": joined.missing,
    }
    return [
        Problem(predictions.path, f"{kind}: {len(items)} ({some(items)})", kinds is errors)
        for kinds in (errors, warnings)
        for kind, items in kinds.items()
        if items
    ]


def _places(rows: Iterable[Prediction]) -> list[str]:
    return [f"{row.id:.60} (line {row.line})" for row in rows]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_address(value: Any) -> bool:
    return value is None or (
        isinstance(value, str) and re.fullmatch(r"https?://[^\s/]++\S*+", value) is not None
    )


KEYS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "name": ("the system's name on the leaderboard, a non-empty string", _is_text),
    "authors": ("the system's authors, a non-empty string", _is_text),
    "url": ("a page about the system, an http(s) address, or null", _is_address),
    "citation": ("a short citation, such as Doe et al., 2026, a non-empty string", _is_text),
    "type": (f"one of {', '.join(TYPES)}", lambda value: value in TYPES),
    "context": (
        "the length of the context in tokens, an integer above 0",
        lambda value: type(value) is int and value > 0,
    ),
    "is_trained_for_function_calling": ("true or false", lambda value: isinstance(value, bool)),
    "details": (
        "anything else, such as the model's exact version, a string or null",
        lambda value: value is None or isinstance(value, str),
    ),
}
"""The keys of the metadata: what is allowed, and the check of a value.

Only ``details`` is optional.
"""


def _read_metadata(path: Path, files: Mapping[str, str | None]) -> tuple[Json, list[str]]:
    """Return the metadata to submit, and their errors.

    The names of the files of answers are filled in.
    """
    try:
        metadata = read_json(path)
        if not isinstance(metadata, dict):
            raise DataError("it is not a JSON object")
    except (OSError, DataError) as error:
        keys = "; ".join(f"{name}: {about}" for name, (about, _) in KEYS.items())
        return {}, [f"the metadata cannot be read ({error}); they are a JSON object with {keys}"]
    errors = [
        f"the key {name!r} is missing: {about}"
        for name, (about, _) in KEYS.items()
        if name not in metadata and name != "details"
    ]
    for name, value in metadata.items():
        if name not in KEYS and name not in files:
            allowed = ", ".join([*KEYS, *files])
            errors.append(
                f"the key {name!r} would fail the leaderboard's check; allowed: {allowed}"
            )
        elif name in KEYS and not KEYS[name][1](value):
            errors.append(f"{name!r} is {json.dumps(value):.60}; allowed: {KEYS[name][0]}")
    return {**metadata, **files}, errors
