"""``qabench score``: the official scores of a file of answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.old_predictions import Evaluation


def score(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="Which benchmark: fanoutqa.")],
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="Which config: dev, dev_nov23 or sample.")],
    answers: Annotated[
        Path, typer.Argument(metavar="ANSWERS.jsonl", help='A JSON object {"id": ..., "answer": ...} a line.')
    ],
    metrics: Annotated[str, typer.Option(help="Which scores, separated by commas: acc, rouge.")] = "acc,rouge",
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP", help="Also scores by group: category, type (of answer), evidence. May be repeated."
        ),
    ] = None,
    lemmatizer: Annotated[str, typer.Option(help="auto, spacy (official) or simplemma.")] = "auto",
    only_score_answered: Annotated[
        bool, typer.Option("--only-score-answered", help="Average over the answered questions only.")
    ] = False,
    ignore_unknown: Annotated[
        bool,
        typer.Option("--ignore-unknown", help="With --only-score-answered, pass over answers to unknown questions."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 2 when the file has any problem or the scores are unofficial.")
    ] = False,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JSON.")] = None,
    per_question: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a JSON line a question.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Score a file of answers with the official metrics.

    Missing, unknown and repeated ids, null answers and unreadable lines are counted and named; the rest is scored.
    """
    from qabench.benchmarks.fanoutqa.old_predictions import evaluate, load_questions, per_question_lines
    from qabench.cli.output import plain_warnings, print_json, progress_bar
    from qabench.files import write_json, write_text
    from qabench.generations import read_generations
    from qabench.text import Normalizer
    from qabench.text.cache import NormalizedTextCache

    generations = read_generations(answers)
    with plain_warnings(), progress_bar("Normalising texts") as progress:
        evaluation = evaluate(
            generations,
            load_questions(benchmark, config),
            metrics=[name.strip() for name in metrics.split(",") if name.strip()],
            normalizer=Normalizer(lemmatizer, NormalizedTextCache.default()),
            only_score_answered=only_score_answered,
            ignore_unknown=ignore_unknown,
            progress=progress,
        )
    report = evaluation.as_dict(by or ())
    if output:
        write_json(output, report)
    if per_question:
        write_text(per_question, per_question_lines(evaluation))
    if as_json:
        print_json(report)
    else:
        _print(evaluation, by or [])
    if strict and (evaluation.joined.problems() or evaluation.unofficial):
        raise typer.Exit(2)


def _print(evaluation: Evaluation, by: list[str]) -> None:
    from qabench.cli.output import console, print_table
    from qabench.tables import Table

    questions, counts = evaluation.questions, evaluation.joined.counts()
    rows = [
        [name, f"{interval.mean:.4f}", f"{interval.low:.4f} to {interval.high:.4f}", f"{interval.standard_error:.4f}"]
        for name, interval in evaluation.intervals().items()
    ]
    title = f"{questions.benchmark} {questions.config}: {evaluation.path}, {counts['scored']} questions"
    print_table(Table(title, ["score", "mean", "95 % interval", "standard error"], rows))
    if evaluation.rouge:
        parts = [
            [kind, *(f"{value:.4f}" for value in prf.values())] for kind, prf in evaluation.rouge.as_dict().items()
        ]
        print_table(Table("ROUGE", ["type", "precision", "recall", "F-measure"], parts))
    for grouping in by:
        groups = evaluation.by(grouping)
        columns = list(next(iter(groups.values()))) if groups else []
        cells = [
            [group, *(f"{v:.4f}" if isinstance(v, float) else v for v in values.values())]
            for group, values in groups.items()
        ]
        print_table(Table(f"By {grouping}", [grouping, *columns], cells))
    out = console()
    for problem in evaluation.joined.problems():
        out.print(problem, style="yellow", markup=False, soft_wrap=True)
    if evaluation.unofficial:
        from qabench.text.spacy_lemmatizer import install_hint

        text = f"UNOFFICIAL accuracy: lemmatized by {evaluation.unofficial}. For official scores: {install_hint()}"
        out.print(text, style="bold red", markup=False, soft_wrap=True)
    for name, text in evaluation.signatures.items():
        out.print(f"{name}: {text}", style="dim", markup=False, soft_wrap=True)
