"""``qabench fanoutqa submit``: check a submission to FanOutQA's leaderboard, and write its files.

The leaderboard only checks that each line has an "id" and a string "answer", and that the metadata
has the right keys. This command also checks for missing, unknown and repeated ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from qabench.benchmarks import benchmark
from qabench.cli.options import output_folder
from qabench.cli.output import say, say_on_stderr
from qabench.data.answers import NOT_STRING, dumps
from qabench.data.joining import WITHOUT_PREDICTION, join
from qabench.data.predictions import Predictions, read_predictions
from qabench.data.rows import Json, SourceRow, read_json
from qabench.errors import InputError, some
from qabench.io.files import write_text
from qabench.loading_scripts.fanoutqa.leaderboard import SETTINGS, system_of

FOLDER = "leaderboard-submissions"
# The id of a question that was removed from the test questions in 2026. Most submissions answer it.
DROPPED = "36146d2306ce9ca3"


def submit(
    metadata: Annotated[Path, Option(help="The system's metadata, a JSON object.")],
    name: Annotated[str, Option(help="The name of the files: letters, digits, - and _.")],
    closed_book: Annotated[
        Path | None,
        Option(help='Closed-book answers: a log of qabench run, or {"id", "answer"} per line.'),
    ] = None,
    open_book: Annotated[Path | None, Option(help="Open-book answers (same formats).")] = None,
    evidence_provided: Annotated[
        Path | None, Option(help="Evidence-provided answers (same formats).")
    ] = None,
    out: Annotated[
        Path,
        Option(
            metavar="DIR",
            callback=output_folder,
            help="The folder to write to, such as a clone of the repository.",
        ),
    ] = Path(FOLDER),
) -> None:
    """Check a submission to FanOutQA's leaderboard and write the files of its pull request.

    Exit code: 0 the files were written; 1 the test questions are not available, or the files cannot
    be written; 2 the submission was rejected (all errors are listed, and nothing is written).
    """
    paths = (closed_book, open_book, evidence_provided)
    paths_by_setting = {}
    for setting, answers_path in zip(SETTINGS, paths, strict=True):
        if answers_path is not None:
            paths_by_setting[setting] = answers_path
    # Nothing is written until all of the user's mistakes are known.
    errors = _Errors()
    with errors.noted():
        _check_name(name)
    if not paths_by_setting:
        errors.lines.append(
            "there are no answers; give those of at least one setting, such as --closed-book FILE"
        )
    question_ids = [question.id for question in benchmark("fanoutqa").load("test").rows]
    answers = {}
    for setting, path in paths_by_setting.items():
        with errors.noted():
            answers[setting] = _answers(path, setting)
            _check(answers[setting], question_ids)
    system: Json = {}
    with errors.noted():
        system = _system(metadata)
    file_texts = _files(name, system, answers, out)
    for path in file_texts:
        if path.exists():
            errors.lines.append(f"{path} exists: use another --name or --out, or remove it first")
    errors.raise_any()
    for path, text in file_texts.items():
        write_text(path, text)
        say(path)
    say(
        f"Open a pull request to https://github.com/zhudotexe/fanoutqa with these files in its folder {FOLDER}/. The "
        "authors' check scores the answers against the test answers, which are not public, and comments on it."
    )


class _Errors:
    """Collects the errors of a submission, so that the user can fix all of them at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record an InputError that the ``with`` block raises, and go on after it."""
        try:
            yield
        except InputError as error:
            self.lines += str(error).splitlines()

    def raise_any(self) -> None:
        """Raise InputError with all errors, if there are any."""
        if len(self.lines) == 1:
            raise InputError(self.lines[0])
        if self.lines:
            listed = "".join(f"\n  {line}" for line in self.lines)
            raise InputError(f"the submission has {len(self.lines)} errors:{listed}")


def _check_name(name: str) -> None:
    # The authors' check of submissions accepts no other file names.
    if not re.fullmatch("[A-Za-z0-9_-]+", name):
        raise InputError(f"--name is {name!r}; allowed: a name of letters, digits, - and _")


def _answers(path: Path, setting: str) -> Predictions:
    """Return the answers in a file or in a run's log. Leaves out failed questions of the run."""
    if path.suffix != ".eval":
        return read_predictions(path, ("answer",))
    from qabench.runs.log import read_run

    run = read_run(path)
    if (run.benchmark, run.setting) != ("fanoutqa", SETTINGS[setting]):
        raise InputError(
            f"{path} is a run of {run.benchmark} {run.setting}, not of fanoutqa {SETTINGS[setting]}"
        )
    rows = []
    for record in run.records:
        if record.answer is not None:
            rows.append({"id": record.id, "answer": record.answer})
    return replace(read_predictions(rows, ("answer",)), path=str(path))


def _check(predictions: Predictions, question_ids: Sequence[str]) -> None:
    """Check that the leaderboard accepts the answers. Missing answers only cause a warning.

    Raises:
        InputError: the leaderboard would reject an answer, or its score is undefined.
    """
    # Most submissions answer the dropped question, too, which the leaderboard accepts.
    joined = join([*question_ids, DROPPED], predictions)
    problems = [text for text in joined.problems if not text.startswith(WITHOUT_PREDICTION)]
    not_text = [row for row in predictions.rows if not isinstance(row.fields["answer"], str)]
    if not_text:
        places = some(not_text)
        problems.append(f"{NOT_STRING}: {len(not_text)} ({places})")
    if problems:
        lines = []
        for problem in problems:
            lines.append(f"{predictions.path}: {problem}. Fix or remove these lines")
        raise InputError("\n".join(lines))
    missing = [id for id in joined.missing if id != DROPPED]
    if missing:
        say_on_stderr(
            f"{predictions.path}: questions without an answer, which score 0: {len(missing)} ({some(missing)})",
            "yellow",
        )


def _system(metadata: Path) -> Json:
    """Return the fields that describe the system, from the file of metadata.

    Raises:
        InputError: the metadata cannot be read, or a value is missing, unknown or wrong.
    """
    if not metadata.is_file():
        raise InputError(f"there is no file {metadata} with the system's metadata")
    row = SourceRow.of(read_json(metadata), str(metadata))
    file_fields = map(_file_field, SETTINGS)
    return system_of(row, *file_fields)


def _file_field(setting: str) -> str:
    return f"{setting}_generations"


def _files(
    name: str, system: Json, answers: Mapping[str, Predictions], out: Path
) -> dict[Path, str]:
    """Return the content of each file of a submission."""
    file_of_setting = {}
    for setting in SETTINGS:
        file = f"{name}.jsonl" if setting in answers else None
        file_of_setting[_file_field(setting)] = file
    metadata_text = json.dumps(system | file_of_setting, ensure_ascii=False, indent=2)
    texts = {out / f"metadata/{name}.json": metadata_text + "\n"}
    for setting, predictions in answers.items():
        lines = []
        for row in predictions.rows:
            lines.append(dumps({"id": row.id, "answer": row.fields["answer"]}) + "\n")
        texts[out / f"{setting}-generations/{name}.jsonl"] = "".join(lines)
    return texts
