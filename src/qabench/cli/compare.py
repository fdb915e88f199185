"""``qabench compare``: systems on the same questions, by paired differences and paired tests."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Argument, Option

from qabench.cli.evaluations import DOCUMENTS, print_notes, titles
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
    Output,
    Percent,
    Questions,
    ScoreColumns,
    Scores,
    ShortSignatures,
    SystemColumn,
    benchmark_and_files,
    files_of,
    score_tables,
)
from qabench.cli.output import print_table, print_tables, scoring_progress
from qabench.data.predictions import columns_named
from qabench.evaluation import Evaluation
from qabench.evaluation.number_form import number_form
from qabench.evaluation.number_rows import OF_PAIRS, number_table, rows_of_comparisons
from qabench.io.files import check_writable, write_json
from qabench.io.redaction import write_document

# The default of ``qabench.stats``, which imports NumPy and is therefore not imported here.
RESAMPLES = 10_000
# More resamples would take minutes and change no digit that is shown.
MAX_RESAMPLES = 10_000_000


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
    score_columns: ScoreColumns = None,
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
    inputs: list[Any] = list(paths)
    if score_columns is not None or system is not None:
        inputs = score_tables(paths, score_columns, id_column, system, cluster)
        # The ids have already been read from the tables, and ``columns_named`` would report an id
        # column that nothing reads.
        id_column = None
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
    if all_scores and scores is None and benchmark.name:
        groups = ",".join(benchmark.default_groups)
        notes.append(
            f"--all-scores has no effect without --scores, such as --scores {groups}: the systems are compared by "
            "the main score"
        )
    document = {"comparisons": [each.as_dict() for each in comparisons], "notes": notes}
    if output:
        write_json(output, document)
    if format == "csv":
        print_table(number_table(rows_of_comparisons(comparisons), OF_PAIRS), "csv")
    elif format in DOCUMENTS:
        write_document(comparison.document(format, form, all_scores, titles(evaluations)))
    else:
        print_tables(comparison.score_tables(form, all_scores), format, document)
    print_notes(evaluations, notes, format != "table", short_signatures)
