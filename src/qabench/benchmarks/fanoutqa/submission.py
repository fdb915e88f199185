"""Submissions to FanOutQA's leaderboard: checks, and the files of the pull request.

The leaderboard checks only that each line has an "id" and a string "answer", and that the metadata have the right keys.
This module also checks for missing, unknown and repeated ids, empty answers, answers that are truncated for the judge,
equal answers for two settings, and runs that differ from the authors'. Problems that make the leaderboard's check fail,
or a score unpredictable, are errors; problems that only lower the score are warnings.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabench.benchmarks.fanoutqa.official import DECLARATIONS, GENERATION
from qabench.benchmarks.fanoutqa.verdicts import MAX_ANSWER_CHARACTERS
from qabench.data.predictions import Prediction, Predictions, read_predictions
from qabench.errors import InputError, QabenchError
from qabench.evaluation import Evaluation, official
from qabench.evaluation.signature import parse, signature
from qabench.io.files import write_json, write_text
from qabench.io.limits import json_of

# A question that was removed from the test questions in 2026, but that most submissions answer.
DROPPED = {"36146d2306ce9ca3": "test_nov23"}
NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Submission:
    """A checked submission.

    Attributes:
        name: the name of its files.
        metadata: the metadata as submitted.
        answers: for each submitted setting, the content of its file.
        problems: errors and warnings.
    """

    name: str
    metadata: Mapping[str, Any]
    answers: Mapping[str, Predictions]
    problems: Sequence[Problem] = field(default=())

    @property
    def errors(self) -> list[Problem]:
        """Return the problems that prevent writing the submission."""
        return [problem for problem in self.problems if problem.error]

    @property
    def warnings(self) -> list[Problem]:
        """Return the problems that do not prevent writing the submission."""
        return [problem for problem in self.problems if not problem.error]

    def files(self) -> dict[str, str]:
        """Path in the leaderboard's folder -> content of the file; the metadata come last."""
        files = {answers_path(self.name, setting): _lines(answers) for setting, answers in self.answers.items()}
        files[metadata_path(self.name)] = json.dumps(self.metadata, ensure_ascii=False, indent=2) + "\n"
        return files


def answers_path(name: str, setting: str) -> str:
    """Return the path of a setting's answers in the leaderboard's folder."""
    return f"{setting}-generations/{name}.jsonl"


def metadata_path(name: str) -> str:
    """Return the path of the metadata in the leaderboard's folder."""
    return f"metadata/{name}.json"


def leaderboard_ids() -> list[str]:
    """Return the ids of the leaderboard's questions: FanOutQA's test questions.

    Raises:
        SourceError: the questions are not available.
    """
    from qabench.loading_scripts import dataset_table, open_path
    from qabench.loading_scripts.fanoutqa.parse import read_rows

    ((file,),) = dataset_table("fanoutqa").config("test").splits.values()
    return [row["id"] for row in read_rows(open_path("fanoutqa", file), "test")]


def check(
    name: str,
    metadata: Path,
    answers: Mapping[str, Path | Predictions],
    question_ids: Sequence[str],
    deviations: Mapping[str, Sequence[str]] | None = None,
    allow_unofficial: bool = False,
) -> Submission:
    """Check a user's files and returns them as a submission with all its problems.

    Args:
        name: the name of the submitted files.
        metadata: a JSON file; see ``submission_metadata``.
        answers: for each submitted setting of ``SETTINGS``, a file of predictions, {"id", "answer"}, or its content.
        question_ids: the ids of the leaderboard's questions.
        deviations: for each setting, how the run differs from the authors' runs; see ``run_deviations``.
        allow_unofficial: whether deviations are warnings, listed in the metadata's details, instead of errors.

    Raises:
        InputError: no answers are given, or the name contains characters other than letters, digits, - and _.
    """
    if not NAME.fullmatch(name):
        raise InputError(
            f"the submission's name is {name!r}; file names of the leaderboard may contain the letters A-Z and "
            "a-z, digits, - and _"
        )
    if not answers:
        raise InputError("a submission needs answers: use at least one of --closed-book, --open-book, ...")
    read: dict[str, Predictions] = {}
    problems: list[Problem] = []
    for setting in filter(answers.__contains__, SETTINGS):
        try:
            source = answers[setting]
            read[setting] = source if isinstance(source, Predictions) else read_predictions(source, ("answer",))
        except InputError as error:
            problems.append(Problem("no answers", str(answers[setting]), None, str(error)))
        else:
            problems += _of_answers(read[setting], question_ids)
            for sentence in (deviations or {}).get(setting, ()):
                problems.append(Problem("not official", read[setting].path, None, sentence, error=not allow_unofficial))
    problems += _same_answers(read)
    written = {s: Path(answers_path(name, s)).name if s in answers else None for s in SETTINGS}
    complete, of_metadata = read_metadata(metadata, written)
    differing = [f"{setting}: {'; '.join(names)}" for setting, names in (deviations or {}).items() if names]
    if differing:
        notes = f"Differs from the authors' runs. {'. '.join(differing)}."
        complete["details"] = " ".join(filter(None, [complete.get("details"), notes]))
    return Submission(name, complete, read, (*of_metadata, *problems))


