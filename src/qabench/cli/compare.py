"""``qabench compare``: which systems are better on the same questions, and whether the differences are significant."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.lazy import with_parameters
from qabench.cli.options import (
    AsJson,
    BenchmarkName,
    ConfigName,
    Format,
    MetricName,
    Output,
    Questions,
    Track,
    Verbose,
    checked_format,
)
from qabench.cli.output import print_json, print_tables
from qabench.cli.score import parameters
from qabench.errors import InputError

RESAMPLES = 10_000  # the default of qabench.stats, which imports NumPy
MAX_RESAMPLES = 10_000_000


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
        int, typer.Option(min=1, max=MAX_RESAMPLES, help="Resamples of tests and intervals.")
    ] = RESAMPLES,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the resampling.")] = 0,
    format: Format = "table",
    output: Output = None,
    track: Track = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    **options: Any,
) -> None:
    """Compare systems on the same questions: scores, paired differences with intervals, corrected p-values.

    All questions of the config count, unanswered ones as in the official score.
    """
    from qabench.cli.evaluations import print_notes, scored
    from qabench.evaluation.comparison import compare as compare_evaluations
    from qabench.evaluation.tables import labels
    from qabench.io.files import check_writable, write_json

    output_format = checked_format(format, as_json)
    if output:
        check_writable(output)
    scorer = benchmark_of(benchmark)
    chosen = scorer.metric(metric) if metric else None
    families = [family for family in scorer.families if chosen and family in (chosen.family, chosen.name)]
    values = scorer.checked_options(options)
    sources = scored(files, scorer.name, config, metrics=families or None, questions=questions, **values)
    evaluations = sources.evaluations
    paths = [evaluation.path for evaluation in evaluations]
    if len(paths) < 2:
        raise InputError(
            "nothing to compare: give at least two systems, such as: qabench compare BENCHMARK A.jsonl B.jsonl"
        )
    if repeated := [path for path in paths if paths.count(path) > 1]:
        raise InputError(f"the file was given twice: {repeated[0]}")
    chosen = chosen or scorer.headline_metric(evaluations)
    if chosen is None:
        raise InputError(f"none of the files has a score of {scorer.title}")
    systems = dict(zip(labels(evaluations), evaluations, strict=True))
    comparison = compare_evaluations(systems, chosen, test=test, correction=correction, resamples=resamples, seed=seed)
    if not comparison.systems:
        available = {name: None for evaluation in evaluations for name in evaluation.scores()}
        raise InputError(
            f"no system has the score {chosen.name}, which is undefined for these answers; choose another with "
            f"--metric: {', '.join(available)}"
        )
    unscored = [label for label in systems if label not in comparison.systems]
    notes = [*sources.notes, *(f"{label} has no score {chosen.name}" for label in unscored)]
    document = {"benchmark": scorer.name, "config": evaluations[0].config, **comparison.as_dict(), "notes": notes}
    if output:
        write_json(output, document)
    if output_format == "json":
        print_json(document)
    else:
        print_tables(comparison.tables(), output_format)
    print_notes(evaluations, notes, output_format, verbose)
    if track:
        from qabench.runs.export import send

        send(evaluations, track)


compare = with_parameters(_compare, parameters())
