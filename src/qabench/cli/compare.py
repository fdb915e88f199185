"""``qabench compare``: which systems are better on the same questions, and whether the differences are significant."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.lazy import with_parameters
from qabench.cli.options import AsJson, ConfigName, Format, MetricName, Output, Questions, Verbose, checked_format
from qabench.cli.output import plain_warnings, print_json, print_tables, progress_bar
from qabench.cli.score import parameters
from qabench.errors import InputError, unknown_name

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation
    from qabench.evaluation.metric import Metric

SCORES = "scores"  # in place of a benchmark: the files have scores instead of predictions
RESAMPLES = 10_000  # the default of qabench.stats, which imports NumPy
MAX_RESAMPLES = 10_000_000


def _compare(
    benchmark: Annotated[
        str,
        typer.Argument(metavar="BENCHMARK|scores", help="A benchmark, or `scores` for files of scores per item."),
    ],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Predictions, logs of runs, or folders of logs; at least two systems. With `scores`: JSONL with one "
            '{"id", "acc": {"loose": 0.5}} per line, as `qabench score --per-item` writes it.',
        ),
    ],
    config: ConfigName = None,
    metric: MetricName = None,
    questions: Questions = None,
    test: Annotated[str, typer.Option(help="randomization or bootstrap.")] = "randomization",
    correction: Annotated[
        str, typer.Option(help="Correction of p-values for several pairs: holm, bh (false discovery rate) or none.")
    ] = "holm",
    cluster: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="[scores] The field that names an item's question, if items share one."),
    ] = None,
    agreement: Annotated[
        bool, typer.Option("--agreement", help="[scores] Also print Cohen's kappa of each pair, for scores of judges.")
    ] = False,
    resamples: Annotated[
        int, typer.Option(min=1, max=MAX_RESAMPLES, help="Resamples of tests and intervals.")
    ] = RESAMPLES,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the resampling.")] = 0,
    format: Format = "table",
    output: Output = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    **options: Any,
) -> None:
    """Compare systems on the same questions: scores, paired differences with intervals, corrected p-values.

    All questions of the config count, unanswered ones as in the official score. `qabench compare scores FILE...
    --metric NAME` compares files of scores of any program, on the items that are in all files.
    """
    from qabench.io.files import check_writable, write_json

    output_format = checked_format(format, as_json)
    if output:
        check_writable(output)
    how = {"test": test, "correction": correction, "resamples": resamples, "seed": seed}
    evaluations: list[Evaluation] = []
    if benchmark == SCORES:
        document, tables, notes = _compare_score_files(files, metric, cluster, agreement, how)
    elif cluster or agreement:
        raise InputError("--cluster and --agreement need files of scores: qabench compare scores FILE... --metric NAME")
    else:
        evaluations, wanted_metric, notes = _evaluations(benchmark, files, config, metric, questions, options)
        document, tables, notes = _compare_evaluations(evaluations, wanted_metric, notes, how)
    if output:
        write_json(output, document)
    if output_format == "json":
        print_json(document)
    else:
        print_tables(tables, output_format)
    from qabench.cli.evaluations import print_notes

    print_notes(evaluations, notes, output_format, verbose)


compare = with_parameters(_compare, parameters())


def _evaluations(
    name: str,
    files: list[str],
    config: str | None,
    metric_name: str | None,
    questions: Path | None,
    options: Mapping[str, Any],
) -> tuple[list[Evaluation], Metric, list[str]]:
    """Score the files; return the evaluations, the metric to compare by, and notes about the files."""
    from qabench.runs.sources import read_evaluations

    benchmark = benchmark_of(name)
    metric = benchmark.metric(metric_name) if metric_name else None
    families = [family for family in benchmark.families if metric and family in (metric.family, metric.name)]
    with plain_warnings(), progress_bar("Scoring", "texts") as progress:
        sources = read_evaluations(
            files,
            benchmark.name,
            config,
            metrics=families or None,
            questions=questions,
            progress=progress,
            **benchmark.checked_options(options),
        )
    metric = metric or benchmark.headline_metric(sources.evaluations)
    if metric is None:
        raise InputError(f"none of the files has a score of {benchmark.title}")
    return sources.evaluations, metric, list(sources.notes)


def _compare_evaluations(
    evaluations: list[Evaluation], metric: Metric, notes: list[str], how: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Any], list[str]]:
    from qabench.evaluation.comparison import compare as compare_evaluations

    systems = labeled(evaluations)
    comparison = compare_evaluations(systems, metric, **how)
    notes = notes + [f"{label} has no score {metric.name}" for label in systems if label not in comparison.systems]
    config = {"benchmark": evaluations[0].benchmark, "config": evaluations[0].config}
    return {**config, **comparison.as_dict(), "notes": notes}, comparison.tables(), notes


def labeled(evaluations: list[Evaluation]) -> dict[str, Evaluation]:
    """Return the evaluations by label; see ``qabench.evaluation.tables``.

    Raises:
        InputError: there are fewer than two, or a file was given twice.
    """
    if len(evaluations) < 2:
        raise InputError(
            "nothing to compare: give at least two systems, such as: qabench compare BENCHMARK A.jsonl B.jsonl"
        )
    _check_distinct([evaluation.path for evaluation in evaluations])
    from qabench.evaluation.tables import labels

    return dict(zip(labels(evaluations), evaluations, strict=True))


def _check_distinct(paths: Sequence[str]) -> None:
    if repeated := [path for path in paths if paths.count(path) > 1]:
        raise InputError(f"the file was given twice: {repeated[0]}")


@dataclass
class _Scores:
    """One system's scores by item, the question of each item, and the problems of the file."""

    values: dict[str, float]
    questions: dict[str, str]
    problems: list[str] = field(default_factory=list)


