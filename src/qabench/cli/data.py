"""Commands for data: ``qabench list``, ``fetch``, ``stats``, ``reproduce`` and ``register``."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.options import (
    AsJson,
    BenchmarkName,
    BenchmarkNames,
    ConfigName,
    ConfigNames,
    Format,
    SkipMissing,
)
from qabench.cli.output import plain_warnings, print_json, print_table, print_tables, progress_bar, say
from qabench.cli.outside import listing
from qabench.data import sources
from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError
from qabench.io.tables import Table
from qabench.loading import cache_errors, load_dataset
from qabench.loading_scripts import benchmark_names, dataset_table, source_table, usable_names
from qabench.metrics import metric_folder, metric_names

if TYPE_CHECKING:
    from qabench.benchmarks.reproduction import Check
    from qabench.data.pinned import SourceFile
    from qabench.data.sources import FileResult
    from qabench.hub.register import Registration


def list_all(
    name: Annotated[
        str | None, Argument(metavar="BENCHMARK", help="List the scores and settings of this one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List benchmarks with their configs, and metrics, or the scores and settings of one benchmark."""
    if name:
        print_tables(benchmark_of(name).tables(), "json" if as_json else "table")
        return

    benchmarks = listing("configs")
    metrics = {name: _summary_of_metric(name) for name in metric_names()}
    if as_json:
        print_json({"configs": benchmarks.rows, "metrics": metrics} | benchmarks.document)
        return
    cells: list[list[Any]] = [
        [
            f"{row['benchmark']} {row['config']}",
            ", ".join(row["splits"]),
            row["data"],
            row["description"],
        ]
        for row in benchmarks.rows
    ]
    columns = ["benchmark and config", "splits", "data", "description"]
    title = "Benchmarks: qabench.load_dataset(BENCHMARK, CONFIG)"
    print_table(Table(title, columns, cells, benchmarks.notes))
    cells = [list(item) for item in metrics.items()]
    print_table(Table("Metrics: qabench.load_metric(NAME)", ["name", "what it measures"], cells))


def _summary_of_metric(name: str) -> str:
    """Return the first sentence of the docstring of a metric's module, without importing it."""
    try:
        text = ast.get_docstring(ast.parse((metric_folder(name) / f"{name}.py").read_bytes()))
    except (OSError, SyntaxError, ValueError) as error:  # of a benchmark from outside
        return f"cannot be read: {error}"
    return (
        str(text)
        .partition("\n")[0]
        .replace("``", "")
        .removesuffix(" as an evaluate metric.")
        .rstrip(".")
    )


