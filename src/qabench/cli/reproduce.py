"""``qabench reproduce``: recomputes published scores from public data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from qabench.cli.options import AsJson, BenchmarkName, Format, checked_format

if TYPE_CHECKING:
    from qabench.reproduction import Check, Reproduction
    from qabench.tables import Table


def reproduce(benchmark: BenchmarkName, format: Format = "table", as_json: AsJson = False) -> None:
    """Recompute published scores, and print the published value, the recomputed one, the difference and its reason.

    Exit code: 0 all scores agree, or their differences are explained; 1 there is an unexplained difference.
    """
    from qabench.cli.output import print_json, print_tables, say
    from qabench.reproduction import reproduce as reproduced

    shown_as = checked_format(format, as_json)
    found = reproduced(benchmark)
    unexplained = [check for check in found.checks if check.unexplained]
    if shown_as == "json":
        print_json(_as_dict(benchmark, found))
    else:
        print_tables([*found.tables, _table(benchmark, found)], shown_as)
    if shown_as == "table":
        say(_summary(found))
    if unexplained:
        raise typer.Exit(1)


def _table(name: str, found: Reproduction) -> Table:
    from qabench.benchmarks import benchmark
    from qabench.tables import Table

    rows = [
        [check.what, check.published, _rounded(check.ours), _difference(check), check.explanation]
        for check in found.checks
    ]
    columns = ["number", "published", "here", "difference", "explanation"]
    return Table(f"{benchmark(name).title}: published scores, recomputed", columns, rows, found.notes)


def _rounded(value: float) -> float:
    return round(value, 6)


def _difference(check: Check) -> float | None:
    if check.published is None:
        return None
    return 0 if check.agrees else round(check.ours - check.published, 6)


def _summary(found: Reproduction) -> str:
    published = [check for check in found.checks if check.published is not None]
    differ = [check for check in published if not check.agrees]
    unexplained = sum(check.unexplained for check in differ)
    return (
        f"{len(published)} published scores: {len(published) - len(differ)} equal; explained differences: "
        f"{len(differ) - unexplained}; unexplained differences: {unexplained}"
    )


def _as_dict(name: str, found: Reproduction) -> dict[str, object]:
    checks = [
        {
            "number": check.what,
            "published": check.published,
            "here": check.ours,
            "difference": _difference(check),
            "agrees": check.agrees,
            "explanation": check.explanation,
        }
        for check in found.checks
    ]
    tables = [table.as_dict() for table in found.tables]
    return {"benchmark": name, "checks": checks, "tables": tables, "notes": found.notes}
