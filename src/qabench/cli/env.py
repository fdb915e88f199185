"""``qabench env``: versions, models, caches and environment variables."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def env(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False) -> None:
    """Show versions, models, caches, variables and what is official here, for bug reports. Keys are never shown."""
    from qabench.cli.output import print_json, print_table
    from qabench.io.environment import ENVIRONMENT, environment
    from qabench.io.tables import Table

    found = environment() | {"official": _official()}
    if as_json:
        print_json(found)
        return
    about = [[name, found[name]] for name in ("qabench", "python", "platform")]
    about += [[name, version or "not installed"] for name, version in (found["packages"] | found["models"]).items()]
    about.append(["cache", f"{found['cache']['path']} ({found['cache']['bytes'] / 1e6:.1f} MB)"])
    print_table(Table("Versions and folders", ["name", "value"], about))
    variables = [
        [one.name, value if (value := found["variables"][one.name]) is not None else f"not set: {one.default}"]
        for one in ENVIRONMENT
    ]
    print_table(Table("Environment variables", ["name", "value"], variables))
    rows = [[one["benchmark"], one["what"], _said(one["missing"], one["fix"])] for one in found["official"]]
    print_table(Table("What is official on this machine", ["benchmark", "what", "official"], rows))


def _official() -> list[dict[str, Any]]:
    from qabench.benchmarks import benchmark, benchmark_names

    return [
        {"benchmark": name, "what": need.what, "missing": need.missing(name), "fix": need.fix}
        for name in benchmark_names()
        for need in benchmark(name).needs
    ]


def _said(missing: list[str], fix: str) -> str:
    return f"no: {', '.join(missing)} missing; {fix}" if missing else "yes"
