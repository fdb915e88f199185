"""``qabench run``: runs a model over a benchmark, resumes runs, estimates costs, and lists options."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Exit, Option

from qabench.benchmarks import Benchmark, Setting, benchmark_names
from qabench.benchmarks import benchmark as benchmark_of
from qabench.benchmarks.checks import check_answers_public
from qabench.cli.evaluations import show
from qabench.cli.options import (
    AllScores,
    ConfigName,
    DryRun,
    Format,
    Output,
    PriceIn,
    PriceOut,
    Questions,
    Scores,
    SettingName,
    TaskArguments,
    output_folder,
    prices,
)
from qabench.cli.output import hint, plain_warnings, print_table, print_tables, progress_bar
from qabench.data.rows import Json
from qabench.errors import InputError, MissingExtra
from qabench.io.files import check_writable
from qabench.io.limits import yaml_of
from qabench.io.redaction import write_line
from qabench.io.tables import Table
from qabench.runs.log import header_of
from qabench.runs.log_types import NO_MODEL
from qabench.runs.sources import read_evaluations

if TYPE_CHECKING:
    from qabench.llm.caller import Prices
    from qabench.llm.client import Plan
    from qabench.runs.watching import Watch

# Options that can be combined with --resume. Any other option is an error, and so is a new one until it
# is listed here.
WITH_RESUME = (
    # They repeat what is in the log. ``qabench.runs.trust`` compares them.
    {"model", "base_url", "model_args", "solver", "epochs"}
    | {"task_args", "config", "questions", "prompt", "scores"}
    # These may change from one part of a run to the next.
    | {"max_connections", "max_retries", "timeout"}
    | {"max_calls", "token_budget", "max_cost", "price_in", "price_out"}
    # ``qabench.cli`` adds the parameters ``as_json`` and ``quiet`` to the command.
    | {"log_dir", "format", "output", "all_scores", "as_json", "quiet"}
)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of the command with parsed values.

    None stands for an option that was left out and has no default.

    Attributes:
        model_args: the arguments of the model's provider (-M).
        task_args: the arguments of the task (-T), with --config, --questions and --prompt.
        scores: --scores. A text can be several names, separated by commas.
        limit: the number of questions, or the first and the last position of a range. Positions
            begin at 0, and the last one is excluded.
        max_tokens: --max-new-tokens.
        name: the name of the system in all outputs.
        prices: --price-in and --price-out, per million tokens.
    """

    # What is asked.
    setting: str | None
    task_args: Json
    scores: list[str] | None
    limit: int | tuple[int, int] | None
    epochs: int | None
    generate_only: bool
    # Who answers.
    model: str | None
    base_url: str | None
    model_args: Json
    solver: str | None
    name: str | None
    # How the model is called.
    temperature: float | None
    max_tokens: int | None
    seed: int | None
    max_connections: int | None
    max_retries: int
    timeout: int | None
    cache: bool
    # When the run stops early.
    max_calls: int | None
    token_budget: int | None
    max_cost: float | None
    prices: Prices | None
    # What is written and printed.
    log_dir: Path
    format: str
    output: Path | None
    all_scores: bool


