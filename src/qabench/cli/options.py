"""Arguments and options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from qabench.benchmarks import Benchmark, benchmark_names, shipped_names
from qabench.benchmarks import Option as BenchmarkOption
from qabench.benchmarks import benchmark as benchmark_of
from qabench.errors import InputError

FORMATS = ("table", "csv", "markdown", "latex", "json")
# The benchmarks, for help texts.
NAMES = ", ".join(benchmark_names())

# Placeholders in help texts for the names of groups, groupings and settings. The names are inserted
# only when the help is shown, because reading them imports the benchmarks.
GROUPS, GROUPINGS, SETTINGS = "{groups}", "{groupings}", "{settings}"


def with_names(text: str) -> str:
    """Replace the placeholders of a help text with the names that this package's benchmarks have."""
    names_of: dict[str, Callable[[Benchmark], Iterable[str]]] = {
        GROUPS: lambda each: each.groups,
        GROUPINGS: lambda each: each.groupings,
        SETTINGS: lambda each: [setting.name for setting in each.settings],
    }
    for placeholder, names in names_of.items():
        if placeholder in text:
            lists = []
            for name in shipped_names():
                lists.append(f"{name}: {', '.join(names(benchmark_of(name)))}")
            text = text.replace(placeholder, "; ".join(lists))
    return text


BenchmarkName = Annotated[str, Argument(metavar="BENCHMARK", help=f"The benchmark: {NAMES}.")]

_SCORES = (
    "Only these scores, or groups of scores; `qabench list BENCHMARK` prints their names. "
    f"Groups: {GROUPS}."
)
_GROUPINGS = f"Also print the scores of each category of questions: {GROUPINGS}. May be repeated."
_SETTINGS = f"What the model is given: {SETTINGS}"

ConfigName = Annotated[
    str | None, Option(help="The dataset's config. Default: the benchmark's default config.")
]
Scores = Annotated[list[str] | None, Option("--scores", metavar="NAME,...", help=_SCORES)]
Groupings = Annotated[list[str] | None, Option("--by", metavar="GROUPING", help=_GROUPINGS)]
SettingName = Annotated[str | None, Option(help=f"{_SETTINGS}. Default: the first.")]
TaskArguments = Annotated[
    list[str] | None,
    Option(
        "-T",
        metavar="NAME=VALUE",
        help="An option of the setting (see --list-options). May be repeated.",
    ),
]
Questions = Annotated[
    Path | None,
    Option("--questions", help="A file of questions in the benchmark's official format."),
]
IdColumn = Annotated[
    str | None,
    Option(
        "--id-column",
        "--id",
        metavar="NAME",
        help="The column of predictions, or of a table of scores, with the question's id.",
    ),
]
AnswerColumn = Annotated[
    str | None, Option(metavar="NAME", help="The column of predictions with the answer.")
]
Format = Annotated[str, Option(help=f"The format of tables: {', '.join(FORMATS)}.")]
Output = Annotated[Path | None, Option("--output", "-o", help="Write the result to FILE, as JSON.")]
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
        help="The k of pass@k and pass^k, such as 1,2,4. Default: 2 to 8, larger powers of two, and the number of "
        "samples.",
    ),
]
AllScores = Annotated[
    bool, Option("--all-scores", help="Print all scores, not only the main ones.")
]

Percent = Annotated[bool, Option("--percent", help="Print scores in percent.")]
Decimals = Annotated[
    int | None,
    Option(
        metavar="N",
        help="The decimals of printed scores. Default: 4, or 2 with --percent. CSV and JSON have all digits.",
    ),
]
ShortSignatures = Annotated[
    bool,
    Option(
        "--short-signatures",
        help="Print signatures without the fields that have official values, and with a digest of the whole signature.",
    ),
]

