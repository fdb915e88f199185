"""Arguments and options that several commands share, with their shell completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from qabench.benchmarks import Benchmark, benchmark, benchmark_names
from qabench.errors import InputError

FORMATS = ("table", "csv", "markdown", "latex", "json")


def completed_benchmarks(incomplete: str) -> list[str]:
    return [name for name in benchmark_names() if name.startswith(incomplete)]


def _completed(
    names: Callable[[Benchmark, typer.Context], Iterable[str]],
) -> Callable[[typer.Context, str], list[str]]:
    """The completion of an option whose values depend on the benchmark typed so far; none without one."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        # The parser stops at an option whose value is being typed, before it assigns arguments.
        typed = [name for name in (ctx.params.get("benchmark"), *ctx.args) if name in benchmark_names()]
        found = names(benchmark(typed[0]), ctx) if typed else ()
        before, comma, last = incomplete.rpartition(",")  # several names are separated by commas
        return [f"{before}{comma}{one}" for one in found if one.startswith(last)]

    return complete


def _task_options(found: Benchmark, ctx: typer.Context) -> list[str]:
    from qabench.runs.plan import task_options

    named = [one for one in found.settings if one.name == ctx.params.get("setting")]
    names = dict.fromkeys(option.name for one in named or found.settings for option in task_options(found, one))
    return [f"{name}=" for name in names]


def _configs(found: Benchmark, ctx: typer.Context) -> list[str]:
    from qabench.loading_scripts import dataset_table

    return list(dataset_table(found.name).configs)


def _formats(incomplete: str) -> list[str]:
    return [name for name in FORMATS if name.startswith(incomplete)]


BenchmarkName = Annotated[
    str,
    typer.Argument(
        metavar="BENCHMARK",
        help=f"The benchmark: {', '.join(benchmark_names())}.",
        autocompletion=completed_benchmarks,
    ),
]
ConfigName = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="NAME",
        help="The dataset's config. Default: the benchmark's.",
        autocompletion=_completed(_configs),
    ),
]
SettingName = Annotated[
    str | None,
    typer.Option(
        "--setting",
        metavar="NAME",
        help="The protocol by which the model is prompted: "
        + "; ".join(f"{name}: {', '.join(one.name for one in benchmark(name).settings)}" for name in benchmark_names())
        + ". Default: the first.",
        autocompletion=_completed(lambda found, ctx: [one.name for one in found.settings]),
    ),
]
Families = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="NAMES",
        help="The scores to compute, separated by commas: "
        + "; ".join(f"{name}: {', '.join(benchmark(name).families)}" for name in benchmark_names())
        + ".",
        autocompletion=_completed(lambda found, ctx: found.families),
    ),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="The metric. Default: the benchmark's main metric.",
        autocompletion=_completed(lambda found, ctx: [one.name for one in found.metrics]),
    ),
]
Groupings = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="GROUPING",
        help="Also print scores by group: "
        + "; ".join(f"{name}: {', '.join(benchmark(name).groupings)}" for name in benchmark_names())
        + ". May be repeated.",
        autocompletion=_completed(lambda found, ctx: found.groupings),
    ),
]
Format = Annotated[
    str, typer.Option("--format", help=f"The format of tables: {', '.join(FORMATS)}.", autocompletion=_formats)
]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result to FILE.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document. Same as --format json.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print whole signatures.")]
AllMetrics = Annotated[bool, typer.Option("--all-metrics", help="Print all scores, not only the main ones.")]
Questions = Annotated[
    Path | None,
    typer.Option("--questions", metavar="FILE", help="A file of questions in the benchmark's official format."),
]

BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", metavar="URL", help="An OpenAI-compatible server; its key, if any, is read from QABENCH_API_KEY."
    ),
]
OnRay = Annotated[bool, typer.Option("--ray", help="Work on a Ray cluster started on this machine (extra ray).")]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="ADDRESS",
        help="Work on the running Ray cluster that this machine belongs to: HOST:PORT, or auto (extra ray).",
    ),
]
TaskArguments = Annotated[
    list[str] | None,
    typer.Option(
        "-T",
        metavar="NAME=VALUE",
        help="An option of the setting; see --list-options. May be repeated.",
        autocompletion=_completed(_task_options),
    ),
]
ModelArguments = Annotated[
    list[str] | None,
    typer.Option(
        "-M", "--model-args", metavar="NAME=VALUE", help="An argument of the model's provider; may be repeated."
    ),
]
TokenBudget = Annotated[
    int | None,
    typer.Option("--token-budget", min=1, help="Stop after this many tokens of prompts and replies."),
]
PriceIn = Annotated[float | None, typer.Option("--price-in", min=0, help="The price per million prompt tokens.")]
PriceOut = Annotated[float | None, typer.Option("--price-out", min=0, help="The price per million reply tokens.")]


def on_ray(ray: bool, address: str | None, workers: int | None = None) -> AbstractContextManager[object]:
    """Within the block, qabench works on a Ray cluster; in this process if neither ``ray`` nor an address is given."""
    if not ray and address is None:
        return nullcontext()
    from qabench.scale import Cluster

    return Cluster(address, workers)


def prices(price_in: float | None, price_out: float | None) -> Any:
    """The prices as ``qabench.llm.client.Prices``, or None if they are not given."""
    from qabench.llm.client import Prices

    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise InputError("--price-in and --price-out (per million tokens) must be given together")
    return Prices(price_in, price_out)


def checked_format(name: str, as_json: bool) -> str:
    """The format to print. Raises InputError that lists the allowed ones."""
    if name not in FORMATS:
        raise InputError(f"unknown format {name!r}; allowed: {', '.join(FORMATS)}")
    return "json" if as_json else name
