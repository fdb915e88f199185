"""``qabench evaluate-felm``: let a language model find errors in FELM's responses, and score what it found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.benchmarks.felm.evaluators import FelmEvaluator
    from qabench.benchmarks.felm.results import FelmRun

INTERRUPTED = 130  # what the shell says of a program that Ctrl-C ended
FIGURES = ("f1", "precision", "recall", "balanced_accuracy", "tp", "tn", "fp", "fn")

Method = Annotated[str, typer.Option(help="raw, cot, cot-cons, link or content.")]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="An OpenAI-compatible server, or huggingface for Hub-hosted models; by default "
        "FANOUTQA_OPENAI_API_BASE, else OpenAI.",
    ),
]
Quirks = Annotated[
    bool, typer.Option("--official-quirks", help="As upstream: references are not shown, an id 0 is the last segment.")
]
ReplyTokens = Annotated[
    int, typer.Option(min=1, help="The longest reply to ask for; the official 100 cuts many thoughts off.")
]


def evaluate_felm(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="all, sample, or a domain such as wk.")],
    model: Annotated[str, typer.Option(help="The model's name at the server.")],
    method: Method = "raw",
    claims: Annotated[bool, typer.Option("--claims", help="By claims, in wk, science and writing_rec.")] = False,
    base_url: BaseUrl = None,
    prompt: Annotated[str, typer.Option(metavar="own|official|FILE", help="The evaluator's prompt.")] = "own",
    num_cons: Annotated[int, typer.Option(min=1, help="Samples of cot-cons.")] = 5,
    official_quirks: Quirks = False,
    reply_format: Annotated[str, typer.Option(help="answer, or vicuna: ids anywhere in the reply.")] = "answer",
    reply_tokens: ReplyTokens = 100,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many responses.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done and cost; call nothing.")
    ] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Make at most so many calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, help="Stop before more tokens are spent.")] = None,
    price_in: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens of prompts.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens of replies.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="Repeat a failed call so often.")] = 5,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls in flight at once.")] = 20,
    timeout: Annotated[float, typer.Option(help="Seconds for one call.")] = 120.0,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write verdicts and replies, a JSON line a response.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Let a language model find the segments with errors in FELM's responses, and score it.

    The key comes from FANOUTQA_OPENAI_API_KEY (never OPENAI_API_KEY). Replies are kept: what was paid for once is never
    asked again. Exit code: 0 all responses are scored, 1 some or all are not, 2 wrong usage.
    """
    from qabench.benchmarks.felm.evaluators import felm_evaluator
    from qabench.cli.output import errors, plain_warnings
    from qabench.loading_scripts import open_path

    with plain_warnings():
        evaluator = felm_evaluator(
            method,
            model,
            base_url,
            claims=claims,
            prompt=prompt,
            official_text=lambda path: open_path("felm", f"eval/prompt/{path}").read_text(encoding="utf-8"),
            num_cons=num_cons,
            official_quirks=official_quirks,
            reply_format=reply_format,
            parameters={"max_tokens": reply_tokens},
            concurrency=concurrency,
            retries=retries,
            timeout=timeout,
            max_calls=max_calls,
            max_tokens=max_tokens,
            prices=_prices(price_in, price_out),
        )
        rows, data = _rows(config, limit)
        if dry_run:
            _print_plan(rows, evaluator, as_json)
            return
        try:
            run = _run(rows, evaluator)
        except KeyboardInterrupt:
            errors().print("stopped; the replies that came in are kept, and the same command goes on from there")
            raise typer.Exit(INTERRUPTED) from None
    report = {"benchmark": "felm", "config": config} | run.as_dict(benchmark="felm", config=config, **data)
    _report(run, report, output, as_json)
    if report["unscored"]:
        raise typer.Exit(1)


def _rows(config: str, limit: int | None) -> tuple[list[dict[str, Any]], dict[str, object]]:
    """The responses, and which data they are."""
    from itertools import islice

    from qabench.loading_scripts import dataset_table, file_digest, open_path
    from qabench.loading_scripts.felm.parse import read_rows

    chosen = dataset_table("felm").config(config)
    ((file,),) = chosen.splits.values()
    rows = list(islice(read_rows(open_path("felm", file), chosen.name), limit))
    return rows, {"data": file_digest("felm", file), "limit": limit}


def _prices(price_in: float | None, price_out: float | None) -> Any:
    from qabench.llm.budget import Prices

    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise InputError("give both --price-in and --price-out, a million tokens, or neither")
    return Prices(price_in, price_out)


def _run(rows: list[dict[str, Any]], evaluator: FelmEvaluator) -> FelmRun:
    from qabench.benchmarks.felm.evaluators import evaluate_felm as run
    from qabench.cli.output import progress_bar

    with progress_bar("Evaluating") as progress:
        return run(rows, evaluator, progress=progress)


def _print_plan(rows: list[dict[str, Any]], evaluator: FelmEvaluator, as_json: bool) -> None:
    from qabench.benchmarks.felm.evaluators import plan_felm
    from qabench.cli.output import print_json, print_table
    from qabench.llm.budget import ESTIMATE
    from qabench.tables import Table

    plan, caller = plan_felm(rows, evaluator), evaluator.caller
    about = {"model": caller.model, "endpoint": caller.endpoint.base_url, "prompt": evaluator.prompts.label}
    unusable = caller.endpoint.why_unusable
    if as_json:
        print_json(plan.as_dict() | about | ({"unusable": unusable} if unusable else {}))
        return
    lines: list[list[Any]] = [
        ["responses", len(rows)],
        ["calls", plan.calls],
        ["cached", plan.cached],
        ["tokens of prompts, about", plan.prompt_tokens],
        ["tokens of replies, about", plan.completion_tokens],
        ["cost, about", "unknown: give --price-in and --price-out" if plan.cost is None else f"{plan.cost:.4f}"],
    ]
    notes = [", ".join(f"{name} {value}" for name, value in about.items()), ESTIMATE, *filter(None, [unusable])]
    print_table(Table("What would be done", ["", "number"], lines, notes))


def _report(run: FelmRun, report: dict[str, Any], output: Path | None, as_json: bool) -> None:
    import json

    from qabench.cli.output import print_json
    from qabench.files import write_text

    if output:
        write_text(output, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in run.per_response()))
    if as_json:
        print_json(report)
    else:
        _print(report)


def _print(report: dict[str, Any]) -> None:
    from collections import Counter

    from qabench.cli.output import console, print_table
    from qabench.tables import Table

    official = report["official"] or {}
    parts = {"segments": report, **report["by_domain"], "responses": report["responses"]}
    if official:
        parts["segments, official"] = official
    rows = [[name, *[_shown(figures[figure]) for figure in FIGURES]] for name, figures in parts.items()]
    notes = ["official: where there is no verdict, all segments are taken for true"] if official else []
    notes.append(", ".join(f"{name} {value}" for name, value in (report["counts"] | report["usage"]).items()))
    title = f"felm {report['config']}, {report['method']} by {report['by']}, {report['evaluator']}"
    print_table(Table(title, ["", *FIGURES], rows, notes))
    out = console()
    for reason, count in Counter(one["reason"] for one in report["unscored"]).most_common():
        out.print(f"unscored, {count} x: {reason}", style="red", markup=False, soft_wrap=True)
    out.print(report["signature"], style="dim", markup=False, soft_wrap=True)


def _shown(value: Any) -> Any:
    return f"{value:.4f}" if isinstance(value, float) else value
