"""``qabench leaderboard``: published systems, the Hub's entries and the user's evaluations in one table."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.options import AsJson, ConfigName, Format, Output, Questions, checked_format
from qabench.cli.output import plain_warnings, print_json, print_tables, progress_bar, say, say_on_stderr
from qabench.errors import InputError, QabenchError, SourceError, unknown_name
from qabench.io.tables import Table

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation

HUB_SECONDS = 20.0
COLUMNS = ["rank", "system", "score", "95% interval", "n", "metric", "config", "setting", "judge", "source"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One score of one system; entries with the same ``group`` are ranked among each other."""

    system: str
    score: float
    metric: str
    config: str
    setting: str
    source: str
    judge: str = ""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    deviations: tuple[str, ...] = ()
    rank: int | None = None

    @property
    def group(self) -> tuple[str, str, str, str]:
        """Return what scores must have in common to be comparable."""
        return self.metric, self.setting, self.config, self.judge


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
    from qabench.io.files import write_json
    from qabench.runs.sources import read_evaluations

    scorer = benchmark_of(benchmark)
    output_format = checked_format(format, as_json)
    evaluations: Sequence[Evaluation] = ()
    if files:
        with plain_warnings(), progress_bar("Scoring", "texts") as progress:
            evaluations = read_evaluations(
                files, scorer.name, config, questions=questions, progress=progress
            ).evaluations
    published, notes = _published(scorer)
    names = _metrics(scorer, metric, evaluations, published)
    entries = [entry for entry in published if entry.metric in names]
    entries += [entry for evaluation in evaluations for entry in _own(evaluation, names, setting)]
    entries = [entry for entry in entries if setting in (None, entry.setting) and config in (None, entry.config)]
    hub, hub_note = _on_hub(f"qabench/{scorer.name}")
    lower = {each.name for each in scorer.metrics if not each.higher_is_better}
    ranked = [*_ranked(entries, lower), *(hub if not (setting or config or metric) else ())]
    if not ranked:
        raise InputError(f"there are no scores of {scorer.title} to rank. {' '.join([*notes, hub_note])}".strip())
    rows = [{**asdict(entry), "deviations": list(entry.deviations)} for entry in ranked]
    if output:
        write_json(output, rows)
    if output_format == "json":
        print_json(rows)
    else:
        print_tables([_table(scorer, ranked)], output_format)
    write = say if output_format == "table" else say_on_stderr
    for entry in ranked:
        if entry.deviations:
            write(f"{entry.system} has no rank in {entry.metric}: {'; '.join(entry.deviations)}", "yellow")
    for note in filter(None, [*notes, hub_note]):
        write(note, "yellow")


def _published(scorer: Benchmark) -> tuple[list[Entry], list[str]]:
    from qabench.benchmarks.published import published

    try:
        scores = published(scorer.name)
    except SourceError as error:
        return [], [f"The published scores are not available: {error}"]
    return [
        Entry(
            entry.system, entry.value, entry.metric, entry.config, entry.setting or "", "published", entry.judge or ""
        )
        for entry in scores
    ], []


def _metrics(
    scorer: Benchmark, chosen: Sequence[str] | None, evaluations: Sequence[Evaluation], published: Sequence[Entry]
) -> list[str]:
    """Return the metrics to rank by: those that are chosen, else the main one, else the first published one."""
    available = {entry.metric for entry in published}
    available |= {name for evaluation in evaluations for name in evaluation.scores()}
    if unknown := [name for name in chosen or () if name not in available]:
        raise unknown_name(f"{scorer.title} has no score", unknown[0], sorted(available))
    if chosen:
        return list(chosen)
    headline = scorer.headline_metric(evaluations) if evaluations else None
    names = [headline.name] if headline else []
    names += [metric.name for metric in scorer.metrics if metric.name in available]
    return [*names, *sorted(available)][:1]


def _own(evaluation: Evaluation, names: Sequence[str], setting: str | None) -> Iterable[Entry]:
    from qabench.evaluation.evaluation import PREDICTIONS
    from qabench.evaluation.signature import parse

    for name, score in evaluation.scores().items():
        if name in names:
            line = evaluation.signatures.get(score.metric.family)
            interval = score.interval
            yield Entry(
                evaluation.model,
                interval.mean,
                name,
                evaluation.config,
                setting or PREDICTIONS if evaluation.setting == PREDICTIONS else evaluation.setting,
                str(evaluation.path),
                (parse(line)[1].get("judge") or "") if line else "",
                interval.low,
                interval.high,
                score.n,
                tuple(evaluation.deviations(score)),
            )


def _ranked(entries: Sequence[Entry], lower: Container[str] = ()) -> list[Entry]:
    """Return the entries by group, the best first; equal scores have the same rank.

    Args:
        entries: in any order.
        lower: the metrics whose lower scores are better.
    """
    ranked = []
    for group in sorted({entry.group for entry in entries}):
        members = [entry for entry in entries if entry.group == group]
        members.sort(key=attrgetter("score"), reverse=group[0] not in lower)
        official = [entry.score for entry in members if not entry.deviations]
        for entry in members:
            rank = None if entry.deviations else 1 + official.index(entry.score)
            ranked.append(replace(entry, rank=rank))
    return ranked


def _on_hub(dataset: str) -> tuple[list[Entry], str]:
    """Return the entries of a dataset's leaderboard on the Hub, or a note why there are none."""
    from qabench.io.environment import offline_variable

    if variable := offline_variable():
        return [], f"The Hub's entries are left out: {variable} is set."
    from huggingface_hub import HfApi

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
