"""``qabench reproduce``: recomputes published scores and statistics from public data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from qabench.cli.options import AsJson, BenchmarkName, Format, checked_format

if TYPE_CHECKING:
    from qabench.benchmarks.reproduction import Check, Reproduction
    from qabench.io.tables import Table


def reproduce(benchmark: BenchmarkName, format: Format = "table", as_json: AsJson = False) -> None:
    """Recompute published scores and statistics; print both values, the difference and its reason.

    Exit code: 0 all numbers agree, or their differences are explained; 1 there is an unexplained difference.
    """
    from qabench.benchmarks import benchmark as benchmark_of
    from qabench.cli.output import print_json, print_tables, say

    output_format = checked_format(format, as_json)
    reproduction = benchmark_of(benchmark).reproduce()
    if output_format == "json":
        print_json(_as_dict(benchmark, reproduction))
    else:
        print_tables([*reproduction.tables, *_tables(benchmark, reproduction)], output_format)
    if output_format == "table":
        for kind in ("statistic", "score"):
            say(_summary(kind, reproduction))
    if any(check.unexplained for check in reproduction.checks):
        raise typer.Exit(1)


def _tables(name: str, reproduction: Reproduction) -> list[Table]:
    """Return one table of statistics and one of scores; the last table has the notes."""
    from qabench.benchmarks import benchmark
    from qabench.io.tables import Table

    tables = []
    for kind in ("statistic", "score"):
        rows = [
            [check.name, check.published, _rounded(check.computed), _difference(check), check.explanation]
            for check in reproduction.checks
            if check.kind == kind
        ]
        if rows:
            columns = [kind, "published", "here", "difference", "explanation"]
            tables.append(Table(f"{benchmark(name).title}: published {kind}s, recomputed", columns, rows))
    if not tables:
        return [Table(f"{benchmark(name).title}: published numbers", ["number"], [], reproduction.notes)]
    return [*tables[:-1], replace(tables[-1], notes=reproduction.notes)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _difference(check: Check) -> float | None:
    if check.published is None or check.computed is None:
        return None
    return 0 if check.agrees else round(check.computed - check.published, 6)


def _summary(kind: str, reproduction: Reproduction) -> str:
    checks = [check for check in reproduction.checks if check.published is not None and check.kind == kind]
    computed = [check for check in checks if check.computed is not None]
    equal = sum(check.agrees for check in computed)
    unexplained = sum(check.unexplained for check in computed)
    return (
        f"{len(checks)} published {kind}s: {equal} equal; "
        f"explained differences: {len(computed) - equal - unexplained}; "
        f"unexplained differences: {unexplained}; not computed: {len(checks) - len(computed)}"
    )


def _as_dict(name: str, reproduction: Reproduction) -> dict[str, object]:
    checks = [
        {
            "number": check.name,
            "kind": check.kind,
            "published": check.published,
            "here": check.computed,
            "difference": _difference(check),
            "agrees": check.agrees,
            "explanation": check.explanation,
        }
        for check in reproduction.checks
    ]
    tables = [table.as_dict() for table in reproduction.tables]
    return {"benchmark": name, "checks": checks, "tables": tables, "notes": reproduction.notes}
