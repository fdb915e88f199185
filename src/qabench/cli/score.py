"""``qabench score``: score predictions, and show the scores in logs of any task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.evaluations import is_official, show
from qabench.cli.options import (
    NAMES,
    AllScores,
    AnswerColumn,
    Cluster,
    ConfigName,
    Decimals,
    Format,
    Groupings,
    Human,
    IdColumn,
    LowerIsBetter,
    OnRay,
    Output,
    PassKs,
    Percent,
    Questions,
    RayAddress,
    Samples,
    ScoreColumns,
    Scores,
    ShortSignatures,
    SystemColumn,
    benchmarks_and_files,
    files_of,
    on_ray,
    parse_ks,
    score_tables,
)
from qabench.cli.output import scoring_progress
from qabench.data.predictions import columns_named
from qabench.data.rows import Json
from qabench.errors import InputError, unknown_name
from qabench.evaluation import Evaluation
from qabench.evaluation.number_form import number_form
from qabench.evaluation.score_spec import split_names
from qabench.evaluation.scoring import Progress
from qabench.io.files import check_writable
from qabench.runs.clusters import clusters_named, with_clusters
from qabench.runs.sources import Evaluations, read_evaluations

if TYPE_CHECKING:
    from qabench.benchmarks import Benchmark


@dataclass(frozen=True)
class _Request:
    """What is scored with one benchmark: files or evaluations, by which scores, with its options."""

    benchmark: Benchmark
    inputs: list[Any]
    scores: Sequence[str] | None
    options: Json


def score(
    files: Annotated[
        list[str],
        Argument(
            metavar="[BENCHMARK] FILE...",
            help=f"The benchmark ({NAMES}), and predictions as JSONL or a JSON list, also .gz, or as CSV: "
            '{"id", "answer"}, or the benchmark\'s own fields. Or - for standard input, logs of `qabench run`, or '
            "folders of logs. Logs, also of any task as for `qabench compare`, need no benchmark. NAME=FILE names a "
            "system. Further benchmarks may follow, each with its files.",
        ),
    ],
    config: ConfigName = None,
    scores: Scores = None,
    by: Groupings = None,
    questions: Questions = None,
    id_column: IdColumn = None,
    answer_column: AnswerColumn = None,
    score_columns: ScoreColumns = None,
    system: SystemColumn = None,
    cluster: Cluster = None,
    per_item: Annotated[Path | None, Option(help="Write the scores of each item as JSONL.")] = None,
    samples: Samples = False,
    pass_k: PassKs = None,
    human: Human = None,
    lower_is_better: LowerIsBetter = None,
    benchmark: Annotated[
        str | None,
        Option(
            help="Score the stored answers of logs of other tasks with the scorer of this benchmark, which may be a "
            "custom one. No model is called."
        ),
    ] = None,
    strict: Annotated[
        bool,
        Option("--strict", help="Exit with 2 if the input has a problem or a score is unofficial."),
    ] = False,
    format: Format = "table",
    percent: Percent = False,
    decimals: Decimals = None,
    score_only: Annotated[
        bool,
        Option(
            "--score-only",
            "-b",
            help="Print the numbers only, one line per file, with the scores in the order of the table.",
        ),
    ] = False,
    short_signatures: ShortSignatures = False,
    output: Output = None,
    all_scores: AllScores = False,
    ray: OnRay = False,
    ray_address: RayAddress = None,
    **options: Any,
) -> None:
    """Score predictions with a benchmark's official metrics, or show the scores in any task's logs.

    Missing, unknown and repeated ids, empty predictions and unreadable lines are counted and
    listed. The other predictions are scored. With several files, the table has one row per score
    and file.
    """
    # Find what is wrong with the options before an answer is scored, which can take minutes.
    sections = benchmarks_and_files(files)
    first_benchmark, paths = sections[0]
    if len(sections) > 1:
        for_one = {"--config": config, "--questions": questions, "--by": by, "--human": human}
        for_one |= {"--benchmark": benchmark, "--score": score_columns, "--cluster": cluster}
        _refuse(for_one)
    target = first_benchmark if benchmark is None else benchmark_of(benchmark)
    requests = _requests([(target, paths), *sections[1:]], scores, options)
    for name in by or ():
        if first_benchmark.groupings and name not in first_benchmark.groupings:
            raise unknown_name(
                f"{first_benchmark.title} has no grouping", name, first_benchmark.groupings
            )
    if output or per_item:
        _check_outputs(output, per_item, sections, [questions, human])
    form = number_form(percent, decimals)
    ks = parse_ks(pass_k)
    if score_only and format != "table":
        raise InputError(f"--score-only prints numbers, so that --format {format} has no effect")
    if score_columns and target.name:
        raise InputError(
            f"--score reads scores of any tool, which {target.title} does not compute; leave the benchmark out"
        )
    if benchmark is not None and first_benchmark.name:
        raise InputError(
            f"--benchmark {target.name} is for logs of other tasks, without {first_benchmark.name} before them"
        )
    if score_columns is not None or system is not None:
        tables = score_tables(paths, score_columns, id_column, system, cluster)
        requests = [replace(requests[0], inputs=tables)]
        # It named the column of these tables. ``columns_named`` is about files of predictions.
        id_column = None

    # Score the answers of each benchmark, or read the scores in logs.
    evaluations: list[Evaluation] = []
    notes: list[str] = []
    with (
        on_ray(ray, ray_address),
        clusters_named(cluster),
        scoring_progress() as progress,
    ):
        if benchmark is not None:
            scored = _scored_again(requests[0], config, questions, progress)
            # They are selected and joined below like the evaluations in logs.
            requests, config = [_Request(first_benchmark, scored, scores, {})], None
        with columns_named(id_column, answer_column):
            for request in requests:
                read = read_evaluations(
                    request.inputs,
                    request.benchmark,
                    config,
                    scores=request.scores,
                    samples=samples,
                    ks=ks,
                    questions=questions,
                    progress=progress,
                    **request.options,
                )
                evaluations += read.evaluations
                notes += read.notes
    sources = _adjusted(Evaluations(evaluations, notes), cluster, human, lower_is_better)

    # Print everything, also if the exit code then says that something is wrong.
    show(
        sources,
        format,
        by=by or (),
        output=output,
        all_scores=all_scores,
        per_item=per_item,
        form=form,
        score_only=score_only,
        short_signatures=short_signatures,
    )
    if not any(evaluation.scores() for evaluation in sources.evaluations):
        raise Exit(1)
    if strict:
        for evaluation in sources.evaluations:
            # Scores of other tasks do not claim to be official, so they cannot deviate.
            claims_official = bool(evaluation.benchmark)
            has_problem = bool(evaluation.problem_sentences())
            if has_problem or (claims_official and not is_official(evaluation)):
                raise Exit(2)


def _check_outputs(
    output: Path | None,
    per_item: Path | None,
    sections: Sequence[tuple[Benchmark, list[str]]],
    others: Sequence[str | Path | None],
) -> None:
    """Check that the outputs can be written, and that neither replaces an input or the other one."""
    inputs = list(others)
    for _, paths in sections:
        inputs += files_of(paths)
    if output:
        check_writable(output, [*inputs, per_item])
    if per_item:
        check_writable(per_item, inputs)


def _refuse(options: Mapping[str, object]) -> None:
    """Raise InputError for options that cannot be given with several benchmarks."""
    given_options = [name for name, value in options.items() if value]
    if given_options:
        raise InputError(
            f"{', '.join(given_options)}: for a single benchmark; score each benchmark by itself"
        )


def _requests(
    sections: Sequence[tuple[Benchmark, list[str]]],
    scores: Sequence[str] | None,
    options: Json,
) -> list[_Request]:
    """Return what to score, with the scores and options that each benchmark has.

    Raises:
        InputError: a score that none of the benchmarks has. The command offers only options that one has.
    """
    requests = []
    for benchmark, paths in sections:
        own_scores, own_options = scores or None, options
        if len(sections) > 1:
            if scores is not None:
                # A benchmark that has none of the named scores computes its default scores.
                own_scores = _known_scores(benchmark, scores) or None
            own_options = {}
            names = [option.name for option in benchmark.options]
            for name, value in options.items():
                if name in names:
                    own_options[name] = value
        values = benchmark.checked_options(own_options)
        if benchmark.name:
            # This raises an error if a single benchmark does not have a score.
            benchmark.selected_groups(own_scores)
        requests.append(_Request(benchmark, list(paths), own_scores, values))
    if scores is not None and len(sections) > 1:
        for name in split_names(scores):
            if not any(_known_scores(benchmark, [name]) for benchmark, _ in sections):
                # No benchmark has this score, so this raises the error that lists the groups.
                sections[0][0].selected_groups([name])
    return requests


def _known_scores(benchmark: Benchmark, names: Sequence[str]) -> list[str]:
    """Return the names that are scores or groups of the benchmark."""
    known_names = []
    for name in split_names(names):
        try:
            benchmark.selected_groups([name])
        except InputError:
            continue
        known_names.append(name)
    return known_names


def _scored_again(
    request: _Request, config: str | None, questions: Path | None, progress: Progress
) -> list[Evaluation]:
    """Return the evaluations of logs of other tasks, scored by the request's benchmark."""
    from qabench.runs.score_again import scored_again

    evaluations: list[Evaluation] = []
    for path in request.inputs:
        evaluations += scored_again(
            request.benchmark,
            config,
            path,
            request.scores,
            questions=questions,
            progress=progress,
            **request.options,
        )
    return evaluations


def _adjusted(
    sources: Evaluations,
    cluster: str | None,
    human: str | None,
    lower_is_better: Sequence[str] | None,
) -> Evaluations:
    """Add what only the user knows: clusters, labels of people, and which scores are errors."""
    if cluster:
        sources = replace(sources, evaluations=with_clusters(sources.evaluations, cluster))
    if human:
        sources = corrected_sources(sources, human)
    if lower_is_better:
        # Imported here because it is rarely needed.
        from qabench.evaluation.matching import with_lower_better

        directed = with_lower_better(sources.evaluations, lower_is_better)
        sources = replace(sources, evaluations=directed)
    return sources


def corrected_sources(sources: Evaluations, human: str) -> Evaluations:
    """Return evaluations with scores corrected by labels of people (``--human``)."""
    from qabench.runs.human import with_human

    evaluations, notes = with_human(sources.evaluations, human)
    return replace(sources, evaluations=evaluations, notes=[*sources.notes, *notes])
