"""``qabench.load_dataset``: the datasets of benchmarks by name, from verified source files."""

from __future__ import annotations

import glob
import hashlib
import importlib
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, overload
from urllib.parse import urlsplit

from qabench.errors import InputError, QabenchError, unknown_name
from qabench.evaluation.signature import version
from qabench.io.environment import offline_variable
from qabench.io.files import cache_dir as files_cache
from qabench.io.files import replacing
from qabench.io.http import HttpClient
from qabench.io.limits import Limits
from qabench.loading_scripts import benchmark_names, custom_folders, dataset_table

if TYPE_CHECKING:
    from datasets import (
        Dataset,
        DatasetDict,
        DownloadMode,
        NamedSplit,
        ReadInstruction,
        VerificationMode,
    )

    from qabench.loading_scripts.builder import BenchmarkBuilder

    OneSplit: TypeAlias = str | NamedSplit | ReadInstruction
    Files = str | Path | Sequence[str | Path]
    DataFiles = Files | Mapping[str, Files]

    class Options(TypedDict, total=False):
        """The options of ``load_dataset`` that do not change the type of its result."""

        data_files: DataFiles | None
        revision: str | None
        num_proc: int | None
        cache_dir: str | Path | None
        download_mode: DownloadMode | str | None
        verification_mode: VerificationMode | str | None
        keep_in_memory: bool


# Matches the names of splits: "validation" in "validation[:10]", and both in "train+test".
_SPLIT = re.compile(r"(?:^|\+)\s*([^\[+\s]+)")


@contextmanager
def cache_errors(cache_dir: str | Path | None = None) -> Iterator[None]:
    """Turn an OSError of ``datasets`` or ``evaluate`` into a QabenchError that says what to do.

    ``datasets`` wraps any error while it writes rows in an exception of its own. The wrapped error
    is raised instead, or turned into a QabenchError if it is an OSError.

    Args:
        cache_dir: the folder that the user named in place of the one below HF_HOME.
    """
    try:
        yield
    except Exception as error:
        # ``datasets`` wraps any exception that reading a row raises.
        is_wrapper = type(error).__name__ == "DatasetGenerationError"
        cause = error.__cause__ if is_wrapper and error.__cause__ is not None else error
        if isinstance(cause, OSError):
            unusable = "the cache of Hugging Face's libraries cannot be used"
            advice = "set HF_HOME to a folder that you can write to"
            if cache_dir is not None and _may_be_below(cause.filename, Path(cache_dir)):
                unusable = f"the folder {cache_dir} (cache_dir) cannot be used"
                advice = "name another folder that you can write to"
            raise QabenchError(f"{unusable}: {cause}. Free some space, or {advice}") from cause
        if cause is error:
            raise
        raise cause from None


def _may_be_below(file: object, folder: Path) -> bool:
    """Tell whether the file of an OSError may be in a folder."""
    if not isinstance(file, str):
        # The error for a full disk names no file.
        return True
    return Path(file).absolute().is_relative_to(folder.absolute())


def builder(
    name: str,
    config: str | None = None,
    *,
    data_files: DataFiles | None = None,
    only_splits: Sequence[str] | None = None,
    **kwargs: Any,
) -> BenchmarkBuilder:
    """Return the dataset builder of a benchmark.

    The builder's cache key depends on the digests of the data and of the code. It prepares
    ``only_splits`` (None for all). For ``data_files`` see ``load_dataset``. ``kwargs`` are passed
    to ``datasets.DatasetBuilder``.

    Raises:
        InputError: an unknown benchmark or config, or a file that does not exist.
    """
    table = dataset_table(name)
    config_name = table.config(config).name
    from qabench.loading_scripts.builder import BenchmarkBuilder, cache_hash, rows_builder

    kind: type[BenchmarkBuilder]
    if table.name in custom_folders():
        kind = rows_builder(table.name)
        # Otherwise, the dataset would have the name of the builder's module.
        kwargs.setdefault("dataset_name", table.name)
    else:
        module = f"qabench.loading_scripts.{table.name}.{table.name}"
        importlib.import_module(module)
        subclasses = BenchmarkBuilder.__subclasses__()
        builders = [subclass for subclass in subclasses if subclass.__module__ == module]
        # ``__subclasses__`` returns the builders of all benchmarks that were imported so far.
        (kind,) = builders
    # The key depends on everything that determines the rows, so the cache never returns stale rows.
    parts = [cache_hash(kind, config_name), *(only_splits or ())]
    if data_files is not None:
        first_split = next(iter(table.config(config).splits))
        own_files = _own_files(data_files, first_split)
        kwargs["own_files"] = own_files
        for split, paths in own_files.items():
            for path in paths:
                parts.append(f"{split} {hashlib.sha256(path.read_bytes()).hexdigest()}")
    key = hashlib.sha1("\n".join(parts).encode(), usedforsecurity=False).hexdigest()
    return kind(config_name=config_name, hash=key, only_splits=only_splits, **kwargs)