ScoreColumns = Annotated[
    list[str] | None,
    Option(
        "--score",
        metavar="NAME",
        help="The files are tables of scores of any tool (CSV, TSV, Parquet, JSONL) with this column. May be repeated.",
    ),
]
SystemColumn = Annotated[
    str | None,
    Option(
        "--system",
        metavar="NAME",
        help="The column of a table of scores with the system's name. Default: each file is a system.",
    ),
]
Cluster = Annotated[
    str | None,
    Option(
        "--cluster",
        metavar="NAME",
        help="Questions with the same value belong together, such as those about one passage: a column of a table of "
        "scores, a field of a log's questions, or a grouping. Intervals and tests count such a cluster as one unit.",
    ),
]
Human = Annotated[
    str | None,
    Option(
        "--human",
        metavar="[FILE]",
        help="Correct scores of a judge by labels of people: a table with the columns id and label, of a random part "
        "of what was judged (see `qabench sample`). Without FILE, the labels of the benchmark's dataset; dataset:N for "
        "a random part of N of them. Corrected values are not official.",
    ),
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
    Argument(metavar="BENCHMARK...", help="The benchmarks. Default: all of them."),
]
LowerIsBetter = Annotated[
    list[str] | None,
    Option(
        metavar="SCORE",
        help="A score for which lower is better, such as an error rate, of a task that is not a benchmark. May be "
        "repeated.",
    ),
]
ConfigNames = Annotated[
    list[str] | None,
    Option("--config", help="Only this config of a single benchmark. May be repeated."),
]
SkipMissing = Annotated[
    bool, Option("--skip-missing", help="Exit with 0 even if the data of some configs is missing.")
]
# --quiet is added to all commands, and --json to those with the option ``Format``. See
# ``qabench.cli``.
Quiet = Annotated[bool, Option("--quiet", help="Do not print progress and hints.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON document instead of tables.")]
DryRun = Annotated[
    bool, Option("--dry-run", help="Print the estimated calls, tokens and cost, and exit.")
]
PriceIn = Annotated[float | None, Option(min=0, help="The price per million prompt tokens.")]
PriceOut = Annotated[float | None, Option(min=0, help="The price per million reply tokens.")]


def benchmark_options(names: Sequence[str]) -> list[inspect.Parameter]:
    """Return the options of benchmarks as parameters that Typer reads. The default of each is None."""
    options: dict[str, BenchmarkOption] = {}
    benchmarks: dict[str, list[str]] = {}
    for name in names:
        for option in benchmark_of(name).options:
            # Several benchmarks may have the same option. Its help names all of them.
            options.setdefault(option.name, option)
            benchmarks.setdefault(option.name, []).append(name)
    parameters = []
    for name, option in options.items():
        text = f"[{', '.join(benchmarks[name])}] {option.about.rstrip('.')}."
        if option.choices:
            text += f" One of {', '.join(option.choices)}."
        if option.default is not None and option.type is not bool:
            text += f" Default: {option.default}."
        flag = f"--{name.replace('_', '-')}"
        declared = Option(flag, help=text, metavar=option.metavar or None)
        annotation = Annotated[option.type | None, declared]  # type: ignore[name-defined]
        # None means that the user left the option out. The benchmark has its own default.
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, kind, default=None, annotation=annotation))
    return parameters


def output_folder(path: Path | None) -> Path | None:
    """Return the value of an option that names a folder to write to.

    Raises:
        InputError: it is "-", which stands for standard output elsewhere. Such a folder would not
            be expected, and is hard to delete.
    """
    if path == Path("-"):
        raise InputError(
            "cannot write a folder named -: a folder cannot be standard output; name another one"
        )
    return path


def files_of(arguments: Iterable[str | Path]) -> list[str]:
    """Return the paths in arguments of the forms FILE, NAME=FILE and FILE,FILE.

    An argument with commas is returned in parts and as a whole, because a file's name may have
    commas.
    """
    from qabench.runs.sources import name_and_path

    paths = []
    for argument in arguments:
        _, path = name_and_path(argument)
        paths += [str(path), *str(path).split(",")]
    return paths


