"""``qabench stats``: a dataset's statistics, computed from its rows."""

from __future__ import annotations

import importlib

from qabench.cli.options import AsJson, BenchmarkName, ConfigName, Format, checked_format


def stats(
    benchmark: BenchmarkName, config: ConfigName = None, format: Format = "table", as_json: AsJson = False
) -> None:
    """Print a dataset's statistics, next to the published ones if there are any."""
    from qabench import loading_scripts
    from qabench.cli.output import print_json, print_tables
    from qabench.loading import load_dataset

    shown_as = checked_format(format, as_json)
    table = loading_scripts.dataset_table(benchmark)
    name = table.config(config).name
    module = importlib.import_module(f"qabench.loading_scripts.{table.name}.stats")
    tables = module.tables(name, load_dataset(table.name, name))
    if shown_as == "json":
        print_json({"benchmark": table.name, "config": name, "tables": [made.as_dict() for made in tables]})
    else:
        print_tables(tables, shown_as)
