"""``qabench leaderboard``: published systems, the Hub's entries and the user's evaluations in one table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.options import AsJson, ConfigName, Format, Output, Questions, checked_format
from qabench.cli.output import print_json, print_tables, say, say_on_stderr
from qabench.errors import InputError, QabenchError, SourceError, unknown_name
from qabench.io.tables import Table

if TYPE_CHECKING:
    from qabench.benchmarks.published import Entry
    from qabench.evaluation import Evaluation

HUB_SECONDS = 20.0
COLUMNS = ["rank", "system", "score", "95% interval", "n", "metric", "config", "setting", "judge", "source"]


def leaderboard(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="The benchmark.")],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE...]", help="Logs, folders of logs, or files of predictions.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A metric, such as acc.loose; may be repeated. Default: the main one."),
    ] = None,
    setting: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this setting; files of predictions were made in it.")
    ] = None,
    config: ConfigName = None,
    questions: Questions = None,
    format: Format = "table",
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Rank systems: published scores, the Hub's entries, and your own evaluations.

    Only scores with the same metric, setting, questions and judge are ranked among each other. A score that deviates
    from the official one has no rank. The Hub's entries have the Hub's rank; they need the network.
    """
    from qabench.benchmarks.published import own_entries, published_entries, ranked
    from qabench.cli.evaluations import scored
    from qabench.io.files import write_json

    scorer = benchmark_of(benchmark)
    output_format = checked_format(format, as_json)
    evaluations = scored(files, scorer.name, config, questions=questions).evaluations if files else []
    notes: list[str] = []
    try:
        published = published_entries(scorer.name)
    except SourceError as error:
        published, notes = [], [f"The published scores are not available: {error}"]
    names = _metrics(scorer, metric, evaluations, published)
    entries = [entry for entry in published if entry.metric in names]
    entries += [entry for evaluation in evaluations for entry in own_entries(evaluation, names, setting)]
    entries = [entry for entry in entries if setting in (None, entry.setting) and config in (None, entry.config)]
    hub, hub_note = _on_hub(f"qabench/{scorer.name}")
    notes += filter(None, [hub_note])
    rows = [*ranked(entries, scorer), *(hub if not (setting or config or metric) else ())]
    if not rows:
        raise InputError(f"there are no scores of {scorer.title} to rank. {' '.join(notes)}".strip())
    document = list(map(asdict, rows))
    if output:
        write_json(output, document)
    if output_format == "json":
        print_json(document)
    else:
        print_tables([_table(scorer, rows)], output_format)
    write = say if output_format == "table" else say_on_stderr
    for entry in rows:
        if entry.deviations:
            write(f"{entry.system} has no rank in {entry.metric}: {'; '.join(entry.deviations)}", "yellow")
    for note in notes:
        write(note, "yellow")


def _metrics(
    scorer: Benchmark, chosen: Sequence[str] | None, evaluations: Sequence[Evaluation], published: Sequence[Entry]
) -> list[str]:
    """Return the metrics to rank by: those that are chosen, else the main one, else the first that has a score."""
    available = {entry.metric for entry in published}
    available |= {name for evaluation in evaluations for name in evaluation.scores()}
    if unknown := [name for name in chosen or () if name not in available]:
        raise unknown_name(f"{scorer.title} has no score", unknown[0], sorted(available))
    headline = scorer.headline_metric(evaluations)
    first = [metric.name for metric in scorer.metrics if metric.name in available] or sorted(available)
    return list(chosen or ([headline.name] if headline else first[:1]))


def _on_hub(dataset: str) -> tuple[list[Entry], str]:
    """Return the entries of a dataset's leaderboard on the Hub, or a note why there are none."""
    from qabench.io.environment import offline_variable

    if variable := offline_variable():
        return [], f"The Hub's entries are left out: {variable} is set."
    from huggingface_hub import HfApi

    from qabench.benchmarks.published import Entry
    from qabench.hub.client import bounded_answers, hub_errors

    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    try:
        with bounded_answers(), hub_errors(api):
            entries = api.get_dataset_leaderboard(dataset, timeout=HUB_SECONDS)
            return [
                Entry(entry.model_id, float(entry.value), "", "", "", f"Hub: {entry.filename}", rank=int(entry.rank))
                for entry in entries
            ], ""
    except QabenchError as error:
        return [], f"The Hub's entries are left out: {error}"


def _table(scorer: Benchmark, entries: Sequence[Entry]) -> Table:
    rows: list[list[Any]] = []
    for entry in entries:
        interval = None if entry.low is None else f"{entry.low:.4f} to {entry.high:.4f}"
        rows.append([entry.rank, entry.system, f"{entry.score:.4f}", interval, entry.n, entry.metric, entry.config])
        rows[-1] += [entry.setting, entry.judge, entry.source]
    return Table(f"{scorer.title}: ranks among scores with the same metric, config, setting and judge", COLUMNS, rows)