def run(
    ctx: typer.Context,
    benchmark: Annotated[
        str | None, Argument(metavar="BENCHMARK", help=", ".join(benchmark_names()))
    ] = None,
    model: Annotated[
        str | None,
        Option(
            help="A model name of Inspect AI: hf-inference-providers/ORG/NAME, openai/NAME, vllm/NAME, hf/NAME, ...; "
            "with --base-url, the model's name on the server."
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="An OpenAI-compatible server. Its key, if any, is read from QABENCH_API_KEY.",
        ),
    ] = None,
    model_args: Annotated[
        list[str] | None,
        Option(
            "-M",
            "--model-args",
            metavar="NAME=VALUE",
            help="An argument of the model's provider. May be repeated.",
        ),
    ] = None,
    scores: Scores = None,
    config: ConfigName = None,
    questions: Questions = None,
    limit: Annotated[
        str | None, Option(metavar="N|A-B", help="Only the first N questions, or A to B.")
    ] = None,
    epochs: Annotated[
        int | None, Option(min=1, help="The number of times each question is asked.")
    ] = None,
    setting: SettingName = None,
    prompt: Annotated[
        str | None,
        Option(help="official, qabench, or auto: official if the authors' file is available."),
    ] = None,
    temperature: Annotated[float | None, Option(min=0, help="Default: the protocol's.")] = None,
    max_new_tokens: Annotated[
        int | None,
        Option(min=1, help="The maximum length of a reply, in tokens. Default: the protocol's."),
    ] = None,
    seed: Annotated[int | None, Option(help="The seed that is sent to the model.")] = None,
    solver: Annotated[
        str | None,
        Option(
            metavar="FILE.py@NAME",
            help="A solver or an agent of Inspect AI that answers the questions.",
        ),
    ] = None,
    generate_only: Annotated[
        bool,
        Option(
            "--generate-only",
            help="Ask questions whose answers are not public, although no score can be computed.",
        ),
    ] = False,
    name: Annotated[
        str | None,
        Option(help="The name of the system in all outputs. Default: the model's name."),
    ] = None,
    task_args: TaskArguments = None,
    list_options: Annotated[
        bool, Option("--list-options", help="List the options for -T, and exit.")
    ] = False,
    max_connections: Annotated[
        int | None, Option(min=1, help="The maximum number of concurrent calls.")
    ] = None,
    max_retries: Annotated[int, Option(min=0, help="The number of retries of a failed call.")] = 5,
    timeout: Annotated[
        int | None,
        Option(min=1, metavar="SECONDS", help="Time limit for a call with all its retries."),
    ] = None,
    max_calls: Annotated[
        int | None,
        Option(
            min=1, help="Send at most this many calls, including retries and the short first call."
        ),
    ] = None,
    token_budget: Annotated[
        int | None, Option(min=1, help="Stop after this many tokens of prompts and replies.")
    ] = None,
    max_cost: Annotated[
        float | None,
        Option(min=0, help="Stop at this cost, by --price-in and --price-out."),
    ] = None,
    cache: Annotated[
        bool,
        Option("--cache/--no-cache", help="Reuse replies. `qabench cache` lists and clears them."),
    ] = True,
    dry_run: DryRun = False,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    log_dir: Annotated[
        Path, Option(metavar="DIR", callback=output_folder, help="The folder of the log.")
    ] = Path("logs"),
    resume: Annotated[
        Path | None,
        Option(metavar="LOG", help="Resume a run that was stopped or has failed questions."),
    ] = None,
    format: Format = "table",
    output: Output = None,
    all_scores: AllScores = False,
) -> None:
    """Run a model over a benchmark and score its answers with the official metrics.

    The model is called once before the first question, so that a wrong URL, key or name is detected
    within seconds. A question that fails is recorded and does not affect the others; --resume asks
    it again. Exit code: 0 scored, 1 the model does not respond or no question was answered, 2 wrong
    usage, 130 and 143 interrupted.
    """
    price = prices(price_in, price_out)
    if price and not dry_run and max_cost is None:
        raise InputError(
            "--price-in and --price-out are for --dry-run, which estimates the cost, and for --max-cost"
        )
    if max_cost is not None and not price:
        raise InputError("--max-cost needs --price-in and --price-out (per million tokens)")
    if output:
        check_writable(output)
    parsed_model_args = parse_pairs("-M", model_args)
    parsed_limit = parse_limit(limit)
    # ``-T`` can set these arguments of the task, too. Its values replace those of the options.
    parsed_task_args: Json = {}
    for argument, value in (("config", config), ("questions", questions), ("prompt", prompt)):
        if value:
            parsed_task_args[argument] = str(value)
    parsed_task_args |= parse_pairs("-T", task_args)
    options = RunOptions(
        setting=setting,
        task_args=parsed_task_args,
        scores=scores,
        limit=parsed_limit,
        epochs=epochs,
        generate_only=generate_only,
        model=model,
        base_url=base_url,
        model_args=parsed_model_args,
        solver=solver,
        name=name,
        temperature=temperature,
        max_tokens=max_new_tokens,
        seed=seed,
        max_connections=max_connections,
        max_retries=max_retries,
        timeout=timeout,
        cache=cache,
        max_calls=max_calls,
        token_budget=token_budget,
        max_cost=max_cost,
        prices=price,
        log_dir=log_dir,
        format=format,
        output=output,
        all_scores=all_scores,
    )
    try:
        if resume:
            _report(None, _resumed(ctx, resume, options), options)
        elif benchmark is None or not (model or solver or list_options):
            raise InputError(
                "give a benchmark and --model NAME, such as: qabench run BENCHMARK --model openai/gpt-4o"
            )
        elif list_options:
            _list_options(benchmark_of(benchmark), setting, format)
        elif dry_run:
            _print_plan(benchmark_of(benchmark), options)
        else:
            # This process has scored the answers of the new run already.
            chosen_benchmark = benchmark_of(benchmark)
            log = _started(chosen_benchmark, options)
            _report(chosen_benchmark, log, options, scored_here=True)
    except ModuleNotFoundError as error:
        if error.name != "inspect_ai":
            raise
        raise MissingExtra('running models needs inspect_ai: pip install "qabench[run]"') from None


