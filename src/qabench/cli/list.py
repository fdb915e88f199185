"""``qabench list``: the benchmarks, their configs and the origin of their data; the metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def list_all(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False) -> None:
    """List benchmarks with their configs, and metrics."""
    from qabench.cli.output import print_json, print_table
    from qabench.data.sources import available
    from qabench.io.tables import Table
    from qabench.loading_scripts import benchmark_names, dataset_table, source_table
    from qabench.metrics import metric_names

    rows = []
    for name in benchmark_names():
        for config in dataset_table(name).configs.values():
            places = {available(source_table(name)[file]) for file in config.files}
            here = "shipped" if not places else "to fetch" if None in places else " and ".join(sorted(map(str, places)))
            rows.append((name, config.name, list(config.splits), here, config.description))
    metrics = {name: _about(name) for name in metric_names()}
    if as_json:
        keys = ("benchmark", "config", "splits", "data", "description")
        print_json({"configs": [dict(zip(keys, row, strict=True)) for row in rows], "metrics": metrics})
        return
    cells = [[f"{name} {config}", ", ".join(splits), data, text] for name, config, splits, data, text in rows]
    columns = ["benchmark and config", "splits", "data", "description"]
    how = f'load one: qabench.load_dataset("{rows[0][0]}", "{rows[0][1]}")'
    print_table(Table("Benchmarks", columns, cells, [how]))
    lines: list[list[object]] = [[name, about] for name, about in metrics.items()]
    print_table(
        Table("Metrics", ["name", "what it measures"], lines, [f'load one: qabench.load_metric("{lines[0][0]}")'])
    )


def _about(metric: str) -> str:
    """The first sentence of the docstring of a metric's module, without importing it."""
    import ast
    from importlib.util import find_spec

    spec = find_spec(f"qabench.metrics.{metric}.{metric}")
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_bytes())) if spec and spec.origin else None
    return (text or "").partition("\n")[0].replace("``", "").removesuffix(" as an evaluate metric.").rstrip(".")
