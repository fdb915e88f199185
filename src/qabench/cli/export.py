"""``qabench export``: writes the answers of runs in the formats that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qabench.errors import InputError
from qabench.io.terminal import write_document

SUFFIXES = {"predictions": ".jsonl", "records": ".jsonl", "eval": ".eval"}


def export(
    logs: Annotated[list[Path], typer.Argument(metavar="LOG...", help="Logs of runs, or folders of logs.")],
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
            "load_dataset('json'); eval: the log with numbered samples, for load_dataset('eval')."
        ),
    ] = "predictions",
    epoch: Annotated[int, typer.Option(min=1, help="The epoch whose answers become predictions.")] = 1,
) -> None:
    """Write the answers of runs as predictions, as records, or as logs for `datasets`."""
    from qabench.cli.output import hint, say, warn
    from qabench.io.files import check_writable, write_text
    from qabench.runs import export as runs_export
    from qabench.runs.sources import read_evaluations

    if format not in runs_export.FORMATS:
        raise InputError(f"unknown format {format!r}; allowed: {', '.join(runs_export.FORMATS)}")
    read = read_evaluations(logs, logs_only=True)
    several = len(read.evaluations) > 1
    if output is None and (several or format == "eval"):
        raise InputError("--output is required for several runs and for the format eval")
    for run in read.evaluations:
        path = output / (Path(run.path).stem + SUFFIXES[format]) if several and output else output
        if path:
            check_writable(path)
        if format == "eval" and path:
            if path.suffix != ".eval":
                raise InputError(f"the format eval needs --output FILE.eval, not {path}")
            runs_export.write_with_numbered_samples(run.path, path)
        else:
            text = runs_export.predictions(run, epoch) if format == "predictions" else runs_export.records(run)
            if path:
                write_text(path, text)
            else:
                write_document(text)
        if path and several:
            say(f"wrote {path}")
        lacking = [record.id for record in run.records if record.answer is None and record.epoch == epoch]
        if lacking and format == "predictions":
            warn(f"{run.path}: {len(lacking)} questions without an answer are not in the predictions")
    for note in read.notes:
        hint(note, "yellow")