def _was_passed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _started(benchmark: Benchmark, options: RunOptions) -> Path:
    """Run a model over a benchmark and return the log."""
    model = options.model or NO_MODEL
    setting = benchmark.setting(options.setting)
    place = f" at {options.base_url}" if options.base_url else ""
    starting = f"{benchmark.title}, {setting.name}: starting with the model {model}{place}"
    check_answers_public(benchmark, options.task_args, options.generate_only)
    # Inspect is imported after the first line is printed, because its import takes seconds.
    with _watched(options.log_dir, options, starting) as watch:
        from qabench.runs.running import start

        return start(
            benchmark,
            setting,
            model,
            base_url=options.base_url,
            task_args=_task_arguments(benchmark, setting, options),
            model_args=options.model_args,
            log_dir=options.log_dir,
            cache=options.cache,
            solver=options.solver,
            display_name=options.name,
            watch=watch,
            generate_only=options.generate_only,
            limit=options.limit,
            epochs=options.epochs,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            seed=options.seed,
            max_connections=options.max_connections,
            max_retries=options.max_retries,
            timeout=options.timeout,
        )


def _task_arguments(benchmark: Benchmark, setting: Setting, options: RunOptions) -> Json:
    """Return the arguments of the task, with --scores if the task has this option.

    Raises:
        InputError: an unknown name in --scores.
    """
    arguments = dict(options.task_args)
    # Called only for its error, so that a wrong name is reported before the model is called.
    benchmark.selected_groups(options.scores)
    if not options.scores:
        return arguments
    from qabench.runs.task_options import task_options

    if "scores" in [option.name for option in task_options(benchmark, setting)]:
        arguments["scores"] = ",".join(options.scores)
    # Other tasks compute all scores. Those that are printed are selected when the log is read.
    return arguments


def _resumed(ctx: typer.Context, log: Path, options: RunOptions) -> Path:
    """Resume a run and return its log.

    Raises:
        InputError: an option has no effect with ``--resume``.
    """
    for parameter in ctx.command.params:
        if parameter.name in (None, "resume", *WITH_RESUME):
            continue
        if _was_passed(ctx, parameter.name):
            # The last name of an option with a short form is the long one.
            name = parameter.opts[-1] if parameter.param_type_name == "option" else "BENCHMARK"
            raise InputError(
                f"{name} cannot be combined with --resume: a run is resumed with the options of its log; "
                "leave the option out, or start a new run"
            )
    # A resumed run's log is beside the first one, unless the user names another folder.
    folder = options.log_dir if _was_passed(ctx, "log_dir") else log.parent
    with _watched(folder, options, f"resuming {log}") as watch:
        from qabench.runs.running import resume

        return resume(
            log,
            options.model,
            base_url=options.base_url,
            model_args=options.model_args,
            task_args=options.task_args,
            log_dir=folder,
            solver=options.solver,
            epochs=options.epochs,
            scores=options.scores,
            watch=watch,
            max_connections=options.max_connections,
            max_retries=options.max_retries,
            timeout=options.timeout,
        )


