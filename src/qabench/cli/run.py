"""``qabench run``: a model over a benchmark, scored with the official metrics."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.errors import InputError
from qabench.limits import yaml_of

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation

KINDS_SHOWN = 5  # of problems


def run(
    benchmark: Annotated[
        str | None, typer.Argument(metavar="[BENCHMARK]", help="fanoutqa, felm, expertqa or fastbook.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="As Inspect AI names models: hf-inference-providers/ORG/NAME, openai/NAME, vllm/NAME, hf/NAME, ...; "
            "with --base-url the name that the server knows.",
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Any OpenAI-compatible server; its key, if any, is in QABENCH_API_KEY."),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="fanoutqa: closed-book, open-book, evidence-provided; felm: raw, cot, cot-cons, link, content; "
            "expertqa: closed, retrieve-read, post-hoc; fastbook: rag. By default the first."
        ),
    ] = None,
    config: Annotated[str | None, typer.Option(help="The dataset's config, such as dev or sample.")] = None,
    limit: Annotated[str | None, typer.Option(metavar="N|A-B", help="Only the first N samples, or A to B.")] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="Only this question; may be repeated.")
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only questions of this category, domain, field or chapter; may be repeated."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="How often each question is asked.")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed that is sent to the model.")] = None,
    shuffle: Annotated[int | None, typer.Option(metavar="SEED", help="The samples in a random order.")] = None,
    temperature: Annotated[float | None, typer.Option(help="By default what the benchmark's authors used.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Of a reply; by default the setting's.")] = None,
    context_length: Annotated[
        int | None,
        typer.Option(metavar="TOKENS", help="The model's window, for open-book and evidence-provided where unknown."),
    ] = None,
    max_connections: Annotated[int | None, typer.Option(help="Calls in flight.")] = None,
    max_retries: Annotated[int, typer.Option(help="How often a failed call is made again.")] = 5,
    timeout: Annotated[int | None, typer.Option(metavar="SECONDS", help="Of a call with all its retries.")] = None,
    cache: Annotated[bool, typer.Option(help="Keep replies, so that the same call is never paid for twice.")] = True,
    task_args: Annotated[
        list[str] | None, typer.Option("-T", metavar="NAME=VALUE", help="An argument of the task; may be repeated.")
    ] = None,
    model_args: Annotated[
        list[str] | None, typer.Option("-M", metavar="NAME=VALUE", help="One of the provider; may be repeated.")
    ] = None,
    log_dir: Annotated[Path, typer.Option(metavar="DIR", help="Where the log is written.")] = Path("logs"),
    resume: Annotated[
        Path | None, typer.Option(metavar="LOG", help="Go on with a run that was stopped or has failed samples.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON document.")] = False,
) -> None:
    """Run a model over a benchmark and score it; Inspect AI does the calls (`inspect view` shows the log).

    A sample that fails is recorded, costs no other, and is asked again by --resume.
    """
    from qabench.benchmarks.settings import PART_ARGUMENTS
    from qabench.cli.output import plain_warnings, print_json
    from qabench.runs import running
    from qabench.runs.log import read_run

    # Inspect's own summary would stand beside ours; its bar is for a person at a terminal.
    shown: dict[str, Any] = {"display": "rich" if sys.stderr.isatty() and not as_json else "none"}
    if resume:
        if benchmark or model:
            raise InputError("--resume goes on as the run was started: give no benchmark and no model with it")
        with plain_warnings():
            log = running.resume(resume, max_connections=max_connections, **shown)
    else:
        if benchmark is None or model is None:
            raise InputError("give a benchmark and --model NAME, such as: qabench run fanoutqa --model openai/gpt-4o")
        part = PART_ARGUMENTS.get(benchmark, "category")
        named = {"config": config, "ids": ids, part: category, "context_length": context_length}
        arguments = {name: value for name, value in named.items() if value is not None} | _pairs("-T", task_args)
        with plain_warnings():
            log = running.start(
                benchmark,
                setting,
                model,
                base_url=base_url,
                task_args=arguments,
                model_args=_pairs("-M", model_args),
                log_dir=log_dir,
                limit=_limit(limit),
                epochs=epochs,
                seed=seed,
                sample_shuffle=shuffle,
                temperature=temperature,
                max_tokens=max_tokens,
                max_connections=max_connections,
                max_retries=max_retries,
                timeout=timeout,
                cache=cache,
                **shown,
            )
    done = read_run(log)
    if as_json:
        print_json(done.as_dict())
    else:
        _print(done)


def _limit(text: str | None) -> int | tuple[int, int] | None:
    if text is None:
        return None
    first, dash, last = text.partition("-")
    if not first.isdigit() or (dash and not last.isdigit()):
        raise InputError(f"--limit is {text!r}; it must be a number such as 50, or a range such as 51-100")
    # Inspect's ranges begin at 0 and leave the end out.
    return (int(first) - 1, int(last)) if dash else int(first)


def _pairs(option: str, texts: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE arguments; values are read as YAML, as on Inspect's command line."""

    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InputError(f"{option} is {text!r}; it must be NAME=VALUE")
        try:
            pairs[name.replace("-", "_")] = yaml_of(value)
        except ValueError as error:
            raise InputError(f"{option} {name}: the value is not YAML that can be read: {error}") from None
    return pairs


def _print(run: Evaluation) -> None:
    from qabench.cli.output import console, print_table
    from qabench.tables import Table

    counts = run.counts()
    rows = [
        [name, f"{one.mean:.4f}", f"{one.low:.4f} to {one.high:.4f}", f"{one.standard_error:.4f}"]
        for name, one in ((name, score.interval) for name, score in run.scores().items())
    ]
    notes = [", ".join(f"{count} {status}" for status, count in counts.items() if count)]
    title = f"{run.benchmark} {run.config}, {run.setting}: {run.model}"
    if not rows:
        notes.append(f"nothing is scored: {run.unscored or 'no answer has a score'}")
    print_table(Table(title, ["score", "mean", "95 % interval", "standard error"], rows, notes))
    out = console()
    problems: dict[str, list[str]] = {}
    for record in run.records:
        if record.problem:
            problems.setdefault(f"{record.status}: {record.problem}", []).append(record.id)
    for problem, of in list(problems.items())[:KINDS_SHOWN]:
        named = f"{', '.join(of[:3])} and {len(of) - 3} more" if len(of) > 3 else ", ".join(of)
        out.print(f"{problem} ({named})", style="yellow", markup=False, soft_wrap=True)
    if len(problems) > KINDS_SHOWN:
        out.print(f"and {len(problems) - KINDS_SHOWN} more kinds of problems", style="yellow", markup=False)
    if run.unofficial:
        out.print(f"UNOFFICIAL: {run.unofficial}", style="bold red", markup=False, soft_wrap=True)
    for family, signature in run.signatures.items():
        out.print(f"{family}: {signature}", style="dim", markup=False, soft_wrap=True)
    if counts["failed"] or counts["missing"]:
        out.print(f"ask the failed ones again: qabench run --resume {run.path}", markup=False, soft_wrap=True)
    out.print(f"log: {run.path}", markup=False, soft_wrap=True)
