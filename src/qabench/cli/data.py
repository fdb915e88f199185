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
    output_folder,
)
from qabench.cli.output import (
    plain_warnings,
    print_json,
    print_table,
    print_tables,
    progress_bar,
    say,
)
from qabench.cli.outside import listing
from qabench.data import sources
from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError
from qabench.io.tables import Table
from qabench.loading_scripts import benchmark_names, dataset_table, usable_names
from qabench.loading_scripts.load import cache_errors, load_dataset
from qabench.metrics import metric_folder, metric_names

if TYPE_CHECKING:
    from qabench.benchmarks.reproduction import Check
    from qabench.data.pinned import SourceFile
    from qabench.data.sources import FileResult
    from qabench.hub.register import Registration


def list_all(
    name: Annotated[
        str | None,
        Argument(metavar="BENCHMARK", help="List the scores and settings of this benchmark."),
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
    cells: list[list[Any]] = []
    for row in benchmarks.rows:
        name_and_config = f"{row['benchmark']} {row['config']}"
        splits = ", ".join(row["splits"])
        cells.append([name_and_config, splits, row["data"], row["description"]])
    columns = ["benchmark and config", "splits", "data", "description"]
    title = "Benchmarks: qabench.load_dataset(BENCHMARK, CONFIG)"
    print_table(Table(title, columns, cells, benchmarks.notes))
    cells = [list(item) for item in metrics.items()]
    print_table(Table("Metrics: qabench.load_metric(NAME)", ["name", "what it measures"], cells))


def _summary_of_metric(name: str) -> str:
    """Return the first line of the docstring of a metric's module, without importing the module."""
    path = metric_folder(name) / f"{name}.py"
    try:
        docstring = ast.get_docstring(ast.parse(path.read_bytes()))
    except (OSError, SyntaxError, ValueError) as error:
        # The folder of a benchmark from outside may have any content.
        return f"cannot be read: {error}"
    # "ROUGE of long answers as an ``evaluate`` metric." is "ROUGE of long answers" in the list.
    first_line = str(docstring).partition("\n")[0].replace("``", "")
    return first_line.removesuffix(" as an evaluate metric.").rstrip(".")


def fetch(
    benchmarks: BenchmarkNames = None,
    config: ConfigNames = None,
    mirror: Annotated[
        Path | None,
        Option(
            file_okay=False,
            callback=output_folder,
            help="Copy the files to DIR/OWNER/REPO/PATH, for QABENCH_MIRROR.",
        ),
    ] = None,
    check: Annotated[
        bool,
        Option("--check", help="Only verify local files (with --mirror: those in DIR), offline."),
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
                if done != total:
                    # The bar always prints the last update of a file. In a pipe, this would add a
                    # line per file.
                    show(done, total or 0)

            results = sources.fetch(files, mirror=mirror, progress=progress)
    if as_json:
        ok = sum(result.ok for result in results)
        rows = []
        for result in results:
            row = {
                "benchmark": result.source.benchmark,
                "path": result.source.path,
                "size": result.source.size,
                "url": result.source.url,
                "state": result.state,
                "where": result.where,
                "detail": result.detail,
                "license": result.source.license,
                "local_path": result.path and str(result.path),
            }
            rows.append(row)
        print_json({"files": rows, "ok": ok, "failed": len(results) - ok})
    else:
        _print_files(results)
    if not all(result.ok for result in results):
        raise Exit(1)


def _usable_names() -> list[str]:
    with plain_warnings():
        return usable_names()


def _source_files(benchmarks: list[str], configs: list[str]) -> list[SourceFile]:
    tables = {}
    for name in benchmarks or _usable_names():
        # NAME and qabench/NAME are the same benchmark.
        table = dataset_table(name)
        tables[table.name] = table
    files: list[SourceFile] = []
    if not configs:
        for table in tables.values():
            files += table.sources.values()
        return files
    table = tables[_only_benchmark(list(tables))]
    for config in configs:
        for path in table.config(config).files:
            # Several configs may read the same file.
            if table.sources[path] not in files:
                files.append(table.sources[path])
    return files


def _only_benchmark(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise InputError(
            f"--config needs exactly one benchmark; got {len(names)}: {', '.join(names)}"
        )
    return names[0]


def _print_files(results: list[FileResult]) -> None:
    rows = []
    for result in results:
        rows.append([result.state, result.where, result.source.benchmark, result.source.path])
    problems = [result.detail for result in results if result.detail]
    n_ok = sum(result.ok for result in results)
    title = f"{n_ok} of {len(results)} files ok"
    states = Counter(result.state for result in results)
    for state in ("missing", "damaged", "failed"):
        if states[state]:
            title += f", {states[state]} {state}"
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
    tables = benchmark_of(dataset.name).numbers().tables(name, load_dataset(dataset.name, name))
    document = {
        "benchmark": dataset.name,
        "config": name,
        "tables": [table.as_dict() for table in tables],
    }
    print_tables(tables, format, document)


def reproduce(benchmark: BenchmarkName, format: Format = "table") -> None:
    """Recompute published scores and statistics, and print both values and why they differ.

    Exit code: 0 all numbers agree, or their differences are explained; 1 there is an unexplained
    difference.
    """
    reproduction = benchmark_of(benchmark).numbers().reproduce()
    tables = reproduction.tables
    checks = list(map(_check_as_dict, reproduction.checks))
    document = {
        "benchmark": benchmark,
        "checks": checks,
        "tables": [table.as_dict() for table in tables],
        "notes": reproduction.notes,
    }
    print_tables([*tables, _check_table(benchmark, checks, reproduction.notes)], format, document)
    for check in reproduction.checks:
        # A number that could not be computed has an explanation, too.
        if not (check.agrees or check.explanation):
            raise Exit(1)


def _check_as_dict(check: Check) -> Json:
    difference = None
    if check.published is not None and check.computed is not None:
        # Numbers that agree may still differ beyond the digits of the published one.
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


def _result_of(check: Json) -> str:
    """Return the summary's word for the outcome of recomputing a published number."""
    if check["here"] is None:
        return "not computed"
    if check["agrees"]:
        return "equal"
    return "explained" if check["explanation"] else "unexplained"


def _check_table(name: str, checks: list[Json], notes: list[str]) -> Table:
    columns = ["kind", "number", "published", "here", "difference", "explanation"]
    rows = []
    results: Counter[str] = Counter()
    for check in checks:
        shown = dict(check)
        if check["here"] is not None:
            shown["here"] = round(check["here"], 6)
        rows.append([shown[column] for column in columns])
        # Some of the numbers were never published.
        if check["published"] is not None:
            results[_result_of(check)] += 1
    summary = (
        f"{results.total()} published numbers: {results['equal']} equal; "
        f"explained differences: {results['explained']}; "
        f"unexplained differences: {results['unexplained']}; not computed: {results['not computed']}"
    )
    title = f"{benchmark_of(name).title}: published numbers, recomputed"
    return Table(title, columns, rows, [*notes, summary])


def register(
    benchmarks: Annotated[
        list[str] | None, Argument(metavar="BENCHMARK...", help="The benchmarks to register.")
    ] = None,
    everything: Annotated[bool, Option("--all", help="All benchmarks.")] = False,
    config: ConfigNames = None,
    cache_dir: Annotated[
        Path | None,
        Option(
            file_okay=False,
            callback=output_folder,
            help="Write the datasets to this folder, for load_dataset(..., cache_dir=DIR) with HF_HUB_OFFLINE=1.",
        ),
    ] = None,
    skip_missing: SkipMissing = False,
    as_json: AsJson = False,
) -> None:
    """Make load_dataset and evaluate.load of "qabench/..." work on this machine without the Hub.

    Prepares the benchmarks' configs, and all metrics, in the caches of the libraries datasets and
    evaluate.
    """
    import datasets

    from qabench.hub.register import register_dataset, register_metric

    if not (benchmarks or everything):
        raise InputError(
            f"name the benchmarks to register ({', '.join(benchmark_names())}), or use --all"
        )
    chosen = benchmarks or _usable_names()
    names = [_only_benchmark(chosen)] if config else chosen
    tables = list(map(dataset_table, names))
    # All names are looked up first, so that a wrong one is reported before any is prepared.
    configs = []
    for table in tables:
        for name in config or table.configs:
            configs.append((table.name, table.config(name).name))
    metrics = metric_names()
    total = len(configs) + len(metrics)
    # If an error occurs, the registrations before it are still printed.
    registrations: list[Registration] = []
    problem = None
    # qabench shows one bar for all configs instead.
    datasets.disable_progress_bars()
    try:
        with progress_bar("Registering", "configs and metrics") as progress:
            for name, config_name in configs:
                with cache_errors(cache_dir):
                    registrations.append(register_dataset(name, config_name, cache_dir))
                progress(len(registrations), total)
            for metric in metrics:
                with cache_errors():
                    registrations.append(register_metric(metric))
                progress(len(registrations), total)
    except QabenchError as error:
        # The others would fail for the same reason, such as a full disk.
        problem = error
    if as_json:
        document: Json = {"registrations": list(map(asdict, registrations))}
        if problem:
            document["error"] = str(problem)
        print_json(document)
    elif registrations:
        _print_registrations(registrations)
    if problem:
        raise problem
    if any(registration.state == "no data" for registration in registrations) and not skip_missing:
        raise Exit(1)


def _print_registrations(registrations: list[Registration]) -> None:
    """Print one line per benchmark, one for all metrics, and why data is missing."""
    lines: dict[str, dict[str, list[str]]] = {}
    problems = []
    shown_states = ["registered"]
    for row in registrations:
        if row.kind == "dataset":
            states = lines.setdefault(row.name, {})
            states.setdefault(row.state, []).append(str(row.config))
        else:
            lines.setdefault("metrics", {}).setdefault(row.state, []).append(row.name)
        if row.detail:
            problems.append(f"{row.name} {row.config}: {row.detail}")
        if row.state == "no data":
            shown_states = ["registered", "no data"]
    cells = []
    for name, states in lines.items():
        names_by_state = [", ".join(states.get(state, [])) for state in shown_states]
        cells.append([name, *names_by_state])
    # Files are usually all missing for the same reason, so it is printed once.
    if len(problems) > 1:
        problems[1:] = [f"{len(problems) - 1} more have no data; --json has each reason"]
    title = "Registered under their Hub names"
    print_table(Table(title, ["name", *shown_states], cells, problems))
    say(
        "Without network access, run `export HF_HUB_OFFLINE=1` first: otherwise load_dataset and evaluate.load try the "
        "Hub for up to 45 seconds. Without a config, load_dataset takes the default one, if its data was found.",
        "dim",
    )
