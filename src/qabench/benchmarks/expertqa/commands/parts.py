"""Shared by the commands of ``qabench expertqa``: options, labels that are resumed, and printed scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from qabench.benchmarks.expertqa.items import Item
    from qabench.benchmarks.expertqa.questions import Questions
    from qabench.evaluation import Metric, Record
    from qabench.io.tables import Table

BY_SYSTEM = (
    *("autoais_macro", "autoais_micro", "autoais_agreement.accuracy", "autoais_agreement.complete.f1"),
    *("autoais_agreement.not_complete.f1", "fact_score", "fact_score_agreement.accuracy"),
    *("fact_score_agreement.correct.f1", "fact_score_agreement.not_correct.f1"),
)
INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended
ITEMS_AT_ONCE = 32  # labeled and written together: a larger number makes fuller batches

Claims = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help='Lines {"id", "claims"}; without it, the annotated claims of --config.'),
]
Out = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write, as JSONL.")]
Split = Annotated[str | None, typer.Option(help="A split of the config; default: test, if it has one.")]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FOLDER",
        help="The NLI model; default: QABENCH_NLI_MODEL, or else google/t5_xxl_true_nli_mixture.",
    ),
]
Revision = Annotated[str | None, typer.Option(help="A commit, tag or branch of the model.")]
Dtype = Annotated[
    str | None,
    typer.Option(help="float32 (as the authors), bfloat16 or float16; default: bfloat16 for a large model on a GPU."),
]
Device = Annotated[
    str | None, typer.Option(help="As torch names it; several: cuda:0,cuda:1 or all. Default: a GPU if there is one.")
]
BatchSize = Annotated[
    int | None, typer.Option(min=1, help="Prompts of 512 tokens per batch, more if shorter; default: 16, on a CPU 4.")
]


def questions_of(config: str | None, split: str | None, *, needed: bool) -> Questions | None:
    from qabench.benchmarks.expertqa.questions import load_questions

    return load_questions(config, split) if config or needed else None


def label_with_model(
    items: Sequence[Item], output: Path, loading: Mapping[str, Any], marks: str, **options: Any
) -> tuple[list[Item], str]:
    """The items with labels by an NLI model, and by what they are; Ctrl-C keeps the labels so far, and says so.

    Args:
        items: answers with claims and their evidence.
        output: the file of the labels.
        loading: the arguments of ``load_entailment``.
        marks: added to the model's name, for options that change labels.
        **options: of ``label_claims``.
    """
    from qabench.cli.output import progress_bar, say_on_stderr
    from qabench.models.entailment import label_claims, load_entailment

    entailment = load_entailment(**loading)
    labels_by = entailment.name + marks
    say_on_stderr(f"labels by {labels_by}, {entailment.device}")
    label = partial(label_claims, model=entailment, **options)
    try:
        with progress_bar("Labeling answers") as progress:
            return label_items(items, label, labels_by, output, progress), labels_by
    except KeyboardInterrupt:
        say_on_stderr(f"stopped; the labels so far are in {output}: repeat the command to continue")
        raise typer.Exit(INTERRUPTED) from None


def label_items(
    items: Sequence[Item],
    label: Callable[[Sequence[tuple[str, Sequence[str]]]], list[str]],
    labels_by: str,
    output: Path,
    progress: Any,
) -> list[Item]:
    """The items with labels, in order; each chunk is appended to the output when it is done."""
    import json

    from qabench.benchmarks.expertqa.items import write_items

    known = _known(output, labels_by)
    todo = [item for item in items if item["id"] not in known]
    output.parent.mkdir(parents=True, exist_ok=True)
    write_items(output, list(known.values()))  # drops an incomplete last line
    for start in range(0, len(todo), ITEMS_AT_ONCE):
        chunk = todo[start : start + ITEMS_AT_ONCE]
        pairs = [(claim["claim"], claim["evidence"]) for item in chunk for claim in item["claims"]]
        labels = iter(label(pairs))
        with output.open("a", encoding="utf-8") as file:
            for item in chunk:
                done = [{**claim, "label": next(labels)} for claim in item["claims"]]
                known[item["id"]] = {**item, "claims": done, "labels_by": labels_by}
                file.write(json.dumps(known[item["id"]], ensure_ascii=False) + "\n")
        if progress:
            progress(len(items) - len(todo) + start + len(chunk), len(items))
    return [known[item["id"]] for item in items]


def _known(output: Path, labels_by: str) -> dict[str, Item]:
    """The items of an earlier run by the same model, by id."""
    from qabench.data.predictions import read_predictions
    from qabench.errors import InputError

    if not output.exists() or output.stat().st_size == 0:
        return {}
    rows = [dict(row.fields) for row in read_predictions(output, ("claims",)).rows]
    if other := {row.get("labels_by") for row in rows} - {labels_by}:
        raise InputError(f"{output} has labels by {other.pop()}, not by {labels_by}: use another --output")
    return {row["id"]: row for row in rows}


def print_scores(items: Sequence[Item], output: Path, questions: Questions | None, families: str) -> None:
    """Prints the scores of the families with this prefix; without a config, only the path of the claims."""
    from qabench.benchmarks import evaluate_predictions
    from qabench.cli.output import print_table, say
    from qabench.io.tables import Table

    claims = [claim for item in items for claim in item["claims"]]
    if questions is None:
        say(f"{len(claims)} claims of {len(items)} answers; written to {output}")
        say("For scores, use --config, or run: qabench score expertqa FILE --config NAME")
        return
    evaluation = evaluate_predictions("expertqa", questions.config, items, split=questions.split)
    scores = {name: one for name, one in evaluation.scores().items() if one.metric.family.startswith(families)}
    rows: list[list[Any]] = []
    for name, one in scores.items():
        numbers = [f"{value:.4f}" for value in (one.interval.mean, one.interval.low, one.interval.high)]
        rows.append([name, *numbers, one.n, one.metric.unit])
    title = f"ExpertQA {questions.config} {questions.split}, {len(claims)} claims"
    print_table(Table(title, ["", "score", "95% low", "95% high", "n", "of"], rows))
    if by_system := _by_system(evaluation.records, [one.metric for one in scores.values()]):
        print_table(by_system)
    for sentence in evaluation.problems:
        say(sentence, "yellow")
    for sentence in dict.fromkeys(said for one in scores.values() for said in evaluation.deviations(one)):
        say(f"not official: {sentence}", "yellow")
    for line in [line for name, line in evaluation.signatures.items() if name.startswith(families)]:
        say(line, "dim")


def _by_system(records: Sequence[Record], metrics: Sequence[Metric]) -> Table | None:
    """The headline scores of each system whose answers were annotated; None if there are no systems."""
    from qabench.evaluation.scores import scores_of
    from qabench.io.tables import Table

    systems: dict[str, list[Record]] = {}
    for record in records:
        for system in record.groups.get("system", ()):
            systems.setdefault(system, []).append(record)
    shown = [metric for metric in metrics if metric.name in BY_SYSTEM]
    rows: list[list[Any]] = []
    for system, own in sorted(systems.items()):
        found = scores_of(shown, own)
        values = [f"{found[one.name].interval.mean:.4f}" if one.name in found else "" for one in shown]
        rows.append([system, len(own), *values])
    return Table("By system", ["system", "answers", *(one.name for one in shown)], rows) if rows and shown else None
