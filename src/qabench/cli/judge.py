"""``qabench judge``: let a language model judge a file of answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.judge import Judge
    from qabench.benchmarks.fanoutqa.judge_run import JudgeRun
    from qabench.benchmarks.fanoutqa.predictions import Questions
    from qabench.generations import Joined
    from qabench.llm.budget import Prices

# What the shell says of a program that Ctrl-C ended.
INTERRUPTED = 130

Answers = Annotated[
    Path, typer.Argument(metavar="ANSWERS.jsonl", help='A JSON object {"id": ..., "answer": ...} a line.')
]
Model = Annotated[str | None, typer.Option(help="The judge; by default FANOUTQA_JUDGE_MODEL, else gpt-4o-2024-11-20.")]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="An OpenAI-compatible server, or huggingface for Hub-hosted models; by default "
        "FANOUTQA_OPENAI_API_BASE, else OpenAI.",
    ),
]
CacheKey = Annotated[
    str, typer.Option(metavar="NAME", help="Keep this system's judgements apart (the official llm_cache_key).")
]
OnlyAnswered = Annotated[bool, typer.Option("--only-score-answered", help="Average over the answered questions only.")]
IgnoreUnknown = Annotated[
    bool,
    typer.Option("--ignore-unknown", help="With --only-score-answered, pass over answers to unknown questions."),
]


def judge(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="Which benchmark: fanoutqa.")],
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="Which config: dev, dev_nov23 or sample.")],
    answers: Answers,
    model: Model = None,
    base_url: BaseUrl = None,
    prompt: Annotated[str, typer.Option(metavar="own|official|FILE", help="The judge's prompt.")] = "own",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done and cost; call nothing.")
    ] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Make at most so many calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, help="Stop before more tokens are spent.")] = None,
    price_in: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens of prompts.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens of replies.")] = None,
    cache_key: CacheKey = "",
    reasks: Annotated[int, typer.Option(min=0, help="Ask again, so often, where a reply holds no verdict.")] = 0,
    retries: Annotated[int, typer.Option(min=0, help="Repeat a failed call so often.")] = 5,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls in flight at once.")] = 20,
    timeout: Annotated[float, typer.Option(help="Seconds for one call.")] = 120.0,
    only_score_answered: OnlyAnswered = False,
    ignore_unknown: IgnoreUnknown = False,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JSON.")] = None,
    per_question: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a JSON line a question.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Let a language model judge a file of answers, as FanOutQA does.

    The key comes from FANOUTQA_OPENAI_API_KEY (never OPENAI_API_KEY). Judgements are kept: what was paid for once is
    never asked again. Exit code: 0 all questions are scored, 1 some or all are not, 2 wrong usage.
    """
    from qabench.benchmarks.fanoutqa.judge import judge_for
    from qabench.cli.output import errors, plain_warnings

    with plain_warnings():
        chosen = judge_for(
            model,
            base_url,
            prompt=prompt,
            llm_cache_key=cache_key,
            reasks=reasks,
            retries=retries,
            concurrency=concurrency,
            timeout=timeout,
            max_calls=max_calls,
            max_tokens=max_tokens,
            prices=_prices(price_in, price_out),
        )
        items = _items(benchmark, config, answers, only_score_answered, ignore_unknown)
        if dry_run:
            _print_plan(items, chosen, as_json)
            return
        try:
            run = _run(items, chosen)
        except KeyboardInterrupt:
            errors().print("stopped; the judgements that came in are kept, and the same command goes on from there")
            raise typer.Exit(INTERRUPTED) from None
    _report(items, run, output, per_question, as_json)
    if run.score is None or run.score.unscored:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Items:
    """What is judged: the file's answers in the order of the config's questions."""

    questions: Questions
    joined: Joined
    only_score_answered: bool

    def columns(self) -> tuple[list[str], list[Any], list[Any]]:
        from qabench.answers import loads

        rows = [self.questions.by_id[question_id] for question_id in self.joined.ids]
        return [row["question"] for row in rows], [loads(row["answer"]) for row in rows], list(self.joined.predictions)