def run_deviations(evaluation: Evaluation) -> list[str]:
    """Return how a run differs from the authors' runs: prompt, protocol, parameters, questions; [] if equal."""
    sentences = []
    if line := evaluation.signatures.get("run"):
        parameters = {name: value for name, value in evaluation.arguments.items() if name in GENERATION}
        score, fields = parse(line)
        fields.pop("qabench", None)
        sentences = official.deviations(signature(score, **fields | parameters), DECLARATIONS[score])
    else:
        sentences = ["the log does not contain the prompt and the protocol"]
    answered = {record.id for record in evaluation.records}
    if evaluation.available is not None and len(answered) < evaluation.available:
        sentences.append(f"{len(answered)} of {evaluation.available} questions were asked")
    if evaluation.status != "success":
        sentences.append(f"the run did not finish ({evaluation.status})")
    return sentences


def write(submission: Submission, out: Path) -> list[Path]:
    """Write the files of a submission below ``out``, all of them or none; the metadata last.

    Raises:
        InputError: the submission has errors, or files with this name and other content exist.
        QabenchError: a file cannot be written; files that were already written are removed.
    """
    if submission.errors:
        raise InputError(
            f"the submission has {len(submission.errors)} errors, the first: {submission.errors[0].message}"
        )
    _check_free(submission, out)
    new = {out / path: text for path, text in submission.files().items() if not (out / path).exists()}
    try:
        for path, text in new.items():
            write_text(path, text)
    except (QabenchError, KeyboardInterrupt):
        for path in filter(Path.is_file, new):
            path.unlink()
        raise
    return [out / path for path in submission.files()]


def _check_free(submission: Submission, out: Path) -> None:
    files = submission.files()
    ours = {answers_path(submission.name, setting) for setting in SETTINGS} | {metadata_path(submission.name)}
    taken = []
    for path in sorted(ours):
        # On some systems, Name.json and name.json are the same file.
        siblings = list((out / path).parent.glob("*")) if (out / path).parent.is_dir() else []
        for other in [sibling for sibling in siblings if sibling.name.casefold() == Path(path).name.casefold()]:
            same_name = other.name == Path(path).name
            if not (same_name and path in files and other.read_bytes() == files[path].encode("utf-8")):
                taken.append(str(other))
    if taken:
        raise InputError(
            f"another submission has this name: {', '.join(taken)}. Nothing was written; use another --name or --out, "
            "or remove these files first (and keep your metadata in another folder)"
        )


def _of_answers(predictions: Predictions, question_ids: Sequence[str]) -> Iterator[Problem]:
    for bad in predictions.bad_lines:
        yield Problem("unreadable line", predictions.path, bad.line, f"{bad.reason}; fix or remove the line")
    first: dict[str, int] = {}
    expected_ids = set(question_ids)
    for row in predictions.rows:
        if row.id in first:
            message = f"{row.id} was already answered in line {first[row.id]}; remove one of the two"
            yield Problem("repeated id", predictions.path, row.line, message)
        elif row.id not in expected_ids:
            yield _unknown(predictions.path, row)
        first.setdefault(row.id, row.line)
        if problem := _of_text(predictions.path, row):
            yield problem
    if missing := [i for i in question_ids if i not in first]:
        message = f"{len(missing)} of {len(expected_ids)} questions have no answer and score 0: {', '.join(missing)}"
        yield Problem("missing answers", predictions.path, None, message, error=False)