@overload
def load_dataset(
    path: str | None = ...,
    name: str | None = ...,
    *,
    config: str | None = ...,
    split: None = ...,
    streaming: Literal[False] = ...,
    **options: Unpack[Options],
) -> DatasetDict: ...


@overload
def load_dataset(
    path: str | None = ...,
    name: str | None = ...,
    *,
    config: str | None = ...,
    split: OneSplit,
    streaming: Literal[False] = ...,
    **options: Unpack[Options],
) -> Dataset: ...


# Lists of splits, and streaming.
@overload
def load_dataset(
    path: str | None = ...,
    name: str | None = ...,
    *,
    config: str | None = ...,
    split: OneSplit | list[Any] | None = ...,
    streaming: bool = ...,
    **options: Unpack[Options],
) -> Any: ...


def load_dataset(
    path: str | None = None,
    name: str | None = None,
    *,
    config: str | None = None,
    split: Any = None,
    streaming: bool = False,
    data_files: DataFiles | None = None,
    revision: str | None = None,
    num_proc: int | None = None,
    cache_dir: str | Path | None = None,
    download_mode: DownloadMode | str | None = None,
    verification_mode: VerificationMode | str | None = None,
    keep_in_memory: bool = False,
) -> Any:
    """Load a benchmark from verified source files, as ``datasets.load_dataset`` would.

    Args:
        path: the benchmark, "fanoutqa" or "qabench/fanoutqa".
        name: the config, such as "dev". None for the default config. Without ``path``, the
            benchmark.
        config: the same as ``name``.
        split: a split, a slice of a split ("validation[:10]"), a ``datasets.ReadInstruction``, or a
            list of these. None for a dict with all splits. Files of other splits are not needed.
        streaming: read the rows one by one, without an Arrow file in the cache. For whole splits
            only: use .take(n) and .skip(n).
        data_files: custom files to read instead of the published ones: a path, a pattern such as
            "parts/*.json", an http(s) URL, or a list of these. They are the first split of the
            config, unless a dict {split: paths} names the splits. The files are in the benchmark's
            official format, or contain the dataset's rows, as ``Dataset.to_json``, ``to_parquet``
            and ``qabench build`` write them. Their content is not verified. (``to_json`` rounds
            numbers to 10 digits.)
        revision: None, "main" or the tag of the installed version, such as "v0.2.0", because the
            version of qabench decides the data.
        num_proc: the number of processes that prepare a split, at most one per file of the split.
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
        InputError: unknown benchmark, config, revision, split or file.
        SourceUnavailable: the data is neither in a mirror nor in the cache, and cannot be
            downloaded.
        DigestMismatch: a source file is not the pinned one.
        DataError: a row does not fit the schema. The message names file, row and field.
        QabenchError: HF_HOME or ``cache_dir`` cannot be written.
    """
    benchmark, config = _benchmark_and_config(path, name, config)
    # The stock function loads the data of a revision on the Hub. Here, any other revision would
    # silently give the data of the installed version.
    if revision not in (None, "main", f"v{version()}"):
        raise InputError(
            f"revision is {revision!r}; allowed: None, 'main' or 'v{version()}'. The installed version of qabench "
            "decides the data: install another version to load its data"
        )
    folder = None if cache_dir is None else str(cache_dir)
    with cache_errors(cache_dir):
        try:
            dataset_builder = builder(benchmark, config, data_files=data_files, cache_dir=folder)
        except OSError:
            if not streaming:
                raise
            # A builder creates its cache folder even if streaming does not use it.
            with TemporaryDirectory(prefix="qabench-streaming-") as unused:
                dataset_builder = builder(
                    benchmark, config, data_files=data_files, cache_dir=unused
                )
        names = _split_names(dataset_builder, split)
        # Prepare only the requested splits, so that missing files of other splits do not matter.
        if (
            data_files is None
            and not streaming
            and names
            and names != dataset_builder.split_names()
        ):
            dataset_builder = builder(benchmark, config, only_splits=names, cache_dir=folder)
        if not streaming:
            dataset_builder.download_and_prepare(
                num_proc=num_proc, download_mode=download_mode, verification_mode=verification_mode
            )
        try:
            if streaming:
                return dataset_builder.as_streaming_dataset(split=split)
            return _as_dataset(dataset_builder, split, keep_in_memory)
        except ValueError as error:
            # The slice is invalid, or a ReadInstruction has an unknown split.
            raise InputError(
                f"split {split!r} of {benchmark} {dataset_builder.config.name}: {error}"
            ) from None


def _benchmark_and_config(
    path: str | None, name: str | None, config: str | None
) -> tuple[str, str | None]:
    """Return the benchmark and the config that the arguments of ``load_dataset`` name."""
    if path is None:
        path, name = name, None
    if path is None:
        raise InputError(f"load_dataset needs a benchmark: {', '.join(benchmark_names())}")
    if None not in (name, config) and name != config:
        raise InputError(
            f"the config is {name!r} and {config!r}: name and config are the same argument"
        )
    if name is None:
        return path, config
    return path, name


