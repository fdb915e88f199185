"""``qabench expertqa``: claims of answers, AutoAIS labels and fact scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from qabench.benchmarks.expertqa.questions import load_questions
from qabench.cli.options import ConfigName, JsonOnly, prices
from qabench.cli.output import print_json, print_table, progress_bar, say, say_on_stderr, warn
from qabench.cli.score import print_evaluations, print_notes
from qabench.data.predictions import read_bytes, read_predictions, source_name
from qabench.data.rows import json_rows
from qabench.errors import InputError
from qabench.evaluation.signature import digest, signature
from qabench.io.tables import Table, bounds_text
from qabench.llm.client import ESTIMATE
from qabench.llm.endpoint import key_for_typed
from qabench.runs.sources import evaluate_predictions

if TYPE_CHECKING:
    from qabench.benchmarks.expertqa.claims import Item
    from qabench.evaluation.scoring import Questions

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended
ITEMS_AT_ONCE = 32  # labeled and written together: a larger number makes fuller batches
REASONS = 5  # claims without a score whose reasons are printed

Claims = Annotated[
    str | None,
    Argument(
        metavar="[FILE]",
        help='Lines {"id", "claims"}; without it, the annotated claims of --config.',
    ),
]
Out = Annotated[Path, Option("--output", "-o", help="The file to write, as JSONL.")]
Split = Annotated[str | None, Option(help="A split of the config; default: test, if it has one.")]
Model = Annotated[
    str | None,
    Option(
        metavar="NAME|FOLDER",
        help="The NLI model; default: QABENCH_NLI_MODEL, or else google/t5_xxl_true_nli_mixture.",
    ),
]
Revision = Annotated[str | None, Option(help="A commit, tag or branch of the model.")]
Dtype = Annotated[
    str | None,
    Option(
        help="float32 (as the authors), bfloat16 or float16; default: bfloat16 for a large model on a GPU."
    ),
]
Device = Annotated[
    str | None,
    Option(help="As torch names it, such as cuda:1. Default: a GPU if there is one."),
]
BatchSize = Annotated[
    int | None,
    Option(
        min=1, help="Prompts of 512 tokens per batch, more if shorter; default: 16, on a CPU 4."
    ),
]
ServerUrl = Annotated[
    str | None, Option("--base-url", metavar="URL", help="An OpenAI-compatible server.")
]
DryRun = Annotated[bool, Option("--dry-run", help="Print the estimated cost, and exit.")]
PriceIn = Annotated[float | None, Option(min=0, help="The price per million prompt tokens.")]
PriceOut = Annotated[float | None, Option(min=0, help="The price per million reply tokens.")]
MaxCalls = Annotated[int | None, Option(min=0, help="The maximum number of calls.")]
Concurrency = Annotated[int, Option(min=1, help="The maximum number of concurrent calls.")]


def claims(
    answers: Annotated[
        str,
        Argument(
            metavar="FILE", help='Lines {"id", "answer", "attribution"}; - for standard input.'
        ),
    ],
    output: Out = Path("claims.jsonl"),
) -> None:
    """Split answers into claims, as ExpertQA's authors do, with the evidence that their marks cite.

    Lines with "system": "bing_chat" follow the authors' rules for Bing Chat. The output is input
    for the commands attribute and facts, and for qabench score expertqa.
    """
    from qabench.benchmarks.expertqa.claims import sentence_splitter, split_predictions, write_items

    predictions = read_predictions(answers, ("answer",))
    for bad in predictions.bad_lines:
        warn(f"line {bad.line} is skipped: {bad.reason}")
    items = split_predictions(predictions)
    write_items(output, items)
    name = sentence_splitter()[0]
    n = sum(len(item["claims"]) for item in items)
    with_evidence = sum(bool(claim["evidence"]) for item in items for claim in item["claims"])
    say(
        f"{n} claims of {len(items)} answers, {with_evidence} with evidence; sentences by {name}; written to {output}"
    )
    if name == "qabench":
        warn(
            "spaCy is not installed, so sentences differ from the authors': pip install 'qabench[spacy]'"
        )


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
) -> None:
    """Label claims with an NLI model: Y if their evidence entails them, else N.

    Then print AutoAIS.

    Labels in an existing OUTPUT are kept: repeat an interrupted command to continue it. With
    --config and the annotated claims of that config, the agreement with the experts is printed for
    both classes.
    """
    items, questions = _items(file, config, split)
    labeled = _labeled(items, output, model, revision, batch_size, device, dtype)
    _print_scores(labeled, output, questions, "autoais")


def autoais(
    file: Annotated[
        str,
        Argument(
            metavar="FILE", help='Lines {"answer" or "claims", "evidence"}; - for standard input.'
        ),
    ],
    output: Out = Path("labeled.jsonl"),
    as_json: JsonOnly = False,
    model: Model = None,
    revision: Revision = None,
    dtype: Dtype = None,
    device: Device = None,
    batch_size: BatchSize = None,
) -> None:
    """Label the claims of any system's answers by their evidence, and print the share that it supports.

    Needs no question of ExpertQA. Never official. Labels in an existing OUTPUT are kept: repeat an
    interrupted command to continue it.
    """
    from qabench.benchmarks.expertqa.claims import (
        claim_fields,
        claimed_items,
        share_supported,
    )

    lines = read_bytes(file).splitlines()
    rows = [row.fields for row in json_rows(lines, source_name(file))]
    items = claimed_items(rows)
    labeled = _labeled(items, output, model, revision, batch_size, device, dtype)
    result = share_supported(labeled)
    result["signature"] = signature(
        "expertqa_autoais",
        references=digest(rows),
        labels=labeled[0]["labels_by"],
        **claim_fields(rows),
        asked=len(rows),
    )
    if as_json:
        return print_json(result)
    answers = result["answers"] - result["answers_without_claims"]
    shares = [
        [title, f"{result[name]:.4f}", bounds_text(*result[f"{name}_interval"]), n]
        for name, title, n in (
            ("macro", "mean over answers", answers),
            ("micro", "share of all claims", result["claims"]),
        )
    ]
    notes = [
        f"answers without claims: {result['answers_without_claims']}; "
        f"claims without evidence, which count as unsupported: {result['claims_without_evidence']}",
        f"unofficial: no expert has judged these claims, so all of them count; labels in {output}",
        result["signature"],
    ]
    print_table(Table("Supported claims", ["", "AutoAIS", "95% interval", "n"], shares, notes))


def facts(
    model: Annotated[
        str, Option(help="The model that splits claims into atomic claims and judges them.")
    ],
    file: Claims = None,
    output: Out = Path("facts.jsonl"),
    config: ConfigName = None,
    split: Split = None,
    base_url: ServerUrl = None,
    prompt: Annotated[str, Option(help="official, qabench, or auto.")] = "auto",
    atomic_model: Annotated[
        str | None,
        Option(help="The model that breaks claims down; default: --model."),
    ] = None,
    corpus: Annotated[
        str | None,
        Option(
            metavar="FILE|FOLDER",
            help="Evidence of atomic claims: the best passages of this corpus.",
        ),
    ] = None,
    search: Annotated[
        str | None,
        Option(
            metavar="NAME|FILE",
            help="Evidence of atomic claims: the best passages of the web pages that a search engine finds for them: "
            "searxng, google, or a TOML file (as the authors, with google).",
        ),
    ] = None,
    ranker: Annotated[
        str,
        Option(
            help="Of passages: bm25, dense, api, or auto (bm25 for a corpus, dense for the web)."
        ),
    ] = "auto",
    encoder: Annotated[str | None, Option(help="The encoder of the rankers dense and api.")] = None,
    dry_run: DryRun = False,
    max_calls: MaxCalls = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    concurrency: Concurrency = 20,
) -> None:
    """Compute fact scores: the share of a claim's atomic claims that a model finds true, given their evidence.

    Replies are cached: no call is paid for twice. Repeat an interrupted command to continue it.
    With --config and the annotated claims of that config, the agreement with the experts is
    printed.
    """
    from qabench.benchmarks.expertqa.claims import write_items
    from qabench.benchmarks.expertqa.facts import (
        evidence_from,
        fact_scorer,
        plan_facts,
        score_facts,
    )

    items, questions = _items(file, config, split)
    scorer = fact_scorer(
        model,
        base_url,
        key_for_typed(base_url),
        prompt=prompt,
        atomic_model=atomic_model,
        prices=prices(price_in, price_out),
        max_calls=max_calls,
        concurrency=concurrency,
    )
    fields = (
        {question.id: question.row["field"] for question in questions.rows} if questions else {}
    )
    if dry_run:
        values = plan_facts(items, fields, scorer).as_dict()
        rows = [[name, value] for name, value in values.items()]
        return print_table(Table("Plan", ["", "number"], rows, [ESTIMATE]))
    source, find = evidence_from(corpus, search, ranker, encoder)
    with_atomic_claims = all(
        claim.get("atomic_claims") is not None for item in items for claim in item["claims"]
    )
    if scorer.official and not scorer.entities and not with_atomic_claims:
        warn(
            "atomic claims are not post-processed as by the authors: that needs spaCy and en_core_web_sm"
        )
    try:
        with progress_bar("Atomic claims, evidence, verdicts") as progress:
            scored, unscored = score_facts(items, fields, scorer, progress, find)
    except KeyboardInterrupt:
        say_on_stderr("stopped; the replies so far are cached: repeat the command to continue")
        raise Exit(INTERRUPTED) from None
    scores_by = scorer.label(with_atomic_claims) + (f"/{source}" if source else "")
    scored = [{**item, "fact_scores_by": scores_by} for item in scored]
    n_scored = sum(claim["fact_score"] is not None for item in scored for claim in item["claims"])
    write_items(output, scored)
    say(f"{n_scored} claims have a fact score, {len(unscored)} could not be scored; see {output}")
    for id, number, reason in unscored[:REASONS]:
        say(f"no score for claim {number} of {id}: {reason}", "yellow")
    if not n_scored:
        raise Exit(1)
    _print_scores(scored, output, questions, "fact_score")


def _items(
    file: str | None, config: str | None, split: str | None
) -> tuple[list[Item], Questions | None]:
    """Return the lines of a file of claims or the annotated claims, and the questions of the config (None: unknown)."""
    from qabench.benchmarks.expertqa.claims import read_items

    questions = None if file and not config else load_questions(config, split)
    return read_items(file, questions), questions


def _labeled(
    items: Sequence[Item],
    output: Path,
    model: str | None,
    revision: str | None,
    batch_size: int | None,
    device: str | None,
    dtype: str | None,
) -> list[Item]:
    """Return items with labels by an entailment model.

    Ctrl-C keeps the labels so far in the output.
    """
    from qabench.benchmarks.expertqa.claims import with_labels, write_items
    from qabench.models.entailment import load_entailment

    entailment = load_entailment(model, revision, batch_size=batch_size, device=device, dtype=dtype)
    labels_by = entailment.name
    say_on_stderr(f"labels by {labels_by}, {entailment.device}")
    labeled = _labeled_before(output, labels_by)
    rest = [item for item in items if item["id"] not in labeled]
    output.parent.mkdir(parents=True, exist_ok=True)
    write_items(output, list(labeled.values()))  # drops an incomplete last line
    try:
        with (
            progress_bar("Labeling answers") as progress,
            output.open("a", encoding="utf-8") as file,
        ):
            for start in range(0, len(rest), ITEMS_AT_ONCE):
                chunk = rest[start : start + ITEMS_AT_ONCE]
                for item in with_labels(chunk, entailment):
                    labeled[item["id"]] = {**item, "labels_by": labels_by}
                    file.write(json.dumps(labeled[item["id"]], ensure_ascii=False) + "\n")
                file.flush()
                progress(len(items) - len(rest) + start + len(chunk), len(items))
    except KeyboardInterrupt:
        say_on_stderr(f"stopped; the labels so far are in {output}: repeat the command to continue")
        raise Exit(INTERRUPTED) from None
    return [labeled[item["id"]] for item in items]


def _labeled_before(output: Path, labels_by: str) -> dict[str, Item]:
    """Return the items of an earlier run by the same model, by id."""
    if not output.exists() or output.stat().st_size == 0:
        return {}
    rows = [dict(row.fields) for row in read_predictions(output, ("claims",)).rows]
    if other := {row.get("labels_by") for row in rows} - {labels_by}:
        raise InputError(
            f"{output} has labels by {other.pop()}, not by {labels_by}: use another --output"
        )
    return {row["id"]: row for row in rows}


def _print_scores(
    items: Sequence[Item], output: Path, questions: Questions | None, groups: str
) -> None:
    """Print the scores of the groups with this prefix.

    Without a config, print only the path of the claims.
    """
    if questions is None:
        n_claims = sum(len(item["claims"]) for item in items)
        say(f"{n_claims} claims of {len(items)} answers; written to {output}")
        say("For scores, use --config, or run: qabench score expertqa FILE --config NAME")
        return
    whole = evaluate_predictions("expertqa", questions.config, output, split=questions.split)
    evaluation = replace(
        whole,
        score_specs=tuple(spec for spec in whole.score_specs if spec.group.startswith(groups)),
        signatures={
            name: line for name, line in whole.signatures.items() if name.startswith(groups)
        },
    )
    print_evaluations([evaluation], ["system"] if evaluation.by_group("system") else [], "table")
    print_notes([evaluation], (), "table", verbose=True)
