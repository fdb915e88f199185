"""``qabench build``: dataset repositories for the Hub, which the stock ``load_dataset`` can also read from disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.hub.build import Built


def build(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", file_okay=False, help="Write each repository to OUT/BENCHMARK.")
    ],
    benchmarks: Annotated[
        list[str] | None, typer.Argument(metavar="BENCHMARK", help="Which benchmarks; all of them by default.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this config of a single benchmark; may be repeated."),
    ] = None,
    skip_missing: Annotated[
        bool,
        typer.Option("--skip-missing", help="Exit with 0 even if the data of some configs is missing."),
    ] = False,
    max_shard_size: Annotated[
        str, typer.Option(metavar="SIZE", help="The maximum size of a shard before compression.")
    ] = "300MB",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")] = False,
) -> None:
    """Write Hub-ready dataset repositories: Parquet files, card, tasks, manifest.

    The output is reproducible byte for byte. A folder that qabench did not write is never replaced.
    Exit code: 0 all configs were built; 1 the data of a config is missing or damaged; 2 wrong usage.
    """
    import datasets

    from qabench.cli.output import print_json, progress_bar, warn
    from qabench.hub.build import build as build_all

    size = _bytes(max_shard_size)
    datasets.disable_progress_bars()  # replaced by a single bar
    with progress_bar("building") as progress:
        built = build_all(
            out,
            benchmarks or [],
            config or [],
            skip_missing=skip_missing,
            max_shard_bytes=size,
            progress=progress,
        )
    if as_json:
        print_json({"repositories": [one.as_dict() for one in built]})
    else:
        _print(built)
    for one in built:
        if one.restriction and one.written:
            warn(f"do not upload {one.path}: {one.restriction}")
    if any(one.missing for one in built) and not skip_missing:
        raise typer.Exit(1)


def _bytes(size: str) -> int:
    from datasets.utils.py_utils import convert_file_size_to_int

    try:
        return int(convert_file_size_to_int(size))
    except ValueError:
        raise InputError(f"--max-shard-size is {size!r}; it must be a size such as 300MB or 1GB") from None


def _print(built: list[Built]) -> None:
    from qabench.cli.output import print_table, say, say_on_stderr
    from qabench.io.tables import Table

    columns = ["repository", "configs", "rows", "bytes"]
    cells = [
        [str(one.path), len(one.rows), sum(sum(splits.values()) for splits in one.rows.values()), one.size]
        for one in built
        if one.written
    ]
    print_table(Table("Built", columns, cells, ['load one: datasets.load_dataset("OUT/BENCHMARK", "CONFIG")']))
    for one in built:
        if one.missing:
            kept = f"; kept the older build at {one.path}, which has some of them" if not one.written else ""
            say_on_stderr(f"{one.benchmark}: no data for {', '.join(one.missing)}{kept}", "red")
    if any(one.missing for one in built):
        say("Missing data: run `qabench fetch` with network access, or set QABENCH_MIRROR; or use --skip-missing.")
