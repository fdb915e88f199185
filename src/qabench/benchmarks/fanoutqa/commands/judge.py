"""``qabench fanoutqa judge``: lets a language model judge a file of answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.cli.options import AsJson, ConfigName, Output, Questions
from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.judge import Judge, Judged
    from qabench.data.predictions import Joined

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended

Answers = Annotated[str, typer.Argument(metavar="FILE", help='Answers, {"id", "answer"}; - for standard input.')]
Model = Annotated[str | None, typer.Option(help="The judge. Default: FANOUTQA_JUDGE_MODEL, or gpt-4o-2024-11-20.")]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="An OpenAI-compatible server, or huggingface for Hub-hosted models. Default: "
        "FANOUTQA_OPENAI_API_BASE, or OpenAI.",
    ),
]
PromptName = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE", help="official, qabench, auto (official if the authors' file is available), or a file."
    ),
]
CacheKey = Annotated[str, typer.Option(metavar="NAME", help="Do not use replies cached under another key.")]
PriceIn = Annotated[float | None, typer.Option(min=0, help="The price per million prompt tokens.")]
PriceOut = Annotated[float | None, typer.Option(min=0, help="The price per million reply tokens.")]


@dataclass(frozen=True)
class _Items:
    """The answers in the order of the questions."""

    config: str
    data: str
    joined: Joined
    questions: list[str]
    references: list[Any]
    predictions: list[Any]


def judge(
    answers: Answers,
    config: ConfigName = None,
    questions: Questions = None,
    model: Model = None,
    base_url: BaseUrl = None,
    prompt: PromptName = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the estimated cost, and exit.")] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, help="The maximum number of calls.")] = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    cache_key: CacheKey = "",
    retries: Annotated[int, typer.Option(min=0, help="The number of retries of a failed call.")] = 5,
    concurrency: Annotated[int, typer.Option(min=1, help="The maximum number of concurrent calls.")] = 20,
    timeout: Annotated[float, typer.Option(help="The time limit per call, in seconds.")] = 120.0,
    output: Output = None,
    per_item: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one JSON line per question.")] = None,
    as_json: AsJson = False,
) -> None:
    """Let a language model judge a file of answers, as FanOutQA's authors do.

    The key is read from FANOUTQA_OPENAI_API_KEY (never OPENAI_API_KEY). Replies are cached: no call is paid for twice.
    Exit code: 0 all answers are judged; 1 some are not; 2 wrong usage.
    """
    from qabench.benchmarks.fanoutqa.judge import judge_for
    from qabench.cli.output import plain_warnings, say_on_stderr
    from qabench.llm.endpoint import key_for_typed

    with plain_warnings():
        chosen = judge_for(
            model,
            base_url,
            key_for_typed(base_url),
            prompt=prompt,
            llm_cache_key=cache_key,
            retries=retries,
            concurrency=concurrency,
            timeout=timeout,
            max_calls=max_calls,
            prices=_prices(price_in, price_out),
        )
        items = _items(answers, config, questions)
        if dry_run:
            _print_plan(items, chosen, as_json)
            return
        try:
            judged = _run(items, chosen)
        except KeyboardInterrupt:
            say_on_stderr("stopped; replies received so far are cached: repeat the command to continue")
            raise typer.Exit(INTERRUPTED) from None
    _report(items, judged, output, per_item, as_json)
    if judged.score is None or judged.score.n < len(items.joined.ids):
        raise typer.Exit(1)


def _items(answers: str, config: str | None, questions: Path | None) -> _Items:
    from qabench.answers import UNANSWERED
    from qabench.benchmarks.fanoutqa.questions import read_questions, with_answers
    from qabench.data.predictions import join, read_predictions

    asked = with_answers(read_questions(config, questions))
    joined = join([row["id"] for row in asked.rows], read_predictions(answers, ("answer",)))
    return _Items(
        asked.config,
        asked.data_digest,
        joined,
        [row["question"] for row in asked.rows],
        [asked.reference(id) for id in joined.ids],
        [UNANSWERED if row is None else row.fields["answer"] for row in joined.rows],
    )


def _prices(price_in: float | None, price_out: float | None) -> tuple[float, float] | None:
    if (price_in is None) != (price_out is None):
        raise InputError("--price-in and --price-out (per million tokens) must be given together")
    return None if price_in is None or price_out is None else (price_in, price_out)


def _run(items: _Items, judge: Judge) -> Judged:
    from qabench.benchmarks.fanoutqa.judge import judge_answers
    from qabench.cli.output import progress_bar

    with progress_bar("Judging") as progress:
        return judge_answers(items.questions, items.references, items.predictions, judge, progress=progress)


def _print_plan(items: _Items, judge: Judge, as_json: bool) -> None:
    from qabench.benchmarks.fanoutqa.judge import plan_judging
    from qabench.cli.output import print_json, print_table
    from qabench.io.tables import Table
    from qabench.llm.client import ESTIMATE

    plan = plan_judging(items.questions, items.references, items.predictions, judge)
    endpoint = judge.caller.endpoint
    about = {"model": judge.caller.model, "endpoint": endpoint.base_url, "prompt": judge.prompt.label}
    if as_json:
        print_json(plan.as_dict() | about | ({"unusable": endpoint.why_unusable} if endpoint.why_unusable else {}))
        return
    rows: list[list[Any]] = [
        ["questions", len(items.joined.ids)],
        ["calls", plan.calls],
        ["cached", plan.cached],
        ["prompt tokens (estimate)", plan.prompt_tokens],
        ["reply tokens (estimate)", plan.completion_tokens],
        ["cost (estimate)", "unknown: give --price-in and --price-out" if plan.cost is None else f"{plan.cost:.4f}"],
    ]
    notes = [", ".join(f"{name} {value}" for name, value in about.items()), ESTIMATE, endpoint.why_unusable]
    print_table(Table("Plan", ["", "number"], rows, [*filter(None, notes)]))


def _report(items: _Items, judged: Judged, output: Path | None, per_item: Path | None, as_json: bool) -> None:
    import json

    from qabench.benchmarks.fanoutqa.official import DECLARATIONS
    from qabench.cli.output import print_json
    from qabench.evaluation.official import deviations
    from qabench.evaluation.signature import digest, signature
    from qabench.io.files import write_json, write_text

    about = {"benchmark": "fanoutqa", "config": items.config}
    data = {"data": items.data, "references": digest(items.references), "only_score_answered": False}
    line = signature("fanout_judge", **about, **data, **judged.judge.signature())
    sentences = [*deviations(line, DECLARATIONS["fanout_judge"]), *judged.deviations()]
    report = about | judged.as_dict(items.joined.ids) | {"problems": items.joined.problems()}
    report |= {"signature": line, "deviations": sentences}
    if output:
        write_json(output, report)
    if per_item and judged.score:
        rows = zip(items.joined.ids, judged.per_question(), strict=True)
        write_text(per_item, "".join(json.dumps({"id": id} | row) + "\n" for id, row in rows))
    if as_json:
        print_json(report)
    else:
        _print(judged, report)


def _print(judged: Judged, report: dict[str, Any]) -> None:
    from qabench.cli.output import print_table, say
    from qabench.io.tables import Table

    if judged.absent:
        say(f"No judge score: {judged.absent}", "bold red")
    if judged.score is None:
        return
    means = {"gpt": judged.score.gpt, "gpt_readable": judged.score.gpt_readable}
    sizes = {"gpt": judged.score.n, "gpt_readable": judged.score.n_readable}
    rows: list[list[Any]] = [
        [name, "none" if value is None else f"{value:.4f}", sizes[name]] for name, value in means.items()
    ]
    title = f"FanOutQA {report['config']}, judged by {report['model']}"
    print_table(Table(title, ["", "score", "n"], rows))
    counts = report["counts"] | report["verdicts"] | judged.usage.as_dict()
    print_table(Table("Counts", ["", "number"], [[name, value] for name, value in counts.items()]))
    for problem in report["problems"]:
        say(problem, "yellow")
    for item in report["unreadable"]:
        say(f"no readable verdict on {item['id']}: {item['reason']}", "yellow")
    for deviation in report["deviations"]:
        say(f"not official: {deviation}", "yellow")
    say(f"gpt: {report['signature']}", "dim")
