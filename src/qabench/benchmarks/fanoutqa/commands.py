"""The command ``qabench fanoutqa submit``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.submission import Problem
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
    from qabench.cli.output import print_json, say, say_on_stderr
    from qabench.data.predictions import read_predictions

    if init:
        _write_template(metadata, as_json)
        return
    if name is None:
        raise InputError("--name is required: the name of the submission's files")
    files = {"closedbook": closed_book, "openbook": open_book, "evidenceprovided": evidence_provided}
    answers: dict[str, Any] = {setting: path for setting, path in files.items() if path}
    deviations = {}
    for setting, path in answers.items():
        if path.suffix == ".eval":
            run = _read_run(path, setting)
            deviations[setting] = submission.run_deviations(run)
            # A failed question has no answer: the leaderboard counts it as unanswered.
            rows = [{"id": record.id, "answer": record.answer} for record in run.records if record.answer is not None]
            answers[setting] = replace(read_predictions(rows, ("answer",)), path=run.path)
    checked = submission.check(name, metadata, answers, submission.leaderboard_ids(), deviations, allow_unofficial)
    paths = [] if checked.errors else submission.write(checked, out)
    steps = _next_steps(name, out) if paths else []
    if as_json:
        print_json(
            {
                "benchmark": "fanoutqa",
                "name": name,
                "written": bool(paths),
                "files": list(map(str, paths)),
                "answers": {setting: len(predictions.rows) for setting, predictions in checked.answers.items()},
                "errors": [problem.as_dict() for problem in checked.errors],
                "warnings": [problem.as_dict() for problem in checked.warnings],
                "next": steps,
            }
        )
    else:
        for line, style in _lines(checked.problems):
            say_on_stderr(line, style)
        if paths:
            say("\n".join([f"Submission {name}:", *(f"  {path}" for path in paths)]))
            say("\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1)))
        else:
            counts = f"errors: {len(checked.errors)}, warnings: {len(checked.warnings)}"
            say_on_stderr(f"rejected, nothing was written; {counts}", "bold red")
    if checked.errors or (strict and checked.warnings):
        raise typer.Exit(2)


def _read_run(path: Path, setting: str) -> Evaluation:
    from qabench.runs.log import read_run

    run = read_run(path)
    if run.benchmark != "fanoutqa" or run.setting.replace("-", "") != setting:
        raise InputError(f"{path} is a run of {run.benchmark} {run.setting}, not of fanoutqa {setting}")
    return run


def _write_template(path: Path, as_json: bool) -> None:
    from qabench.benchmarks.fanoutqa.submission import KEYS, write_template
    from qabench.cli.output import print_json, say

    write_template(path)
    if as_json:
        print_json({"metadata": str(path), "keys": {name: key.about for name, key in KEYS.items()}})
        return
    say(f"Wrote {path}. Complete it, then run the command again without --init:")
    for name, key in KEYS.items():
        say(f"  {name}: {key.about}")


def _lines(problems: Sequence[Problem]) -> Iterator[tuple[str, str | None]]:
    """Yield lines to print, each with its style: the files, each with its problems, the first few of each kind."""
    for file in dict.fromkeys(problem.file for problem in problems):
        yield file, None
        of_file = [problem for problem in problems if problem.file == file]
        for kind in dict.fromkeys(problem.kind for problem in of_file):
            same = [problem for problem in of_file if problem.kind == kind]
            title, style = ("error", "red") if same[0].error else ("warning", "yellow")
            for problem in same[:SHOWN]:
                where = "" if problem.line is None else f"line {problem.line}: "
                message = problem.message
                short = message if len(message) <= LONGEST else f"{message[:LONGEST]}... (--json has the full text)"
                yield f"  {where}{title}: {short}", style
            if (more := len(same) - SHOWN) > 0:
                yield f"  {title}: and {more} more of this kind: {kind} (--json lists all)", style


def _next_steps(name: str, out: Path) -> list[str]:
    return [
        f"Fork {REPOSITORY} and clone your fork; create a branch, such as {name}.",
        f"Copy the files in {out} to its folder {FOLDER}/ (or write directly to it, with --out CLONE/{FOLDER}).",
        f'Commit only these files ("Add {name} to the leaderboard"), push, and open a pull request to its main branch.',
        "The authors' check scores the answers against the test answers, which are not public, and comments on the "
        "pull request; if it fails, fix the files and push again.",
    ]
