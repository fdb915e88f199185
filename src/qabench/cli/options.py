"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from qabench.benchmarks import Benchmark, benchmark, benchmark_names, shipped_names
from qabench.errors import InputError

FORMATS = ("table", "csv", "markdown", "latex", "json")


def _by_benchmark(names_of: Callable[[Benchmark], Iterable[str]]) -> str:
    """Return the allowed names of each benchmark of this package, for a help text.

    Those from outside would have to be imported: `qabench list BENCHMARK` prints theirs.
    """
    return "; ".join(f"{name}: {', '.join(names_of(benchmark(name)))}" for name in shipped_names())


BenchmarkName = Annotated[
    str, Argument(metavar="BENCHMARK", help=f"The benchmark: {', '.join(benchmark_names())}.")
]

_SCORES = (
    "Only these scores, or groups of scores; `qabench list BENCHMARK` prints their names. "
    f"Groups: {_by_benchmark(lambda each: each.groups)}."
)
_GROUPINGS = (
    "Also print the scores of each category of questions: "
    f"{_by_benchmark(lambda each: each.groupings)}. May be repeated."
)
_SETTINGS = "What the model is given: " + _by_benchmark(
    lambda each: [setting.name for setting in each.settings]
)

ConfigName = Annotated[str | None, Option(help="The dataset's config. Default: the benchmark's.")]
Scores = Annotated[list[str] | None, Option("--scores", metavar="NAME,...", help=_SCORES)]
Groupings = Annotated[list[str] | None, Option("--by", metavar="GROUPING", help=_GROUPINGS)]
SettingName = Annotated[str | None, Option(help=f"{_SETTINGS}. Default: the first.")]
TaskArguments = Annotated[
    list[str] | None,
    Option(
        "-T", metavar="NAME=VALUE", help="An option of the setting, see --list-options. May be repeated."
    ),
]
Questions = Annotated[
    Path | None, Option("--questions", help="A file of questions in the benchmark's official format.")
]
IdColumn = Annotated[
    str | None, Option(metavar="NAME", help="The column of predictions with the question's id.")
]
AnswerColumn = Annotated[
    str | None, Option(metavar="NAME", help="The column of predictions with the answer.")
]
Format = Annotated[str, Option(help=f"The format of tables: {', '.join(FORMATS)}.")]
Output = Annotated[Path | None, Option("--output", "-o", help="Write the result to FILE, as JSON.")]
Samples = Annotated[
    bool,
    Option(
        "--samples", help="The files are samples of one system: pass@k and pass^k of its 0/1 scores."
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
AllScores = Annotated[bool, Option("--all-scores", help="Print all scores, not only the main ones.")]

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
    list[str] | None, Argument(metavar="BENCHMARK...", help="Which benchmarks. Default: all of them.")
]
ConfigNames = Annotated[
    list[str] | None, Option("--config", help="Only this config of a single benchmark. May be repeated.")
]
SkipMissing = Annotated[
    bool, Option("--skip-missing", help="Exit with 0 even if the data of some configs is missing.")
]
# Added to all commands, and to those with the option ``Format``: see ``qabench.cli``.
Quiet = Annotated[bool, Option("--quiet", help="Do not print progress and hints.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON document instead of tables.")]
DryRun = Annotated[
    bool, Option("--dry-run", help="Print the estimated calls, tokens and cost, and exit.")
]
PriceIn = Annotated[float | None, Option(min=0, help="The price per million prompt tokens.")]
PriceOut = Annotated[float | None, Option(min=0, help="The price per million reply tokens.")]


def benchmark_and_files(arguments: Sequence[str]) -> tuple[Benchmark, list[str]]:
    """Return the benchmark and the files of the arguments [BENCHMARK] FILE...

    If the first argument is a file, it is the first log, and the benchmark stands for any other
    task.

    Raises:
        InputError: an unknown benchmark, or no file.
    """
    first, *files = arguments
    is_name = first.removeprefix("qabench/") in benchmark_names()
    path = Path(first.partition(",")[0])
    # Names have no suffix: a path that does not exist gets an error about the file.
    if not is_name and (path.exists() or path.suffix):
        return benchmark(""), list(arguments)
    scorer = benchmark(first)
    if not files:
        raise InputError(f"Missing argument FILE, such as: qabench score {scorer.name} FILE")
    return scorer, files


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