def _print_plan(benchmark: Benchmark, options: RunOptions) -> None:
    """Print the estimated calls, tokens and cost of a run."""
    from qabench.llm.client import Plan

    model = options.model or NO_MODEL
    setting = benchmark.setting(options.setting)
    counted = _counted(benchmark, setting, model, options)
    counts = dict(counted["counts"])
    warning = counts.pop("warning", None)
    plan = Plan(**counts, cost=None)
    if options.prices:
        # The cost is not kept with the counts: prices change.
        cost = options.prices.cost(plan.prompt_tokens, plan.completion_tokens)
        plan = replace(plan, cost=cost)
    table = _plan_table(benchmark, setting, model, plan, options)
    table.notes.extend(counted["turns"])
    if reason := benchmark.why_unscored(options.task_args.get("config")):
        table.notes.append(f"no score can be computed: {reason}; the run needs --generate-only")
    document = plan.as_dict() | {"benchmark": benchmark.name, "model": model}
    if warning:
        table.notes.insert(0, warning)
        document["warning"] = warning
    print_table(table, options.format, document)


def _counted(benchmark: Benchmark, setting: Setting, model: str, options: RunOptions) -> Json:
    """Return the "counts" of calls and tokens of a run, and notes about its "turns".

    Counting takes long, so the result is read from the cache if ``kept`` has it from an earlier call.
    """
    from qabench.runs.kept import kept

    def count() -> Json:
        hint("counting the prompts of the questions; if possible, the counts are kept")
        from qabench.runs.estimate import plan_run

        estimate = plan_run(
            benchmark,
            setting,
            model,
            _task_arguments(benchmark, setting, options),
            limit=options.limit,
            epochs=options.epochs,
            max_tokens=options.max_tokens,
        )
        turns = _turns(benchmark, setting, options.task_args)
        return {"counts": estimate.as_dict(), "turns": turns}

    def is_final(result: Json) -> bool:
        # The warning is about pages that could not be loaded now. They may be available the next
        # time.
        return not result["counts"].get("warning")

    # All options on which the counts depend.
    arguments = {
        "setting": setting.name,
        "model": model,
        "task_args": options.task_args,
        "scores": options.scores,
        "limit": options.limit,
        "epochs": options.epochs,
        "max_tokens": options.max_tokens,
    }
    with plain_warnings():
        return kept(benchmark, arguments, count, is_final)


def _plan_table(
    benchmark: Benchmark, setting: Setting, model: str, plan: Plan, options: RunOptions
) -> Table:
    from qabench.llm.token_estimates import ESTIMATE

    cost = "unknown: give --price-in and --price-out"
    if plan.cost is not None:
        cost = f"{plan.cost:.4f}"
    label = benchmark.name
    if options.setting:
        label += f" {setting.name}"
    columns = ["benchmark", "model", "calls", "prompt tokens", "reply tokens", "cost"]
    row = [label, model, plan.calls, plan.prompt_tokens, plan.completion_tokens, cost]
    notes = [ESTIMATE, "not counted: one short call before the first question"]
    return Table(f"Estimate of qabench run {benchmark.name} --model {model}", columns, [row], notes)


