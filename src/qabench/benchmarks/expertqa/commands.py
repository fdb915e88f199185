"""``qabench expertqa``: claims of answers, AutoAIS labels and fact scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Exit, Option

from qabench.benchmarks.expertqa.questions import load_questions
from qabench.cli.options import DryRun, PriceIn, PriceOut, prices
from qabench.cli.output import print_table, progress_bar, say, say_on_stderr, warn
from qabench.cli.score import print_evaluations, print_notes
from qabench.data.predictions import read_predictions
from qabench.errors import InputError
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
    Argument(metavar="FILE", help='Lines {"id", "claims"}. Default: the annotated claims of --config.'),
]
Out = Annotated[Path, Option("--output", "-o", help="The file to write, as JSONL.")]
Config = Annotated[
    str | None,
    Option(help="The config with the questions. Without FILE, the default is the benchmark's."),
]


def claims(
    answers: Annotated[
        str,
        Argument(metavar="FILE", help='Lines {"id", "answer", "attribution"}; - for standard input.'),
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
    evidence = [claim["evidence"] for item in items for claim in item["claims"]]
    with_evidence = sum(map(bool, evidence))
    say(
        f"{len(evidence)} claims of {len(items)} answers, {with_evidence} with evidence; written to {output}"
    )
    if sentence_splitter()[0] == "qabench":
        warn(
            "spaCy is not installed, so sentences differ from the authors': pip install 'qabench[spacy]'"
        )


def attribute(
    file: Claims = None,
    output: Out = Path("labeled.jsonl"),
    config: Config = None,
    model: Annotated[
        str | None,
        Option(
            metavar="NAME|FOLDER",
            help="The NLI model; default: QABENCH_NLI_MODEL, or else google/t5_xxl_true_nli_mixture.",
        ),
    ] = None,
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"],
        Option(help="The model's numbers: float32, as the authors, or half the memory."),
    ] = "float32",
) -> None:
    """Label claims with an NLI model: Y if their evidence entails them, else N.

    Then print AutoAIS. Without --config it is the share of all claims, and never official.

    Labels in an existing OUTPUT are kept: repeat an interrupted command to continue it. With
    --config and the annotated claims of that config, the agreement with the experts is printed for
    both classes.
    """
    from qabench.benchmarks.expertqa.claims import share_supported

    items, questions = _items(file, config)
    labeled = _labeled(items, output, model, dtype)
    if questions is None:
        shares = share_supported(labeled)
        rows = [
            [name, f"{shares[name]:.4f}", bounds_text(*shares[f"{name}_interval"]), shares[counted]]
            for name, counted in (("macro", "answers"), ("micro", "claims"))
        ]
        note = f"unofficial: no expert has judged these claims, so all of them count; labels in {output}"
        columns = ["", "AutoAIS", "95% interval", "answers or claims"]
        return print_table(Table("Supported claims", columns, rows, [note]))
    _print_scores(output, questions, "autoais")


def facts(
    model: Annotated[
        str, Option(help="The model that splits claims into atomic claims and judges them.")
    ],
    file: Claims = None,
    output: Out = Path("facts.jsonl"),
    config: Config = None,
    base_url: Annotated[
        str | None, Option("--base-url", metavar="URL", help="An OpenAI-compatible server.")
    ] = None,
    atomic_model: Annotated[
        str | None, Option(help="The model that breaks claims down. Default: --model.")
    ] = None,
    corpus: Annotated[
        Path | None, Option(help="Evidence of atomic claims: the best passages of this corpus.")
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
        Option(help="Of passages: bm25, dense, api, or auto (bm25 for a corpus, dense for the web)."),
    ] = "auto",
    dry_run: DryRun = False,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
) -> None:
    """Compute fact scores of claims: the share of atomic claims that are true.

    A model judges each atomic claim by its evidence. Replies are cached: no call is paid for twice.
    Repeat an interrupted command to continue it. With --config and the annotated claims of that
    config, the agreement with the experts is printed.
    """
    from qabench.benchmarks.expertqa.claims import write_items
    from qabench.benchmarks.expertqa.facts import FactScorer, evidence_from, plan_facts, score_facts
    from qabench.llm.client import caller_for

    items, questions = _items(file, config)
    cost = prices(price_in, price_out)
    caller = caller_for(model, base_url, key_for_typed(base_url), prices=cost)
    scorer = FactScorer(caller, atomic_model or model)
    rows = questions.rows if questions else ()
    fields = {question.id: question.row["field"] for question in rows}
    if dry_run:
        values = plan_facts(items, fields, scorer).as_dict()
        plan = list(map(list, values.items()))
        return print_table(Table("Plan", ["", "number"], plan, [ESTIMATE]))
    source, find = evidence_from(corpus, search, ranker)
    atomic_claims = [claim.get("atomic_claims") for item in items for claim in item["claims"]]
    scores_by = scorer.label(None not in atomic_claims)
    if source:
        scores_by += f"/{source}"
    try:
        with progress_bar("Atomic claims, evidence, verdicts") as progress:
            scored, unscored = score_facts(items, fields, scorer, progress, find)
    except KeyboardInterrupt:
        say_on_stderr("stopped; the replies so far are cached: repeat the command to continue")
        raise Exit(INTERRUPTED) from None
    write_items(output, [{**item, "fact_scores_by": scores_by} for item in scored])
    n_scored = sum(claim["fact_score"] is not None for item in scored for claim in item["claims"])
    say(f"{n_scored} claims have a fact score, {len(unscored)} could not be scored; see {output}")
    for id, number, reason in unscored[:REASONS]:
        say(f"no score for claim {number} of {id}: {reason}", "yellow")
    if not n_scored:
        raise Exit(1)
    if questions is not None:
        _print_scores(output, questions, "fact_score")


def _items(file: str | None, config: str | None) -> tuple[list[Item], Questions | None]:
    """Return the lines of a file of claims or the annotated claims, and the questions of the config (None: unknown)."""
    from qabench.benchmarks.expertqa.claims import annotated_items, read_items

    if file is None:
        questions = load_questions(config)
        return annotated_items(questions), questions
    return read_items(file), load_questions(config) if config else None


def _labeled(items: Sequence[Item], output: Path, model: str | None, dtype: str) -> list[Item]:
    """Return items with labels by an entailment model.

    Ctrl-C keeps the labels so far in the output.
    """
    from qabench.benchmarks.expertqa.claims import with_labels, write_items
    from qabench.models.entailment import load_entailment

    entailment = load_entailment(model, dtype=dtype)
    say_on_stderr(f"labels by {entailment.name}, {entailment.device}")
    labeled = _labeled_before(output, entailment.name)
    rest = [item for item in items if item["id"] not in labeled]
    try:
        with progress_bar("Labeling answers") as progress:
            for start in range(0, len(rest), ITEMS_AT_ONCE):
                for item in with_labels(rest[start : start + ITEMS_AT_ONCE], entailment):
                    labeled[item["id"]] = {**item, "labels_by": entailment.name}
                write_items(output, list(labeled.values()))
                progress(len(labeled), len(items))
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


def _print_scores(output: Path, questions: Questions, groups: str) -> None:
    """Print the scores of the groups with this prefix."""
    whole = evaluate_predictions("expertqa", questions.config, output, split=questions.split)
    evaluation = replace(
        whole,
        score_specs=tuple(spec for spec in whole.score_specs if spec.group.startswith(groups)),
        signatures={name: line for name, line in whole.signatures.items() if name.startswith(groups)},
    )
    print_evaluations([evaluation], ["system"] if evaluation.by_group("system") else [], "table")
    print_notes([evaluation], (), "table")
