"""``qabench expertqa facts``: fact scores of claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.benchmarks.expertqa.commands.parts import INTERRUPTED, Claims, Out, Split, print_scores, questions_of
from qabench.cli.options import AsJson, ConfigName

if TYPE_CHECKING:
    from qabench.benchmarks.expertqa.facts import FactScoreRun
    from qabench.benchmarks.expertqa.items import Item
    from qabench.llm.client import Plan

SHOWN = 5  # claims without a score whose reasons are printed


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
        typer.Option(metavar="FILE|FOLDER", help="Evidence of atomic claims: the best passages of this corpus."),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Evidence of atomic claims: the best passages of the web pages that a search engine finds for them: "
            "searxng, google, or a TOML file (as the authors, with google).",
        ),
    ] = None,
    ranker: Annotated[
        str, typer.Option(help="Of passages: bm25, dense, api, or auto (bm25 for a corpus, dense for the web).")
    ] = "auto",
    encoder: Annotated[
        str | None, typer.Option(metavar="NAME", help="The encoder of the rankers dense and api.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the estimated cost, and exit.")] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, help="The maximum number of calls.")] = None,
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
    from qabench.benchmarks.expertqa.fact_evidence import evidence_from
    from qabench.benchmarks.expertqa.fact_scorer import fact_scorer
    from qabench.benchmarks.expertqa.facts import plan_facts, score_facts
    from qabench.benchmarks.expertqa.items import as_row, read_items, write_items
    from qabench.cli.output import progress_bar, say, say_on_stderr
    from qabench.errors import InputError
    from qabench.llm.client import Prices
    from qabench.llm.endpoint import key_for_typed

    if (price_in is None) != (price_out is None):
        raise InputError("--price-in and --price-out (per million tokens) must be given together")
    questions = questions_of(config, split, needed=file is None)
    items = read_items(file, questions)
    limits: dict[str, Any] = {"max_calls": max_calls, "concurrency": concurrency}
    prices = None if price_in is None or price_out is None else Prices(price_in, price_out)
    scorer = fact_scorer(
        model,
        base_url,
        key_for_typed(base_url),
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
        return _print_plan(plan_facts(rows, scorer), as_json)
    source, find = evidence_from(corpus, search, ranker, encoder) or (None, None)
    try:
        with progress_bar("Atomic claims, evidence, verdicts") as progress:
            run = score_facts(rows, scorer, progress=progress, evidence=find)
    except KeyboardInterrupt:
        say_on_stderr("stopped; the replies so far are cached: repeat the command to continue")
        raise typer.Exit(INTERRUPTED) from None
    given = all(claim.get("atomic_claims") is not None for item in items for claim in item["claims"])
    scored = _scored(items, run, scorer.label(given) + (f"/{source}" if source else ""))
    write_items(output, scored)
    say(f"{run.scored} claims have a fact score, {len(run.unscored)} could not be scored; see {output}")
    for problem in run.unscored[:SHOWN]:
        name = items[problem["row"]]["id"]
        say(f"no score for claim {problem['claim'] + 1} of {name}: {problem['reason']}", "yellow")
    if not run.scored:
        raise typer.Exit(1)
    print_scores(scored, output, questions, "fact_score")


def _print_plan(plan: Plan, as_json: bool) -> None:
    from qabench.cli.output import print_json, print_table
    from qabench.io.tables import Table

    values = plan.as_dict()
    if as_json:
        print_json(values)
    else:
        note = values.pop("estimate")
        print_table(Table("Plan", ["", "number"], [[name, value] for name, value in values.items()], [note]))


def _scored(items: Sequence[Item], run: FactScoreRun, scores_by: str) -> list[dict[str, Any]]:
    """The items with the scores of their claims."""

    def claim_of(claim: Mapping[str, Any], judged: Mapping[str, Any]) -> dict[str, Any]:
        return {**claim, **{name: judged.get(name) for name in ("fact_score", "atomic_claims", "atomic_evidences")}}

    return [
        {
            **item,
            "fact_scores_by": scores_by,
            "claims": list(map(claim_of, item["claims"], row["answers"][0]["claims"])),
        }
        for item, row in zip(items, run.rows, strict=True)
    ]
