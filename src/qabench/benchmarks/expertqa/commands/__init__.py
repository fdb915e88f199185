"""``qabench expertqa``: claims of answers, AutoAIS labels and fact scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Exit, Option

from qabench.benchmarks.expertqa.fields import ANSWER_FIELDS
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.cli.options import DryRun, PriceIn, PriceOut, prices
from qabench.cli.output import print_table, progress_bar, say, say_on_stderr, warn
from qabench.data.prediction_files import STDIN
from qabench.data.predictions import read_predictions
from qabench.data.rows import without_none
from qabench.errors import InputError, QabenchError, some
from qabench.io.files import check_writable
from qabench.io.tables import Table
from qabench.llm.endpoint import key_for_typed
from qabench.llm.token_estimates import ESTIMATE

if TYPE_CHECKING:
    from qabench.benchmarks.expertqa.claim_lines import ClaimsLine
    from qabench.evaluation.scoring import Questions

CITATION_SCORES = ("citation_recall", "citation_precision")

Claims = Annotated[
    str | None,
    Argument(
        metavar="FILE", help='Lines {"id", "claims"}. Default: the annotated claims of --config.'
    ),
]
Out = Annotated[Path, Option("--output", "-o", help="The file to write, as JSONL.")]
Config = Annotated[
    str | None,
    Option(help="The config with the questions. Without FILE, the default is the benchmark's."),
]
Split = Annotated[
    str | None,
    Option(
        metavar="train|validation|test", help="A split of --config. Default: test, if it has one."
    ),
]


def claims(
    answers: Annotated[
        str,
        Argument(
            metavar="FILE", help='Lines {"id", "answer", "attribution"}; - for standard input.'
        ),
    ],
    output: Out = Path("claims.jsonl"),
    plain_marks: Annotated[
        bool,
        Option(
            "--plain-marks",
            help="Also read citations such as [1, 2], 【1】 and marks after a period (not official).",
        ),
    ] = False,
) -> None:
    """Split answers into claims with the evidence that they cite, as ExpertQA's authors do.

    Lines with "system": "bing_chat" follow the authors' rules for Bing Chat. The output is input
    for the commands attribute and facts, and for qabench score expertqa.
    """
    from qabench.benchmarks.expertqa.claim_lines import write_lines
    from qabench.benchmarks.expertqa.claims import sentence_splitter
    from qabench.benchmarks.expertqa.splitting import split_predictions

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
    lines = split_answers.lines
    for skipped in split_answers.skipped:
        warn(f"{skipped}; it is skipped")
    other_fields = [name for name in split_answers.read if name != "attribution"]
    if other_fields:
        say(f"sources are read from {', '.join(other_fields)}")
    if split_answers.ignored:
        warn(f"fields with lists that are not read: {', '.join(split_answers.ignored)}")
    if marks := split_answers.unresolved:
        hint = "" if plain_marks else "; --plain-marks reads most of them (not official)"
        warn(
            "answers with citation marks that are ignored, or read as part of the next sentence: "
            f"{len(marks)} ({some(marks)}){hint}"
        )
    if unmarked := split_answers.unmarked:
        warn(f"answers that have sources and cite none: {len(unmarked)} ({some(unmarked)})")
    write_lines(output, lines)
    n_claims = 0
    n_with_evidence = 0
    for line in lines:
        n_claims += len(line["claims"])
        for claim in line["claims"]:
            n_with_evidence += bool(claim["evidence"])
    say(
        f"{n_claims} claims of {len(lines)} answers, {n_with_evidence} with evidence; written to {output}"
    )
    splitter_name, _ = sentence_splitter()
    if splitter_name == "qabench":
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
        Option(
            help="The type of the model's numbers: float32 (the authors'), or one of half the size."
        ),
    ] = "float32",
    relabel: Annotated[
        bool, Option("--relabel", help="Label all claims, also those of FILE that have a label.")
    ] = False,
    citations: Annotated[
        bool,
        Option(
            "--citations",
            help="For claims with the label Y, also label each piece of evidence, for citation precision (as in ALCE).",
        ),
    ] = False,
) -> None:
    """Label claims with an NLI model: Y if their evidence entails them, else N.

    Then print AutoAIS. For a FILE without --config, it is the share of all claims, and never
    official.

    Labels in FILE are kept. Labels in an existing OUTPUT are kept if they are by the same model for
    the same claims and evidence, so repeat an interrupted command to continue it. OUTPUT has the
    lines of FILE. With --config and the annotated claims of that config, the agreement with the
    experts is printed for both classes.
    """
    from qabench.benchmarks.expertqa.commands.labels import labeled, with_citations
    from qabench.benchmarks.expertqa.commands.results import print_scores, shares_table
    from qabench.models.entailment import load_entailment

    lines, questions = _lines(file, config, split)
    check_writable(output)
    if questions is not None:
        _check_ids(lines, questions, file)
    # The model is loaded when it is first needed, and only once.
    load = cache(partial(load_entailment, model, dtype=dtype))
    lines = labeled(lines, output, load, relabel)
    if citations:
        lines = with_citations(lines, output, load)
    if questions is None:
        print_table(shares_table(lines, output, citations))
    else:
        shown = CITATION_SCORES if citations else ()
        print_scores(lines, output, questions, "autoais", shown)


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
        Option(
            help="How passages are ranked: bm25, dense, api, or auto (bm25 for a corpus, dense for the web)."
        ),
    ] = "auto",
    max_calls: Annotated[
        int | None, Option(min=0, help="The maximum number of calls, including repeated ones.")
    ] = None,
    max_connections: Annotated[
        int,
        Option("--max-connections", "--concurrency", min=1, help="The number of calls in flight."),
    ] = 20,
    max_retries: Annotated[int, Option(min=0, help="The number of retries of a failed call.")] = 5,
    timeout: Annotated[float, Option(min=1, help="Seconds for one call.")] = 120.0,
    temperature: Annotated[
        float | None,
        Option(min=0, help="The temperature of all calls. Default: the authors', 0.7."),
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

    A model judges each atomic claim by its evidence. Replies are cached, so no call is paid for
    twice: repeat an interrupted command to continue it. If a claim cannot be scored now, a fact
    score that the same models gave it in an existing OUTPUT is kept. With --config and the
    annotated claims of that config, the agreement with the experts is printed.
    """
    from qabench.benchmarks.expertqa import kept
    from qabench.benchmarks.expertqa.claim_lines import write_lines
    from qabench.benchmarks.expertqa.commands.results import (
        INTERRUPTED,
        back_up,
        print_scores,
        say_unreadable,
        say_unscored,
    )
    from qabench.benchmarks.expertqa.fact_evidence import evidence_from
    from qabench.benchmarks.expertqa.fact_requests import FactScorer
    from qabench.benchmarks.expertqa.facts import (
        Spent,
        keep_scored,
        plan_facts,
        score_facts,
        with_fields,
    )
    from qabench.llm.caller import caller_for

    lines, questions = _lines(file, config, split)
    if questions is not None:
        _check_ids(lines, questions, file)
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
            f"--price-in and --price-out are prices of {model}: add --atomic-price-in and --atomic-price-out, "
            f"the prices of {atomic_model}"
        )
    caller = caller_for(model, base_url, key_for_typed(base_url), prices=cost, **limits)
    sampling = without_none({"temperature": temperature, "seed": seed})
    scorer = FactScorer(caller, atomic_model or model, sampling, atomic_cost, cached=not no_cache)
    field_by_id = {}
    if questions is not None:
        field_by_id = {question.id: question.row["field"] for question in questions.rows}
    lines = with_fields(lines, field_by_id)
    if dry_run:
        plan = [list(row) for row in plan_facts(lines, scorer).as_dict().items()]
        return print_table(Table("Plan", ["", "number"], plan, [ESTIMATE]))
    check_writable(output)
    source, find = evidence_from(corpus, search, ranker)
    scores_by = scorer.label(lines)
    if source:
        scores_by += f"/{source}"
    # Fact scores by other models in the output must not be mixed with new ones.
    before = kept.rows_before(output)
    kept.check_author(output, before, "fact_scores_by", scores_by, "fact scores")
    # Without a usable endpoint, stop before searching for evidence, which can take hours.
    unusable = caller.endpoint.why_unusable
    if unusable and plan_facts(lines, scorer).calls:
        raise QabenchError(f"no fact score can be computed: {unusable}")
    spent = Spent()
    try:
        with progress_bar("Atomic claims, evidence, verdicts") as progress:
            scored, unscored = score_facts(lines, scorer, progress, find, spent)
    # The replies so far were paid for and are cached, so print what they cost, and how to continue.
    except KeyboardInterrupt:
        say_on_stderr(str(spent))
        say_on_stderr("stopped; the replies so far are cached: repeat the command to continue")
        raise Exit(INTERRUPTED) from None
    with_label = [{**line, "fact_scores_by": scores_by} for line in scored]
    written, n_kept = keep_scored(with_label, kept.scored_before(before, scores_by))
    n_scored = 0
    for line in written:
        for claim in line["claims"]:
            n_scored += claim["fact_score"] is not None
    # If nothing was scored, an earlier output is not replaced.
    if n_scored or not before:
        back_up(output, before, lines, "fact_score")
        write_lines(output, written)
    say(f"{n_scored} claims have a fact score, {len(unscored)} could not be scored; see {output}")
    say(str(spent))
    if n_kept:
        say(
            f"{n_kept} fact scores of {output} are kept, because their claims could not be scored now"
        )
    say_unreadable(written)
    say_unscored(unscored)
    if not n_scored:
        raise Exit(1)
    if questions is not None:
        print_scores(written, output, questions, "fact_score")


