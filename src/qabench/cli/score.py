"""``qabench score`` and ``compare``, and what commands print of evaluations.

Tables, JSON, and notes about problems, deviations and signatures.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from qabench.benchmarks import Option as BenchmarkOption
from qabench.benchmarks import benchmark as benchmark_of
from qabench.benchmarks import benchmark_names, shipped_names
from qabench.cli import with_parameters
from qabench.cli.options import (
    AllScores,
    AnswerColumn,
    ConfigName,
    Format,
    Groupings,
    IdColumn,
    OnRay,
    Output,
    PassKs,
    Questions,
    RayAddress,
    Samples,
    Scores,
    benchmark_and_files,
    on_ray,
    parse_ks,
)
from qabench.cli.output import plain_warnings, print_json, print_tables, progress_bar, say, say_on_stderr
from qabench.data.predictions import columns_named
from qabench.data.rows import Json, grouped
from qabench.errors import unknown_name
from qabench.evaluation import Evaluation
from qabench.evaluation.evaluation import labels, score_table, with_systems
from qabench.io.files import check_writable, write_json, write_text
from qabench.runs.sources import read_evaluations

if TYPE_CHECKING:
    from qabench.runs.sources import Found

RESAMPLES = 10_000  # the default of qabench.stats, which imports NumPy
MAX_RESAMPLES = 10_000_000
PER_ITEM = ("id", "epoch", "status", "problem", "scores", "detail")  # fields of records
NAMES = ", ".join(benchmark_names())
STYLES = {
    "unscored": "bold red",
    "problem": "yellow",
    "note": "",
    "deviation": "bold red",
    "signature": "dim",
}


def parameters(outside: str | None) -> list[inspect.Parameter]:
    """Return the options of the benchmarks of this package as parameters that Typer reads.

    Also those of a benchmark from outside, if it is named. The default of each is None.
    """
    options: dict[str, BenchmarkOption] = {}
    benchmarks: dict[str, list[str]] = {}
    for name in [*shipped_names(), *([outside] if outside else [])]:
        for option in benchmark_of(name).options:
            options.setdefault(option.name, option)
            benchmarks.setdefault(option.name, []).append(name)
    parameters = []
    for name, option in options.items():
        text = f"[{', '.join(benchmarks[name])}] {option.about.rstrip('.')}."
        if option.choices:
            text += f" One of {', '.join(option.choices)}."
        if option.default is not None and option.type is not bool:
            text += f" Default: {option.default}."
        flag = f"--{name.replace('_', '-')}"
        declared = Option(flag, help=text, metavar=option.metavar or None)
        annotation = Annotated[option.type | None, declared]  # type: ignore[name-defined]
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, kind, default=None, annotation=annotation))
    return parameters


def _score(
    files: Annotated[
        list[str],
        Argument(
            metavar="[BENCHMARK] FILE...",
            help=f"The benchmark ({NAMES}), and predictions as JSONL or a JSON list, also .gz, or as CSV: "
            '{"id", "answer"}, or the benchmark\'s own fields. Or - for standard input, logs of `qabench run`, or '
            "folders of logs. Logs, also of any task as for `qabench compare`, need no benchmark.",
        ),
    ],
    config: ConfigName = None,
    scores: Scores = None,
    by: Groupings = None,
    questions: Questions = None,
    id_column: IdColumn = None,
    answer_column: AnswerColumn = None,
    per_item: Annotated[Path | None, Option(help="Write the scores of each item as JSONL.")] = None,
    samples: Samples = False,
    pass_k: PassKs = None,
    strict: Annotated[
        bool, Option("--strict", help="Exit with 2 if the input has a problem or a score is unofficial.")
    ] = False,
    format: Format = "table",
    output: Output = None,
    all_scores: AllScores = False,
    ray: OnRay = False,
    ray_address: RayAddress = None,
    **options: Any,
) -> None:
    """Score predictions with the official metrics of a benchmark, or show the scores in logs of any task.

    Missing, unknown and repeated ids, empty predictions and unreadable lines are counted and
    listed. The other predictions are scored. With several files, the table has one row per score and file.
    """
    scorer, paths = benchmark_and_files(files)
    values = scorer.checked_options(options)
    if scorer.name:
        scorer.selected_groups(scores)
    for name in by or ():
        if scorer.groupings and name not in scorer.groupings:
            raise unknown_name(f"{scorer.title} has no grouping", name, scorer.groupings)
    for path in filter(None, (output, per_item)):
        check_writable(path)
    with on_ray(ray, ray_address), columns_named(id_column, answer_column):
        values |= {"samples": samples, "ks": parse_ks(pass_k)}
        sources = scored(
            paths, scorer.name or None, config, scores=scores, questions=questions, **values
        )
    reports = show(sources, format, by or (), output, all_scores, per_item)
    if not any(report["scores"] for report in reports):
        raise Exit(1)
    problems = any(report["problems"] for report in reports)
    with_claim = [evaluation for evaluation in sources.evaluations if evaluation.benchmark]
    if strict and (problems or not all(map(is_official, with_claim))):
        raise Exit(2)


def score(outside: str | None) -> Callable[..., None]:
    """Return the command with the options of the benchmarks. See ``parameters``."""
    return with_parameters(_score, parameters(outside))


def per_item_lines(evaluations: list[Evaluation]) -> str:
    """Return one JSON line per record: system, id, epoch, status, problem, scores, details."""
    lines = []
    for evaluation in evaluations:
        for record in evaluation.records:
            row = {"system": evaluation.model}
            row |= {name: getattr(record, name) for name in PER_ITEM}
            lines.append(json.dumps(row) + "\n")
    return "".join(lines)


def _compare(
    files: Annotated[
        list[str],
        Argument(
            metavar="[BENCHMARK] FILE...",
            help=f"The benchmark ({NAMES}), and predictions, logs of runs, or folders of logs of at least two "
            "systems. Logs need no benchmark. They may also be of any task of Inspect AI, lm-evaluation-harness "
            "(samples_*.jsonl), lighteval (details_*.parquet) and Every Eval Ever.",
        ),
    ],
    config: ConfigName = None,
    scores: Scores = None,
    by: Groupings = None,
    questions: Questions = None,
    id_column: IdColumn = None,
    answer_column: AnswerColumn = None,
    test: Annotated[str, Option(help="randomization or bootstrap.")] = "randomization",
    correction: Annotated[
        str,
        Option(
            help="Correction of p-values for several pairs: holm, bh (false discovery rate) or none."
        ),
    ] = "holm",
    resamples: Annotated[
        int, Option(min=1, max=MAX_RESAMPLES, help="Resamples of tests and intervals.")
    ] = RESAMPLES,
    seed: Annotated[int, Option(min=0, help="The seed of the resampling.")] = 0,
    format: Format = "table",
    output: Output = None,
    **options: Any,
) -> None:
    """Compare systems on the same questions: scores, paired differences with intervals, corrected p-values.

    All questions of the config count, unanswered ones as in the official score. Without --scores,
    the systems are compared by the benchmark's main score, and logs of any other task by each score
    that all of them have, on the questions that both systems of a pair have.
    """
    from qabench.runs import comparing

    if output:
        check_writable(output)
    scorer, paths = benchmark_and_files(files)
    named = columns_named(id_column, answer_column)
    with named, plain_warnings(), progress_bar("Scoring", "texts") as progress:
        comparison = comparing.compare(
            scorer.name,
            config,
            paths,
            scores,
            test=test,
            correction=correction,
            resamples=resamples,
            seed=seed,
            questions=questions,
            by=by or (),
            progress=progress,
            **options,
        )
    evaluations = list(comparison.evaluations.values())
    first, notes = evaluations[0], list(comparison.notes)
    document: dict[str, Any] = {"benchmark": first.benchmark, "config": first.config}
    if first.benchmark and not comparison.others:
        document |= comparison.as_dict()
    else:
        document["comparisons"] = [each.as_dict() for each in (comparison, *comparison.others)]
    document["notes"] = notes
    if output:
        write_json(output, document)
    print_tables(comparison.tables(), format, document)
    print_notes(evaluations, notes, format)


def compare(outside: str | None) -> Callable[..., None]:
    """Return the command with the options of the benchmarks. See ``parameters``."""
    return with_parameters(_compare, parameters(outside))


# --- What commands print of evaluations


def scored(files: Sequence[str | Path], *arguments: Any, **options: Any) -> Found:
    """Return ``qabench.runs.sources.read_evaluations`` of these arguments, with progress and plain warnings."""
    with plain_warnings(), progress_bar("Scoring", "texts") as progress:
        return read_evaluations(files, *arguments, progress=progress, **options)


def show(
    sources: Found,
    format: str,
    by: Sequence[str] = (),
    output: Path | None = None,
    all_scores: bool = False,
    per_item: Path | None = None,
) -> list[Json]:
    """Write and print evaluations as the options of a command say, and return their reports.

    Files are written first: if the reader of standard output stops early, as ``head`` does, they
    are complete.
    """
    evaluations = sources.evaluations
    reports = [report(evaluation, by) for evaluation in evaluations]
    document = reports[0] if len(reports) == 1 else {"evaluations": reports}
    if output:
        write_json(output, document)
    if per_item:
        write_text(per_item, per_item_lines(evaluations))
    if format == "json":
        print_json(document)
    else:
        print_evaluations(evaluations, by, format, all_scores)
    print_notes(evaluations, sources.notes, format)
    return reports


def report(evaluation: Evaluation, by: Sequence[str] = ()) -> Json:
    """Return the evaluation as JSON data, with the scores in the shape of the authors' scorer as "official".

    Raises:
        InputError: an unknown grouping.
    """
    benchmark = benchmark_of(evaluation.benchmark)
    allowed = evaluation.groupings()
    if unknown := [name for name in by if name not in allowed]:
        config = f"{benchmark.title} {evaluation.config}"
        raise unknown_name(f"{config} has no grouping", unknown[0], allowed)
    document = evaluation.as_dict(by)
    if evaluation.answered and (shape := benchmark.official_shape(evaluation)):
        document["official"] = shape
    return document


def is_official(evaluation: Evaluation) -> bool:
    """Return whether all scores that the benchmark's authors report are official, and there is at least one."""
    reported = [score for score in evaluation.scores().values() if score.spec.official]
    return bool(reported) and not any(map(evaluation.deviations, reported))