def _turns(benchmark: Benchmark, setting: Setting, task_args: Json) -> list[str]:
    """Say how many further calls a model that uses tools may make."""
    from qabench.runs.task_options import task_options

    options = task_options(benchmark, setting)
    limits = [option.default for option in options if option.name == "max_turns"]
    if not limits:
        return ["not counted: further turns in which a model uses tools"]
    turns = task_args.get("max_turns", limits[0])
    return [
        f"not counted: turns in which the model uses tools, up to {turns} calls per question (-T max_turns=N), each "
        "with a longer prompt"
    ]


def _list_options(benchmark: Benchmark, setting_name: str | None, format: str) -> None:
    """Print the options for -T, for one setting of a benchmark or for all."""
    from qabench.runs.kept import kept

    def rows_by_setting() -> Json:
        from qabench.runs.task_options import task_options

        rows: dict[str, list[list[str | None]]] = {}
        for setting in benchmark.settings:
            rows_of_setting: list[list[str | None]] = []
            for option in task_options(benchmark, setting):
                default = option.default and str(option.default)
                rows_of_setting.append([option.name, default, option.about])
            rows[setting.name] = rows_of_setting
        return rows

    settings = [benchmark.setting(setting_name)] if setting_name else benchmark.settings
    rows = kept(benchmark, {"list": "options"}, rows_by_setting)
    tables = []
    for setting in settings:
        title = f"{benchmark.title}, --setting {setting.name}: options for -T NAME=VALUE"
        notes = [setting.about]
        if setting.requires:
            notes.append(f"Requires: {setting.requires}")
        columns = ["option", "default", "description"]
        tables.append(Table(title, columns, rows[setting.name], notes))
    print_tables(tables, format)


def _report(
    benchmark: Benchmark | None, log: Path, options: RunOptions, *, scored_here: bool = False
) -> None:
    """Print the scores of a log. Exit with 1 if it has none of the scores that were asked for."""
    sources = read_evaluations([log], benchmark, scores=options.scores, scored_here=scored_here)
    show(sources, options.format, output=options.output, all_scores=options.all_scores)
    (evaluation,) = sources.evaluations
    # A run of questions without public answers (--generate-only) has no scores, and succeeded.
    if not evaluation.scores() and not header_of(log).metadata.get("unscored"):
        raise Exit(1)


@contextmanager
def _watched(log_dir: Path, options: RunOptions, starting: str) -> Iterator[Watch]:
    """Say what is starting, then yield a watch that prints the log's path and the progress.

    The first line is printed before Inspect is imported, which takes seconds, so that nobody waits
    at an empty terminal.
    """
    hint(starting)
    from qabench.runs.watching import Watch

    with plain_warnings(), progress_bar("Asked", "questions") as progress:
        yield Watch(
            log_dir,
            on_log=lambda path: write_line(f"log: {path}", sys.stderr),
            on_progress=progress,
            say=hint,
            max_calls=options.max_calls,
            token_budget=options.token_budget,
            max_cost=options.max_cost,
            prices=options.prices,
        )


def parse_limit(text: str | None) -> int | tuple[int, int] | None:
    """Return --limit as Inspect takes it. Raises InputError if it is not N or A-B."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    numbers = []
    for part in (first, last):
        # int() would also read digits of other scripts, and take long for thousands of digits.
        if part.isascii() and part.isdecimal() and len(part) < 10:
            numbers.append(int(part))
    if len(numbers) != 1 + bool(dash) or min(numbers) < 1 or numbers != sorted(numbers):
        raise InputError(
            f"--limit is {text!r}; it must be a number such as 50, or a range such as 51-100"
        )
    # Inspect's ranges begin at 0 and exclude the end.
    return (numbers[0] - 1, numbers[1]) if dash else numbers[0]


def parse_pairs(option: str, arguments: Sequence[str] | None) -> Json:
    """Return NAME=VALUE arguments. Values are read as YAML, as on Inspect's command line."""
    values = {}
    for text in arguments or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InputError(f"{option} is {text!r}; it must be NAME=VALUE")
        try:
            values[name.replace("-", "_")] = yaml_of(value)
        except ValueError as error:
            raise InputError(f"{option} {name}: the value is not valid YAML: {error}") from None
    return values
