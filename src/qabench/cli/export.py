"""``qabench export``: a run's answers in the forms that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qabench.errors import InputError


def export(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log of a run.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="By default standard output.")] = None,
    format: Annotated[
        str,
        typer.Option(
            help='generations: {"id", "answer"} a line, as leaderboard and `qabench score` read them; '
            "records: everything, for load_dataset('json'); eval: the log with numbered samples, for "
            "load_dataset('eval')."
        ),
    ] = "generations",
    epoch: Annotated[int, typer.Option(help="Of generations: which epoch's answers.")] = 1,
) -> None:
    """Write a run's answers as a generations file, as records, or as a log for `datasets`."""
    from qabench.cli.output import errors
    from qabench.files import write_text
    from qabench.runs import export as runs_export
    from qabench.runs.log import read_run

    if format not in runs_export.FORMATS:
        raise InputError(f"unknown format {format!r}; allowed: {', '.join(runs_export.FORMATS)}")
    run = read_run(log)
    if format == "eval":
        if out is None or out.suffix != ".eval":
            raise InputError("the format eval needs --out FILE.eval")
        runs_export.write_with_numbered_samples(log, out)
    else:
        text = runs_export.generations(run, epoch) if format == "generations" else runs_export.records(run)
        if out is None:
            print(text, end="")
        else:
            write_text(out, text)
    left_out = [record.id for record in run.records if record.answer is None and record.epoch == epoch]
    if left_out and format == "generations":
        errors().print(
            f"left out: {len(left_out)} questions without an answer ({', '.join(left_out[:3])}, ...); "
            f"`qabench run --resume {log}` asks them again",
            style="yellow",
            markup=False,
        )
