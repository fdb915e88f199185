"""Commands for several evaluations: ``qabench leaderboard``, ``report`` and ``export``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.options import (
    AsJson,
    BenchmarkName,
    ConfigName,
    Format,
    Human,
    LowerIsBetter,
    Output,
    PassKs,
    Questions,
    Samples,
    Scores,
    benchmark_first,
    output_folder,
    parse_ks,
)
from qabench.cli.output import (
    hint,
    plain_warnings,
    print_json,
    print_table,
    say,
    say_on_stderr,
    scoring_progress,
    warn,
)
from qabench.cli.score import corrected_sources
from qabench.errors import InputError, QabenchError, SourceError, unknown_name
from qabench.evaluation.score_spec import select_scores
from qabench.io.environment import offline_variable
from qabench.io.files import check_writable, write_json, write_text
from qabench.io.redaction import write_document
from qabench.io.tables import Table, bounds_text
from qabench.runs.file_kinds import LINES
from qabench.runs.selection import cutoffs_not_computed, not_in_log
from qabench.runs.sources import read_evaluations

if TYPE_CHECKING:
    from qabench.benchmarks.published import RankedSystem
    from qabench.evaluation import Evaluation

PREDICTIONS, RECORDS, EVERY_EVAL_EVER = EXPORTS = ("predictions", "records", "eee")
# The Hub's leaderboard is only one of the sources, so it is left out if it is slow.
HUB_SECONDS = 20.0
# The ``source`` of published scores in the ranking.
PUBLISHED = "published"
# The fields of a ranked system before and after its value and interval.
SYSTEM, SCORE = ("rank", "system"), ("n", "metric", "config", "setting", "judge", "source")


def leaderboard(
    benchmark: BenchmarkName,
    files: Annotated[
        list[str] | None,
        Argument(metavar="FILE...", help="Logs, folders of logs, or files of predictions."),
    ] = None,
    scores: Scores = None,
    setting: Annotated[
        str | None,
        Option(help="Show only this setting. Files of predictions are assumed to be made in it."),
    ] = None,
    config: ConfigName = None,
    questions: Questions = None,
    format: Format = "table",
    output: Output = None,
    **options: Any,
) -> None:
    """Rank systems: published scores, the Hub's entries, and your own evaluations.

    Only systems with the same score, setting, questions and judge are ranked among each other. A
    score that deviates from the official one has no rank. The Hub's entries have the Hub's rank,
    need network access, and are left out with --scores, --setting or --config. Without --scores,
    systems are ranked by the main score.
    """
    from qabench.benchmarks.published import own_entries, published_entries, ranked

    chosen_benchmark = benchmark_of(benchmark)
    values = chosen_benchmark.checked_options(options)
    if setting and chosen_benchmark.settings:
        # Raises an error for a setting that the benchmark does not have.
        chosen_benchmark.setting(setting)

    # Collect the entries: your own evaluations and published scores.
    evaluations: list[Evaluation] = []
    notes: list[str] = []
    if files:
        with scoring_progress() as progress:
            sources = read_evaluations(
                files, chosen_benchmark, config, questions=questions, progress=progress, **values
            )
        evaluations = sources.evaluations
        notes += sources.notes
    entries: list[RankedSystem] = []
    try:
        entries += published_entries(chosen_benchmark.name)
    except SourceError as error:
        # Your own systems can be ranked without the file of published scores.
        notes.append(f"The published scores are not available: {error}")
    if scores is not None:
        names = [
            spec.name
            for spec in select_scores(chosen_benchmark.scores, scores, chosen_benchmark.title)
        ]
    elif headline := chosen_benchmark.headline_score(evaluations):
        names = [headline.name]
    else:
        # If no evaluation has a main score, the first published score is shown.
        names = [entry.metric for entry in entries][:1]
    for evaluation in evaluations:
        entries += own_entries(evaluation, names, setting)

    # Rank those that the options ask for.
    shown = []
    for entry in entries:
        # Some published scores name no setting, so they are shown with every setting.
        has_setting = setting is None or entry.setting in (setting, "")
        has_config = config in (None, entry.config)
        if entry.metric in names and has_setting and has_config:
            shown.append(entry)
    rows = ranked(shown, chosen_benchmark)
    settings = {entry.setting for entry in shown}
    if setting and "" in settings:
        notes.append(
            f"The published scores of {chosen_benchmark.title} name no setting, so they are shown with every setting."
        )
    if other_questions := _note_about_other_questions(entries, evaluations, names):
        notes.append(other_questions)
    hub, hub_note = _on_hub(chosen_benchmark)
    # The Hub's entries state their score, config and setting only in free-text notes, which not all
    # entries have.
    if not (setting or config or scores):
        rows += hub
        # A stable sort, which only moves systems without a rank to the end.
        rows.sort(key=lambda entry: entry.rank is None)
    if hub_note:
        notes.append(hub_note)
    notes_of_rows = _without_scores(evaluations, names)
    if not rows:
        raise InputError(
            f"there are no scores of {chosen_benchmark.title} to rank{_where_published(entries, setting)}. "
            f"{' '.join([*(f'{note}.' for note in notes_of_rows), *notes])}".strip()
        )

    # Print the table, and then why systems have no rank or no row.
    document = list(map(asdict, rows))
    if output:
        write_json(output, document)
    if format == "csv":
        print_table(_number_table(chosen_benchmark, rows), "csv")
    else:
        print_table(_table(chosen_benchmark, rows), format, document)
    for entry in rows:
        if entry.deviations:
            reasons = "; ".join(entry.deviations)
            notes_of_rows.append(f"{entry.system} has no rank in {entry.metric}: {reasons}")
    for note in [*notes_of_rows, *notes]:
        if format == "table":
            say(note, "yellow")
        else:
            # Standard output has only the document, so the note goes to standard error.
            say_on_stderr(note, "yellow")


def _note_about_other_questions(
    entries: Sequence[RankedSystem], evaluations: Sequence[Evaluation], names: Sequence[str]
) -> str:
    """Return a note if no published score is for the questions of an evaluation, else ""."""
    published = set()
    for entry in entries:
        if entry.source == PUBLISHED and entry.metric in names:
            published.add(entry.config)
    own = {evaluation.config for evaluation in evaluations}
    only_own = sorted(own - published)
    if not published or not only_own:
        return ""
    return (
        f"The published scores are for other questions ({', '.join(sorted(published))}): systems on "
        f"{' and '.join(only_own)} are ranked only against each other."
    )


def _where_published(entries: Sequence[RankedSystem], setting: str | None) -> str:
    """Return the end of an error: which settings have scores, or "" if none was asked for."""
    if setting is None:
        return ""
    settings = dict.fromkeys(entry.setting for entry in entries)
    settings.pop("", None)
    return (
        f" in the setting {setting}; the settings with scores are {', '.join(settings) or 'none'}"
    )


def _on_hub(benchmark: Benchmark) -> tuple[list[RankedSystem], str]:
    """Return the entries of a benchmark's leaderboard on the Hub, or a note why there are none."""
    if variable := offline_variable():
        return [], f"The Hub's entries are left out: {variable} is set."
    from huggingface_hub import HfApi

    from qabench.benchmarks.published import RankedSystem
    from qabench.hub.client import bounded_answers, hub_errors
    from qabench.hub.results import described

    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    systems = []
    try:
        with bounded_answers(), hub_errors(api):
            for entry in api.get_dataset_leaderboard(
                f"qabench/{benchmark.name}", base_model_only=False, timeout=HUB_SECONDS
            ):
                # The Hub's entries have no fields for these three: the notes state them.
                metric, config, setting = described(entry.notes or "", benchmark)
                ranked_system = RankedSystem(
                    system=entry.model_id,
                    score=float(entry.value),
                    metric=metric,
                    config=config,
                    setting=setting,
                    source=f"Hub: {entry.filename}{', verified' if entry.verified else ''}",
                    rank=int(entry.rank),
                    verified=bool(entry.verified),
                    notes=entry.notes or "",
                )
                systems.append(ranked_system)
    except QabenchError as error:
        return [], f"The Hub's entries are left out: {error}"
    # The Hub may send them in any order.
    systems.sort(key=lambda system: system.rank or 0)
    return systems, ""


