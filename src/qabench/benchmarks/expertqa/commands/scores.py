"""``qabench expertqa attribute`` and ``facts``: labels and fact scores of claims."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from qabench.benchmarks.expertqa.commands.parts import (
    INTERRUPTED,
    BatchSize,
    Device,
    Dtype,
    Model,
    Revision,
    Split,
    label_items,
    print_scores,
    questions_of,
)
from qabench.cli.options import AsJson, ConfigName

Claims = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help='Lines {"id", "claims"}; without it, the annotated claims of --config.'),
]
Out = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write, as JSONL.")]


def attribute(
    file: Claims = None,
    output: Out = Path("labeled.jsonl"),
    config: ConfigName = None,
    split: Split = None,
    model: Model = None,
    revision: Revision = None,
    dtype: Dtype = None,
    device: Device = None,
    batch_size: BatchSize = None,
    official_quirks: Annotated[
        bool, typer.Option(help="Shorten long evidence exactly as the authors' script does.")
    ] = True,
    sentences: Annotated[
        str, typer.Option(help="How long evidence is split: punkt (NLTK's, as the authors) or spacy.")
    ] = "punkt",
) -> None:
    """Label claims with an NLI model: Y if their evidence entails them, else N; then print AutoAIS.

    Labels in an existing OUTPUT are kept: repeat an interrupted command to continue it. With --config and the annotated
    claims of that config, the agreement with the experts is printed for both classes.
    """
    from qabench.benchmarks.expertqa.claims import splitter_of
    from qabench.benchmarks.expertqa.items import read_items
    from qabench.cli.output import progress_bar, say_on_stderr
    from qabench.neural.nli import label_claims
    from qabench.neural.seq2seq import load_entailment

    split_with = splitter_of(sentences)
    questions = questions_of(config, split, needed=file is None)
    items = read_items(file, questions)
    with load_entailment(model, revision, batch_size=batch_size, device=device, dtype=dtype) as chosen:
        labels_by = chosen.name + ":no-quirks" * (not official_quirks) + ":spacy" * (sentences == "spacy")
        say_on_stderr(f"labels by {labels_by}, {chosen.devices}")
        label = partial(label_claims, model=chosen, split=split_with, official_quirks=official_quirks)
        try:
            with progress_bar("Labeling answers") as progress:
                labeled = label_items(items, label, labels_by, output, progress)
        except KeyboardInterrupt:
            say_on_stderr(f"stopped; the labels so far are in {output}: repeat the command to continue")
            raise typer.Exit(INTERRUPTED) from None
    print_scores(labeled, output, questions, "autoais")


def facts(
    model: Annotated[str, typer.Option(help="The model that splits claims into atomic claims and judges them.")],
    file: Claims = None,
    output: Out = Path("facts.jsonl"),
    config: ConfigName = None,
    split: Split = None,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="An OpenAI-compatible server.")] = None,
    prompt: Annotated[str, typer.Option(metavar="NAME|FILE", help="official, qabench, auto, or a file.")] = "auto",
    atomic_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model that breaks claims down; default: --model.")
    ] = None,
    sentences: Annotated[
        str, typer.Option(help="How claims are split: punkt (NLTK's, as the authors) or spacy.")
    ] = "punkt",
    post_processing: Annotated[
        str, typer.Option(help="Of atomic claims: official (needs en_core_web_sm), auto (if it is installed), none.")
    ] = "auto",
    corpus: Annotated[
        str | None,
        typer.Option(metavar="FILE|FOLDER", help="Passages that are the evidence of each atomic claim (BM25)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the estimated cost, and exit.")] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, help="The maximum number of calls.")] = None,
    token_budget: Annotated[int | None, typer.Option(min=0, help="The maximum number of tokens.")] = None,
    price_in: Annotated[float | None, typer.Option(min=0, help="The price per million prompt tokens.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="The price per million reply tokens.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="The maximum number of concurrent calls.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Compute fact scores: the share of a claim's atomic claims that a model finds true, given their evidence.

    Replies are cached: no call is paid for twice; repeat an interrupted command to continue it. With --config and the
    annotated claims of that config, the agreement with the experts is printed.
    """
    from qabench.benchmarks.expertqa.claims import splitter_of
    from qabench.benchmarks.expertqa.fact_scorer import fact_scorer
    from qabench.benchmarks.expertqa.facts import passages_for, plan_facts, score_facts
    from qabench.benchmarks.expertqa.items import as_row, read_items, write_items
    from qabench.benchmarks.expertqa.passages import load_passages
    from qabench.cli.output import print_json, print_table, progress_bar, say
    from qabench.errors import InputError
    from qabench.llm.budget import Prices
    from qabench.tables import Table

    if (price_in is None) != (price_out is None):
        raise InputError("--price-in and --price-out (per million tokens) must be given together")
    questions = questions_of(config, split, needed=file is None)
    items = read_items(file, questions)
    limits: dict[str, Any] = {"max_calls": max_calls, "max_tokens": token_budget, "concurrency": concurrency}
    prices = None if price_in is None or price_out is None else Prices(price_in, price_out)
    scorer = fact_scorer(
        model,
        base_url,
        prompt=prompt,
        prices=prices,
        atomic_model=atomic_model,
        sentences=(sentences, splitter_of(sentences)),
        post_processing=post_processing,
        **limits,
    )
    field_of = {question.id: question.field for question in questions.rows} if questions else {}
    rows = [as_row(item, field_of.get(item["id"]) or item.get("field") or "general knowledge") for item in items]
    if dry_run:
        plan = plan_facts(rows, scorer).as_dict()
        if as_json:
            print_json(plan)
        else:
            note = plan.pop("estimate")
            print_table(Table("Plan", ["", "number"], [[name, value] for name, value in plan.items()], [note]))
        return
    evidence = passages_for(load_passages(corpus).search) if corpus else None
    with progress_bar("Calls") as progress:
        run = score_facts(rows, scorer, progress=progress, evidence=evidence)
    given = all(claim.get("atomic_claims") is not None for item in items for claim in item["claims"])
    names = ("fact_score", "atomic_claims", "atomic_evidences")
    scored = [
        {
            **item,
            "fact_scores_by": scorer.label(given) + (f"/{Path(corpus).name}" if corpus else ""),
            "claims": [
                {**claim, **{name: judged.get(name) for name in names}}
                for claim, judged in zip(item["claims"], row["answers"][0]["claims"], strict=True)
            ],
        }
        for item, row in zip(items, run.rows, strict=True)
    ]
    write_items(output, scored)
    say(f"{run.scored} claims have a fact score, {len(run.unscored)} could not be scored; see {output}")
    for problem in run.unscored[:5]:
        name = items[problem["row"]]["id"]
        say(f"no score for claim {problem['claim'] + 1} of {name}: {problem['reason']}", "yellow")
    if run.scored:
        print_scores(scored, output, questions, "fact_score")
    else:
        raise typer.Exit(1)
