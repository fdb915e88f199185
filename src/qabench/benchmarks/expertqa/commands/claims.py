"""``qabench expertqa claims``: answers split into claims, by sentences or by a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.benchmarks.expertqa.commands.parts import Split, questions_of
from qabench.cli.options import ConfigName

if TYPE_CHECKING:
    from qabench.data.predictions import Predictions

Answers = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]",
        help='Lines {"id", "answer", "attribution"}; - for standard input. Default: the annotated answers.',
    ),
]


def claims(
    answers: Answers = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write, as JSONL.")] = Path(
        "claims.jsonl"
    ),
    config: ConfigName = None,
    split: Split = None,
    by: Annotated[
        str, typer.Option(help="sentences (as the authors' data), or model (their other script).")
    ] = "sentences",
    bing: Annotated[bool, typer.Option("--bing", help="Apply the authors' special rules for Bing Chat.")] = False,
    model: Annotated[str | None, typer.Option(help="The model that splits sentences, with --by model.")] = None,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="An OpenAI-compatible server.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the estimated cost, and exit.")] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, help="The maximum number of calls.")] = None,
    price_in: Annotated[float | None, typer.Option(min=0, help="The price per million prompt tokens.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="The price per million reply tokens.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="The maximum number of concurrent calls.")] = 20,
) -> None:
    """Split answers into claims, as ExpertQA's authors do, with the evidence that their marks cite.

    The output is input for the commands attribute, facts and faithfulness, and for qabench score expertqa. Without
    FILE, the annotated answers of --config are split, and compared with their released claims.
    """
    from qabench.benchmarks.expertqa.claims import sentence_splitter
    from qabench.benchmarks.expertqa.claims_comparison import annotated_answers, compared
    from qabench.benchmarks.expertqa.items import split_predictions, write_items
    from qabench.cli.output import print_table, say, warn
    from qabench.data.predictions import read_predictions
    from qabench.errors import InputError

    if by not in ("sentences", "model"):
        raise InputError(f"unknown way to split: {by!r}; allowed: sentences, model")
    questions = None if answers else questions_of(config, split, needed=True)
    predictions = read_predictions(answers, ("answer",)) if answers else annotated_answers(questions)
    for bad in predictions.bad_lines:
        warn(f"line {bad.line} is skipped: {bad.reason}")
    name = sentence_splitter()[0]
    if by == "model":
        prices = {"price_in": price_in, "price_out": price_out}
        items = _by_model(predictions, model, base_url, bing, dry_run, prices, max_calls, concurrency)
        if items is None:
            return
    else:
        items = list(split_predictions(predictions, bing=bing))
    write_items(output, items)
    n = sum(len(item["claims"]) for item in items)
    with_evidence = sum(bool(claim["evidence"]) for item in items for claim in item["claims"])
    say(f"{n} claims of {len(items)} answers, {with_evidence} with evidence; sentences by {name}; written to {output}")
    if name == "qabench":
        warn("spaCy is not installed, so sentences differ from the authors': pip install 'qabench[spacy]'")
    if questions is not None:
        print_table(compared(questions, items))


def _by_model(
    predictions: Predictions,
    model: str | None,
    base_url: str | None,
    bing: bool,
    dry_run: bool,
    prices: dict[str, float | None],
    max_calls: int | None,
    concurrency: int,
) -> list[dict[str, Any]] | None:
    """The items, or None after a dry run."""
    from qabench.benchmarks.expertqa.claims_by_model import claim_splitter, plan_claims, split_by_model
    from qabench.cli.output import print_table, progress_bar, warn
    from qabench.errors import InputError
    from qabench.io.tables import Table
    from qabench.llm.client import Prices
    from qabench.llm.endpoint import key_for_typed

    if not model:
        raise InputError("--by model needs --model NAME")
    price_in, price_out = prices["price_in"], prices["price_out"]
    if (price_in is None) != (price_out is None):
        raise InputError("give both --price-in and --price-out, per million tokens, or neither")
    known = None if price_in is None or price_out is None else Prices(price_in, price_out)
    chosen = claim_splitter(
        model, base_url, api_key=key_for_typed(base_url), prices=known, max_calls=max_calls, concurrency=concurrency
    )
    if dry_run:
        plan = plan_claims(predictions, chosen, bing=bing).as_dict()
        note = plan.pop("estimate")
        print_table(Table("Plan", ["", "number"], [[name, value] for name, value in plan.items()], [note]))
        return None
    with progress_bar("Calls") as progress:
        items, problems = split_by_model(predictions, chosen, bing=bing, progress=progress)
    for problem in problems:
        warn(problem)
    if not items:
        raise typer.Exit(1)
    return items
