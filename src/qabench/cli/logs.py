"""Commands for logs of runs: ``qabench export`` and ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.options import ConfigName, Families, JsonOnly, Questions
from qabench.cli.output import hint, print_json, say, warn
from qabench.errors import InputError
from qabench.io.tables import write_document

SUFFIXES = {"predictions": ".jsonl", "records": ".jsonl", "eee": ""}


def export(
    logs: Annotated[
        list[Path],
        typer.Argument(metavar="LOG...", help="Logs of runs, folders of logs; for eee also files of predictions."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="A file; for several runs, a folder with one file per run. Default: standard output.",
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            help='predictions: the input of `qabench score`, such as {"id", "answer"}; records: everything, for '
            "load_dataset('json'); eee: scores and records in the schema of Every Eval Ever, below the folder --output."
        ),
    ] = "predictions",
    benchmark: Annotated[
        str | None, typer.Option(metavar="NAME", help="[eee] The benchmark of files of predictions.")
    ] = None,
    config: ConfigName = None,
) -> None:
    """Write the answers of runs as predictions or as records, or in the schema of Every Eval Ever."""
    from qabench.io.files import check_writable, write_text
    from qabench.runs import export as runs_export
    from qabench.runs.sources import read_evaluations

    if format not in SUFFIXES:
        raise InputError(f"unknown format {format!r}; allowed: {', '.join(SUFFIXES)}")
    sources = read_evaluations(logs, benchmark, config)
    several = len(sources.evaluations) > 1
    if output is None and (several or format == "eee"):
        raise InputError("--output is required for several runs and for the format eee")
    for run in sources.evaluations:
        if format == "eee" and output:
            say(f"wrote {runs_export.write_shared(run, output)}")
            continue
        path = output / (Path(run.path).stem + SUFFIXES[format]) if several and output else output
        if path:
            check_writable(path)
        text = runs_export.predictions(run) if format == "predictions" else runs_export.records(run)
        if path:
            write_text(path, text)
        else:
            write_document(text)
        if path and several:
            say(f"wrote {path}")
        unanswered = sum(record.answer is None and record.epoch == 1 for record in run.records)
        if unanswered and format == "predictions":
            warn(f"{run.path}: {unanswered} questions without an answer are not in the predictions")
    for note in sources.notes:
        hint(note, "yellow")


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Logs of `qabench run`, folders of logs, or files of predictions with --benchmark."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for index.html and report.json.")
    ],
    benchmark: Annotated[
        str | None, typer.Option(metavar="NAME", help="The benchmark of files of predictions.")
    ] = None,
    config: ConfigName = None,
    metrics: Families = None,
    questions: Questions = None,
    corpus: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The corpus of a TREC run, as for `qabench score`.")
    ] = None,
    as_json: JsonOnly = False,
) -> None:
    """Write a report of runs: the main result, scores with intervals, comparisons, groups, and every question.

    The page is one self-contained file that you can send by mail or put on any server.
    """
    from qabench.cli.evaluations import scored
    from qabench.io.files import check_writable

    if output.suffix.lower() in (".html", ".htm"):
        raise InputError(f"--output is a folder, for index.html and report.json: {output.with_suffix('')}, for example")
    check_writable(output / "index.html")
    from qabench.report import build_report

    if benchmark is None and (config or metrics or questions or corpus):
        message = "--config, --metrics, --questions and --corpus are for files of predictions and need --benchmark"
        raise InputError(message)
    families = benchmark_of(benchmark).checked_families(metrics) if benchmark else None
    options = benchmark_of(benchmark).checked_options({"corpus": corpus}) if benchmark and corpus else {}
    sources = scored(runs, benchmark, config, metrics=families, questions=questions, **options)
    page = build_report(sources.evaluations, output)
    scores = page.with_name("report.json")
    if as_json:
        document = {"page": str(page), "numbers": str(scores), "bytes": page.stat().st_size}
        print_json(document | {"notes": sources.notes})
    else:
        say(f"{page} ({page.stat().st_size / 1e6:.1f} MB); its scores as JSON: {scores}")
    for note in sources.notes:
        hint(note, "yellow")