def _without_scores(evaluations: Sequence[Evaluation], names: Sequence[str]) -> list[str]:
    """Say which scores, or groups of scores, systems do not have: these have no row in the table."""
    notes = []
    for evaluation in evaluations:
        scores, undefined = evaluation.scores(), evaluation.undefined()
        computed = {score.spec.group for score in scores.values()}
        groups = {spec.name: spec.group for spec in evaluation.score_specs}
        # If a group was not computed, all its scores are absent for one reason, which is given
        # once.
        lacking: dict[str, None] = {}
        for name in names:
            if name in scores:
                continue
            if name in undefined:
                lacking[f"score {name}: {undefined[name]}"] = None
            elif name in groups and groups[name] not in computed:
                lacking[f"scores of {groups[name]}"] = None
            else:
                lacking[f"score {name}"] = None
        notes += [f"{evaluation.name} has no {what}" for what in lacking]
    return notes


def _table(benchmark: Benchmark, entries: Sequence[RankedSystem]) -> Table:
    rows = []
    for entry in entries:
        fields = asdict(entry)
        # Published scores and the Hub's entries have no interval.
        interval = None if entry.n is None else bounds_text(entry.low, entry.high)
        fields |= {"value": f"{entry.score:.4f}", "95% interval": interval}
        rows.append([fields[name] for name in (*SYSTEM, "value", "95% interval", *SCORE)])
    heading = "ranks among systems with the same score, config, setting and judge"
    columns = [*SYSTEM, "value", "95% interval", *map(_column, SCORE)]
    return Table(f"{benchmark.title}: {heading}", columns, rows)


