"""``qabench.load_dataset`` and ``qabench.load_metric``: the benchmarks by name with nothing to set up."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.errors import InputError

if TYPE_CHECKING:
    from qabench.loading_scripts.builder import BenchmarkBuilder


def builder(name: str, config: str | None = None, **kwargs: Any) -> BenchmarkBuilder:
    """The dataset builder of a benchmark, with a cache key made of the digests of its data and code.

    Args:
        name: "fanoutqa" or "qabench/fanoutqa".
        config: one of the benchmark's configs; None for its default.
        **kwargs: for ``datasets.DatasetBuilder``, such as ``cache_dir``.

    Raises:
        InputError: no such benchmark or config.
    """
    from qabench.loading_scripts import dataset_table

    table = dataset_table(name)
    config_name = table.config(config).name
    module = importlib.import_module(f"qabench.loading_scripts.{table.name}.{table.name}")
    from qabench.loading_scripts.builder import BenchmarkBuilder, cache_hash

    (kind,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, BenchmarkBuilder) and value is not BenchmarkBuilder
    )
    return kind(config_name=config_name, hash=cache_hash(kind, config_name), **kwargs)


def load_dataset(
    path: str,
    name: str | None = None,
    *,
    split: str | None = None,
    streaming: bool = False,
    num_proc: int | None = None,
    cache_dir: str | None = None,
    download_mode: str | None = None,
    keep_in_memory: bool = False,
) -> Any:
    """A benchmark as a dataset, from verified source files, with the arguments of ``datasets.load_dataset``.

    Args:
        path: the benchmark, "fanoutqa" or "qabench/fanoutqa".
        name: its config, such as "dev"; None for the default one.
        split: a split or a slice of one ("validation[:10]"); None for all splits in a dict.
        streaming: read the rows one by one, without an Arrow file in the cache.
        num_proc: processes that prepare the data; a benchmark of a single file uses one.
        cache_dir: where ``datasets`` keeps the Arrow files; by default below HF_HOME.
        download_mode: "force_redownload" prepares the data anew.
        keep_in_memory: load the Arrow data into memory.

    Returns:
        A Dataset (or IterableDataset) for a split, else a dict of them by split.

    Raises:
        InputError: unknown benchmark, config or split.
        SourceUnavailable: the data is in no mirror and no cache, and cannot be downloaded.
        DigestMismatch: a source file is not the pinned one.
        DataError: a row is not as the schema says; names file, row and field.
    """
    from datasets.exceptions import DatasetGenerationError

    made = builder(path, name, cache_dir=cache_dir)
    known = list(_splits(made))
    if split is not None and split.split("[")[0].split("+")[0] not in (*known, "all"):
        raise InputError(f"{path} {made.config.name} has no split {split!r}; allowed: {', '.join(known)}, or a slice")
    if streaming:
        return made.as_streaming_dataset(split=split)
    try:
        made.download_and_prepare(num_proc=num_proc, download_mode=download_mode)
    except DatasetGenerationError as error:
        # datasets hides what went wrong in a row behind an error of its own.
        if error.__cause__ is not None:
            raise error.__cause__ from None
        raise
    return made.as_dataset(split=split, in_memory=keep_in_memory)


def _splits(made: BenchmarkBuilder) -> dict[str, tuple[str, ...]]:
    from qabench.loading_scripts import dataset_table

    return dataset_table(made.BENCHMARK).config(made.config.name).splits


def load_metric(path: str, **kwargs: Any) -> Any:
    """A metric of this package as an ``evaluate`` module, with no Hub and no network.

    Args:
        path: the metric, "fanout_acc" or "qabench/fanout_acc".
        **kwargs: for ``evaluate.load``, such as ``keep_in_memory``.

    Raises:
        InputError: there is no such metric.
    """
    import evaluate

    from qabench.metrics import metric_names

    name = path.removeprefix("qabench/")
    if name not in metric_names():
        raise InputError(f"there is no metric {path!r}; allowed: {', '.join(metric_names())}")
    folder = Path(str(importlib.import_module(f"qabench.metrics.{name}").__path__[0]))
    return evaluate.load(str(folder), **kwargs)