def _compare_score_files(
    files: list[str], metric: str | None, cluster: str | None, agreement: bool, how: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Any], list[str]]:
    from qabench.evaluation.comparison import compare_scores

    if metric is None:
        raise InputError("files of scores need --metric, such as --metric acc.loose")
    if len(files) < 2:
        raise InputError("nothing to compare: give at least two files")
    _check_distinct(files)
    stems = [Path(file).stem for file in files]
    names = stems if len(set(stems)) == len(stems) else files
    systems = {name: _read_scores(Path(file), metric, cluster) for name, file in zip(names, files, strict=True)}
    ids = _shared_ids(systems)
    values = {name: [system.values[id] for id in ids] for name, system in systems.items()}
    clusters = _questions(systems, ids) if cluster else None
    comparison = compare_scores(values, clusters=clusters, name=metric, **how)
    counts = {"items": len(ids), "questions": len(set(clusters)) if clusters else len(ids)}
    notes = [f"{name}: {problem}" for name, system in systems.items() for problem in system.problems]
    document = {**comparison.as_dict(), **counts, "notes": notes}
    tables = comparison.tables()
    if clusters:
        tables[0].notes.append(f"{counts['items']} items of {counts['questions']} questions")
    if agreement:
        rows, table = _agreement(values, clusters, how["resamples"], how["seed"])
        document["agreement"] = rows
        tables.append(table)
    return document, tables, notes


def _read_scores(path: Path, metric: str, cluster: str | None) -> _Scores:
    """Read the scores of a JSONL file; one object with "id" and scores, nested or not, per line."""
    from qabench.data.predictions import read_predictions, some

    predictions = read_predictions(path)
    rows = {row.id: row.fields for row in predictions.rows}
    first_lines = {row.id: row.line for row in reversed(predictions.rows)}
    repeated = [f"{row.id} (line {row.line})" for row in predictions.rows if row.line != first_lines[row.id]]
    numbers = {id: dict(_numbers(row)) for id, row in rows.items()}
    if not any(numbers.values()):
        raise InputError(f'{path} has no scores. A line must look like {{"id": "7d...", "acc": {{"loose": 0.5}}}}')
    name = matching(metric, sorted({name for scores in numbers.values() for name in scores}), str(path))
    values = {id: scores[name] for id, scores in numbers.items() if name in scores}
    questions = {id: _question(rows[id], cluster, path) for id in values} if cluster else {}
    kinds = {
        "unreadable lines": [f"line {bad.line}: {bad.reason}" for bad in predictions.bad_lines],
        "replaced an earlier line of the same id": repeated,
        f"without a number for {name}": [id for id in rows if id not in values],
    }
    problems = [f"{kind}: {len(places)} ({some(places)})" for kind, places in kinds.items() if places]
    return _Scores(values, questions, problems)


