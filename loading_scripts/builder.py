"""The base of all dataset builders.

A builder takes its configs and files from ``configs.json`` and ``sources.json`` in its folder. The
files that it reads are verified, except files that the user passes. Its cache key depends on the
digests of all of them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import metadata_load
from yaml import YAMLError

from qabench.data.answers import JSON_TEXT, read_written
from qabench.data.containers import json_columns_of_schema
from qabench.data.rows import Json, SourceRow, read_json, read_json_lines, read_json_list
from qabench.errors import DataError
from qabench.loading_scripts import FEATURES, JSON, LEADERBOARD, DatasetTable, dataset_table
from qabench.loading_scripts.published import PublishedScore, published_rows

# The columns of a config ``leaderboard`` that comes from a ``leaderboard.json``.
PUBLISHED = dict.fromkeys(("system", "setting", "config", "metric", "value", "source"), "string")
PUBLISHED["value"] = "float64"


def features(declared: Any) -> Any:
    """Return the features of a declaration, which is a type, a list with one type, or an object.

    The type "json" becomes a string column whose feature says that the strings are JSON text.
    """
    if declared == JSON:
        return datasets.Value("string", id=JSON_TEXT)
    if isinstance(declared, str):
        return datasets.Value(declared)
    if isinstance(declared, list):
        return datasets.List(features(declared[0]))
    return {name: features(part) for name, part in declared.items()}


def is_parquet(path: Path) -> bool:
    """Return whether a file begins like a Parquet file."""
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def parquet_rows(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of a Parquet file, counted from 0. Raises DataError for a damaged file."""
    try:
        number = 0
        for batch in pq.ParquetFile(path).iter_batches():
            for fields in batch.to_pylist():
                yield SourceRow.of(fields, f"{path}, row {number}")
                number += 1
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} begins like a Parquet file, but cannot be read ({error})"
        ) from None


_NOT_ROWS = SourceRow({}, "")


