"""Commands for several evaluations: ``qabench leaderboard``, ``report`` and ``export``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.options import (
    AsJson,
    BenchmarkName,
    ConfigName,
    Format,
    Output,
    PassKs,
    Questions,
    Samples,
    Scores,
    benchmark_first,
    parse_ks,
)
from qabench.cli.output import hint, print_tables, say, say_on_stderr, warn
from qabench.cli.score import scored
from qabench.errors import InputError, QabenchError, SourceError, unknown_name
from qabench.evaluation.score_spec import select_scores
from qabench.io.environment import offline_variable
from qabench.io.files import check_writable, write_json, write_text
from qabench.io.tables import Table, bounds_text, write_document
from qabench.runs.sources import read_evaluations

if TYPE_CHECKING:
    from qabench.benchmarks.published import RankedSystem
    from qabench.evaluation import Evaluation

PREDICTIONS, RECORDS, EVERY_EVAL_EVER = EXPORTS = ("predictions", "records", "eee")
HUB_SECONDS = 20.0
# fields of a ranked system, before and after its value and interval
SYSTEM, SCORE = ("rank", "system"), ("n", "metric", "config", "setting", "judge", "source")


def leaderboard(
    benchmark: BenchmarkName,
    files: Annotated[
        list[str] | None,
        Argument(metavar="FILE...", help="Logs, folders of logs, or files of predictions."),
    ] = None,
    scores: Scores = None,
    setting: Annotated[
        str | None, Option(help="Only this setting. Files of predictions were made in it.")
    ] = None,
    config: ConfigName = None,
    questions: Questions = None,
    format: Format = "table",
    output: Output = None,
) -> None:
    """Rank systems: published scores, the Hub's entries, and your own evaluations.

    Only systems with the same score, setting, questions and judge are ranked among each other. A
    score that deviates from the official one has no rank. The Hub's entries have the Hub's rank.
    They need the network. Without --scores, systems are ranked by the main score.
    """
    from qabench.benchmarks.published import own_entries, published_entries, ranked

    scorer = benchmark_of(benchmark)
    if setting and scorer.settings:
        scorer.setting(setting)
    evaluations: list[Evaluation] = []
    notes: list[str] = []
    if files:
        sources = scored(files, scorer.name, config, questions=questions)
        evaluations = sources.evaluations
        notes += sources.notes
    entries: list[RankedSystem] = []
    try:
        entries += published_entries(scorer.name)
    except SourceError as error:
        notes.append(f"The published scores are not available: {error}")
    if scores is not None:
        names = [spec.name for spec in select_scores(scorer.scores, scores, scorer.title)]
    elif headline := scorer.headline_score(evaluations):
        names = [headline.name]
    else:
        names = [entry.metric for entry in entries][:1]
    for evaluation in evaluations:
        entries += own_entries(evaluation, names, setting)
    shown = [
        entry
        for entry in entries
        if entry.metric in names and setting in (None, entry.setting) and config in (None, entry.config)
    ]
    rows = ranked(shown, scorer)
    hub, hub_note = _on_hub(f"qabench/{scorer.name}")
    if not (setting or config or scores):
        rows += hub
        rows.sort(key=lambda entry: entry.rank is None)  # stable: only moves unranked systems to the end
    if hub_note:
        notes.append(hub_note)
    if not rows:
        raise InputError(f"there are no scores of {scorer.title} to rank. {' '.join(notes)}".strip())
    document = list(map(asdict, rows))
    if output:
        write_json(output, document)
    print_tables([_table(scorer, rows)], format, document)
    notes[:0] = [
        f"{entry.system} has no rank in {entry.metric}: {'; '.join(entry.deviations)}"
        for entry in rows
        if entry.deviations
    ]
    for note in notes:
        (say if format == "table" else say_on_stderr)(note, "yellow")


def _on_hub(dataset: str) -> tuple[list[RankedSystem], str]:
    """Return the entries of a dataset's leaderboard on the Hub, or a note why there are none."""
    if variable := offline_variable():
        return [], f"The Hub's entries are left out: {variable} is set."
    from huggingface_hub import HfApi

    from qabench.benchmarks.published import RankedSystem
    from qabench.hub.client import bounded_answers, hub_errors

    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    systems = []
    try:
        with bounded_answers(), hub_errors(api):
            for entry in api.get_dataset_leaderboard(
                dataset, base_model_only=False, timeout=HUB_SECONDS
            ):
                ranked_system = RankedSystem(
                    system=entry.model_id,
                    score=float(entry.value),
                    metric="",
                    config="",
                    setting="",
                    source=f"Hub: {entry.filename}{', verified' if entry.verified else ''}",
                    rank=int(entry.rank),
                    verified=bool(entry.verified),
                    notes=entry.notes or "",
                )
                systems.append(ranked_system)
    except QabenchError as error:
        return [], f"The Hub's entries are left out: {error}"
    systems.sort(key=lambda system: system.rank or 0)  # whatever order the Hub sends
    return systems, ""