def _unknown(path: str, row: Prediction) -> Problem:
    if config := DROPPED.get(row.id):
        message = f"{row.id} is a question of {config} that was removed later; its answer is submitted but not scored"
        return Problem("dropped question", path, row.line, message, error=False)
    message = f"{row.id!r:.60} is not the id of a test question; remove the line (is the file for other questions?)"
    return Problem("unknown id", path, row.line, message)


def _of_text(path: str, row: Prediction) -> Problem | None:
    where, answer = f"the answer to {row.id}", row.fields["answer"]
    if not isinstance(answer, str):
        got = "null" if answer is None else f"of type {type(answer).__name__}: {json.dumps(answer):.40}"
        message = f'{where} is {got}; it must be a string, such as "1998" or "" (write each list item on its own line)'
        return Problem("answer is not a string", path, row.line, message)
    if not _storable(answer) or not _storable(row.id):
        return Problem("not Unicode", path, row.line, f"{where} contains a lone surrogate, which is not a character")
    if not answer.strip():
        return Problem("empty answer", path, row.line, f"{where} is empty and scores 0", error=False)
    if len(answer) > MAX_ANSWER_CHARACTERS:
        message = f"{where} has {len(answer):,} characters; the judge gets only the first {MAX_ANSWER_CHARACTERS:,}"
        return Problem("long answer", path, row.line, message, error=False)
    return None


def _storable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _same_answers(read: Mapping[str, Predictions]) -> Iterator[Problem]:
    contents = {
        setting: tuple((row.id, str(row.fields["answer"])) for row in predictions.rows)
        for setting, predictions in read.items()
    }
    counts = Counter(contents.values())
    same = [setting for setting, content in contents.items() if counts[content] > 1]
    if same:
        message = f"the answers are the same in {' and '.join(same)}: was one file used for two settings?"
        yield Problem("same answers", read[same[-1]].path, None, message, error=False)


def _lines(predictions: Predictions) -> str:
    rows = ({"id": row.id, "answer": row.fields["answer"]} for row in predictions.rows)
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


SETTINGS = ("closedbook", "openbook", "evidenceprovided")
TYPES = ("FOUNDATION", "FINETUNE", "PROMPT", "OTHER")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a submission.

    Attributes:
        kind: the kind of problem in two or three words; problems of the same kind are shown together.
        file: the file with the problem.
        line: the line, from 1; None if the problem concerns the whole file.
        message: what is wrong, what is allowed and how to fix it.
        error: True: the submission is not written; False: it is written with a warning.
    """

    kind: str
    file: str
    line: int | None
    message: str
    error: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return the problem as JSON data."""
        return {"kind": self.kind, "file": self.file, "line": self.line, "message": self.message}


