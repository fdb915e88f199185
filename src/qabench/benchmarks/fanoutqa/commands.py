"""The command ``qabench fanoutqa submit``: checks a submission to FanOutQA's leaderboard, and writes its files.

The leaderboard checks only that each line has an "id" and a string "answer", and that the metadata
have the right keys. The command also checks for missing, unknown and repeated ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from qabench.answers import NOT_STRING, dumps
from qabench.benchmarks import benchmark
from qabench.cli.output import say, say_on_stderr
from qabench.data.predictions import WITHOUT_PREDICTION, Predictions, join, read_predictions, some
from qabench.data.rows import SourceRow, read_json
from qabench.errors import InputError
from qabench.io.files import write_text
from qabench.loading_scripts.fanoutqa.leaderboard import SETTINGS, system_of

FOLDER = "leaderboard-submissions"
# A question that was removed from the test questions in 2026, but that most submissions answer.
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
        Path, Option(metavar="DIR", help="The folder to write to, such as a clone of the repository.")
    ] = Path(FOLDER),
) -> None:
    """Check a submission to FanOutQA's leaderboard and write the files of its pull request.

    Exit code: 0 written; 1 the test questions are not available, or the files cannot be written;
    2 rejected (nothing is written).
    """
    paths = dict(zip(SETTINGS, (closed_book, open_book, evidence_provided), strict=True))
    answers = {setting: _answers(path, setting) for setting, path in paths.items() if path is not None}
    if not answers or not re.fullmatch("[A-Za-z0-9_-]+", name):
        raise InputError(
            f"the submission {name!r} has answers in {len(answers)} settings; allowed: a name of letters, digits, - "
            "and _, and answers in at least one setting, such as --closed-book FILE"
        )
    question_ids = [question.id for question in benchmark("fanoutqa").load("test").rows]
    for predictions in answers.values():
        _check(predictions, question_ids)
    for path, text in _files(name, metadata, answers, out).items():
        write_text(path, text)
        say(path)
    say(
        f"Open a pull request to https://github.com/zhudotexe/fanoutqa with these files in its folder {FOLDER}/. The "
        "authors' check scores the answers against the test answers, which are not public, and comments on it."
    )


def _answers(path: Path, setting: str) -> Predictions:
    """Return the answers in a file, or in the log of a run. A failed question has none."""
    if path.suffix != ".eval":
        return read_predictions(path, ("answer",))
    from qabench.runs.log import read_run

    run = read_run(path)
    if (run.benchmark, run.setting) != ("fanoutqa", SETTINGS[setting]):
        raise InputError(
            f"{path} is a run of {run.benchmark} {run.setting}, not of fanoutqa {SETTINGS[setting]}"
        )
    answered = [record for record in run.records if record.answer is not None]
    rows = [{"id": record.id, "answer": record.answer} for record in answered]
    return replace(read_predictions(rows, ("answer",)), path=str(path))


def _check(predictions: Predictions, question_ids: Sequence[str]) -> None:
    """Raise InputError for answers that the leaderboard rejects or whose score is undefined; warn of missing ones."""
    joined = join([*question_ids, DROPPED], predictions)
    problems = [text for text in joined.problems if not text.startswith(WITHOUT_PREDICTION)]
    not_text = [row for row in predictions.rows if not isinstance(row.fields["answer"], str)]
    if not_text:
        places = some(not_text)
        problems.append(f"{NOT_STRING}: {len(not_text)} ({places})")
    if problems:
        raise InputError(f"{predictions.path}: {'; '.join(problems)}. Fix or remove these lines")
    if missing := [id for id in joined.missing if id != DROPPED]:
        say_on_stderr(
            f"{predictions.path}: questions without an answer, which score 0: {len(missing)} ({some(missing)})",
            "yellow",
        )


def _files(name: str, metadata: Path, answers: Mapping[str, Predictions], out: Path) -> dict[Path, str]:
    """Return the content of each file of a submission.

    Raises InputError if the metadata cannot be used, or a file exists, and DataError for metadata
    with a missing, unknown or wrong value.
    """
    if not metadata.is_file():
        raise InputError(f"there is no file {metadata} with the system's metadata")
    named = {
        f"{setting}_generations": f"{name}.jsonl" if setting in answers else None for setting in SETTINGS
    }
    about = system_of(SourceRow.of(read_json(metadata), str(metadata)), *named)
    texts = {
        out / f"metadata/{name}.json": json.dumps(about | named, ensure_ascii=False, indent=2) + "\n"
    }
    for setting, predictions in answers.items():
        rows = [{"id": row.id, "answer": row.fields["answer"]} for row in predictions.rows]
        texts[out / f"{setting}-generations/{name}.jsonl"] = "".join(dumps(row) + "\n" for row in rows)
    if existing := [str(path) for path in texts if path.exists()]:
        raise InputError(
            f"{', '.join(existing)} exists: use another --name or --out, or remove it first"
        )
    return texts
