"""``qabench stats``: a benchmark's own tables, recomputed from the dataset."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer


def stats(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="Which benchmark, such as fanoutqa.")],
    config: Annotated[
        str | None, typer.Argument(metavar="[CONFIG]", help="Which config; its default one if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:
    """Print a dataset's statistics, the published figures beside ours where there are any."""
    from qabench import loading_scripts
    from qabench.cli.output import print_json, print_table
    from qabench.loading import load_dataset

    table = loading_scripts.dataset_table(benchmark)
    name = table.config(config).name
    module = importlib.import_module(f"qabench.loading_scripts.{table.name}.stats")
    tables = module.tables(name, load_dataset(table.name, name))
    if as_json:
        print_json({"benchmark": table.name, "config": name, "tables": [made.as_dict() for made in tables]})
        return
    for made in tables:
        print_table(made)
