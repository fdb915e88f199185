"""``qabench run``: runs a model over a benchmark and scores it with the official metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qabench.benchmarks import benchmark as benchmark_of
from qabench.benchmarks import benchmark_names
from qabench.cli.options import (
    AsJson,
    BaseUrl,
    ConfigName,
    Format,
    ModelArguments,
    Output,
    PriceIn,
    PriceOut,
    Questions,
    SettingName,
    TaskArguments,
    TokenBudget,
    checked_format,
    completed_benchmarks,
    prices,
)
from qabench.errors import InputError


def run(
    benchmark: Annotated[
        str | None,
        typer.Argument(metavar="BENCHMARK", help=", ".join(benchmark_names()), autocompletion=completed_benchmarks),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A model name of Inspect AI: hf-inference-providers/ORG/NAME, openai/NAME, vllm/NAME, hf/NAME, ...; "
            "with --base-url, the model's name on the server.",
        ),
    ] = None,
    base_url: BaseUrl = None,
    setting: SettingName = None,
    config: ConfigName = None,
    questions: Questions = None,
    limit: Annotated[str | None, typer.Option(metavar="N|A-B", help="Only the first N questions, or A to B.")] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="Only this question; may be repeated.")
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only questions of this category, domain, field or chapter; may be repeated."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="The number of times each question is asked.")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed that is sent to the model.")] = None,
    shuffle: Annotated[int | None, typer.Option(metavar="SEED", help="Ask the questions in random order.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Default: that of the benchmark's authors.")] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="The maximum length of a reply, in tokens. Default: the setting's.")
    ] = None,
    retriever: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINE:WHERE",
            help="Passages from a search engine: lucene:DIR, opensearch:URL/INDEX, elasticsearch:URL/INDEX.",
        ),
    ] = None,
    context_length: Annotated[
        int | None,
        typer.Option(min=1, metavar="TOKENS", help="The model's context window, for settings that fill it."),
    ] = None,
    wiki: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A ZIM file, for settings with Wikipedia."),
    ] = None,
    max_connections: Annotated[int | None, typer.Option(min=1, help="The maximum number of concurrent calls.")] = None,
    max_retries: Annotated[int, typer.Option(min=0, help="The number of retries of a failed call.")] = 5,
    timeout: Annotated[
        int | None, typer.Option(min=1, metavar="SECONDS", help="Time limit for a call with all its retries.")
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many replies; calls in flight may be billed.")
    ] = None,
    token_budget: TokenBudget = None,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Reuse replies; `qabench cache` lists and clears them.")
    ] = True,
    task_args: TaskArguments = None,
    model_args: ModelArguments = None,
    log_dir: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the log.")] = Path("logs"),
    resume: Annotated[
        Path | None, typer.Option(metavar="LOG", help="Resume a run that was stopped or has failed questions.")
    ] = None,
    suite: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Run the models x benchmarks x settings x seeds listed in a YAML file."),
    ] = None,
    list_options: Annotated[bool, typer.Option("--list-options", help="List the options for -T, and exit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the estimated calls, tokens and cost, and exit.")
    ] = False,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    format: Format = "table",
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Run a model over a benchmark and score its answers with the official metrics.

    The model is called once before the first question, so that a wrong URL, key or name is detected within seconds. A
    question that fails is recorded and does not affect the others; --resume asks it again. Exit code: 0 scored, 1 the
    model does not respond or no question was answered, 2 wrong usage, 130 and 143 interrupted.
    """
    from qabench.cli import run_parts as parts
    from qabench.io.files import check_writable

    chosen = checked_format(format, as_json)
    if output:
        check_writable(output)
    shown = parts.Shown(chosen, output)
    watching: dict[str, Any] = {"max_calls": max_calls, "token_budget": token_budget}
    sending: dict[str, Any] = {"max_connections": max_connections, "timeout": timeout}
    extra = parts.pairs("-M", model_args)
    if suite or resume:
        if benchmark or model:
            raise InputError("--resume and --suite cannot be combined with a benchmark or --model")
        if suite:
            parts.run_suite(suite, log_dir, shown, sending)
        elif resume:
            texts = {"questions": questions and str(questions), "retriever": retriever, "wiki": wiki}
            repeated = {name: value for name, value in texts.items() if value} | parts.pairs("-T", task_args)
            parts.resume(resume, base_url, extra, repeated, shown, watching, sending)
        return
    if benchmark is None:
        raise InputError("give a benchmark and --model NAME, such as: qabench run BENCHMARK --model openai/gpt-4o")
    if list_options:
        parts.list_options(benchmark, setting, chosen)
        return
    if model is None:
        raise InputError("give --model NAME, such as: qabench run BENCHMARK --model openai/gpt-4o")
    descriptor = benchmark_of(benchmark)
    if retriever and not setting:
        setting = descriptor.retriever_setting or None
    asked = {"config": config, "questions": str(questions) if questions else None, "ids": ids}
    named = asked | {
        descriptor.part: category,
        "retriever": retriever,
        "context_length": context_length,
        "wiki": wiki,
    }
    arguments = {name: value for name, value in named.items() if value is not None} | parts.pairs("-T", task_args)
    asking: dict[str, Any] = {"limit": parts.limited(limit), "epochs": epochs, "max_tokens": max_new_tokens}
    if dry_run:
        parts.plan(benchmark, setting, model, arguments, asking, prices(price_in, price_out), chosen)
        return
    sending |= {"seed": seed, "sample_shuffle": shuffle, "temperature": temperature, "max_retries": max_retries}
    provider = {"base_url": base_url, "model_args": extra, "log_dir": log_dir, "cache": cache}
    parts.start((benchmark, setting, model), arguments, shown, watching, provider | asking | sending)
