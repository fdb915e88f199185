"""``qabench register``: make datasets and metrics available to the stock libraries under their Hub names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.hub.register import Registration


def register(
    benchmarks: Annotated[list[str] | None, typer.Argument(metavar="BENCHMARK", help="Which benchmarks.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All benchmarks.")] = False,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this config of a single benchmark; may be repeated."),
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Only print what is registered.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove what was registered, and nothing else.")] = False,
    skip_missing: Annotated[bool, typer.Option("--skip-missing", help="Exit with 0 even if data is missing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Make load_dataset("qabench/...") and evaluate.load("qabench/...") work on this machine without the Hub.

    Prepares the configs of the benchmarks, and all metrics, in the caches of datasets and evaluate.
    """
    from qabench.cli.output import print_json
    from qabench.hub import register as hub
    from qabench.loading_scripts import benchmark_names
    from qabench.metrics import metric_names

    if status and remove:
        raise InputError("--status and --remove cannot be used together")
    if not (benchmarks or everything or status or remove):
        raise InputError(f"name the benchmarks to register ({', '.join(benchmark_names())}), or use --all")
    configs = _configs(benchmarks or benchmark_names(), config or [])
    if remove:
        removed = [path for name, config_name in configs for path in hub.unregister_dataset(name, config_name)]
        if not benchmarks:
            removed += [path for name in metric_names() for path in hub.unregister_metric(name)]
        _print_removed([str(path) for path in removed], as_json)
        return
    dataset, metric = (hub.dataset_status, hub.metric_status) if status else (hub.register_dataset, hub.register_metric)
    rows = [dataset(name, config_name) for name, config_name in configs]
    rows += [metric(name) for name in metric_names()]
    if as_json:
        print_json({"registrations": [row.as_dict() for row in rows]})
    else:
        _print(rows)
    if any(row.state == "no data" for row in rows) and not skip_missing:
        raise typer.Exit(1)


def _configs(names: list[str], wanted: list[str]) -> list[tuple[str, str]]:
    from qabench.hub.register import registrable
    from qabench.loading_scripts import dataset_table

    if not wanted:
        return registrable(names)
    if len(names) != 1:
        raise InputError(f"--config needs exactly one benchmark; got {len(names)}: {', '.join(names)}")
    table = dataset_table(names[0])
    return [(table.name, table.config(name).name) for name in wanted]


def _print(rows: list[Registration]) -> None:
    from qabench.cli.output import print_table, say
    from qabench.io.tables import Table

    cells = [[f'"{row.name}"' + (f', "{row.config}"' if row.config else ""), row.kind, row.state] for row in rows]
    print_table(Table("Under their Hub names", ["name", "kind", "state"], cells))
    for row in rows:
        if row.detail:
            say(f"{row.name} {row.config}: {row.detail.splitlines()[0]}", "yellow")
        if row.state == "shadowed":
            text = (
                f"{row.name} {row.config or ''}: a newer copy is used instead, {row.path}; register again to fix this"
            )
            say(text, "yellow")
    say(
        "Without network access, set HF_HUB_OFFLINE=1: otherwise load_dataset and evaluate.load try the Hub first, for "
        "about 20 seconds. Name the config, because several are cached: without it, load_dataset returns the default "
        "config if its data is available, else the first one that is registered.",
        "dim",
    )


def _print_removed(paths: list[str], as_json: bool) -> None:
    from qabench.cli.output import print_json, say

    if as_json:
        print_json({"removed": paths})
        return
    for path in [*paths, f"{len(paths)} folders removed"]:
        say(path)
