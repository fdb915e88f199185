"""Arguments and options that several commands share, with their shell completion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from qabench.benchmarks import Benchmark, benchmark, benchmark_names
from qabench.errors import InputError
from qabench.loading_scripts import dataset_table

FORMATS = ("table", "csv", "markdown", "latex", "json")


def completing(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return the completion of one of some names."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def complete_benchmarks(incomplete: str) -> list[str]:
    """Return the benchmarks that begin with the text typed so far."""
    return completing(benchmark_names())(incomplete)


def _names(
    flag: str,
    help: str,
    names_of: Callable[[Benchmark], Iterable[str]],
    metavar: str = "NAME",
) -> Any:
    """Return an option whose values are names of the benchmark that was typed, with their completion."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        # The parser stops at an option whose value is being typed, before it assigns arguments.
        typed = [
            name for name in (ctx.params.get("benchmark"), *ctx.args) if name in benchmark_names()
        ]
        names = names_of(benchmark(typed[0])) if typed else ()
        before, comma, last = incomplete.rpartition(",")  # several names are separated by commas
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return Option(flag, metavar=metavar, help=help, autocompletion=complete)


def _task_options(benchmark: Benchmark) -> list[str]:
    from qabench.runs.plan import task_options

    options = [
        option for setting in benchmark.settings for option in task_options(benchmark, setting)
    ]
    return list(dict.fromkeys(f"{option.name}=" for option in options))


def _configs(benchmark: Benchmark) -> list[str]:
    return list(dataset_table(benchmark.name).configs)


def _settings(benchmark: Benchmark) -> list[str]:
    return [setting.name for setting in benchmark.settings]


def _scores(benchmark: Benchmark) -> list[str]:
    return list(dict.fromkeys([*benchmark.groups, *(spec.name for spec in benchmark.scores)]))


def _by_benchmark(names_of: Callable[[Benchmark], Iterable[str]]) -> str:
    """Return the allowed names of each benchmark, for a help text."""
    return "; ".join(
        f"{name}: {', '.join(names_of(benchmark(name)))}" for name in benchmark_names()
    )


BenchmarkName = Annotated[
    str,
    Argument(
        metavar="BENCHMARK",
        help=f"The benchmark: {', '.join(benchmark_names())}.",
        autocompletion=complete_benchmarks,
    ),
]
BenchmarkOrLog = Annotated[
    str,
    Argument(
        metavar="BENCHMARK",
        help=f"The benchmark: {', '.join(benchmark_names())}. Logs name theirs, so that it can be left out.",
        autocompletion=complete_benchmarks,
    ),
]

_groups, _groupings = attrgetter("groups"), attrgetter("groupings")
_SCORES = (
    "Only these scores, or groups of scores; `qabench list BENCHMARK` prints their names. "
    f"Groups: {_by_benchmark(_groups)}."
)
_GROUPINGS = f"Also print the scores of each category of questions: {_by_benchmark(_groupings)}. May be repeated."
_SETTINGS = f"What the model is given: {_by_benchmark(_settings)}. Default: the first."
_TASK_OPTION = "An option of the setting; see --list-options. May be repeated."

ConfigName = Annotated[
    str | None, _names("--config", "The dataset's config. Default: the benchmark's.", _configs)
]
Scores = Annotated[list[str] | None, _names("--scores", _SCORES, _scores, "NAME,...")]
Groupings = Annotated[list[str] | None, _names("--by", _GROUPINGS, _groupings, "GROUPING")]
SettingName = Annotated[str | None, _names("--setting", _SETTINGS, _settings)]
TaskArguments = Annotated[list[str] | None, _names("-T", _TASK_OPTION, _task_options, "NAME=VALUE")]
Questions = Annotated[
    Path | None,
    Option(
        "--questions",
        help="A file of questions in the benchmark's official format.",
    ),
]
Format = Annotated[
    str,
    Option(
        help=f"The format of tables: {', '.join(FORMATS)}.",
        autocompletion=completing(FORMATS),
    ),
]
Output = Annotated[Path | None, Option("--output", "-o", help="Write the result to FILE.")]
Samples = Annotated[
    bool,
    Option(
        "--samples",
        help="The files are samples of one system: pass@k and pass^k of its 0/1 scores.",
    ),
]
PassKs = Annotated[
    str | None,
    Option(
        "--pass-k",
        metavar="K,...",
        help="The k of pass@k and pass^k, such as 1,2,4. Default: 2 to the number of samples.",
    ),
]
AllScores = Annotated[
    bool, Option("--all-scores", help="Print all scores, not only the main ones.")
]