def fetch(
    benchmarks: BenchmarkNames = None,
    config: ConfigNames = None,
    mirror: Annotated[
        Path | None,
        Option(file_okay=False, help="Copy the files to DIR/OWNER/REPO/PATH, for QABENCH_MIRROR."),
    ] = None,
    check: Annotated[
        bool, Option("--check", help="Only verify local files (with --mirror: those in DIR), offline.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Download the pinned upstream files to the cache, and verify each against its digest.

    Exit code: 0 all files are intact; 1 a file is missing or damaged, or a download failed; 2 wrong
    usage.
    """
    files = _source_files(benchmarks or [], config or [])
    if check:
        results = sources.check(files, directory=mirror)
    else:
        with progress_bar("Downloading", "bytes") as show:

            def progress(source: SourceFile, done: int, total: int | None) -> None:
                if done != total:  # else each file would be a line in a pipe
                    show(done, total or 0)

            results = sources.fetch(files, mirror=mirror, progress=progress)
    if as_json:
        ok = sum(result.ok for result in results)
        rows = [
            {name: getattr(result.source, name) for name in ("benchmark", "path", "size", "url")}
            | {name: getattr(result, name) for name in ("state", "where", "detail")}
            | {"license": result.source.license, "local_path": result.path and str(result.path)}
            for result in results
        ]
        print_json({"files": rows, "ok": ok, "failed": len(results) - ok})
    else:
        _print_files(results)
    if not all(result.ok for result in results):
        raise Exit(1)


def _usable_names() -> list[str]:
    with plain_warnings():
        return usable_names()


def _source_files(benchmarks: list[str], configs: list[str]) -> list[SourceFile]:

    names = [dataset_table(name).name for name in dict.fromkeys(benchmarks or _usable_names())]
    if not configs:
        return [file for name in names for file in source_table(name).values()]
    name = _only_benchmark(names)
    paths = dict.fromkeys(
        path for config in configs for path in dataset_table(name).config(config).files
    )
    return [source_table(name)[path] for path in paths]


def _only_benchmark(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise InputError(f"--config needs exactly one benchmark; got {len(names)}: {', '.join(names)}")
    return names[0]


def _print_files(results: list[FileResult]) -> None:
    rows = [
        [result.state, result.where, result.source.benchmark, result.source.path] for result in results
    ]
    problems = [result.detail for result in results if result.detail]
    states = Counter(result.state for result in results)
    counts = [
        f", {states[state]} {state}" for state in ("missing", "damaged", "failed") if states[state]
    ]
    title = f"{sum(result.ok for result in results)} of {len(results)} files ok{''.join(counts)}"
    print_table(Table(title, ["state", "where", "benchmark", "file"], rows, problems))
    if states["missing"]:
        say(
            "Fetch missing files on a machine with network access, or read them from a mirror: set QABENCH_MIRROR=DIR "
            "to a folder that was written by `qabench fetch --mirror DIR` on another machine."
        )


def stats(benchmark: BenchmarkName, config: ConfigName = None, format: Format = "table") -> None:
    """Print a dataset's statistics, next to the published ones if there are any."""
    dataset = dataset_table(benchmark)
    name = dataset.config(config).name
    tables = benchmark_of(dataset.name).statistics(name, load_dataset(dataset.name, name))
    document = {
        "benchmark": dataset.name,
        "config": name,
        "tables": [table.as_dict() for table in tables],
    }
    print_tables(tables, format, document)


def reproduce(benchmark: BenchmarkName, format: Format = "table") -> None:
    """Recompute published scores and statistics.

    Print both values, the difference and its reason.

    Exit code: 0 all numbers agree, or their differences are explained; 1 there is an unexplained
    difference.
    """
    reproduction = benchmark_of(benchmark).reproduce()
    checks, tables = list(map(_check_as_dict, reproduction.checks)), reproduction.tables
    document = {
        "benchmark": benchmark,
        "checks": checks,
        "tables": [table.as_dict() for table in tables],
        "notes": reproduction.notes,
    }
    print_tables([*tables, _check_table(benchmark, checks, reproduction.notes)], format, document)
    if not all(check.agrees or check.explanation for check in reproduction.checks):
        raise Exit(1)


def _check_as_dict(check: Check) -> Json:
    difference = None
    if check.published is not None and check.computed is not None:
        difference = 0 if check.agrees else round(check.computed - check.published, 6)
    return {
        "number": check.name,
        "kind": check.kind,
        "published": check.published,
        "here": check.computed,
        "difference": difference,
        "agrees": check.agrees,
        "explanation": check.explanation,
    }


def _check_table(name: str, checks: list[Json], notes: list[str]) -> Table:
    columns = ["kind", "number", "published", "here", "difference", "explanation"]
    rows = [[check[column] for column in columns] for check in checks]
    for row in rows:
        row[3] = None if row[3] is None else round(row[3], 6)
    published = [check for check in checks if check["published"] is not None]
    computed = [check for check in published if check["here"] is not None]
    equal = sum(check["agrees"] for check in computed)
    unexplained = sum(not check["agrees"] and not check["explanation"] for check in computed)
    summary = (
        f"{len(published)} published numbers: {equal} equal; "
        f"explained differences: {len(computed) - equal - unexplained}; "
        f"unexplained differences: {unexplained}; not computed: {len(published) - len(computed)}"
    )
    title = f"{benchmark_of(name).title}: published numbers, recomputed"
    return Table(title, columns, rows, [*notes, summary])


def register(
    benchmarks: Annotated[
        list[str] | None, Argument(metavar="BENCHMARK...", help="Which benchmarks, unless --all.")
    ] = None,
    everything: Annotated[bool, Option("--all", help="All benchmarks.")] = False,
    config: ConfigNames = None,
    cache_dir: Annotated[
        Path | None,
        Option(
            file_okay=False,
            help="Write the datasets to this folder, for load_dataset(..., cache_dir=DIR) with HF_HUB_OFFLINE=1.",
        ),
    ] = None,
    skip_missing: SkipMissing = False,
    as_json: AsJson = False,
) -> None:
    """Make load_dataset("qabench/...") and evaluate.load("qabench/...") work on this machine without the Hub.

    Prepares the configs of the benchmarks, and all metrics, in the caches of datasets and evaluate.
    """
    from qabench.hub.register import register_dataset, register_metric

    if not (benchmarks or everything):
        raise InputError(
            f"name the benchmarks to register ({', '.join(benchmark_names())}), or use --all"
        )
    chosen = benchmarks or _usable_names()
    names = [_only_benchmark(chosen)] if config else chosen
    tables = list(map(dataset_table, names))
    configs = [
        (table.name, table.config(name).name) for table in tables for name in config or table.configs
    ]
    registrations: list[Registration] = []
    problem = None
    try:
        with cache_errors():
            for name, config_name in configs:
                registrations.append(register_dataset(name, config_name, cache_dir))
            registrations.extend(
                map(register_metric, metric_names())
            )  # in place: an error keeps those before
    except QabenchError as error:  # such as a full disk: the rest would fail for the same reason
        problem = error
    if as_json:
        document: Json = {"registrations": [asdict(registration) for registration in registrations]}
        print_json(document | ({"error": str(problem)} if problem else {}))
    elif registrations:
        _print_registrations(registrations)
    if problem:
        raise problem
    if any(registration.state == "no data" for registration in registrations) and not skip_missing:
        raise Exit(1)


def _print_registrations(registrations: list[Registration]) -> None:
    cells = [[row.name, row.config, row.kind, row.state] for row in registrations]
    problems = [f"{row.name} {row.config}: {row.detail}" for row in registrations if row.detail]
    if len(problems) > 1:
        problems[1:] = [f"{len(problems) - 1} more have no data; --json has the reason of each"]
    title = "Under their Hub names"
    print_table(Table(title, ["name", "config", "kind", "state"], cells, problems))
    say(
        "Without network access, run `export HF_HUB_OFFLINE=1` first: otherwise load_dataset and evaluate.load try the "
        "Hub for up to 45 seconds. Without a config, load_dataset takes the default one, if its data was found.",
        "dim",
    )
