"""``qabench.load_dataset`` and ``qabench.load_metric``: benchmarks and metrics by name, without any setup."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, overload

from qabench.errors import InputError, QabenchError, unknown_name
from qabench.loading_scripts import custom_folders, dataset_table
from qabench.metrics import metric_folder, metric_names

if TYPE_CHECKING:
    from datasets import (
        Dataset,
        DatasetDict,
        DownloadMode,
        NamedSplit,
        ReadInstruction,
        VerificationMode,
    )
    from evaluate import EvaluationModule

    from qabench.loading_scripts.builder import BenchmarkBuilder

    OneSplit: TypeAlias = str | NamedSplit | ReadInstruction
    Files = str | Path | Sequence[str | Path]
    DataFiles = Files | Mapping[str, Files]

    class Options(TypedDict, total=False):
        """The options of ``load_dataset`` that do not change the type of its result."""

        data_files: DataFiles | None
        num_proc: int | None
        cache_dir: str | Path | None
        download_mode: DownloadMode | str | None
        verification_mode: VerificationMode | str | None
        keep_in_memory: bool


# the name in "validation[:10]", "train" and "test" in "train+test"
_SPLIT = re.compile(r"(?:^|\+)\s*([^\[+\s]+)")


@contextmanager
def cache_errors() -> Iterator[None]:
    """Turn an OSError of ``datasets`` or ``evaluate`` into a QabenchError that says which folder to change.

    ``datasets`` raises its own exception, with the exception for the row, or of the disk, as its cause. The cause is
    raised instead.
    """
    try:
        yield
    except Exception as error:
        is_wrapper = type(error).__name__ == "DatasetGenerationError"
        cause = error.__cause__ if is_wrapper and error.__cause__ is not None else error
        if isinstance(cause, OSError):
            raise QabenchError(
                f"the cache of Hugging Face's libraries cannot be used: {cause}. Free some space, or set HF_HOME to a "
                "folder that you can write to"
            ) from cause
        if cause is error:
            raise
        raise cause from None


def builder(
    name: str,
    config: str | None = None,
    *,
    data_files: DataFiles | None = None,
    only_splits: Sequence[str] | None = None,
    **kwargs: Any,
) -> BenchmarkBuilder:
    """Return the dataset builder of a benchmark, with a cache key from the digests of its data and code.

    It prepares ``only_splits`` (None for all). ``data_files`` are those of ``load_dataset``.
    ``kwargs`` are passed to ``datasets.DatasetBuilder``.

    Raises:
        InputError: an unknown benchmark or config, or a file that does not exist.
    """
    table = dataset_table(name)
    config_name = table.config(config).name
    from qabench.loading_scripts.builder import BenchmarkBuilder, cache_hash, rows_builder

    kind: type[BenchmarkBuilder]
    if table.name in custom_folders():
        kind = rows_builder(table.name)
        # by default, the name of the builder's module
        kwargs.setdefault("dataset_name", table.name)
    else:
        module = importlib.import_module(f"qabench.loading_scripts.{table.name}.{table.name}").__name__
        (kind,) = (each for each in BenchmarkBuilder.__subclasses__() if each.__module__ == module)
    parts = [cache_hash(kind, config_name), *(only_splits or ())]
    if data_files is not None:
        kwargs["own_files"] = own = _own_files(data_files, next(iter(table.config(config).splits)))
        parts += [
            f"{split} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            for split in own
            for path in own[split]
        ]
    key = hashlib.sha1("\n".join(parts).encode(), usedforsecurity=False).hexdigest()
    return kind(config_name=config_name, hash=key, only_splits=only_splits, **kwargs)


@overload
def load_dataset(
    name: str,
    config: str | None = ...,
    *,
    split: None = ...,
    streaming: Literal[False] = ...,
    **options: Unpack[Options],
) -> DatasetDict: ...


@overload
def load_dataset(
    name: str,
    config: str | None = ...,
    *,
    split: OneSplit,
    streaming: Literal[False] = ...,
    **options: Unpack[Options],
) -> Dataset: ...


@overload  # lists of splits, and streaming
def load_dataset(
    name: str,
    config: str | None = ...,
    *,
    split: OneSplit | list[Any] | None = ...,
    streaming: bool = ...,
    **options: Unpack[Options],
) -> Any: ...


@cache_errors()
def load_dataset(
    name: str,
    config: str | None = None,
    *,
    split: Any = None,
    streaming: bool = False,
    data_files: DataFiles | None = None,
    num_proc: int | None = None,
    cache_dir: str | Path | None = None,
    download_mode: DownloadMode | str | None = None,
    verification_mode: VerificationMode | str | None = None,
    keep_in_memory: bool = False,
) -> Any:
    """Load a benchmark from verified source files, with the arguments of ``datasets.load_dataset`` in its order.

    Args:
        name: the benchmark, "fanoutqa" or "qabench/fanoutqa".
        config: the config, such as "dev". None for the default config.
        split: a split, a slice of a split ("validation[:10]"), a ``datasets.ReadInstruction``, or a
            list of these. None for a dict with all splits. Files of other splits are not needed.
        streaming: read the rows one by one, without an Arrow file in the cache. For whole splits
            only: use .take(n) and .skip(n).
        data_files: custom files in the benchmark's official format to read instead of the published
            ones: a path or a list of paths for the first split of the config, or a dict {split:
            paths}. Their content is not verified.
        num_proc: the number of processes that prepare the data. A benchmark with a single file uses
            one.
        cache_dir: the folder in which ``datasets`` stores the Arrow files. By default below
            HF_HOME.
        download_mode: "force_redownload" prepares the data again.
        verification_mode: "no_checks" skips the comparison with the number of rows of an earlier
            preparation. The digests of the source files are always verified.
        keep_in_memory: load the Arrow data into memory.

    Returns:
        A Dataset (an IterableDataset if streaming) for a split, a list of them for a list of
        splits, else a dict with all splits.

    Raises:
        InputError: unknown benchmark, config, split or file.
        SourceUnavailable: the data is neither in a mirror nor in the cache, and cannot be
            downloaded.
        DigestMismatch: a source file is not the pinned one.
        DataError: a row does not fit the schema. The message names file, row and field.
        QabenchError: HF_HOME or ``cache_dir`` cannot be written.
    """
    folder = None if cache_dir is None else str(cache_dir)
    try:
        dataset_builder = builder(name, config, data_files=data_files, cache_dir=folder)
    except OSError:
        if not streaming:
            raise
        # A builder creates its cache folder. Streaming does not use it, so that any folder will do.
        with TemporaryDirectory(prefix="qabench-streaming-") as unused:
            dataset_builder = builder(name, config, data_files=data_files, cache_dir=unused)
    names = _split_names(dataset_builder, split)
    if data_files is None and not streaming and names and names != dataset_builder.split_names():
        dataset_builder = builder(name, config, only_splits=names, cache_dir=folder)
    if not streaming:
        dataset_builder.download_and_prepare(
            num_proc=num_proc, download_mode=download_mode, verification_mode=verification_mode
        )
    try:
        if streaming:
            return dataset_builder.as_streaming_dataset(split=split)
        return dataset_builder.as_dataset(split=split, in_memory=keep_in_memory)
    except ValueError as error:  # an invalid slice, or an unknown split in a ReadInstruction
        raise InputError(f"split {split!r} of {name} {dataset_builder.config.name}: {error}") from None


@cache_errors()
def load_metric(name: str, **kwargs: Any) -> EvaluationModule:
    """Load a metric of this package as an ``evaluate`` module, without network access.

    Args:
        name: the metric, "fanout_acc" or "qabench/fanout_acc".
        **kwargs: passed to ``evaluate.load``, such as ``keep_in_memory``.

    Raises:
        InputError: the metric is unknown.
        QabenchError: HF_HOME cannot be written.
    """
    import evaluate

    metric = name.removeprefix("qabench/")
    if metric not in metric_names():
        raise unknown_name("unknown metric", name, metric_names())
    return evaluate.load(str(metric_folder(metric)), **kwargs)


def _split_names(dataset_builder: BenchmarkBuilder, split: Any) -> list[str] | None:
    """Return the names in a split, in the config's order, or None for all splits or a ``ReadInstruction``.

    Raises:
        InputError: an unknown name, before anything is downloaded or prepared.
    """
    allowed = dataset_builder.split_names()
    parts = split if isinstance(split, list | tuple) else [split]
    if not all(isinstance(part, str) or type(part).__name__ == "NamedSplit" for part in parts):
        return None
    names = {name for part in parts for name in _SPLIT.findall(str(part))}
    unknown = sorted(names - {*allowed, "all"})
    if unknown or not names:
        where = f"{dataset_builder.BENCHMARK} {dataset_builder.config.name}"
        raise unknown_name(f"{where} has no split", (unknown or [split])[0], [*allowed, "or a slice"])
    return None if "all" in names else [name for name in allowed if name in names]


def _own_files(data_files: DataFiles, split: str) -> dict[str, list[Path]]:
    by_split = data_files if isinstance(data_files, Mapping) else {split: data_files}
    own: dict[str, list[Path]] = {}
    try:
        for name, files in by_split.items():
            paths = [files] if isinstance(files, str | Path) else files
            own[str(name)] = list(map(Path, paths))
    except TypeError:  # of another type, which is as wrong as an empty list
        own = {}
    if not own or not all(own.values()):
        raise InputError(
            f"data_files is {data_files!r}; allowed: a path, a list of paths, or {{split: paths}}"
        )
    for path in (path for paths in own.values() for path in paths):
        if not path.is_file():
            raise InputError(f"data_files: the file {path} does not exist")
    return own