def benchmark_and_files(arguments: Sequence[str]) -> tuple[Benchmark, list[str]]:
    """Return the benchmark and the files of the arguments [BENCHMARK] FILE...

    If the first argument is a file, all arguments are files, and the benchmark is the placeholder
    for tasks of other packages.
    """
    first, *files = arguments
    is_name = first.removeprefix("qabench/") in benchmark_names()
    path = Path(first.partition(",")[0])
    # A missing file should get an error about the file, not about an unknown benchmark: benchmark
    # names have no suffix, and NAME=FILE is a file with the name of its system.
    if not is_name and (path.exists() or path.suffix or "=" in first):
        return benchmark_of(""), list(arguments)
    benchmark = benchmark_of(first)
    if not files:
        raise InputError(f"Missing argument FILE, such as: qabench score {benchmark.name} FILE")
    return benchmark, files


def benchmarks_and_files(arguments: Sequence[str]) -> list[tuple[Benchmark, list[str]]]:
    """Return each benchmark of the arguments BENCHMARK FILE... BENCHMARK FILE... with its files.

    After the first argument, a benchmark's name counts as a file if no file follows or precedes it.
    """
    names = benchmark_names()
    parts: list[list[str]] = [list(arguments[:1])]
    begins_with_name = bool(arguments) and arguments[0].removeprefix("qabench/") in names
    for position, argument in enumerate(arguments[1:], start=1):
        is_name = begins_with_name and argument.removeprefix("qabench/") in names
        has_file = position + 1 < len(arguments) and arguments[position + 1] not in names
        # The preceding benchmark needs at least one file, so a name right after it is a file.
        if is_name and has_file and len(parts[-1]) > 1:
            parts.append([])
        parts[-1].append(argument)
    return list(map(benchmark_and_files, parts))


def score_tables(
    paths: Sequence[str],
    scores: Sequence[str] | None,
    id_column: str | None,
    system: str | None,
    cluster: str | None,
) -> list[Any]:
    """Return the evaluations of tables of scores. Raises InputError without ``--score``."""
    if scores is None:
        raise InputError(f"--system {system} needs --score: the column with the scores")
    from qabench.runs.score_tables import read_scores
    from qabench.runs.sources import name_and_path, with_name

    evaluations: list[Any] = []
    for argument in paths:
        name, path = name_and_path(argument)
        own = read_scores(path, scores, id=id_column or "id", system=system, cluster=cluster)
        if name:
            own = with_name(own, name)
        evaluations += own
    return evaluations


def benchmark_first(paths: Sequence[Path], name: str | None) -> tuple[list[Path], Benchmark]:
    """Return the files and the benchmark of the arguments [BENCHMARK] FILE... and of --benchmark."""
    first, *files = paths
    # With files, a benchmark's name is the benchmark, even if a folder has the same name.
    if name is None and files and str(first) in benchmark_names():
        return files, benchmark_of(str(first))
    return [first, *files], benchmark_of(name or "")


def parse_ks(text: str | None) -> list[int]:
    """Return the numbers of --pass-k, or [] without it. Raises InputError for other texts."""
    if text is None:
        return []
    numbers = []
    for part in text.split(","):
        if not part.isdigit() or int(part) == 0:
            raise InputError(
                f"--pass-k {text}; allowed: positive integers separated by commas, such as 1,2,4"
            )
        numbers.append(int(part))
    # A repeated k would be a repeated row.
    return list(dict.fromkeys(numbers))


def on_ray(ray: bool, address: str | None) -> AbstractContextManager[object]:
    """Return a context in which qabench works on a Ray cluster if one was asked for, else here."""
    if not ray and address is None:
        return nullcontext()
    from qabench.cluster import Cluster

    return Cluster(address)


def prices(price_in: float | None, price_out: float | None) -> Any:
    """Return ``qabench.llm.caller.Prices``, or None without prices."""
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise InputError("--price-in and --price-out (per million tokens) must be given together")
    from qabench.llm.caller import Prices

    return Prices(price_in, price_out)