def print_evaluations(
    evaluations: Sequence[Evaluation], by: Sequence[str], format: str, all_scores: bool = False
) -> None:
    """Print the scores: per config one table, of one evaluation or with one row per evaluation.

    Then the groups.
    """
    all_scores = all_scores or format == "csv"
    tables = []
    for group in _by_config(evaluations):
        names = labels(group)
        if any(evaluation.scores() for evaluation in group):
            tables.append(score_table(group, names, all_scores))
        for grouping in by:
            heading = f"By {benchmark_of(group[0].benchmark).groupings.get(grouping, grouping)}"
            for name, evaluation in zip(names, group, strict=True):
                with_name = f"{heading}: {name}" if len(group) > 1 else heading
                tables.append(evaluation.group_table(grouping, with_name, all_scores))
    print_tables(tables, format)


def print_notes(evaluations: Sequence[Evaluation], notes: Sequence[str], format: str) -> None:
    """Print problems, deviations and signatures.

    On stderr unless the format is a table.
    """
    write = say if format == "table" else say_on_stderr
    notes_of = map(_notes_of, evaluations)
    lines = with_systems(dict(zip(labels(evaluations), notes_of, strict=True)))
    for systems, (text, style) in lines:
        write(systems + text, style)
    for note in notes:
        write(note, "yellow")


def _by_config(evaluations: Sequence[Evaluation]) -> list[list[Evaluation]]:
    return list(grouped((evaluation.questions, evaluation) for evaluation in evaluations).values())


def _notes_of(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return (text, style) of each note about an evaluation."""
    return [(note.text, STYLES[note.kind]) for note in evaluation.all_notes()]
