"""``qabench expertqa``: claims of answers, their attribution, and their fact scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.cli.options import AsJson, ConfigName

if TYPE_CHECKING:
    from qabench.benchmarks.expertqa.items import Item
    from qabench.benchmarks.expertqa.questions import Questions

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended
ITEMS_AT_ONCE = 32  # labeled and written together; larger numbers fill batches better

Answers = Annotated[
    str, typer.Argument(metavar="FILE", help='Lines {"id", "answer", "attribution"}; - for standard input.')
]
Claims = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help='Lines {"id", "claims"}; without it, the annotated claims of --config.'),
]
Out = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write, as JSONL.")]
Split = Annotated[str | None, typer.Option(help="A split of the config. Default: test, if it has one.")]


def claims(
    answers: Answers,
    output: Out,
    bing: Annotated[bool, typer.Option("--bing", help="Apply the authors' special rules for Bing Chat.")] = False,
) -> None:
    """Split answers into claims as ExpertQA's authors do: sentences, with the evidence that their marks cite.

    The output is the input of the commands attribute and facts, and of qabench score expertqa.
    """
    from qabench.benchmarks.expertqa.claims import sentence_splitter
    from qabench.benchmarks.expertqa.items import split_predictions, write_items
    from qabench.cli.output import say, warn
    from qabench.predictions import read_predictions

    predictions = read_predictions(answers, ("answer",))
    for bad in predictions.bad_lines:
        warn(f"line {bad.line} is skipped: {bad.reason}")
    items = list(split_predictions(predictions, bing=bing))
    write_items(output, items)
    n = sum(len(item["claims"]) for item in items)
    with_evidence = sum(bool(claim["evidence"]) for item in items for claim in item["claims"])
    name = sentence_splitter()[0]
    say(f"{n} claims of {len(items)} answers, {with_evidence} with evidence; sentences by {name}; written to {output}")
    if name == "qabench":
        warn("spaCy is not installed, so sentences differ from the authors': pip install 'qabench[spacy]'")


def attribute(
    file: Claims = None,
    output: Out = Path("labeled.jsonl"),
    config: ConfigName = None,
    split: Split = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME|FOLDER", help="The NLI model; default: google/t5_xxl_true_nli_mixture.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="A commit, tag or branch of the model.")] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            help="float32 (as the authors), bfloat16 or float16; default: bfloat16 for a large model on a GPU."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="As torch names it; several: cuda:0,cuda:1 or all. Default: a GPU if there is one."),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Prompts of 512 tokens per batch; shorter ones are more.")
    ] = 16,
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
    from qabench.benchmarks.expertqa.items import read_items
    from qabench.cli.output import progress_bar, say_on_stderr
    from qabench.neural.nli import MODEL, label_claims
    from qabench.neural.seq2seq import load_entailment

    split_with = _splitter(sentences)
    questions = _questions(config, split, needed=file is None)
    items = read_items(file, questions)
    with load_entailment(model or MODEL, revision, batch_size=batch_size, device=device, dtype=dtype) as chosen:
        labels_by = chosen.name + ":no-quirks" * (not official_quirks) + ":spacy" * (sentences == "spacy")
        say_on_stderr(f"labels by {labels_by}, {chosen.devices}")
        label = partial(label_claims, model=chosen, split=split_with, official_quirks=official_quirks)
        try:
            with progress_bar("Labeling answers") as progress:
                labeled = _label(items, label, labels_by, output, progress)
        except KeyboardInterrupt:
            say_on_stderr(f"stopped; the labels so far are in {output}: repeat the command to continue")
            raise typer.Exit(INTERRUPTED) from None
    _score(labeled, output, questions, "autoais")


def _questions(config: str | None, split: str | None, *, needed: bool) -> Questions | None:
    from qabench.benchmarks.expertqa.questions import load_questions

    return load_questions(config, split) if config or needed else None


def _splitter(name: str) -> Any:
    from qabench.benchmarks.expertqa.claims import sentence_splitter
    from qabench.errors import InputError
    from qabench.neural.nli import punkt

    if name not in ("punkt", "spacy"):
        raise InputError(f"unknown sentences {name!r}; allowed: punkt, spacy")
    return punkt if name == "punkt" else sentence_splitter()[1]


def _label(
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
    from qabench.errors import InputError
    from qabench.predictions import read_predictions

    if not output.exists() or output.stat().st_size == 0:
        return {}
    rows = [dict(row.fields) for row in read_predictions(output, ("claims",)).rows]
    if other := {row.get("labels_by") for row in rows} - {labels_by}:
        raise InputError(f"{output} has labels by {other.pop()}, not by {labels_by}: use another --output")
    return {row["id"]: row for row in rows}


def _score(items: Sequence[Item], output: Path, questions: Questions | None, families: str) -> None:
    """Prints the scores of the families with this prefix; without a config, only the path of the claims."""
    from qabench.benchmarks import benchmark
    from qabench.benchmarks.expertqa.predictions import evaluate
    from qabench.cli.output import print_table, say
    from qabench.tables import Table

    claims = [claim for item in items for claim in item["claims"]]
    if questions is None:
        say(f"{len(claims)} claims of {len(items)} answers; written to {output}")
        say("For scores, use --config, or run: qabench score expertqa FILE --config NAME")
        return
    found = benchmark("expertqa")
    evaluation = evaluate(questions.config, found.read(items), split=questions.split)
    shown = found.scores(evaluation).items()
    scores = {name: one for name, one in shown if one.metric.family.startswith(families)}
    rows: list[list[Any]] = []
    for name, one in scores.items():
        numbers = [f"{value:.4f}" for value in (one.interval.mean, one.interval.low, one.interval.high)]
        rows.append([name, *numbers, one.n, one.metric.unit])
    title = f"ExpertQA {questions.config} {questions.split}, {len(claims)} claims"
    print_table(Table(title, ["", "score", "95% low", "95% high", "n", "of"], rows))
    for sentence in evaluation.problems:
        say(sentence, "yellow")
    for sentence in dict.fromkeys(said for one in scores.values() for said in found.deviations(evaluation, one)):
        say(f"not official: {sentence}", "yellow")
    for line in [line for name, line in evaluation.signatures.items() if name.startswith(families)]:
        say(line, "dim")


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
    questions = _questions(config, split, needed=file is None)
    items = read_items(file, questions)
    limits: dict[str, Any] = {"max_calls": max_calls, "max_tokens": token_budget, "concurrency": concurrency}
    prices = None if price_in is None or price_out is None else Prices(price_in, price_out)
    scorer = fact_scorer(
        model,
        base_url,
        prompt=prompt,
        prices=prices,
        atomic_model=atomic_model,
        sentences=(sentences, _splitter(sentences)),
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
        _score(scored, output, questions, "fact_score")
    else:
        raise typer.Exit(1)
