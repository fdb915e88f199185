"""``qabench fanoutqa submit``: checks a submission to the leaderboard and writes the files of its pull request."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.submission import Problem, Submission
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation

SHOWN = 10  # problems of each kind that are printed; the others are counted
LONGEST = 240  # characters of a problem
REPOSITORY = "https://github.com/zhudotexe/fanoutqa"
FOLDER = "leaderboard-submissions"


def submit(
    metadata: Annotated[Path, typer.Option(metavar="FILE", help="The system's metadata, as JSON; see --init.")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of the files: letters, digits, - and _.")
    ] = None,
    closed_book: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='Closed-book answers: a log of qabench run, or {"id", "answer"} per line.'),
    ] = None,
    open_book: Annotated[Path | None, typer.Option(metavar="FILE", help="Open-book answers (same formats).")] = None,
    evidence_provided: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Evidence-provided answers (same formats).")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write to, such as a clone of the repository.")
    ] = Path(FOLDER),
    init: Annotated[bool, typer.Option("--init", help="Only write a template of the metadata to FILE.")] = False,
    allow_unofficial: Annotated[
        bool,
        typer.Option("--allow-unofficial", help="Accept runs that differ from the authors'; noted in the metadata."),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Also exit with 2 after warnings.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, with all problems.")] = False,
) -> None:
    """Check a submission to FanOutQA's leaderboard and write the files of its pull request.

    A run with prompts, a protocol or parameters that differ from the authors' is rejected without --allow-unofficial.
    Exit code: 0 written; 1 the test questions are not available, or the files cannot be written; 2 rejected (nothing is
    written), or written with warnings and --strict.
    """
    from qabench.benchmarks.fanoutqa import submission

    if init:
        submission.write_template(metadata)
        _print_template(metadata, as_json)
        return
    if name is None:
        raise InputError("--name is required: the name of the submission's files")
    files = {"closedbook": closed_book, "openbook": open_book, "evidenceprovided": evidence_provided}
    runs = {setting: _run(path, setting) for setting, path in files.items() if path and path.suffix == ".eval"}
    answers = {setting: _answers(runs[setting]) if setting in runs else path for setting, path in files.items() if path}
    deviations = {setting: submission.run_deviations(run) for setting, run in runs.items()}
    ids = submission.leaderboard_ids()
    checked = submission.check(name, metadata, answers, ids, deviations, allow_unofficial)
    paths = [] if checked.errors else submission.write(checked, out)
    _report(checked, paths, out, as_json)
    if checked.errors or (strict and checked.warnings):
        raise typer.Exit(2)


def _run(path: Path, setting: str) -> Evaluation:
    from qabench.runs.log import read_run

    run = read_run(path)
    if run.benchmark != "fanoutqa" or run.setting.replace("-", "") != setting:
        raise InputError(f"{path} is a run of {run.benchmark} {run.setting}, not of fanoutqa {setting}")
    return run


def _answers(run: Evaluation) -> Predictions:
    from qabench.data.predictions import read_predictions

    # A failed question has no answer: the leaderboard counts it as unanswered.
    rows = [{"id": record.id, "answer": record.answer} for record in run.records if record.answer is not None]
    return dataclasses.replace(read_predictions(rows, ("answer",)), path=run.path)


def _print_template(path: Path, as_json: bool) -> None:
    from qabench.benchmarks.fanoutqa.submission import ASKED
    from qabench.cli.output import print_json, say

    if as_json:
        print_json({"metadata": str(path), "keys": {name: key.about for name, key in ASKED.items()}})
        return
    say(f"Wrote {path}. Complete it, then run the command again without --init:")
    for name, key in ASKED.items():
        say(f"  {name}: {key.about}")


def _report(checked: Submission, paths: list[Path], out: Path, as_json: bool) -> None:
    from qabench.cli.output import print_json, say, say_on_stderr

    steps = _steps(checked.name, out) if paths else []
    if as_json:
        print_json(_as_dict(checked, paths, steps))
        return
    for line, style in _lines(checked.problems):
        say_on_stderr(line, style)
    if not paths:
        message = f"rejected, nothing was written; errors: {len(checked.errors)}, warnings: {len(checked.warnings)}"
        say_on_stderr(message, "bold red")
        return
    say(f"Submission {checked.name}:", "bold")
    for path in paths:
        say(f"  {path}")
    for number, step in enumerate(steps, 1):
        say(f"{number}. {step}")


def _as_dict(checked: Submission, paths: list[Path], steps: list[str]) -> dict[str, Any]:
    return {
        "benchmark": "fanoutqa",
        "name": checked.name,
        "written": bool(paths),
        "files": [str(path) for path in paths],
        "answers": {setting: len(answers.rows) for setting, answers in checked.answers.items()},
        "errors": [problem.as_dict() for problem in checked.errors],
        "warnings": [problem.as_dict() for problem in checked.warnings],
        "next": steps,
    }


def _lines(problems: Sequence[Problem]) -> Iterator[tuple[str, str | None]]:
    """Lines to print, each with its style: the files, each with its problems, the first few of each kind."""
    for file in dict.fromkeys(problem.file for problem in problems):
        yield file, None
        problems_by_kind: dict[str, list[Problem]] = {}
        for problem in problems:
            if problem.file == file:
                problems_by_kind.setdefault(problem.kind, []).append(problem)
        for same in problems_by_kind.values():
            title, style = ("error", "red") if same[0].error else ("warning", "yellow")
            for problem in same[:SHOWN]:
                where = "" if problem.line is None else f"line {problem.line}: "
                yield f"  {where}{title}: {_short(problem.message)}", style
            if len(same) > SHOWN:
                yield (
                    f"  {title}: and {len(same) - SHOWN} more of this kind: {same[0].kind} (--json lists all)",
                    style,
                )


def _short(message: str) -> str:
    return message if len(message) <= LONGEST else f"{message[:LONGEST]}... (--json has the full text)"


def _steps(name: str, out: Path) -> list[str]:
    return [
        f"Fork {REPOSITORY} and clone your fork; create a branch, such as {name}.",
        f"Copy the files in {out} to its folder {FOLDER}/ (or write directly to it, with --out CLONE/{FOLDER}).",
        f'Commit only these files ("Add {name} to the leaderboard"), push, and open a pull request to its main branch.',
        "The authors' check scores the answers against the test answers, which are not public, and comments on the "
        "pull request; if it fails, fix the files and push again.",
    ]
