"""``qabench score`` and ``compare``, and what commands print of evaluations.

Evaluations are printed as tables and JSON, with notes about problems, deviations and signatures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from qabench.benchmarks import benchmark as benchmark_of
from qabench.benchmarks import benchmark_names
from qabench.cli.options import (
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
    benchmark_and_files,
    benchmarks_and_files,
    files_of,
    on_ray,
    parse_ks,
    score_tables,
)
from qabench.cli.output import (
    print_json,
    print_table,
    print_tables,
    say,
    say_on_stderr,
    scoring_progress,
)
from qabench.data.predictions import columns_named
from qabench.data.rows import Json, grouped
from qabench.errors import InputError, unknown_name
from qabench.evaluation import Evaluation
from qabench.evaluation.labels import labels, with_systems
from qabench.evaluation.notes import Note, notes_of
from qabench.evaluation.number_form import PLAIN, NumberForm, number_form
from qabench.evaluation.number_rows import (
    OF_PAIRS,
    OF_SCORES,
    number_table,
    rows_of_comparisons,
    rows_of_scores,
)
from qabench.evaluation.score_spec import split_names
from qabench.evaluation.tables import (
    correction_tables,
    group_table,
    score_table,
    shown_scores,
)
from qabench.io.files import check_writable, write_json, write_text
from qabench.io.redaction import write_document
from qabench.runs.clusters import clusters_named, with_clusters
from qabench.runs.sources import Evaluations, read_evaluations

if TYPE_CHECKING:
    from qabench.benchmarks import Benchmark
# The default of ``qabench.stats``, which imports NumPy and is therefore not imported here.
RESAMPLES = 10_000
# More resamples would take minutes and change no digit that is shown.
MAX_RESAMPLES = 10_000_000
# Formats that show the tables of a paper.
DOCUMENTS = ("markdown", "latex")
# The fields of a record in the output for single items.
PER_ITEM = ("id", "epoch", "status", "problem", "scores", "detail")
NAMES = ", ".join(benchmark_names())
STYLES = {
    "unscored": "bold red",
    "problem": "yellow",
    "note": "",
    "deviation": "bold red",
    "signature": "dim",
}


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
    score: ScoreColumns = None,
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
        _refuse(for_one | {"--benchmark": benchmark, "--score": score, "--cluster": cluster})
    target = first_benchmark if benchmark is None else benchmark_of(benchmark)
    requests = _requests([(target, paths), *sections[1:]], scores, options)
    for name in by or ():
        if first_benchmark.groupings and name not in first_benchmark.groupings:
            raise unknown_name(
                f"{first_benchmark.title} has no grouping", name, first_benchmark.groupings
            )
    protected: list[str | Path | None] = [questions, human]
    for _, named in sections:
        protected += files_of(named)
    if output:
        check_writable(output, [*protected, per_item])
    if per_item:
        check_writable(per_item, protected)
    form = number_form(percent, decimals)
    if score_only and format != "table":
        raise InputError(f"--score-only prints numbers, so that --format {format} has no effect")
    if score and target.name:
        raise InputError(
            f"--score reads scores of any tool, which {target.title} does not compute; leave the benchmark out"
        )
    tables = score_tables(paths, score, id_column, system, cluster)
    if benchmark is None:
        requests[0].inputs = tables
    else:
        inputs = _scored_again(
            first_benchmark, target, config, paths, scores, questions, requests[0].options
        )
        # The answers are scored now: below, the evaluations are read like those of other logs.
        config, requests = None, [_Request(first_benchmark, inputs, scores, {})]

    # Score the answers of each benchmark.
    shared: Json = {"samples": samples, "ks": parse_ks(pass_k), "questions": questions}
    evaluations: list[Evaluation] = []
    notes: list[str] = []
    with (
        on_ray(ray, ray_address),
        columns_named(id_column, answer_column),
        clusters_named(cluster),
        scoring_progress() as progress,
    ):
        for request in requests:
            read = read_evaluations(
                request.inputs,
                request.benchmark,
                config,
                scores=request.scores,
                progress=progress,
                **shared,
                **request.options,
            )
            evaluations += read.evaluations
            notes += read.notes

    # Add what only the user knows: clusters, labels of people, and which scores are errors.
    sources = Evaluations(evaluations, notes)
    if cluster:
        clustered = with_clusters(sources.evaluations, cluster)
        sources = replace(sources, evaluations=clustered)
    if human:
        sources = corrected_sources(sources, human)
    if lower_is_better:
        # Imported here because it is rarely needed.
        from qabench.evaluation.matching import with_lower_better

        directed = with_lower_better(sources.evaluations, lower_is_better)
        sources = replace(sources, evaluations=directed)

    # Print everything, also if the exit code then says that something is wrong.
    show(
        sources,
        format,
        by or (),
        output,
        all_scores,
        per_item,
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


def per_item_lines(evaluations: list[Evaluation]) -> str:
    """Return one JSON line per record: system, id, epoch, status, problem, scores, details."""
    lines = []
    for evaluation in evaluations:
        for record in evaluation.records:
            row = {"system": evaluation.name}
            row |= {name: getattr(record, name) for name in PER_ITEM}
            lines.append(json.dumps(row) + "\n")
    return "".join(lines)


def compare(
    files: Annotated[
        list[str],
        Argument(
            metavar="[BENCHMARK] FILE...",
            help=f"The benchmark ({NAMES}), and predictions, logs of runs, or folders of logs of at least two "
            "systems. Logs need no benchmark. They may also be of any task of Inspect AI, lm-evaluation-harness "
            "(samples_*.jsonl), lighteval (details_*.parquet) and Every Eval Ever. NAME=FILE names a system.",
        ),
    ],
    config: ConfigName = None,
    scores: Scores = None,
    by: Groupings = None,
    questions: Questions = None,
    id_column: IdColumn = None,
    answer_column: AnswerColumn = None,
    score: ScoreColumns = None,
    system: SystemColumn = None,
    cluster: Cluster = None,
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
    human: Human = None,
    lower_is_better: LowerIsBetter = None,
    baseline: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Compare each system with this one only, by its name in the tables. Default: all pairs.",
        ),
    ] = None,
    format: Format = "table",
    percent: Percent = False,
    decimals: Decimals = None,
    short_signatures: ShortSignatures = False,
    all_scores: AllScores = False,
    output: Output = None,
    **options: Any,
) -> None:
    """Compare systems on the same questions, with scores, paired differences, and paired tests.

    Differences have intervals, and p-values are corrected for several pairs.

    All questions of the config count, unanswered ones as in the official score. Without --scores,
    the systems are compared by the benchmark's main score, and logs of any other task by each score
    that all of them have, on the questions that both systems of a pair have. Logs of several tasks
    are compared on each task that two systems have.
    """
    from qabench.runs import comparing

    benchmark, paths = benchmark_and_files(files)
    if output:
        check_writable(output, [questions, human, *files_of(paths)])
    form = number_form(percent, decimals)
    inputs = score_tables(paths, score, id_column, system, cluster)
    with columns_named(id_column, answer_column), scoring_progress() as progress:
        comparison = comparing.compare(
            benchmark.name,
            config,
            inputs,
            scores,
            test=test,
            correction=correction,
            resamples=resamples,
            seed=seed,
            questions=questions,
            by=by or (),
            human=human,
            cluster=cluster,
            lower_is_better=lower_is_better or (),
            baseline=baseline,
            progress=progress,
            **options,
        )
    comparisons = (comparison, *comparison.others)
    # A system may be compared by several scores: its notes are printed once.
    whole: dict[int, Evaluation] = {}
    for one_task in comparisons:
        # The evaluations of groups are parts of those of a task.
        if one_task.group is None:
            for evaluation in one_task.evaluations.values():
                whole[id(evaluation)] = evaluation
    evaluations, notes = list(whole.values()), list(comparison.notes)
    document = {"comparisons": [each.as_dict() for each in comparisons], "notes": notes}
    if output:
        write_json(output, document)
    if format == "csv":
        print_table(number_table(rows_of_comparisons(comparisons), OF_PAIRS), "csv")
    elif format in DOCUMENTS:
        write_document(comparison.document(format, form, all_scores, _titles(evaluations)))
    else:
        print_tables(comparison.score_tables(form, all_scores), format, document)
    print_notes(evaluations, notes, format, short_signatures)


# --- What is scored


@dataclass
class _Request:
    """What is scored with one benchmark: files or evaluations, by which scores, with its options."""

    benchmark: Benchmark
    inputs: list[Any]
    scores: Sequence[str] | None
    options: Json


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


# --- What commands print of evaluations


def _scored_again(
    named_first: Benchmark,
    target: Benchmark,
    config: str | None,
    paths: Sequence[str],
    scores: Sequence[str] | None,
    questions: Path | None,
    options: Json,
) -> list[Evaluation]:
    """Return the evaluations of logs of other tasks by a benchmark's scorer."""
    from qabench.runs.score_again import scored_again

    if named_first.name:
        raise InputError(
            f"--benchmark {target.name} is for logs of other tasks, without {named_first.name} before them"
        )
    evaluations: list[Evaluation] = []
    with scoring_progress() as progress:
        for path in paths:
            shared: Json = {"questions": questions, "progress": progress, **options}
            evaluations += scored_again(target, config, path, scores, **shared)
    return evaluations


