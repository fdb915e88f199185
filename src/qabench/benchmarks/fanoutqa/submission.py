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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabench.benchmarks.fanoutqa.official import DECLARATIONS, GENERATION
from qabench.benchmarks.fanoutqa.submission_metadata import SETTINGS, Problem, read_metadata
from qabench.benchmarks.fanoutqa.verdicts import MAX_ANSWER_CHARACTERS
from qabench.data.predictions import Prediction, Predictions, read_predictions
from qabench.errors import InputError, QabenchError
from qabench.evaluation import Evaluation, official
from qabench.evaluation.signature import parse, signature
from qabench.io.files import write_text

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
        """The problems that prevent writing the submission."""
        return [problem for problem in self.problems if problem.error]

    @property
    def warnings(self) -> list[Problem]:
        """The problems that do not prevent writing the submission."""
        return [problem for problem in self.problems if not problem.error]

    def files(self) -> dict[str, str]:
        """Path in the leaderboard's folder -> content of the file; the metadata come last."""
        files = {answers_path(self.name, setting): _lines(given) for setting, given in self.answers.items()}
        files[metadata_path(self.name)] = json.dumps(self.metadata, ensure_ascii=False, indent=2) + "\n"
        return files


def answers_path(name: str, setting: str) -> str:
    """The path of a setting's answers in the leaderboard's folder."""
    return f"{setting}-generations/{name}.jsonl"


def metadata_path(name: str) -> str:
    """The path of the metadata in the leaderboard's folder."""
    return f"metadata/{name}.json"


def leaderboard_ids() -> list[str]:
    """The ids of the leaderboard's questions: FanOutQA's test questions.

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
    """Checks a user's files and returns them as a submission with all its problems.

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
            given = answers[setting]
            read[setting] = given if isinstance(given, Predictions) else read_predictions(given, ("answer",))
        except InputError as error:
            problems.append(Problem("no answers", str(answers[setting]), None, str(error)))
        else:
            problems += _of_answers(read[setting], question_ids)
            for said in (deviations or {}).get(setting, ()):
                problems.append(Problem("not official", read[setting].path, None, said, error=not allow_unofficial))
    problems += _same_answers(read)
    written = {s: Path(answers_path(name, s)).name if s in answers else None for s in SETTINGS}
    complete, of_metadata = read_metadata(metadata, written)
    if noted := [f"{setting}: {'; '.join(said)}" for setting, said in (deviations or {}).items() if said]:
        notes = f"Differs from the authors' runs. {'. '.join(noted)}."
        complete["details"] = " ".join(filter(None, [complete.get("details"), notes]))
    return Submission(name, complete, read, (*of_metadata, *problems))


def run_deviations(evaluation: Evaluation) -> list[str]:
    """How a run differs from the authors' runs: prompt, protocol, parameters, questions; empty if it does not."""
    said = []
    if line := evaluation.signatures.get("run"):
        parameters = {name: value for name, value in evaluation.arguments.items() if name in GENERATION}
        score, fields = parse(line)
        fields.pop("qabench", None)
        said = official.deviations(signature(score, **fields | parameters), DECLARATIONS[score])
    else:
        said = ["the log does not contain the prompt and the protocol"]
    answered = {record.id for record in evaluation.records}
    if evaluation.available is not None and len(answered) < evaluation.available:
        said.append(f"{len(answered)} of {evaluation.available} questions were asked")
    if evaluation.status != "success":
        said.append(f"the run did not finish ({evaluation.status})")
    return said


def write(submission: Submission, out: Path) -> list[Path]:
    """Writes the files of a submission below ``out``, all of them or none; the metadata last.

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
        for other in [one for one in siblings if one.name.casefold() == Path(path).name.casefold()]:
            same_name = other.name == Path(path).name
            if not (same_name and path in files and other.read_bytes() == files[path].encode("utf-8")):
                taken.append(str(other))
    if taken:
        raise InputError(
            f"another submission has this name: {', '.join(taken)}. Nothing was written; use another --name or --out, "
            "or remove these files first (and keep your metadata in another folder)"
        )


def _of_answers(given: Predictions, question_ids: Sequence[str]) -> Iterator[Problem]:
    for bad in given.bad_lines:
        yield Problem("unreadable line", given.path, bad.line, f"{bad.reason}; fix or remove the line")
    first: dict[str, int] = {}
    known = set(question_ids)
    for one in given.rows:
        if one.id in first:
            said = f"{one.id} was already answered in line {first[one.id]}; remove one of the two"
            yield Problem("repeated id", given.path, one.line, said)
        elif one.id not in known:
            yield _unknown(given.path, one)
        first.setdefault(one.id, one.line)
        if problem := _of_text(given.path, one):
            yield problem
    if missing := [i for i in question_ids if i not in first]:
        said = f"{len(missing)} of {len(known)} questions have no answer and score 0: {', '.join(missing)}"
        yield Problem("missing answers", given.path, None, said, error=False)


def _unknown(path: str, one: Prediction) -> Problem:
    if config := DROPPED.get(one.id):
        said = f"{one.id} is a question of {config} that was removed later; its answer is submitted but not scored"
        return Problem("dropped question", path, one.line, said, error=False)
    said = f"{one.id!r:.60} is not the id of a test question; remove the line (is the file for other questions?)"
    return Problem("unknown id", path, one.line, said)


def _of_text(path: str, one: Prediction) -> Problem | None:
    where, answer = f"the answer to {one.id}", one.fields["answer"]
    if not isinstance(answer, str):
        got = "null" if answer is None else f"of type {type(answer).__name__}: {json.dumps(answer):.40}"
        said = f'{where} is {got}; it must be a string, such as "1998" or "" (write each list item on its own line)'
        return Problem("answer is not a string", path, one.line, said)
    if not _storable(answer) or not _storable(one.id):
        return Problem("not Unicode", path, one.line, f"{where} contains a lone surrogate, which is not a character")
    if not answer.strip():
        return Problem("empty answer", path, one.line, f"{where} is empty and scores 0", error=False)
    if len(answer) > MAX_ANSWER_CHARACTERS:
        said = f"{where} has {len(answer):,} characters; the judge gets only the first {MAX_ANSWER_CHARACTERS:,}"
        return Problem("long answer", path, one.line, said, error=False)
    return None


def _storable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _same_answers(read: Mapping[str, Predictions]) -> Iterator[Problem]:
    contents = {
        setting: tuple((one.id, str(one.fields["answer"])) for one in given.rows) for setting, given in read.items()
    }
    counts = Counter(contents.values())
    same = [setting for setting, content in contents.items() if counts[content] > 1]
    if same:
        said = f"the answers are the same in {' and '.join(same)}: was one file used for two settings?"
        yield Problem("same answers", read[same[-1]].path, None, said, error=False)


def _lines(given: Predictions) -> str:
    rows = ({"id": one.id, "answer": one.fields["answer"]} for one in given.rows)
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
