"""``qabench fetch``: download, check or mirror the upstream files of the benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.data.download import Progress
    from qabench.data.pinned import SourceFile
    from qabench.data.sources import FileResult


def fetch(
    benchmarks: Annotated[
        list[str] | None, typer.Argument(metavar="BENCHMARK", help="Which benchmarks; all of them by default.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only the files of this config, for a single benchmark; may be repeated."),
    ] = None,
    mirror: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="Copy the files to DIR/OWNER/REPO/PATH, for QABENCH_MIRROR."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only verify local files (with --mirror: those in DIR), offline."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")] = False,
) -> None:
    """Download the pinned upstream files to the cache, and verify each against its digest.

    Exit code: 0 all files are intact; 1 a file is missing or damaged, or a download failed; 2 wrong usage.
    """
    from qabench.cli.output import print_json
    from qabench.data import sources

    files = _select(benchmarks or [], config or [])
    if check:
        results = sources.check(files, directory=mirror)
    else:
        with _progress(len(files)) as progress:
            if mirror is not None:
                results = sources.write_mirror(files, mirror, progress=progress)
            else:
                results = sources.fetch(files, progress=progress)
    if as_json:
        print_json(_document(results))
    else:
        _print_results(results)
    if not all(result.ok for result in results):
        raise typer.Exit(1)


def _select(benchmarks: list[str], configs: list[str]) -> list[SourceFile]:
    from qabench.loading_scripts import benchmark_names, config_files, source_table

    known = benchmark_names()
    unknown = [name for name in benchmarks if name not in known]
    if unknown:
        raise InputError(f"unknown benchmarks {', '.join(map(repr, unknown))}; allowed: {', '.join(known)}")
    chosen = list(dict.fromkeys(benchmarks)) or known
    if not configs:
        return [file for name in chosen for file in source_table(name)]
    if len(chosen) != 1:
        raise InputError(f"--config needs exactly one benchmark; got {len(chosen)}: {', '.join(chosen)}")
    table = source_table(chosen[0])
    paths = dict.fromkeys(path for config in configs for path in config_files(chosen[0], config))
    return [table[path] for path in paths]


@contextmanager
def _progress(count: int) -> Iterator[Progress | None]:
    """A progress bar for the current download, on stderr if it is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{count} files", total=None)
        current: SourceFile | None = None

        def show(source: SourceFile, done: int, total: int | None) -> None:
            nonlocal current
            if source is not current:
                current = source
                bar.reset(task, description=str(source), total=total)
            bar.update(task, completed=done)

        yield show


def _document(results: list[FileResult]) -> dict[str, object]:
    ok = sum(result.ok for result in results)
    files = [
        {
            "benchmark": result.source.benchmark,
            "path": result.source.path,
            "state": result.state,
            "where": result.where,
            "local_path": str(result.path) if result.path else None,
            "size": result.source.size,
            "url": result.source.url,
            "license": result.source.license,
            "detail": result.detail,
        }
        for result in results
    ]
    return {"files": files, "ok": ok, "failed": len(results) - ok}


def _print_results(results: list[FileResult]) -> None:
    from qabench.cli.output import say

    rows = [("state", "where", "benchmark", "file", "note")]
    for result in results:
        note = result.detail.removeprefix(f"{result.source}: ")
        rows.append((result.state, result.where or "", result.source.benchmark, result.source.path, note))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    styles = [None, *("green" if result.ok else "red" for result in results)]
    for row, style in zip(rows, styles, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
        say("  ".join(cells).rstrip(), style)
    bad = {state: sum(result.state == state for result in results) for state in ("missing", "damaged", "failed")}
    counts = "".join(f", {number} {state}" for state, number in bad.items() if number)
    say(f"{sum(result.ok for result in results)} of {len(results)} files ok{counts}")
    if bad["missing"]:
        say(
            "Fetch missing files on a machine with network access, or read them from a mirror: set QABENCH_MIRROR=DIR "
            "to a folder that was written by `qabench fetch --mirror DIR` on another machine."
        )