def corrected_sources(sources: Evaluations, human: str) -> Evaluations:
    """Return evaluations with scores corrected by labels of people (``--human``)."""
    from qabench.runs.human import with_human

    evaluations, notes = with_human(sources.evaluations, human)
    return replace(sources, evaluations=evaluations, notes=[*sources.notes, *notes])


def show(
    sources: Evaluations,
    format: str,
    by: Sequence[str] = (),
    output: Path | None = None,
    all_scores: bool = False,
    per_item: Path | None = None,
    *,
    form: NumberForm = PLAIN,
    score_only: bool = False,
    short_signatures: bool = False,
) -> None:
    """Write and print evaluations as the options of a command say.

    Files are written first: if the reader of standard output stops early, as ``head`` does, they
    are complete.
    """
    evaluations = sources.evaluations
    if by:
        for evaluation in evaluations:
            _check_groupings(evaluation, by)
    document: Json = {}
    if output or format == "json":
        reports = [report(evaluation, by) for evaluation in evaluations]
        document = {"evaluations": reports, "notes": list(sources.notes)}
    if output:
        write_json(output, document)
    if per_item:
        write_text(per_item, per_item_lines(evaluations))
    if format == "json":
        print_json(document)
    elif score_only:
        write_document("".join(map(_numbers_line, evaluations, repeat(all_scores), repeat(form))))
    elif format == "csv":
        rows: list[Json] = []
        for group in _by_config(evaluations):
            rows += rows_of_scores(group, labels(group), by)
        print_table(number_table(rows, OF_SCORES), "csv")
    else:
        print_evaluations(evaluations, by, format, all_scores, form)
    # With --score-only, a program reads standard output, so notes are printed on standard error.
    notes_format = "numbers" if score_only else format
    print_notes(evaluations, sources.notes, notes_format, short_signatures)


