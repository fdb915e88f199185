"""``qabench stats``: a dataset's statistics, computed from its rows."""

from __future__ import annotations

from qabench.cli.options import AsJson, BenchmarkName, ConfigName, Format, checked_format


def stats(
    benchmark: BenchmarkName, config: ConfigName = None, format: Format = "table", as_json: AsJson = False
) -> None:
    """Print a dataset's statistics, next to the published ones if there are any."""
    from qabench.benchmarks import benchmark as benchmark_named
    from qabench.cli.output import print_json, print_tables
    from qabench.loading import load_dataset
    from qabench.loading_scripts import dataset_table

    shown_as = checked_format(format, as_json)
    table = dataset_table(benchmark)
    name = table.config(config).name
    tables = benchmark_named(table.name).statistics(name, load_dataset(table.name, name))
    if shown_as == "json":
        print_json({"benchmark": table.name, "config": name, "tables": [shown.as_dict() for shown in tables]})
    else:
        print_tables(tables, shown_as)