def _split_names(dataset_builder: BenchmarkBuilder, split: Any) -> list[str] | None:
    """Return the names of the splits that an argument ``split`` uses, in the config's order.

    Returns None for all splits, and also for a ``ReadInstruction``, whose splits are not read here.
    Raises InputError for an unknown name, before anything is downloaded or prepared.
    """
    allowed = dataset_builder.split_names()
    parts = [split]
    if isinstance(split, list | tuple):
        parts = list(split)
    names: set[str] = set()
    for part in parts:
        if not isinstance(part, str) and type(part).__name__ != "NamedSplit":
            return None
        names.update(_SPLIT.findall(str(part)))
    unknown = sorted(names - {*allowed, "all"})
    if unknown or not names:
        where = f"{dataset_builder.BENCHMARK} {dataset_builder.config.name}"
        raise unknown_name(
            f"{where} has no split", (unknown or [split])[0], [*allowed, "or a slice"]
        )
    # In ``datasets``, "all" means all splits together.
    if "all" in names:
        return None
    return [name for name in allowed if name in names]


def _as_dataset(dataset_builder: BenchmarkBuilder, split: Any, in_memory: bool) -> Any:
    """Return the prepared splits that ``split`` selects, in the form that it asks for.

    Splits without rows are returned, too. ``datasets`` refuses to load them, so they are loaded
    here.
    """
    from datasets import Dataset, DatasetDict

    # Only an empty split needs more than the builder's own function.
    prepared = dataset_builder.info.splits or {}
    empty = [name for name, info in prepared.items() if not info.num_examples]
    if not empty:
        return dataset_builder.as_dataset(split=split, in_memory=in_memory)
    if split is None:
        by_name = {name: _as_dataset(dataset_builder, name, in_memory) for name in prepared}
        return DatasetDict(by_name)
    if isinstance(split, list | tuple):
        return [_as_dataset(dataset_builder, name, in_memory) for name in split]
    names = list(prepared) if str(split) == "all" else _SPLIT.findall(str(split))
    if not set(names) <= set(empty):
        return dataset_builder.as_dataset(split=split, in_memory=in_memory)
    where = f"{dataset_builder.BENCHMARK} {dataset_builder.config.name}"
    warnings.warn(f"the split {split} of {where} is empty: its files have no rows", stacklevel=4)
    features = dataset_builder.info.features
    columns: dict[str, list[Any]] = {name: [] for name in features}
    return Dataset.from_dict(columns, features=features, info=dataset_builder.info, split=split)


def _own_files(data_files: DataFiles, split: str) -> dict[str, list[Path]]:
    """Return the files of each split.

    Patterns are expanded and URLs downloaded. Raises InputError for another type, an empty list, or
    a file that does not exist.
    """
    by_split = data_files if isinstance(data_files, Mapping) else {split: data_files}
    own: dict[str, list[Path]] = {}
    for name, files in by_split.items():
        paths = [files] if isinstance(files, str | Path) else files
        if not isinstance(paths, Iterable) or not (paths := list(paths)):
            raise _wrong_files(data_files)
        own[str(name)] = []
        for path in paths:
            if not isinstance(path, str | Path):
                raise _wrong_files(data_files)
            own[str(name)] += _matching(path)
    if not own:
        raise _wrong_files(data_files)
    return own


def _wrong_files(data_files: object) -> InputError:
    return InputError(
        f"data_files is {data_files!r}; allowed: a path, a list of paths, or {{split: paths}}"
    )


def _matching(path: str | Path) -> list[Path]:
    """Return the file of a path or URL, or the files that match a pattern, sorted."""
    if re.match("https?://", str(path)):
        return [_downloaded(str(path))]
    # A file may have * in its name.
    if Path(path).is_file():
        return [Path(path)]
    # Sorted, because the order of the rows must not depend on the file system.
    matches = sorted(map(Path, glob.glob(str(path), recursive=True)))
    files = [match for match in matches if match.is_file()]
    if not files and glob.has_magic(str(path)):
        raise InputError(f"data_files: no file matches {path}")
    if Path(path).is_dir():
        raise InputError(f"data_files: {path} is a folder; name its files, such as {path}/*.jsonl")
    if not files:
        raise InputError(f"data_files: the file {path} does not exist")
    return files


def _downloaded(url: str) -> Path:
    """Download a file to qabench's cache, even if it is there, because it may have changed."""
    if variable := offline_variable():
        raise InputError(f"data_files: {url} cannot be downloaded because {variable} is set")
    with closing(HttpClient(Limits(redirects="any"))) as client:
        content: bytes = client.get(url, lambda response: response.content)
    name = hashlib.sha256(url.encode()).hexdigest()[:16]
    path = files_cache() / "data_files" / f"{name}{Path(urlsplit(url).path).suffix}"
    with replacing(path) as file:
        file.write(content)
    return path
