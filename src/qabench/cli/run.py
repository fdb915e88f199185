"""``qabench run``: runs a model over a benchmark, resumes runs, runs suites, estimates costs, and lists options."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Exit, Option

from qabench.benchmarks import Benchmark, Setting, benchmark_names
from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.options import (
    AllScores,
    ConfigName,
    Format,
    Output,
    Questions,
    Scores,
    SettingName,
    TaskArguments,
    complete_benchmarks,
    prices,
)
from qabench.cli.output import (
    hint,
    plain_warnings,
    print_table,
    print_tables,
    progress_bar,
    say_on_stderr,
    warn,
)
from qabench.cli.score import show
from qabench.data.rows import Json
from qabench.errors import InputError, MissingExtra
from qabench.io.files import check_writable
from qabench.io.limits import yaml_of
from qabench.io.tables import Table, write_line
from qabench.runs.sources import read_evaluations

if TYPE_CHECKING:
    from huggingface_hub import JobInfo

    from qabench.evaluation import Evaluation
    from qabench.runs.plan import TaskOption
    from qabench.runs.running import Watch

Options = Mapping[str, Any]

# Arguments of the task.
OF_TASK = (
    "config",
    "questions",
    "prompt",
    "ids",
    "protocol",
    "retriever",
    "wiki",
    "context_length",
)
PROVIDER = ("base_url", "model_args")
SENT = (*PROVIDER, "max_connections", "timeout", "max_retries")
ASKED = ("limit", "epochs", "max_tokens")
LIMITS = ("max_connections", "max_retries", "timeout", "max_calls", "token_budget")
PRICES = ("dry_run", "price_in", "price_out")
OUTPUT = ("log_dir", "format", "output", "as_json", "all_scores", "quiet")
SECTIONS = {
    "Model": ("model", "base_url", "model_args"),
    "Questions and scores": ("scores", "config", "questions", "limit", "ids", "category", "epochs"),
    "Prompt and protocol": (
        *("setting", "prompt", "protocol", "temperature", "max_new_tokens", "seed"),
        *("retriever", "context_length", "wiki", "solver", "task_args", "list_options"),
    ),
    "Limits": (*LIMITS, "cache", *PRICES),
    "GPUs of the Hub": ("on", "job_timeout", "attach"),
    "Output": ("resume", "suite", *OUTPUT, "help"),
}
# Options that also apply with --suite and with --resume. Any other option is an error next to them.
WITH_BOTH = ("base_url", "model_args", *LIMITS, *OUTPUT)
WITH_SUITE = (*WITH_BOTH, "limit", "epochs", "temperature", "max_new_tokens", "cache", *PRICES)
WITH_RESUME = (
    *(*WITH_BOTH, "scores", "config", "questions", "ids", "prompt", "protocol", "retriever"),
    *("context_length", "wiki", "model", "solver", "epochs", "task_args", "on", "job_timeout"),
)
WITH_ON = (
    *(*OUTPUT, *LIMITS, "scores", "cache", "job_timeout", "resume", "benchmark", "model"),
    *("model_args", "config", "questions", "limit", "ids", "category", "epochs", "setting"),
    *("prompt", "protocol", "temperature", "max_new_tokens", "seed", "context_length"),
    "task_args",
)
ADVICE = {
    "suite": "write it into the suite's file, or run the benchmarks one by one",
    "on": "a job can only use models and data from the internet, and a file of questions; leave the option out",
    "attach": "a job keeps the options that it was started with; leave the option out",
    "resume": "a run is resumed with the options of its log; leave the option out, or start a new run",
}


def run(
    ctx: typer.Context,
    benchmark: Annotated[
        str | None,
        Argument(
            metavar="BENCHMARK",
            help=", ".join(benchmark_names()),
            autocompletion=complete_benchmarks,
        ),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            help="A model name of Inspect AI: hf-inference-providers/ORG/NAME, openai/NAME, vllm/NAME, hf/NAME, ...; "
            "with --base-url, the model's name on the server.",
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="An OpenAI-compatible server; its key, if any, is read from QABENCH_API_KEY.",
        ),
    ] = None,
    model_args: Annotated[
        list[str] | None,
        Option(
            "-M",
            "--model-args",
            metavar="NAME=VALUE",
            help="An argument of the model's provider; may be repeated.",
        ),
    ] = None,
    scores: Scores = None,
    config: ConfigName = None,
    questions: Questions = None,
    limit: Annotated[
        str | None, Option(metavar="N|A-B", help="Only the first N questions, or A to B.")
    ] = None,
    ids: Annotated[
        list[str] | None,
        Option("--id", metavar="ID", help="Only this question; may be repeated."),
    ] = None,
    category: Annotated[
        list[str] | None,
        Option(
            help="Only questions of this category, domain, field or chapter; may be repeated.",
        ),
    ] = None,
    epochs: Annotated[
        int | None, Option(min=1, help="The number of times each question is asked.")
    ] = None,
    setting: SettingName = None,
    prompt: Annotated[
        str | None,
        Option(
            help="official, qabench, or auto: official if the authors' file is available.",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        Option(
            help="Temperature and token limit: official, qabench, or auto: as the prompt.",
        ),
    ] = None,
    temperature: Annotated[float | None, Option(help="Default: that of the protocol.")] = None,
    max_new_tokens: Annotated[
        int | None,
        Option(min=1, help="The maximum length of a reply, in tokens. Default: the protocol's."),
    ] = None,
    seed: Annotated[int | None, Option(help="The seed that is sent to the model.")] = None,
    retriever: Annotated[
        str | None,
        Option(
            metavar="ENGINE:WHERE",
            help="Passages from a search engine: lucene:DIR, opensearch:URL/INDEX, elasticsearch:URL/INDEX.",
        ),
    ] = None,
    context_length: Annotated[
        int | None,
        Option(
            min=1, metavar="TOKENS", help="The model's context window, for settings that fill it."
        ),
    ] = None,
    wiki: Annotated[
        str | None, Option(metavar="PATH", help="A ZIM file, for settings with Wikipedia.")
    ] = None,
    solver: Annotated[
        str | None,
        Option(
            metavar="FILE.py@NAME",
            help="A solver or an agent of Inspect AI that answers the questions.",
        ),
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
        Option(min=1, help="Stop after this many replies; calls in flight may be billed."),
    ] = None,
    token_budget: Annotated[
        int | None, Option(min=1, help="Stop after this many tokens of prompts and replies.")
    ] = None,
    cache: Annotated[
        bool,
        Option("--cache/--no-cache", help="Reuse replies; `qabench cache` lists and clears them."),
    ] = True,
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="Print the estimated calls, tokens and cost, and exit."),
    ] = False,
    price_in: Annotated[
        float | None, Option(min=0, help="The price per million prompt tokens.")
    ] = None,
    price_out: Annotated[
        float | None, Option(min=0, help="The price per million reply tokens.")
    ] = None,
    log_dir: Annotated[Path, Option(metavar="DIR", help="The folder of the log.")] = Path("logs"),
    on: Annotated[
        str | None,
        Option(metavar="FLAVOR", help="Run as a job on a GPU of the Hub, such as a10g-small."),
    ] = None,
    job_timeout: Annotated[
        str, Option(metavar="TIME", help="With --on: end the job after 30m, 6h, 2d.")
    ] = "6h",
    attach: Annotated[
        str | None, Option(metavar="JOB", help="Follow a job by its URL or OWNER/ID.")
    ] = None,
    resume: Annotated[
        Path | None,
        Option(metavar="LOG", help="Resume a run that was stopped or has failed questions."),
    ] = None,
    suite: Annotated[
        Path | None,
        Option(
            help="Run the models x benchmarks x settings x seeds listed in a YAML file.",
        ),
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
    values = dict(locals())
    values["price"] = prices(price_in, price_out)
    if values["price"] and not dry_run:
        raise InputError("--price-in and --price-out are for --dry-run, which estimates the cost")
    if output:
        check_writable(output)
    if on or attach:
        _report([_job_log(ctx, log_dir)], values)
        return
    values["model_args"] = parse_pairs("-M", model_args)
    values["limit"] = parse_limit(limit)
    values["max_tokens"] = max_new_tokens
    values["task_args"] = _task_arguments(values)
    if suite:
        _check_options(ctx, "suite", WITH_SUITE)
        _run_suite(suite, values)
    elif resume:
        _check_options(ctx, "resume", WITH_RESUME)
        _report([_resumed(ctx, resume, values)], values)
    elif benchmark is None or not (model or solver or list_options):
        raise InputError(
            "give a benchmark and --model NAME, such as: qabench run BENCHMARK --model openai/gpt-4o"
        )
    elif list_options:
        _list_options(benchmark, setting, format)
    else:
        _run_benchmark(benchmark_of(benchmark), values)


run.__dict__["sections"] = SECTIONS  # of the help


def _was_passed(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _check_options(ctx: typer.Context, mode: str, allowed: Sequence[str]) -> None:
    """Raise InputError for an option that has no effect with ``--suite`` or ``--resume``."""
    for parameter in ctx.command.params:
        if parameter.name not in (None, mode, *allowed) and _was_passed(ctx, parameter.name):
            name = parameter.opts[-1] if parameter.param_type_name == "option" else "BENCHMARK"
            raise InputError(f"{name} cannot be combined with --{mode}: {ADVICE[mode]}")


def _task_arguments(values: Options) -> dict[str, Any]:
    arguments = {name: values[name] for name in OF_TASK if values[name]}
    if "questions" in arguments:
        arguments["questions"] = str(arguments["questions"])
    return arguments | parse_pairs("-T", values["task_args"])


def _options(values: Options, *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names}


def _run_benchmark(benchmark: Benchmark, values: Options) -> None:
    """Run a model over a benchmark and report its scores, or estimate the run."""
    model = values["model"] or "none/none"  # Inspect's name: the solver may call other models
    setting, scores = values["setting"], values["scores"]
    if values["retriever"] and not setting:
        setting = benchmark.retriever_setting or None
    chosen = benchmark.setting(setting)
    task_args = values["task_args"]
    if values["category"]:
        task_args = {benchmark.part: values["category"]} | task_args
    benchmark.selected_groups(scores)
    if scores and any(option.name == "scores" for option in _task_options(benchmark, chosen)):
        task_args["scores"] = ",".join(scores)
    if values["dry_run"]:
        plans = [((values["benchmark"], setting, model), task_args, 1)]
        _print_plans(f"qabench run {values['benchmark']} --model {model}", plans, values)
        return
    place = f" at {values['base_url']}" if values["base_url"] else ""
    starting = f"{benchmark.title}, {chosen.name}: starting with the model {model}{place}"
    with _watched(values["log_dir"], values, starting) as watch:
        from qabench.runs.running import start

        options = _options(
            values, *SENT, *ASKED, "temperature", "seed", "log_dir", "cache", "solver"
        )
        log = start(
            values["benchmark"], setting, model, task_args=task_args, watch=watch, **options
        )
    _report([log], values)


def _resumed(ctx: typer.Context, log: Path, values: Options) -> Path:
    """Resume a run and return its log."""
    folder = values["log_dir"] if _was_passed(ctx, "log_dir") else None
    passed = [name for name in SENT if name in PROVIDER or _was_passed(ctx, name)]
    with _watched(folder or log.parent, values, f"resuming {log}") as watch:
        from qabench.runs.running import resume

        options = _options(values, *passed, "task_args", "solver", "epochs")
        return resume(log, values["model"], watch=watch, log_dir=folder, **options)


def _job_log(ctx: typer.Context, log_dir: Path) -> Path:
    """Start a job with the options of the command line, or attach to one.

    Follow it and return the path of its log.
    """
    _check_inspect()
    from huggingface_hub.utils.tqdm import disable_progress_bars

    from qabench.hub import jobs
    from qabench.runs.running import Interrupted

    disable_progress_bars()
    if ctx.params["attach"]:
        _check_options(ctx, "attach", OUTPUT)
        job = jobs.job_of(ctx.params["attach"])
    else:
        _check_options(ctx, "on", WITH_ON)
        job = _submitted(ctx)
    price = jobs.hourly_price(str(job.flavor))
    say_on_stderr(f"job: {job.url} on {job.flavor}, ${price:.2f} per hour")
    id = shlex.quote(f"{job.owner.name}/{job.id}")
    attach = f"qabench run --attach {id}"
    hint(f"Ctrl-C detaches; follow it again with: {attach}")
    try:
        job, log = jobs.finished(job, log_dir, hint)
    except KeyboardInterrupt:
        raise Interrupted(
            f"detached; the job goes on and costs ${price:.2f} per hour. Follow it with: {attach}; end it with: "
            f"hf jobs cancel {id}",
            signal.SIGINT,
        ) from None
    write_line(f"log: {log}", sys.stderr)
    if job.durations and job.durations.running_secs:
        seconds = job.durations.running_secs
        hint(f"the job ran for {seconds / 60:.0f} minutes, about ${price * seconds / 3600:.2f}")
    return log


def _submitted(ctx: typer.Context) -> JobInfo:
    """Check the options of a run, and start it as a job."""
    from qabench.hub import jobs
    from qabench.hub.client import check_name
    from qabench.runs.plan import check_task_options

    values = ctx.params
    jobs.check_model_arguments(parse_pairs("-M", values["model_args"]))
    model = (values["model"] or "").removeprefix("vllm/")
    if values["resume"]:
        _check_options(ctx, "resume", WITH_RESUME)
        _check_log(values, jobs.model_in_job(model))
    elif values["benchmark"] is None:
        raise InputError(
            "give a benchmark, such as: qabench run BENCHMARK --model ORG/NAME --on a10g-small"
        )
    else:
        descriptor = benchmark_of(values["benchmark"])
        setting = descriptor.setting(values["setting"])
        check_task_options(descriptor, setting, parse_pairs("-T", values["task_args"]))
    check_name("with --on, --model", model, "Qwen/Qwen3-8B")
    options: list[str] = []
    files: list[Path] = []
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name in (*OUTPUT, "on", "job_timeout") or not _was_passed(ctx, name):
            continue
        value = values[name]
        if name in ("questions", "resume"):
            files.append(Path(value))
            value = _name_in_job(files[-1])
        if isinstance(value, bool):
            options.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            flag = [] if name == "benchmark" else [parameter.opts[-1]]
            texts = (
                value if isinstance(value, list | tuple) else [model if name == "model" else value]
            )
            options += [word for text in texts for word in (*flag, str(text))]
    for path in files:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file")
    return jobs.submit(options, files, model, values["on"], values["job_timeout"])


def _name_in_job(file: Path) -> str:
    """Return the name of a file as ``HfApi.run_uv_job`` uploads it."""
    return file.name.replace(" ", "_")


def _check_log(values: Options, model: str) -> None:
    """Raise InputError if a job could not resume a log with these options of the command line."""
    from qabench.runs.trust import checked_log

    named = {
        name: values[name]
        for name in ("config", "prompt", "protocol", "context_length")
        if values[name]
    }
    if values["questions"]:
        named["questions"] = _name_in_job(values["questions"])
    checked_log(
        values["resume"],
        model,
        model_args=parse_pairs("-M", values["model_args"]),
        task_args=named | parse_pairs("-T", values["task_args"]),
        epochs=values["epochs"],
        on=values["on"],
    )


def _run_suite(file: Path, values: Options) -> None:
    """Run a suite, print one row of scores per run, and write a report of all runs, or estimate it."""
    log_dir = values["log_dir"]
    options = _options(values, *PROVIDER, *ASKED) | {"cache": None if values["cache"] else False}
    if values["dry_run"]:
        _plan_suite(file, options, values)
        return
    options |= _options(values, *SENT, "temperature")
    with _watched(log_dir, values, f"logs: {log_dir}") as watch:
        from qabench.runs.running import read_suite, run_suite

        logs, unfinished = run_suite(read_suite(file), log_dir, watch=watch, **options)
    if not watch.total:
        hint(f"nothing was asked: {log_dir} has the logs of all runs")
    evaluations = _report(logs, values)
    from qabench.report import build_report

    try:
        hint(f"report: {build_report(evaluations, log_dir / 'report')}")
    except MissingExtra as error:
        hint(f"no report: {error}")
    for name in unfinished:
        warn(f"{name} is not finished; repeat the command to continue it")
    if unfinished:
        raise Exit(1)


def _plan_suite(file: Path, options: Options, values: Options) -> None:
    _check_inspect()
    from qabench.runs.running import read_suite

    suite = read_suite(file).with_options(**options)
    plans = [
        ((entry.benchmark, entry.setting, model), entry.arguments, len(suite.seeds or [None]))
        for entry in suite.entries
        for model in suite.models
    ]
    asked = {"limit": suite.limit, "max_tokens": suite.max_new_tokens}
    _print_plans(f"qabench run --suite {file}", plans, {**values, **asked})


def _print_plans(
    command: str,
    plans: Sequence[tuple[tuple[str, str | None, str], Options, int]],
    values: Options,
) -> None:
    """Print the estimated calls, tokens and cost of runs: (benchmark, setting, model), task arguments, repetitions."""
    _check_inspect()
    from qabench.llm.client import ESTIMATE
    from qabench.runs.plan import plan_run

    documents: list[Json] = []
    rows: list[list[Any]] = []
    with plain_warnings():
        for (name, setting, model), task_arguments, n in plans:
            plan = plan_run(
                name, setting, model, task_arguments, values["price"], **_options(values, *ASKED)
            )
            documents.append(plan.as_dict() | {"benchmark": name, "model": model, "repetitions": n})
            cost = (
                "unknown: give --price-in and --price-out"
                if plan.cost is None
                else f"{plan.cost * n:.4f}"
            )
            label = f"{name} {setting}" if setting else name
            rows.append(
                [
                    label,
                    model,
                    plan.calls * n,
                    plan.prompt_tokens * n,
                    plan.completion_tokens * n,
                    cost,
                ]
            )
    columns = ["benchmark", "model", "calls", "prompt tokens", "reply tokens", "cost"]
    notes = [ESTIMATE, "not counted: further turns in which a model uses tools"]
    document = documents[0] if len(documents) == 1 else {"plans": documents}
    print_table(Table(f"Estimate of {command}", columns, rows, notes), values["format"], document)


def _list_options(name: str, setting_name: str | None, format: str) -> None:
    """Print the options for -T, for one setting of a benchmark or for all."""
    benchmark = benchmark_of(name)
    tables = []
    for setting in [benchmark.setting(setting_name)] if setting_name else benchmark.settings:
        options = _task_options(benchmark, setting)
        rows = [
            [option.name, option.default and str(option.default), option.about]
            for option in options
        ]
        title = f"{benchmark.title}, --setting {setting.name}: options for -T NAME=VALUE"
        notes = [setting.about, *([f"Requires: {setting.requires}"] if setting.requires else [])]
        tables.append(Table(title, ["option", "default", "description"], rows, notes))
    print_tables(tables, format)


def _task_options(benchmark: Benchmark, setting: Setting) -> list[TaskOption]:
    _check_inspect()
    from qabench.runs.plan import task_options

    return task_options(benchmark, setting)


def _report(logs: list[Path], values: Options) -> list[Evaluation]:
    """Print the scores of logs, and return their evaluations.

    Exit with 1 if no question was answered.
    """
    sources = read_evaluations(logs, scores=values["scores"])
    reports = show(sources, **_options(values, "format", "output", "all_scores"))
    unscored = all(evaluation.unscored for evaluation in sources.evaluations)
    if not any(report["scores"] for report in reports) and not unscored:
        raise Exit(1)
    return sources.evaluations


@contextmanager
def _watched(log_dir: Path, values: Options, starting: str) -> Iterator[Watch]:
    """Print what is starting, before Inspect is imported.

    Yield a watch that prints the log's path, then progress.
    """
    hint(starting)
    _check_inspect()
    from qabench.runs.running import Watch

    with plain_warnings(), progress_bar("Asked", "questions") as progress:
        yield Watch(
            log_dir,
            on_log=lambda path: write_line(f"log: {path}", sys.stderr),
            on_progress=progress,
            say=hint,
            **_options(values, "max_calls", "token_budget"),
        )


def parse_limit(text: str | None) -> int | tuple[int, int] | None:
    """Return --limit as Inspect takes it. Raises InputError if it is not N or A-B."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    numbers = [
        int(part)
        for part in (first, last)
        if part.isascii() and part.isdecimal() and len(part) < 10
    ]
    if len(numbers) != 1 + bool(dash) or min(numbers) < 1 or numbers != sorted(numbers):
        raise InputError(
            f"--limit is {text!r}; it must be a number such as 50, or a range such as 51-100"
        )
    # Inspect's ranges begin at 0 and exclude the end.
    return (numbers[0] - 1, numbers[1]) if dash else numbers[0]


def parse_pairs(option: str, arguments: Sequence[str] | None) -> Json:
    """Return NAME=VALUE arguments.

    Values are read as YAML, as on Inspect's command line.
    """
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


def _check_inspect() -> None:
    try:
        import inspect_ai  # noqa: F401
    except ImportError:
        raise MissingExtra('running models needs inspect_ai: pip install "qabench[run]"') from None