def _table(scorer: Benchmark, entries: Sequence[RankedSystem]) -> Table:
    rows = []
    for entry in entries:
        fields = asdict(entry)
        # published scores have none
        interval = None if entry.n is None else bounds_text(entry.low, entry.high)
        row = [fields[name] for name in SYSTEM]
        row += [f"{entry.score:.4f}", interval]
        rows.append(row + [fields[name] for name in SCORE])
    heading = "ranks among systems with the same score, config, setting and judge"
    columns = [*SYSTEM, "value", "95% interval", *SCORE]
    return Table(f"{scorer.title}: {heading}", columns, rows)


def export(
    logs: Annotated[
        list[str],
        Argument(
            metavar="LOG...",
            help="Logs of runs, and folders of logs. With eee also a benchmark and files of predictions.",
        ),
    ],
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            metavar="PATH",
            help="A file, or for several runs a folder with one file per run. Default: standard output.",
        ),
    ] = None,
    format: Annotated[
        str,
        Option(
            help='predictions: the input of `qabench score`, such as {"id", "answer"}. records: everything, for '
            "load_dataset('json'). eee: scores and records in the schema of Every Eval Ever, below the folder --output."
        ),
    ] = PREDICTIONS,
    benchmark: Annotated[
        str | None, Option(help="With eee: the benchmark, for files of predictions instead of logs.")
    ] = None,
    config: ConfigName = None,
    developer: Annotated[
        str | None,
        Option(help="With eee: who made the model. Default: the organization in the model's name."),
    ] = None,
    model_id: Annotated[
        str | None, Option(metavar="ORG/NAME", help="With eee: the model's id, for a single run.")
    ] = None,
) -> None:
    """Write the answers of runs as predictions or as records, or the scores in the schema of Every Eval Ever."""
    from qabench.runs import every_eval_ever
    from qabench.runs import export as runs_export

    if format not in EXPORTS:
        raise unknown_name("unknown format", format, EXPORTS)
    if format == EVERY_EVAL_EVER:
        # The stated benchmark, or the first argument if it is one.
        paths, benchmark = benchmark_first([Path(log) for log in logs], benchmark)
        sources = read_evaluations(paths, benchmark, config)
    else:
        options = {
            "--benchmark": benchmark,
            "--config": config,
            "--developer": developer,
            "--model-id": model_id,
        }
        if unused := [option for option, value in options.items() if value is not None]:
            raise InputError(
                f"{', '.join(unused)} has no effect on --format {format}; allowed: with --format eee"
            )
        sources = read_evaluations(logs)
    sources.check_any("export")
    several = len(sources.evaluations) > 1
    if output is None and (several or format == EVERY_EVAL_EVER):
        raise InputError(
            "--output is required for several runs, and for --format eee, which writes a folder"
        )
    if model_id and several:
        raise InputError(f"--model-id is for a single run; these are {len(sources.evaluations)}")
    for run in sources.evaluations:
        if format == EVERY_EVAL_EVER and output is not None:
            say(f"wrote {every_eval_ever.write_evaluation(run, output, developer, model_id)}")
            continue
        text = runs_export.predictions(run) if format == "predictions" else runs_export.records(run)
        if output is None:
            write_document(text)
        else:
            path = output / f"{Path(run.path).stem}.jsonl" if several else output
            write_text(path, text)
            say(f"wrote {path}")
        unanswered = sum(record.answer is None and record.epoch == 1 for record in run.records)
        if unanswered and format == "predictions":
            warn(f"{run.path}: {unanswered} questions without an answer are not in the predictions")
    for note in sources.notes:
        hint(note, "yellow")


def report(
    runs: Annotated[
        list[Path],
        Argument(
            metavar="[BENCHMARK] RUN...",
            help="Logs of `qabench run`, folders of logs, or a benchmark and files of predictions.",
        ),
    ],
    output: Annotated[
        Path, Option("--output", "-o", metavar="DIR", help="The folder for index.html and report.json.")
    ],
    benchmark: Annotated[str | None, Option(help="The benchmark of files of predictions.")] = None,
    config: ConfigName = None,
    scores: Scores = None,
    questions: Questions = None,
    corpus: Annotated[
        Path | None, Option(help="The corpus of a TREC run, as for `qabench score`.")
    ] = None,
    samples: Samples = False,
    pass_k: PassKs = None,
    as_json: AsJson = False,
) -> None:
    """Write a report of runs: the main result, scores with intervals, comparisons, groups, and every question.

    The page is one self-contained file that you can send by mail or put on any server.
    """
    runs, benchmark = benchmark_first(runs, benchmark)
    check_writable(output / "index.html")
    from qabench.report import build_report

    options: dict[str, Any] = {"samples": samples, "ks": parse_ks(pass_k)}
    if corpus:
        options |= benchmark_of(benchmark or "").checked_options({"corpus": corpus})
    sources = scored(runs, benchmark, config, scores=scores, questions=questions, **options)
    sources.check_any("report")
    page = build_report(sources.evaluations, output)
    size = page.stat().st_size / 1e6
    say(f"{page} ({size:.1f} MB); its scores as JSON: {page.with_name('report.json')}")
    for note in sources.notes:
        hint(note, "yellow")