def _question(row: Mapping[str, Any], cluster: str, path: Path) -> str:
    if isinstance(row.get(cluster), str | int):
        return str(row[cluster])
    raise InputError(f"{path}: the row with id {row['id']!r} does not have its question in the field {cluster!r}")


def _numbers(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield (dotted name, number) of each number in a row; true and false count as 1 and 0."""
    from qabench.io.tables import flattened

    for name, value in flattened(row):
        if isinstance(value, int | float) and abs(value) <= sys.float_info.max and name != "id":
            yield name, float(value)


def matching(metric: str, names: Sequence[str], where: str) -> str:
    """Return the one of ``names`` that equals the metric, or of which one is the other's ending."""
    if metric in names:
        return metric
    endings = [name for name in names if name.endswith(f".{metric}") or metric.endswith(f".{name}")]
    if len(endings) != 1:
        raise unknown_name(f"{where} does not have exactly one score", metric, names)
    return endings[0]


def _shared_ids(systems: Mapping[str, _Scores]) -> list[str]:
    """Return the ids that all systems have; other ids are recorded as problems of their system."""
    from qabench.data.predictions import some

    first, *rest = systems.values()
    ids = [id for id in first.values if all(id in other.values for other in rest)]
    shared = set(ids)
    for system in systems.values():
        if left_out := [id for id in system.values if id not in shared]:
            system.problems.append(f"left out because they are not in every file: {len(left_out)} ({some(left_out)})")
    if not ids:
        counts = [f"{name}: {len(system.values)} ({some(system.values)})" for name, system in systems.items()]
        raise InputError(f"the files have no id in common: {'; '.join(counts)}")
    return ids


def _questions(systems: Mapping[str, _Scores], ids: Sequence[str]) -> list[str]:
    first, *rest = systems.values()
    for id in ids:
        if different := {other.questions[id] for other in rest} - {first.questions[id]}:
            raise InputError(
                f"the files have different questions for id {id!r}: {first.questions[id]!r}, {different.pop()!r}"
            )
    return [first.questions[id] for id in ids]


def _agreement(
    values: Mapping[str, list[float]], clusters: list[str] | None, resamples: int, seed: int
) -> tuple[list[dict[str, Any]], Any]:
    """Return Cohen's kappa of each pair of files, with equal scores as equal labels, as JSON data and as a table."""
    from qabench.io.tables import Table
    from qabench.stats import cohens_kappa

    rows: list[dict[str, Any]] = []
    for first, second in combinations(values, 2):
        kappa = cohens_kappa(values[first], values[second], clusters=clusters, resamples=resamples, seed=seed)
        bounds = {key: getattr(kappa.interval, key) for key in ("standard_error", "low", "high")}
        shares = {"agreement": kappa.agreement, "chance": kappa.chance}
        rows.append({"first": first, "second": second, "kappa": kappa.interval.mean, **bounds, **shares})
    cells: list[list[Any]] = [
        [f"{row['first']} - {row['second']}", f"{row['kappa']:.4f}", f"{row['low']:.4f} to {row['high']:.4f}"]
        + [f"{row[name]:.4f}" for name in ("agreement", "chance")]
        for row in rows
    ]
    columns = ["pair", "kappa", "95% interval", "agreement", "by chance"]
    return rows, Table("Agreement (Cohen's kappa, equal scores as equal labels)", columns, cells)