def _check_groupings(evaluation: Evaluation, names: Sequence[str]) -> None:
    """Raise InputError if an evaluation has no such grouping."""
    allowed = evaluation.groupings()
    for name in names:
        if name not in allowed:
            config = f"{benchmark_of(evaluation.benchmark).title} {evaluation.config}"
            raise unknown_name(f"{config} has no grouping", name, allowed)


def _numbers_line(evaluation: Evaluation, all_scores: bool, form: NumberForm) -> str:
    """Return the values of the shown scores of an evaluation as one line."""
    scores = shown_scores(evaluation.scores(), all_scores).values()
    numbers = [form.fitting([score.spec]).number(score.value) for score in scores]
    return " ".join(numbers) + "\n"


def report(evaluation: Evaluation, by: Sequence[str] = ()) -> Json:
    """Return an evaluation as JSON data. "official" has what the authors' scorer would print."""
    benchmark = benchmark_of(evaluation.benchmark)
    document = evaluation.as_dict(by) | {"official": None}
    if evaluation.answered and (shape := benchmark.report().official_shape(evaluation)):
        document["official"] = shape
    return document


def is_official(evaluation: Evaluation) -> bool:
    """Tell whether the scores that the authors report are all there, and none deviates."""
    reported = [score for score in evaluation.scores().values() if score.spec.official]
    return bool(reported) and not any(map(evaluation.deviations, reported))


