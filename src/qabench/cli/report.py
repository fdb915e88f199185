"""``qabench report``: writes runs and files of predictions as one web page that works offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qabench.cli.options import AsJson, ConfigName, Families, Questions
from qabench.errors import InputError


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Logs of `qabench run`, folders of logs, or files of predictions with --benchmark."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="The folder for index.html and report.json."),
    ],
    benchmark: Annotated[
        str | None, typer.Option(metavar="NAME", help="The benchmark of files of predictions.")
    ] = None,
    config: ConfigName = None,
    metrics: Families = None,
    questions: Questions = None,
    title: Annotated[str | None, typer.Option(help="The page's title. Default: the benchmarks' names.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a report of runs: the main result, scores with intervals, comparisons, groups, and every question.

    The page is one self-contained file that you can send by mail or put on any server.
    """
    from qabench.benchmarks import benchmark as benchmark_of
    from qabench.cli.output import hint, plain_warnings, print_json, progress_bar, say
    from qabench.io.files import check_writable

    if output.suffix.lower() in (".html", ".htm"):
        raise InputError(f"--output is a folder, for index.html and report.json: {output.with_suffix('')}, for example")
    check_writable(output / "index.html")
    from qabench.report import build_report
    from qabench.runs.sources import read_evaluations

    if benchmark is None and (config or metrics or questions):
        raise InputError("--config, --metrics and --questions are for files of predictions and need --benchmark")
    families = benchmark_of(benchmark).checked_families(_names(metrics)) if benchmark else None
    with plain_warnings(), progress_bar("Scoring") as progress:
        read = read_evaluations(list(runs), benchmark, config, metrics=families, questions=questions, progress=progress)
    page = build_report(read.evaluations, output, title)
    numbers = page.with_name("report.json")
    if as_json:
        print_json({"page": str(page), "numbers": str(numbers), "bytes": page.stat().st_size, "notes": read.notes})
    else:
        say(f"{page} ({page.stat().st_size / 1e6:.1f} MB); its scores as JSON: {numbers}")
    for note in read.notes:
        hint(note, "yellow")
    if open_page:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _names(metrics: str | None) -> list[str] | None:
    return metrics.split(",") if metrics else None