OnRay = Annotated[
    bool, Option("--ray", help="Work on a Ray cluster started on this machine (extra ray).")
]
RayAddress = Annotated[
    str | None,
    Option(
        "--ray-address",
        metavar="ADDRESS",
        help="Work on the running Ray cluster that this machine belongs to: HOST:PORT, or auto (extra ray).",
    ),
]

# Options of the commands that work on several benchmarks or configs.
BenchmarkNames = Annotated[
    list[str] | None,
    Argument(
        metavar="BENCHMARK...",
        help="Which benchmarks; all of them by default.",
        autocompletion=complete_benchmarks,
    ),
]
ConfigNames = Annotated[
    list[str] | None,
    Option("--config", help="Only this config of a single benchmark; may be repeated."),
]
SkipMissing = Annotated[
    bool,
    Option("--skip-missing", help="Exit with 0 even if the data of some configs is missing."),
]
# Added to all commands, and to those with the option ``Format``: see ``qabench.cli``.
Quiet = Annotated[bool, Option("--quiet", help="Do not print progress and hints.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON document. Same as --format json.")]
JsonOnly = Annotated[bool, Option("--json", help="Print one JSON document instead of a table.")]


def benchmark_and_files(first: str, files: Sequence[str] | None) -> tuple[Benchmark, list[str]]:
    """Return the benchmark and the files of the arguments BENCHMARK FILE...

    If the first argument is a file, it is the first log, and the benchmark stands for any other
    task.

    Raises:
        InputError: an unknown benchmark, or no file.
    """
    is_name = first.removeprefix("qabench/") in benchmark_names()
    path = Path(first.partition(",")[0])
    # Names have no suffix: a path that does not exist gets an error about the file.
    if not is_name and (path.exists() or path.suffix):
        return benchmark(""), [first, *(files or ())]
    scorer = benchmark(first)
    if not files:
        raise InputError(f"Missing argument FILE, such as: qabench score {scorer.name} FILE")
    return scorer, list(files)


def benchmark_first(paths: Sequence[Path], benchmark: str | None) -> tuple[list[Path], str | None]:
    """Return the files and the benchmark of the arguments [BENCHMARK] FILE... and of --benchmark."""
    first, *files = paths
    if benchmark is None and files and str(first) in benchmark_names() and not first.exists():
        return files, str(first)
    return [first, *files], benchmark


def parse_ks(text: str | None) -> list[int]:
    """Return the numbers of --pass-k; [] without it. Raises InputError."""
    parts = text.split(",") if text is not None else []
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        raise InputError(f"--pass-k {text}; allowed: positive numbers with commas, such as 1,2,4")
    return list(dict.fromkeys(map(int, parts)))


def on_ray(ray: bool, address: str | None) -> AbstractContextManager[object]:
    """Return a context in which qabench works on a Ray cluster, or in this process without ``ray`` and an address."""
    if not ray and address is None:
        return nullcontext()
    from qabench.scale import Cluster

    return Cluster(address)


def prices(price_in: float | None, price_out: float | None) -> Any:
    """Return ``qabench.llm.client.Prices``, or None without prices."""
    from qabench.llm.client import Prices

    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise InputError("--price-in and --price-out (per million tokens) must be given together")
    return Prices(price_in, price_out)
