"""``qabench compare``: which systems are better on the same questions, and whether the differences are significant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.lazy import with_parameters
from qabench.cli.options import AsJson, BenchmarkName, ConfigName, Format, MetricName, Output, Questions, checked_format
from qabench.cli.score import parameters
from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation
    from qabench.evaluation.metric import Metric

RESAMPLES = 10_000  # the default of qabench.stats, which imports NumPy
MOST_RESAMPLES = 10_000_000


def _compare(
    benchmark: BenchmarkName,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Predictions, logs of runs, or folders of logs; at least two systems."),
    ],
    config: ConfigName = None,
    metric: MetricName = None,
    questions: Questions = None,
    test: Annotated[str, typer.Option(help="randomization or bootstrap.")] = "randomization",
    correction: Annotated[
        str, typer.Option(help="Correction of p-values for several pairs: holm, bh (false discovery rate) or none.")
    ] = "holm",
    resamples: Annotated[
        int, typer.Option(min=1, max=MOST_RESAMPLES, help="Resamples of tests and intervals.")
    ] = RESAMPLES,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the resampling.")] = 0,
    format: Format = "table",
    output: Output = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Compare systems on the same questions: scores, paired differences with intervals, corrected p-values.

    All questions of the config count, unanswered ones as in the official score.
    """
    from qabench.cli import evaluation_output
    from qabench.cli.output import plain_warnings, print_json, print_tables, progress_bar
    from qabench.evaluation.comparison import compare as compare_evaluations
    from qabench.io.files import check_writable, write_json
    from qabench.runs.sources import read_evaluations

    found = benchmark_of(benchmark)
    chosen = checked_format(format, as_json)
    given = found.checked_options(options)
    wanted = found.metric(metric) if metric else None
    if output:
        check_writable(output)
    with plain_warnings(), progress_bar("Scoring") as progress:
        read = read_evaluations(
            files,
            found.name,
            config,
            metrics=_families(wanted, found.families),
            questions=questions,
            progress=progress,
            **given,
        )
    systems = labeled(read.evaluations)
    by = wanted or found.headline_metric(read.evaluations)
    if by is None:
        raise InputError(f"none of the files has a score of {found.title}")
    compared = compare_evaluations(systems, by, test=test, correction=correction, resamples=resamples, seed=seed)
    lacking = [label for label in systems if label not in compared.systems]
    notes = [*read.notes, *(f"{label} has no score {by.name}" for label in lacking)]
    document = {"benchmark": found.name, "config": read.evaluations[0].config, **compared.as_dict(), "notes": notes}
    if output:
        write_json(output, document)
    if chosen == "json":
        print_json(document)
    else:
        print_tables(compared.tables(), chosen)
    evaluation_output.print_notes(read.evaluations, notes, chosen)


compare = with_parameters(_compare, parameters())


def labeled(evaluations: list[Evaluation]) -> dict[str, Evaluation]:
    """The evaluations by label; see ``qabench.evaluation.labels``.

    Raises:
        InputError: there are fewer than two, or a file was given twice.
    """
    if len(evaluations) < 2:
        raise InputError(
            "nothing to compare: give at least two systems, such as: qabench compare BENCHMARK A.jsonl B.jsonl"
        )
    paths = [one.path for one in evaluations]
    if twice := [path for path in paths if paths.count(path) > 1]:
        raise InputError(f"the file was given twice: {twice[0]}")
    from qabench.evaluation.labels import labels

    return dict(zip(labels(evaluations), evaluations, strict=True))


def _families(metric: Metric | None, allowed: Mapping[str, str]) -> list[str] | None:
    """The family to compute for a metric; None for the default ones."""
    if metric is None:
        return None
    names = [name for name in allowed if name in (metric.family, metric.name)]
    return names or None