def _items(benchmark: str, config: str, answers: Path, only_score_answered: bool, ignore_unknown: bool) -> _Items:
    from qabench.benchmarks.fanoutqa.predictions import load_questions
    from qabench.generations import join, read_generations

    generations = read_generations(answers)
    questions = load_questions(benchmark, config)
    ids = [row["id"] for row in questions.rows]
    joined = join(ids, generations, only_score_answered=only_score_answered, ignore_unknown=ignore_unknown)
    return _Items(questions, joined, only_score_answered)


def _prices(price_in: float | None, price_out: float | None) -> Prices | None:
    from qabench.llm.budget import Prices

    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise InputError("give both --price-in and --price-out, a million tokens, or neither")
    return Prices(price_in, price_out)


def _run(items: _Items, judge: Judge) -> JudgeRun:
    from qabench.benchmarks.fanoutqa.judge_run import judge_answers
    from qabench.cli.output import progress_bar

    with progress_bar("Judging") as progress:
        return judge_answers(*items.columns(), judge, progress=progress)


def _print_plan(items: _Items, judge: Judge, as_json: bool) -> None:
    from qabench.benchmarks.fanoutqa.judge_run import plan_judging
    from qabench.cli.output import print_json, print_table
    from qabench.llm.budget import ESTIMATE
    from qabench.tables import Table

    plan = plan_judging(*items.columns(), judge)
    about = {"model": judge.model, "endpoint": judge.endpoint.base_url, "prompt": judge.prompt.label}
    unusable = judge.endpoint.why_unusable
    if as_json:
        print_json(plan.as_dict() | about | ({"unusable": unusable} if unusable else {}))
        return
    rows: list[list[Any]] = [
        ["questions", len(items.joined.ids)],
        ["calls", plan.calls],
        ["cached", plan.cached],
        ["tokens of prompts, about", plan.prompt_tokens],
        ["tokens of replies, about", plan.completion_tokens],
        ["cost, about", "unknown: give --price-in and --price-out" if plan.cost is None else f"{plan.cost:.4f}"],
    ]
    notes = [", ".join(f"{name} {value}" for name, value in about.items()), ESTIMATE, *filter(None, [unusable])]
    print_table(Table("What would be done", ["", "number"], rows, notes))


def _report(items: _Items, run: JudgeRun, output: Path | None, per_question: Path | None, as_json: bool) -> None:
    import json

    from qabench.cli.output import print_json
    from qabench.files import write_json, write_text
    from qabench.signature import signature

    about = {"benchmark": items.questions.benchmark, "config": items.questions.config}
    data = {"data": items.questions.data_digest, "only_score_answered": items.only_score_answered}
    line = signature("fanout_judge", **about, **data, **run.judge.signature())
    report = about | run.as_dict(items.joined.ids) | {"problems": items.joined.problems(), "signature": line}
    if output:
        write_json(output, report)
    if per_question and run.score:
        rows = zip(items.joined.ids, run.per_question(), strict=True)
        write_text(per_question, "".join(json.dumps({"id": i} | row, ensure_ascii=False) + "\n" for i, row in rows))
    if as_json:
        print_json(report)
    else:
        _print(run, report)


def _print(run: JudgeRun, report: dict[str, Any]) -> None:
    from qabench.cli.output import console, print_table
    from qabench.tables import Table

    out = console()
    if run.score is None:
        out.print(f"No judge score: {run.absent}", style="bold red", markup=False, soft_wrap=True)
        return
    gpt = "none" if run.score.gpt is None else f"{run.score.gpt:.4f}"
    rows: list[list[Any]] = [["gpt, over the scored questions", gpt]]
    rows += [["official, the unscored as 0", f"{run.score.official:.4f}"]]
    rows += [[name, value] for name, value in (report["counts"] | report["verdicts"] | run.usage()).items()]
    print_table(Table(f"{report['benchmark']} {report['config']}, judged by {run.judge.model}", ["", "value"], rows))
    for problem in report["problems"]:
        out.print(problem, style="yellow", markup=False, soft_wrap=True)
    for one in report["unscored"]:
        out.print(f"unscored {one['id']}: {one['reason']}", style="red", markup=False, soft_wrap=True)
    out.print(f"gpt: {report['signature']}", style="dim", markup=False, soft_wrap=True)
