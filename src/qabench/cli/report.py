"""``qabench report``: runs as one web page that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qabench.errors import InputError


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Logs of `qabench run`, or FanOutQA answers as JSONL; several are compared."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where index.html and report.json are written.")],
    config: Annotated[str | None, typer.Option(help="Of answers as JSONL: whose questions they belong to.")] = None,
    title: Annotated[str | None, typer.Option(help="The page's title; by default it names the benchmarks.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print where it is as one JSON document.")] = False,
) -> None:
    """Write a report of runs: scores with intervals, comparisons, breakdowns, and every question with its answers.

    The page holds everything inside: mail it, or put it on any server.
    """
    from qabench.cli.output import console, plain_warnings, print_json
    from qabench.report import build_report
    from qabench.runs.log import read_run
    from qabench.runs.scored import score_file

    if config and not any(run.suffix == ".jsonl" for run in runs):
        raise InputError("--config is for answers as JSONL; a log names its own config")
    with plain_warnings():
        read = [score_file(run, config) if run.suffix == ".jsonl" else read_run(run) for run in runs]
    page = build_report(read, out, title)
    numbers = page.with_name("report.json")
    if as_json:
        print_json({"page": str(page), "numbers": str(numbers), "bytes": page.stat().st_size})
    else:
        megabytes = page.stat().st_size / 1e6
        console().print(f"{page} ({megabytes:.1f} MB); its figures: {numbers}", markup=False, soft_wrap=True)
    if open_page:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
