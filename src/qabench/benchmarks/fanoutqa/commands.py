"""The command ``qabench fanoutqa submit``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.submission import Problem
    from qabench.evaluation import Evaluation

SHOWN = 10  # problems of each kind that are printed; the others are counted
FOLDER = "leaderboard-submissions"


def submit(
    metadata: Annotated[Path, typer.Option(metavar="FILE", help="The system's metadata, a JSON object.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="The name of the files: letters, digits, - and _.")],
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
    allow_unofficial: Annotated[
        bool,
        typer.Option("--allow-unofficial", help="Accept runs that differ from the authors'; noted in the metadata."),
    ] = False,
) -> None:
    """Check a submission to FanOutQA's leaderboard and write the files of its pull request.

    A run with prompts, a protocol or parameters that differ from the authors' is rejected without --allow-unofficial.
    Exit code: 0 written; 1 the test questions are not available, or the files cannot be written; 2 rejected (nothing is
    written).
    """
    from qabench.benchmarks.fanoutqa import submission
    from qabench.cli.output import say, say_on_stderr
    from qabench.data.predictions import read_predictions

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
    _print_problems(checked.problems)
    if errors := sum(problem.error for problem in checked.problems):
        warnings = len(checked.problems) - errors
        say_on_stderr(f"rejected, nothing was written; errors: {errors}, warnings: {warnings}", "bold red")
        raise typer.Exit(2)
    for file in submission.write(checked, out):
        say(file)
    say(
        f"Open a pull request to https://github.com/zhudotexe/fanoutqa with these files in its folder {FOLDER}/. The "
        "authors' check scores the answers against the test answers, which are not public, and comments on it."
    )


def _read_run(path: Path, setting: str) -> Evaluation:
    from qabench.runs.log import read_run

    run = read_run(path)
    if run.benchmark != "fanoutqa" or run.setting.replace("-", "") != setting:
        raise InputError(f"{path} is a run of {run.benchmark} {run.setting}, not of fanoutqa {setting}")
    return run


def _print_problems(problems: Sequence[Problem]) -> None:
    """Print the first few problems of each kind in each file, and the number of the others."""
    from qabench.cli.output import say_on_stderr

    counts: Counter[tuple[str, str]] = Counter()
    for problem in problems:
        counts[problem.file, problem.kind] += 1
        if counts[problem.file, problem.kind] <= SHOWN:
            where = problem.file if problem.line is None else f"{problem.file}, line {problem.line}"
            title, style = ("error", "red") if problem.error else ("warning", "yellow")
            say_on_stderr(f"{where}: {title}: {problem.message}", style)
    for (file, kind), count in counts.items():
        if count > SHOWN:
            say_on_stderr(f"{file}: and {count - SHOWN} more of this kind: {kind}")