def _lines(
    file: str | None, config: str | None, split: str | None
) -> tuple[list[ClaimsLine], Questions | None]:
    """Return the lines of FILE or the annotated claims, and their questions (None if unknown)."""
    from qabench.benchmarks.expertqa.claim_lines import annotated_lines, read_lines

    if file is None:
        questions = load_questions(config, split)
        return annotated_lines(questions), questions
    if split and not config:
        raise InputError("--split has no effect without --config; leave it out, or add --config")
    lines = read_lines(file)
    if config is None:
        # Without a config, the questions of the file are unknown.
        return lines, None
    return lines, load_questions(config, split)


def _check_ids(lines: Sequence[ClaimsLine], questions: Questions, file: str | None) -> None:
    """Check that the ids of lines are ids of questions, before work that takes long or costs money.

    Warns about lines with other ids.

    Raises:
        InputError: no line has the id of a question.
    """
    ids = {question.id for question in questions.rows}
    unknown = [str(line["id"]) for line in lines if line["id"] not in ids]
    if not unknown:
        return
    source = f"expertqa {questions.config}"
    if questions.split:
        source += f", {questions.split}"
    text = f"{file}: lines whose id is not a question of {source}: {len(unknown)} ({some(unknown)})"
    if len(unknown) == len(lines):
        raise InputError(
            f"{text}. Leave out --config, or name the config and --split of these answers"
        )
    warn(f"{text}; they are not compared with the experts")