def _number_table(benchmark: Benchmark, entries: Sequence[RankedSystem]) -> Table:
    """Return the fields of the ranked systems, with exact numbers."""
    names = [*SYSTEM, "score", "low", "high", *SCORE]
    rows = []
    for entry in entries:
        rows.append([getattr(entry, name) for name in names])
    return Table(benchmark.title, list(map(_column, names)), rows)


def _column(field: str) -> str:
    """Return the title of a column, which is the same in the tables of all commands."""
    # In a ranked system, "metric" is the name of a score, and "score" its value.
    return {"score": "value", "metric": "score"}.get(field, field)


def export(
    logs: Annotated[
        list[str],
        Argument(
            metavar="LOG...",
            help="Logs of runs, and folders of logs. With eee, also a benchmark and files of predictions.",
        ),
    ],
    output: Annotated[
        Path | None,
        Option(
            "--output",
            "-o",
            metavar="PATH",
            help="A .jsonl file, or for several runs a folder with one file per run. Default: standard output.",
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
        str | None,
        Option(help="With eee: the benchmark, for files of predictions instead of logs."),
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
    """Write the answers of runs for other programs.

    They are written as predictions, as records, or with scores in the schema of Every Eval Ever.
    """
    from qabench.runs import every_eval_ever
    from qabench.runs import export as runs_export

    if output == Path("-"):
        raise InputError(
            "cannot write a file or folder named -; for standard output, leave out --output"
        )

    # Read the runs.
    if format not in EXPORTS:
        raise unknown_name("unknown format", format, EXPORTS)
    if format == EVERY_EVAL_EVER:
        # The stated benchmark, or the first argument if it is one.
        paths, chosen_benchmark = benchmark_first(list(map(Path, logs)), benchmark)
        with plain_warnings():
            sources = read_evaluations(paths, chosen_benchmark, config)
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
        with plain_warnings():
            sources = read_evaluations(logs)
    sources.check_any("export")

    # Find where each run is written: a file, or a folder with one file per run.
    several = len(sources.evaluations) > 1
    if output is None and (several or format == EVERY_EVAL_EVER):
        raise InputError(
            "--output is required for several runs, and for --format eee, which writes a folder"
        )
    if model_id and several:
        raise InputError(f"--model-id is for a single run; got {len(sources.evaluations)}")
    in_folder = output is not None and (several or output.is_dir())
    if output is not None and not in_folder and format != EVERY_EVAL_EVER:
        output = _lines_file(output)
        check_writable(output, logs)

    # Write one run after the other.
    for run in sources.evaluations:
        if format == EVERY_EVAL_EVER and output is not None:
            say(f"wrote {every_eval_ever.write_evaluation(run, output, developer, model_id)}")
            continue
        text = runs_export.predictions(run) if format == "predictions" else runs_export.records(run)
        if output is None:
            write_document(text)
        else:
            path = output
            if in_folder:
                path = output / f"{Path(run.path).stem}{LINES}"
            write_text(path, text)
            say(f"wrote {path}")
        unanswered = 0
        for record in run.records:
            # Each question is counted once, however often it was asked.
            if record.answer is None and record.epoch == 1:
                unanswered += 1
        if unanswered and format == "predictions":
            warn(f"{run.path}: {unanswered} questions without an answer are not in the predictions")
    for note in sources.notes:
        hint(note, "yellow")


def _lines_file(path: Path) -> Path:
    """Return the path with the suffix .jsonl, by which readers recognize the format.

    Raises:
        InputError: the path has another suffix.
    """
    # /dev/stdout or a named pipe has no suffix, and no reader looks for one.
    is_special = path.exists() and not path.is_file()
    if path.suffix == LINES or is_special:
        return path
    # A suffix such as ".1" of llama-3.1 is part of the name and not a format.
    if not path.suffix.removeprefix(".").isalpha():
        return path.with_name(path.name + LINES)
    raise InputError(f"--output {path}: predictions and records are JSON Lines; allowed: {LINES}")


def report(
    runs: Annotated[
        list[Path],
        Argument(
            metavar="[BENCHMARK] RUN...",
            help="Logs of `qabench run`, folders of logs, or a benchmark and files of predictions.",
        ),
    ],
    output: Annotated[
        Path,
        Option(
            "--output",
            "-o",
            metavar="DIR",
            callback=output_folder,
            help="The folder for index.html and report.json.",
        ),
    ],
    benchmark: Annotated[str | None, Option(help="The benchmark of files of predictions.")] = None,
    config: ConfigName = None,
    scores: Scores = None,
    questions: Questions = None,
    samples: Samples = False,
    pass_k: PassKs = None,
    lower_is_better: LowerIsBetter = None,
    human: Human = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Write an HTML report of runs.

    It shows the main result, scores with intervals, comparisons, groups, and every question. The
    page is one self-contained file that you can send by mail or put on any server. Exit code: 1 if
    none of the --scores is there.
    """
    runs, chosen_benchmark = benchmark_first(runs, benchmark)
    # Scoring may take minutes, so a folder that cannot be written to is reported first.
    check_writable(output / "index.html")
    from qabench.evaluation.matching import with_lower_better
    from qabench.report import build_report

    values = chosen_benchmark.checked_options(options)
    values |= {"samples": samples, "ks": parse_ks(pass_k)}
    with scoring_progress() as progress:
        sources = read_evaluations(
            runs,
            chosen_benchmark,
            config,
            scores=scores,
            questions=questions,
            progress=progress,
            **values,
        )
    sources.check_any("report")
    if human:
        sources = corrected_sources(sources, human)
    evaluations = with_lower_better(sources.evaluations, lower_is_better or ())
    page = build_report(evaluations, output)
    numbers = page.with_name("report.json")
    notes = list(sources.notes)
    for evaluation in evaluations:
        missing = []
        if reason := evaluation.why_unscored():
            missing = [f"no scores: {reason}"]
        elif scores is not None:
            # ``read_evaluations`` has already selected the scores.
            missing += not_in_log(evaluation, evaluation.score_specs)
            missing += cutoffs_not_computed(evaluation, evaluation.score_specs)
        notes += [f"{evaluation.name}: {sentence}" for sentence in missing]
    if as_json:
        print_json({"page": str(page), "numbers": str(numbers), "notes": notes})
    else:
        size = page.stat().st_size / 1e6
        say(f"{page} ({size:.1f} MB); its scores as JSON: {numbers}")
        for note in notes:
            hint(note, "yellow")
    # A page about answers that have no scores is useful, but not to a user who chose scores.
    if scores is not None and all(evaluation.why_unscored() for evaluation in evaluations):
        raise Exit(1)