def _json_rows(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of JSON Lines or of a JSON list, or only ``_NOT_ROWS`` for anything else."""
    try:
        rows = read_json_lines(path)
        first = next(rows, _NOT_ROWS)
    except DataError:
        # The file may be a JSON list, whose first line is not an object.
        try:
            yield from read_json_list(path)
        except DataError:
            yield _NOT_ROWS
        return
    yield first
    yield from rows


class BenchmarkBuilder(datasets.GeneratorBasedBuilder):
    """A builder whose configs and splits are declared in the JSON files of its folder.

    A subclass sets ``BENCHMARK`` (its folder), ``DESCRIPTION``, ``HOMEPAGE`` and ``LICENSE``. It
    defines ``_rows(path, split)``, which reads a file and yields rows of the dataset. If the folder
    has no ``features.json``, it also defines ``_columns()``, which returns the features of the
    config. Neither is called for a ``leaderboard.json``.
    """

    BENCHMARK: ClassVar[str]
    DESCRIPTION: ClassVar[str]
    HOMEPAGE: ClassVar[str] = ""
    LICENSE: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # ``RowsBuilder`` is a base class: only its subclasses are for a benchmark.
        if not hasattr(cls, "BENCHMARK"):
            return
        # The version never changes: the cache tells data apart by ``cache_hash`` instead.
        table, version = dataset_table(cls.BENCHMARK), datasets.Version("1.0.0")
        cls.BUILDER_CONFIGS = []
        for config in table.configs.values():
            builder_config = datasets.BuilderConfig(
                name=config.name, version=version, description=config.description
            )
            cls.BUILDER_CONFIGS.append(builder_config)
        cls.DEFAULT_CONFIG_NAME = table.default

    def __init__(
        self,
        *args: Any,
        own_files: Mapping[str, Sequence[Path]] | None = None,
        only_splits: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a ``datasets.DatasetBuilder``.

        Args:
            *args: passed to ``datasets.DatasetBuilder``.
            own_files: a user's files by split, instead of the pinned ones.
            only_splits: the splits that are prepared. None for all.
            **kwargs: passed to ``datasets.DatasetBuilder``.
        """
        self._own_files = own_files
        self._only_splits = only_splits
        super().__init__(*args, **kwargs)

    def _info(self) -> datasets.DatasetInfo:
        if self._is_shipped_leaderboard():
            columns = features(PUBLISHED)
        else:
            columns = self._columns()
        return datasets.DatasetInfo(
            description=self.DESCRIPTION,
            features=datasets.Features(columns),
            homepage=self.HOMEPAGE,
            license=self.LICENSE,
            citation=self._table.citation,
        )

    @property
    def _table(self) -> DatasetTable:
        return dataset_table(self.BENCHMARK)

    def _is_shipped_leaderboard(self) -> bool:
        return self.config.name == LEADERBOARD and not self._table.config(LEADERBOARD).files

    def split_names(self) -> list[str]:
        """Return the names of the splits."""
        return list(self._files())

    def _files(self) -> Mapping[str, Sequence[Any]]:
        files = self._own_files or self._table.config(self.config.name).splits
        return {split: files[split] for split in self._only_splits or files}

    def _path(self, file: Any) -> Path:
        # ``dl_manager.download`` is not used because it neither verifies checksums nor knows
        # mirrors. ``isinstance(file, Path)`` is not used because streaming replaces ``Path`` in
        # this module.
        return file if self._own_files is not None else self._table.open_path(file)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        if not dl_manager.is_streaming:
            # Check all files first, so that a missing one is reported before any row is written.
            # Streaming opens only the files of the split that is read.
            for files in self._files().values():
                for file in files:
                    self._path(file)
        generators = []
        for split, files in self._files().items():
            # With ``num_proc``, ``datasets`` distributes the items of a list in ``gen_kwargs`` over
            # the processes.
            arguments = {"split": split, "files": list(files)}
            generators.append(datasets.SplitGenerator(name=split, gen_kwargs=arguments))
        return generators

    def _generate_examples(
        self, split: str, files: list[Any]
    ) -> Iterator[tuple[tuple[int, int], Json]]:
        for number, file in enumerate(files):
            path = self._path(file)
            if self._own_files is not None:
                rows = self._own_rows(path, split)
            elif self._is_shipped_leaderboard():
                rows = published_rows(path)
            else:
                rows = self._rows(path, split)
            # Keys must be unique in a split, which may have several files.
            for i, row in enumerate(rows):
                yield (number, i), row

    def _own_rows(self, path: Path, split: str) -> Iterator[Json]:
        """Yield the rows of a user's file, in the official format or in the dataset's columns."""
        if is_parquet(path):
            return self._checked(parquet_rows(path))
        rows = _json_rows(path)
        first = next(rows, None)
        if first is None:
            return iter(())
        # If the official format and the dataset have the same columns, a row can be in either. It is
        # then read in the official format, like the pinned files.
        is_row = (
            first is not _NOT_ROWS and self._is_row(first) and not self._is_official(path, split)
        )
        if is_row:
            return self._checked(chain([first], rows))
        if self._is_shipped_leaderboard():
            return published_rows(path)
        return self._rows(path, split)

    def _is_row(self, row: SourceRow) -> bool:
        try:
            return bool(list(self._checked([row])))
        except DataError:
            return False

    def _is_official(self, path: Path, split: str) -> bool:
        """Return whether the first row can be read in the official format."""
        try:
            next(self._rows(path, split), None)
        except DataError:
            return False
        return True

    def _checked(self, rows: Iterable[SourceRow]) -> Iterator[Json]:
        """Yield the fields of rows. Raises DataError for a row that does not fit the dataset."""
        schema = self.info.features.arrow_schema
        json_columns = json_columns_of_schema(schema)
        for row in rows:
            # ``only`` rejects an unknown column, the next line a missing one, and the rest a value
            # of another type or invalid JSON text.
            row.only(*schema.names)
            if missing := [name for name in schema.names if name not in row.fields]:
                raise DataError(f"{row.where}: the field {missing[0]!r} is missing")
            try:
                pa.RecordBatch.from_pylist([dict(row.fields)], schema)
                for name in json_columns:
                    read_written(row.fields[name])
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise DataError(f"{row.where}: not a row of the dataset ({error})") from None
            yield dict(row.fields)

    def _columns(self) -> dict[str, Any]:
        """Return the features that ``features.json`` declares for the config.

        The config ``sample_NAME``, a part of the sample, has the features of the config ``NAME``. A
        config without an entry has the features of the default config.
        """
        declared = read_json(self._table.folder / FEATURES)
        name = self.config.name.removeprefix("sample_")
        columns: dict[str, Any] = features(declared.get(name) or declared[self.DEFAULT_CONFIG_NAME])
        return columns

    def _rows(self, path: Path, split: str) -> Iterator[Json]:
        raise NotImplementedError


class RowsBuilder(BenchmarkBuilder):
    """A builder for JSON Lines files whose objects are the rows.

    Columns and types are inferred from all rows of the splits that are prepared. A column without
    values, such as the answers of a held-out config, gets its type from the default config.
    """

    def _columns(self) -> dict[str, Any]:
        files = chain.from_iterable(self._files().values())
        columns = self._types([self._path(file) for file in files])
        untyped = [name for name, kind in columns.items() if "null" in str(kind)]
        if untyped:
            files_of_default = chain.from_iterable(self._table.config(None).splits.values())
            types = self._types([self._table.open_path(file) for file in files_of_default])
            for name in untyped:
                if name in types:
                    columns[name] = types[name]
        return columns

    def _types(self, paths: Sequence[Path]) -> dict[str, Any]:
        rows: list[Json] = []
        for path in paths:
            rows += self._own_rows(path, "")
        names = dict.fromkeys(chain.from_iterable(rows))
        columns = {}
        for name in names:
            columns[name] = [row.get(name) for row in rows]
        return dict(datasets.Dataset.from_dict(columns).features)

    def _own_rows(self, path: Path, split: str) -> Iterator[Json]:
        if is_parquet(path):
            return (dict(row.fields) for row in parquet_rows(path))
        return self._rows(path, split)

    def _rows(self, path: Path, split: str) -> Iterator[Json]:
        return (dict(row.fields) for row in read_json_lines(path))


def rows_builder(name: str) -> type[RowsBuilder]:
    """Make the builder class of a benchmark that does not define one."""
    table = dataset_table(name)
    description, license = _about(table.folder / "README.md")
    attributes = {
        "BENCHMARK": table.name,
        "DESCRIPTION": description or table.title,
        "LICENSE": license,
        "__module__": __name__,
    }
    return type(table.name.title().replace("_", ""), (RowsBuilder,), attributes)


def _about(card: Path) -> tuple[str, str]:
    """Return a dataset card's first paragraph and its license. Either is "" if the card lacks it."""
    if not card.is_file():
        return "", ""
    try:
        license = (metadata_load(card) or {}).get("license")
    except (ValueError, YAMLError):
        # What is wrong with the card is reported when the card is published.
        license = None
    text = card.read_text(encoding="utf-8", errors="replace")
    if text.startswith("---\n"):
        text = text.split("---\n", 2)[-1]
    description = ""
    for paragraph in text.split("\n\n"):
        words = paragraph.split()
        # Skip headings, code blocks, tables, HTML and quotations.
        if words and words[0][0] not in "#`|<>":
            description = " ".join(words)
            break
    # A card may list several licenses.
    if not isinstance(license, str):
        license = ""
    return description, license


def cache_hash(builder: type[BenchmarkBuilder], config: str) -> str:
    """Return 40 hex digits for a config's data and code, for the builder's key in the cache.

    They depend on the digests of the config's files and of the code that reads them. The hash of
    ``datasets`` depends only on the version, so its cache would return rows of other data or of
    older code. They also depend on the config's name, because the stock ``load_dataset`` finds no
    default if two configs have the same folder in the cache.
    """
    table = dataset_table(builder.BENCHMARK)
    total = hashlib.sha1(f"{config}\n".encode(), usedforsecurity=False)
    for split, files in table.config(config).splits.items():
        for file in files:
            total.update(f"{split} {file} {table.file_digest(file)}\n".encode())
    code = [*sorted(table.folder.glob("*.py")), *table.folder.glob(FEATURES)]
    # All builders use the modules in which these classes are defined.
    for shared_class in (SourceRow, PublishedScore, BenchmarkBuilder):
        code.append(Path(inspect.getfile(shared_class)))
    for path in code:
        total.update(path.read_bytes())
    return total.hexdigest()