def print_evaluations(
    evaluations: Sequence[Evaluation],
    by: Sequence[str],
    format: str,
    all_scores: bool = False,
    form: NumberForm = PLAIN,
) -> None:
    """Print the scores, and then the groups.

    In a terminal, each config has a table with one row per score and evaluation. For documents, the
    scores are columns.
    """
    if format in DOCUMENTS:
        # Imported here because it imports NumPy.
        from qabench.evaluation.score_papers import paper_tables

        scored = [evaluation for evaluation in evaluations if evaluation.scores()]
        papers = paper_tables(scored, by, form, all_scores, _titles(evaluations))
        texts = [paper.formatted(format) for paper in papers]
        for group in _by_config(evaluations):
            for table in correction_tables(group, labels(group)):
                texts.append(table.formatted(format))
        write_document("\n".join(texts))
        return
    tables = []
    for group in _by_config(evaluations):
        names = labels(group)
        if any(evaluation.scores() for evaluation in group):
            tables.append(score_table(group, names, all_scores, form))
            tables += correction_tables(group, names)
        for grouping in by:
            heading = f"By {benchmark_of(group[0].benchmark).groupings.get(grouping, grouping)}"
            if len(_by_config(evaluations)) > 1:
                heading += f", {group[0].questions}"
            tables.append(group_table(group, names, grouping, heading, all_scores, form))
    print_tables(tables, format)


def _titles(evaluations: Sequence[Evaluation]) -> dict[str, str]:
    """Return the titles of the evaluations' benchmarks by name."""
    titles = {}
    for evaluation in evaluations:
        # The placeholder for tasks of other packages has no name and no title.
        if evaluation.benchmark:
            titles[evaluation.benchmark] = benchmark_of(evaluation.benchmark).title
    return titles


def print_notes(
    evaluations: Sequence[Evaluation],
    notes: Sequence[str],
    format: str,
    short_signatures: bool = False,
) -> None:
    """Print problems, deviations and signatures. On stderr unless the format is a table."""
    write = say if format == "table" else say_on_stderr
    notes_by_system = {}
    for label, evaluation in zip(labels(evaluations), evaluations, strict=True):
        notes_by_system[label] = _notes_of(evaluation, short_signatures)
    # Systems with the same note share one line, which names them.
    lines = with_systems(notes_by_system)
    for systems, (text, style) in lines:
        write(systems + text, style)
    # Notes of a comparison contain the notes of logs of other tasks, which are printed already.
    printed = {systems + text for systems, (text, _) in lines}
    for note in notes:
        if note not in printed:
            write(note, "yellow")


def _by_config(evaluations: Sequence[Evaluation]) -> list[list[Evaluation]]:
    """Return lists of evaluations on the same questions, which share tables."""
    return list(grouped((evaluation.questions, evaluation) for evaluation in evaluations).values())


def _notes_of(evaluation: Evaluation, short_signatures: bool) -> list[tuple[str, str]]:
    """Return the notes about an evaluation as pairs of text and style."""
    notes = notes_of(evaluation)
    if short_signatures:
        notes = [note for note in notes if note.kind != "signature"]
        # Without scores, there is nothing that a signature could describe.
        if not evaluation.why_unscored():
            for group, line in evaluation.short_signatures().items():
                notes.append(Note("signature", f"{group}: {line}"))
    return [(note.text, STYLES[note.kind]) for note in notes]