def generations_key(setting: str) -> str:
    """Return the metadata's key that names the answers of a setting."""
    return f"{setting}_generations"


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the metadata: its description, its value in the template, and the check of its values."""

    about: str
    unset: Any
    fits: Callable[[Any], bool]
    required: bool = True


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _address(value: Any) -> bool:
    return value is None or (isinstance(value, str) and re.fullmatch(r"https?://[^\s/]++\S*+", value) is not None)


def _whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


ASKED: Mapping[str, Key] = {
    "name": Key("the system's name on the leaderboard, a non-empty string", "", _text),
    "authors": Key("the system's authors, a non-empty string", "", _text),
    "url": Key("a page about the system, an http(s) address, or null", None, _address),
    "citation": Key("a short citation, such as Doe et al., 2026, a non-empty string", "", _text),
    "type": Key(f"one of {', '.join(TYPES)}", "", lambda value: value in TYPES),
    "context": Key("the length of the context in tokens, an integer above 0", 0, _whole_number),
    "is_trained_for_function_calling": Key("true or false", None, lambda value: isinstance(value, bool)),
    "details": Key(
        "anything else, such as the model's exact version, a non-empty string or null",
        None,
        lambda value: value is None or isinstance(value, str),
        required=False,
    ),
}
# The names of the files are filled in when the submission is written.
KEYS: Mapping[str, Key] = {
    **ASKED,
    **{
        generations_key(setting): Key(
            f"the file of the {setting} answers, or null",
            None,
            lambda value: value is None or _text(value),
            required=False,
        )
        for setting in SETTINGS
    },
}


def write_template(path: Path) -> None:
    """Write a template of the metadata; it does not pass the check until it is completed.

    Raises:
        InputError: the file already exists.
        QabenchError: the file cannot be written.
    """
    if path.exists():
        raise InputError(f"{path} already exists and is not changed; use another path, or remove the file")
    write_json(path, {name: key.unset for name, key in ASKED.items()})


def read_metadata(path: Path, written: Mapping[str, str | None]) -> tuple[dict[str, Any], list[Problem]]:
    """Return the metadata to submit, and their problems.

    Args:
        path: a JSON file with the keys of ``KEYS``.
        written: for each of ``SETTINGS``, the name of its file of answers, or None.

    Returns:
        The values of the file, with the names in ``written``; empty if the file is not a JSON object.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        pairs = json_of(text, object_pairs_hook=_Pairs)
    except OSError as error:
        return {}, [Problem("unreadable file", str(path), None, f"cannot read it: {error.strerror or error}")]
    except json.JSONDecodeError as error:
        return {}, [Problem("not JSON", str(path), error.lineno, f"{error.msg}, column {error.colno}")]
    except ValueError as error:
        return {}, [Problem("not JSON", str(path), None, f"not JSON in UTF-8: {error}")]
    if not isinstance(pairs, _Pairs):
        return {}, [Problem("not metadata", str(path), 1, "a JSON object is expected; `--init` writes a template")]
    metadata = dict(pairs)
    problems = [
        *_of_keys(path, text, pairs),
        *_of_values(path, text, metadata),
        *_of_files(path, text, metadata, written),
    ]
    return metadata | {generations_key(setting): name for setting, name in written.items()}, problems


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of a JSON object, including repeated keys."""


def _of_keys(path: Path, text: str, pairs: _Pairs) -> list[Problem]:
    names = [name for name, _ in pairs]
    allowed = ", ".join(KEYS)
    problems = [
        Problem("missing key", str(path), None, f"the key {name!r} is missing: {key.about}")
        for name, key in KEYS.items()
        if key.required and name not in names
    ]
    for name in dict.fromkeys(names):
        line = _line(text, name)
        if name not in KEYS:
            message = f"the key {name!r} is unknown and would fail the leaderboard's check; allowed: {allowed}"
            problems.append(Problem("unknown key", str(path), line, message))
        if names.count(name) > 1:
            problems.append(Problem("repeated key", str(path), line, f"the key {name!r} occurs more than once"))
    return problems


def _of_values(path: Path, text: str, metadata: Mapping[str, Any]) -> list[Problem]:
    problems = []
    for name, key in KEYS.items():
        if name in metadata and not key.fits(metadata[name]):
            got = "null" if metadata[name] is None else json.dumps(metadata[name], default=str)
            message = f"{name!r} is {got:.60}; allowed: {key.about}"
            problems.append(Problem("wrong value", str(path), _line(text, name), message))
    return problems


def _of_files(path: Path, text: str, metadata: Mapping[str, Any], written: Mapping[str, str | None]) -> list[Problem]:
    problems = []
    for setting, name in written.items():
        key = generations_key(setting)
        named = metadata.get(key)
        if not _text(named) or named == name:
            continue
        if name is None:
            option = {"closedbook": "--closed-book", "openbook": "--open-book"}.get(setting, "--evidence-provided")
            message = f"{key!r} names {named!r}, but these answers were not given: add {option} FILE, or set it to null"
            problems.append(Problem("answers missing", str(path), _line(text, key), message))
        else:
            message = (
                f"{key!r} names {named!r}; the file is submitted as {name!r}, and the metadata are changed to that"
            )
            problems.append(Problem("file name", str(path), _line(text, key), message, error=False))
    return problems


def _line(text: str, key: str) -> int | None:
    """Return the line of a key of a flat object."""
    match = re.search(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)
    return text.count("\n", 0, match.start()) + 1 if match else None
