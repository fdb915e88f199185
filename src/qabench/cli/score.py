"""``qabench score``: computes the official scores of predictions."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.benchmarks import Option, benchmark_names
from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.lazy import with_parameters
from qabench.cli.options import (
    AllMetrics,
    AsJson,
    BenchmarkName,
    ConfigName,
    Families,
    Format,
    Groupings,
    OnRay,
    Output,
    Questions,
    RayAddress,
    Track,
    Verbose,
    checked_format,
    on_ray,
)
from qabench.cli.output import print_json

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation


def parameters() -> list[inspect.Parameter]:
    """Return the options of all benchmarks as parameters that Typer reads. The default of each is None."""
    options: dict[str, tuple[Option, list[str]]] = {}
    for name in benchmark_names():
        for option in benchmark_of(name).options:
            options.setdefault(option.name, (option, []))[1].append(name)
    parameters = []
    for name, (option, benchmarks) in options.items():
        choices = f" One of {', '.join(option.choices)}." if option.choices else ""
        default = "" if option.default is None or option.type is bool else f" Default: {option.default}."
        text = f"[{', '.join(benchmarks)}] {option.about.rstrip('.')}.{choices}{default}"
        flag = f"--{name.replace('_', '-')}"
        annotation = Annotated[option.type | None, typer.Option(flag, help=text)]  # type: ignore[name-defined]
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    return parameters


def _score(
    benchmark: BenchmarkName,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help='Predictions as JSONL or a JSON list, also .gz: {"id", "answer"}, or the benchmark\'s own fields; '
            "- for standard input; logs of `qabench run`, or folders of logs.",
        ),
    ],
    config: ConfigName = None,
    metrics: Families = None,
    by: Groupings = None,
    questions: Questions = None,
    per_item: Annotated[
        Path | None, typer.Option("--per-item", metavar="FILE", help="Write the scores of each item as JSONL.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 2 if the input has a problem or a score is unofficial.")
    ] = False,
    format: Format = "table",
    output: Output = None,
    track: Track = None,
    as_json: AsJson = False,
    all_metrics: AllMetrics = False,
    verbose: Verbose = False,
    ray: OnRay = False,
    ray_address: RayAddress = None,
    **options: Any,
) -> None:
    """Score predictions with the official metrics of a benchmark.

    Missing, unknown and repeated ids, empty predictions and unreadable lines are counted and listed; the other
    predictions are scored. With several files, the table has one row per file.
    """
    from qabench.cli.evaluations import is_official, print_evaluations, print_notes, report, scored
    from qabench.io.files import check_writable, write_json, write_text

    scorer = benchmark_of(benchmark)
    output_format = checked_format(format, as_json)
    values = scorer.checked_options(options)
    families = scorer.checked_families(metrics)
    for path in filter(None, (output, per_item)):
        check_writable(path)
    with on_ray(ray, ray_address):
        sources = scored(files, scorer.name, config, metrics=families, questions=questions, **values)
    evaluations = sources.evaluations
    reports = [report(evaluation, by or []) for evaluation in evaluations]
    document = reports[0] if len(reports) == 1 else {"evaluations": reports}
    if output:
        write_json(output, document)
    if per_item:
        write_text(per_item, per_item_lines(evaluations))
    if output_format == "json":
        print_json(document)
    else:
        print_evaluations(evaluations, by or [], output_format, all_metrics)
    print_notes(evaluations, sources.notes, output_format, verbose)
    if track:
        from qabench.runs.export import send

        send(evaluations, track)
    if not any(report["scores"] for report in reports):
        raise typer.Exit(1)
    problems = any(report["problems"] for report in reports)
    if strict and (problems or not all(map(is_official, evaluations))):
        raise typer.Exit(2)


score = with_parameters(_score, parameters())


def per_item_lines(evaluations: list[Evaluation]) -> str:
    """Return one JSON line per record: id, epoch, system if there are several, status, problem, scores, details."""
    rows = []
    for evaluation in evaluations:
        system = {"system": evaluation.model} if len(evaluations) > 1 else {}
        for record in evaluation.records:
            row = {"id": record.id, "epoch": record.epoch} | system | {"status": record.status}
            problem = {"problem": record.problem} if record.problem else {}
            rows.append(row | problem | {"scores": dict(record.scores), "detail": dict(record.detail)})
    return "".join(json.dumps(row) + "\n" for row in rows)
