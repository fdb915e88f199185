"""``qabench expertqa``: claims of answers, AutoAIS labels and fact scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Exit, Option

from qabench.benchmarks.expertqa.fields import ANSWER_FIELDS
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.cli.options import DryRun, PriceIn, PriceOut, prices
from qabench.cli.output import print_table, progress_bar, say, say_on_stderr, warn
from qabench.cli.score import print_evaluations, print_notes
from qabench.data.predictions import STDIN, read_predictions, some
from qabench.data.rows import Json, without_none
from qabench.errors import InputError, QabenchError
from qabench.io.files import check_writable
from qabench.io.tables import Table, bounds_text
from qabench.llm.client import ESTIMATE
from qabench.llm.endpoint import key_for_typed
from qabench.runs.sources import evaluate_predictions

if TYPE_CHECKING:
    from qabench.benchmarks.expertqa.claims import Item
    from qabench.benchmarks.expertqa.facts import Unscored
    from qabench.evaluation.scoring import Questions
    from qabench.models.entailment import Entailment

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended
ITEMS_AT_ONCE = 32  # labeled and written together: a larger number makes fuller batches
CITATION_SCORES = ("citation_recall", "citation_precision")
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
Split = Annotated[
    str | None,
    Option(metavar="train|validation|test", help="A split of --config. Default: test, if it has one."),
]


def claims(
    answers: Annotated[
        str,
        Argument(metavar="FILE", help='Lines {"id", "answer", "attribution"}; - for standard input.'),
    ],
    output: Out = Path("claims.jsonl"),
    plain_marks: Annotated[
        bool,
        Option(
            "--plain-marks",
            help="Also read citations such as [1, 2], 【1】 and marks after a full stop (not official).",
        ),
    ] = False,
) -> None:
    """Split answers into claims, as ExpertQA's authors do, with the evidence that their marks cite.

    Lines with "system": "bing_chat" follow the authors' rules for Bing Chat. The output is input
    for the commands attribute and facts, and for qabench score expertqa.
    """
    from qabench.benchmarks.expertqa.claims import sentence_splitter, split_predictions, write_items

    if answers != STDIN and Path(answers).resolve() == output.resolve():
        raise InputError(
            f"the output {output} is the input, whose answers would lose the sentences that are not claims: "
            "use another --output"
        )
    check_writable(output)
    predictions = read_predictions(answers, ANSWER_FIELDS)
    for bad in predictions.bad_lines:
        warn(f"line {bad.line} is skipped: {bad.reason}")
    split_answers = split_predictions(predictions, plain_marks=plain_marks)
    items = split_answers.items
    for skipped in split_answers.skipped:
        warn(f"{skipped}; it is skipped")
    if other := [name for name in split_answers.read if name != "attribution"]:
        say(f"sources are read from {', '.join(other)}")
    if split_answers.ignored:
        warn(f"fields with lists that are not read: {', '.join(split_answers.ignored)}")
    if marks := split_answers.unresolved:
        hint = "" if plain_marks else "; --plain-marks reads most of them (not official)"
        warn(
            f"answers with citations that cite nothing, or the sentence after them: {len(marks)} ({some(marks)}){hint}"
        )
    if unmarked := split_answers.unmarked:
        warn(f"answers that have sources and cite none: {len(unmarked)} ({some(unmarked)})")
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
    split: Split = None,
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
    relabel: Annotated[
        bool, Option("--relabel", help="Label all claims, also those of FILE that have a label.")
    ] = False,
    citations: Annotated[
        bool,
        Option(
            "--citations",
            help="Also label each piece of evidence of claims with the label Y, for citation precision (as in ALCE).",
        ),
    ] = False,
) -> None:
    """Label claims with an NLI model: Y if their evidence entails them, else N.

    Then print AutoAIS. Without --config it is the share of all claims, and never official.

    Labels that FILE has are kept, and so are labels in an existing OUTPUT of the same claims and
    evidence by the same model: repeat an interrupted command to continue it. OUTPUT has the lines of
    FILE. With --config and the annotated claims of that config, the agreement with the experts is
    printed for both classes.
    """
    from qabench.benchmarks.expertqa.citations import citation_shares
    from qabench.benchmarks.expertqa.claims import share_supported
    from qabench.models.entailment import load_entailment

    items, questions = _items(file, config, split)
    check_writable(output)
    if questions is not None:
        _check_ids(items, questions, file)
    load = cache(partial(load_entailment, model, dtype=dtype))
    labeled = _labeled(items, output, load, relabel)
    if citations:
        labeled = _with_citations(labeled, output, load)
    if questions is None:
        shares = share_supported(labeled)
        rows = [
            [name, f"{shares[name]:.4f}", bounds_text(*shares[f"{name}_interval"]), shares[counted]]
            for name, counted in (("macro", "answers"), ("micro", "claims"))
        ]
        if citations:
            for name, interval, n in citation_shares(labeled):
                rows.append([name, f"{interval.mean:.4f}", interval.bounds(), n])
        note = f"unofficial: no expert has judged these claims, so all of them count; labels in {output}"
        columns = ["", "AutoAIS", "95% interval", "answers or claims"]
        return print_table(Table("Supported claims", columns, rows, [note]))
    _print_scores(labeled, output, questions, "autoais", CITATION_SCORES if citations else ())


def facts(
    model: Annotated[
        str, Option(help="The model that splits claims into atomic claims and judges them.")
    ],
    file: Claims = None,
    output: Out = Path("facts.jsonl"),
    config: Config = None,
    split: Split = None,
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
    max_calls: Annotated[
        int | None, Option(min=0, help="The maximum number of calls, including repeated ones.")
    ] = None,
    max_connections: Annotated[
        int, Option("--max-connections", "--concurrency", min=1, help="The number of calls in flight.")
    ] = 20,
    max_retries: Annotated[int, Option(min=0, help="The number of retries of a failed call.")] = 5,
    timeout: Annotated[float, Option(min=1, help="Seconds for one call.")] = 120.0,
    temperature: Annotated[
        float | None, Option(min=0, help="Of all calls. Default: the authors', 0.7.")
    ] = None,
    seed: Annotated[int | None, Option(help="The seed that is sent to the model.")] = None,
    no_cache: Annotated[
        bool, Option("--no-cache", help="Do not use cached replies, and do not keep new ones.")
    ] = False,
    dry_run: DryRun = False,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    atomic_price_in: Annotated[
        float | None, Option(min=0, help="As --price-in, for --atomic-model.")
    ] = None,
    atomic_price_out: Annotated[
        float | None, Option(min=0, help="As --price-out, for --atomic-model.")
    ] = None,
) -> None:
    """Compute fact scores of claims: the share of atomic claims that are true.

    A model judges each atomic claim by its evidence. Replies are cached: no call is paid for twice.
    Repeat an interrupted command to continue it. A fact score in an existing OUTPUT, of the same
    claim by the same models, is only replaced by another one. With --config and the annotated claims
    of that config, the agreement with the experts is printed.
    """
    from qabench.benchmarks.expertqa import kept
    from qabench.benchmarks.expertqa.claims import write_items
    from qabench.benchmarks.expertqa.facts import (
        FactScorer,
        Spent,
        evidence_from,
        keep_scored,
        plan_facts,
        score_facts,
        with_fields,
    )
    from qabench.llm.client import caller_for

    items, questions = _items(file, config, split)
    if questions is not None:
        _check_ids(items, questions, file)
    limits = {
        "max_calls": max_calls,
        "concurrency": max_connections,
        "retries": max_retries,
        "timeout": timeout,
    }
    cost = prices(price_in, price_out)
    atomic_cost = prices(atomic_price_in, atomic_price_out)
    if cost and atomic_model not in (None, model) and atomic_cost is None:
        raise InputError(
            f"--price-in and --price-out are those of {model}: add --atomic-price-in and --atomic-price-out, "
            f"the prices of {atomic_model}"
        )
    caller = caller_for(model, base_url, key_for_typed(base_url), prices=cost, **limits)
    sampling = without_none({"temperature": temperature, "seed": seed})
    scorer = FactScorer(caller, atomic_model or model, sampling, atomic_cost, cached=not no_cache)
    rows = questions.rows if questions else ()
    items = with_fields(items, {question.id: question.row["field"] for question in rows})
    if dry_run:
        values = plan_facts(items, scorer).as_dict()
        plan = list(map(list, values.items()))
        return print_table(Table("Plan", ["", "number"], plan, [ESTIMATE]))
    check_writable(output)
    source, find = evidence_from(corpus, search, ranker)
    scores_by = scorer.label(items) + (f"/{source}" if source else "")
    before = kept.rows_before(output)
    kept.check_author(output, before, "fact_scores_by", scores_by, "fact scores")
    unusable = caller.endpoint.why_unusable
    if unusable and plan_facts(items, scorer).calls:
        raise QabenchError(f"no fact score can be computed: {unusable}")
    spent = Spent()
    try:
        with progress_bar("Atomic claims, evidence, verdicts") as progress:
            scored, unscored = score_facts(items, scorer, progress, find, spent)
    except KeyboardInterrupt:
        say_on_stderr(str(spent))
        say_on_stderr("stopped; the replies so far are cached: repeat the command to continue")
        raise Exit(INTERRUPTED) from None
    made_by = [{**item, "fact_scores_by": scores_by} for item in scored]
    written, n_kept = keep_scored(made_by, kept.scored_before(before, scores_by))
    all_claims = [claim for item in written for claim in item["claims"]]
    n_scored = sum(claim["fact_score"] is not None for claim in all_claims)
    if n_scored or not before:
        _back_up(output, before, items, "fact_score")
        write_items(output, written)
    say(f"{n_scored} claims have a fact score, {len(unscored)} could not be scored; see {output}")
    say(str(spent))
    if n_kept:
        say(f"{n_kept} fact scores of {output} are kept, because their claims could not be scored now")
    _say_unreadable(written)
    _say_unscored(unscored)
    if not n_scored:
        raise Exit(1)
    if questions is not None:
        _print_scores(written, output, questions, "fact_score")


def _say_unscored(unscored: Sequence[Unscored]) -> None:
    """Print why claims could not be scored."""
    for line, number, reason in unscored[:REASONS]:
        say(f"no score for claim {number} of {line}: {reason}", "yellow")


def _say_unreadable(items: Sequence[Item]) -> None:
    """Count and name verdicts that state neither true nor false, and print the score without them."""
    from qabench.benchmarks.expertqa.factscore import fact_score

    places, readable_scores, scores = [], [], []
    for item in items:
        for number, claim in enumerate(item["claims"], start=1):
            decisions = claim.get("decisions") or []
            unreadable = [decision["reply"] for decision in decisions if not decision["readable"]]
            if unreadable:
                places.append(f"claim {number} of {item['id']}: {unreadable[0]!r:.40}")
            if claim["fact_score"] is not None:
                scores.append(claim["fact_score"])
            verdicts = [decision["is_supported"] for decision in decisions if decision["readable"]]
            if (share := fact_score(verdicts)) is not None:
                readable_scores.append(share)
    if not places:
        return
    readable = f"{sum(readable_scores) / len(readable_scores):.4f}" if readable_scores else "undefined"
    official = f"{sum(scores) / len(scores):.4f}" if scores else "undefined"
    warn(
        f"claims with a verdict that says neither true nor false: {len(places)} ({some(places)}). The authors' "
        f"reading counts most of them as true: the mean fact score is {official}, and {readable} over the "
        f"readable verdicts of {len(readable_scores)} claims"
    )


def _items(
    file: str | None, config: str | None, split: str | None
) -> tuple[list[Item], Questions | None]:
    """Return the lines of a file of claims or the annotated claims, and the questions of the config (None: unknown)."""
    from qabench.benchmarks.expertqa.claims import annotated_items, read_items

    if file is None:
        questions = load_questions(config, split)
        return annotated_items(questions), questions
    if split and not config:
        raise InputError("--split has no effect without --config; leave it out, or add --config")
    return read_items(file), load_questions(config, split) if config else None


def _check_ids(items: Sequence[Item], questions: Questions, file: str | None) -> None:
    """Check that lines belong to the questions, before work that takes long or costs money.

    Raises InputError if no line does. Warns of lines that do not.
    """
    ids = {question.id for question in questions.rows}
    unknown = [str(item["id"]) for item in items if item["id"] not in ids]
    if not unknown:
        return
    part = f"expertqa {questions.config}" + (f", {questions.split}" if questions.split else "")
    text = f"{file}: lines whose id is not a question of {part}: {len(unknown)} ({some(unknown)})"
    if len(unknown) == len(items):
        raise InputError(f"{text}. Leave out --config, or name the config and --split of these answers")
    warn(f"{text}; they are not compared with the experts")


def _with_citations(items: Sequence[Item], output: Path, load: Callable[[], Entailment]) -> list[Item]:
    """Return items with labels of each piece of evidence where citation precision needs them, and write them."""
    from qabench.benchmarks.expertqa.citations import with_evidence_labels
    from qabench.benchmarks.expertqa.claims import write_items
    from qabench.models.entailment import label_claims

    def label(pairs: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
        return label_claims(pairs, load()) if pairs else []

    labeled = with_evidence_labels(items, label)
    write_items(output, labeled)
    return labeled


def _labeled(
    items: Sequence[Item], output: Path, load: Callable[[], Entailment], relabel: bool
) -> list[Item]:
    """Return items with their own labels, labels of an earlier output, or new ones by an entailment model.

    Ctrl-C keeps the labels so far in the output.
    """
    from qabench.benchmarks.expertqa import kept
    from qabench.benchmarks.expertqa.claims import write_items

    if not relabel and all(_has_own_labels(item) for item in items):
        say_on_stderr("all claims have a label: no model is needed (--relabel labels them anew)")
        before = kept.rows_before(output)
        finished = [{**item, "labels_by": item.get("labels_by") or kept.GIVEN} for item in items]
        _back_up(output, before, items, "label")
        write_items(output, finished)
        return finished

    from qabench.models.entailment import label_claims

    entailment = load()
    name = entailment.name
    say_on_stderr(f"labels by {name}, {entailment.device}")
    before = kept.rows_before(output)
    kept.check_author(output, before, "labels_by", name, "labels")
    if not relabel:
        for item in items:
            if other := kept.authors(item.get("labels_by")) - {name, kept.GIVEN}:
                raise InputError(
                    f"the claims of {item['id']} have labels by {', '.join(sorted(other))}, not by {name}: "
                    "--relabel labels them anew"
                )
    earlier = [*before, *([] if relabel else items)]
    known_labels = kept.labels_of(earlier, name)
    known_evidence = kept.evidence_labels_of(earlier, name)
    _back_up(output, before, items, "label")
    finished = [_with_known(item, known_labels, known_evidence, name, relabel) for item in items]
    rest = [position for position, item in enumerate(finished) if not _is_labeled(item)]
    done = len(items) - len(rest)
    try:
        with progress_bar("Labeling answers") as progress:
            for start in range(0, len(rest), ITEMS_AT_ONCE):
                positions = rest[start : start + ITEMS_AT_ONCE]
                lacking = [
                    claim
                    for position in positions
                    for claim in finished[position]["claims"]
                    if claim.get("label") is None
                ]
                pairs = [(claim["claim"], claim["evidence"]) for claim in lacking]
                labels = label_claims(pairs, entailment)
                for claim, label in zip(lacking, labels, strict=True):
                    claim["label"] = label
                done += len(positions)
                write_items(output, [item for item in finished if _is_labeled(item)])
                progress(done, len(items))
    except KeyboardInterrupt:
        say_on_stderr(f"stopped; the labels so far are in {output}: repeat the command to continue")
        raise Exit(INTERRUPTED) from None
    write_items(output, finished)
    given = sum(claim.get("label_by") == kept.GIVEN for item in finished for claim in item["claims"])
    if given:
        warn(
            f"claims of the input that had a label, which is kept: {given} (--relabel labels them anew)"
        )
    return finished


def _has_own_labels(item: Item) -> bool:
    """Tell whether a line has claims, all with a label by someone who is not stated."""
    return _is_labeled(item) and not item.get("labels_by")


def _is_labeled(item: Item) -> bool:
    return all(claim.get("label") is not None for claim in item["claims"])


def _with_known(
    item: Item,
    known_labels: Mapping[str, str],
    known_evidence: Mapping[str, Sequence[Json]],
    name: str,
    relabel: bool,
) -> Item:
    """Return a copy of a line with the labels that are known, who made them, and what they are of."""
    from qabench.benchmarks.expertqa import kept
    from qabench.benchmarks.expertqa.citations import EVIDENCE_LABELS

    claims, made_by = [], set()
    for original in item["claims"]:
        claim = dict(original)
        by = claim.pop("label_by", None) or ("" if item.get("labels_by") else kept.GIVEN)
        if claim.get("label") is not None and by == kept.GIVEN and not relabel:
            claim["label_by"] = by
            made_by.add(by)
        else:
            claim["label"] = known_labels.get(kept.label_content(claim))
            made_by.add(name)
        if item.get("labels_by"):  # evidence that was edited since then has no labels
            claim.pop(EVIDENCE_LABELS, None)
        if pieces := known_evidence.get(kept.label_content(claim)):
            claim[EVIDENCE_LABELS] = pieces
        claims.append(claim)
    labels_by = ",".join(sorted(made_by - {name}) + [name] * (name in made_by or not made_by))
    return {**item, "claims": claims, "labels_by": labels_by, "labels_of": kept.labels_content(claims)}


def _back_up(output: Path, before: Sequence[Item], items: Sequence[Item], result: str) -> None:
    """Copy an earlier output whose results would be lost, and say so."""
    from qabench.benchmarks.expertqa.kept import back_up_lost

    if path := back_up_lost(output, before, items, result):
        warn(f"{output} has results of other claims: they are kept in {path}")


def _print_scores(
    items: Sequence[Item], output: Path, questions: Questions, groups: str, shown: Sequence[str] = ()
) -> None:
    """Print the scores of the groups with this prefix, for each system and sample of the lines.

    ``shown`` are printed although they are not main scores.
    """
    from qabench.benchmarks.expertqa.kept import keys_of

    ids = {question.id for question in questions.rows}
    parts: dict[tuple[str, str], list[Item]] = {}
    for item, (_, system, sample) in zip(items, keys_of(items), strict=True):
        if item["id"] in ids:
            parts.setdefault((system, sample), []).append(item)
    # Annotated answers of a config are of several systems, one answer per question: one file.
    repeated = len({item["id"] for own in parts.values() for item in own}) < sum(
        map(len, parts.values())
    )
    if not repeated:
        parts = {("", ""): [item for own in parts.values() for item in own]}
    evaluations = []
    for (system, sample), own in parts.items():
        rows = read_predictions(own, ("claims",))
        name = "-".join(filter(None, (system, sample if sample != "1" else ""))) or output.stem
        path = str(output.with_name(f"{name}{output.suffix}") if repeated else output)
        whole = evaluate_predictions(
            "expertqa", questions.config, replace(rows, path=path), split=questions.split
        )
        evaluations.append(
            replace(
                whole,
                score_specs=tuple(
                    replace(spec, main=spec.main or spec.name in shown)
                    for spec in whole.score_specs
                    if spec.group.startswith(groups)
                ),
                signatures={
                    group: line for group, line in whole.signatures.items() if group.startswith(groups)
                },
            )
        )
    by_system = any(evaluation.by_group("system") for evaluation in evaluations)
    print_evaluations(evaluations, ["system"] if by_system else [], "table")
    print_notes(evaluations, (), "table")
