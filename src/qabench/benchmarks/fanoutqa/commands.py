"""The command ``qabench fanoutqa submit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Exit, Option

from qabench.cli.output import say, say_on_stderr

FOLDER = "leaderboard-submissions"


def submit(
    metadata: Annotated[Path, Option(help="The system's metadata, a JSON object.")],
    name: Annotated[str, Option(help="The name of the files: letters, digits, - and _.")],
    closed_book: Annotated[
        Path | None,
        Option(
            help='Closed-book answers: a log of qabench run, or {"id", "answer"} per line.',
        ),
    ] = None,
    open_book: Annotated[Path | None, Option(help="Open-book answers (same formats).")] = None,
    evidence_provided: Annotated[
        Path | None, Option(help="Evidence-provided answers (same formats).")
    ] = None,
    out: Annotated[
        Path,
        Option(metavar="DIR", help="The folder to write to, such as a clone of the repository."),
    ] = Path(FOLDER),
    allow_unofficial: Annotated[
        bool,
        Option(
            "--allow-unofficial",
            help="Accept runs that differ from the authors'; noted in the metadata.",
        ),
    ] = False,
) -> None:
    """Check a submission to FanOutQA's leaderboard and write the files of its pull request.

    A run with prompts, a protocol or parameters that differ from the authors' is rejected without
    --allow-unofficial. Exit code: 0 written; 1 the test questions are not available, or the files
    cannot be written; 2 rejected (nothing is written).
    """
    from qabench.benchmarks.fanoutqa import submission
    from qabench.runs.log import read_run

    files = {
        "closedbook": closed_book,
        "openbook": open_book,
        "evidenceprovided": evidence_provided,
    }
    answers = {
        setting: read_run(path) if path.suffix == ".eval" else path
        for setting, path in files.items()
        if path
    }
    checked = submission.check(
        name, metadata, answers, submission.leaderboard_ids(), allow_unofficial
    )
    for problem in checked.problems:
        title, style = ("error", "red") if problem.error else ("warning", "yellow")
        say_on_stderr(f"{problem.file}: {title}: {problem.message}", style)
    if errors := sum(problem.error for problem in checked.problems):
        warnings = len(checked.problems) - errors
        say_on_stderr(
            f"rejected, nothing was written; errors: {errors}, warnings: {warnings}", "bold red"
        )
        raise Exit(2)
    for path in submission.write(checked, out):
        say(path)
    say(
        f"Open a pull request to https://github.com/zhudotexe/fanoutqa with these files in its folder {FOLDER}/. The "
        "authors' check scores the answers against the test answers, which are not public, and comments on it."
    )
